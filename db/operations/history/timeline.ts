import { and, asc, desc, eq, gt, inArray, type SQL, sql } from 'drizzle-orm'
import type { GateSubject, NodeState } from '../../../apps/shared/contracts/operations/graph.ts'
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

/** A join with the view of runs takes a second for the 2,000 nodes of an operation that has just begun. */
const RAN_MS = sql<number | null>`(select (extract(epoch from t.ended_at - t.started_at) * 1000)::int
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
      node_id: nodes.node_id,
      state: sql<NodeState>`${nodes.state}`,
      ...pick(nodes, 'attempt', 'generation'),
      held: sql<boolean>`${nodes.hold_patch_id} is not null`,
      exception: nodes.exception,
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

type GateContext = {
  subject: GateSubject | null
  as_of: string
  impact: unknown
  policy_results: unknown[] | null
  rehearsal: unknown
  evidence: Pick<typeof e.$inferSelect, 'seq' | 'kind' | 'statement' | 'at' | 'actor'>[]
  compensations: { node_id: string; name: string; executor: string }[]
}

/**
 * A gate's subject, and the context that a person weighs besides: the context may change and the digest does not cover
 * it (operations.md 5.5). Read apart from the gate, in one statement and for one gate only, because it may be large.
 */
export const getGateContext = async (db: Queryable, operation_id: string, gate_id: string) => {
  const { rows } = await db.execute<GateContext>(sql`
    select g.subject, operations.iso(clock_timestamp()) as as_of, p.report -> 'impact' as impact,
      p.report -> 'policy_results' as policy_results, p.report -> 'rehearsal' as rehearsal,
      (select coalesce(jsonb_agg(s order by s.seq), '[]') from (select e.seq, e.kind, e.statement, e.at, e.actor
        from ${e} e where e.operation_id = ${operation_id} order by e.seq desc limit ${EVIDENCE_SHOWN}) s) as evidence,
      (select coalesce(jsonb_agg(jsonb_build_object('node_id', n.node_id, 'name', n.name,
          'executor', n.spec #>> '{compensate,executor}') order by n.ordinal), '[]')
        from ${nodes} n where n.operation_id = ${operation_id} and n.node_id = any(g.guards) and n.spec -> 'compensate' is not null) as compensations
    from ${gates} g join ${operations} o using (operation_id) left join ${plans} p on p.plan_id = o.plan_id
    where g.operation_id = ${operation_id} and g.gate_id = ${gate_id}`)
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
  const [row] = rows
  return {
    subject: row?.subject ?? null,
    context: {
      as_of: row?.as_of ?? '',
      impact: row?.impact ?? null,
      policy_results: list(row?.policy_results),
      rehearsal: row?.rehearsal ?? null,
      evidence: row?.evidence ?? [],
      compensations: row?.compensations ?? [],
    },
  }
}
