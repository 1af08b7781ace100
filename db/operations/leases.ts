import { and, asc, eq, or, sql } from 'drizzle-orm'
import type { BlockedOn } from '../../apps/shared/contracts/operations/graph.ts'
import { type Db, first, type Queryable, type Tx } from '../client.ts'
import { bumpRevision, stateFacts } from './changes.ts'
import { textArray } from './planning.ts'
import { lease_waits, leases, operation_commands, operation_control, operations } from './tables.ts'
import { SYSTEM } from './timeline.ts'

/**
 * Who may change which resources (operations.md 3.5). An operation holds its leases from its start to its end; one that
 * finds them taken waits in `lease_waits`, and its start is held back until they are granted, the oldest first.
 */
export type Lease = { resource_id: string; mode: 'exclusive' | 'shared' }
export type Blocker = { resource_id: string; operation_id: string; title: string; mode: string }

/** Takers and granters come one at a time, so that two of them never see the same leases as free. */
const LOCK = 727_311
const SHOWN = 100
const WAITERS = 100

/** Who holds what these leases would exclude: two of one resource conflict unless both are shared. */
export const listBlockers = (db: Queryable, wanted: readonly Lease[]): Promise<Blocker[]> => {
  const ids = wanted.map(({ resource_id }) => resource_id)
  const exclusive = wanted.flatMap(({ resource_id, mode }) => (mode === 'exclusive' ? [resource_id] : []))
  return db
    .select({
      resource_id: leases.resource_id,
      operation_id: leases.operation_id,
      title: operations.title,
      mode: leases.mode,
    })
    .from(leases)
    .innerJoin(operations, eq(operations.operation_id, leases.operation_id))
    .where(
      and(
        sql`${leases.resource_id} in ${textArray(ids)}`,
        or(eq(leases.mode, 'exclusive'), sql`${leases.resource_id} in ${textArray(exclusive)}`),
      ),
    )
    .orderBy(asc(leases.resource_id), asc(leases.operation_id))
    .limit(SHOWN)
}

/** Those who wait already for what would exclude these leases: nobody passes them. */
const listWaiting = async (tx: Tx, wanted: readonly Lease[], before?: string): Promise<Blocker[]> => {
  const rows = await tx
    .select({ operation_id: lease_waits.operation_id, title: operations.title, wanted: lease_waits.wanted })
    .from(lease_waits)
    .innerJoin(operations, eq(operations.operation_id, lease_waits.operation_id))
    .where(
      before === undefined
        ? undefined
        : sql`(${lease_waits.since}, ${lease_waits.operation_id}) < (select w.since, w.operation_id from ${lease_waits} w where w.operation_id = ${before})`,
    )
    .orderBy(asc(lease_waits.since), asc(lease_waits.operation_id))
  const modes = new Map(wanted.map(({ resource_id, mode }) => [resource_id, mode]))
  return rows.flatMap(({ operation_id, title, wanted: others }) => {
    const clash = others.find(({ resource_id, mode }) => {
      const mine = modes.get(resource_id)
      return mine !== undefined && (mine === 'exclusive' || mode === 'exclusive')
    })
    return clash ? [{ operation_id, title, ...clash }] : []
  })
}

/**
 * Takes all leases or none. Returns who is in the way; with `queue`, the operation waits for them from now on, which
 * holds its start command back (commands.ts).
 */
export const takeLeases = async (
  tx: Tx,
  operation_id: string,
  wanted: readonly Lease[],
  { queue }: { queue: boolean },
): Promise<Blocker[]> => {
  if (wanted.length === 0) return []
  await tx.execute(sql`select pg_advisory_xact_lock(${LOCK})`)
  const blockers = [...(await listBlockers(tx, wanted)), ...(await listWaiting(tx, wanted))].slice(0, SHOWN)
  if (blockers.length === 0) await insertLeases(tx, operation_id, wanted)
  else if (queue) await tx.insert(lease_waits).values({ operation_id, wanted: [...wanted] })
  return blockers
}

