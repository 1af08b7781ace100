import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { carryOut, createReporter, listenForWork, type Work } from '../support/agent/agent.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { type Platform, type Reply, startPlatform } from './support/platform.ts'
import { startWorker } from './support/worker.ts'

/** Two processes of operations, one worker, an agent: every race here is between the two processes, or with the engine. */
let p: Platform
let worker: Awaited<ReturnType<typeof startWorker>>
let agent: Awaited<ReturnType<typeof listenForWork>>
let folder: string
const handed: Work[] = []
/** An agent that accepts its work only when a test says so. */
let slow: Server
const offered: { accept: () => void }[] = []

beforeAll(async () => {
  agent = await listenForWork(async (work) => void handed.push(work))
  slow = createServer((req, res) => {
    const accept = () => void res.writeHead(202).end()
    req.resume().on('end', () => {
      if (req.url?.endsWith('/cancel')) accept()
      else offered.push({ accept })
    })
  })
  await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve))
  folder = mkdtempSync(join(tmpdir(), 'signalbox-races-'))
  const policy_file = join(folder, 'policy.yaml')
  const loopback = { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: ['1024-65535'] }
  const pool = { destinations: [loopback], secrets: [] }
  const http = (endpoint: string) => ({ ...pool, mode: 'http', endpoint, max_in_flight: 50 })
  const slow_url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}/`
  const pools = { default: pool, lab: http(agent.url), slow: http(slow_url) }
  writeFileSync(policy_file, JSON.stringify({ format: 'signalbox/executor-policy@1', pools }))
  p = await startPlatform({
    instances: 2,
    env: { OPERATIONS__COMMANDS__WAIT_MS: '7000', WORKER__EXECUTORS__POLICY_FILE: policy_file },
  })
  worker = await startWorker(p, policy_file)
}, 90_000)
afterAll(async () => {
  await worker.stop()
  await p.stop()
  await agent.close()
  slow.closeAllConnections()
  slow.close()
  rmSync(folder, { recursive: true })
  await worker.end()
})

const reason = 'a race'
const answerOf = ({ status, body }: Reply) => (status < 300 ? 'won' : `${status} ${body.category}/${body.code}`)
const noop = (node_id: string, ...depends_on: string[]) => ({ node_id, executor: 'noop', with: {}, depends_on })
const reaches = (operation_id: string, wanted: string, timeout_ms = 40_000) =>
  until(async () => (await p.as('olga').get(`/v1/operations/${operation_id}`)).body.status === wanted, {
    timeout_ms,
    what: `operation ${wanted}`,
  })
const attemptsOf = (operation_id: string) =>
  p.query<{ node_id: string; attempt: number; generation: number; phase: string }>(
    'select node_id, attempt, generation, phase from operations.node_attempts where operation_id = $1 order by fence',
    [operation_id],
  )
/** Starts both at the same time, one or the other a few milliseconds earlier. */
const both = <A, B>(round: number, one: () => Promise<A>, other: () => Promise<B>): Promise<[A, B]> => {
  const ahead = (round - 3) * 4
  const after = async <T>(ms: number, act: () => Promise<T>) => {
    if (ms > 0) await delay(ms)
    return act()
  }
  return Promise.all([after(-ahead, one), after(ahead, other)])
}
const ROUNDS = [0, 3, 6]

describe('a cancel against an approval', () => {
  it('stops in every order: the approval is refused or withdrawn, or its node had started', async () => {
    for (const round of ROUNDS) {
      const gates = [{ gate_id: 'go', policy: { approvals: { groups: [{ group: 'netops', min: 1 }] } }, guards: ['b'] }]
      const { operation_id } = await p.startOperation({ nodes: [noop('a'), noop('b', 'a'), noop('c', 'b')], gates })
      const path = `/v1/operations/${operation_id}`
      const gate = async () => (await p.as('eva').get(`${path}/gates/go`)).body
      await until(async () => (await gate()).status === 'waiting', { what: 'the gate' })
      const seen = await p.seen(operation_id, 'go')
      const [approved, cancelled] = await both(
        round,
        () => p.as('eva').post(`${path}/gates/go/approve`, seen, { instance: 0 }),
        () => p.as('olga').post(`${path}/cancel`, { reason }, { instance: 1 }),
      )
      expect(cancelled).toMatchObject({ status: 200 })
      const began = (await attemptsOf(operation_id)).map(({ node_id }) => node_id)
      await reaches(operation_id, 'cancelled')
      // No attempt began after the cancel was answered.
      expect((await attemptsOf(operation_id)).map(({ node_id }) => node_id)).toEqual(began)
      const refusals = ['409 gate_not_waiting/cancelled', '409 invalid_state_transition/already_cancelling']
      if (answerOf(approved) !== 'won') {
        expect(refusals).toContain(answerOf(approved))
        expect(began).toEqual(['a'])
      }
      const open = `select kind from operations.operation_commands where operation_id = $1 and status in ('pending', 'sending', 'delivered')`
      await until(async () => (await p.query(open, [operation_id])).length === 0, { what: 'the end of every command' })
    }
  }, 180_000)
})

describe('a cancel against the first message of an agent', () => {
  const job = (node_id: string, pool = 'lab') => ({
    ...{ node_id, executor: 'external', pool, with: { job: 'x', inputs: {} } },
    timeouts: { run_s: 600, start_s: 300 },
  })
  const cancelsBeforeBegin = async (operation_id: string, meanwhile = () => {}) => {
    expect((await p.as('olga').post(`/v1/operations/${operation_id}/cancel`, { reason })).status).toBe(200)
    meanwhile()
    await reaches(operation_id, 'cancelled')
    const { body: node } = await p.as('olga').get(`/v1/operations/${operation_id}/nodes/job`)
    expect(node).toMatchObject({
      ...{ state: 'failed', error_class: 'cancelled' },
      error_message: 'The operation was cancelled before an agent began.',
    })
  }
  it('ends work that its agent has not accepted yet when the cancel comes', async () => {
    const { operation_id } = await p.startOperation({ nodes: [job('job', 'slow')] })
    const offer = await until(() => offered.shift(), { what: 'work offered' })
    await cancelsBeforeBegin(operation_id, offer.accept)
  }, 120_000)

  it('ends work that no agent begins long before its time to begin is over, and nobody begins it later', async () => {
    handed.length = 0
    const { operation_id } = await p.startOperation({ nodes: [job('job')] })
    const given = await until(() => handed.shift(), { what: 'work at the agent' })
    const waits = 'select from operations.node_attempts where operation_id = $1 and resume is not null'
    await until(async () => (await p.query(waits, [operation_id])).length > 0, { what: 'the end of the handover' })
    await cancelsBeforeBegin(operation_id)
    expect(await createReporter(given)('started')).toMatchObject({ status: 409, code: 'attempt_closed' })
  }, 120_000)

  it('ends such work at once also if the engine itself cancels, after a failure', async () => {
    handed.length = 0
    const request = { method: 'POST', url: `http://127.0.0.1:${await freePort()}/`, body: {} }
    const { operation_id } = await p.startOperation({
      nodes: [
        job('job'),
        { node_id: 'wait', kind: 'wait', with: { duration_s: 5 } },
        { node_id: 'bad', executor: 'http', with: { request }, on_failure: 'fail', depends_on: ['wait'] },
      ],
    })
    await until(() => handed.shift(), { what: 'work at the agent' })
    await reaches(operation_id, 'failed', 120_000)
    const told = `select payload ->> 'status' as status from operations.operation_commands where operation_id = $1 and kind = 'node_result'`
    expect(await p.query(told, [operation_id])).toEqual([{ status: 'again' }])
    const { body: node } = await p.as('olga').get(`/v1/operations/${operation_id}/nodes/job`)
    expect(node).toMatchObject({ state: 'failed', error_class: 'cancelled' })
  }, 180_000)

  it('has one winner: work starts before the cancel and runs to its end, or never', async () => {
    for (const round of [...ROUNDS, 'after'] as const) {
      handed.length = 0
      const { operation_id } = await p.startOperation({ nodes: [job('job')] })
      const given = await until(() => handed.shift(), { what: 'work at the agent' })
      const report = createReporter(given)
      const cancel = () => p.as('olga').post(`/v1/operations/${operation_id}/cancel`, { reason }, { instance: 1 })
      const begin = () => report('started')
      const [said, cancelled] =
        round === 'after'
          ? await cancel().then(async (answer) => [await begin(), answer] as const)
          : await both(round, begin, cancel)
      expect(cancelled.status).toBe(200)
      const [row] = await p.query<{ late: boolean | null }>(
        `select e.started_at > c.cancelled_at as late from operations.executions e
         join operations.operation_control c using (operation_id) where operation_id = $1`,
        [operation_id],
      )
      if (said.status === 200) {
        expect(row?.late).toBe(false)
        expect((await report('succeeded', { outputs: {} })).status).toBe(200)
      } else expect([said.status, said.code, row?.late]).toEqual([409, 'attempt_closed', null])
      if (round === 'after') expect(said.status).toBe(409)
      // Long before the time to begin is over: a cancel at the very end of a handover waits for the next look.
      await reaches(operation_id, 'cancelled', 90_000)
      const { body: node } = await p.as('olga').get(`/v1/operations/${operation_id}/nodes/job`)
      expect(node).toMatchObject(
        said.status === 200 ? { state: 'succeeded' } : { state: 'failed', error_class: 'cancelled' },
      )
    }
  }, 480_000)
})

