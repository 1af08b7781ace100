import { listFlowing, listFlows, readChecksOf } from '../../../db/catalog/health.ts'
import { visibleRids } from '../../../db/catalog/resources/lists.ts'
import { getRids } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import { type Queryable, SNAPSHOT } from '../../../db/client.ts'
import { pluck } from '../../shared/data/pick.ts'
import type { CatalogDeps } from '../deps.ts'
import type { Types } from '../packs/registry.ts'
import { healthOf } from '../read/health.ts'
import type { Reader } from '../read/lists.ts'
import { type CausePath, causesOf, type HealthGraph, rollUp } from '../rules/roll-up.ts'

/** How many resources one roll-up may visit. */
const MAX_VISITED = 100_000
/** How many flows between them it may follow. */
const MAX_FLOWS = 500_000
const MAX_CAUSES = 5

type Loaded = HealthGraph & { names: Map<string, string>; truncated: boolean }

/**
 * The health of a resource and everything it takes health from, with the paths along which it is not healthy
 * (catalog.md 6). Resources that the reader may not see count, but appear only as hidden.
 */
export const readRollUp = async (deps: CatalogDeps, row: ResourceRow, reader: Reader) => {
  const now = deps.clock.now()
  return deps.db.transaction(async (tx) => {
    const graph = await load(tx, deps.registry.types, [row.rid], now)
    const rolled = rollUp(graph)
    const causes = causesOf(row.rid, graph, rolled, (rid) => graph.names.get(rid) ?? rid, MAX_CAUSES)
    return {
      status: rolled.get(row.rid) ?? row.health_status,
      causes: await describe(tx, deps, causes, graph.names, reader, now),
      visited: graph.own.size,
      truncated: graph.truncated,
    }
  }, SNAPSHOT)
}

/** The roll-ups of many resources, by id, in one walk over everything they take health from. */
export const readRollUps = async (deps: CatalogDeps, ids: readonly string[]) => {
  const now = deps.clock.now()
  return deps.db.transaction(async (tx) => {
    const rids = await getRids(tx, ids)
    const graph = await load(tx, deps.registry.types, [...rids.values()], now)
    const rolled = rollUp(graph)
    const statuses = new Map([...rids].map(([resource_id, rid]) => [resource_id, rolled.get(rid) ?? 'unknown']))
    return { statuses, visited: graph.own.size, truncated: graph.truncated }
  }, SNAPSHOT)
}

/** Loads all health sources of these in two statements: a round trip per level would be thousands on a long chain. */
const load = async (db: Queryable, types: Types, roots: readonly string[], now: Date): Promise<Loaded> => {
  const ids = (flows: string) => types.relationships.filter(({ health }) => health.flows === flows).map(({ id }) => id)
  const along = { out: ids('to_from'), incoming: ids('from_to') }
  const found = await listFlowing(db, roots, along, MAX_VISITED + 1)
  const rows = found.slice(0, MAX_VISITED)
  const rids = rows.map(({ rid }) => rid)
  const flows = await listFlows(db, rids, along, MAX_FLOWS + 1)
  const health = await healthOf(db, rows, now)
  return {
    own: new Map(rids.map((rid) => [rid, health.get(rid)?.status ?? 'unknown'])),
    flows: flows.slice(0, MAX_FLOWS).map(({ dependent, peer, reltype_id }) => ({ dependent, peer, kind: reltype_id })),
    rules: new Map(types.relationships.map(({ id, health }) => [id, health])),
    names: new Map(rows.map(({ rid, resource_id }) => [rid, resource_id])),
    truncated: found.length > MAX_VISITED || flows.length > MAX_FLOWS,
  }
}

const describe = async (
  db: Queryable,
  deps: CatalogDeps,
  causes: readonly CausePath[],
  names: ReadonlyMap<string, string>,
  reader: Reader,
  now: Date,
) => {
  const rids = [...new Set(causes.flatMap(({ path }) => path))]
  const seen = await visibleRids(db, rids, reader.access, deps.registry.types.topologyIds)
  const checks = Map.groupBy(await readChecksOf(db, pluck(causes, 'rid')), ({ rid }) => rid)
  return causes.map(({ rid, status, path }) => {
    const hidden = !seen.has(rid)
    const check = hidden
      ? undefined
      : checks.get(rid)?.find((one) => one.status === status && new Date(one.expires_at) > now)
    return {
      path: path.map((step) => (seen.has(step) ? (names.get(step) ?? null) : null)),
      resource_id: hidden ? null : (names.get(rid) ?? null),
      status,
      check: !check ? null : { source: check.source, check_key: check.check_key, status: check.status },
      age_s: check ? Math.max(0, Math.floor((now.getTime() - new Date(check.observed_at).getTime()) / 1000)) : null,
      hidden,
    }
  })
}
