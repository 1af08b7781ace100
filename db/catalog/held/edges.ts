import type { ClosedEdge, EdgeCause, EdgeKey, EdgeRow } from '../rows.ts'
import { createAround, edgeKey, outKey } from './around.ts'
import { type Journal, Unheld } from './journal.ts'
import type { Ended } from './missing.ts'

/** The open edges of the rows that a transaction holds (held/rows.ts). */
export type HeldEdge = EdgeRow & { command_id: string | null; operation_id: string | null; stated_by: string | null }

/** Everyone who states an edge: one name per line of the column. */
export const statementsOf = ({ stated_by }: Pick<HeldEdge, 'stated_by'>): string[] => stated_by?.split('\n') ?? []

/** Who joins and who leaves those who state an edge; merged with the row, because its other end may change it too. */
type Restated = EdgeKey & { more: string[]; less: string[] }

const byNumber = (a: string, b: string) => (BigInt(a) < BigInt(b) ? -1 : 1)

const createPending = () => ({
  /** `undefined`: no such edge exists. */
  open: new Map<string, HeldEdge | undefined>(),
  history: [] as (EdgeRow & { valid_to: string })[],
  opened: [] as EdgeRow[],
  added: new Set<string>(),
  revised: new Set<string>(),
  restated: new Map<string, Restated>(),
  gone: new Map<string, EdgeKey>(),
})
type Pending = ReturnType<typeof createPending>
type Around = ReturnType<typeof createAround>

/** Edges by their key and by their ends. Throws `Unheld` if they are not held. */
const readsOf = ({ open }: Pending, { around, keysOf, leaving }: Pick<Around, 'around' | 'keysOf' | 'leaving'>) => {
  const touching = (rid: string): HeldEdge[] => [...keysOf(rid)].flatMap((key) => open.get(key) ?? [])
  const get = (key: EdgeKey): HeldEdge | undefined => {
    const name = edgeKey(key)
    if (!open.has(name) && !around.has(key.src) && !around.has(key.dst)) throw new Unheld({ edges: [key] })
    return open.get(name)
  }
  const outsOf = (src: string, reltype_ids: readonly number[]): EdgeRow[] => {
    const keys = reltype_ids.flatMap((reltype_id) =>
      [...leaving(reltype_id, src)].map((dst) => ({ src, reltype_id, dst })),
    )
    const unknown = around.has(src) ? [] : keys.filter((key) => !open.has(edgeKey(key)))
    if (unknown.length > 0) throw new Unheld({ edges: unknown })
    return keys.flatMap((key) => open.get(edgeKey(key)) ?? [])
  }
  return { touching, get, outsOf }
}

/** Changes who states an edge; the edge itself stays as it is. */
const statementsIn = (journal: Journal, pending: Pending, get: (key: EdgeKey) => HeldEdge | undefined) => {
  const restate = (key: EdgeKey, manager: string, op: 'more' | 'less'): void => {
    const [name, edge] = [edgeKey(key), get(key) as HeldEdge]
    const before = statementsOf(edge)
    const others = before.filter((one) => one !== manager)
    const after = op === 'less' ? others : [...others, manager].sort()
    if (after.length === before.length) return
    journal.put(pending.open, name, { ...edge, stated_by: after.join('\n') })
    if (pending.added.has(name) || pending.revised.has(name)) return
    const { src, reltype_id, dst } = key
    const { more, less } = pending.restated.get(name) ?? { more: [], less: [] }
    const change = op === 'more' ? { more: [...more, manager], less } : { more, less: [...less, manager] }
    journal.put(pending.restated, name, { src, reltype_id, dst, ...change })
  }
  return {
    /** A manager states an edge too. */
    join: (key: EdgeKey, manager: string): void => restate(key, manager, 'more'),
    /** A manager no longer states an edge that others state. */
    leave: (key: EdgeKey, manager: string): void => restate(key, manager, 'less'),
  }
}

/** Edges opened or closed since they were read. */
const changesIn = ({ open, added, gone }: Pending) => {
  const changed = (): { key: EdgeKey; by: 1 | -1 }[] => [
    ...[...gone.values()].map((key) => ({ key, by: -1 as const })),
    ...[...added].flatMap((name) => {
      const key = open.get(name)
      return key ? [{ key, by: 1 as const }] : []
    }),
  ]
  return {
    changed,
    gained: ({ rid, reltype_id, end }: Ended): number =>
      changed().reduce((sum, { key, by }) => (key[end] === rid && key.reltype_id === reltype_id ? sum + by : sum), 0),
  }
}