describe('votes against the deadline of their gates', () => {
  it('have one winner each, and node, timeline and evidence agree with it', async () => {
    const N = 12
    const names = Array.from({ length: N }, (_, n) => `n${n}`)
    const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] }, deadline_s: 6 }
    const { operation_id } = await p.startOperation({
      nodes: names.map((name) => noop(name)),
      gates: names.map((name) => ({ gate_id: `g-${name}`, policy, guards: [name] })),
    })
    const path = `/v1/operations/${operation_id}`
    const gate = async (name: string) => (await p.as('eva').get(`${path}/gates/g-${name}`)).body
    const waiting = await until(
      async () => {
        const all = await Promise.all(names.map(gate))
        return all.every(({ status }) => status === 'waiting') ? all : undefined
      },
      { what: 'the gates' },
    )
    const answers = await Promise.all(
      waiting.map(async ({ digest, round, deadline_at }, n) => {
        // From a moment before the deadline to a moment after the engine's timer.
        await delay(Math.max(Date.parse(deadline_at) - Date.now() - 150 + n * 75, 0))
        const vote = { reviewed_digest: digest, round }
        const options = { key: randomUUID(), instance: n % 2 }
        // A busy operation says so; the same key may be sent again.
        for (;;) {
          const reply = await p.as('eva').post(`${path}/gates/g-${names[n]}/approve`, vote, options)
          if (reply.status !== 503 && reply.body?.code !== 'in_progress') return answerOf(reply)
        }
      }),
    )
    expect(new Set(answers)).toEqual(new Set(['won', '409 gate_not_waiting/expired']))
    await until(async () => (await attemptsOf(operation_id)).length >= answers.filter((a) => a === 'won').length, {
      timeout_ms: 40_000,
      what: 'the nodes behind the approved gates',
    })
    const { body: evidence } = await p.as('vic').get(`${path}/evidence`)
    const { body: timeline } = await p.as('vic').get(`${path}/timeline?limit=200`)
    const began = (await attemptsOf(operation_id)).map(({ node_id }) => node_id)
    for (const [n, name] of names.entries()) {
      const won = answers[n] === 'won'
      const end = won ? 'approved' : 'expired'
      expect([name, (await gate(name)).status, began.includes(name)]).toEqual([name, end, won])
      const told = timeline.events.filter(({ type, gate_id }: { type: string; gate_id: string | null }) => {
        return gate_id === `g-${name}` && ['gate.approved', 'gate.expired', 'gate.voted'].includes(type)
      })
      expect(told.map(({ type }: { type: string }) => type).toSorted()).toEqual(
        won ? ['gate.approved', 'gate.voted'] : ['gate.expired'],
      )
      const records = evidence.records.filter(({ statement }: { statement: string }) =>
        new RegExp(`\\bg-${name}\\b`).test(statement),
      )
      expect(records.map(({ kind }: { kind: string }) => kind)).toEqual(
        won ? ['vote', 'gate_decision'] : ['gate_decision'],
      )
    }
  }, 120_000)
})