const insertLeases = (tx: Tx, operation_id: string, wanted: readonly Lease[]) =>
  tx.execute(sql`
    insert into ${leases} (resource_id, operation_id, mode)
    select resource_id, ${operation_id}::uuid, mode
    from jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) as wanted(resource_id text, mode text)`)

/** Gives back what an operation holds or waits for, and says what it held. Whoever waited for it is served by the next turn of the sweeper. */
export const releaseLeases = async (tx: Tx, operation_id: string): Promise<string[]> => {
  const released = await tx
    .delete(leases)
    .where(eq(leases.operation_id, operation_id))
    .returning({ resource_id: leases.resource_id })
  await tx.delete(lease_waits).where(eq(lease_waits.operation_id, operation_id))
  return released.map(({ resource_id }) => resource_id).sort()
}

/** The leases that an operation needs and has given back. */
export const listReleased = async (tx: Tx, operation_id: string, wanted: readonly Lease[]): Promise<Lease[]> => {
  const held = await tx
    .select({ resource_id: leases.resource_id })
    .from(leases)
    .where(eq(leases.operation_id, operation_id))
  return wanted.filter((lease) => !held.some(({ resource_id }) => resource_id === lease.resource_id))
}

/** Why an operation does not begin: shown to people. */
export const blockedOnLeases = (blockers: readonly Blocker[], since: string): BlockedOn[] =>
  blockers.slice(0, 20).map(({ operation_id, resource_id, title }) => ({
    kind: 'lease',
    id: resource_id,
    href: `/v1/operations/${operation_id}`,
    since,
    message: `"${title}" holds or waits for ${resource_id}.`,
  }))

/** Grants what has become free, the oldest waiter first; each in a transaction of its own. Returns how many begin. */
export const grantLeases = async (db: Db, { deadline_s }: { deadline_s: number }): Promise<number> => {
  const waiting = await db
    .select({ operation_id: lease_waits.operation_id })
    .from(lease_waits)
    .orderBy(asc(lease_waits.since), asc(lease_waits.operation_id))
    .limit(WAITERS)
  let granted = 0
  for (const { operation_id } of waiting)
    if (await db.transaction((tx) => grantOne(tx, operation_id, deadline_s))) granted += 1
  return granted
}

const grantOne = async (tx: Tx, operation_id: string, deadline_s: number): Promise<boolean> => {
  await tx
    .select({ control: operation_control.control })
    .from(operation_control)
    .where(eq(operation_control.operation_id, operation_id))
    .for('update')
  await tx.execute(sql`select pg_advisory_xact_lock(${LOCK})`)
  const wait = await tx
    .select({ wanted: lease_waits.wanted })
    .from(lease_waits)
    .where(eq(lease_waits.operation_id, operation_id))
    .then(first)
  if (!wait) return false
  const { wanted } = wait
  if ((await listBlockers(tx, wanted)).length > 0 || (await listWaiting(tx, wanted, operation_id)).length > 0)
    return false
  await tx.delete(lease_waits).where(eq(lease_waits.operation_id, operation_id))
  await insertLeases(tx, operation_id, wanted)
  await tx
    .update(operation_control)
    .set({ lease_epoch: sql`${operation_control.lease_epoch} + 1` })
    .where(eq(operation_control.operation_id, operation_id))
  await tx
    .update(operation_commands)
    .set({ next_try_at: null, not_after: sql`clock_timestamp() + make_interval(secs => ${deadline_s})` as never })
    .where(
      and(
        eq(operation_commands.operation_id, operation_id),
        eq(operation_commands.kind, 'start'),
        eq(operation_commands.status, 'pending'),
      ),
    )
  await bumpRevision(tx, operation_id)
  await stateFacts(tx, operation_id, {
    events: [
      { type: 'lease.granted', actor: SYSTEM, data: { resources: wanted.map(({ resource_id }) => resource_id) } },
    ],
    set: { blocked_on: [] },
  })
  return true
}
