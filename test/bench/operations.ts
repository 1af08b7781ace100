import { cpus, loadavg } from 'node:os'
import { Client, Connection } from '@temporalio/client'
import { table } from '../../apps/shared/data/print.ts'
import { uuidv7 } from '../../apps/shared/ids.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { chosen } from './lib/chosen.ts'
import { forkBare } from './lib/fork.ts'
import { benchGates, benchPeople, decideAlone } from './operations/gates.ts'
import { benchCost, benchGraphs } from './operations/graphs.ts'
import { packFolder } from './operations/hosts.ts'
import { type Bench, type Row, runBare, runGraph } from './operations/runs.ts'
import { benchCrowd, benchIdle, benchStarts } from './operations/starts.ts'

/**
 * `npm run bench:operations`: what reviewed plans cost (HTTP, Postgres, read models, evidence) against a minimal
 * scheduler on the same Temporal server, arms interleaved: graphs, gates, starts, cost by process, many operations at
 * once. Everything runs on this machine, so only the ratios carry over to others. Arguments name the figures to take
 * (default: all); `--profile=<folder>` leaves a CPU profile of each app there.
 */
const WARM_UP = 1000

const FIGURES: Record<string, (bench: Bench) => Promise<Row[]>> = {
  graphs: benchGraphs,
  gates: benchGates,
  people: benchPeople,
  starts: benchStarts,
  cost: benchCost,
  crowd: benchCrowd,
  idle: benchIdle,
}

const { wanted, values } = chosen(FIGURES, 'profile')

const run = async (stack: Stack) => {
  const { ada: admin, olga: operator, eva: approver } = await stack.people()
  const { address, namespace } = stack.servers.temporal
  const connection = await Connection.connect({ address })
  const queue = `bare-${uuidv7()}`
  const bare = await forkBare('worker', [address, namespace, queue])
  try {
    const bench: Bench = { admin, operator, approver, client: new Client({ connection, namespace }), queue }
    // A process that has just started runs uncompiled code; neither arm is judged by that.
    console.error('warm-up')
    await runBare(bench, WARM_UP)
    await runGraph(bench, WARM_UP)
    await decideAlone(bench, 'idle')
    const rows: Row[] = []
    for (const [, measure] of wanted) rows.push(...(await measure(bench)))
    console.log(`\n${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}, medians of all rounds\n`)
    for (const line of table(['figure', 'ours', 'bare Temporal', 'ratio'], rows)) console.log(line)
  } finally {
    bare.stop()
    await connection.close()
  }
}

const stack = await startStack({
  env_overrides: {
    OPERATIONS__PACKS__DIR: packFolder(),
    ...(values.profile && { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${values.profile}` }),
  },
})
try {
  await run(stack)
} finally {
  await stack.stop()
}