describe('a freeze against claims', () => {
  it('lets no node start once it is answered, however many claims are in flight', async () => {
    await p.query(
      `insert into operations.catalog_resources (resource_id, type_key, type_version, name, version, lifecycle_status, labels, desired_state, observed_state)
       values ('rack', 't', 1, 'rack', 1, 'active', '{}', '{}', '{}') on conflict do nothing`,
    )
    const plane = p.service('demo-control-plane')
    const entry = {
      title: 'now',
      applies: "target.name == 'rack'",
      from: '2020-01-01T00:00:00Z',
      approvers: ['netops'],
    }
    const STEPS = 24
    const name = (n: number) => `n${n}`
    // A chain of nodes: at any moment one of them is on its way to its claim.
    const nodes = Array.from({ length: STEPS }, (_, n) => ({
      ...noop(name(n), ...(n === 0 ? [] : [name(n - 1)])),
      target_id: 'rack',
    }))
    const { operation_id } = await p.startOperation({ nodes }, { more: { constraints: { on_drift: 'ignore' } } })
    const count = async () => (await attemptsOf(operation_id)).length
    const held = async () => {
      const { body } = await p.as('olga').get(`/v1/operations/${operation_id}`)
      return body.blocked_on.some(({ kind }: { kind: string }) => kind === 'freeze') || body.status === 'succeeded'
    }
    for (let round = 0; (await count()) < STEPS; round++) {
      const before = await count()
      await until(async () => (await count()) > before, { timeout_ms: 40_000, every_ms: 5 })
      const path = `/internal/v1/freezes/race${round}`
      expect((await plane.put(path, { ...entry, to: '2100-01-01T00:00:00Z' })).status).toBe(200)
      const answered = await count()
      await until(held, { what: 'the freeze holds' })
      expect([round, await count()]).toEqual([round, answered])
      expect((await plane.delete(path)).status).toBe(200)
    }
    await reaches(operation_id, 'succeeded')
  }, 180_000)
})

