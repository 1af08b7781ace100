import { type SQL, sql } from 'drizzle-orm'
import type { HealthStatus } from '../../apps/shared/contracts/catalog/resources.ts'
import type { Queryable, Tx } from '../client.ts'
import { heldBy, inDatabase } from './held/rows.ts'
import { array, rowsOf } from './resources/rows.ts'
import type { ObservationRow } from './rows.ts'

/** The latest word of each check of a resource. */
export const readChecks = async (db: Queryable, rid: string): Promise<ObservationRow[]> =>
  heldBy(db)?.checksOf(rid) ?? readChecksOf(db, [rid])

/** The latest words of the checks of several resources. */
export const readChecksOf = async (db: Queryable, rids: readonly string[]): Promise<ObservationRow[]> =>
  rids.length === 0
    ? []
    : rowsOf(
        await inDatabase(db),
        sql`select rid, source, check_key, status, observed_at, expires_at, swept, summary, command_id
            from catalog.observation_latest where rid = any(${array(rids, 'bigint')}) order by rid, source, check_key`,
      )

export type Observed = {
  rid: string
  source: string
  check_key: string
  status: HealthStatus
  observed_at: string
  expires_at: string
  summary: string | null
  attributes: Record<string, unknown>
  evidence_refs: readonly unknown[]
  command_id: string
  operation_id: string | null
}

/**
 * Keeps an observation in the history, and takes it as the latest word unless a newer one exists: newer = greater
 * (observed_at, command_id). False: superseded.
 */
export const saveObservation = async (tx: Tx, row: Observed): Promise<boolean> => {
  const evidence = JSON.stringify(row.evidence_refs)
  const saved = await rowsOf(
    await inDatabase(tx),
    sql`with kept as (
          insert into catalog.observation_history
            (rid, source, check_key, status, observed_at, expires_at, summary, evidence_refs, command_id, operation_id)
          values (${row.rid}, ${row.source}, ${row.check_key}, ${row.status}, ${row.observed_at}, ${row.expires_at},
            ${row.summary}, ${evidence}::jsonb, ${row.command_id}, ${row.operation_id}))
        insert into catalog.observation_latest as l
          (rid, source, check_key, status, observed_at, expires_at, summary, attributes, evidence_refs, command_id)
        values (${row.rid}, ${row.source}, ${row.check_key}, ${row.status}, ${row.observed_at}, ${row.expires_at},
          ${row.summary}, ${JSON.stringify(row.attributes)}::jsonb, ${evidence}::jsonb, ${row.command_id})
        on conflict (rid, source, check_key) do update set status = excluded.status, observed_at = excluded.observed_at,
          expires_at = excluded.expires_at, summary = excluded.summary, attributes = excluded.attributes,
          evidence_refs = excluded.evidence_refs, command_id = excluded.command_id, swept = false
          where (l.observed_at, l.command_id) < (excluded.observed_at, excluded.command_id)
        returning rid`,
  )
  return saved.length === 1
}

export type HistoryRow = Omit<ObservationRow, 'swept' | 'rid'> & {
  id: string
  evidence_refs: Record<string, unknown>[]
  operation_id: string | null
}

/** What was observed of a resource since a time, from a place in the given direction; the newest first. */
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

/** The latest word of each check that there was at a time. */
export const checksAt = (db: Queryable, rid: string, at: string): Promise<ObservationRow[]> =>
  rowsOf(
    db,
    sql`select distinct on (source, check_key) rid, source, check_key, status, observed_at, expires_at, true as swept,
          summary, command_id
        from catalog.observation_history where rid = ${rid} and observed_at <= ${at}::timestamptz
        order by source, check_key, observed_at desc, command_id desc`,
  )

/** What the own health of a resource now follows from. */
export type HealthRow = {
  rid: string
  resource_id: string
  lifecycle_status: string
  health_status: HealthStatus
  health_reason: string
  health_expires_at: string | null
}
/** `dependent` takes health from `peer`. */
export type FlowRow = { dependent: string; reltype_id: number; peer: string }
/** Types along whose edges health flows: from where out-edges lead, and from where in-edges come. */
export type FlowTypes = { out: readonly number[]; incoming: readonly number[] }

/** The peers from which `dependent` takes health, with the type of the edge. */
const peersOf = (dependent: SQL, { out, incoming }: FlowTypes): SQL =>
  sql`(select dst as peer, reltype_id from catalog.relationship
         where src = ${dependent} and reltype_id = any(${array(out, 'smallint')})
       union all
       select src, reltype_id from catalog.relationship
         where dst = ${dependent} and reltype_id = any(${array(incoming, 'smallint')}))`

/** These resources and all from which they take health, however far, in one statement; the nearest first, at most `limit`. */
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

/** From whom these resources take health; at most `limit`. */
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

/** Resources whose checks ran out since they were last looked at. */
export const expiredResources = async (db: Queryable, now: string, limit: number): Promise<string[]> => {
  const rows = await rowsOf<{ rid: string }>(
    db,
    sql`select distinct rid from (select rid from catalog.observation_latest
          where not swept and expires_at <= ${now} order by expires_at limit ${limit}) x order by rid`,
  )
  return rows.map(({ rid }) => rid)
}

export const markSwept = (tx: Tx, rids: readonly string[], now: string) =>
  tx.execute(
    sql`update catalog.observation_latest set swept = true
        where rid = any(${array(rids, 'bigint')}) and not swept and expires_at <= ${now}`,
  )
