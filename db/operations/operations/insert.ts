import { sql } from 'drizzle-orm'
import type {
  Actor,
  GateSubject,
  PlanGate,
  PlanGraph,
  PlanNode,
} from '../../../apps/shared/contracts/operations/graph.ts'
import type { OperationCalendar } from '../../../apps/shared/data/calendar.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { type Tx, together } from '../../client.ts'
import {
  gates,
  type LeaseState,
  nodes,
  operation_control,
  operation_graph_view,
  operations,
  resource_operation_index,
} from '../tables/index.ts'

/** The complete data of a new operation, as the start command decides it. */
export type NewOperation = {
  /** Windows and freezes that bind its nodes. */
  calendar?: OperationCalendar | null
  lease_state?: LeaseState
  operation_id: string
  intent_id: string
  plan_id: string
  plan_hash: string
  title: string
  kind: string
  requester: Actor
  starter_id: string
  /** The users whom four eyes excludes: requester, starter, and the people behind them. */
  involved: string[]
  risk_level: string
  labels: Record<string, string>
  ticket: string | null
  retry_of: string | null
  constraints: Record<string, unknown>
  max_parallel: number
  deadline_s: number | null
  estimate_s: number
  pins: { resource_id: string; version: number }[]
  graph: PlanGraph
  nodes: (PlanNode & { spec_digest: string })[]
  gates: (PlanGate & { subject: GateSubject; digest: string })[]
  /** Targets with their changes, then other leased resources and dependents. */
  resources: {
    resource_id: string
    relation: 'target' | 'ancestor' | 'dependent'
    change: string | null
    version: number | null
  }[]
}

/** Inserts a new operation with its control, nodes, gates and drawing. The caller states the facts afterwards. */
export const insertOperation = async (tx: Tx, operation: NewOperation): Promise<void> => {
  const { operation_id, plan_hash, requester, starter_id, pins, deadline_s } = operation
  // Its time begins when its window lets it begin.
  const begins = sql`greatest(clock_timestamp(), ${operation.constraints.not_before ?? null}::timestamptz)`
  const { calendar = null, lease_state } = operation
  const control = tx.insert(operation_control).values({ operation_id, calendar, ...(lease_state && { lease_state }) })
  const own = tx
    .insert(operations)
    .values({
      operation_id,
      ...pick(operation, 'intent_id', 'plan_id', 'title', 'kind', 'involved', 'risk_level'),
      total: operation.nodes.length,
      requester,
      requester_id: requester.id,
      starter_id,
      environment: operation.labels.environment ?? null,
      ...pick(operation, 'labels', 'ticket', 'retry_of'),
      resource_ids: pins.map(({ resource_id }) => resource_id),
      plan_hash,
      evidence_hash: plan_hash,
      ...pick(operation, 'constraints', 'max_parallel'),
      deadline_at: deadline_s === null ? null : sql`${begins} + make_interval(secs => ${deadline_s})`,
      eta_at: sql`${begins} + make_interval(secs => ${operation.estimate_s})`,
      pins: Object.fromEntries(pins.map(({ resource_id, version }) => [resource_id, version])),
    })
  const drawing = { operation_id, plan_revision: 1, graph: operation.graph, plan_hash }
  await together(
    control,
    own,
    insertNodes(tx, operation),
    insertGates(tx, operation),
    tx.insert(operation_graph_view).values(drawing),
    insertResources(tx, operation),
  )
}

const insertGates = async (tx: Tx, operation: NewOperation): Promise<void> => {
  if (operation.gates.length === 0) return
  const { operation_id } = operation
  await tx
    .insert(gates)
    .values(
      operation.gates.map(({ gate_id, kind, question, policy, guards, subject, digest }) => ({
        operation_id,
        gate_id,
        kind,
        question,
        policy,
        guards,
        subject,
        digest,
      })),
    )
}

/** One parameter for any number of nodes. */
const insertNodes = (tx: Tx, { operation_id, ...operation }: NewOperation) => {
  const guarding = new Map<string, string[]>()
  for (const { gate_id, guards } of operation.gates)
    for (const id of guards) guarding.set(id, [...(guarding.get(id) ?? []), gate_id])
  const rows = operation.nodes.map(({ spec_digest, ...spec }, ordinal) => ({
    ordinal,
    spec,
    spec_digest,
    depends_on: spec.depends_on,
    gate_ids: guarding.get(spec.node_id) ?? [],
  }))
  return tx.execute(sql`
    insert into ${nodes} (operation_id, node_id, ordinal, name, kind, executor, target_id, group_id, depends_on, gate_ids, spec, spec_digest)
    select ${operation_id}::uuid, spec ->> 'node_id', ordinal, spec ->> 'name', spec ->> 'kind', spec ->> 'executor',
           spec ->> 'target_id', spec ->> 'group', depends_on, gate_ids, spec, spec_digest
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as row(ordinal int, spec jsonb, spec_digest text, depends_on text[], gate_ids text[])`)
}

const insertResources = async (tx: Tx, { operation_id, kind, title, resources }: NewOperation): Promise<void> => {
  if (resources.length === 0) return
  await tx.execute(sql`
    insert into ${resource_operation_index} (resource_id, operation_id, relation, change, version_from, status, kind, title, started_at)
    select resource_id, ${operation_id}::uuid, relation, change, version, 'queued', ${kind}, ${title}, clock_timestamp()
    from jsonb_to_recordset(${JSON.stringify(resources)}::jsonb)
      as row(resource_id text, relation text, change text, version bigint)`)
}
