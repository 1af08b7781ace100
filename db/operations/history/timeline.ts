import { and, asc, desc, eq, gt, inArray, type SQL, sql } from 'drizzle-orm'
import type { Static } from 'typebox'
import type { NodeState } from '../../../apps/shared/contracts/operations/graph.ts'
import type { TimelineQuery } from '../../../apps/shared/contracts/operations/operations.ts'
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
} from '../tables/index.ts'

/** A join with the view of runs takes a second for the 2,000 nodes of an operation that has just begun. */
const RAN_MS = sql<number | null>`(select round(extract(epoch from t.ended_at - t.started_at) * 1000)::float8
  from operations.node_attempts t
  where t.operation_id = nodes.operation_id and t.node_id = nodes.node_id and t.generation = nodes.generation
  order by t.started_at desc limit 1)`

/** The drawing of a revision (default: the newest) with the live states of nodes and gates. */
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
      state: sql<NodeState>`${nodes.state}`,
      ...pick(nodes, 'attempt', 'generation', 'node_id', 'exception'),
      held: sql<boolean>`${nodes.hold_patch_id} is not null`,
      ran_ms: RAN_MS,
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
export type TimelineFilter = Pick<Static<typeof TimelineQuery>, 'types' | 'actor' | 'node_id'> & {
  after_seq: number
  limit: number
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
