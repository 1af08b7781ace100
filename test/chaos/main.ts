import { cpSync, rmSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { table } from '../../apps/shared/data/print.ts'
import { numbersGiven } from '../support/numbers.ts'
import { startStack } from '../support/stack.ts'
import { atRandom } from './kills.ts'
import { type Outcome, wreak } from './run.ts'

/**
 * `npm run test:chaos -- --kills 50 [--seed N] [--gap SECONDS] [--at-once N]`: its own platform and servers, constant
 * operations on real hosts, `kill -9` and SIGSTOP of random processes at random moments. Answers are lost; links are
 * cut, drop everything or are slow. People sign in and out in the meantime. Exits 1 if an operation ended wrongly, an
 * effect was lost or done twice, or derived data disagrees with its origin.
 */
const report = ({ deaths, stalls, breaks, sign_ins, jobs, effects, twice, lost, breaches }: Outcome): void => {
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
    `${stalls} processes stood still, ${breaks} links failed; ${sign_ins.count} sign-ins, the slowest ${(sign_ins.slowest_ms / 1000).toFixed(1)} s\n`,
  )
  const over = [jobs.length, effects, twice, lost, breaches.length].map(String)
  for (const line of table(['operations over', 'effects', 'twice', 'lost', 'breaches'], [over])) console.log(line)
  for (const breach of breaches) console.log(`BREACH  ${breach}`)
}

/** The logs of a run with findings are kept after it. */
const keepLogs = (): void => {
  const kept = join(ROOT, '.signalbox/chaos-logs')
  rmSync(kept, { recursive: true, force: true })
  cpSync(join(stack.dir, 'logs'), kept, { recursive: true })
  console.log(`the logs are in ${kept}`)
}

const {
  kills,
  seed,
  gap,
  'at-once': at_once,
} = numbersGiven('test:chaos', { kills: 50, seed: Math.floor(Math.random() * 1e9), gap: 6, 'at-once': 4 })
console.log(`${kills} kills, seed ${seed}, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}`)
const stack = await startStack({ own_servers: ['postgres', 'redis', 'nats', 'temporal'], linked: true })
let stopping = false
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    if (!stopping) void stack.stop().finally(() => process.exit(1))
    stopping = true
  })
process.exitCode = 1
try {
  const harm = atRandom(stack, { kills, gap_s: gap })
  const outcome = await wreak(stack, { seed, at_once, harm, print: (line) => console.log(line) })
  report(outcome)
  if (outcome.breaches.length === 0) process.exitCode = 0
} finally {
  if (process.exitCode === 1) keepLogs()
  await stack.stop()
}
