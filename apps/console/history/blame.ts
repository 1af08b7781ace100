import type { GraphNode } from '../api/types.ts'
import type { Bar } from './bars.ts'

/** The cause of a span on the critical path; `start`: before the operation began. */
export type Cause = 'run' | 'undo' | 'backoff' | 'gate' | 'hold' | 'pause' | 'start' | 'queue'
export type Piece = { cause: Cause; from: number; to: number; attempt?: number | undefined; open: boolean }
/** One node of the path, and the time that only it accounts for. */
export type Link = { node_id: string; from: number; to: number; pieces: Piece[] }
export type Blame = { from: number; to: number; links: Link[]; sums: { cause: Cause; ms: number }[] }
type Dependent = Pick<GraphNode, 'node_id' | 'depends_on'>
export type Times = {
  /** When the operation was requested. */
  from: number
  started: number
  now: number
  bars: ReadonlyMap<string, readonly Bar[]>
  pauses: readonly Bar[]
}

/**
 * Explains why a node ended when it did, or has not ended yet: goes backwards, each time to the dependency that ended
 * last. Without a node, it starts at the one that ended last. The parts cover the time since the operation was
 * requested, to the millisecond. Pure.
 */
export const blameOf = (nodes: readonly Dependent[], times: Times, node_id?: string): Blame | undefined => {
  const byId = new Map(nodes.map((node) => [node.node_id, node]))
  const last = byId.get(node_id ?? lastOf(nodes, times) ?? '')
  if (last === undefined) return undefined
  const end = Math.max(times.from, times.bars.get(last.node_id)?.at(-1)?.to ?? times.now)
  const links: Link[] = []
  for (let node: Dependent | undefined = last, to = end; node !== undefined; ) {
    const before = latest(node, to, times)
    const from = before?.at ?? times.from
    links.unshift({ node_id: node.node_id, from, to, pieces: piecesOf(node.node_id, from, to, times) })
    node = before && byId.get(before.node_id)
    to = from
  }
  return { from: times.from, to: end, links, sums: sumsOf(links) }
}

/** The node that ended last; among those that have not ended, the one that has been in its state the longest. */
const lastOf = (nodes: readonly Dependent[], { bars }: Times): string | undefined =>
  nodes
    .flatMap(({ node_id }) => {
      const bar = bars.get(node_id)?.at(-1)
      return bar === undefined ? [] : [{ node_id, bar }]
    })
    .reduce<{ node_id: string; bar: Bar } | undefined>(
      (a, b) => (a === undefined || b.bar.to > a.bar.to || (b.bar.to === a.bar.to && b.bar.from < a.bar.from) ? b : a),
      undefined,
    )?.node_id

/** The dependency that released a node: the last one to end by then. */
const latest = ({ depends_on }: Dependent, to: number, times: Times): { node_id: string; at: number } | undefined =>
  depends_on
    .map((node_id) => ({ node_id, at: Math.max(times.from, endedBy(times.bars.get(node_id) ?? [], to)) }))
    .reduce<{ node_id: string; at: number } | undefined>((a, b) => (a === undefined || b.at > a.at ? b : a), undefined)

/** When the node last ended, but not after `to`; a node that has not begun still blocks. */
const endedBy = (bars: readonly Bar[], to: number): number =>
  Math.min(to, bars.findLast(({ from }) => from <= to)?.to ?? (bars.length === 0 ? to : 0))

/** The time from `from` to `to`, split where its cause changes. Time that no bar explains was spent in the queue. */
const piecesOf = (node_id: string, from: number, to: number, { bars, pauses, ...times }: Times): Piece[] => {
  const beforeStart = { kind: 'start' as const, from: times.from, to: times.started, open: false }
  const told = (bars.get(node_id) ?? []).filter(({ kind }) => kind !== 'queue' && kind !== 'end')
  return fill(told, from, to).flatMap((piece) =>
    piece.cause !== 'queue' ? [piece] : fill([beforeStart, ...pauses], piece.from, piece.to),
  )
}

type Stretch = { kind: Bar['kind'] | 'start'; from: number; to: number; open: boolean; attempt?: number | undefined }
const fill = (stretches: readonly Stretch[], from: number, to: number): Piece[] => {
  const pieces: Piece[] = []
  const end = () => pieces.at(-1)?.to ?? from
  const add = (cause: Cause, until: number, more: { open: boolean; attempt?: number | undefined }) => {
    if (until > end()) pieces.push({ cause, from: end(), to: until, ...more })
  }
  for (const { kind, open, attempt, ...stretch } of stretches) {
    add('queue', Math.min(to, stretch.from), { open: false })
    add(kind as Cause, Math.min(to, stretch.to), { open, attempt })
  }
  add('queue', to, { open: false })
  return pieces
}

const sumsOf = (links: readonly Link[]): Blame['sums'] => {
  const sums = new Map<Cause, number>()
  for (const { cause, from, to } of links.flatMap(({ pieces }) => pieces))
    sums.set(cause, (sums.get(cause) ?? 0) + to - from)
  return [...sums].map(([cause, ms]) => ({ cause, ms })).sort((a, b) => b.ms - a.ms)
}
