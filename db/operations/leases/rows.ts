import { and, asc, eq, isNull, ne, or, sql } from 'drizzle-orm'
import type { Actor, BlockedOn } from '../../../apps/shared/contracts/operations/graph.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { type Db, equals, first, type Queryable, type Tx, together, updateRows } from '../../client.ts'
import { lockOf } from '../../locks.ts'
import { tellEngine } from '../commands/rows.ts'
import { eachText } from '../expressions.ts'
import { bumpRevision, ENGINE, SYSTEM, stateFacts, type TimelineEvent } from '../facts/state.ts'
import {
  type LeaseState,
  lease_waits,
  leases,
  operation_commands,
  operation_control,
  operations,
  plans,
} from '../tables/index.ts'

/**
 * Who may change which resources (operations.md 3.5). An operation holds its leases from start to end. They are free
 * before its time to begin, while a gate that releases them or holds back everything waits, or after a person returned
 * them during a pause. An operation that finds them taken waits in `lease_waits` until they are granted, the oldest
 * first; its start, or its next claim, is held back. One that is paused keeps its place in the line, but is passed over
 * until it is resumed.
 */
export type Lease = { resource_id: string; mode: 'exclusive' | 'shared' }
export type Blocker = { resource_id: string; operation_id: string; title: string; mode: string }

/** Serializes taking and granting, so that no two see the same leases as free. */
const lockLeases = (tx: Tx) => tx.execute(sql`select ${lockOf('leases')}`)
const SHOWN = 100

/** One lease for each resource: an exclusive one includes a shared one. */
const strongest = (all: readonly Lease[]): Lease[] => {
  const modes = new Map<string, Lease['mode']>()
  for (const { resource_id, mode } of all) if (modes.get(resource_id) !== 'exclusive') modes.set(resource_id, mode)
  return [...modes].map(([resource_id, mode]) => ({ resource_id, mode }))
}

/** Returns those of the leases that these do not include. */
const without = (wanted: readonly Lease[], these: readonly Lease[]): Lease[] => {
  const modes = new Map(these.map(({ resource_id, mode }) => [resource_id, mode]))
  return wanted.filter(({ resource_id, mode }) => ![mode, 'exclusive'].includes(modes.get(resource_id) ?? ''))
}

/** The other holders of leases that exclude these: two on one resource conflict unless both are shared. */
export const listBlockers = async (
  db: Queryable,
  wanted: readonly Lease[],
  operation_id?: string,
): Promise<Blocker[]> => {
  if (wanted.length === 0) return []
  const ids = wanted.map(({ resource_id }) => resource_id)
  const exclusive = wanted.flatMap(({ resource_id, mode }) => (mode === 'exclusive' ? [resource_id] : []))
  return db
    .select({ ...pick(leases, 'resource_id', 'operation_id'), title: operations.title, mode: leases.mode })
    .from(leases)
    .innerJoin(operations, eq(operations.operation_id, leases.operation_id))
    .where(
      and(
        sql`${leases.resource_id} in ${eachText(ids)}`,
        operation_id === undefined ? undefined : ne(leases.operation_id, operation_id),
        or(eq(leases.mode, 'exclusive'), sql`${leases.resource_id} in ${eachText(exclusive)}`),
      ),
    )
    .orderBy(asc(leases.resource_id), asc(leases.operation_id))
    .limit(SHOWN)
}

const notPaused = sql`not exists (select from ${operation_control} c where c.operation_id = ${lease_waits.operation_id} and c.control = 'pause')`

