import type { EdgeKey } from '../rows.ts'
import { type Journal, Unheld } from './journal.ts'

export type End = 'src' | 'dst'
export const edgeKey = ({ src, reltype_id, dst }: EdgeKey) => `${src} ${reltype_id} ${dst}`
export const countKey = (end: End, reltype_id: number, rid: string) => `${end} ${reltype_id} ${rid}`
export const outKey = (reltype_id: number, rid: string) => `${reltype_id} ${rid}`

/** The ends and counts of edges, for questions about a resource that need no single edges. */
export const createAround = (journal: Journal, fresh: ReadonlySet<string>) => {
  /** The keys of all open edges of these resources. */
  const around = new Map<string, Set<string>>()
  const counts = new Map<string, number>()
  /** Counts that are not exact: they suffice to tell that the limit is far. */
  const rough = new Set<string>()
  /** The targets of all edges of one type that leave a resource. */
  const outs = new Map<string, Set<string>>()

  const keysOf = (rid: string): ReadonlySet<string> => {
    const keys = around.get(rid)
    if (!keys) throw new Unheld({ around: [rid] })
    return keys
  }
  const countAt = (reltype_id: number, rid: string, end: End, exact: boolean): number => {
    const key = countKey(end, reltype_id, rid)
    if (around.has(rid)) return counts.get(key) ?? 0
    const known = exact && rough.has(key) ? undefined : counts.get(key)
    if (known === undefined) throw new Unheld({ counts: [{ rid, reltype_id, end, ...(exact && { exact }) }] })
    return known
  }
  const tally = (end: End, { reltype_id, ...edge }: EdgeKey, by: 1 | -1): void => {
    const key = countKey(end, reltype_id, edge[end])
    if (counts.has(key) || around.has(edge[end])) journal.put(counts, key, (counts.get(key) ?? 0) + by)
  }
  const leaving = (reltype_id: number, rid: string): Iterable<string> => {
    const known = outs.get(outKey(reltype_id, rid))
    if (known) return known
    if (!around.has(rid)) throw new Unheld({ reach: [{ rid, reltype_id }] })
    const from = `${rid} ${reltype_id} `
    return [...keysOf(rid)].flatMap((key) => (key.startsWith(from) ? [key.slice(from.length)] : []))
  }

  return {
    around,
    counts,
    rough,
    outs,
    keysOf,
    leaving,
    /** A new resource has no edges, so all of them are known. */
    begin: (rid: string): void => journal.put(around, rid, new Set()),
    /** Records that an edge was opened or closed. */
    move: (edge: EdgeKey, by: 1 | -1): void => {
      tally('src', edge, by)
      tally('dst', edge, by)
      const change = by === 1 ? journal.add : journal.drop
      for (const rid of [edge.src, edge.dst]) {
        const known = around.get(rid)
        if (known) change(known, edgeKey(edge))
      }
      const known = outs.get(outKey(edge.reltype_id, edge.src))
      if (known) change(known, edge.dst)
    },
    count: (reltype_id: number, rid: string, end: End | 'either'): number =>
      end === 'either'
        ? countAt(reltype_id, rid, 'src', true) + countAt(reltype_id, rid, 'dst', true)
        : countAt(reltype_id, rid, end, true),
    crowding: ({ src, reltype_id, dst }: EdgeKey, { many, most }: { many: number; most: number }) => {
      const highest = Math.max(countAt(reltype_id, src, 'src', false), countAt(reltype_id, dst, 'dst', false))
      return highest >= most ? ('most' as const) : highest >= many ? ('many' as const) : ('no' as const)
    },
    reaches: (reltype_id: number, from: string, to: string): boolean => {
      if (from === to) return true
      // A new resource with no such incoming edge cannot be reached.
      if (fresh.has(to) && countAt(reltype_id, to, 'dst', true) === 0) return false
      const seen = new Set([from])
      for (const at of seen) for (const next of leaving(reltype_id, at)) seen.add(next)
      return seen.has(to)
    },
  }
}
