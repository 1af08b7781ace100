import { waitUntil } from '../../../apps/platform/demo/client.ts'
import { approveGate, waitForGate } from '../../../apps/platform/demo/operations.ts'
import type { Operation } from '../../../apps/shared/contracts/operations/operations.ts'
import { quantile } from '../lib/graph.ts'
import { printFigure } from '../lib/print.ts'
import { platformCpuSince } from '../lib/processes.ts'
import { type Bench, graphIntent, preview, type Row, startPlan } from './runs.ts'

const DECISIONS = 60
const CROWD = 50
const CROWD_OPERATIONS = 10
const CROWD_GATES = 30

type Gate = Parameters<typeof approveGate>[2]
type Times = { decided_ms: number[]; begun_ms: number[] }

/** An operation whose every node waits at its own gate. */
export const startGates = async (bench: Bench, count: number): Promise<string> => {
  const gates = Array.from({ length: count }, (_, i) => ({
    gate_id: `g${i}`,
    question: `Go on with ${i}?`,
    policy: { approvals: { quorum: 1, groups: [], four_eyes: true } },
    guards: [`n${i}`],
  }))
  const nodes = gates.map((_, i) => ({ node_id: `n${i}`, depends_on: [] }))
  const { operation_id } = await startPlan(bench, await preview(bench, graphIntent('gates', nodes, gates)))
  await waitForGate(bench.approver, operation_id)
  return operation_id
}

/** Reads a gate and decides it; returns the time of the decision alone. */
export const decide = async ({ approver }: Bench, operation_id: string, gate_id: string) => {
  const gate = await approver.get<Gate>(`/v1/operations/${operation_id}/gates/${gate_id}`)
  const at = Date.now()
  const before = performance.now()
  await approveGate(approver, operation_id, gate, 'benchmark')
  return { at, ms: performance.now() - before }
}

/**
 * One person's decisions at as many gates: each after the change behind the previous one has ended, or back to back.
 */
export const decideAlone = async (bench: Bench, pace: 'idle' | 'loaded'): Promise<Times> => {
  const { operator } = bench
  const operation_id = await startGates(bench, DECISIONS)
  const decided: { at: number; ms: number }[] = []
  for (let i = 0; i < DECISIONS; i++) {
    decided.push(await decide(bench, operation_id, `g${i}`))
    if (pace === 'loaded') continue
    await waitUntil(
      'the node behind the gate',
      () => operator.get<Operation>(`/v1/operations/${operation_id}`),
      ({ progress }) => progress.done > i,
    )
  }
  const begun = async ({ at }: { at: number }, i: number) => {
    const path = `/v1/operations/${operation_id}/nodes/n${i}`
    const { started_at } = await waitUntil(
      'the start of the node',
      () => operator.get<{ started_at: string | null }>(path),
      (node) => node.started_at !== null,
    )
    return Date.parse(started_at ?? '') - at
  }
  const begun_ms: number[] = []
  for (const [i, one] of decided.entries()) begun_ms.push(await begun(one, i))
  return { decided_ms: decided.map(({ ms }) => ms), begun_ms }
}

/** Many people at once, over several operations: on few cores the time shows how long their queue is. */
const decideTogether = async (bench: Bench) => {
  const operations: string[] = []
  while (operations.length < CROWD_OPERATIONS) operations.push(await startGates(bench, CROWD_GATES))
  const waiting = operations.flatMap((operation_id) =>
    Array.from({ length: CROWD_GATES }, (_, i) => ({ operation_id, gate_id: `g${i}` })),
  )
  // Neighbors in the queue belong to different operations.
  waiting.sort((a, b) => Number(a.gate_id.slice(1)) - Number(b.gate_id.slice(1)))
  const times: number[] = []
  const cpu = platformCpuSince()
  const started = performance.now()
  await Promise.all(
    Array.from({ length: CROWD }, async () => {
      for (let next = waiting.shift(); next; next = waiting.shift())
        times.push((await decide(bench, next.operation_id, next.gate_id)).ms)
    }),
  )
  const per_s = times.length / ((performance.now() - started) / 1000)
  const of_each = Object.entries(cpu()).map(([name, ms]) => [name, ms / times.length] as const)
  return { times, per_s, cpu: new Map(of_each.filter(([, ms]) => ms >= 0.5).toSorted((a, b) => b[1] - a[1])) }
}

/** A row for the times of decisions. */
const rowOf = (what: string, times: number[], aim: string): Row => {
  const [p50 = 0, p95 = 0, p99 = 0] = [0.5, 0.95, 0.99].map((q) => quantile(times, q))
  printFigure({ figure: what.replaceAll(/[^a-z0-9]+/g, '_'), p50, p95, p99, count: times.length, unit: 'ms' })
  return [what, `p50 ${p50.toFixed(0)}, p95 ${p95.toFixed(0)}, p99 ${p99.toFixed(0)} ms`, '', aim]
}

export const benchGates = async (bench: Bench): Promise<Row[]> => {
  const rows: Row[] = []
  for (const pace of ['idle', 'loaded'] as const) {
    console.error(`${DECISIONS} gate decisions, workers ${pace}`)
    const { decided_ms, begun_ms } = await decideAlone(bench, pace)
    rows.push(rowOf(`gate decision over HTTP, workers ${pace}`, decided_ms, 'aim: p95 < 50 ms'))
    rows.push(rowOf(`decision to start of the node, workers ${pace}`, begun_ms, 'aim: p95 < 150 ms'))
  }
  return rows
}

/** Many people decide at once: their times, and the CPU of one decision with its read and its node. */
export const benchPeople = async (bench: Bench): Promise<Row[]> => {
  console.error(`${CROWD_OPERATIONS * CROWD_GATES} gate decisions of ${CROWD} people at once`)
  const { times, per_s, cpu } = await decideTogether(bench)
  const total = [...cpu.values()].reduce((sum, ms) => sum + ms, 0)
  printFigure({ figure: 'people_cpu_ms_per_decision', total, ...Object.fromEntries(cpu) })
  return [
    rowOf(`gate decision over HTTP, ${CROWD} people`, times, `${per_s.toFixed(0)} decisions/s`),
    ['CPU of each, with its read and its node', `${total.toFixed(1)} ms`, '', ''],
    ...[...cpu].map(([name, ms]): Row => [`  of it in ${name}`, `${ms.toFixed(1)} ms`, '', '']),
  ]
}
