import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { GRAPH, ROLES, startOperation, startWorld, type World } from '../contract/world.ts'
import { type Calls, INSPECTABLE, watchCalls } from '../support/calls.ts'
import { until } from '../support/until.ts'

/**
 * How many files a reader follows from the approval of a gate to its signal, and on to the node that starts: the files
 * with a function that every approval calls. Three kinds do not count: wiring of an app (its own folder); code that all
 * apps share (apps/shared, the files of db that belong to no app); publishing of events, which runs alongside the path.
 * The limits may only fall: the aim is 25 and 34.
 */
const LIMITS = { signal: 25, start: 54 }
const COMMON = /^(apps\/shared\/|apps\/\w+\/[^/]+$|apps\/relay\/events\/|db\/([^/]+|command\/.*|redis\/.*)$)/
const OURS = /^(apps|db|workflows|activities)\//
const TO_THE_SIGNAL = ['gateway', 'operations', 'relay']

const ROUNDS = 5
/** The executor has begun this long after the claim of its node; a slower machine counts fewer files. */
const BEGUN_MS = 500
/** The approved node runs until the test is over, so the calls at its end are not counted. */
const LASTING = { delay_ms: 120_000 }
const graph = {
  ...GRAPH,
  nodes: GRAPH.nodes.map((node) => (node.node_id === 'behind' ? { ...node, with: LASTING } : node)),
}

type Gate = { operation_id: string; digest: string; round: number }

describe('the approval of a gate', () => {
  let world: World
  let token = ''
  beforeAll(async () => {
    const before = process.env.NODE_OPTIONS ?? ''
    process.env.NODE_OPTIONS = `${before} ${INSPECTABLE}`
    world = await startWorld({
      apps: ['token', 'credential', 'identity', 'session', 'catalog', 'operations', 'worker', 'relay', 'gateway'],
      // An idle platform must poll as often as in production: its files count by the calls beyond that.
      env_overrides: {
        RELAY__COMMANDS__POLL_MS: '250',
        OPERATIONS__SWEEP__INTERVAL_MS: '1000',
        CATALOG__HEALTH__SWEEP_MS: '1000',
      },
    }).finally(() => {
      process.env.NODE_OPTIONS = before
    })
    await world.addUser('zoe', ROLES)
    token = (await world.login('zoe')).access_token
  }, 180_000)
  afterAll(() => world?.stop(), 60_000)

  const waitingGates = () =>
    until(
      async () => {
        const waiting = `select operation_id, digest, round from operations.gates where status = 'waiting'`
        const gates = await world.rows<Gate>(waiting)
        return gates.length > ROUNDS ? gates : undefined
      },
      { what: 'a gate for each round' },
    )

  const settled = async (text: string, operation_id: string, what: string) => {
    await until(async () => (await world.rows(text, [operation_id])).length > 0, { what })
  }
  /** Approves while the worker is stopped, until the relay has delivered the signal. */
  const approve = async ({ operation_id, digest: reviewed_digest, round }: Gate) => {
    const path = `/api/v1/operations/${operation_id}/gates/go/approve`
    const { status } = await world.call(token, 'POST', path, { reviewed_digest, round })
    expect(status).toBeLessThan(300)
    const delivered = `select 1 from operations.operation_commands where operation_id = $1 and status <> 'pending'
      and status <> 'sending' and kind = 'gate_decided'`
    await settled(delivered, operation_id, 'the signal')
  }
  const started = ({ operation_id }: Gate) => {
    const running = `select 1 from operations.nodes where operation_id = $1 and node_id = 'behind' and state = 'running'`
    return settled(running, operation_id, 'the started node')
  }

  it('passes no more of our files than before', async () => {
    for (let round = 0; round <= ROUNDS; round += 1) await startOperation(world, token, graph)
    const gates = await waitingGates()
    const watches = await Promise.all([...TO_THE_SIGNAL, 'worker'].map((app) => watchCalls(world.stack, app)))
    const take = (apps = watches) => Promise.all(apps.map((watch) => watch.take()))
    const signals: Calls[][] = []
    const starts: Calls[][] = []
    let longest_ms = 0
    for (const gate of gates.slice(0, ROUNDS + 1)) {
      await take()
      const began = performance.now()
      world.stack.pause('worker')
      try {
        await approve(gate)
        signals.push(await take(watches.slice(0, TO_THE_SIGNAL.length)))
      } finally {
        world.stack.resume('worker')
      }
      await started(gate)
      await delay(BEGUN_MS)
      starts.push(await take())
      longest_ms = Math.max(longest_ms, performance.now() - began)
    }
    // An idle process calls some functions of the path too, but less often.
    const idle: Calls[][] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      await delay(longest_ms)
      idle.push(await take())
    }
    for (const watch of watches) watch.close()

    // The first approval also makes calls whose results are cached.
    const signal = filesPassed(signals.slice(1), idle)
    const start = new Set([...signal, ...filesPassed(starts.slice(1), idle)])
    console.log(`the approval of a gate passes ${signal.size} files to the signal, ${start.size} to the started node`)
    expect(signal.size, [...signal].sort().join('\n')).toBeLessThanOrEqual(LIMITS.signal)
    expect(start.size, [...start].sort().join('\n')).toBeLessThanOrEqual(LIMITS.start)
  }, 180_000)
})

/** Files with a function that an app called in every one of these rounds more often than in any idle one. */
const filesPassed = (rounds: Calls[][], idle: Calls[][]): Set<string> => {
  const files = new Set<string>()
  for (const app of rounds[0]?.keys() ?? [])
    for (const [file, functions] of rounds[0]?.[app] ?? []) {
      if (!OURS.test(file) || COMMON.test(file)) continue
      const callsOf = (name: string) => (round: Calls[]) => round[app]?.get(file)?.get(name) ?? 0
      for (const name of functions.keys())
        if (Math.min(...rounds.map(callsOf(name))) > Math.max(...idle.map(callsOf(name)))) files.add(file)
    }
  return files
}
