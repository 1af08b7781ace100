import { useRef } from 'react'
import type { Command } from '../../api/commands.ts'
import { useEach } from '../../command/together.tsx'
import { type Candidate, keyOf, type Together } from './alike.ts'

const NOUNS = ['inbox', 'me', 'gate', 'patch', 'patches', 'operation', 'graph']
type Batch = { id: string; size: number }

/** Votes on gates and patches together: one command, key, digest and round each. */
export const useBatch = (verdict: Together) => {
  const { send: sendAll, ...votes } = useEach(NOUNS)
  const batch = useRef<Batch>(undefined)
  const send = (candidates: readonly Candidate[], comment: string) => {
    const one = batch.current ?? { id: crypto.randomUUID(), size: candidates.length }
    batch.current = one
    return sendAll(candidates.map((candidate) => [keyOf(candidate.row), voteOn(candidate, verdict, comment, one)]))
  }
  return { ...votes, send }
}

const voteOn = ({ row, read }: Candidate, verdict: Together, comment: string, batch: Batch): Command => {
  const [part, round] =
    'gate_id' in row
      ? [`gates/${encodeURIComponent(row.gate_id)}`, { round: row.round }]
      : [`patches/${row.patch_id}`, {}]
  const path = `/v1/operations/${encodeURIComponent(row.operation_id)}/${part}/${verdict}`
  const seen = verdict === 'approve' ? { reviewed_digest: read.digest } : {}
  return { path, body: { ...round, ...seen, ...(comment === '' ? {} : { comment }), batch } }
}
