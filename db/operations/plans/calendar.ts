import { and, asc, eq, lt, ne, sql } from 'drizzle-orm'
import { isFrozen } from '../../../apps/shared/data/calendar.ts'
import { canonicalJson } from '../../../apps/shared/data/digest.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { equals, first, type Queryable, type Tx } from '../../client.ts'
import { lockOf } from '../../locks.ts'
import { NOW } from '../../rows.ts'
import { iso } from '../expressions.ts'
import { calendar_entries, type FreezeEntry, gates, operation_control, operations } from '../tables/index.ts'

/** Starts read the calendar, changes write it, one at a time, so that no start falls between two states. */
export const lockCalendar = (tx: Tx, how: 'to read' | 'to write') =>
  tx.execute(sql`select ${lockOf('calendar', how === 'to read' ? 'shared' : 'exclusive')}`)

export type PutFreeze = FreezeEntry & { freeze_id: string; put_by: string; updated_at: string; revision: number }

const columns = {
  ...pick(calendar_entries, 'freeze_id', 'entry', 'put_by', 'revision'),
  updated_at: iso(calendar_entries.updated_at),
}
const flat = ({ entry, ...row }: { entry: FreezeEntry } & Omit<PutFreeze, keyof FreezeEntry>): PutFreeze => ({
  ...row,
  ...entry,
})

/** Freezes that control planes put and have not withdrawn. */
export const listPutFreezes = async (db: Queryable): Promise<PutFreeze[]> => {
  const rows = await db
    .select(columns)
    .from(calendar_entries)
    .where(eq(calendar_entries.withdrawn, false))
    .orderBy(asc(calendar_entries.freeze_id))
  return rows.map((row) => flat(row as never))
}

/** A freeze that a control plane put and has not withdrawn. */
export const getFreeze = async (db: Queryable, freeze_id: string): Promise<PutFreeze | undefined> => {
  const row = await getRow(db, freeze_id)
  return row === undefined || row.withdrawn ? undefined : flat(row as never)
}

/** When a freeze was ended or withdrawn; undefined if it was not, or never was. */
export const freezeEndedAt = async (db: Queryable, freeze_id: string): Promise<string | undefined> => {
  const row = await getRow(db, freeze_id)
  return row?.withdrawn ? row.updated_at : undefined
}

export type FreezeChange = { freeze: PutFreeze; before: FreezeEntry | null; changed: boolean }

/** Puts a freeze, or replaces its content; the caller holds the calendar lock to write. */
export const putFreeze = async (
  tx: Tx,
  freeze_id: string,
  entry: FreezeEntry,
  put_by: string,
): Promise<FreezeChange> => {
  const known = await getRow(tx, freeze_id)
  const before = known && !known.withdrawn ? known.entry : null
  const changed = before === null || canonicalJson(before) !== canonicalJson(entry)
  if (changed)
    await tx
      .insert(calendar_entries)
      .values({ freeze_id, entry, put_by })
      .onConflictDoUpdate({ target: calendar_entries.freeze_id, set: { entry, put_by, withdrawn: false, ...MOVED } })
  const row = await getRow(tx, freeze_id)
  return { freeze: flat(row as never), before, changed }
}

/** Withdraws a freeze; returns `undefined` if there is none. The caller holds the calendar lock to write. */
export const withdrawFreeze = async (tx: Tx, freeze_id: string): Promise<PutFreeze | undefined> => {
  const [row] = await tx
    .update(calendar_entries)
    .set({ withdrawn: true, ...MOVED })
    .where(equals(calendar_entries, { freeze_id, withdrawn: false }))
    .returning(columns)
  return row && flat(row as never)
}

const MOVED = { revision: sql`${calendar_entries.revision} + 1`, updated_at: NOW }

const getRow = (tx: Queryable, freeze_id: string) =>
  tx
    .select({ ...columns, withdrawn: calendar_entries.withdrawn })
    .from(calendar_entries)
    .where(eq(calendar_entries.freeze_id, freeze_id))
    .then(first)

/** Changes of at least this age that running operations may not have received: the process that made them has died. */
export const listUntold = (db: Queryable, older_than_s: number) =>
  db
    .select({
      ...pick(calendar_entries, 'freeze_id', 'revision', 'put_by'),
      shortened: sql<boolean>`${calendar_entries.entry} ? 'shortened' and not ${calendar_entries.withdrawn}`,
    })
    .from(calendar_entries)
    .where(
      and(
        lt(calendar_entries.told_revision, calendar_entries.revision),
        sql`${calendar_entries.updated_at} < clock_timestamp() - make_interval(secs => ${older_than_s})`,
      ),
    )

/** How many of these operations work on any of these resources. */
export const countOnResources = (
  db: Queryable,
  operation_ids: readonly string[],
  resource_ids: readonly string[],
): Promise<number> =>
  db.$count(
    operations,
    sql`${operations.operation_id} = any(${sql.param(operation_ids)}::uuid[])
      and ${operations.resource_ids} && ${sql.param(resource_ids)}::text[]`,
  )

/** Records that every running operation has received this change. */
export const markTold = (db: Queryable, freeze_id: string, revision: number) =>
  db
    .update(calendar_entries)
    .set({ told_revision: sql`greatest(${calendar_entries.told_revision}, ${revision})` })
    .where(eq(calendar_entries.freeze_id, freeze_id))

/** Operations whose nodes may still start. */
export const listStarting = async (db: Queryable): Promise<string[]> => {
  const rows = await db
    .select({ operation_id: operation_control.operation_id })
    .from(operation_control)
    .where(and(eq(operation_control.ended, false), ne(operation_control.control, 'cancel')))
  return rows.map(({ operation_id }) => operation_id)
}

/** Freezes that hold a running operation at `now` (milliseconds), with the people who may override each. */
export const listFreezesNow = async (
  db: Queryable,
  operation_id: string,
  now: number,
): Promise<{ freeze_id: string; approvers: readonly string[] }[]> => {
  const [row] = await db
    .select({ calendar: operation_control.calendar })
    .from(operation_control)
    .where(eq(operation_control.operation_id, operation_id))
  return Object.entries(row?.calendar?.freezes ?? {})
    .filter(([, freeze]) => isFrozen(freeze, now))
    .map(([freeze_id, { approvers }]) => ({ freeze_id, approvers }))
}

/**
 * Gates that ask whether to continue despite a freeze, and that a decision can still pass; `only`: that gate, if it is
 * one. Left out while the operation's own calendar, which its claims read, holds the freeze by Postgres' clock.
 */
export const listFreezeGates = (db: Queryable, only: { operation_id?: string; gate_id?: string } = {}) =>
  db
    .select({ ...pick(gates, 'operation_id', 'gate_id', 'round'), freeze_id: sql<string>`${gates.policy} ->> 'key'` })
    .from(gates)
    .innerJoin(operation_control, eq(operation_control.operation_id, gates.operation_id))
    .where(
      and(
        equals(gates, { kind: 'freeze', status: 'waiting', ...only }),
        sql`coalesce((${operation_control.calendar} #>> array['freezes', ${gates.policy} ->> 'key', 'to'])::timestamptz <= clock_timestamp(), true)`,
        sql`(${gates.deadline_at} is null or ${gates.deadline_at} > clock_timestamp())`,
        eq(operation_control.ended, false),
        ne(operation_control.control, 'cancel'),
        sql`${operation_control.pause_reason} is distinct from 'engine_lost'`,
      ),
    )
