import { cpus, loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { paint } from '../../apps/platform/base/screen.ts'
import { table } from '../../apps/shared/data/print.ts'
import type { Harm } from '../chaos/kills.ts'
import { wreak } from '../chaos/run.ts'
import { numbersGiven } from '../support/numbers.ts'
import { startStack } from '../support/stack.ts'
import { saturate, watchAnswers } from './answers.ts'
import { watchMemory } from './memory.ts'

/**
 * `npm run test:soak -- [--minutes 30] [--connections 32] [--at-once 4]`: its own platform without an idle moment:
 * operations on real hosts, people who sign in and out, lists over many connections. Exits 1 if a part still grows from
 * its middle third to its last, or an answer is a 5xx that does not say when to retry. The verdict of chaos counts too.
 */
const {
  minutes,
  connections,
  'at-once': at_once,
} = numbersGiven('test:soak', { minutes: 30, connections: 32, 'at-once': 4 })
const seconds = minutes * 60

const stack = await startStack({
  own_servers: ['postgres', 'redis', 'nats', 'temporal'],
  // As in production: excess load is refused.
  env_overrides: {
    SIGNALBOX__PRESSURE__UTILISATION: '0.95',
    SIGNALBOX__PRESSURE__DELAY_MS: '250',
    GATEWAY__PRESSURE__DELAY_MS: '250',
  },
})
process.exitCode = 1
try {
  console.log(`${minutes} minutes, ${connections} connections of lists, ${at_once} operations at a time`)
  const memory = watchMemory()
  const { answers, end } = watchAnswers()
  const tick = setInterval(() => {
    const counted = [...answers.statuses].map(([status, count]) => `${count} of ${status}`).join(', ')
    console.log(`${Math.round(performance.now() / 1000)} s  ${counted || 'no answer yet'}`)
  }, 60_000)
  const print = (line: string) => line.includes('BREACH') && console.log(line)
  const onlyTime: Harm = async () => {
    await delay(seconds * 1000)
    return { deaths: new Map(), stalls: 0, breaks: 0 }
  }
  // Creates the accounts with which both sign in.
  await stack.people()
  const [outcome] = await Promise.all([
    wreak(stack, { seed: 1, at_once, harm: onlyTime, print }),
    saturate(stack, { seconds, connections }, answers),
  ])
  clearInterval(tick)
  end()
  const held = memory.end()
  console.log(`\n${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}\n`)
  const rows = held.map(({ name, thirds, grows }) => [
    name,
    ...thirds.map((mib) => mib.toFixed(0)),
    grows ? paint('red', 'GROWS') : '',
  ])
  for (const line of table(['memory, MiB', 'first third', 'second', 'last', ''], rows)) console.log(line)
  console.log()
  const counts = [...answers.statuses].sort(([a], [b]) => a - b).map(([status, count]) => [status, count].map(String))
  for (const line of table(['answered', 'times'], counts)) console.log(line)
  const { jobs, effects, twice, lost, breaches, sign_ins } = outcome
  console.log(
    `\n${jobs.length} operations over, ${effects} effects, ${twice} twice, ${lost} lost; ${sign_ins.count} sign-ins, the slowest ${(sign_ins.slowest_ms / 1000).toFixed(1)} s`,
  )
  const wrong = [...answers.wrong].map(([what, count]) => `${count} times ${what}`)
  for (const breach of [...breaches, ...wrong]) console.log(`BREACH  ${breach}`)
  if (breaches.length + wrong.length === 0 && !held.some(({ grows }) => grows)) process.exitCode = 0
} finally {
  await stack.stop()
}