describe('retries', () => {
  /** A node whose agent has begun. */
  const atWork = async (timeouts = {}) => {
    handed.length = 0
    const node = { node_id: 'job', executor: 'external', pool: 'lab', with: { job: 'x', inputs: {} }, timeouts }
    const { operation_id } = await p.startOperation({ nodes: [node] })
    const given = await next()
    const report = createReporter(given)
    expect((await report('started')).status).toBe(200)
    const retry = (instance: number, body: Record<string, unknown> = {}) =>
      p
        .as(instance === 0 ? 'olga' : 'both')
        .post(
          `/v1/operations/${operation_id}/nodes/job/retry`,
          { reason, expected_generation: 1, ...body },
          { instance },
        )
    return { operation_id, report, retry }
  }
  const next = () => until(() => handed.shift(), { what: 'work at the agent' })
  /** The work of the next attempt, done. */
  const finish = async (operation_id: string) => {
    const given = await next()
    expect(given).toMatchObject({ operation_id, attempt: 2, generation: 2 })
    await carryOut(given, async () => ({}))
    await reaches(operation_id, 'succeeded')
  }

  const NOT_YET = [
    '409 invalid_state_transition/node_not_retryable',
    '409 invalid_state_transition/cone_in_flight',
    '409 version_conflict/in_progress',
  ]
  it('against the result of the attempt: refused until it is known, then one of them gets it', async () => {
    for (const round of ROUNDS) {
      const { operation_id, report, retry } = await atWork()
      let won = 0
      /** A person who asks until the node is retried, by them or by another person: then it is in flight again. */
      const insist = async (instance: number): Promise<void> => {
        while (won === 0) {
          const answer = answerOf(await retry(instance))
          if (answer === 'won') won += 1
          else if (answer !== '412 version_conflict/generation_moved') expect(NOT_YET).toContain(answer)
          await delay(5)
        }
      }
      const failed = () => report('failed', { error: { class: 'refused', message: 'no', retryable: false } })
      const [said] = await both(round, failed, () => Promise.all([insist(0), insist(1)]))
      expect(said.status).toBe(200)
      expect(won).toBe(1)
      await finish(operation_id)
      expect(await attemptsOf(operation_id)).toMatchObject([
        { attempt: 1, generation: 1, phase: 'failed' },
        { attempt: 2, generation: 2, phase: 'succeeded' },
      ])
    }
  }, 240_000)

  it('against a result after the attempt was given up: the result has no effect in any order', async () => {
    for (const round of ROUNDS) {
      const { operation_id, report, retry } = await atWork({ run_s: 2 })
      await reaches(operation_id, 'blocked')
      const finding = { reconciliation: { finding: 'effect_absent', note: 'looked' } }
      const [late, retried] = await both(
        round,
        () => report('succeeded', { outputs: {} }),
        () => retry(1, finding),
      )
      expect(late).toMatchObject({ status: 409, code: expect.stringMatching(/^(attempt_closed|stale_attempt)$/) })
      expect(answerOf(retried)).toBe('won')
      await finish(operation_id)
      expect(await attemptsOf(operation_id)).toMatchObject([
        { attempt: 1, phase: 'outcome_unknown' },
        { attempt: 2, phase: 'succeeded' },
      ])
    }
  }, 240_000)
})
