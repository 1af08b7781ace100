import { setTimeout as delay } from 'node:timers/promises'
import { readDemo } from '../../apps/platform/demo/accounts.ts'
import { register } from '../../apps/platform/demo/catalog.ts'
import { createFleetClient } from '../../apps/platform/demo/fleet.ts'
import type { Site } from '../support/stack.ts'
import { patient } from './caller.ts'
import { createDice } from './dice.ts'
import { FIRST_RELEASE, hasEnded, type Job, KINDS, runJob, type World } from './job.ts'
import type { Harm, Harmed } from './kills.ts'
import { keepSigningIn, type SignIns } from './newcomers.ts'
import { judge, type Verdict } from './verdict.ts'

export type Chaos = {
  seed: number
  /** The harm done to the platform during the run. */
  harm: Harm
  /** Operations at a time, of three hosts each. */
  at_once: number
  print: (line: string) => void
  /** Receives each request that an outage refused; the request is sent again. */
  refused?: (error: Error) => void
}
export type Outcome = Verdict & Harmed & { sign_ins: SignIns; jobs: Job[] }

const HOSTS_EACH = 3
/** A request or an operation that takes longer is stuck: no outage here lasts this long. */
const PATIENCE_MS = 300_000

/**
 * Keeps operations running on hosts of the fleet while processes of the platform are killed and stopped, answers are
 * lost and people sign in. Then lets all operations end, and judges their effects and answers.
 */
export const wreak = async (stack: Site, { seed, harm, at_once, print, refused }: Chaos): Promise<Outcome> => {
  const began = performance.now()
  const say = (line: string) => print(`${((performance.now() - began) / 1000).toFixed(0).padStart(4)} s  ${line}`)
  const breaches: string[] = []
  const breach = (what: string) => {
    say(`BREACH  ${what}`)
    breaches.push(what)
  }
  const people = await stack.people()
  const person = (name: keyof typeof people) =>
    patient(people[name], {
      patience_ms: PATIENCE_MS,
      failed: (what) => breach(`answered: ${what}`),
      refused,
      dice: createDice(seed + 2),
    })
  const fleet_url = stack.url('fleet')
  const fleet = createFleetClient(fleet_url)
  const world: World = {
    operator: person('olga'),
    approver: person('eva'),
    fleet,
    fleet_url,
    // A separate die: how many times the operations throw depends on their timing, and the kills must not.
    dice: createDice(seed + 1),
    patience_ms: PATIENCE_MS,
    breach,
  }
  // A third more than are busy, so that a new operation seldom gets the hosts that the last one left.
  const free = await addHosts(stack, Math.ceil((at_once * HOSTS_EACH * 4) / 3))
  const jobs: Job[] = []
  let killing = true

  const begin = (): Promise<void> => {
    const n = jobs.length + 1
    const job: Job = {
      name: `release ${n}`,
      kind: KINDS[(n - 1) % KINDS.length] ?? 'approved',
      hosts: free.splice(0, HOSTS_EACH).sort(),
      release: `${n + 1}.0.0`,
    }
    jobs.push(job)
    return runJob(world, job)
      .catch((error: Error) => breach(`${job.name} (${job.kind}): ${error.message}`))
      .finally(() => void free.push(...job.hosts))
  }
  const keepRunning = async () => {
    while (killing) {
      await begin()
      await delay(world.dice.between(0, 1000))
    }
  }
  const over = () => jobs.filter(hasEnded).length
  const running = Array.from({ length: at_once }, keepRunning)
  const account = readDemo(stack.dir)?.users.find(({ username }) => username === 'ada')
  if (!account) throw new Error('the demo has no ada')
  const goes = () => killing
  const arriving = keepSigningIn(stack.gateway_url, account, { goes, patience_ms: PATIENCE_MS, breach })
  const harmed = await harm({
    dice: (n) => createDice(seed + n),
    say: (what) => say(`${what}; ${jobs.length - over()} operations open, ${over()} over`),
  })
  killing = false
  const sign_ins = await arriving
  say(`all are back; ${jobs.length - over()} operations go on to their end`)
  await Promise.all(running)
  const verdict = await judge(stack, world.approver, jobs)
  return { ...verdict, ...harmed, breaches: [...breaches, ...verdict.breaches], sign_ins, jobs }
}

/** A region with a data center of hosts, each with its own listener. */
const addHosts = async (stack: Site, count: number): Promise<string[]> => {
  const { ada } = await stack.people()
  const fleet = createFleetClient(stack.url('fleet'))
  const place = { desired_state: { code: 'r1' } }
  await register(ada, { resource_id: 'r1', type_key: 'topology.region', name: 'r1', ...place })
  await register(ada, { resource_id: 'd1', type_key: 'topology.datacenter', name: 'd1', parent_id: 'r1', ...place })
  const names = Array.from({ length: count }, (_, i) => `host-${i + 1}`)
  for (const hostname of names) {
    const { base_url } = await fleet.putHost(hostname, { resource_id: hostname, region: 'r1', release: FIRST_RELEASE })
    const state = { hostname, release: FIRST_RELEASE, traffic: 'in' }
    const host = {
      resource_id: hostname,
      type_key: 'fleet.host',
      name: hostname,
      parent_id: 'd1',
      lifecycle_status: 'active',
      desired_state: state,
      observed_state: { ...state, base_url },
    }
    await register(ada, host, { record_only: true })
  }
  return names
}
