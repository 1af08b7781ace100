import { and, desc, eq, inArray, sql } from 'drizzle-orm'
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core'
import { SECURITY_EVENTS } from '../../../apps/shared/contracts/notifications/notifications.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { uuidv7 } from '../../../apps/shared/ids.ts'
import { type Db, equals, first, type Queryable, type Tx, updateRows } from '../../client.ts'
import { NOW } from '../../rows.ts'
import { iso, type Newest, olderThan } from '../expressions.ts'
import {
  ADMINISTRATORS,
  type DecisionKey,
  notify_deliveries,
  notify_destinations,
  notify_notices,
  notify_security,
  type SecurityFact,
} from '../tables/index.ts'

export type Delivery = Awaited<ReturnType<typeof listDeliveries>>[number]
export type Leased = Awaited<ReturnType<typeof leaseDeliveries>>[number]
export type NewNotice = Omit<typeof notify_notices.$inferInsert, 'destination_id' | 'delivery_id'>

/** Longer than any channel takes to send a message. */
const LEASE_S = 60
const KEPT_DAYS = 30

const columns = {
  ...pick(
    notify_deliveries,
    'delivery_id',
    'destination_id',
    'owner',
    'purpose',
    'fact',
    'decision',
    'state',
    'attempts',
    'last_error',
  ),
  next_at: iso(notify_deliveries.next_at),
  created_at: iso(notify_deliveries.created_at),
  ended_at: iso(notify_deliveries.ended_at),
}
const inSeconds = (seconds: number) => sql`clock_timestamp() + make_interval(secs => ${seconds})`

/** Queues a message that is due now: a code, a test, or an account event. */
export const queueDelivery = (
  tx: Tx,
  { destination_id, owner }: { destination_id: string; owner: string },
  purpose: 'code' | 'test' | 'security',
  fact: SecurityFact | null = null,
) => tx.insert(notify_deliveries).values({ delivery_id: uuidv7(), destination_id, owner, purpose, fact, next_at: NOW })

/** Of a newer relay: the fact waits for a process that has words for it. */
const known = sql`fact ->> 'event' = any(${sql.param([...SECURITY_EVENTS])}::text[])`

/** Whether facts wait that the relay added, and whether any is for the administrators. */
export const waitingSecurity = async (db: Queryable): Promise<{ any: boolean; administrators: boolean }> => {
  const { rows } = await db.execute<{ any: boolean; administrators: boolean }>(
    sql`select count(*) > 0 as "any", coalesce(bool_or(user_id = ${ADMINISTRATORS}), false) as administrators
      from operations.notify_security where ${known}`,
  )
  return rows[0] ?? { any: false, administrators: false }
}

/**
 * Takes these facts, the oldest first, those for the administrators only if asked; they are deleted when the caller's
 * transaction commits. Another taker waits for that, so that it counts the messages made of them against the limit.
 */
export const takeSecurity = (tx: Tx, limit: number, { administrators }: { administrators: boolean }) =>
  tx
    .delete(notify_security)
    .where(
      sql`${notify_security.key} in (select key from operations.notify_security
        where ${known} and (${administrators} or user_id <> ${ADMINISTRATORS}) order by added_at limit ${limit} for update)`,
    )
    .returning(pick(notify_security, 'user_id', 'fact'))

/** How many messages about this kind of event one destination received within the last day. */
export const countSecurity = (db: Queryable, destination_id: string, event: SecurityFact['event']): Promise<number> =>
  db.$count(
    notify_deliveries,
    sql`${notify_deliveries.destination_id} = ${destination_id} and ${notify_deliveries.purpose} = 'security'
      and ${notify_deliveries.fact} ->> 'event' = ${event}
      and ${notify_deliveries.created_at} > clock_timestamp() - interval '1 day'`,
  )

/**
 * Queues these notices for a destination, each only once. They join or create an unsent message, due after `gather_s`
 * and no sooner than `digest_s` after the last one. The caller holds the destination's row. Returns how many are new.
 */
export const queueNotices = async (
  tx: Tx,
  { destination_id, owner }: { destination_id: string; owner: string },
  notices: readonly NewNotice[],
  { gather_s, digest_s }: { gather_s: number; digest_s: number },
): Promise<number> => {
  const here = eq(notify_deliveries.destination_id, destination_id)
  const open = await tx
    .select(pick(notify_deliveries, 'delivery_id'))
    .from(notify_deliveries)
    .where(and(here, sql`purpose = 'notices' and state = 'queued' and attempts = 0 and leased_until is null`))
    .limit(1)
    .for('update')
    .then(first)
  const delivery_id = open?.delivery_id ?? uuidv7()
  const added = await tx
    .insert(notify_notices)
    .values(notices.map((notice) => ({ ...notice, destination_id, delivery_id })))
    .onConflictDoNothing()
    .returning(pick(notify_notices, 'object'))
  if (added.length === 0) return 0
  const last = sql`(select max(coalesce(ended_at, created_at)) from operations.notify_deliveries
    where destination_id = ${destination_id} and delivery_id <> ${delivery_id} and purpose = 'notices' and state <> 'obsolete')`
  const next_at = sql`greatest(${inSeconds(gather_s)}, ${last} + make_interval(secs => ${digest_s}))`
  await tx
    .insert(notify_deliveries)
    .values({ delivery_id, destination_id, owner, purpose: 'notices', next_at })
    .onConflictDoUpdate({
      target: notify_deliveries.delivery_id,
      // The open one may be put off until quiet hours end, and these notices not wait for that.
      set: { next_at: sql`least(${notify_deliveries.next_at}, excluded.next_at)` },
    })
  return added.length
}

