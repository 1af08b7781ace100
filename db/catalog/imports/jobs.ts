import { sql } from 'drizzle-orm'
import type { Queryable, Tx } from '../../client.ts'
import { insertMany, recordset } from '../resources/batch.ts'
import { rowOf, rowsOf } from '../resources/rows.ts'
import { import_job, import_job_item } from '../tables.ts'

export type JobRow = typeof import_job.$inferSelect

/** `results`: of items that need no work. */
export const insertJob = async (
  tx: Tx,
  job: typeof import_job.$inferInsert,
  items: readonly object[],
  results: ReadonlyMap<number, object>,
): Promise<void> => {
  await tx.insert(import_job).values(job)
  const rows = items.map((item, seq) => ({ job_id: job.job_id, seq, item, result: results.get(seq), again: false }))
  await insertMany(tx, import_job_item, rows)
}

export const getJob = (db: Queryable, job_id: string, user_id: string): Promise<JobRow | undefined> =>
  rowOf(db, sql`select * from catalog.import_job where job_id = ${job_id} and user_id = ${user_id}`)

/** The next open job, locked; another process works on the locked ones. */
export const takeJob = (tx: Tx): Promise<JobRow | undefined> =>
  rowOf(
    tx,
    sql`select * from catalog.import_job where ended_at is null order by updated_at limit 1 for update skip locked`,
  )

export type JobItem = { seq: number; item: Record<string, unknown>; result: Record<string, unknown> | null }

/** The next items: new ones first, then those that wait for later items. */
export const nextItems = async (tx: Tx, job_id: string, limit: number): Promise<JobItem[]> => {
  const fresh = await rowsOf<JobItem>(
    tx,
    sql`select seq, item, result from catalog.import_job_item where job_id = ${job_id} and result is null
        order by seq limit ${limit}`,
  )
  if (fresh.length > 0) return fresh
  return rowsOf(
    tx,
    sql`select seq, item, result from catalog.import_job_item where job_id = ${job_id} and again order by seq limit ${limit}`,
  )
}

export type JobResult = { seq: number; result: Record<string, unknown>; again: boolean }

export const saveResults = async (tx: Tx, job_id: string, results: readonly JobResult[]): Promise<void> => {
  if (results.length === 0) return
  await tx.execute(
    sql`update catalog.import_job_item i set result = x.result, again = x.again
        from ${recordset('import_job_item', results)} x where i.job_id = ${job_id} and i.seq = x.seq`,
  )
}

/** Records an open job's progress; `status` once it ends. */
export const advanceJob = async (
  tx: Tx,
  job_id: string,
  { at, status, problem }: { at: string; status: JobRow['status']; problem?: object },
): Promise<void> => {
  const ended = status === 'queued' || status === 'running' ? null : at
  await tx.execute(
    sql`update catalog.import_job j set status = ${status}, updated_at = ${at}, ended_at = ${ended}, failures = 0,
          problem = ${problem === undefined ? null : JSON.stringify(problem)}::jsonb, done = n.done, counts = n.counts
        from (select coalesce(sum(n), 0)::int as done, coalesce(jsonb_object_agg(outcome, n), '{}') as counts
              from (select result->>'outcome' as outcome, count(*)::int as n from catalog.import_job_item
                    where job_id = ${job_id} and result is not null group by 1) x) n
        where j.job_id = ${job_id} and j.ended_at is null`,
  )
}

/** Records that a chunk of an open job failed; returns the weight of the consecutive failures. */
export const noteFailure = async (db: Queryable, job_id: string, at: string, weight: number): Promise<number> => {
  const [row] = await rowsOf<{ failures: number }>(
    db,
    sql`update catalog.import_job set failures = failures + ${weight}, updated_at = ${at}
        where job_id = ${job_id} and ended_at is null returning failures`,
  )
  return row?.failures ?? 0
}

/** Ends an open job; waits for the current chunk. */
export const cancelJob = async (tx: Tx, job_id: string, at: string): Promise<void> => {
  await tx.execute(
    sql`update catalog.import_job set status = 'cancelled', updated_at = ${at}, ended_at = ${at}
        where job_id = ${job_id} and ended_at is null`,
  )
}

export const listResults = (db: Queryable, job_id: string, after: number, limit: number) =>
  rowsOf<{ seq: number; result: Record<string, unknown> }>(
    db,
    sql`select seq, result from catalog.import_job_item
        where job_id = ${job_id} and result is not null and seq > ${after} order by seq limit ${limit}`,
  )

const PRUNED_AT_ONCE = 100

/** Deletes jobs that ended before a given time. Returns true if there may be more. */
export const pruneJobs = async (db: Queryable, before: string): Promise<boolean> => {
  const { rowCount } = await db.execute(
    sql`with old as (select job_id from catalog.import_job where ended_at < ${before}::timestamptz limit ${PRUNED_AT_ONCE}),
          items as (delete from catalog.import_job_item where job_id in (select job_id from old))
        delete from catalog.import_job where job_id in (select job_id from old)`,
  )
  return rowCount === PRUNED_AT_ONCE
}
