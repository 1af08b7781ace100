import { and, asc, eq, isNull, type SQL, sql } from 'drizzle-orm'
import type { Overview, OverviewPeriod, PlannedTick, Spread } from '../../../apps/shared/contracts/overview/overview.ts'
import type { Queryable } from '../../client.ts'
import { iso } from '../expressions.ts'
import { WAITING_FOR_PEOPLE } from '../gates/inbox.ts'
import { gates, operations, patches } from '../tables/index.ts'
import { CLOCK_RUNS } from './expiring.ts'
import { GROUPS } from './read.ts'
import { OPEN_PATCH } from './waiting.ts'

/** Sums for the overview: each is one statement over a bounded period and the visible rows. */
type Visible = SQL | undefined
export type Span = { from: string; to: string }

const within = (column: SQL | typeof operations.ended_at, { from, to }: Span): SQL =>
  sql`${column} >= ${from}::timestamptz and ${column} < ${to}::timestamptz`
const ends = (...statuses: string[]) =>
  sql<number>`(count(*) filter (where ${operations.engine_status} = any(${sql.param(statuses)}::text[])))::int`
const COUNTS = {
  succeeded: ends('succeeded', 'succeeded_with_exceptions'),
  failed: ends('failed', 'timed_out'),
  cancelled: ends('cancelled'),
}
/** The median and the 90th percentile of a duration; null if there are none. */
const spread = (seconds: SQL): SQL<Spread> => sql`case when count(${seconds}) = 0 then null else
  jsonb_build_object('p50_s', round((percentile_cont(0.5) within group (order by ${seconds}))::numeric, 3),
                     'p90_s', round((percentile_cont(0.9) within group (order by ${seconds}))::numeric, 3)) end`

/** The operations that have not ended: all, and those that need a person. */
export const countOpen = async (db: Queryable, visible: Visible) => {
  const count = (where: SQL) => sql<number>`(count(*) filter (where ${where}))::int`
  const [row] = await db
    .select({ open: count(GROUPS.open), needs_attention: count(GROUPS.needs_attention) })
    .from(operations)
    .where(and(GROUPS.open, visible))
  return row ?? { open: 0, needs_attention: 0 }
}

export type RegionOpen = { region_id: string; open: number; needs_attention: number; gates: number }
/** How many operations are examined, and targets of each, so that the answer stays fast at any number. */
const LOOKED_AT = { operations: 1000, targets: 50 }

/** The open operations by their targets' regions, and their gates that wait for people; only the newest operations. */
export const countOpenByRegion = async (db: Queryable, visible: Visible): Promise<RegionOpen[]> => {
  const waiting = sql`(select count(*)::int from ${gates} where ${gates.operation_id} = ${operations.operation_id} and ${WAITING_FOR_PEOPLE})`
  const { rows } = await db.execute<RegionOpen>(sql`
    with open as materialized (
      select ${operations.operation_id} as operation_id, (${operations.resource_ids})[1:${sql.raw(String(LOOKED_AT.targets))}] as ids,
        (${GROUPS.needs_attention}) as attention, ${waiting} as gates
      from ${operations} where ${and(GROUPS.open, visible)}
      order by ${operations.created_at} desc limit ${LOOKED_AT.operations}),
    places as materialized (
      select target.id, place.region_id from (select distinct unnest(ids) as id from open) as target
        cross join lateral operations.place_of(target.id) as place where place.region_id is not null),
    there as (
      select distinct open.operation_id, places.region_id, open.attention, open.gates
      from open cross join lateral unnest(open.ids) as target(id) join places on places.id = target.id)
    select region_id, count(*)::int as open, (count(*) filter (where attention))::int as needs_attention, sum(gates)::int as gates
    from there group by region_id order by region_id`)
  return rows
}

