import { and, asc, eq, sql } from 'drizzle-orm'
import { DEFAULT_RULES, type NotifyRules } from '../../../apps/shared/contracts/notifications/rules.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { type Db, first, type Queryable, type Tx } from '../../client.ts'
import { NOW } from '../../rows.ts'
import { iso } from '../expressions.ts'
import { notify_deliveries, notify_destinations, notify_notices, notify_rules } from '../tables/index.ts'

export type Destination = NonNullable<Awaited<ReturnType<typeof getDestination>>>

const columns = {
  ...pick(notify_destinations, 'destination_id', 'owner', 'kind', 'name', 'session_id', 'address', 'shown', 'secret'),
  ...pick(notify_destinations, 'previous_secret', 'status', 'status_reason', 'tries'),
  previous_until: iso(notify_destinations.previous_until),
  created_at: iso(notify_destinations.created_at),
  removed_at: iso(notify_destinations.removed_at),
}

/** Also creates its owner's rules if there are none yet. */
export const insertDestination = async (
  tx: Tx,
  given: Omit<typeof notify_destinations.$inferInsert, 'created_at' | 'tries'>,
): Promise<void> => {
  await tx.insert(notify_destinations).values(given)
  await tx.insert(notify_rules).values({ owner: given.owner, rules: DEFAULT_RULES }).onConflictDoNothing()
}

/** How long a removed mail address still hears of its account: the person who removed it may be a thief. */
const REMOVED_DAYS = 7
const kept = sql`${notify_destinations.removed_at} is null`
const recent = sql`${notify_destinations.removed_at} > clock_timestamp() - make_interval(days => ${REMOVED_DAYS})`

export const getDestination = (db: Queryable, destination_id: string) =>
  db.select(columns).from(notify_destinations).where(eq(notify_destinations.destination_id, destination_id)).then(first)

/** Locks a destination, for changes to it and to its queued messages. */
export const lockDestination = (tx: Tx, destination_id: string) =>
  tx
    .select(columns)
    .from(notify_destinations)
    .where(and(eq(notify_destinations.destination_id, destination_id), kept))
    .for('update')
    .then(first)

export const listDestinations = (db: Queryable, owner: string) =>
  db
    .select(columns)
    .from(notify_destinations)
    .where(and(eq(notify_destinations.owner, owner), kept))
    .orderBy(asc(notify_destinations.destination_id))

/** Whether the same address was confirmed again after this row was removed: only its newest row hears, so it is told once. */
const again = sql`exists (select from ${notify_destinations} n where n.owner = ${notify_destinations.owner}
  and n.kind = ${notify_destinations.kind} and n.shown = ${notify_destinations.shown}
  and n.destination_id > ${notify_destinations.destination_id} and (n.status = 'active' or n.removed_at is not null))`

/** The destinations that hear of events of an account: the active ones, and mail addresses removed within a week. */
export const listHearing = (db: Queryable, owner: string) =>
  db
    .select(pick(notify_destinations, 'destination_id', 'owner'))
    .from(notify_destinations)
    .where(and(eq(notify_destinations.owner, owner), sql`(status = 'active' or (${recent} and not ${again}))`))

export const moveDestination = (
  tx: Tx,
  destination_id: string,
  set: Partial<
    Pick<Destination, 'secret' | 'previous_secret' | 'previous_until' | 'status' | 'status_reason' | 'tries'>
  >,
) => tx.update(notify_destinations).set(set).where(eq(notify_destinations.destination_id, destination_id))

/** The browser of this session. */
export const getDevice = (db: Queryable, session_id: string) =>
  db.select(columns).from(notify_destinations).where(eq(notify_destinations.session_id, session_id)).then(first)

/**
 * Assigns a browser to the session that subscribed it last, whoever had it before; removes the session's other browser.
 * A new owner receives all notices again.
 */
export const saveDevice = async (
  tx: Tx,
  given: Omit<typeof notify_destinations.$inferInsert, 'created_at' | 'tries' | 'kind' | 'status'> & {
    session_id: string
  },
): Promise<void> => {
  const { destination_id, owner, session_id } = given
  await tx.insert(notify_rules).values({ owner, rules: DEFAULT_RULES }).onConflictDoNothing()
  // One at a time per owner, so that a session has only one browser.
  await tx.select(pick(notify_rules, 'owner')).from(notify_rules).where(eq(notify_rules.owner, owner)).for('update')
  const other = sql`${notify_destinations.session_id} = ${session_id} and ${notify_destinations.destination_id} <> ${destination_id}`
  await tx.delete(notify_destinations).where(other)
  await tx.delete(notify_notices).where(
    sql`${notify_notices.destination_id} = ${destination_id} and exists (select 1 from ${notify_destinations}
        where ${notify_destinations.destination_id} = ${destination_id} and ${notify_destinations.owner} <> ${owner})`,
  )
  const state = { ...given, kind: 'push' as const, status: 'active' as const, status_reason: null }
  await tx
    .insert(notify_destinations)
    .values(state)
    .onConflictDoUpdate({ target: notify_destinations.destination_id, set: state })
}

/** Deletes the browser of an ended session. */
export const deleteDevice = (db: Db | Tx, session_id: string) =>
  db.delete(notify_destinations).where(eq(notify_destinations.session_id, session_id))

/**
 * Removes a destination. The row of a confirmed mail address stays for a week, for events of the account alone; it is
 * disabled, so that older builds send no decisions there.
 */
export const removeDestination = async (tx: Tx, { destination_id, kind, status }: Destination): Promise<void> => {
  if (kind !== 'email' || status !== 'active') await deleteDestination(tx, destination_id)
  else
    await tx
      .update(notify_destinations)
      .set({ removed_at: NOW, status: 'disabled', status_reason: 'removed' })
      .where(eq(notify_destinations.destination_id, destination_id))
}

export const pruneRemoved = (db: Db) => db.delete(notify_destinations).where(sql`not ${kept} and not ${recent}`)

export const deleteDestination = (tx: Tx, destination_id: string) =>
  tx.delete(notify_destinations).where(eq(notify_destinations.destination_id, destination_id))

/** How many codes and tests this owner requested within the last day. */
export const countAsked = (db: Queryable, owner: string): Promise<number> =>
  db.$count(
    notify_deliveries,
    sql`${notify_deliveries.owner} = ${owner} and ${notify_deliveries.purpose} in ('code', 'test')
      and ${notify_deliveries.created_at} > clock_timestamp() - interval '1 day'`,
  )

export const getRules = async (db: Queryable, owner: string): Promise<NotifyRules> => {
  const [row] = await db.select(pick(notify_rules, 'rules')).from(notify_rules).where(eq(notify_rules.owner, owner))
  return row?.rules ?? DEFAULT_RULES
}

export const saveRules = (tx: Tx, owner: string, rules: NotifyRules) =>
  tx
    .insert(notify_rules)
    .values({ owner, rules })
    .onConflictDoUpdate({ target: notify_rules.owner, set: { rules, updated_at: NOW } })

/** Owners not checked recently, the longest first; each goes to one process. */
export const claimOwners = (db: Db, every_s: number, limit: number) =>
  db
    .update(notify_rules)
    .set({ looked_at: NOW })
    .where(
      sql`${notify_rules.owner} in (select owner from operations.notify_rules
        where looked_at is null or looked_at < clock_timestamp() - make_interval(secs => ${every_s})
        order by looked_at nulls first limit ${limit} for update skip locked)`,
    )
    .returning(pick(notify_rules, 'owner', 'rules'))
