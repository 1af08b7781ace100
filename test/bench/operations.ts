import { fork } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Client, Connection } from '@temporalio/client'
import { type Person, waitUntil } from '../../apps/platform/demo/client.ts'
import { approveGate, type OperationView, waitForGate } from '../../apps/platform/demo/operations.ts'
import { uuidv7 } from '../../apps/shared/ids.ts'
import { table } from '../../apps/shared/print.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { layeredGraph, median, quantile } from './lib/graph.ts'

/**
 * `npm run bench:operations`: nodes per second and history events per node of layered graphs, ours (HTTP, Postgres,
 * read models, evidence) against a minimal scheduler on the same Temporal server, arms interleaved; then the time of a
 * gate decision over HTTP. Everything runs on this machine, so only the ratios mean something elsewhere.
 */
const WIDTH = 50
/** The smaller the graph, the more one round says of the moment it met. */
const ROUNDS = { 100: 9, 1000: 3 } as const
const DECISIONS = 60
const WARM_UP = 1000
/** A look takes time from what is measured. */
const LOOK_MS = 1000

type Arm = { nodes_per_s: number; events_per_node: number }

const bareArm = async (client: Client, queue: string, count: number): Promise<Arm> => {
  const workflowId = uuidv7()
  const started = performance.now()
  const handle = await client.workflow.start('bareGraph', {
    taskQueue: queue,
    workflowId,
    args: [layeredGraph(count, WIDTH), WIDTH],
  })
  await handle.result()
  const seconds = (performance.now() - started) / 1000
  return { nodes_per_s: count / seconds, events_per_node: (await handle.describe()).historyLength / count }
}

const graphIntent = (title: string, nodes: { node_id: string; depends_on: string[] }[], gates: unknown[] = []) => ({
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

const start = async (operator: Person, intent: Record<string, unknown>) => {
  const { body: created } = await operator.post<{ intent_id: string }>('/v1/intents', intent)
  const { body: plan } = await operator.post<{ plan_id: string; plan_hash: string }>(
    `/v1/intents/${created.intent_id}/plan-preview`,
    {},
  )
  const begun = Date.now()
  const { body } = await operator.post<OperationView>(`/v1/plans/${plan.plan_id}/start`, {
    reviewed_plan_hash: plan.plan_hash,
  })
  return { operation_id: body.operation_id, begun }
}

/** Historical events over all runs of the workflow, so that rolling into a new run hides none. */
const eventsOf = async (client: Client, workflowId: string): Promise<number> => {
  let events = 0
  for await (const run of client.workflow.list({ query: `WorkflowId = "${workflowId}"` })) events += run.historyLength
  return events
}

const ourArm = async (operator: Person, client: Client, count: number): Promise<Arm> => {
  const { operation_id, begun } = await start(operator, graphIntent(`dag ${count}`, layeredGraph(count, WIDTH)))
  const { ended_at } = await waitUntil(
    'the end',
    () => operator.get<OperationView & { ended_at: string }>(`/v1/operations/${operation_id}`),
    (operation) => operation.status === 'succeeded',
    300_000,
    LOOK_MS,
  )
  // From the request to start it until the operation ended, by one clock: the looks in between are not part of it.
  const seconds = (Date.parse(ended_at) - begun) / 1000
  return { nodes_per_s: count / seconds, events_per_node: (await eventsOf(client, operation_id)) / count }
}

type Gate = Parameters<typeof approveGate>[2]

/** Decisions at as many gates: each after the change behind the last one has ended, or one right after the other. */
const gateTimes = async (operator: Person, approver: Person, pace: 'idle' | 'loaded'): Promise<number[]> => {
  const gates = Array.from({ length: DECISIONS }, (_, i) => ({
    gate_id: `g${i}`,
    question: `Go on with ${i}?`,
    policy: { approvals: { quorum: 1, groups: [], four_eyes: true } },
    guards: [`n${i}`],
  }))
  const nodes = gates.map((_, i) => ({ node_id: `n${i}`, depends_on: [] }))
  const { operation_id } = await start(operator, graphIntent('gates', nodes, gates))
  await waitForGate(approver, operation_id)
  const times: number[] = []
  for (const { gate_id } of gates) {
    const gate = await approver.get<Gate>(`/v1/operations/${operation_id}/gates/${gate_id}`)
    const before = performance.now()
    await approveGate(approver, operation_id, gate, 'benchmark')
    times.push(performance.now() - before)
    if (pace === 'idle')
      await waitUntil(
        'the node behind the gate',
        () => operator.get<OperationView>(`/v1/operations/${operation_id}`),
        ({ progress }) => progress.done >= times.length,
      )
  }
  return times
}

const startBareWorker = async (address: string, namespace: string, queue: string) => {
  const child = fork(fileURLToPath(new URL('./bare/worker.ts', import.meta.url)), [address, namespace, queue], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve())
    child.once('exit', (code) => reject(new Error(`the baseline's worker ended with ${code}`)))
  })
  return child
}