/** More new decisions than this share one notification. */
const MOST_ALONE = 5

/**
 * Queues these notices for a device, each only once ever. Each gets its own notification, because its outcome replaces
 * it; too many share one. Returns how many are new.
 */
export const queuePushes = async (
  tx: Tx,
  { destination_id, owner }: { destination_id: string; owner: string },
  notices: readonly NewNotice[],
  gather_s: number,
): Promise<number> => {
  const added = await tx
    .insert(notify_notices)
    .values(notices.map((notice) => ({ ...notice, destination_id, delivery_id: uuidv7() })))
    .onConflictDoNothing()
    .returning(pick(notify_notices, 'delivery_id'))
  const ids = added.map(({ delivery_id }) => delivery_id)
  const [one] = ids
  if (one === undefined) return 0
  const together = ids.length > MOST_ALONE
  if (together)
    await tx.update(notify_notices).set({ delivery_id: one }).where(inArray(notify_notices.delivery_id, ids))
  await tx
    .insert(notify_deliveries)
    .values(
      (together ? [one] : ids).map((delivery_id) => ({
        ...{ delivery_id, destination_id, owner },
        purpose: 'notices' as const,
        next_at: inSeconds(gather_s),
      })),
    )
  return ids.length
}

/** Records that a device shows this message, which is about one decision. */
export const markShown = (tx: Tx, delivery_id: string) =>
  tx.update(notify_notices).set({ shown: true }).where(eq(notify_notices.delivery_id, delivery_id))

/** Whether any device shows a decision. */
export const anyShown = async (db: Queryable): Promise<boolean> =>
  (await db.select({ one: sql`1` }).from(notify_notices).where(sql`${notify_notices.shown}`).limit(1)).length > 0

/** The decisions that a device shows. */
export const listShown = (db: Queryable, destination_id: string) =>
  db
    .selectDistinct(pick(notify_notices, 'operation_id', 'object', 'round'))
    .from(notify_notices)
    .where(and(eq(notify_notices.destination_id, destination_id), notify_notices.shown))

/** Replaces a device's notification of a decision with the outcome, once; without `told`, another already did. */
export const queueOutcome = async (
  tx: Tx,
  { destination_id, owner }: { destination_id: string; owner: string },
  decision: DecisionKey,
  told: boolean,
): Promise<void> => {
  const { operation_id, object, round } = decision
  const closed = await tx
    .update(notify_notices)
    .set({ shown: false })
    .where(
      and(
        eq(notify_notices.destination_id, destination_id),
        eq(notify_notices.operation_id, operation_id),
        eq(notify_notices.object, object),
        eq(notify_notices.round, round),
        notify_notices.shown,
      ),
    )
    .returning(pick(notify_notices, 'round'))
  if (told && closed.length > 0)
    await tx
      .insert(notify_deliveries)
      .values({ ...{ delivery_id: uuidv7(), destination_id, owner, decision }, purpose: 'outcome', next_at: NOW })
}

/** How many messages to one destination are sent at once. */
const MOST_TO_ONE = 2

/**
 * Leases due messages that no process is sending. All processes together send few to one destination at once, and at most
 * `per_kind` of one kind: a receiver or a mail server that hangs leaves the others their share.
 */
export const leaseDeliveries = (db: Db, { limit, per_kind }: { limit: number; per_kind: number }) =>
  db
    .update(notify_deliveries)
    .set({
      leased_until: inSeconds(LEASE_S),
      tried_since: sql`coalesce(${notify_deliveries.tried_since}, clock_timestamp())`,
    })
    .where(
      sql`${notify_deliveries.delivery_id} in (with due as (
          select delivery_id, d.next_at, coalesce(n.kind, '') as kind, coalesce(d.leased_until > clock_timestamp(), false) as sending,
            row_number() over (partition by d.destination_id order by d.leased_until > clock_timestamp() desc nulls last, d.next_at) as nth
          from operations.notify_deliveries d left join operations.notify_destinations n using (destination_id)
          where d.state = 'queued' and d.next_at <= clock_timestamp()),
        fair as (select *, row_number() over (partition by kind order by sending desc, next_at) as of_kind
          from due where sending or nth <= ${MOST_TO_ONE})
        select x.delivery_id from operations.notify_deliveries x join fair using (delivery_id)
        where not sending and of_kind <= ${per_kind} and x.state = 'queued'
          and (x.leased_until is null or x.leased_until < clock_timestamp())
        order by x.next_at limit ${limit} for update of x skip locked)`,
    )
    .returning({ ...columns, tried_since: sql<string>`${iso(notify_deliveries.tried_since)}` })

