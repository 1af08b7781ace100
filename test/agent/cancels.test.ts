import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDice, type Dice } from '../chaos/dice.ts'
import { until } from '../support/until.ts'
import { type Acts, type Case, descendants, startActs } from './support/acts.ts'

/**
 * Cancels by force at random moments, from the preview to after the act. Effects are counted where they happen.
 * CANCELS_ROUNDS (1) sets the number of rounds, CANCELS_SEED repeats the same moments.
 */
const rounds = Number(process.env.CANCELS_ROUNDS ?? 1)
const seed = Number(process.env.CANCELS_SEED ?? Date.now() % 1_000_000)
/** An act lasts this long after its effect: longer than a cancel takes to arrive. */
const REST_S = 8
const POLLS_MS = 2500
const QUIET_MS = (REST_S + 1) * 1000
let acts: Acts
/** A target that never comes to its end, however often it is asked. */
const asked: string[] = []
const target = createServer((req, res) => {
  asked.push(`${req.method} ${req.url}`)
  res.writeHead(200, { 'content-type': 'application/json' }).end('{"over":false}')
})
beforeAll(async () => {
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve))
  const destinations = [{ scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: ['1024-65535'] }]
  acts = await startActs({ rest_s: REST_S, more: { target: { destinations, secrets: [] } } })
}, 300_000)
afterAll(async () => {
  await acts?.stop()
  target.closeAllConnections()
  target.close()
})

const ENDS = ['succeeded', 'failed', 'outcome_unknown', 'cancelled']
const ended = async (path: string, name: string, why: string) => {
  const node = await until(
    async () => {
      const now = await acts.lab.nodeOf(path, name)
      return ENDS.includes(now.state) ? now : undefined
    },
    { timeout_ms: 90_000, what: `the end of ${name}, ${why}` },
  )
  const operation = await until(
    async () => {
      const { body } = await acts.lab.p.as('vic').get(path)
      return body.status === 'cancelled' ? body : undefined
    },
    { timeout_ms: 90_000, what: `the end of the operation of ${name}, ${why}` },
  )
  return { node, operation }
}

/** Cancels one act of a tool at a random moment and compares the verdict with the effects. */
const strike = async (pool: string, round: number, dice: Dice) => {
  const name = `${pool}-${round}`
  const { count } = acts.CASES[pool] as Case
  const moment = dice.pick(['early', 'begun', 'late', 'late'] as const)
  const wait = dice.between(0, moment === 'late' ? 5000 : 3000)
  const path = await acts.startCase(pool, name, true)
  const begun = () => acts.agentOf(pool).said().includes(`${name}: ${acts.CASES[pool]?.job} started`)
  if (moment === 'begun') await until(begun, { what: `${name} begun` })
  if (moment === 'late') await until(() => count(name) > 0, { what: `the effect of ${name}` })
  await delay(wait)
  await acts.lab.force(path)
  const why = `cancelled ${Math.round(wait)} ms after ${moment}, seed ${seed}`
  const { node } = await ended(path, name, why)
  const said = `${name}, ${why}: ${node.state} ${node.error_class ?? ''} ${node.error_message ?? ''}`
  const after = () => acts.lab.linesOf(`effects/${name}.after`).length
  const counted = { did: count(name), after: after() }
  await delay(QUIET_MS)
  // A task that Ansible had sent to a host may end there: then nobody may claim to know.
  if (pool !== 'ansible' || node.state !== 'outcome_unknown')
    expect({ did: count(name), after: after() }, said).toEqual(counted)
  expect(counted.did, said).toBeLessThanOrEqual(1)
  if (node.state === 'succeeded') expect(counted, said).toEqual({ did: 1, after: pool === 'git' ? 0 : 1 })
  if (node.state === 'cancelled' || /No change was made/.test(node.error_message)) expect(counted.did, said).toBe(0)
  // Ended by itself when asked to: not a word of the part that was cut off, and no claim about a finished act.
  if (node.state === 'failed') {
    expect(node.error_class, said).toBe('cancelled')
    expect(pool === 'git' ? counted.did : counted.after, said).toBe(0)
  }
  return said
}

it(
  'a cancel at any moment: the act ends as it is said to have ended, and leaves no process and no folder',
  async () => {
    const dice = createDice(seed)
    for (let round = 0; round < rounds; round++)
      for (const pair of [
        ['tofu', 'ssh'],
        ['ansible', 'git'],
      ]) {
        const said = await Promise.all(pair.map((pool) => strike(pool, round, dice)))
        if (process.env.CANCELS_ROUNDS) for (const line of said) console.log(line)
      }
    const left = () => Object.keys(acts.CASES).flatMap((pool) => descendants(acts.agentOf(pool).child.pid as number))
    await until(() => left().length === 0, { what: 'all tools gone' })
    const folders = readdirSync(acts.lab.place('tmp')).filter((one) => one.startsWith('signalbox-agent-'))
    expect(folders).toEqual([])
  },
  60_000 + rounds * 240_000,
)

/** Cancels one call that its target never ends, at a random moment of its polls. */
const strikeCall = async (round: number, wait: number) => {
  const base_url = `http://127.0.0.1:${(target.address() as AddressInfo).port}`
  const node = {
    ...{ node_id: 'call', executor: 'http', pool: 'target', timeouts: { run_s: 60 } },
    with: {
      ...{ base_url, request: { method: 'POST', url: `/${round}/begin`, body: {} } },
      poll: {
        request: { method: 'GET', url: `/${round}/state` },
        ...{ until: 'response.body.over', interval_s: 1, timeout_s: 50 },
      },
    },
  }
  const seen = () => asked.filter((one) => one.includes(`/${round}/`))
  const path = await acts.lab.start(node)
  await until(() => seen().includes(`GET /${round}/state`), { what: 'the first poll' })
  await delay(wait)
  await acts.lab.force(path)
  const why = `cancelled after ${Math.round(wait)} ms, seed ${seed}`
  const { node: now } = await ended(path, 'call', why)
  expect(now.state, `${why}: ${now.error_message}`).toBe('outcome_unknown')
  const before = seen().length
  await delay(POLLS_MS)
  expect(seen().length, why).toBe(before)
  expect(seen().filter((one) => one.startsWith('POST'))).toHaveLength(1)
}

it('a cancel while a call is polled: it is asked no more, and what it became is said to be unknown', async () => {
  const dice = createDice(seed)
  await Promise.all([0, 1, 2].map((round) => strikeCall(round, dice.between(0, 2000))))
}, 200_000)
