import { and, desc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm'
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core'
import type { Actor } from '../../../apps/shared/contracts/operations/graph.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { uuidv7 } from '../../../apps/shared/ids.ts'
import { first, type Queryable, type Tx, together, updateRows } from '../../client.ts'
import { anyCase, idEnding, like } from '../../columns.ts'
import { NOW } from '../../rows.ts'
import { iso, type Newest, olderThan } from '../expressions.ts'
import { NOW_TEXT, SYSTEM } from '../facts/state.ts'
import { releaseLeases } from '../leases/rows.ts'
import { intents, outbox, plans, resource_operation_index } from '../tables/index.ts'

/** Intents and plans: their rows, and their status changes, each with its outbox message. */
export type Origin = {
  actor: Actor
  reason?: string | null
  request_id?: string | null
  data?: Record<string, unknown>
}

/** Time passes without a write: an intent past its end is expired, whether or not the sweeper has marked it. */
export const INTENT_STATUS = sql<string>`case when ${intents.status} in ('open', 'previewed')
  and ${intents.expires_at} <= clock_timestamp() then 'expired' else ${intents.status} end`

const intentColumns = {
  status: INTENT_STATUS,
  ...pick(intents, 'intent_id', 'revision', 'kind', 'title', 'reason', 'request', 'targets_resolved'),
  ...pick(intents, 'resource_ids', 'requester', 'requester_id', 'labels', 'constraints', 'ticket', 'retry_of'),
  ...pick(intents, 'latest_plan_id', 'operation_id'),
  created_at: iso(intents.created_at),
  updated_at: iso(intents.updated_at),
  expires_at: iso(intents.expires_at),
}
export type Intent = Awaited<ReturnType<typeof selectIntents>>[number]

const selectIntents = (db: Queryable, where: SQL | undefined) => db.select(intentColumns).from(intents).where(where)

export const getIntent = (db: Queryable, intent_id: string) =>
  selectIntents(db, eq(intents.intent_id, intent_id)).then(first)

export const lockIntent = (tx: Tx, intent_id: string) =>
  tx.select(intentColumns).from(intents).where(eq(intents.intent_id, intent_id)).for('update').then(first)

export type NewIntent = Omit<typeof intents.$inferInsert, 'resource_ids' | 'requester_id' | 'expires_at'> & {
  expires_in_s: number
}

/** Saves a new intent; an existing one stays unchanged. Returns false if it existed. */
export const saveIntent = async (tx: Tx, { expires_in_s, ...intent }: NewIntent, origin: Origin): Promise<boolean> => {
  const rows = await tx
    .insert(intents)
    .values({
      ...intent,
      resource_ids: intent.targets_resolved.map(({ resource_id }) => resource_id),
      requester_id: intent.requester.id,
      expires_at: sql`clock_timestamp() + make_interval(secs => ${expires_in_s})`,
    })
    .onConflictDoNothing()
    .returning({ intent_id: intents.intent_id })
  if (rows.length === 0) return false
  await announce(tx, 'intent', intent.intent_id, 1, 'open', origin)
  return true
}

/** By a part of its title or ticket, or by the end of its id or of its newest plan's. */
export const intentFound = (q: string): SQL =>
  sql`(${intents.title}${anyCase(q)} ilike ${like(q)} or ${intents.ticket}${anyCase(q)} ilike ${like(q)}
    or ${intents.intent_id}::text like ${idEnding(q)} or ${intents.latest_plan_id}::text like ${idEnding(q)})`

export const listIntents = (db: Queryable, { where, after, limit }: Newest) =>
  db
    .select(intentColumns)
    .from(intents)
    .where(and(...where, olderThan(intents.created_at, intents.intent_id, after)))
    .orderBy(desc(intents.created_at), desc(intents.intent_id))
    .limit(limit)

/** Changes an intent whose status is one of `from`, with its message. Returns false if it has another status. */
export const moveIntent = async (
  tx: Tx,
  intent_id: string,
  from: readonly string[],
  set: PgUpdateSetSource<typeof intents> & { status: string },
  origin: Origin,
): Promise<boolean> => {
  const row = await tx
    .update(intents)
    .set({ ...set, revision: sql`${intents.revision} + 1`, updated_at: NOW })
    .where(and(eq(intents.intent_id, intent_id), inArray(intents.status, [...from])))
    .returning({ revision: intents.revision })
    .then(first)
  if (row) await announce(tx, 'intent', intent_id, row.revision, set.status, origin)
  return row !== undefined
}

const planColumns = {
  ...pick(plans, 'plan_id', 'intent_id', 'status', 'status_reason', 'plan_hash', 'semantic_digest', 'document'),
  ...pick(plans, 'report', 'requester_id', 'operation_id', 'superseded_by'),
  created_at: iso(plans.created_at),
  expires_at: iso(plans.expires_at),
  is_due: sql<boolean>`${plans.expires_at} <= clock_timestamp()`,
}
export type Plan = NonNullable<Awaited<ReturnType<typeof getPlan>>>

export const getPlan = (db: Queryable, plan_id: string) =>
  db.select(planColumns).from(plans).where(eq(plans.plan_id, plan_id)).then(first)

export type Reach = {
  intent_id: string
  document: Pick<Plan['document'], 'leases' | 'catalog_pins' | 'windows' | 'constraints'>
  dependents: string[]
}

/** The reach of the plan that an operation carries out. Every view of a gate reads it, and a plan may have megabytes. */
export const getReachOf = async (db: Queryable, operation_id: string): Promise<Reach | undefined> => {
  const { rows } = await db.execute<Reach>(sql`
    select intent_id, to_jsonb(document) as document, report #> '{impact,dependents}' as dependents
    from operations.plans p cross join lateral jsonb_to_record(p.document)
      as document(leases jsonb, catalog_pins jsonb, windows jsonb, constraints jsonb)
    where operation_id = ${operation_id}`)
  return rows[0]
}

export const lockPlan = (tx: Tx, plan_id: string) =>
  tx.select(planColumns).from(plans).where(eq(plans.plan_id, plan_id)).for('update').then(first)

/** The intent of a plan; `undefined` if there is no such plan. */
export const intentOfPlan = (db: Queryable, plan_id: string): Promise<string | undefined> =>
  db
    .select({ intent_id: plans.intent_id })
    .from(plans)
    .where(eq(plans.plan_id, plan_id))
    .then((rows) => rows[0]?.intent_id)

/** Resources whose versions a plan pins; empty if there is no such plan. */
export const listTargetsOfPlan = async (db: Queryable, plan_id: string): Promise<string[]> => {
  const [row] = await db
    .select({ pins: sql<{ resource_id: string }[]>`${plans.document} -> 'catalog_pins'` })
    .from(plans)
    .where(eq(plans.plan_id, plan_id))
  return (row?.pins ?? []).map(({ resource_id }) => resource_id)
}

export const getPlanGraph = (db: Queryable, plan_id: string) =>
  db
    .select({ ...pick(plans, 'graph', 'plan_hash', 'requester_id', 'intent_id'), created_at: iso(plans.created_at) })
    .from(plans)
    .where(eq(plans.plan_id, plan_id))
    .then(first)

/** The plan of an intent that a newer preview would replace. */
export const lockOpenPlan = (tx: Tx, intent_id: string) =>
  tx
    .select({
      ...pick(plans, 'plan_id', 'status', 'semantic_digest'),
      is_due: sql<boolean>`${plans.expires_at} <= clock_timestamp()`,
    })
    .from(plans)
    .where(and(eq(plans.intent_id, intent_id), inArray(plans.status, ['ready', 'blocked_by_policy', 'stale'])))
    .orderBy(desc(plans.created_at), desc(plans.plan_id))
    .limit(1)
    .for('update')
    .then(first)

export type NewPlan = Omit<typeof plans.$inferInsert, 'expires_at'> & { status: string; ttl_s: number }

export const savePlan = async (tx: Tx, { ttl_s, ...plan }: NewPlan, origin: Origin): Promise<void> => {
  await tx.insert(plans).values({ ...plan, expires_at: sql`clock_timestamp() + make_interval(secs => ${ttl_s})` })
  await announce(tx, 'plan', plan.plan_id, 1, plan.status, origin)
}

/** Stores the newest rehearsal with an unstarted plan: one that was read before a start is never replaced. */
export const saveRehearsal = async (tx: Tx, plan_id: string, rehearsal: unknown): Promise<void> => {
  await tx
    .update(plans)
    .set({ report: sql`${plans.report} || ${JSON.stringify({ rehearsal })}::jsonb` })
    .where(and(eq(plans.plan_id, plan_id), isNull(plans.operation_id)))
}

/** Changes a plan whose status is one of `from`, with its message. Returns false if it has another status. */
export const movePlan = async (
  tx: Tx,
  plan_id: string,
  from: readonly string[],
  set: PgUpdateSetSource<typeof plans> & { status: string },
  origin: Origin,
): Promise<boolean> => {
  const row = await tx
    .update(plans)
    .set({ ...set, revision: sql`${plans.revision} + 1`, updated_at: NOW })
    .where(and(eq(plans.plan_id, plan_id), inArray(plans.status, [...from])))
    .returning({ revision: plans.revision })
    .then(first)
  if (row) await announce(tx, 'plan', plan_id, row.revision, set.status, origin)
  return row !== undefined
}

/** One message per transaction and aggregate (operations.md 9.4); the aggregate's row is already locked. */
const announce = async (
  tx: Tx,
  agg_type: 'intent' | 'plan',
  agg_id: string,
  agg_version: number,
  status: string,
  { actor, reason = null, request_id = null, data = {} }: Origin,
): Promise<void> => {
  await tx
    .insert(outbox)
    .values({
      event_id: uuidv7(),
      agg_type,
      agg_id,
      agg_version,
      type: `${agg_type}.changed`,
      payload: sql`jsonb_build_object('events', jsonb_build_array(${JSON.stringify({
        seq: agg_version,
        type: `${agg_type}.${status}`,
        actor,
        reason,
        data: { ...data, status },
      })}::jsonb || jsonb_build_object('at', ${NOW_TEXT})))`,
      request_id,
    })
}

const planOf = (tx: Tx, operation_id: string) =>
  tx
    .select({ plan_id: plans.plan_id, intent_id: plans.intent_id })
    .from(plans)
    .where(eq(plans.operation_id, operation_id))
    .then(first)

/** The engine has taken over the operation, so the plan is started. Safe to repeat. */
export const planConfirmed = async (tx: Tx, operation_id: string): Promise<void> => {
  const plan = await planOf(tx, operation_id)
  if (plan)
    await movePlan(tx, plan.plan_id, ['locked'], { status: 'started' }, { actor: SYSTEM, data: { operation_id } })
}

const FULFILLED = new Set(['succeeded', 'succeeded_with_exceptions'])

/** The operation ended: marks its intent as fulfilled or not, frees leases and updates resources. Safe to repeat. */
export const operationClosed = async (tx: Tx, operation_id: string, status: string): Promise<void> => {
  const outcome = FULFILLED.has(status) ? 'fulfilled' : 'unfulfilled'
  const intentMoved = planOf(tx, operation_id).then(
    (plan) =>
      plan &&
      moveIntent(tx, plan.intent_id, ['executing'], { status: outcome }, { actor: SYSTEM, data: { operation_id } }),
  )
  await together(intentMoved, releaseLeases(tx, operation_id), markEnded(tx, operation_id, status))
}

const markEnded = (tx: Tx, operation_id: string, status: string) =>
  updateRows(tx, { operation_id }, resource_operation_index, {
    status,
    ended_at: sql`coalesce(${resource_operation_index.ended_at}, clock_timestamp())`,
  })

/** The start never fired: the plan is ready again, the intent has its old status, and leases are free. Repeatable. */
export const startWithdrawn = async (tx: Tx, operation_id: string): Promise<void> => {
  const plan = await planOf(tx, operation_id)
  if (plan) {
    const origin = { actor: SYSTEM, reason: 'start_withdrawn', data: { withdrawn: operation_id } }
    await movePlan(tx, plan.plan_id, ['locked'], { status: 'ready', operation_id: null }, origin)
    await moveIntent(tx, plan.intent_id, ['executing'], { status: 'previewed', operation_id: null }, origin)
  }
  await releaseLeases(tx, operation_id)
  await markEnded(tx, operation_id, 'cancelled')
}

const DUE_AT_ONCE = 100

/** Closes expired plans, and expired intents with their plans; the sweeper calls it each turn. Returns how many there were. */
export const expireDue = async (tx: Tx): Promise<number> => {
  const duePlans = await tx
    .select({ plan_id: plans.plan_id })
    .from(plans)
    .where(and(inArray(plans.status, ['ready', 'blocked_by_policy']), sql`${plans.expires_at} <= clock_timestamp()`))
    .orderBy(plans.expires_at)
    .limit(DUE_AT_ONCE)
    .for('update', { skipLocked: true })
  const dueIntents = await tx
    .select({ intent_id: intents.intent_id })
    .from(intents)
    .where(and(inArray(intents.status, ['open', 'previewed']), sql`${intents.expires_at} <= clock_timestamp()`))
    .orderBy(intents.expires_at)
    .limit(DUE_AT_ONCE)
    .for('update', { skipLocked: true })
  const set = { status: 'expired' }
  for (const { plan_id } of duePlans)
    await movePlan(tx, plan_id, ['ready', 'blocked_by_policy'], set, { actor: SYSTEM })
  for (const { intent_id } of dueIntents) {
    await moveIntent(tx, intent_id, ['open', 'previewed'], set, { actor: SYSTEM })
    const plan = await lockOpenPlan(tx, intent_id)
    if (plan) await movePlan(tx, plan.plan_id, ['ready', 'blocked_by_policy'], set, { actor: SYSTEM })
  }
  return duePlans.length + dueIntents.length
}
