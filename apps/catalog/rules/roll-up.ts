import type { HealthStatus } from '../../shared/contracts/catalog/resources.ts'

/** How health flows along one kind of edge (a relationship type's `health`): by the worst peer, or by a quorum. */
export type FlowRule = { mode: 'worst' | 'quorum'; k: number; cap: 'degraded' | 'unhealthy' | null }
/** `dependent` takes health from `peer`, along edges of one type (`kind`). */
export type Flow = { dependent: string; peer: string; kind: number }
/** Reachable resources with their own health, and the flows between them. */
export type HealthGraph = {
  own: ReadonlyMap<string, HealthStatus>
  flows: readonly Flow[]
  rules: ReadonlyMap<number, FlowRule>
}

const ORDER = ['healthy', 'unknown', 'degraded', 'unhealthy'] as const
const badness = (status: HealthStatus): number => ORDER.indexOf(status as (typeof ORDER)[number])

/**
 * The roll-up of every resource (catalog.md 6): the least fixpoint from own health upwards. Rules only ever raise
 * badness, so cycles terminate. Maintenance stays maintenance and passes on no health.
 */
export const rollUp = ({ own, flows, rules }: HealthGraph): Map<string, HealthStatus> => {
  const value = new Map([...own].map(([rid, status]) => [rid, badness(status)]))
  const groups = Map.groupBy(flows, ({ dependent }) => dependent)
  const dependents = Map.groupBy(flows, ({ peer }) => peer)
  const open = new Set(groups.keys())
  for (const rid of open) {
    open.delete(rid)
    const before = value.get(rid) ?? 0
    // Maintenance ranks below healthy.
    if (before < 0) continue
    const kinds = Map.groupBy(groups.get(rid) ?? [], ({ kind }) => kind)
    const given = [...kinds].map(([kind, edges]) => {
      const rule = rules.get(kind)
      const counts = noPeers()
      for (const { peer } of edges) {
        const bad = value.get(peer) ?? 0
        if (bad >= 0) counts[bad] = (counts[bad] ?? 0) + 1
      }
      return rule ? contribution(rule, counts) : 0
    })
    const after = Math.max(before, ...given)
    if (after === before) continue
    value.set(rid, after)
    for (const { dependent } of dependents.get(rid) ?? []) open.add(dependent)
  }
  return new Map([...value].map(([rid, bad]) => [rid, ORDER[bad] ?? 'maintenance']))
}

/** How many peers have each badness. */
export type PeerCounts = number[]
export const noPeers = (): PeerCounts => ORDER.map(() => 0)

/** What a dependent takes from its peers by one rule, as badness: 0 is healthy, 3 unhealthy. */
export const contribution = ({ mode, k, cap }: FlowRule, counts: PeerCounts): number => {
  const [healthy = 0] = counts
  const peers = counts.reduce((sum, count) => sum + count, 0)
  if (healthy === peers) return 0
  const most = cap === null ? ORDER.length - 1 : badness(cap)
  if (mode === 'worst')
    return Math.min(
      most,
      counts.findLastIndex((count) => count > 0),
    )
  const wanted = k < 1 ? k * peers : k
  return Math.min(most, badness(healthy >= wanted ? 'degraded' : 'unhealthy'))
}

export type CausePath = { rid: string; status: HealthStatus; path: string[] }

/** Causes of a roll-up: unhealthy resources, each with its shortest path to the root, by severity, distance, name. */
export const causesOf = (
  root: string,
  { own, flows }: HealthGraph,
  rolled: ReadonlyMap<string, HealthStatus>,
  nameOf: (rid: string) => string,
  limit: number,
): CausePath[] => {
  const matters = (rid: string) => badness(rolled.get(rid) ?? 'healthy') > 0
  if (!matters(root)) return []
  const groups = Map.groupBy(flows, ({ dependent }) => dependent)
  const from = new Map<string, string | null>([[root, null]])
  const depth = new Map([[root, 0]])
  for (const rid of from.keys()) {
    for (const { peer } of groups.get(rid) ?? []) {
      if (from.has(peer) || !matters(peer)) continue
      from.set(peer, rid)
      depth.set(peer, (depth.get(rid) ?? 0) + 1)
    }
  }
  const bad = (rid: string) => badness(own.get(rid) ?? 'healthy')
  return [...from.keys()]
    .filter((rid) => bad(rid) > 0)
    .sort((a, b) => bad(b) - bad(a) || (depth.get(a) ?? 0) - (depth.get(b) ?? 0) || (nameOf(a) < nameOf(b) ? -1 : 1))
    .slice(0, limit)
    .map((rid) => ({ rid, status: own.get(rid) as HealthStatus, path: wayTo(rid, from) }))
}

const wayTo = (rid: string, from: ReadonlyMap<string, string | null>): string[] => {
  const path: string[] = []
  for (let at: string | null | undefined = rid; at; at = from.get(at)) path.unshift(at)
  return path
}
