import { healthRows, listFlows, readChecksOf } from '../../../db/catalog/health.ts'
import { getResourcesByRid, type ResourceRow } from '../../../db/catalog/resources/rows.ts'
import type { Queryable } from '../../../db/client.ts'
import type { HealthStatus } from '../../shared/contracts/catalog/resources.ts'
import { healthOf } from '../capabilities/offers.ts'
import type { CatalogDeps } from '../deps.ts'
import type { Types } from '../packs/registry.ts'
import { visibleOf } from '../read/access.ts'
import type { Reader } from '../read/lists.ts'
import { type CausePath, causesOf, type Flow, type HealthGraph, rollUp } from '../rules/roll-up.ts'

/** At most so many resources are looked at for one roll-up. */
const MAX_VISITED = 100_000
const MAX_CAUSES = 5

type Loaded = HealthGraph & { names: Map<string, string>; truncated: boolean }

/**
 * The health of a resource with all that it takes health from, and the ways along which it is not well (catalog.md 6).
 * What the reader may not see counts, but is told as hidden only.
 */
export const readRollUp = async (deps: CatalogDeps, row: ResourceRow, reader: Reader) => {
  const now = deps.clock.now()
  return deps.db.transaction(
    async (tx) => {
      const graph = await load(tx, deps.registry.types, [row], now)
      const rolled = rollUp(graph)
      const causes = causesOf(row.rid, graph, rolled, (rid) => graph.names.get(rid) ?? rid, MAX_CAUSES)
      return {
        status: rolled.get(row.rid) ?? row.health_status,
        causes: await describe(tx, deps, causes, graph.names, reader, now),
        visited: graph.own.size,
        truncated: graph.truncated,
      }
    },
    { isolationLevel: 'repeatable read', accessMode: 'read only' },
  )
}

/** The roll-ups of many resources at once, by id, in one walk over what all of them take health from. */
export const readRollUps = async (deps: CatalogDeps, ids: readonly string[]) => {
  const now = deps.clock.now()
  return deps.db.transaction(
    async (tx) => {
      const rows = await healthRows(tx, ids)
      const graph = await load(tx, deps.registry.types, rows, now)
      const rolled = rollUp(graph)
      const statuses = new Map(rows.map(({ rid, resource_id }) => [resource_id, rolled.get(rid) ?? 'unknown']))
      return { statuses, visited: graph.own.size, truncated: graph.truncated }
    },
    { isolationLevel: 'repeatable read', accessMode: 'read only' },
  )
}

type Root = Awaited<ReturnType<typeof healthRows>>[number]

const load = async (db: Queryable, types: Types, roots: readonly Root[], now: Date): Promise<Loaded> => {
  const ids = (flows: string) => types.relationships.filter(({ health }) => health.flows === flows).map(({ id }) => id)
  const along = { out: ids('to_from'), incoming: ids('from_to') }
  const own = new Map<string, HealthStatus>()
  const names = new Map(roots.map(({ rid, resource_id }) => [rid, resource_id]))
  const flows: Flow[] = []
  const learn = async (rows: Parameters<typeof healthOf>[1]) => {
    for (const [rid, { status }] of await healthOf(db, rows, now)) own.set(rid, status)
  }
  await learn(roots)
  let truncated = false
  for (let level = roots.map(({ rid }) => rid); level.length > 0; ) {
    const room = MAX_VISITED - own.size
    const rows = await listFlows(db, level, along, room + 1)
    truncated ||= rows.length > room
    const fresh = rows.slice(0, room).filter(({ rid }) => !own.has(rid))
    for (const { dependent, rid, reltype_id } of rows.slice(0, room))
      flows.push({ dependent, peer: rid, kind: reltype_id })
    for (const { rid, resource_id } of fresh) names.set(rid, resource_id)
    await learn(fresh)
    level = truncated ? [] : [...new Set(fresh.map(({ rid }) => rid))]
  }
  const rules = new Map(types.relationships.map(({ id, health }) => [id, health]))
  return { own, flows, rules, names, truncated }
}

const describe = async (
  db: Queryable,
  deps: CatalogDeps,
  causes: readonly CausePath[],
  names: ReadonlyMap<string, string>,
  reader: Reader,
  now: Date,
) => {
  const rows = await getResourcesByRid(db, [...new Set(causes.flatMap(({ path }) => path))])
  const seen = await visibleOf(db, deps.registry.types, reader.access, rows)
  const checks = Map.groupBy(
    await readChecksOf(
      db,
      causes.map(({ rid }) => rid),
    ),
    ({ rid }) => rid,
  )
  return causes.map(({ rid, status, path }) => {
    const hidden = !seen.has(rid)
    const check = checks.get(rid)?.find((one) => one.status === status && new Date(one.expires_at) > now)
    return {
      path: path.map((step) => (seen.has(step) ? (names.get(step) ?? null) : null)),
      resource_id: hidden ? null : (names.get(rid) ?? null),
      status,
      check: hidden || !check ? null : { source: check.source, check_key: check.check_key, status: check.status },
      age_s: check ? Math.max(0, Math.floor((now.getTime() - new Date(check.observed_at).getTime()) / 1000)) : null,
      hidden,
    }
  })
}
