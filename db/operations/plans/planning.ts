import { and, asc, eq, inArray, ne, or, type SQL, sql } from 'drizzle-orm'
import { pick, pluck } from '../../../apps/shared/data/pick.ts'
import type { Queryable } from '../../client.ts'
import { eachText } from '../expressions.ts'
import type { Lease } from '../leases/rows.ts'
import {
  catalog_relationship_types,
  catalog_relationships,
  catalog_resources,
  catalog_types,
  durations,
  intents,
  lease_waits,
  leases,
  nodes,
  operation_control,
  operations,
  plans,
} from '../tables/index.ts'

/**
 * The container of a resource. Either end reports containment, so the open edge decides, not the child's last document;
 * a resource that has ended keeps its last place.
 */
const parentOf = (r: SQL): SQL => sql`coalesce(
  (select e.to_id from ${catalog_relationships} e
   where e.from_id = ${r}.resource_id and e.type_key = 'contained_in' and e.open
   order by e.relationship_id desc limit 1),
  case when not exists (select from ${catalog_relationships} e
                        where e.from_id = ${r}.resource_id and e.type_key = 'contained_in')
         or exists (select from ${catalog_types} y where y.type_key = ${r}.type_key
                    and y.document -> 'lifecycle' -> 'terminal' @> to_jsonb(${r}.lifecycle_status))
       then ${r}.parent_id end)`

/** The planner's data: the catalog projection, past durations, and what others hold. */
const resourceColumns = {
  ...pick(catalog_resources, 'resource_id', 'type_key', 'type_version', 'name'),
  parent_id: sql<string | null>`${parentOf(sql`${catalog_resources}`)}`,
  ...pick(catalog_resources, 'version', 'lifecycle_status', 'health_status', 'labels', 'annotations'),
  ...pick(catalog_resources, 'desired_state', 'observed_state'),
}

export const loadResources = (db: Queryable, resource_ids: readonly string[]) =>
  db
    .select(resourceColumns)
    .from(catalog_resources)
    .where(sql`${catalog_resources.resource_id} in ${eachText(resource_ids)}`)
    .orderBy(asc(catalog_resources.resource_id))

/** Resources of the type or a derived one, by name; returns at most `limit + 1`. */
export const loadResourcesOfType = (db: Queryable, type_key: string, limit: number) =>
  db
    .select(resourceColumns)
    .from(catalog_resources)
    .leftJoin(catalog_types, eq(catalog_types.type_key, catalog_resources.type_key))
    .where(
      or(
        eq(catalog_resources.type_key, type_key),
        sql`${catalog_types.document} -> 'ancestors' @> to_jsonb(${type_key}::text)`,
      ),
    )
    .orderBy(asc(catalog_resources.name), asc(catalog_resources.resource_id))
    .limit(limit)

/** Whether the projection knows the type, or one that derives from it. */
export const isKnownType = async (db: Queryable, type_key: string): Promise<boolean> =>
  (
    await db
      .select({ type_key: catalog_types.type_key })
      .from(catalog_types)
      .where(
        or(
          eq(catalog_types.type_key, type_key),
          sql`${catalog_types.document} -> 'ancestors' @> to_jsonb(${type_key}::text)`,
        ),
      )
      .limit(1)
  ).length > 0

/** All resources in the projection, by id; at most `limit`. */
export const loadAllResources = (db: Queryable, limit: number) =>
  db.select(resourceColumns).from(catalog_resources).orderBy(asc(catalog_resources.resource_id)).limit(limit)

/** The containers of each resource, nearest first. */
export const loadAncestors = async (
  db: Queryable,
  resource_ids: readonly string[],
): Promise<Map<string, { resource_id: string; type_key: string }[]>> => {
  const { rows } = await db.execute<{ origin: string; resource_id: string; type_key: string }>(sql`
    with recursive up as (
      select r.resource_id as origin, ${parentOf(sql`r`)} as next, 1 as depth
      from ${catalog_resources} r where r.resource_id in ${eachText(resource_ids)}
      union all
      select up.origin, ${parentOf(sql`p`)}, up.depth + 1
      from up join ${catalog_resources} p on p.resource_id = up.next where up.depth < 16)
    select up.origin, p.resource_id, p.type_key from up join ${catalog_resources} p on p.resource_id = up.next
    order by up.origin, up.depth`)
  const ancestors = new Map<string, { resource_id: string; type_key: string }[]>()
  for (const { origin, resource_id, type_key } of rows) {
    const list = ancestors.get(origin)
    if (list) list.push({ resource_id, type_key })
    else ancestors.set(origin, [{ resource_id, type_key }])
  }
  return ancestors
}

const MAX_RELATIONSHIPS = 50_000