/** Waiting gates and patches by the groups that may decide, an escalation's included; the longest wait first. */
export const countWaitingByGroup = async (db: Queryable, visible: Visible): Promise<Overview['waiting']> => {
  const { rows } = await db.execute<Overview['waiting'][number]>(sql`
    with asked as materialized (
      select 'gate' as kind, ${gates.waiting_since} as since, ${operations.operation_id} as operation_id, ${operations.title} as title,
        array(select g ->> 'group' from jsonb_array_elements(${gates.policy} -> 'groups') g
          union select jsonb_array_elements_text(e.step -> 'add_groups')
            from jsonb_array_elements(${gates.policy} -> 'escalation') with ordinality e(step, n)
            where e.n <= ${gates.escalation_level} and jsonb_array_length(${gates.policy} -> 'groups') > 0) as names
      from ${gates} join ${operations} on ${operations.operation_id} = ${gates.operation_id}
      where ${and(WAITING_FOR_PEOPLE, visible)}
      union all
      select 'patch', ${patches.created_at}, ${operations.operation_id}, ${operations.title},
        array(select distinct g ->> 'group' from jsonb_array_elements(${patches.required}) p, jsonb_array_elements(p -> 'groups') g)
      from ${patches} join ${operations} on ${operations.operation_id} = ${patches.operation_id}
      where ${and(OPEN_PATCH, visible)})
    select name as "group", (count(*) filter (where kind = 'gate'))::int as gates, (count(*) filter (where kind = 'patch'))::int as patches,
      (array_agg(jsonb_build_object('since', operations.iso(since), 'operation_id', operation_id, 'title', title) order by since))[1] as oldest
    from asked cross join lateral unnest(case when names = '{}' then array[null::text] else names end) as name
    group by name order by min(since), name limit ${GROUPS_SHOWN}`)
  return rows
}
const GROUPS_SHOWN = 50

/** How operations ended, by day in UTC; days without an end are left out. */
export const listEndsByDay = (db: Queryable, visible: Visible, span: Span) => {
  const day = sql<string>`to_char(${operations.ended_at} at time zone 'UTC', 'YYYY-MM-DD')`
  return db
    .select({ day: day.as('day'), ...COUNTS })
    .from(operations)
    .where(and(within(operations.ended_at, span), visible))
    .groupBy(sql`day`)
}

/** How operations ended within a period, how long they took, and how long gates waited for approval. */
export const sumPeriod = async (db: Queryable, visible: Visible, span: Span): Promise<OverviewPeriod> => {
  const [ended, approved] = await Promise.all([
    db
      .select({ ...COUNTS, duration: spread(RAN) })
      .from(operations)
      .where(and(within(operations.ended_at, span), visible)),
    db
      .select({ approval: spread(WAITED) })
      .from(gates)
      .innerJoin(operations, eq(operations.operation_id, gates.operation_id))
      .where(and(eq(gates.status, 'approved'), BY_PEOPLE, within(sql`${gates.decided_at}`, span), visible)),
  ])
  const none = { succeeded: 0, failed: 0, cancelled: 0, duration: null }
  return { ...span, ...(ended[0] ?? none), approval: approved[0]?.approval ?? null }
}

const RAN = sql`case when ${operations.engine_status} like 'succeeded%' then extract(epoch from ${operations.ended_at} - ${operations.started_at}) end`
const WAITED = sql`extract(epoch from ${gates.decided_at} - ${gates.waiting_since})`
const BY_PEOPLE = sql`${gates.decided_by} ->> 'kind' = 'user'`

/** When open operations must end, and when waiting gates must be decided; the earliest first. */
export const listDeadlines = async (
  db: Queryable,
  visible: Visible,
  span: Span,
  limit: number,
): Promise<PlannedTick[]> => {
  const title = operations.title
  const [ending, deciding] = await Promise.all([
    db
      .select({ at: sql<string>`${iso(operations.deadline_at)}`, operation_id: operations.operation_id, title })
      .from(operations)
      .where(and(isNull(operations.ended_at), within(sql`${operations.deadline_at}`, span), CLOCK_RUNS, visible))
      .orderBy(asc(operations.deadline_at))
      .limit(limit),
    db
      .select({
        at: sql<string>`${iso(gates.deadline_at)}`,
        operation_id: gates.operation_id,
        gate_id: gates.gate_id,
        title,
      })
      .from(gates)
      .innerJoin(operations, eq(operations.operation_id, gates.operation_id))
      .where(and(WAITING_FOR_PEOPLE, within(sql`${gates.deadline_at}`, span), visible))
      .orderBy(asc(gates.deadline_at))
      .limit(limit),
  ])
  return [
    ...ending.map((row) => ({ ...row, kind: 'operation' as const, schedule_id: null, gate_id: null })),
    ...deciding.map((row) => ({ ...row, kind: 'gate' as const, schedule_id: null })),
  ]
}