const TRIED = { attempts: sql`${notify_deliveries.attempts} + 1` }

/** Ends a queued message; an obsolete one was not attempted. */
export const endDelivery = (
  tx: Tx,
  delivery_id: string,
  state: 'sent' | 'dead' | 'obsolete',
  last_error: string | null = null,
) => moveDelivery(tx, delivery_id, { ...{ state, last_error, ended_at: NOW }, ...(state !== 'obsolete' && TRIED) })

/** Locks a message, in order to retry it. */
export const lockDelivery = (tx: Tx, delivery_id: string) =>
  tx.select(columns).from(notify_deliveries).where(equals(notify_deliveries, { delivery_id })).for('update').then(first)

/** Revives an abandoned message: due again under its id, or obsolete. Returns `undefined` if it is not abandoned. */
export const reviveDelivery = (tx: Tx, delivery_id: string, state: 'queued' | 'obsolete') =>
  tx
    .update(notify_deliveries)
    .set({ state, ...(state === 'queued' && { next_at: inSeconds(0), ended_at: null }) })
    .where(equals(notify_deliveries, { delivery_id, state: 'dead' }))
    .returning(columns)
    .then(first)

/** Every abandoned message, the oldest first; `shown` is null if its destination no longer exists. */
export const listDead = (db: Queryable) =>
  db
    .select({ ...columns, ...pick(notify_destinations, 'kind', 'shown') })
    .from(notify_deliveries)
    .leftJoin(notify_destinations, eq(notify_destinations.destination_id, notify_deliveries.destination_id))
    .where(eq(notify_deliveries.state, 'dead'))
    .orderBy(notify_deliveries.created_at)

/** Returns a message to the queue, due after this many seconds; `error`: an attempt failed; `untried`: none was made. */
export const putOff = (
  tx: Tx,
  delivery_id: string,
  seconds: number,
  { error, untried }: { error?: string; untried?: true } = {},
) =>
  moveDelivery(tx, delivery_id, {
    next_at: inSeconds(seconds),
    ...(error !== undefined && { last_error: error, ...TRIED }),
    ...(untried && { tried_since: null }),
  })

const moveDelivery = (tx: Tx, delivery_id: string, set: PgUpdateSetSource<typeof notify_deliveries>) =>
  updateRows(tx, { delivery_id, state: 'queued' }, notify_deliveries, { ...set, leased_until: null })

export const listNotices = (db: Queryable, delivery_ids: readonly string[]) =>
  db
    .select(pick(notify_notices, 'delivery_id', 'operation_id', 'object', 'round', 'escalation', 'event', 'urgent'))
    .from(notify_notices)
    .where(inArray(notify_notices.delivery_id, [...delivery_ids]))
    .orderBy(notify_notices.operation_id, notify_notices.object)

export const listDeliveries = (db: Queryable, { where, after, limit }: Newest) =>
  db
    .select(columns)
    .from(notify_deliveries)
    .where(and(...where, olderThan(notify_deliveries.created_at, notify_deliveries.delivery_id, after)))
    .orderBy(desc(notify_deliveries.created_at), desc(notify_deliveries.delivery_id))
    .limit(limit)

/** Deletes messages that ended long ago, notices unless their gate waits, and account facts that were never taken. */
export const pruneDeliveries = async (db: Db): Promise<void> => {
  await db.delete(notify_security).where(sql`${notify_security.added_at} < now() - make_interval(days => ${KEPT_DAYS})`)
  await db.execute(sql`with gone as (delete from ${notify_deliveries} where ${notify_deliveries.state} <> 'queued'
      and ${notify_deliveries.ended_at} < now() - make_interval(days => ${KEPT_DAYS}) returning delivery_id)
    delete from ${notify_notices} using gone where ${notify_notices.delivery_id} = gone.delivery_id
      and not exists (select 1 from operations.gates g where g.operation_id = ${notify_notices.operation_id}
        and 'gate:' || g.gate_id = ${notify_notices.object} and g.status = 'waiting')`)
}

/** Deletes notices of decisions that no longer waited when due; the search finds them again if they wait again. */
export const dropNotices = async (
  tx: Tx,
  notices: readonly { delivery_id: string; operation_id: string; object: string; round: number }[],
): Promise<void> => {
  for (const { delivery_id, operation_id, object, round } of notices)
    await tx.delete(notify_notices).where(equals(notify_notices, { delivery_id, operation_id, object, round }))
}
