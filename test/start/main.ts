import { cpus, loadavg } from 'node:os'
import { addressesOf, burn, type Member, member } from '../platform/support/crowd.ts'
import type { Running } from '../platform/support/verb.ts'
import { numbersGiven } from '../support/numbers.ts'

/**
 * The test of the first start: several platforms start at the same moment, at the ports that all of them want, while
 * other processes take the cores. Each must come up, let someone sign in, share nothing and leave nothing behind.
 */
const {
  platforms,
  'at-once': at_once,
  load,
  minutes,
} = numbersGiven('test:start', { platforms: 10, 'at-once': 5, load: 20, minutes: 30 })
const end = performance.now() + minutes * 60_000
const left_ms = () => Math.max(1000, end - performance.now())

type Outcome = { ready_s: number; signed_in_s: number; stopped_s: number; addresses: string[]; wrong: string[] }
const seconds = (since: number) => Math.round((performance.now() - since) / 100) / 10

const startOne = async (one: Member, running: Running): Promise<Outcome> => {
  const outcome: Outcome = { ready_s: 0, signed_in_s: 0, stopped_s: 0, addresses: [], wrong: [] }
  const since = performance.now()
  try {
    await running.says(/Signalbox is ready/, left_ms())
    outcome.ready_s = seconds(since)
    outcome.addresses = addressesOf(one)
    const eva = await one.signIn('eva', left_ms())
    await eva.get('/v1/me')
    outcome.signed_in_s = seconds(since)
  } catch (error) {
    outcome.wrong.push((error as Error).message)
  }
  return outcome
}

const stopOne = async (one: Member, running: Running, outcome: Outcome): Promise<void> => {
  const since = performance.now()
  running.signal('SIGINT')
  const code = await running.ended
  outcome.stopped_s = seconds(since)
  if (code !== 0) outcome.wrong.push(`it ended with ${code}`)
  const still = one.processes()
  if (still.length > 0) outcome.wrong.push(`${still.length} processes are left`)
  one.remove()
}

console.log(`${platforms} platforms, ${at_once} at once, ${load} busy processes on ${cpus().length} cores`)
const calm = burn(load)
process.on('exit', calm)
const outcomes: Outcome[] = []
for (let from = 0; from < platforms; from += at_once) {
  const wave = Array.from({ length: Math.min(at_once, platforms - from) }, () => member(2))
  const running = wave.map((one) => one.start())
  const found = await Promise.all(wave.map((one, i) => startOne(one, running[i] as Running)))
  const taken = found.flatMap(({ addresses }) => addresses)
  const shared = taken.filter((address, i) => taken.indexOf(address) !== i)
  if (shared.length > 0) found[0]?.wrong.push(`shared: ${shared.join(', ')}`)
  await Promise.all(wave.map((one, i) => stopOne(one, running[i] as Running, found[i] as Outcome)))
  for (const [i, { ready_s, signed_in_s, stopped_s, wrong }] of found.entries())
    console.log(
      `${String(from + i + 1).padStart(3)}  ready ${ready_s} s, signed in ${signed_in_s} s, stopped in ${stopped_s} s, load ${loadavg()[0]?.toFixed(0)}  ${wrong.join('; ') || 'as it should be'}`,
    )
  outcomes.push(...found)
}
const right = outcomes.filter(({ wrong }) => wrong.length === 0).length
console.log(`${right} of ${platforms} came up apart, let somebody in, and left nothing`)
process.exit(right === platforms ? 0 : 1)
