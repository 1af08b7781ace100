import { and, asc, eq, type SQL, sql } from 'drizzle-orm'
import { pick } from '../../../apps/shared/data/pick.ts'
import { first, type Queryable } from '../../client.ts'
import { iso } from '../expressions.ts'
import { WAITING_FOR_PEOPLE } from '../gates/inbox.ts'
import { OPEN_PATCH } from '../operations/waiting.ts'
import { type DecisionKey, gates, operations, patches } from '../tables/index.ts'

/** Conditions for the decisions that a person may see and make. */
export type View = { visible: SQL | undefined; gates: SQL; patches: SQL }
export type Waiting = Awaited<ReturnType<typeof listWaiting>>[number]
export type Decided = NonNullable<Awaited<ReturnType<typeof getDecision>>>

/** Decisions that name this group, initially or through their escalation so far. */
export const named = (group: string): Pick<View, 'gates' | 'patches'> => ({
  gates: sql`(${gates.policy} -> 'groups' @> jsonb_build_array(jsonb_build_object('group', ${group}::text))
    or exists (select 1 from jsonb_array_elements(${gates.policy} -> 'escalation') with ordinality e(step, n)
      where e.n <= ${gates.escalation_level} and e.step -> 'add_groups' ? ${group}))`,
  patches: sql`${patches.required} @> jsonb_build_array(jsonb_build_object('groups', jsonb_build_array(jsonb_build_object('group', ${group}::text))))`,
})

/** How many are announced at once; the rest follow when some of them are decided. */
const MOST = 500

/** Whether any decision waits. */
export const anyWaits = async (db: Queryable): Promise<boolean> => {
  const { rows } = await db.execute<{ waits: boolean }>(
    sql`select exists (select 1 from ${gates} where ${WAITING_FOR_PEOPLE}) or exists (select 1 from ${patches} where ${OPEN_PATCH}) as waits`,
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
  waiting_since: sql<string>`${iso(gates.waiting_since)}`,
  deadline_at: sql<string | null>`${iso(gates.deadline_at)}`,
}
const patchColumns = {
  ...operation,
  object: sql<string>`'patch:' || ${patches.patch_id}`,
  question: sql<string | null>`null`,
  round: sql<number>`1`,
  escalation: sql<number>`0`,
  waiting_since: sql<string>`${iso(patches.created_at)}`,
  deadline_at: sql<string | null>`${iso(patches.expires_at)}`,
}

/** The current state of a decision, whether it waits or not; `readable`: whether this reader may see it. */
export const getDecision = async (db: Queryable, { operation_id, object }: DecisionKey, visible: SQL | undefined) => {
  const readable = sql<boolean>`${visible ?? sql`true`}`
  const of = (kind: 'gate' | 'patch') => object.startsWith(`${kind}:`) && object.slice(kind.length + 1)
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

/** The decisions that wait for a person, the oldest first. */
export const listWaiting = async (db: Queryable, view: View) => {
  const [asked, proposed] = await Promise.all([
    db
      .select(gateColumns)
      .from(gates)
      .innerJoin(operations, eq(operations.operation_id, gates.operation_id))
      .where(and(WAITING_FOR_PEOPLE, view.visible, view.gates))
      .orderBy(asc(gates.waiting_since))
      .limit(MOST),
    db
      .select(patchColumns)
      .from(patches)
      .innerJoin(operations, eq(operations.operation_id, patches.operation_id))
      .where(and(OPEN_PATCH, view.visible, view.patches))
      .orderBy(asc(patches.created_at))
      .limit(MOST),
  ])
  return [...asked, ...proposed]
}