/** Open edges within `depth` steps of the resources, along these types and in both directions. */
export const loadRelationships = async (
  db: Queryable,
  resource_ids: readonly string[],
  type_keys: readonly string[],
  depth: number,
): Promise<{ type_key: string; from_id: string; to_id: string }[]> => {
  const edges = new Map<string, { type_key: string; from_id: string; to_id: string }>()
  const seen = new Set(resource_ids)
  let front = [...resource_ids]
  for (let step = 0; step < depth && front.length > 0 && edges.size < MAX_RELATIONSHIPS; step++) {
    const near = sql`${eachText(front)}`
    const rows = await db
      .select({ ...pick(catalog_relationships, 'relationship_id', 'type_key', 'from_id', 'to_id') })
      .from(catalog_relationships)
      .where(
        and(
          catalog_relationships.open,
          inArray(catalog_relationships.type_key, [...type_keys]),
          or(sql`${catalog_relationships.from_id} in ${near}`, sql`${catalog_relationships.to_id} in ${near}`),
        ),
      )
      .orderBy(asc(catalog_relationships.relationship_id))
      .limit(MAX_RELATIONSHIPS)
    const next = new Set<string>()
    for (const { relationship_id, ...edge } of rows) {
      edges.set(relationship_id, edge)
      for (const id of [edge.from_id, edge.to_id]) if (!seen.has(id)) next.add(id)
    }
    for (const id of next) seen.add(id)
    front = [...next]
  }
  return [...edges].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, edge]) => edge)
}

export type HeldClaim = { from_id: string; to_id: string; expires_at: string | null }

/** Open claims of these resources, and when each expires. */
export const listClaims = (db: Queryable, type_key: string, from_ids: readonly string[]): Promise<HeldClaim[]> =>
  db
    .select({
      ...pick(catalog_relationships, 'from_id', 'to_id'),
      expires_at: sql<string | null>`${catalog_relationships.properties} ->> 'expires_at'`,
    })
    .from(catalog_relationships)
    .where(
      and(
        catalog_relationships.open,
        eq(catalog_relationships.type_key, type_key),
        sql`${catalog_relationships.from_id} in ${eachText(from_ids)}`,
      ),
    )

export const loadTypes = async (db: Queryable) => ({
  types: await db.select({ document: catalog_types.document }).from(catalog_types).orderBy(asc(catalog_types.type_key)),
  relationship_types: await db
    .select()
    .from(catalog_relationship_types)
    .orderBy(asc(catalog_relationship_types.type_key)),
})

/** p50 and p90 of the last 50 successes of each step. */
export const loadDurations = async (
  db: Queryable,
  steps: readonly string[],
): Promise<Map<string, { p50_s: number; p90_s: number }>> => {
  if (steps.length === 0) return new Map()
  const { rows } = await db.execute<{ step: string; p50: string; p90: string }>(sql`
    select s.step, percentile_cont(0.5) within group (order by d.ms) as p50, percentile_cont(0.9) within group (order by d.ms) as p90
    from ${eachText(steps)} as s(step)
    cross join lateral (select ms from ${durations} where ${durations.step} = s.step order by at desc limit 50) d
    group by s.step order by s.step`)
  return new Map(rows.map(({ step, p50, p90 }) => [step, { p50_s: tenths(p50), p90_s: tenths(p90) }]))
}
const tenths = (ms: string): number => Math.round(Number(ms) / 100) / 10

/** Current versions of these resources. */
export const loadVersions = async (db: Queryable, resource_ids: readonly string[]): Promise<Map<string, number>> => {
  const rows = await db
    .select({ resource_id: catalog_resources.resource_id, version: catalog_resources.version })
    .from(catalog_resources)
    .where(sql`${catalog_resources.resource_id} in ${eachText(resource_ids)}`)
  return new Map(rows.map(({ resource_id, version }) => [resource_id, version]))
}

/** Other plans that are ready for some of these resources; `seen` by `visible`, the condition on their intents. */
export const listRivalPlans = async (
  db: Queryable,
  intent_id: string,
  resource_ids: readonly string[],
  visible: SQL | undefined,
) => {
  if (resource_ids.length === 0) return []
  return db
    .select({ plan_id: plans.plan_id, title: intents.title, seen: sql<boolean>`${visible ?? true}` })
    .from(plans)
    .innerJoin(intents, eq(intents.intent_id, plans.intent_id))
    .where(
      and(
        eq(plans.status, 'ready'),
        ne(plans.intent_id, intent_id),
        sql`${plans.expires_at} > clock_timestamp()`,
        sql`${intents.resource_ids} && array${eachText(resource_ids)}`,
      ),
    )
    .orderBy(asc(plans.plan_id))
    .limit(20)
}

/** An operation that holds no leases yet and needs some that exclude these; `resource_id`: one of `count` such resources. */
export type Coming = { operation_id: string; title: string; resource_id: string; count: number; waits_for: string }

/**
 * Open operations that hold no leases but need some that exclude these: at a gate, in line, before their time. They
 * are no obstacle to an operation (`running`) that holds its own. Changes of parts of a whole are not found.
 */