const run = async (stack: Stack) => {
  const { olga: operator, eva: approver } = await stack.people()
  const { address, namespace } = stack.servers.temporal
  const connection = await Connection.connect({ address })
  const client = new Client({ connection, namespace })
  const queue = `bare-${uuidv7()}`
  const bare = await startBareWorker(address, namespace, queue)
  try {
    // A process that has just started runs uncompiled code; neither arm is judged by that.
    console.error('warm-up')
    await bareArm(client, queue, WARM_UP)
    await ourArm(operator, client, WARM_UP)
    await gateTimes(operator, approver, 'idle')
    const rows: string[][] = []
    for (const count of [100, 1000] as const) {
      const arms: { ours: Arm; bare: Arm }[] = []
      for (let round = 1; round <= ROUNDS[count]; round++) {
        const bare = await bareArm(client, queue, count)
        const ours = await ourArm(operator, client, count)
        arms.push({ bare, ours })
        console.error(
          `dag(${count}), round ${round} of ${ROUNDS[count]}: ${ours.nodes_per_s.toFixed(0)} against ${bare.nodes_per_s.toFixed(0)} nodes/s`,
        )
      }
      rows.push(...report(count, arms))
    }
    for (const pace of ['idle', 'loaded'] as const) {
      console.error(`${DECISIONS} gate decisions, workers ${pace}`)
      const times = await gateTimes(operator, approver, pace)
      const [p50, p95] = [quantile(times, 0.5), quantile(times, 0.95)]
      rows.push([
        `gate decision over HTTP, workers ${pace}`,
        `p50 ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms`,
        '',
        'aim: p95 < 50 ms',
      ])
      print({ figure: 'gate_decision_ms', workers: pace, p50, p95, decisions: times.length })
    }
    console.log(`\n${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}, medians of all rounds\n`)
    for (const line of table(['figure', 'ours', 'bare Temporal', 'ratio'], rows)) console.log(line)
  } finally {
    bare.kill('SIGTERM')
    await connection.close()
  }
}

const report = (count: number, arms: { ours: Arm; bare: Arm }[]): string[][] => {
  const of = (pick: (arm: { ours: Arm; bare: Arm }) => number) => median(arms.map(pick))
  const rate = {
    ours: of((arm) => arm.ours.nodes_per_s),
    bare: of((arm) => arm.bare.nodes_per_s),
    ratio: of((arm) => arm.ours.nodes_per_s / arm.bare.nodes_per_s),
  }
  const events = {
    ours: of((arm) => arm.ours.events_per_node),
    bare: of((arm) => arm.bare.events_per_node),
    ratio: of((arm) => arm.ours.events_per_node / arm.bare.events_per_node),
  }
  print({ figure: 'nodes_per_s', nodes: count, width: WIDTH, ...rate, rounds: arms.length })
  print({ figure: 'events_per_node', nodes: count, width: WIDTH, ...events, rounds: arms.length })
  return [
    [
      `nodes/s, dag(${count}), ${WIDTH} in flight`,
      rate.ours.toFixed(0),
      rate.bare.toFixed(0),
      `${rate.ratio.toFixed(2)} (aim >= 0.6)`,
    ],
    [
      `history events per node, dag(${count})`,
      events.ours.toFixed(2),
      events.bare.toFixed(2),
      `${events.ratio.toFixed(2)} (aim <= 1.3)`,
    ],
  ]
}

const print = (figure: Record<string, unknown>) =>
  console.log(JSON.stringify({ ...figure, cores: cpus().length, load: loadavg()[0] }))

const stack = await startStack()
try {
  await run(stack)
} finally {
  await stack.stop()
}
