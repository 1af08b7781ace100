import { type SQL, sql } from 'drizzle-orm'
import type { Queryable, Tx } from '../client.ts'
import { heldBy, heldOf } from './held/rows.ts'
import { array, rowsOf } from './resources/rows.ts'
import type { ObservationRow, ResourceRow } from './rows.ts'
import { observation_history } from './tables.ts'

/** The latest observation of each check of a resource. */
export const readChecks = (db: Queryable, rid: string): Promise<ObservationRow[]> => readChecksOf(db, [rid])

/** The latest observations of the checks of several resources. */
export const readChecksOf = async (db: Queryable, rids: readonly string[]): Promise<ObservationRow[]> => {
  const held = heldBy(db)
  if (held || rids.length === 0) return rids.flatMap((rid) => held?.checksOf(rid) ?? [])
  return rowsOf(
    db,
    sql`select rid, source, check_key, status, observed_at, expires_at, swept, summary, command_id
        from catalog.observation_latest where rid = any(${array(rids, 'bigint')}) order by rid, source, check_key`,
  )
}

export type Observed = Omit<ObservationRow, 'swept'> & {
  attributes: Record<string, unknown>
  metrics: Record<string, number> | null
  evidence_refs: readonly unknown[]
  operation_id: string | null
}

/** Microseconds, the database's own precision. */
const microsOf = (time: string): number =>
  Date.parse(time.replace(/\.\d+/, '')) * 1000 + Math.round(Number(/\.\d+/.exec(time)?.[0] ?? 0) * 1e6)

/**
 * Stores an observation in the history, and as the latest one unless a newer one exists: newer = greater (observed_at,
 * command_id). Returns the resulting checks; `undefined`: superseded.
 */
export const saveObservation = (tx: Tx, row: Observed): readonly ObservationRow[] | undefined => {
  const held = heldOf(tx)
  const { attributes: _, ...kept } = row
  held.keeper.insert(observation_history, [kept])
  const known = held
    .checksOf(row.rid)
    .find(({ source, check_key }) => source === row.source && check_key === row.check_key)
  const ahead = known ? microsOf(row.observed_at) - microsOf(known.observed_at) : 1
  if (known && (ahead < 0 || (ahead === 0 && row.command_id <= known.command_id))) return undefined
  const { operation_id, evidence_refs, attributes, metrics: _m, ...word } = row
  const now = { ...word, swept: false }
  held.observe(now, { ...now, attributes, evidence_refs })
  return held.checksOf(row.rid)
}

export type HistoryRow = Omit<ObservationRow, 'swept' | 'rid'> & {
  id: string
  evidence_refs: Record<string, unknown>[]
  operation_id: string | null
}

/** Observations of a resource since a given time, from a position in the given direction, newest first. */
export const listObservations = (
  db: Queryable,
  rid: string,
  {
    since,
    key,
    back,
    limit,
  }: { since: string; key: readonly (string | null)[] | undefined; back: boolean; limit: number },
): Promise<HistoryRow[]> => {
  const beyond = key
    ? sql`(observed_at, id) ${back ? sql`>` : sql`<`} (${key[0]}::timestamptz, ${key[1]}::bigint)`
    : sql`true`
  const way = back ? sql`asc` : sql`desc`
  return rowsOf(
    db,
    sql`select id, source, check_key, status, observed_at, expires_at, summary, evidence_refs, command_id, operation_id
        from catalog.observation_history
        where rid = ${rid} and observed_at >= ${since}::timestamptz and ${beyond}
        order by observed_at ${way}, id ${way} limit ${limit}`,
  )
}

/** The latest observation of each check that existed at a given time. */
export const checksAt = (db: Queryable, rid: string, at: string): Promise<ObservationRow[]> =>
  rowsOf(
    db,
    sql`select distinct on (source, check_key) rid, source, check_key, status, observed_at, expires_at, true as swept,
          summary, command_id
        from catalog.observation_history where rid = ${rid} and observed_at <= ${at}::timestamptz
        order by source, check_key, observed_at desc, command_id desc`,
  )