export const listComing = async (db: Queryable, wanted: readonly Lease[], running?: string): Promise<Coming[]> => {
  if (wanted.length === 0) return []
  const own = sql`${running ?? null}::uuid`
  const modes = JSON.stringify(Object.fromEntries(wanted.map(({ resource_id, mode }) => [resource_id, mode])))
  // Looked up in an object: thousands of leases joined with thousands would be compared pair by pair.
  const { rows } = await db.execute<Coming>(sql`
    select o.operation_id, o.title, min(need.resource_id) as resource_id, count(distinct need.resource_id)::int as count,
      case when c.control = 'pause' then 'a person to resume it'
        when o.open_gates > 0 then 'an approval'
        when c.lease_state = 'waiting' or exists (select from ${lease_waits} l where l.operation_id = o.operation_id)
          then 'other operations'
        else 'its time' end as waits_for
    from ${operations} o
    join ${operation_control} c on c.operation_id = o.operation_id
    join ${plans} p on p.plan_id = o.plan_id
    cross join lateral jsonb_to_recordset(coalesce(p.document -> 'leases', '[]') || c.more_leases) as need(resource_id text, mode text)
    cross join (select ${modes}::jsonb as modes) w
    where o.ended_at is null and o.operation_id is distinct from ${own}
      and o.resource_ids && array${eachText(pluck(wanted, 'resource_id'))}
      and w.modes ? need.resource_id and 'exclusive' in (w.modes ->> need.resource_id, need.mode)
      and not exists (select from ${leases} l where l.operation_id = o.operation_id)
      and not exists (select from ${leases} l where l.operation_id = ${own})
    group by o.operation_id, c.operation_id order by o.operation_id limit 20`)
  return rows
}

/** What an intent asks for, of which type, whatever its targets; the parameters of a change say how, not what. */
const asked = (intent: SQL): SQL =>
  sql`jsonb_build_array((${intent}.request -> 'change') - 'parameters', ${intent}.request -> 'action', ${intent}.request -> 'runbook', ${intent}.targets_resolved #> '{0,type_key}')`

export type Failing = { operation_id: string; title: string; resource_id: string | null; name: string; error: string }

/**
 * Operations of the same change elsewhere that have failed nodes: open ones, and those that ended in the last day. A
 * person's cancel or refusal is no failure; a target on which the same change has succeeded since is no longer one.
 * `visible` is a condition on the columns of `a`.
 */
export const listFailingAlike = async (
  db: Queryable,
  intent_id: string,
  visible: SQL = sql`true`,
): Promise<Failing[]> => {
  const failing = sql`select operation_id, intent_id, title, kind, requester_id, resource_ids from ${operations} where failed > 0`
  const { rows } = await db.execute<Failing>(sql`
    -- Each half has its index; now() is one time for the statement, which an index can use.
    with failing as materialized (${failing} and ended_at is null union all ${failing} and ended_at > now() - interval '1 day'),
    own as materialized (select * from ${intents} where intent_id = ${intent_id} and kind <> 'graph'),
    alike as materialized (select o.* from own join failing o on o.kind = own.kind and o.intent_id <> own.intent_id
      join ${intents} other on other.intent_id = o.intent_id and ${asked(sql`other`)} = ${asked(sql`own`)}),
    -- Rights are sought upwards from each target, so each set of targets is judged once.
    sets as materialized (select distinct requester_id, resource_ids from alike),
    allowed as materialized (select a.* from sets a where ${visible}),
    seen as materialized (select * from alike join allowed using (requester_id, resource_ids)
      order by operation_id desc limit 200),
    broken as materialized (select f.operation_id, f.target_id, f.name, f.error, f.ended_at from ${nodes} f
      where f.operation_id in (select operation_id from seen)
      and (f.state in ('outcome_unknown', 'compensation_failed')
        or f.state = 'failed' and coalesce(f.error ->> 'class', '') not in ('cancelled', 'rejected'))),
    later as materialized (select l.started_at, l.intent_id, t.id from ${operations} l cross join unnest(l.resource_ids) as t(id)
      where l.ended_at > now() - interval '1 day' and l.failed = 0
      and l.engine_status in ('succeeded', 'succeeded_with_exceptions') and t.id in (select target_id from broken)),
    -- Compared last as well: a request may name thousands of targets.
    asks as materialized (select li.intent_id, ${asked(sql`li`)} as asked from ${intents} li
      where li.intent_id in (select intent_id from later)),
    mended as materialized (select l.started_at, l.id from later l join asks on asks.intent_id = l.intent_id
      join own on asks.asked = ${asked(sql`own`)})
    select distinct on (s.operation_id) s.operation_id, s.title, b.target_id as resource_id, b.name,
      coalesce(b.error ->> 'message', '') as error
    from seen s join broken b on b.operation_id = s.operation_id
    where not exists (select from mended m where m.id = b.target_id and m.started_at > b.ended_at)
      -- A barrier fails with its targets, and is mended with the first of them.
      and (b.target_id is not null or not exists (select from mended m where m.started_at > b.ended_at))
    order by s.operation_id desc, b.ended_at, b.target_id limit 3`)
  return rows
}
