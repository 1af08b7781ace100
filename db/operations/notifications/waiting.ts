import { and, asc, eq, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import { type NotifyEvent, RISKS } from '../../../apps/shared/contracts/notifications/notifications.ts'
import type { NotifyRules } from '../../../apps/shared/contracts/notifications/rules.ts'
import type { Actor } from '../../../apps/shared/contracts/operations/graph.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { type Db, equals, first, type Queryable } from '../../client.ts'
import { iso } from '../expressions.ts'
import { WAITING_FOR_PEOPLE } from '../gates/inbox.ts'
import { HAS_FAILURE, HELD_SINCE, IS_HELD, OPEN_PATCH } from '../operations/waiting.ts'
import { type DecisionKey, gates, notify_destinations, notify_notices, operations, patches } from '../tables/index.ts'

/** Conditions for the decisions that a person may see and make, and for the operations whose failure concerns them. */
export type View = { visible: SQL | undefined; gates: SQL; patches: SQL; operations: SQL }
export type Waiting = Awaited<ReturnType<typeof listWaiting>>[number]
export type Decided = NonNullable<Awaited<ReturnType<typeof getDecision>>>

/** Decisions that name this group, initially or through their escalation so far; operations on its team's resources. */
export const named = (group: string): Omit<View, 'visible'> => ({
  gates: sql`(${gates.policy} -> 'groups' @> jsonb_build_array(jsonb_build_object('group', ${group}::text))
    or exists (select 1 from jsonb_array_elements(${gates.policy} -> 'escalation') with ordinality e(step, n)
      where e.n <= ${gates.escalation_level} and e.step -> 'add_groups' ? ${group}))`,
  patches: sql`${patches.required} @> jsonb_build_array(jsonb_build_object('groups', jsonb_build_array(jsonb_build_object('group', ${group}::text))))`,
  operations: sql`exists (select 1 from operations.catalog_resources team
    join operations.catalog_relationships edge on edge.to_id = team.resource_id and edge.type_key = 'owned_by' and edge.open
    where team.type_key = 'org.team' and team.name = ${group} and edge.from_id = any(${operations.resource_ids}))`,
})

/** For two days, or until another operation is started in its place. */
const FAILED = sql`${operations.engine_status} in ('failed', 'timed_out') and ${operations.ended_at} > clock_timestamp() - interval '2 days'
  and not exists (select 1 from operations.operations again where again.created_at > ${operations.ended_at}
    and again.retry_of = ${operations.operation_id})`

/** How many are announced at once; the rest follow when some of them are decided. */
const MOST = 500

/** Whether any decision waits, or any operation has stopped. */
export const anyWaits = async (db: Queryable): Promise<boolean> => {
  const { rows } = await db.execute<{ waits: boolean }>(
    sql`select exists (select 1 from ${gates} where ${WAITING_FOR_PEOPLE}) or exists (select 1 from ${patches} where ${OPEN_PATCH})
      or exists (select 1 from ${operations} where ${HAS_FAILURE}) or exists (select 1 from ${operations} where ${FAILED}) as waits`,
  )
  return rows[0]?.waits === true
}

const operation = pick(operations, 'operation_id', 'title', 'risk_level')
const gateColumns = {
  ...operation,
  object: sql<string>`'gate:' || ${gates.gate_id}`,
  question: sql<string | null>`${gates.question}`,
  round: gates.round,
  escalation: gates.escalation_level,
  event: sql<NotifyEvent>`case when ${gates.escalation_level} > 0 then 'gate.escalated'
    when ${gates.round} > 1 then 'gate.reopened' else 'gate.waiting' end`,
  waiting_since: sql<string>`${iso(gates.waiting_since)}`,
  deadline_at: sql<string | null>`${iso(gates.deadline_at)}`,
}
const patchColumns = {
  ...operation,
  object: sql<string>`'patch:' || ${patches.patch_id}`,
  question: sql<string | null>`null`,
  round: sql<number>`1`,
  escalation: sql<number>`0`,
  event: sql<NotifyEvent>`'patch.waiting'`,
  waiting_since: sql<string>`${iso(patches.created_at)}`,
  deadline_at: sql<string | null>`${iso(patches.expires_at)}`,
}
const stopped_at = sql`coalesce(${operations.ended_at}, ${HELD_SINCE})`
/** An operation is in round 1 while it is held, whichever of its nodes hold it, and in round 0 once it has ended. */
const operationColumns = {
  ...operation,
  object: sql<string>`'operation:' || ${operations.operation_id}`,
  question: sql<string | null>`null`,
  round: sql<number>`case when ${operations.ended_at} is null then 1 else 0 end`,
  escalation: sql<number>`0`,
  event: sql<NotifyEvent>`case when ${operations.ended_at} is null then 'operation.held' else 'operation.failed' end`,
  waiting_since: sql<string>`operations.iso(${stopped_at})`,
  deadline_at: sql<string | null>`null`,
}

/** A notice of a hold that lasts, or was not yet seen to be over. */
const HOLD = { event: 'operation.held', round: 1 } as const

/** Whether any hold is announced that was not yet seen to be over. */
export const anyHold = async (db: Queryable): Promise<boolean> =>
  (await db.select({ one: sql`1` }).from(notify_notices).where(equals(notify_notices, HOLD)).limit(1)).length > 0

/**
 * Moves this destination's notices of holds that are over to a round of their own, so that the next hold of the same
 * operation is announced. Those that a device shows wait for their outcome.
 */
export const endHolds = (db: Db, destination_id: string) =>
  db
    .update(notify_notices)
    .set({
      round: sql`1 + (select max(n.round) from operations.notify_notices n where n.destination_id = ${notify_notices.destination_id}
        and n.operation_id = ${notify_notices.operation_id} and n.object = ${notify_notices.object})`,
    })
    .where(
      and(
        equals(notify_notices, { ...HOLD, destination_id, shown: false }),
        sql`not exists (select 1 from ${operations} where ${operations.operation_id} = ${notify_notices.operation_id} and ${IS_HELD})`,
      ),
    )

/** The current state of a decision, whether it waits or not; `readable`: whether this reader may see it. */
export const getDecision = async (db: Queryable, { operation_id, object }: DecisionKey, visible: SQL | undefined) => {
  const readable = sql<boolean>`${visible ?? sql`true`}`
  const of = (kind: 'gate' | 'patch' | 'operation') => object.startsWith(`${kind}:`) && object.slice(kind.length + 1)
  if (of('operation'))
    return db
      .select({ ...operationColumns, status: operations.engine_status, decided_by: sql<Actor | null>`null`, readable })
      .from(operations)
      .where(eq(operations.operation_id, operation_id))
      .then(first)
  const patch_id = of('patch')
  if (patch_id)
    return db
      .select({ ...patchColumns, ...pick(patches, 'status', 'decided_by'), readable })
      .from(patches)
      .innerJoin(operations, eq(operations.operation_id, patches.operation_id))
      .where(and(eq(patches.operation_id, operation_id), eq(patches.patch_id, patch_id)))
      .then(first)
  return db
    .select({ ...gateColumns, ...pick(gates, 'status', 'decided_by'), readable })
    .from(gates)
    .innerJoin(operations, eq(operations.operation_id, gates.operation_id))
    .where(and(eq(gates.operation_id, operation_id), eq(gates.gate_id, of('gate') || '')))
    .then(first)
}

/** Which of the waiting decisions are asked for. */
type Narrow = (
  of: Pick<typeof gateColumns, 'object' | 'event'> & Record<'round' | 'escalation' | 'since', SQLWrapper>,
) => SQL

/** Those of these operations. */
export const among =
  (rows: readonly { operation_id: string }[]): Narrow =>
  () =>
    sql`${operations.operation_id} = any(${sql.param(rows.map(({ operation_id }) => operation_id))}::uuid[])`

/**
 * Those that rules send to this destination after so many seconds, and of which it has not been told. It is not told of
 * failures from before its time.
 */
export const untold =
  (destination_id: string, { events, min_risk }: NotifyRules, after_s: number): Narrow =>
  ({ object, event, round, escalation, since }) =>
    sql`${event} = any(${sql.param(events)}::text[])
      and array_position(${RISK_ORDER}, ${operations.risk_level}) >= array_position(${RISK_ORDER}, ${min_risk}::text)
      and ${since} <= clock_timestamp() - make_interval(secs => ${after_s})
      and (${event} <> 'operation.failed' or ${since} > (select d.created_at from ${notify_destinations} d where d.destination_id = ${destination_id}))
      and not exists (select 1 from ${notify_notices} n where n.destination_id = ${destination_id}
        and n.operation_id = ${operations.operation_id} and n.object = ${object} and n.round = ${round} and n.escalation = ${escalation})`

const RISK_ORDER = sql`${sql.param(RISKS)}::text[]`

/** The decisions that wait for a person, the riskiest first, then by deadline; then the operations that stopped. */
export const listWaiting = async (db: Queryable, view: View, narrow: Narrow, held = HAS_FAILURE) => {
  const byRisk = sql`array_position(${RISK_ORDER}, ${operations.risk_level}) desc nulls last`
  const stopped = (how: SQL | undefined) =>
    db
      .select(operationColumns)
      .from(operations)
      .where(and(how, view.visible, view.operations, narrow({ ...operationColumns, since: stopped_at })))
      .orderBy(byRisk, asc(operations.created_at))
      .limit(MOST)
  const [asked, proposed, holds, failed] = await Promise.all([
    db
      .select(gateColumns)
      .from(gates)
      .innerJoin(operations, eq(operations.operation_id, gates.operation_id))
      .where(and(WAITING_FOR_PEOPLE, view.visible, view.gates, narrow({ ...gateColumns, since: gates.waiting_since })))
      .orderBy(byRisk, asc(gates.deadline_at), asc(gates.waiting_since))
      .limit(MOST),
    db
      .select(patchColumns)
      .from(patches)
      .innerJoin(operations, eq(operations.operation_id, patches.operation_id))
      .where(and(OPEN_PATCH, view.visible, view.patches, narrow({ ...patchColumns, since: patches.created_at })))
      .orderBy(byRisk, asc(patches.expires_at), asc(patches.created_at))
      .limit(MOST),
    stopped(held),
    stopped(FAILED),
  ])
  return [...asked, ...proposed, ...holds, ...failed]
}

/** Those of these operations that are not over yet: a hold lasts while a patch that may end it is open. */
export const listOpen = (db: Queryable, view: View, rows: readonly { operation_id: string }[]) =>
  listWaiting(db, view, among(rows), IS_HELD)
