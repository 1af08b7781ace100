import { and, asc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm'
import type { PgInsertValue, PgUpdateSetSource } from 'drizzle-orm/pg-core'
import type {
  Actor,
  GateStatus,
  GateSubject,
  NodeState,
  PlanGate,
  PlanGraph,
  PlanNode,
} from '../../../apps/shared/contracts/operations/graph.ts'
import type { PatchChange, PatchStatus } from '../../../apps/shared/contracts/operations/patches.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { equals, first, type Queryable, type Tx, updateRows } from '../../client.ts'
import { NOW } from '../../rows.ts'
import { eachText, iso } from '../expressions.ts'
import type { TimelineEvent } from '../facts/state.ts'
import { readRunningGates } from '../gates/rows.ts'
import { nodes, operation_control, operations, patch_votes, patches } from '../tables/index.ts'

export type PatchVote = {
  user_id: string
  actor: Actor
  decision: 'approve' | 'reject'
  comment: string | null
  digest: string
  groups: string[]
  at: string
}
/** Columns with their table name: if only one table is read, drizzle omits it, and `v` has the same columns. */
const VOTES = sql<
  PatchVote[]
>`coalesce((select jsonb_agg(jsonb_build_object('user_id', v.user_id, 'actor', v.actor, 'decision', v.decision,
    'comment', v.comment, 'digest', v.digest, 'groups', v.groups, 'at', operations.iso(v.at)) order by v.at, v.user_id)
  from ${patch_votes} v where v.operation_id = operations.patches.operation_id and v.patch_id = operations.patches.patch_id
    and v.digest = operations.patches.digest), '[]'::jsonb)`

const columns = {
  ...pick(patches, 'patch_id', 'operation_id', 'rebase', 'decided_by'),
  status: sql<PatchStatus>`${patches.status}`,
  ...pick(patches, 'status_reason', 'base_revision', 'applied_revision', 'changes', 'reason', 'ticket', 'proposer'),
  ...pick(patches, 'proposer_id', 'digest', 'result_hash', 'diff_graph', 'held_nodes', 'rearmed_gates', 'required'),
  votes: VOTES,
  decided_at: iso(patches.decided_at),
  expires_at: iso(patches.expires_at),
  created_at: iso(patches.created_at),
}
const select = (db: Queryable) => db.select(columns).from(patches)
export type PatchRow = Awaited<ReturnType<typeof select>>[number]

export const listPatches = (db: Queryable, operation_id: string, where: SQL | undefined, limit: number) =>
  select(db)
    .where(and(eq(patches.operation_id, operation_id), where))
    .orderBy(asc(patches.patch_id))
    .limit(limit)

export const getPatch = (db: Queryable, operation_id: string, patch_id: string) =>
  select(db).where(equals(patches, { operation_id, patch_id })).then(first)

/** Failed nodes that a patch names or holds, or whose target it works on: the first three in plan order. */
export const listMended = (db: Queryable, { operation_id, changes, held_nodes }: PatchRow) => {
  const given = changes as PatchChange[]
  const added = given.flatMap((change) => (change.op === 'add_node' ? [change.node] : []))
  const named = given.flatMap((change) => [
    ...('node_id' in change ? [change.node_id] : []),
    ...('depends_on' in change ? [change.depends_on] : []),
  ])
  const ids = eachText([...named, ...held_nodes, ...added.flatMap(({ depends_on = [] }) => depends_on)])
  const targets = eachText(added.flatMap(({ target_id }) => target_id ?? []))
  return db
    .select({
      ...pick(nodes, 'node_id', 'name'),
      state: sql<NodeState>`${nodes.state}`,
      attempts: nodes.attempt,
      message: sql<string | null>`${nodes.error} ->> 'message'`,
    })
    .from(nodes)
    .where(
      and(
        equals(nodes, { operation_id, removed: false }),
        inArray(nodes.state, ['failed', 'outcome_unknown', 'compensation_failed']),
        sql`(${nodes.node_id} in ${ids} or ${nodes.target_id} in ${targets} or ${nodes.target_id} in (
          select other.target_id from ${nodes} other where other.operation_id = ${operation_id} and other.node_id in ${ids}))`,
      ),
    )
    .orderBy(asc(nodes.ordinal))
    .limit(3)
}

/** Patches that wait for a decision; to change them, the caller must hold the control row. */
export const listOpenPatches = (db: Queryable, operation_id: string) =>
  select(db)
    .where(equals(patches, { operation_id, status: 'awaiting_approval' }))
    .orderBy(asc(patches.patch_id))

export const insertPatch = (tx: Tx, patch: PgInsertValue<typeof patches>) => tx.insert(patches).values(patch)

export const saveVote = (tx: Tx, vote: typeof patch_votes.$inferInsert) =>
  tx
    .insert(patch_votes)
    .values(vote)
    .onConflictDoUpdate({
      target: [patch_votes.operation_id, patch_votes.patch_id, patch_votes.user_id],
      set: { ...vote, at: NOW },
    })

/** Removes the votes of these people. */
export const removeVotes = (tx: Tx, operation_id: string, patch_id: string, user_ids: readonly string[]) =>
  tx
    .delete(patch_votes)
    .where(and(equals(patch_votes, { operation_id, patch_id }), inArray(patch_votes.user_id, [...user_ids])))

/** Moves a patch from one status to another; returns false if another change was faster. */
export const movePatch = async (
  tx: Tx,
  operation_id: string,
  patch_id: string,
  from: PatchStatus,
  set: PgUpdateSetSource<typeof patches>,
): Promise<boolean> => {
  const rows = await tx
    .update(patches)
    .set({ ...set, updated_at: NOW })
    .where(equals(patches, { operation_id, patch_id, status: from }))
    .returning({ patch_id: patches.patch_id })
  return rows.length === 1
}

/** Holds nodes so that no claim is granted while the patch is open (operations.md 1.5). Returns how many were free. */
export const holdNodes = async (tx: Tx, operation_id: string, node_ids: readonly string[], patch_id: string) => {
  const rows = await tx
    .update(nodes)
    .set({ hold_patch_id: patch_id, updated_at: NOW })
    .where(
      and(
        eq(nodes.operation_id, operation_id),
        sql`${nodes.node_id} = any(${sql.param(node_ids)}::text[])`,
        isNull(nodes.hold_patch_id),
      ),
    )
    .returning({ node_id: nodes.node_id })
  return rows.length
}

export const liftHolds = (tx: Tx, operation_id: string, patch_id: string) =>
  updateRows(tx, { operation_id, hold_patch_id: patch_id }, nodes, { hold_patch_id: null, updated_at: NOW })

/** Ends every open patch of a cancelled or ended operation; `open`: with those that no engine is left to adopt. */
export const closePatches = async (
  tx: Tx,
  operation_id: string,
  why: string,
  open: readonly PatchStatus[] = ['awaiting_approval'],
): Promise<Omit<TimelineEvent, 'actor'>[]> => {
  const rows = await tx
    .update(patches)
    .set({ status: 'not_applicable', status_reason: why, updated_at: NOW })
    .where(and(eq(patches.operation_id, operation_id), inArray(patches.status, [...open])))
    .returning({ patch_id: patches.patch_id })
  for (const { patch_id } of rows) await liftHolds(tx, operation_id, patch_id)
  return rows.map(({ patch_id }) => ({ type: 'patch.not_applicable', patch_id, data: { why } }))
}

/** Records that the reducer has adopted the new graph. */
export const patchApplied = async (tx: Tx, operation_id: string, patch_id: string): Promise<void> => {
  await movePatch(tx, operation_id, patch_id, 'approved', { status: 'applied' })
}

export const listExpiredPatches = (db: Queryable, limit: number) =>
  db
    .select({ operation_id: patches.operation_id, patch_id: patches.patch_id })
    .from(patches)
    .where(and(eq(patches.status, 'awaiting_approval'), sql`${patches.expires_at} < clock_timestamp()`))
    .limit(limit)

/** The graph of an operation from its rows, with the members that patches need. */
export const readRunning = async (tx: Queryable, operation_id: string) => {
  const own = eq(nodes.operation_id, operation_id)
  const [nodeRows, gateRows] = await Promise.all([
    tx
      .select({
        ...pick(nodes, 'node_id', 'ordinal', 'spec', 'spec_digest'),
        state: sql<NodeState>`${nodes.state}`,
        ...pick(nodes, 'attempt', 'generation', 'removed', 'hold_patch_id', 'gate_ids', 'input_overrides'),
      })
      .from(nodes)
      .where(own)
      .orderBy(asc(nodes.ordinal)),
    readRunningGates(tx, operation_id),
  ])
  return { nodes: nodeRows, gates: gateRows }
}
export type RunningRows = Awaited<ReturnType<typeof readRunning>>

/** Operation columns that a patch view needs. */
export const getPatchHead = (db: Queryable, operation_id: string) =>
  db
    .select({
      ...pick(operations, 'operation_id', 'requester_id', 'involved', 'risk_level', 'environment', 'labels'),
      ...pick(operations, 'resource_ids', 'engine_status'),
      ...pick(operation_control, 'control', 'cancel_mode'),
      cancelled_at: iso(operation_control.cancelled_at),
      ...pick(operation_control, 'pause_reason', 'revision'),
      change_seq: operations.change_seq,
      unknown_nodes: sql<number>`0`,
    })
    .from(operations)
    .innerJoin(operation_control, eq(operation_control.operation_id, operations.operation_id))
    .where(eq(operations.operation_id, operation_id))
    .then(first)

/** The next graph of an operation, as computed by its planner. */
export type Revision = {
  operation_id: string
  patch_id: string
  base_revision: number
  running: RunningRows
  /** Touched and added nodes in their new form. */
  nodes: (PlanNode & { spec_digest: string })[]
  removed: readonly string[]
  /** All gates with their new subject. */
  gates: (PlanGate & { subject: GateSubject; digest: string })[]
  /** Those of them that the patch's own votes have opened. */
  opened: readonly string[]
  removed_gates: readonly string[]
  max_parallel: { before: number; after: number }
  risk_level: { before: string; after: string }
  graph: PlanGraph
  result_hash: string
  /** Its proposer, and the people behind the proposer. */
  proposers: string[]
}
export type GateNow = { status: GateStatus; round: number; deadline_at: string | null }
