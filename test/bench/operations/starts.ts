import { waitUntil } from '../../../apps/platform/demo/client.ts'
import type { Operation } from '../../../apps/shared/contracts/operations/operations.ts'
import { layeredGraph, quantile } from '../lib/graph.ts'
import { printFigure } from '../lib/print.ts'
import { idleCpu } from '../lib/processes.ts'
import { type Bench, graphIntent, preview, type Row, runBare, secondsOf, startPlan, WIDTH } from './runs.ts'

const STARTS = 30
const LARGE = 1000
const LARGE_STARTS = 10
const CROWD = 200
const NODES = 10
const AT_ONCE = 20

/**
 * The time from the request to start a reviewed plan of `nodes` nodes until its answer, and until the first node
 * begins.
 */
const timeStarts = async (bench: Bench, count: number, nodes: number) => {
  console.error(`${count} starts of ${nodes} nodes`)
  const answered: number[] = []
  const begun: number[] = []
  for (let n = 0; n < count; n++) {
    const plan = await preview(bench, graphIntent('start', layeredGraph(nodes, WIDTH)))
    const before = performance.now()
    const run = await startPlan(bench, plan)
    answered.push(performance.now() - before)
    const { started_at } = await waitUntil(
      'the first node',
      () => bench.operator.get<{ started_at: string | null }>(`/v1/operations/${run.operation_id}/nodes/n0`),
      (node) => node.started_at !== null,
    )
    begun.push(Date.parse(started_at ?? '') - run.begun)
    await secondsOf(bench, run)
  }
  return { answered, begun }
}

export const benchStarts = async (bench: Bench): Promise<Row[]> => {
  const small = await timeStarts(bench, STARTS, 1)
  const large = await timeStarts(bench, LARGE_STARTS, LARGE)
  const row = (what: string, times: number[], aim = ''): Row => {
    const [p50, p95] = [quantile(times, 0.5), quantile(times, 0.95)]
    printFigure({ figure: what.replaceAll(/[^a-z0-9]+/g, '_'), p50, p95, count: times.length, unit: 'ms' })
    return [what, `p50 ${p50.toFixed(0)}, p95 ${p95.toFixed(0)} ms`, '', aim]
  }
  return [
    row('start over HTTP, confirmed by the engine', small.answered),
    row('start to the first node', small.begun),
    row(`start of ${LARGE} nodes, confirmed by the engine`, large.answered),
    row(`start of ${LARGE} nodes to the first`, large.begun, 'aim: p95 < 1000 ms'),
  ]
}

/** Many operations at once: reviewed plans, all started, until the last one has ended. */
export const benchCrowd = async (bench: Bench): Promise<Row[]> => {
  console.error(`${CROWD} operations of ${NODES} nodes at once`)
  const plans: Awaited<ReturnType<typeof preview>>[] = []
  while (plans.length < CROWD) plans.push(await preview(bench, graphIntent('crowd', layeredGraph(NODES, WIDTH))))
  const before = Date.now()
  const runs: Awaited<ReturnType<typeof startPlan>>[] = []
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let plan = plans.shift(); plan; plan = plans.shift()) runs.push(await startPlan(bench, plan))
    }),
  )
  const ends: number[] = []
  for (const { operation_id } of runs) {
    const { ended_at } = await waitUntil(
      'the end of all',
      () => bench.operator.get<Operation & { ended_at: string }>(`/v1/operations/${operation_id}`),
      ({ status }) => status === 'succeeded',
      300_000,
      1000,
    )
    ends.push(Date.parse(ended_at))
  }
  const seconds = (Math.max(...ends) - before) / 1000
  const bareBefore = performance.now()
  await Promise.all(Array.from({ length: CROWD }, () => runBare(bench, NODES)))
  const bare = (performance.now() - bareBefore) / 1000
  const rate = { ours: (CROWD * NODES) / seconds, bare: (CROWD * NODES) / bare }
  printFigure({ figure: 'crowd', operations: CROWD, nodes: NODES, seconds, bare_seconds: bare, ...rate })
  return [
    [
      `nodes/s, ${CROWD} operations of ${NODES} at once`,
      rate.ours.toFixed(0),
      rate.bare.toFixed(0),
      (rate.ours / rate.bare).toFixed(2),
    ],
    [`${CROWD} operations, first start to last end`, `${seconds.toFixed(1)} s`, `${bare.toFixed(1)} s`, ''],
  ]
}

/** What the idle platform costs: CPU of each process per second. */
export const benchIdle = async (): Promise<Row[]> => {
  const used = Object.entries(await idleCpu())
  const total = used.reduce((sum, [, ms]) => sum + ms, 0)
  printFigure({ figure: 'idle_cpu_ms_per_s', total, ...Object.fromEntries(used) })
  return [
    ['CPU of an idle platform', `${total.toFixed(0)} ms/s`, '', ''],
    ...used
      .toSorted((a, b) => b[1] - a[1])
      .map(([name, ms]): Row => [`  of it in ${name}`, `${ms.toFixed(1)} ms/s`, '', '']),
  ]
}