/** Earlier waiters for leases that exclude these: no one overtakes them. */
const listWaiting = async (db: Queryable, wanted: readonly Lease[], before?: string): Promise<Blocker[]> => {
  const rows = await db
    .select({ operation_id: lease_waits.operation_id, title: operations.title, wanted: lease_waits.wanted })
    .from(lease_waits)
    .innerJoin(operations, eq(operations.operation_id, lease_waits.operation_id))
    .where(
      and(
        notPaused,
        before === undefined
          ? undefined
          : sql`(${lease_waits.since}, ${lease_waits.operation_id}) < (select w.since, w.operation_id from ${lease_waits} w where w.operation_id = ${before})`,
      ),
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

/** All resources of these leases that others hold, or wait for, in a mode that excludes them. */
export const listTaken = async (db: Queryable, wanted: readonly Lease[]): Promise<string[]> => {
  const { rows } = await db.execute<{ resource_id: string }>(sql`
    with wanted as materialized (
      select * from jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) as w(resource_id text, mode text)),
    others as (
      select ${leases.resource_id}, ${leases.mode} from ${leases} where ${leases.resource_id} in (select resource_id from wanted)
      union all select o.resource_id, o.mode from ${lease_waits},
        jsonb_to_recordset(${lease_waits.wanted}) as o(resource_id text, mode text) where ${notPaused})
    select distinct resource_id from wanted join others using (resource_id)
    where 'exclusive' in (wanted.mode, others.mode)`)
  return rows.map(({ resource_id }) => resource_id)
}

/**
 * Takes all leases or none. Returns the blockers; with `queue`, the operation waits for the leases from now on, which
 * holds its start command back (commands.ts). `later`: it takes them when its time to begin has come.
 */
export const takeLeases = async (
  tx: Tx,
  operation_id: string,
  wanted: readonly Lease[],
  { queue, later = false }: { queue: boolean; later?: boolean },
): Promise<Blocker[]> => {
  if (wanted.length === 0 || (queue && later)) return []
  await lockLeases(tx)
  const blockers = [...(await listBlockers(tx, wanted, operation_id)), ...(await listWaiting(tx, wanted))].slice(
    0,
    SHOWN,
  )
  if (later) return blockers
  if (blockers.length === 0) await insertLeases(tx, operation_id, wanted)
  else if (queue) await tx.insert(lease_waits).values({ operation_id, wanted: [...wanted] })
  return blockers
}

const insertLeases = (tx: Tx, operation_id: string, wanted: readonly Lease[]) =>
  tx.execute(sql`
    insert into ${leases} (resource_id, operation_id, mode)
    select resource_id, ${operation_id}::uuid, mode
    from jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) as wanted(resource_id text, mode text)
    on conflict (resource_id, operation_id) do update set mode = excluded.mode`)

/** Releases an operation's leases and waits; returns the leases it held. The sweeper's next turn serves waiters. */
export const releaseLeases = async (tx: Tx, operation_id: string): Promise<string[]> => {
  const [released] = await together(
    tx.delete(leases).where(eq(leases.operation_id, operation_id)).returning({ resource_id: leases.resource_id }),
    tx.delete(lease_waits).where(eq(lease_waits.operation_id, operation_id)),
  )
  return released.map(({ resource_id }) => resource_id).sort()
}

/** What an operation may do now, the state of its leases, and all that it needs. */
const readControl = (tx: Tx, operation_id: string) =>
  tx
    .select({
      control: operation_control.control,
      state: operation_control.lease_state,
      needed: sql<Lease[]>`coalesce(${plans.document} -> 'leases', '[]') || ${operation_control.more_leases}`,
    })
    .from(operation_control)
    .innerJoin(operations, eq(operations.operation_id, operation_control.operation_id))
    .innerJoin(plans, eq(plans.plan_id, operations.plan_id))
    .where(eq(operation_control.operation_id, operation_id))
    .then(first)
    .then((row) => row && { ...row, needed: strongest(row.needed) })

const readNeeded = async (tx: Tx, operation_id: string) => (await readControl(tx, operation_id))?.needed ?? []

/** Takes the leases that a patch needs in addition, now or together with the others. Returns the blockers. */
export const takeMoreLeases = async (
  tx: Tx,
  { operation_id, lease_state }: { operation_id: string; lease_state: LeaseState },
  wanted: readonly Lease[],
): Promise<Blocker[]> => {
  const more = without(wanted, await readNeeded(tx, operation_id))
  if (more.length === 0) return []
  await updateRows(tx, { operation_id }, operation_control, {
    more_leases: sql`${operation_control.more_leases} || ${JSON.stringify(more)}::jsonb`,
  })
  const waiting = await tx
    .select({ wanted: lease_waits.wanted })
    .from(lease_waits)
    .where(eq(lease_waits.operation_id, operation_id))
    .then(first)
  if (!waiting) return lease_state === 'held' ? takeLeases(tx, operation_id, more, { queue: false }) : []
  await updateRows(tx, { operation_id }, lease_waits, { wanted: strongest([...waiting.wanted, ...more]) })
  return []
}

/** The leases that an operation needs and has released. */
export const listReleased = async (tx: Tx, operation_id: string, needed?: readonly Lease[]): Promise<Lease[]> => {
  const wanted = needed ?? (await readNeeded(tx, operation_id))
  const held = await tx
    .select(pick(leases, 'resource_id', 'mode'))
    .from(leases)
    .where(eq(leases.operation_id, operation_id))
  return without(wanted, held)
}

/** Why an operation does not continue, for the engine's report; readers see who is in the way now (operations/read.ts). */
const blockedOnLeases = (blockers: readonly Blocker[]): BlockedOn[] =>
  blockers
    .slice(0, 20)
    .map(({ operation_id, resource_id, title }) => ({
      kind: 'lease',
      id: resource_id,
      href: `/v1/operations/${operation_id}`,
      message: `"${title}" holds or waits for ${resource_id}.`,
    }))

/**
 * Grants free leases, the oldest waiter first, each in a separate transaction. Returns how many operations start.
 * Waiters for leases that are held are not asked: any number of them may be older than one whose leases are free.
 */
export const grantLeases = async (db: Db, { deadline_s }: { deadline_s: number }): Promise<number> => {
  const waiting = await db
    .select({ operation_id: lease_waits.operation_id })
    .from(lease_waits)
    .where(
      and(
        notPaused,
        sql`not exists (select from jsonb_to_recordset(${lease_waits.wanted}) as wanted(resource_id text, mode text)
        join ${leases} on ${leases.resource_id} = wanted.resource_id
        where ${leases.operation_id} <> ${lease_waits.operation_id} and (${leases.mode} = 'exclusive' or wanted.mode = 'exclusive'))`,
      ),
    )
    .orderBy(asc(lease_waits.since), asc(lease_waits.operation_id))
  let granted = 0
  for (const { operation_id } of waiting)
    if (await db.transaction((tx) => grantOne(tx, operation_id, deadline_s))) granted += 1
  return granted
}

/**
 * Releases the leases while no node can start before a gate is decided, and takes them again before one does. The
 * caller holds the control row. `none`: there is no lease to take, or it is too late; the caller need not ask again.
 */
export const moveLeases = async (
  tx: Tx,
  operation_id: string,
  to: 'release' | 'take',
): Promise<{ state: 'held' | 'released' | 'waiting' | 'none'; blocked_on: BlockedOn[]; events: TimelineEvent[] }> => {
  const row = await readControl(tx, operation_id)
  const none = { state: 'none' as const, blocked_on: [], events: [] }
  if (!row || row.needed.length === 0) return none
  if (to === 'release') {
    if (row.control === 'cancel' || !(await mayRelease(tx, operation_id))) return none
    const resources = row.state === 'held' ? await releaseLeases(tx, operation_id) : []
    if (row.state === 'held') await setLeaseState(tx, operation_id, 'released')
    const events = resources.length > 0 ? [{ type: 'lease.released', actor: ENGINE, data: { resources } }] : []
    return { state: 'released', blocked_on: [], events }
  }
  if (row.state === 'held') return { state: 'held', blocked_on: [], events: [] }
  const wanted = await listReleased(tx, operation_id, row.needed)
  const queued = row.state === 'waiting'
  const blockers = queued
    ? await listBlockers(tx, wanted, operation_id)
    : await takeLeases(tx, operation_id, wanted, { queue: true })
  if (queued || blockers.length > 0) {
    await setLeaseState(tx, operation_id, 'waiting')
    const events = queued ? [] : [{ type: 'lease.waiting', actor: ENGINE, data: { blockers } }]
    return { state: 'waiting', blocked_on: blockedOnLeases(blockers), events }
  }
  return { state: 'held', blocked_on: [], events: await leasesTaken(tx, operation_id, wanted, ENGINE) }
}

/** A gate at the entry releases leases only before anything has begun, unless a policy says more. */
const mayRelease = async (tx: Tx, operation_id: string): Promise<boolean> => {
  const { rows } = await tx.execute<{ may: boolean }>(sql`
    select not exists (select from operations.node_attempts where operation_id = ${operation_id})
      or exists (select from operations.gates where operation_id = ${operation_id} and policy ->> 'lease_policy' = 'release') as may`)
  return rows[0]?.may ?? false
}

/** The leases are held again. A target that has moved meanwhile is the business of its claim and of the watch (3.4). */
const leasesTaken = async (
  tx: Tx,
  operation_id: string,
  wanted: readonly Lease[],
  actor: Actor,
): Promise<TimelineEvent[]> => {
  await setLeaseState(tx, operation_id, 'held')
  const resources = wanted.map(({ resource_id }) => resource_id)
  return [{ type: 'lease.granted', actor, data: { resources } }]
}

export const setLeaseState = (tx: Tx, operation_id: string, lease_state: LeaseState) =>
  updateRows(tx, { operation_id }, operation_control, {
    lease_state,
    ...(lease_state === 'held' && { lease_epoch: sql`${operation_control.lease_epoch} + 1` }),
  })

/** When its window lets an operation begin, from which on its deadline counts; null without one. */
const notBefore = sql`(${operations.constraints} ->> 'not_before')::timestamptz`

const grantOne = async (tx: Tx, operation_id: string, deadline_s: number): Promise<boolean> => {
  // The operation's rows before leases, in the order in which every other caller locks them.
  await tx.execute(sql`select from ${operation_control} where operation_id = ${operation_id} for update`)
  await tx.execute(sql`select from ${operations} where operation_id = ${operation_id} for update`)
  await lockLeases(tx)
  const wait = await tx
    .select(pick(lease_waits, 'wanted', 'since'))
    .from(lease_waits)
    .where(and(eq(lease_waits.operation_id, operation_id), notPaused))
    .then(first)
  if (!wait) return false
  const { wanted, since } = wait
  if (
    (await listBlockers(tx, wanted, operation_id)).length > 0 ||
    (await listWaiting(tx, wanted, operation_id)).length > 0
  )
    return false
  await tx.delete(lease_waits).where(eq(lease_waits.operation_id, operation_id))
  await insertLeases(tx, operation_id, wanted)
  const taken = await leasesTaken(tx, operation_id, wanted, SYSTEM)
  const sent = await tx
    .update(operation_commands)
    .set({
      next_try_at: sql`case when ${operation_commands.kind} = 'start' then clock_timestamp() else ${operation_commands.next_try_at} end`,
      not_after: sql`clock_timestamp() + make_interval(secs => ${deadline_s})`,
    })
    .where(
      and(
        equals(operation_commands, { operation_id, class: 'start', status: 'pending' }),
        isNull(operation_commands.not_after),
      ),
    )
    .returning({ kind: operation_commands.kind })
  if (sent.some(({ kind }) => kind === 'start'))
    await updateRows(tx, { operation_id }, operations, {
      deadline_at: sql`${operations.deadline_at} + (greatest(clock_timestamp(), ${notBefore}) - greatest(${since}::timestamptz, ${notBefore}))`,
    })
  // A running operation is notified; its start was never held back.
  else await tellGranted(tx, operation_id)
  await bumpRevision(tx, operation_id)
  await stateFacts(tx, operation_id, { events: taken, set: { blocked_on: [] } })
  return true
}

const tellGranted = async (tx: Tx, operation_id: string): Promise<void> => {
  const [row] = await tx
    .select({ lease_epoch: operation_control.lease_epoch })
    .from(operation_control)
    .where(eq(operation_control.operation_id, operation_id))
  await tellEngine(tx, operation_id, 'lease_granted', { lease_epoch: row?.lease_epoch ?? 0 })
}
