import { median } from '../lib/graph.ts'
import { printFigure } from '../lib/print.ts'
import { idleCpu, platformCpuSince } from '../lib/processes.ts'
import { registerHosts, STEPS, touchHosts } from './hosts.ts'
import { type Bench, eventsOf, type Row, runBare, runGraph, WIDTH } from './runs.ts'

/** The smaller the graph, the more chance affects one round. */
const ROUNDS = { 100: 9, 1000: 3 } as const

type Arm = { nodes_per_s: number; events_per_node: number }
type Arms = { ours: Arm; bare: Arm }[]

const ourArm = async (bench: Bench, count: number): Promise<Arm> => {
  const { operation_id, seconds } = await runGraph(bench, count)
  return { nodes_per_s: count / seconds, events_per_node: (await eventsOf(bench, operation_id)) / count }
}
const bareArm = async (bench: Bench, count: number): Promise<Arm> => {
  const { workflow_id, seconds } = await runBare(bench, count)
  const { historyLength } = await bench.client.workflow.getHandle(workflow_id).describe()
  return { nodes_per_s: count / seconds, events_per_node: historyLength / count }
}

/** Nodes per second and history events per node of layered graphs, arms interleaved. */
export const benchGraphs = async (bench: Bench): Promise<Row[]> => {
  const rows: Row[] = []
  for (const count of [100, 1000] as const) {
    const arms: Arms = []
    for (let round = 1; round <= ROUNDS[count]; round++) {
      const bare = await bareArm(bench, count)
      const ours = await ourArm(bench, count)
      arms.push({ bare, ours })
      const rates = `${ours.nodes_per_s.toFixed(0)} against ${bare.nodes_per_s.toFixed(0)} nodes/s`
      console.error(`dag(${count}), round ${round} of ${ROUNDS[count]}: ${rates}`)
    }
    rows.push(...report(count, arms))
  }
  return rows
}

const report = (count: number, arms: Arms): Row[] => {
  const of = (pick: (arm: Arms[number]) => number) => median(arms.map(pick))
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
  printFigure({ figure: 'nodes_per_s', nodes: count, width: WIDTH, ...rate, rounds: arms.length })
  printFigure({ figure: 'events_per_node', nodes: count, width: WIDTH, ...events, rounds: arms.length })
  return [
    [
      `nodes/s, dag(${count}), ${WIDTH} in flight`,
      rate.ours.toFixed(0),
      rate.bare.toFixed(0),
      `${rate.ratio.toFixed(2)} (aim >= 0.8)`,
    ],
    [
      `history events per node, dag(${count})`,
      events.ours.toFixed(2),
      events.bare.toFixed(2),
      `${events.ratio.toFixed(2)} (aim <= 1.3)`,
    ],
  ]
}

const SMALL = 100
const SMALL_RUNS = 10
const [FEW_HOSTS, MANY_HOSTS] = [20, 1000]
const FEW_RUNS = 10

const nodesOf = (hosts: number) => hosts * STEPS.length

/**
 * CPU of all processes per node, minus their idle use (one arm waits longer than the other): graphs by process against
 * bare Temporal, and a large plan against small ones.
 */
export const benchCost = async (bench: Bench): Promise<Row[]> => {
  const idle = await idleCpu()
  const perNode = async (count: number, runs: number, run: (bench: Bench, count: number) => Promise<unknown>) => {
    const cpu = platformCpuSince()
    const since = performance.now()
    for (let n = 0; n < runs; n++) await run(bench, count)
    const seconds = (performance.now() - since) / 1000
    const own = (name: string, ms: number) => Math.max(0, ms - (idle[name] ?? 0) * seconds)
    return Object.fromEntries(Object.entries(cpu()).map(([name, ms]) => [name, own(name, ms) / (count * runs)]))
  }
  console.error(`cost per node: ${SMALL_RUNS} graphs of ${SMALL}`)
  const small = await perNode(SMALL, SMALL_RUNS, runGraph)
  const bare = await perNode(SMALL, SMALL_RUNS, runBare)
  console.error(`cost per node: ${FEW_RUNS} plans for ${FEW_HOSTS} hosts, one for ${MANY_HOSTS}`)
  await registerHosts(bench.admin, MANY_HOSTS)
  const few = await perNode(nodesOf(FEW_HOSTS), FEW_RUNS, (on) => touchHosts(on, FEW_HOSTS))
  const many = await perNode(nodesOf(MANY_HOSTS), 1, (on) => touchHosts(on, MANY_HOSTS))
  const total = (cpu: Record<string, number>) => Object.values(cpu).reduce((sum, ms) => sum + ms, 0)
  const ratio = total(many) / total(few)
  printFigure({
    figure: 'cpu_ms_per_node',
    small,
    bare,
    few,
    many,
    ratio,
    nodes: { few: nodesOf(FEW_HOSTS), many: nodesOf(MANY_HOSTS) },
  })
  const ms = (value = 0) => `${value.toFixed(2)} ms`
  const names = Object.keys(small).filter((name) => name !== 'bare worker' && (small[name] ?? 0) >= 0.05)
  const bareOf = (name: string) => (name === 'worker' ? bare['bare worker'] : bare[name])
  return [
    [`CPU per node, dag(${SMALL})`, ms(total(small)), ms(total(bare)), (total(small) / total(bare)).toFixed(2)],
    ...names
      .toSorted((a, b) => (small[b] ?? 0) - (small[a] ?? 0))
      .map(
        (name): Row => [
          `  of it in ${name}`,
          ms(small[name]),
          ['worker', 'temporal'].includes(name) ? ms(bareOf(name)) : '',
          '',
        ],
      ),
    [`CPU per node, plan of ${nodesOf(FEW_HOSTS)} for ${FEW_HOSTS} hosts`, ms(total(few)), '', ''],
    [
      `CPU per node, plan of ${nodesOf(MANY_HOSTS)} for ${MANY_HOSTS} hosts`,
      ms(total(many)),
      '',
      `${ratio.toFixed(2)} of the small one (aim <= 1.2)`,
    ],
  ]
}
