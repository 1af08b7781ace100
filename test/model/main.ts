import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { table } from '../../apps/shared/data/print.ts'
import { startStack } from '../support/stack.ts'
import { type Outcome, run, type VICTIMS } from './run.ts'

/**
 * `npm run test:model [-- --steps 10000 --operations 300 --seed N]`: its own platform, a crowd that randomly does all
 * that people and machines may do, and a judge with its own books. Exits 1 on a breach.
 */
const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '10000' },
    operations: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
    hands: { type: 'string', default: '10' },
    open: { type: 'string', default: '24' },
    'kill-every': { type: 'string', default: '25' },
    victims: { type: 'string', default: 'worker,operations,nats,relay' },
  },
})

const report = (outcome: Outcome): void => {
  const { steps, operations, starts, effects, chains, forged, seconds, breaches, answers, ends } = outcome
  const rows = (counts: Map<string, number>) =>
    [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([what, n]) => [what, String(n)])
  for (const line of table(['what was answered', 'times'], rows(answers))) console.log(line)
  console.log()
  for (const line of table(['operations ended', 'times'], rows(ends))) console.log(line)
  console.log()
  const over = [steps, operations, starts, effects, chains, forged, (steps / seconds).toFixed(1), breaches.length].map(
    String,
  )
  const head = ['steps', 'operations', 'starts', 'effects', 'chains', 'changed chains', 'steps/s', 'breaches']
  for (const line of table(head, [over])) console.log(line)
  for (const breach of breaches.slice(0, 20)) console.log(`\nBREACH  ${breach}`)
}

const seed = Number(values.seed)
console.log(`seed ${seed}, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}`)
const stack = await startStack({ own_servers: ['postgres', 'redis', 'nats', 'temporal'] })
let stopping = false
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    if (!stopping) void stack.stop().finally(() => process.exit(1))
    stopping = true
  })
process.exitCode = 1
try {
  const outcome = await run(stack, {
    seed,
    steps: Number(values.steps),
    operations: Number(values.operations),
    hands: Number(values.hands),
    open: Number(values.open),
    kill_every_s: Number(values['kill-every']),
    victims: values.victims.split(',') as (typeof VICTIMS)[number][],
    print: (line) => console.log(line),
  })
  report(outcome)
  if (outcome.breaches.length === 0) process.exitCode = 0
} finally {
  await stack.stop()
}
