import { rmSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { table } from '../../apps/shared/data/print.ts'
import { type Outcome, wreak } from '../chaos/run.ts'
import { scratchFolder } from '../support/servers.ts'
import { earlierBuild } from './builds.ts'
import { drains } from './drain.ts'
import { ENGINE, findEngine } from './engine.ts'
import { type Counts, createCounts, deaths, inTurn, partitions, roll, troubles } from './faults.ts'
import { followGuide } from './guide.ts'
import { startSite } from './site.ts'

/**
 * `npm run test:cluster -- [--only WORDS] [--seed N] [--from REVISION]`: two of each app, Postgres with a
 * synchronous standby, three NATS, Redis with two replicas and Sentinels. If Go is on PATH, Temporal's server is built
 * once, and each of its roles is a process on that Postgres; without Go, its development server runs. It begins with an
 * earlier build (the one before the newest migration). Operations run and people sign in throughout. All apps roll to
 * this build, back, and here again. Then servers of Redis and NATS leave the network for a while. One of each app and
 * each server is killed, the network and the relays fail for a while, and a build of the worker is drained. Prints what
 * was lost, done twice and refused. Exits 1 if an effect or a row is lost or duplicated. `--only` stays with this build
 * and does the faults of that name, such as "kill temporal|postgres", "cut off" or "build". `--guide` carries out the
 * guide "On one machine" instead.
 */
const { values } = parseArgs({
  options: {
    guide: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
    from: { type: 'string' },
    only: { type: 'string' },
  },
})

const report = (
  { deaths: times, sign_ins, jobs, effects, twice, lost, breaches }: Outcome,
  { refused }: Counts,
): void => {
  console.log(`\nengine: ${engine}`)
  const rows = [...times].map(([name, [ms = 0]]) => [name, (ms / 1000).toFixed(1), String(refused.get(name) ?? 0)])
  console.log(`${table(['fault', 'over after (s)', 'refused, then done'], rows).join('\n')}\n`)
  const counts = [jobs.length, effects, lost, twice, sign_ins.count, breaches.length].map(String)
  console.log(table(['operations over', 'effects', 'lost', 'twice', 'sign-ins', 'breaches'], [counts]).join('\n'))
  for (const breach of breaches) console.log(`BREACH  ${breach}`)
}

if (values.guide) process.exit(await followGuide())
console.log(`seed ${values.seed}, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}`)
const dir = scratchFolder()
const earlier = values.only ? undefined : earlierBuild(dir, values.from)
const programs = await findEngine()
const engine = programs
  ? ENGINE
  : "Temporal's development server, a single process: Go, which builds the server, is not on PATH"
console.log(`engine: ${engine}`)
const began = performance.now()
const cluster = await startSite(earlier?.root, programs)
const ready_s = ((performance.now() - began) / 1000).toFixed(0)
console.log(`two of each are ready after ${ready_s} s${earlier ? `, of the build ${earlier.commit}` : ''}`)
process.exitCode = 1
try {
  const counts = createCounts()
  const here = { name: 'this build', root: ROOT, build: 'this' }
  const every = [...partitions(cluster), ...deaths(cluster), ...troubles(cluster), drains(cluster)]
  const faults = earlier
    ? [
        roll(cluster, here),
        roll(cluster, { name: `build ${earlier.commit}`, root: earlier.root, build: 'earlier' }),
        roll(cluster, { ...here, name: 'this build again' }),
        ...every,
      ]
    : every.filter(({ name }) => new RegExp(values.only ?? '').test(name))
  const outcome = await wreak(cluster.site, {
    seed: Number(values.seed),
    harm: inTurn(faults, counts, 5000),
    at_once: 2,
    print: (line) => console.log(line),
    refused: counts.count,
  })
  report(outcome, counts)
  if (outcome.breaches.length === 0) process.exitCode = 0
} finally {
  await cluster.stop()
  rmSync(dir, { recursive: true, force: true })
}