export const createEdges = (journal: Journal, fresh: ReadonlySet<string>) => {
  const { begin, move, count, crowding, reaches, keysOf, leaving, ...known } = createAround(journal, fresh)
  const ids = new Map<string, string>()
  /** Numbers for new edges. */
  const rel_nos: string[] = []
  const pending = createPending()
  const { open } = pending
  const { touching, get, outsOf } = readsOf(pending, { ...known, keysOf, leaving })
  const close = (edge: HeldEdge, valid_to: string): EdgeRow => {
    const name = edgeKey(edge)
    // Another process may have opened it by a clock that is ahead.
    const late = Date.parse(edge.valid_from) > Date.parse(valid_to)
    journal.push(pending.history, { ...edge, valid_to: late ? edge.valid_from : valid_to })
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
    ...changesIn(pending),
    ...statementsIn(journal, pending, get),
    forget: (rid: string): void => forget(rid, known, pending),
    ...questionsOf(touching, (rid) => known.around.has(rid)),
    outOf: (src: string, reltype_id: number): EdgeRow | undefined => outsOf(src, [reltype_id])[0],
    from: outsOf,
    ...{ get, begin, count, crowding, reaches },
    loaded: { ...known, open, ids, rel_nos },
    pending,
    /** All edges around a resource, the oldest first. */
    all: (rid: string): HeldEdge[] => touching(rid).sort((a, b) => byNumber(a.rel_no, b.rel_no)),
    add: (key: EdgeKey, properties: Record<string, unknown>, cause: EdgeCause): EdgeRow => {
      const rel_no = journal.draw(rel_nos)
      if (rel_no === undefined) throw new Unheld({ numbers: { rows: 0, edges: 1 } })
      const edge = { ...key, rel_no, rev: 1, properties, ...causeOf(cause) }
      journal.put(open, edgeKey(key), edge)
      journal.push(pending.opened, edge)
      journal.add(pending.added, edgeKey(key))
      move(key, 1)
      return edge
    },
    revise: (key: EdgeKey, properties: Record<string, unknown>, cause: EdgeCause): EdgeRow => {
      const before = get(key) as HeldEdge
      const edge = { ...before, rev: before.rev + 1, properties, ...causeOf(cause) }
      journal.push(pending.history, { ...before, valid_to: cause.at })
      journal.put(open, edgeKey(key), edge)
      journal.push(pending.opened, edge)
      if (!pending.added.has(edgeKey(key))) journal.add(pending.revised, edgeKey(key))
      return edge
    },
    close: (key: EdgeKey, { at }: Pick<EdgeCause, 'at'>): EdgeRow | undefined => {
      const edge = get(key)
      return edge && close(edge, at)
    },
    closeAll: (rid: string, { at }: Pick<EdgeCause, 'at'>, idOf: (rid: string) => string): ClosedEdge[] =>
      touching(rid)
        .sort((a, b) => byNumber(a.rel_no, b.rel_no))
        .map((edge) => {
          const named = (end: string) => ids.get(end) ?? idOf(end)
          return { ...close(edge, at), from_id: named(edge.src), to_id: named(edge.dst) }
        }),
  }
}

type Known = Pick<Around, 'around' | 'counts' | 'outs'>
/** Forgets a resource that will be read again; changes made here stay. */
const forget = (rid: string, known: Known, pending: Pending): void => {
  known.around.delete(rid)
  for (const map of [known.counts, known.outs])
    for (const key of map.keys()) if (key.endsWith(` ${rid}`)) map.delete(key)
  for (const [name, edge] of pending.open) {
    const touches = name.startsWith(`${rid} `) || name.endsWith(` ${rid}`)
    const own = [pending.added, pending.revised, pending.restated, pending.gone].some((of) => of.has(name))
    if (!touches || (edge !== undefined && own) || pending.gone.has(name)) continue
    pending.open.delete(name)
    // The other end of this edge no longer has all of its edges in memory.
    const [src = '', reltype_id, dst = ''] = name.split(' ')
    known.outs.delete(outKey(Number(reltype_id), src))
    for (const end of [src, dst]) known.around.delete(end)
  }
}

const causeOf = ({ at, command_id, operation_id, manager }: EdgeCause) => ({
  ...{ valid_from: at, command_id, operation_id, stated_by: manager },
})

/** Questions about all open edges of a resource. */
const questionsOf = (touching: (rid: string) => HeldEdge[], isKnown: (rid: string) => boolean) => ({
  countAll: (rid: string): number => touching(rid).length,
  to: (rid: string, reltype_ids: readonly number[], except: readonly string[]): EdgeRow[] =>
    touching(rid)
      .filter(({ src, dst, reltype_id }) => dst === rid && reltype_ids.includes(reltype_id) && !except.includes(src))
      .sort((a, b) => byNumber(a.src, b.src)),
  cascade: (rid: string, reltype_ids: readonly number[], limit: number): string[] => {
    const found = new Set([rid])
    for (const at of found) {
      if (found.size >= limit) break
      const unknown = [...found].filter((rid) => !isKnown(rid))
      if (unknown.length > 0) throw new Unheld({ around: unknown })
      for (const { src, dst, reltype_id } of touching(at))
        if (dst === at && reltype_ids.includes(reltype_id)) found.add(src)
    }
    return [...found].slice(0, limit)
  },
})
