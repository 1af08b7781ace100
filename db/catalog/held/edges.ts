import type { ClosedEdge, EdgeCause, EdgeKey, EdgeRow } from '../rows.ts'
import { type Journal, Unheld } from './journal.ts'

/** The open edges of the rows that a transaction holds (held/rows.ts). */
export type HeldEdge = EdgeRow & { command_id: string | null; operation_id: string | null }
type End = 'src' | 'dst'

export const edgeKey = ({ src, reltype_id, dst }: EdgeKey) => `${src} ${reltype_id} ${dst}`
export const countKey = (end: End, reltype_id: number, rid: string) => `${end} ${reltype_id} ${rid}`
const outKey = (reltype_id: number, rid: string) => `${reltype_id} ${rid}`
const byNumber = (a: string, b: string) => (BigInt(a) < BigInt(b) ? -1 : 1)

export type HeldEdges = ReturnType<ReturnType<typeof createEdges>>

export const createEdges =
  () =>
  ({ journal, fresh }: { journal: Journal; fresh: ReadonlySet<string> }) => {
    /** undefined: there is no such edge. */
    const open = new Map<string, HeldEdge | undefined>()
    /** All open edges of these resources. */
    const around = new Map<string, Set<string>>()
    const counts = new Map<string, number>()
    /** Where all edges of one type lead that leave a resource. */
    const outs = new Map<string, Set<string>>()
    const ids = new Map<string, string>()
    const rel_nos: string[] = []
    const history: string[] = []
    const added = new Set<string>()
    const revised = new Set<string>()
    const gone = new Map<string, EdgeKey>()

    const touching = (rid: string): HeldEdge[] => {
      const keys = around.get(rid)
      if (!keys) throw new Unheld()
      return [...keys].flatMap((key) => open.get(key) ?? [])
    }
    const count = (reltype_id: number, rid: string, end: End): number => {
      const known = counts.get(countKey(end, reltype_id, rid)) ?? (around.has(rid) ? 0 : undefined)
      if (known === undefined) throw new Unheld()
      return known
    }
    const tally = (end: End, { reltype_id, ...edge }: EdgeKey, by: 1 | -1): void => {
      const rid = edge[end]
      const key = countKey(end, reltype_id, rid)
      if (counts.has(key) || around.has(rid)) journal.put(counts, key, (counts.get(key) ?? 0) + by)
    }
    const move = (edge: EdgeKey, by: 1 | -1): void => {
      tally('src', edge, by)
      tally('dst', edge, by)
      const change = by === 1 ? journal.add : journal.drop
      for (const rid of [edge.src, edge.dst]) {
        const known = around.get(rid)
        if (known) change(known, edgeKey(edge))
      }
      const known = outs.get(outKey(edge.reltype_id, edge.src))
      if (known) change(known, edge.dst)
    }
    const get = (key: EdgeKey): HeldEdge | undefined => {
      const name = edgeKey(key)
      if (!open.has(name) && !around.has(key.src) && !around.has(key.dst)) throw new Unheld()
      return open.get(name)
    }
    const toHistory = (edge: HeldEdge, valid_to: string): void =>
      journal.push(history, JSON.stringify({ ...edge, valid_to }))

    const close = (edge: HeldEdge, valid_to: string): EdgeRow => {
      const name = edgeKey(edge)
      toHistory(edge, valid_to)
      journal.put(open, name, undefined)
      move(edge, -1)
      if (added.has(name)) journal.drop(added, name)
      else {
        journal.drop(revised, name)
        journal.put(gone, name, { src: edge.src, reltype_id: edge.reltype_id, dst: edge.dst })
      }
      return { ...edge, rev: edge.rev + 1 }
    }

    const leaving = (reltype_id: number, rid: string): Iterable<string> => {
      const known = outs.get(outKey(reltype_id, rid))
      if (known) return known
      return touching(rid).flatMap((edge) => (edge.src === rid && edge.reltype_id === reltype_id ? [edge.dst] : []))
    }

    return {
      loaded: { open, around, counts, outs, ids, rel_nos },
      pending: { open, history, added, revised, gone },
      /** A new resource: all its edges are known, for there are none. */
      begin: (rid: string): void => journal.put(around, rid, new Set()),
      outKey,
      get,
      outOf: (src: string, reltype_id: number): EdgeRow | undefined =>
        touching(src).find((edge) => edge.src === src && edge.reltype_id === reltype_id),
      add: (
        key: EdgeKey,
        properties: Record<string, unknown>,
        { at, command_id, operation_id }: EdgeCause,
      ): EdgeRow => {
        const rel_no = rel_nos.pop()
        if (rel_no === undefined) throw new Unheld()
        const edge = { ...key, rel_no, rev: 1, properties, valid_from: at, command_id, operation_id }
        journal.put(open, edgeKey(key), edge)
        journal.add(added, edgeKey(key))
        move(key, 1)
        return edge
      },
      revise: (key: EdgeKey, properties: Record<string, unknown>, cause: EdgeCause): EdgeRow => {
        const before = get(key) as HeldEdge
        const { at: valid_from, command_id, operation_id } = cause
        const edge = { ...before, rev: before.rev + 1, properties, valid_from, command_id, operation_id }
        toHistory(before, cause.at)
        journal.put(open, edgeKey(key), edge)
        if (!added.has(edgeKey(key))) journal.add(revised, edgeKey(key))
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
      count: (reltype_id: number, rid: string, end: End | 'either'): number =>
        end === 'either' ? count(reltype_id, rid, 'src') + count(reltype_id, rid, 'dst') : count(reltype_id, rid, end),
      countAll: (rid: string): number => touching(rid).length,
      crowding: ({ src, reltype_id, dst }: EdgeKey, { many, most }: { many: number; most: number }) => {
        const highest = Math.max(count(reltype_id, src, 'src'), count(reltype_id, dst, 'dst'))
        return highest >= most ? ('most' as const) : highest >= many ? ('many' as const) : ('no' as const)
      },
      to: (rid: string, reltype_ids: readonly number[], except: readonly string[]): EdgeRow[] =>
        touching(rid)
          .filter(
            ({ src, dst, reltype_id }) => dst === rid && reltype_ids.includes(reltype_id) && !except.includes(src),
          )
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
      reaches: (reltype_id: number, from: string, to: string): boolean => {
        if (from === to) return true
        // A new resource to which no such edge leads cannot be reached.
        if (fresh.has(to) && count(reltype_id, to, 'dst') === 0) return false
        const seen = new Set([from])
        for (const at of seen) for (const next of leaving(reltype_id, at)) seen.add(next)
        return seen.has(to)
      },
    }
  }
