import { sql } from 'drizzle-orm'
import type { Queryable, Tx } from '../client.ts'
import { array, rowsOf } from './resources/rows.ts'

/** Which operations touch which resources, as the operations app reports them: the model behind operations-summary. */
export type OperationFact = { operation_id: string; kind: string; title: string; status: string; at: string }

/** Records that an operation was queued for these resources; unknown ids are left out. */
export const addOperation = (tx: Tx, fact: OperationFact, resource_ids: readonly string[]) =>
  tx.execute(sql`
    insert into catalog.rm_resource_operation (rid, operation_id, kind, title, status, created_at)
    select rid, ${fact.operation_id}, ${fact.kind}, ${fact.title}, ${fact.status}, ${fact.at}
    from catalog.resource where resource_id = any(${array(resource_ids, 'text')})
    on conflict do nothing`)

export const setOperationStatus = (
  tx: Tx,
  {
    operation_id,
    status,
    at,
    started,
    ended,
  }: { operation_id: string; status: string; at: string; started: boolean; ended: boolean },
) =>
  tx.execute(sql`
    update catalog.rm_resource_operation set status = ${status},
      started_at = case when ${started} then coalesce(started_at, ${at}::timestamptz) else started_at end,
      ended_at = case when ${ended} then ${at}::timestamptz else ended_at end
    where operation_id = ${operation_id}`)

export type SummaryRow = {
  operation_id: string
  kind: string
  title: string
  status: string
  started_at: string | null
  ended_at: string | null
  version_from: number | null
  version_to: number | null
}

/** The newest operations of a resource, with the versions before and after each. */
export const lastOperations = (db: Queryable, rid: string, limit: number): Promise<SummaryRow[]> =>
  rowsOf(
    db,
    sql`select o.operation_id, o.kind, o.title, o.status, o.started_at, o.ended_at, v.version_from, v.version_to
        from catalog.rm_resource_operation o
        left join lateral (select min(version_from) as version_from, max(version_to) as version_to
          from catalog.resource_operation c where c.rid = o.rid and c.operation_id = o.operation_id) v on true
        where o.rid = ${rid} order by o.created_at desc, o.operation_id limit ${limit}`,
  )

export const countOperations = (db: Queryable, rid: string): Promise<{ status: string; n: number }[]> =>
  rowsOf(
    db,
    sql`select status, count(*)::int as n from catalog.rm_resource_operation where rid = ${rid} group by status`,
  )

/** Counts of a consumer: the aggregates that it follows, the held ones, and the events that wait for a person. */
export const countHeld = async (db: Queryable, consumer: string) => {
  const [row] = await rowsOf<{ aggregates: number; held: number; dead_letters: number }>(
    db,
    sql`select count(*)::int as aggregates, (count(*) filter (where held))::int as held,
          (select count(*)::int from catalog.dead_letter where consumer = ${consumer} and released_at is null)
            as dead_letters
        from catalog.projection_version where consumer = ${consumer}`,
  )
  return row ?? { aggregates: 0, held: 0, dead_letters: 0 }
}

/** The index rows of one operation, for comparing and rebuilding it. */
export const operationRows = async (db: Queryable, operation_id: string): Promise<string> => {
  const [row] = await rowsOf<{ rows: string }>(
    db,
    sql`select coalesce(string_agg(to_jsonb(o)::text, ',' order by o.rid), '') as rows
        from catalog.rm_resource_operation o where o.operation_id = ${operation_id}`,
  )
  return row?.rows ?? ''
}
export const forgetOperation = (tx: Tx, operation_id: string) =>
  tx.execute(sql`delete from catalog.rm_resource_operation where operation_id = ${operation_id}`)

/** Operations with rows in the index. */
export const listIndexed = async (db: Queryable): Promise<string[]> =>
  (
    await rowsOf<{ id: string }>(db, sql`select distinct operation_id::text as id from catalog.rm_resource_operation`)
  ).map(({ id }) => id)