export type MetricRow = { part: string; key: string; samples: number; median: number }
export type MetricSpan = { part: string; rids: readonly string[]; since: Date; until: Date }

/** The medians of every metric over the observations of some resources, since excluded, for each span. */
export const listMedians = (db: Queryable, spans: readonly MetricSpan[]): Promise<MetricRow[]> => {
  const rows = spans.map(
    ({ part, rids, since, until }) =>
      sql`(${part}, ${array(rids, 'bigint')}, ${since.toISOString()}::timestamptz, ${until.toISOString()}::timestamptz)`,
  )
  return rowsOf(
    db,
    sql`select s.part, m.key, count(*)::int as samples, percentile_cont(0.5) within group (order by m.value::float8) as median
        from (values ${sql.join(rows, sql`, `)}) s(part, rids, since, until)
        cross join lateral unnest(s.rids) r(rid)
        join catalog.observation_history h on h.rid = r.rid and h.observed_at > s.since and h.observed_at <= s.until
        cross join lateral jsonb_each(h.metrics) m(key, value)
        group by s.part, m.key`,
  )
}

/** The data that determine a resource's own current health. */
export type HealthRow = Pick<
  ResourceRow,
  'rid' | 'resource_id' | 'lifecycle_status' | 'health_status' | 'health_reason' | 'health_expires_at'
>
/** `dependent` takes health from `peer`. */
export type FlowRow = { dependent: string; reltype_id: number; peer: string }
/** Edge types along which health flows: from the targets of out-edges, and from the sources of in-edges. */
export type FlowTypes = { out: readonly number[]; incoming: readonly number[] }

/** The peers from which `dependent` takes health, with the type of the edge. */
const peersOf = (dependent: SQL, { out, incoming }: FlowTypes): SQL =>
  sql`(select dst as peer, reltype_id from catalog.relationship
         where src = ${dependent} and reltype_id = any(${array(out, 'smallint')})
       union all
       select src, reltype_id from catalog.relationship
         where dst = ${dependent} and reltype_id = any(${array(incoming, 'smallint')}))`

/** These resources and all their health sources, at any distance, in one statement; nearest first, at most `limit`. */
export const listFlowing = (
  db: Queryable,
  rids: readonly string[],
  types: FlowTypes,
  limit: number,
): Promise<HealthRow[]> =>
  rowsOf(
    db,
    sql`with recursive way(rid) as (
          select unnest(${array(rids, 'bigint')})
          union
          select e.peer from way cross join lateral ${peersOf(sql`way.rid`, types)} e)
        select w.rid, n.resource_id, s.lifecycle_status, s.health_status, s.health_reason, s.health_expires_at
        from (select rid from way limit ${limit}) w
        join catalog.resource n on n.rid = w.rid join catalog.resource_state s on s.rid = w.rid`,
  )

/** The resources from which these take health; at most `limit`. */
export const listFlows = (
  db: Queryable,
  rids: readonly string[],
  types: FlowTypes,
  limit: number,
): Promise<FlowRow[]> =>
  rowsOf(
    db,
    sql`select f.rid as dependent, e.reltype_id, e.peer from unnest(${array(rids, 'bigint')}) as f(rid)
        cross join lateral ${peersOf(sql`f.rid`, types)} e limit ${limit}`,
  )

/** Resources with checks that expired since the last sweep, except these. */
export const expiredResources = (
  db: Queryable,
  now: string,
  limit: number,
  without: readonly string[],
): Promise<{ rid: string; resource_id: string }[]> =>
  rowsOf(
    db,
    sql`select distinct rid, r.resource_id from (select rid from catalog.observation_latest
          where not swept and expires_at <= ${now} and rid <> all(${array(without, 'bigint')}) order by expires_at limit ${limit}) x
        join catalog.resource r using (rid) order by rid`,
  )

export const markSwept = (tx: Tx, rids: readonly string[], now: string) =>
  tx.execute(
    sql`update catalog.observation_latest set swept = true
        where rid = any(${array(rids, 'bigint')}) and not swept and expires_at <= ${now}`,
  )
