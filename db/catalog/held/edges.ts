import type { ClosedEdge, EdgeCause, EdgeKey, EdgeRow } from '../rows.ts'
import { createAround, edgeKey } from './around.ts'
import { type Journal, Unheld } from './journal.ts'

/** The open edges of the rows that a transaction holds (held/rows.ts). */
export type HeldEdge = EdgeRow & { command_id: string | null; operation_id: string | null }
export type HeldEdges = ReturnType<typeof createEdges>

const byNumber = (a: string, b: string) => (BigInt(a) < BigInt(b) ? -1 : 1)

export const createEdges = (journal: Journal, fresh: ReadonlySet<string>) => {
  const { begin, move, count, crowding, reaches, keysOf, ...known } = createAround(journal, fresh)
  /** undefined: there is no such edge. */
  const open = new Map<string, HeldEdge | undefined>()
  const ids = new Map<string, string>()
  /** Numbers for new edges. */
  const rel_nos: string[] = []
  const pending = {
    open,
    history: [] as object[],
    added: new Set<string>(),
    revised: new Set<string>(),
    gone: new Map<string, EdgeKey>(),
  }

  const touching = (rid: string): HeldEdge[] => [...keysOf(rid)].flatMap((key) => open.get(key) ?? [])
  const get = (key: EdgeKey): HeldEdge | undefined => {
    const name = edgeKey(key)
    if (!open.has(name) && !known.around.has(key.src) && !known.around.has(key.dst)) throw new Unheld()
    return open.get(name)
  }
  const close = (edge: HeldEdge, valid_to: string): EdgeRow => {
    const name = edgeKey(edge)
    journal.push(pending.history, { ...edge, valid_to })
    journal.put(open, name, undefined)
    move(edge, -1)
    if (pending.added.has(name)) journal.drop(pending.added, name)
    else {
      journal.drop(pending.revised, name)
      journal.put(pending.gone, name, { src: edge.src, reltype_id: edge.reltype_id, dst: edge.dst })
    }
    return { ...edge, rev: edge.rev + 1 }
  }

  return {
    ...questionsOf(touching),
    ...{ get, begin, count, crowding, reaches },
    loaded: { ...known, open, ids, rel_nos },
    pending,
    add: (key: EdgeKey, properties: Record<string, unknown>, { at, command_id, operation_id }: EdgeCause): EdgeRow => {
      const rel_no = rel_nos.pop()
      if (rel_no === undefined) throw new Unheld()
      const edge = { ...key, rel_no, rev: 1, properties, valid_from: at, command_id, operation_id }
      journal.put(open, edgeKey(key), edge)
      journal.add(pending.added, edgeKey(key))
      move(key, 1)
      return edge
    },
    revise: (key: EdgeKey, properties: Record<string, unknown>, cause: EdgeCause): EdgeRow => {
      const before = get(key) as HeldEdge
      const { at: valid_from, command_id, operation_id } = cause
      const edge = { ...before, rev: before.rev + 1, properties, valid_from, command_id, operation_id }
      journal.push(pending.history, { ...before, valid_to: cause.at })
      journal.put(open, edgeKey(key), edge)
      if (!pending.added.has(edgeKey(key))) journal.add(pending.revised, edgeKey(key))
      return edge
    },
    close: (key: EdgeKey, { at }: EdgeCause): EdgeRow | undefined => {
      const edge = get(key)
      return edge && close(edge, at)
    },
    closeAll: (rid: string, { at }: EdgeCause, idOf: (rid: string) => string): ClosedEdge[] =>
      touching(rid)
        .sort((a, b) => byNumber(a.rel_no, b.rel_no))
        .map((edge) => {
          const valid_to = Date.parse(edge.valid_from) > Date.parse(at) ? edge.valid_from : at
          const named = (end: string) => ids.get(end) ?? idOf(end)
          return { ...close(edge, valid_to), from_id: named(edge.src), to_id: named(edge.dst) }
        }),
  }
}

/** Questions about all open edges of a resource. */
const questionsOf = (touching: (rid: string) => HeldEdge[]) => ({
  outOf: (src: string, reltype_id: number): EdgeRow | undefined =>
    touching(src).find((edge) => edge.src === src && edge.reltype_id === reltype_id),
  countAll: (rid: string): number => touching(rid).length,
  to: (rid: string, reltype_ids: readonly number[], except: readonly string[]): EdgeRow[] =>
    touching(rid)
      .filter(({ src, dst, reltype_id }) => dst === rid && reltype_ids.includes(reltype_id) && !except.includes(src))
      .sort((a, b) => byNumber(a.src, b.src)),
  from: (rid: string, reltype_ids: readonly number[]): EdgeRow[] =>
    touching(rid).filter(({ src, reltype_id }) => src === rid && reltype_ids.includes(reltype_id)),
  cascade: (rid: string, reltype_ids: readonly number[], limit: number): string[] => {
    const found = new Set([rid])
    for (const at of found) {
      if (found.size >= limit) break
      for (const { src, dst, reltype_id } of touching(at))
        if (dst === at && reltype_ids.includes(reltype_id)) found.add(src)
    }
    return [...found].slice(0, limit)
  },
})
