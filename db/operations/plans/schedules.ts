import { and, desc, eq, inArray, ne, type SQL, sql } from 'drizzle-orm'
import { pick } from '../../../apps/shared/data/pick.ts'
import { uuidv7 } from '../../../apps/shared/ids.ts'
import { type Db, equals, first, type Queryable, type Tx, updateRows } from '../../client.ts'
import { lockOf, lockOwner } from '../../locks.ts'
import { NOW } from '../../rows.ts'
import { eachText, iso, type Newest, olderThan } from '../expressions.ts'
import { operations, schedule_deliveries, schedule_runs, schedules } from '../tables/index.ts'

export type Schedule = NonNullable<Awaited<ReturnType<typeof getSchedule>>>
export type NewSchedule = Omit<typeof schedules.$inferInsert, 'schedule_id' | 'updated_at'>
export type RunEnd = Partial<
  Pick<typeof schedule_runs.$inferInsert, 'detail' | 'intent_id' | 'plan_id' | 'operation_id'>
>

/** How many runs of each schedule are kept, besides those that wait or whose operation has not ended. */
const KEPT = 100
const LEASE_S = 120
/** How long a run waits for its next try. */
const AGAIN_S = 10

const columns = {
  ...pick(schedules, 'schedule_id', 'status', 'status_reason', 'owner', 'requester_id', 'when', 'intent', 'proceed'),
  ...pick(schedules, 'resource_ids', 'matched', 'secret_number'),
  previous_until: iso(schedules.previous_until),
  next_at: iso(schedules.next_at),
  created_at: iso(schedules.created_at),
  updated_at: iso(schedules.updated_at),
}
const runColumns = {
  ...pick(schedule_runs, 'schedule_id', 'state', 'detail', 'targets', 'intent_id', 'plan_id', 'operation_id'),
}

export const insertSchedule = async (tx: Tx, given: NewSchedule): Promise<string> => {
  const schedule_id = uuidv7()
  await tx.insert(schedules).values({ ...given, schedule_id })
  return schedule_id
}

export const getSchedule = (db: Queryable, schedule_id: string) =>
  db.select(columns).from(schedules).where(eq(schedules.schedule_id, schedule_id)).then(first)

export const lockSchedule = (tx: Tx, schedule_id: string) =>
  tx.select(columns).from(schedules).where(eq(schedules.schedule_id, schedule_id)).for('update').then(first)

export const listSchedules = (db: Queryable, { where, after, limit }: Newest) =>
  db
    .select(columns)
    .from(schedules)
    .where(and(...where, olderThan(schedules.created_at, schedules.schedule_id, after)))
    .orderBy(desc(schedules.created_at), desc(schedules.schedule_id))
    .limit(limit)

/** The last runs of these schedules, newest first. */
export const listRuns = async (db: Queryable, schedule_ids: readonly string[], each: number) => {
  const newest = sql<number>`row_number() over (partition by ${schedule_runs.schedule_id} order by ${schedule_runs.due_at} desc)`
  const ranked = db
    .select({ ...runColumns, due_at: iso(schedule_runs.due_at).as('due_at'), newest: newest.as('newest') })
    .from(schedule_runs)
    .where(inArray(schedule_runs.schedule_id, [...schedule_ids]))
    .as('ranked')
  return db.select().from(ranked).where(sql`${ranked.newest} <= ${each}`).orderBy(ranked.newest)
}

export const moveSchedule = (
  tx: Tx,
  schedule_id: string,
  set: Partial<
    Pick<NewSchedule, 'status' | 'status_reason' | 'next_at' | 'matched' | 'seen' | 'secret_number' | 'previous_until'>
  >,
) => updateRows(tx, { schedule_id }, schedules, { ...set, updated_at: NOW })

/** Due schedules, locked; skips those that another process holds. */
export const lockDue = (tx: Tx, now: string, limit: number) =>
  tx
    .select(columns)
    .from(schedules)
    .where(and(eq(schedules.status, 'active'), sql`${schedules.next_at} <= ${now}::timestamptz`))
    .orderBy(schedules.next_at)
    .limit(limit)
    .for('update', { skipLocked: true })

/**
 * Active conditional schedules that have not seen the projection at this mark. One with such a reason was judged in vain:
 * it is tried again after a minute.
 */
