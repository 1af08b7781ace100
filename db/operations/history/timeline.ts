import { and, asc, desc, eq, gt, inArray, type SQL, sql } from 'drizzle-orm'
import type { NodeState } from '../../../apps/shared/contracts/operations/graph.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { first, type Queryable } from '../../client.ts'
import { iso } from '../expressions.ts'
import {
  gates,
  nodes,
  operation_evidence_index,
  operation_graph_view,
  operation_timeline_view,
  operations,
  plans,
} from '../tables/index.ts'

/** The drawing of a revision (the newest unless said) with the live states of nodes and gates. */
export const getGraph = async (db: Queryable, operation_id: string, revision: number | undefined) => {
  const [drawing] = await db
    .select()
    .from(operation_graph_view)
    .where(
      and(
        eq(operation_graph_view.operation_id, operation_id),
        revision === undefined ? undefined : eq(operation_graph_view.plan_revision, revision),
      ),
    )
    .orderBy(desc(operation_graph_view.plan_revision))
    .limit(1)
  if (!drawing) return undefined
  const states = await db
    .select({
      node_id: nodes.node_id,
      state: sql<NodeState>`${nodes.state}`,
      ...pick(nodes, 'attempt', 'generation'),
      held: sql<boolean>`${nodes.hold_patch_id} is not null`,
      exception: nodes.exception,
    })
    .from(nodes)
    .where(eq(nodes.operation_id, operation_id))
  const gateStates = await db
    .select({ gate_id: gates.gate_id, status: gates.status })
    .from(gates)
    .where(eq(gates.operation_id, operation_id))
  const [at] = await db
    .select({ change_seq: operations.change_seq, as_of: iso(operations.updated_at) })
    .from(operations)
    .where(eq(operations.operation_id, operation_id))
  return { drawing, states, gateStates, change_seq: at?.change_seq ?? 0, as_of: at?.as_of ?? '' }
}

const t = operation_timeline_view
export type TimelineFilter = {
  after_seq: number
  limit: number
  types?: string[] | undefined
  actor?: string | undefined
  node_id?: string | undefined
}
export const listTimeline = (db: Queryable, operation_id: string, filter: TimelineFilter) =>
  db
    .select({
      seq: t.seq,
      at: iso(t.at),
      ...pick(t, 'type', 'actor', 'on_behalf_of', 'reason', 'node_id', 'gate_id', 'patch_id', 'command_id', 'data'),
      evidence_seq: t.evidence_seq,
    })
    .from(t)
    .where(
      and(
        eq(t.operation_id, operation_id),
        gt(t.seq, filter.after_seq),
        filter.types && inArray(t.type, filter.types),
        filter.actor === undefined ? undefined : sql`${t.actor} ->> 'id' = ${filter.actor}`,
        filter.node_id === undefined ? undefined : eq(t.node_id, filter.node_id),
      ),
    )
    .orderBy(asc(t.seq))
    .limit(filter.limit)

export const getHeads = (db: Queryable, operation_id: string) =>
  db
    .select({
      timeline_seq: operations.timeline_seq,
      evidence: { seq: operations.evidence_seq, hash: operations.evidence_hash },
    })
    .from(operations)
    .where(eq(operations.operation_id, operation_id))
    .then(first)

const e = operation_evidence_index
export const listEvidence = (db: Queryable, operation_id: string, after_seq: number, limit: number) =>
  db
    .select({
      v: sql<1>`1`.mapWith(Number) as SQL<1>,
      ...pick(e, 'operation_id', 'seq', 'kind', 'statement', 'subject', 'subject_digest', 'actor', 'at', 'prev_hash'),
      hash: e.hash,
    })
    .from(e)
    .where(and(eq(e.operation_id, operation_id), gt(e.seq, after_seq)))
    .orderBy(asc(e.seq))
    .limit(limit)

const EVIDENCE_SHOWN = 20

/** What a person weighs besides the subject: it may change and is not covered by the digest (operations.md 5.5). */
export const getGateContext = async (db: Queryable, operation_id: string, guards: readonly string[]) => {
  const [plan] = await db
    .select({ report: plans.report, as_of: iso(sql`clock_timestamp()`) })
    .from(operations)
    .innerJoin(plans, eq(plans.plan_id, operations.plan_id))
    .where(eq(operations.operation_id, operation_id))
  const evidence = await db
    .select({ seq: e.seq, kind: e.kind, statement: e.statement, at: e.at, actor: e.actor })
    .from(e)
    .where(eq(e.operation_id, operation_id))
    .orderBy(desc(e.seq))
    .limit(EVIDENCE_SHOWN)
  const compensations = await db
    .select({
      ...pick(nodes, 'node_id', 'name'),
      executor: sql<string>`${nodes.spec} #>> '{compensate,executor}'`,
    })
    .from(nodes)
    .where(
      and(
        eq(nodes.operation_id, operation_id),
        inArray(nodes.node_id, [...guards]),
        sql`${nodes.spec} -> 'compensate' is not null`,
      ),
    )
    .orderBy(nodes.ordinal)
  const report = plan?.report ?? {}
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
  return {
    as_of: plan?.as_of ?? '',
    impact: report.impact,
    policy_results: list(report.policy_results),
    rehearsal: report.rehearsal ?? null,
    evidence: evidence.reverse(),
    compensations,
  }
}
