import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { table } from '../../apps/shared/data/print.ts'
import { type Outcome, wreak } from '../chaos/run.ts'
import { type Counts, createCounts, oneOfEach } from './faults.ts'
import { startSite } from './site.ts'

/**
 * `npm run test:cluster -- [--quick] [--seed N]`: two of each app, Postgres with a synchronous standby, three NATS; one of
 * each is killed while operations run and people sign in. Prints what was lost, done twice and refused; exits 1 if an
 * effect or a row is lost or double. `--quick` kills four instead of eleven.
 */
const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, seed: { type: 'string', default: '1' } },
})

const report = ({ deaths, sign_ins, jobs, effects, twice, lost, breaches }: Outcome, { refused }: Counts): void => {
  const rows = [...deaths].map(([name, [ms = 0]]) => [name, (ms / 1000).toFixed(1), String(refused.get(name) ?? 0)])
  console.log(`\n${table(['killed', 'back after (s)', 'refused, then done'], rows).join('\n')}\n`)
  const counts = [jobs.length, effects, lost, twice, sign_ins.count, breaches.length].map(String)
  console.log(table(['operations over', 'effects', 'lost', 'twice', 'sign-ins', 'breaches'], [counts]).join('\n'))
  for (const breach of breaches) console.log(`BREACH  ${breach}`)
}

console.log(`seed ${values.seed}, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}`)
const began = performance.now()
const cluster = await startSite()
console.log(`two of each are ready after ${((performance.now() - began) / 1000).toFixed(0)} s`)
process.exitCode = 1
try {
  const counts = createCounts()
  const harm = oneOfEach(cluster, counts, {
    gap_ms: values.quick ? 1000 : 5000,
    ...(values.quick && { apps: ['operations', 'relay'] }),
  })
  const outcome = await wreak(cluster.site, {
    ...{ seed: Number(values.seed), harm, at_once: 2, print: (line: string) => console.log(line) },
    refused: counts.count,
  })
  report(outcome, counts)
  if (outcome.breaches.length === 0) process.exitCode = 0
} finally {
  await cluster.stop()
}