export const listWatching = (db: Queryable, mark: number, in_vain: readonly string[]) =>
  db
    .select(columns)
    .from(schedules)
    .where(
      and(
        eq(schedules.status, 'active'),
        ne(schedules.seen, mark),
        sql`${schedules.when} ? 'on'`,
        sql`(coalesce(${schedules.status_reason} <> all(${eachText(in_vain)}), true) or ${schedules.updated_at} < clock_timestamp() - interval '1 min')`,
      ),
    )

/** Locks a schedule that is still as it was read; undefined if it has changed, or another process holds it. */
export const lockUnchanged = (tx: Tx, { schedule_id, updated_at }: Pick<Schedule, 'schedule_id' | 'updated_at'>) =>
  tx
    .select(pick(schedules, 'schedule_id'))
    .from(schedules)
    .where(and(eq(schedules.schedule_id, schedule_id), eq(iso(schedules.updated_at), updated_at)))
    .for('update', { skipLocked: true })
    .then(first)

/**
 * Begins the run for a due time, once; returns false if it exists. Deletes old runs that no later run depends on.
 * `begun_at`: now, if that may be later.
 */
export const beginRun = async (
  tx: Tx,
  schedule_id: string,
  due_at: string,
  { targets, begun_at = due_at }: { targets?: string[] | undefined; begun_at?: string } = {},
): Promise<boolean> => {
  const begun = await tx
    .insert(schedule_runs)
    .values({ schedule_id, due_at, begun_at, targets })
    .onConflictDoNothing()
    .returning({ due_at: schedule_runs.due_at })
  await tx.execute(sql`delete from operations.schedule_runs where (schedule_id, due_at) in (
    select r.schedule_id, r.due_at from operations.schedule_runs r left join operations.operations o using (operation_id)
    where r.schedule_id = ${schedule_id} and r.state <> 'begun' and (r.operation_id is null or o.ended_at is not null)
    order by r.due_at desc offset ${KEPT})`)
  return begun.length > 0
}

/** Makes a later change, with its targets, part of a run that waits untaken; returns false if none does. */
export const joinWaiting = async (tx: Tx, schedule_id: string, targets: readonly string[] = []): Promise<boolean> => {
  const joined = await tx.execute(sql`
    update operations.schedule_runs set targets = case when targets is null then null
      else (select array_agg(distinct one order by one) from unnest(targets || ${eachText(targets)}) as one) end
    where (schedule_id, due_at) in (
      select schedule_id, due_at from operations.schedule_runs
      where schedule_id = ${schedule_id} and state = 'begun' and intent_id is null
        and coalesce(not ${isBeingMade(sql`leased_until`)}, true)
      order by due_at desc limit 1 for update skip locked)`)
  return joined.rowCount === 1
}

/** Records a delivery. `is_new` is false for a repeat; `lately` counts the schedule's deliveries of the last minute. */
export const saveDelivery = async (tx: Tx, delivery: typeof schedule_deliveries.$inferInsert) => {
  const { schedule_id } = delivery
  const saved = await tx
    .insert(schedule_deliveries)
    .values(delivery)
    .onConflictDoNothing()
    .returning(pick(schedule_deliveries, 'at'))
  const recent = sql`${schedule_deliveries.at} > clock_timestamp() - interval '1 min'`
  const lately = await tx.$count(schedule_deliveries, and(eq(schedule_deliveries.schedule_id, schedule_id), recent))
  return { is_new: saved.length > 0, lately }
}

/** The last deliveries, newest first. */
export const listDeliveries = (db: Queryable, schedule_id: string, limit: number) =>
  db
    .select({ at: iso(schedule_deliveries.at), ...pick(schedule_deliveries, 'status', 'detail') })
    .from(schedule_deliveries)
    .where(eq(schedule_deliveries.schedule_id, schedule_id))
    .orderBy(desc(schedule_deliveries.at))
    .limit(limit)

const DELIVERIES_KEPT_DAYS = 30

/**
 * Deletes old deliveries that can no longer count. A standard one is too old by its timestamp. A forge's signature has
 * no timestamp, so its deliveries stay as long as the secret that signed them is valid.
 */
export const pruneHookDeliveries = async (db: Db): Promise<void> => {
  await db.execute(sql`delete from ${schedule_deliveries} using ${schedules}
    where ${schedules.schedule_id} = ${schedule_deliveries.schedule_id}
      and ${schedule_deliveries.at} < now() - make_interval(days => ${DELIVERIES_KEPT_DAYS})
      and (${schedules.status} = 'ended' or ${schedules.when} #>> '{webhook,signature}' = 'standard'
        or ${schedule_deliveries.secret_number} < ${schedules.secret_number}
          - case when ${schedules.previous_until} > now() then 1 else 0 end)`)
}

