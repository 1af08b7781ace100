import { cpSync, rmSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { table } from '../../apps/shared/data/print.ts'
import { numbersGiven } from '../support/numbers.ts'
import { type Site, startStack } from '../support/stack.ts'
import { atRandom, type Harm } from './kills.ts'
import { type Outcome, wreak } from './run.ts'
import { startSupervised } from './supervised.ts'

/**
 * `npm run test:chaos -- [--kills 50] [--supervisor 5] [--seed N] [--gap SECONDS] [--at-once N]`: first its own platform
 * and servers, constant operations on real hosts, `kill -9` and SIGSTOP of random processes at random moments. Answers are
 * lost; links are cut, drop everything or are slow. People sign in and out in the meantime. Then an `npm start` of which only
 * the supervisor is killed. Zero kills leave a part out. Exits 1 if an operation ended wrongly, an effect was lost or
 * done twice, or derived data disagrees with its origin.
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
const keepLogs = (dir: string): void => {
  const kept = join(ROOT, '.signalbox/chaos-logs')
  rmSync(kept, { recursive: true, force: true })
  cpSync(join(dir, 'logs'), kept, { recursive: true })
  console.log(`the logs are in ${kept}`)
}

const {
  kills,
  supervisor,
  seed,
  gap,
  'at-once': at_once,
} = numbersGiven('test:chaos', {
  ...{ kills: 50, supervisor: 5, seed: Math.floor(Math.random() * 1e9), gap: 6, 'at-once': 4 },
})

type Part = { site: Site; harm: Harm; stop: () => Promise<void> }
const openRandom = async (): Promise<Part> => {
  const stack = await startStack({ own_servers: ['postgres', 'redis', 'nats', 'temporal'], linked: true })
  return { site: stack, harm: atRandom(stack, { kills, gap_s: gap }), stop: stack.stop }
}
// A start takes longer than an app.
const openSupervised = () => startSupervised({ kills: supervisor, gap_s: 4 * gap })

let open: Part | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    void open?.stop().finally(() => process.exit(1))
    open = undefined
  })
/** Returns whether it found no breach. */
const pass = async (start: () => Promise<Part>): Promise<boolean> => {
  open = await start()
  const { site, harm, stop } = open
  let held = false
  try {
    const outcome = await wreak(site, { seed, at_once, harm, print: (line) => console.log(line) })
    report(outcome)
    held = outcome.breaches.length === 0
  } finally {
    if (!held) keepLogs(site.dir)
    await stop()
  }
  return held
}

process.exitCode = 1
console.log(
  `${kills} kills, ${supervisor} of the supervisor, seed ${seed}, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}`,
)
const held = (kills === 0 || (await pass(openRandom))) && (supervisor === 0 || (await pass(openSupervised)))
if (held) process.exitCode = 0
