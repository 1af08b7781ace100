import { type SQL, sql } from 'drizzle-orm'
import { pluck } from '../../../apps/shared/data/pick.ts'
import type { Queryable } from '../../client.ts'
import type { ResourceRow } from '../rows.ts'
import { array, rowsOf } from './rows.ts'

const WORST = sql`array['maintenance', 'unhealthy', 'degraded', 'unknown', 'healthy']`

/** The rule of apps/catalog/rules/health.ts for a row of `s` one of whose checks has expired. */
const expired = (at: SQL): SQL => sql`(case when s.lifecycle_status = 'maintenance' then 'maintenance' else coalesce(
    (select o.status from catalog.observation_latest o where o.rid = s.rid and o.expires_at > ${at}
     order by array_position(${WORST}, o.status) limit 1),
    'unknown') end)`

const timeOf = (now: Date): SQL => sql`${now.toISOString()}::timestamptz`

/** Own health now over `s` (resource_state): as stored, unless a check has expired that no sweep has stored yet. */
export const healthNow = (now: Date): SQL =>
  sql`(case when s.health_expires_at <= ${timeOf(now)} then ${expired(timeOf(now))} else s.health_status end)`

/** Whether it is one of these; the bare column lets the planner use its statistics. */
export const hasHealth = (now: Date, statuses: readonly string[]): SQL => {
  const [at, wanted] = [timeOf(now), array(statuses, 'text')]
  return sql`((s.health_status = any(${wanted}) and coalesce(s.health_expires_at > ${at}, true))
    or (s.health_expires_at <= ${at} and ${expired(at)} = any(${wanted})))`
}

/** Own health now of all resources with an expired check that no sweep has stored yet: usually none. */
export const lateHealth = async (db: Queryable, now: Date): Promise<Map<number, ResourceRow['health_status']>> => {
  const rows = await rowsOf<{ rid: string; status: ResourceRow['health_status'] }>(
    db,
    sql`select s.rid, ${healthNow(now)} as status from catalog.resource_state s where s.rid in (
          select o.rid from catalog.observation_latest o where not o.swept and o.expires_at <= ${timeOf(now)})`,
  )
  return new Map(rows.map(({ rid, status }) => [Number(rid), status]))
}

/** The latest observations of a resource at a past time that were still valid; none is for more than seven days. */
const validThen = (rid: SQL, at: string): SQL =>
  sql`catalog.observation_latest o cross join lateral (
        select p.status, p.expires_at from catalog.observation_history p
        where p.rid = o.rid and p.source = o.source and p.check_key = o.check_key
          and p.observed_at <= ${at}::timestamptz and p.observed_at > ${at}::timestamptz - interval '7 days'
        order by p.observed_at desc, p.command_id desc limit 1) h
      where o.rid = ${rid} and h.expires_at > ${at}::timestamptz`

/**
 * Own health of a resource at a past time, from its latest observations then; a late one counts for the time when it was
 * observed. Unknown before the retained observations.
 */
export const healthThen = (rid: SQL, lifecycle: SQL, at: string): SQL =>
  sql`(case when ${lifecycle} = 'maintenance' then 'maintenance' else coalesce((
      select h.status from ${validThen(rid, at)}
      order by array_position(${WORST}, h.status) limit 1), 'unknown') end)`

/** Whether a resource had been observed by a past time, but had no valid observation then. */
export const hadExpired = (rid: SQL, at: string): SQL =>
  sql`(exists (select from catalog.observation_history p where p.rid = ${rid} and p.observed_at <= ${at}::timestamptz)
    and not exists (select from ${validThen(rid, at)}))`

type Then = { rid: string; lifecycle_status: string }

/** Own health of these resources at a past time, by row number. */
export const healthsThen = async (db: Queryable, then: readonly Then[], at: string) => {
  const rids = array(pluck(then, 'rid'), 'bigint')
  const rows = await rowsOf<{ rid: string; status: ResourceRow['health_status'] }>(
    db,
    sql`select t.rid, ${healthThen(sql`t.rid`, sql`t.lifecycle`, at)} as status
        from unnest(${rids}, ${array(pluck(then, 'lifecycle_status'), 'text')}) t(rid, lifecycle)`,
  )
  return new Map(rows.map(({ rid, status }) => [rid, status]))
}