/**
 * Leases a run that no process is working on; one that was tried already comes after those that waited longer. One run
 * of a schedule is made at a time, or each would find no operation of the other.
 */
export const leaseRun = (db: Db) => {
  const open = sql`(select schedule_id, due_at from operations.schedule_runs r
    where state = 'begun' and (leased_until is null or leased_until < clock_timestamp())
      and not exists (select from operations.schedule_runs o where o.schedule_id = r.schedule_id and o.state = 'begun'
        and o.due_at <> r.due_at and ${isBeingMade(sql`o.leased_until`)})
    order by coalesce(leased_until, due_at) limit 1 for update skip locked)`
  return db.transaction(async (tx) => {
    await tx.execute(sql`select ${lockOf('scheduleRuns')}`)
    return tx
      .update(schedule_runs)
      .set({ leased_until: sql`clock_timestamp() + make_interval(secs => ${LEASE_S})` })
      .where(sql`(${schedule_runs.schedule_id}, ${schedule_runs.due_at}) in ${open}`)
      .returning({
        ...pick(schedule_runs, 'schedule_id', 'targets', 'intent_id'),
        due_at: iso(schedule_runs.due_at),
        begun_at: iso(schedule_runs.begun_at),
      })
      .then(first)
  })
}

/** A run that only waits for its next try is leased for AGAIN_S at most. */
const isBeingMade = (leased_until: SQL) =>
  sql`${leased_until} > clock_timestamp() + make_interval(secs => ${AGAIN_S + 1})`

/** From here on no later change becomes part of the run. */
export const noteIntent = (
  db: Db,
  { schedule_id, due_at }: { schedule_id: string; due_at: string },
  intent_id: string,
  targets: string[] | null,
) =>
  db
    .update(schedule_runs)
    .set({ intent_id, targets })
    .where(
      and(
        equals(schedule_runs, { schedule_id, state: 'begun' }),
        sql`${schedule_runs.due_at} = ${due_at}::timestamptz`,
      ),
    )

/** Ends an open run; `begun` returns it, to be retried after a while. False if it has ended, such as by a pause. */
export const endRun = async (
  db: Queryable,
  { schedule_id, due_at }: { schedule_id: string; due_at: string },
  state: (typeof schedule_runs.$inferInsert)['state'],
  end: RunEnd = {},
): Promise<boolean> => {
  const ended = await db
    .update(schedule_runs)
    .set({ ...end, state, leased_until: sql`clock_timestamp() + make_interval(secs => ${AGAIN_S})` })
    .where(
      and(
        equals(schedule_runs, { schedule_id, state: 'begun' }),
        sql`${schedule_runs.due_at} = ${due_at}::timestamptz`,
      ),
    )
    .returning(pick(schedule_runs, 'schedule_id'))
  return ended.length > 0
}

/** Runs that have not started do not outlive a pause of their schedule. */
export const dropWaiting = (tx: Tx, schedule_id: string) =>
  tx
    .update(schedule_runs)
    .set({ state: 'skipped', detail: 'The schedule was paused or ended.' })
    .where(equals(schedule_runs, { schedule_id, state: 'begun' }))

/** The unended operation of an earlier run of the schedule, if any. */
export const findRunning = (db: Queryable, schedule_id: string) =>
  db
    .select(pick(operations, 'operation_id', 'title'))
    .from(schedule_runs)
    .innerJoin(operations, eq(operations.operation_id, schedule_runs.operation_id))
    .where(and(eq(schedule_runs.schedule_id, schedule_id), sql`${operations.ended_at} is null`))
    .limit(1)
    .then(first)

/** When the last operation of the schedule ended; undefined if none has. Later runs waited for it. */
export const lastEnd = (db: Queryable, schedule_id: string) =>
  db
    .select({ ended_at: iso(operations.ended_at) })
    .from(schedule_runs)
    .innerJoin(operations, eq(operations.operation_id, schedule_runs.operation_id))
    .where(and(eq(schedule_runs.schedule_id, schedule_id), sql`${operations.ended_at} is not null`))
    .orderBy(desc(operations.ended_at))
    .limit(1)
    .then((rows) => rows[0]?.ended_at)

/** How many of this person's schedules have not ended, until this transaction ends. */
export const countOwned = async (tx: Tx, requester_id: string): Promise<number> => {
  await lockOwner(tx, `user:${requester_id}`)
  return tx.$count(schedules, and(eq(schedules.requester_id, requester_id), ne(schedules.status, 'ended')))
}
