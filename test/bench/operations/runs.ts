import type { Client } from '@temporalio/client'
import { type Person, waitUntil } from '../../../apps/platform/demo/client.ts'
import type { Operation } from '../../../apps/shared/contracts/operations/operations.ts'
import { uuidv7 } from '../../../apps/shared/ids.ts'
import { layeredGraph } from '../lib/graph.ts'

/** Shared by the operations figures: how a graph runs, here and on bare Temporal. */
export const WIDTH = 50
/** Polling takes time from the measurement. */
const LOOK_MS = 1000

export type Bench = { admin: Person; operator: Person; approver: Person; client: Client; queue: string }
/** A row of the table: figure, ours, bare Temporal, ratio and aim. */
export type Row = [string, string, string, string]
export type Run = { operation_id: string; begun: number }

type Node = { node_id: string; depends_on: string[] }
export const graphIntent = (title: string, nodes: Node[], gates: unknown[] = []) => ({
  kind: 'graph',
  title,
  reason: 'benchmark',
  targets: [],
  constraints: { max_parallel: WIDTH },
  graph: {
    nodes: nodes.map((node) => ({ ...node, kind: 'task', executor: 'noop', with: { delay_ms: 0 }, idempotent: true })),
    gates,
  },
})

type Plan = { plan_id: string; plan_hash: string }
export const preview = async ({ operator }: Bench, intent: Record<string, unknown>): Promise<Plan> => {
  const { body: created } = await operator.post<{ intent_id: string }>('/v1/intents', intent)
  return (await operator.post<Plan>(`/v1/intents/${created.intent_id}/plan-preview`, {})).body
}

export const startPlan = async ({ operator }: Bench, { plan_id, plan_hash }: Plan): Promise<Run> => {
  const begun = Date.now()
  const { body } = await operator.post<Operation>(`/v1/plans/${plan_id}/start`, { reviewed_plan_hash: plan_hash })
  return { operation_id: body.operation_id, begun }
}

/** Seconds from the request to start until the operation ended, by one clock: the polls in between are not included. */
export const secondsOf = async ({ operator }: Bench, { operation_id, begun }: Run): Promise<number> => {
  const { ended_at } = await waitUntil(
    'the end',
    () => operator.get<Operation & { ended_at: string }>(`/v1/operations/${operation_id}`),
    ({ status }) => status === 'succeeded',
    300_000,
    LOOK_MS,
  )
  return (Date.parse(ended_at) - begun) / 1000
}

export const runGraph = async (bench: Bench, count: number): Promise<{ operation_id: string; seconds: number }> => {
  const plan = await preview(bench, graphIntent(`dag ${count}`, layeredGraph(count, WIDTH)))
  const run = await startPlan(bench, plan)
  return { operation_id: run.operation_id, seconds: await secondsOf(bench, run) }
}

export const runBare = async (
  { client, queue }: Bench,
  count: number,
): Promise<{ workflow_id: string; seconds: number }> => {
  const workflow_id = uuidv7()
  const started = performance.now()
  const handle = await client.workflow.start('bareGraph', {
    taskQueue: queue,
    workflowId: workflow_id,
    args: [layeredGraph(count, WIDTH), WIDTH],
  })
  await handle.result()
  return { workflow_id, seconds: (performance.now() - started) / 1000 }
}

/** Events over all runs of a workflow, so that continuing as a new run hides none. */
export const eventsOf = async ({ client }: Bench, workflow_id: string): Promise<number> => {
  let events = 0
  for await (const run of client.workflow.list({ query: `WorkflowId = "${workflow_id}"` })) events += run.historyLength
  return events
}
