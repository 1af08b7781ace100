import { sql } from 'drizzle-orm'
import type { HealthStatus } from '../../apps/shared/contracts/catalog/resources.ts'
import type { Queryable, Tx } from '../client.ts'
import { array, rowsOf } from './resources/rows.ts'

export type ObservationRow = {
  rid: string
  source: string
  check_key: string
  status: HealthStatus
  observed_at: string
  expires_at: string
  swept: boolean
  summary: string | null
  command_id: string
}

/** The latest word of each check of a resource. */
export const readChecks = (db: Queryable, rid: string): Promise<ObservationRow[]> =>
  rowsOf(
    db,
    sql`select rid, source, check_key, status, observed_at, expires_at, swept, summary, command_id
        from catalog.observation_latest where rid = ${rid} order by source, check_key`,
  )

/** The latest words of the checks of several resources. */
export const readChecksOf = (db: Queryable, rids: readonly string[]): Promise<ObservationRow[]> =>
  rids.length === 0
    ? Promise.resolve([])
    : rowsOf(
        db,
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
 * Keeps an observation in the history, and takes it as the latest word unless a newer one is there: newer = greater
 * (observed_at, command_id). False: superseded.
 */
export const saveObservation = async (tx: Tx, row: Observed): Promise<boolean> => {
  const evidence = JSON.stringify(row.evidence_refs)
  const saved = await rowsOf(
    tx,
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

/** A resource on the way of a roll-up, and whose health takes from it. */
export type FlowRow = {
  dependent: string
  reltype_id: number
  rid: string
  resource_id: string
  lifecycle_status: string
  health_status: HealthStatus
  health_reason: string
  health_expires_at: string | null
}

/**
 * The peers from which these resources take health: where out-edges of the first types lead, and where in-edges of the
 * second types come from; at most `limit`.
 */
export const listFlows = (
  db: Queryable,
  rids: readonly string[],
  { out, incoming }: { out: readonly number[]; incoming: readonly number[] },
  limit: number,
): Promise<FlowRow[]> =>
  rowsOf(
    db,
    sql`select e.dependent, e.reltype_id, e.peer as rid, n.resource_id, s.lifecycle_status, s.health_status,
          s.health_reason, s.health_expires_at
        from (select src as dependent, reltype_id, dst as peer from catalog.relationship
                where src = any(${array(rids, 'bigint')}) and reltype_id = any(${array(out, 'smallint')})
              union all
              select dst, reltype_id, src from catalog.relationship
                where dst = any(${array(rids, 'bigint')}) and reltype_id = any(${array(incoming, 'smallint')})) e
        join catalog.resource n on n.rid = e.peer
        join catalog.resource_state s on s.rid = e.peer
        limit ${limit}`,
  )

/** What own health now is worked out from, of these resources. */
export const healthRows = (
  db: Queryable,
  ids: readonly string[],
): Promise<Omit<FlowRow, 'dependent' | 'reltype_id'>[]> =>
  rowsOf(
    db,
    sql`select n.rid, n.resource_id, s.lifecycle_status, s.health_status, s.health_reason, s.health_expires_at
        from catalog.resource n join catalog.resource_state s on s.rid = n.rid
        where n.resource_id = any(${array(ids, 'text')})`,
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
