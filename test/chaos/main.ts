import { cpSync, rmSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { table } from '../../apps/shared/data/print.ts'
import { startStack } from '../support/stack.ts'
import { atRandom } from './kills.ts'
import { type Outcome, wreak } from './run.ts'

/**
 * `npm run test:chaos -- --kills 50 [--seed N] [--gap SECONDS] [--at-once N]`: a platform and servers of its own, operations
 * on real hosts all the time, `kill -9` and SIGSTOP of random processes at random moments, lost answers, and people who
 * sign in and out meanwhile. Exits 1 when an operation did not end
 * right, an effect was lost or done twice, or anything derived is not what its origin says.
 */
const USAGE = 'usage: npm run test:chaos -- [--kills 50] [--seed N] [--gap SECONDS] [--at-once N]'

const options = () => {
  try {
    const { values } = parseArgs({
      options: {
        kills: { type: 'string', default: '50' },
        seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
        gap: { type: 'string', default: '6' },
        'at-once': { type: 'string', default: '4' },
      },
    })
    const wanted = { kills: +values.kills, seed: +values.seed, gap_s: +values.gap, at_once: +values['at-once'] }
    if (Object.values(wanted).every((value) => Number.isFinite(value) && value >= 0) && wanted.at_once >= 1)
      return wanted
  } catch {
    // Said below.
  }
  console.error(USAGE)
  process.exit(2)
}

const report = ({ deaths, stalls, sign_ins, jobs, effects, twice, lost, breaches }: Outcome): void => {
  const seconds = (times: number[]) =>
    times.length === 0 ? '' : (times.reduce((a, b) => a + b) / times.length / 1000).toFixed(1)
  const rows = [...deaths].map(([name, times]) => [name, String(times.length), seconds(times)])
  const all = [...deaths.values()].flat()
  console.log()
  for (const line of table(
    ['process', 'kills', 'back after (mean s)'],
    [...rows, ['all', String(all.length), seconds(all)]],
  ))
    console.log(line)
  console.log()
  console.log(
    `${stalls} processes stood still; ${sign_ins.count} sign-ins, the slowest ${(sign_ins.slowest_ms / 1000).toFixed(1)} s\n`,
  )
  const over = [jobs.length, effects, twice, lost, breaches.length].map(String)
  for (const line of table(['operations over', 'effects', 'twice', 'lost', 'breaches'], [over])) console.log(line)
  for (const breach of breaches) console.log(`BREACH  ${breach}`)
}

/** The logs of a run that found something outlive it. */
const keepLogs = (): void => {
  const kept = join(ROOT, '.signalbox/chaos-logs')
  rmSync(kept, { recursive: true, force: true })
  cpSync(join(stack.dir, 'logs'), kept, { recursive: true })
  console.log(`the logs are in ${kept}`)
}

const wanted = options()
console.log(`${wanted.kills} kills, seed ${wanted.seed}, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}`)
const stack = await startStack({ own_servers: ['postgres', 'redis', 'nats', 'temporal'] })
let stopping = false
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    if (!stopping) void stack.stop().finally(() => process.exit(1))
    stopping = true
  })
process.exitCode = 1
try {
  const harm = atRandom(stack, wanted)
  const outcome = await wreak(stack, { ...wanted, harm, print: (line) => console.log(line) })
  report(outcome)
  if (outcome.breaches.length === 0) process.exitCode = 0
} finally {
  if (process.exitCode === 1) keepLogs()
  await stack.stop()
}
