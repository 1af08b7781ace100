import { and, eq, gt, isNull, or, type SQL, sql } from 'drizzle-orm'
import {
  type Actor,
  type GatePolicy,
  type NodeState,
  TARGET_DRIFTED,
} from '../../../apps/shared/contracts/operations/graph.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import type { Queryable } from '../../client.ts'
import { iso } from '../expressions.ts'
import {
  nodes,
  operation_control,
  operations,
  patch_votes,
  patches,
  operation_timeline_view as timeline,
} from '../tables/index.ts'

/** What waits for a person besides gates. `visible` is what the caller may see, `mine` what the caller can act on. */
type Scope = { visible: SQL | undefined; mine: SQL; only_mine: boolean }

/** How many of each kind one answer shows: the oldest, as they have waited longest. */
const SHOWN = 100

export const OPEN_PATCH = eq(patches.status, 'awaiting_approval')
const votesOf = (decision: 'approve' | 'reject', more: SQL = sql``) =>
  sql`from ${patch_votes} v where v.operation_id = ${patches.operation_id} and v.patch_id = ${patches.patch_id}
      and v.digest = ${patches.digest} and v.decision = ${decision} ${more}`

/**
 * Patches on which this person could vote by group, four eyes and votes so far (the caller adds the scope). A patch
 * that touches a gate open to every group requires no group.
 */
export const patchVotableBy = (user_id: string, groups: readonly string[]): SQL => sql`
  ${patches.proposer_id} <> ${user_id}
  and (jsonb_array_length(${patches.required}) = 0
    or exists (select 1 from jsonb_array_elements(${patches.required}) p where jsonb_array_length(p -> 'groups') = 0)
    or exists (select 1 from jsonb_array_elements(${patches.required}) p, jsonb_array_elements(p -> 'groups') g
               where g ->> 'group' = any(${sql.param(groups)}::text[])))
  and not (${user_id} = any(${operations.involved})
    and exists (select 1 from jsonb_array_elements(${patches.required}) p where (p ->> 'four_eyes')::boolean))
  and not exists (select 1 ${votesOf('approve', sql`and v.user_id = ${user_id}`)})`

export const listWaitingPatches = (db: Queryable, { visible, mine, only_mine }: Scope) =>
  db
    .select({
      ...pick(patches, 'operation_id', 'patch_id', 'reason', 'ticket', 'digest'),
      operation_title: operations.title,
      mine: sql<boolean>`(${mine})`,
      proposer: sql<Actor>`${patches.proposer}`,
      change_count: sql<number>`jsonb_array_length(${patches.changes})`,
      approvals: sql<number>`(select count(*)::int ${votesOf('approve')})`,
      required: sql<GatePolicy[]>`${patches.required}`,
      waiting_since: sql<string>`${iso(patches.created_at)}`,
      deadline_at: iso(patches.expires_at),
      environment: operations.environment,
      risk_level: operations.risk_level,
    })
    .from(patches)
    .innerJoin(operations, eq(operations.operation_id, patches.operation_id))
    .where(and(OPEN_PATCH, visible, only_mine ? mine : undefined))
    .orderBy(patches.created_at, patches.patch_id)
    .limit(SHOWN)

/**
 * Nodes whose failure holds up their operation, by the rules of the engine. A target that is not as planned always
 * does. Failures that the plan passes over do once they are more than its budget.
 */
const HOLDING = sql`${nodes.operation_id} = ${operations.operation_id} and not ${nodes.removed}
  and (${nodes.state} in ('outcome_unknown', 'compensation_failed') or (${nodes.state} = 'failed'
    and (${nodes.spec} ->> 'on_failure' = 'hold' or ${nodes.error} ->> 'class' = ${TARGET_DRIFTED}
      or (${nodes.spec} ->> 'on_failure' = 'skip_dependents' and exists (select 1 from ${operation_control}
        where ${operation_control.operation_id} = ${operations.operation_id} and ${operation_control.pause_reason} = 'failure_budget')))))`
/** Whether the operation has such nodes. */
export const IS_HELD = and(
  isNull(operations.ended_at),
  // As the engine reported it: this spares most operations the search among their nodes.
  gt(operations.failed, 0),
  sql`exists (select 1 from ${nodes} where ${HOLDING})`,
)
/** An open patch of the operation counts as the answer to its failure: the patch then waits instead. */
export const HAS_FAILURE = and(
  IS_HELD,
  sql`not exists (select 1 from ${patches} where ${patches.operation_id} = ${operations.operation_id} and ${OPEN_PATCH})`,
)

/** The catalog moved its targets: it is paused until a person takes the new values or cancels. */
const IS_DRIFTED = and(
  isNull(operations.ended_at),
  sql`exists (select 1 from ${operation_control} where ${operation_control.operation_id} = ${operations.operation_id}
    and ${operation_control.control} = 'pause' and ${operation_control.pause_reason} = 'catalog_drift')`,
)
const DRIFTED_SINCE = sql`(select max(${timeline.at}) from ${timeline}
  where ${timeline.operation_id} = ${operations.operation_id} and ${timeline.type} = 'operation.drifted')`
const STOPPED = or(HAS_FAILURE, IS_DRIFTED)

/** When the first of these nodes ended. */
export const HELD_SINCE = sql<string>`(select min(coalesce(${nodes.ended_at}, ${nodes.updated_at})) from ${nodes} where ${HOLDING})`
const STOPPED_SINCE = sql`coalesce(${HELD_SINCE}, ${DRIFTED_SINCE}, ${operations.updated_at})`

type FailedNode = { node_id: string; name: string; state: NodeState; message: string | null }

export const listOpenFailures = (db: Queryable, { visible, mine, only_mine }: Scope) =>
  db
    .select({
      operation_id: operations.operation_id,
      operation_title: operations.title,
      mine: sql<boolean>`(${mine})`,
      node_count: sql<number>`(select count(*)::int from ${nodes} where ${HOLDING})`,
      nodes: sql<FailedNode[]>`coalesce((select jsonb_agg(f.node order by f.ordinal) from (
        select ${nodes.ordinal}, jsonb_build_object('node_id', ${nodes.node_id}, 'name', ${nodes.name}, 'state', ${nodes.state},
          'message', ${nodes.error} ->> 'message') as node
        from ${nodes} where ${HOLDING} order by ${nodes.ordinal} limit 3) f), '[]')`,
      waiting_since: sql<string>`operations.iso(${STOPPED_SINCE})`,
    })
    .from(operations)
    .where(and(STOPPED, visible, only_mine ? mine : undefined))
    .orderBy(STOPPED_SINCE, operations.operation_id)
    .limit(SHOWN)

/** How many patches wait for this person's vote, and how many stopped operations they can resolve. */
export const countWaiting = async (
  db: Queryable,
  visible: SQL | undefined,
  mine: { patches: SQL; failures: SQL },
): Promise<{ patches_mine: number; failures_mine: number }> => {
  const count = sql<number>`count(*)::int`
  const [open, held] = await Promise.all([
    db
      .select({ count })
      .from(patches)
      .innerJoin(operations, eq(operations.operation_id, patches.operation_id))
      .where(and(OPEN_PATCH, visible, mine.patches)),
    db
      .select({ count })
      .from(operations)
      .where(and(STOPPED, visible, mine.failures)),
  ])
  return { patches_mine: open[0]?.count ?? 0, failures_mine: held[0]?.count ?? 0 }
}
