import type { NodeRow } from '../api/types.ts'

export type Segment = { kind: 'queued' | 'gated' | 'running'; from: number; to: number }
type Times = Pick<NodeRow, 'state' | 'gated_at' | 'ready_at' | 'started_at' | 'ended_at'>

/** A node's history as bars; a bar without an end ends now. Pure. */
export const segmentsOf = (row: Times, now: number): Segment[] => {
  const time = (text: string | null) => (text === null ? null : Date.parse(text))
  const [gated, ready, started, ended] = [row.gated_at, row.ready_at, row.started_at, row.ended_at].map(time)
  const segments: Segment[] = []
  const add = (kind: Segment['kind'], from: number | null | undefined, to: number | null | undefined) => {
    if (typeof from === 'number' && (to ?? now) >= from) segments.push({ kind, from, to: to ?? now })
  }
  if (gated) add('gated', gated, ready ?? started ?? ended)
  if (ready && (started || row.state === 'ready')) add('queued', ready, started ?? ended)
  add('running', started, ended)
  return segments
}
