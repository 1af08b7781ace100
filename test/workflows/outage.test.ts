import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { createEngine, type Engine, node } from './support/engine.ts'
import { startTarget, type Target } from './support/target.ts'

/** Longer than five tries of the engine with backoff: an attempt that gives up earlier ends with an unknown outcome. */
const OUTAGE_MS = 16_000

const calls = (path: string) => target.calls.filter((call) => call.path === path).length

let engine: Engine
let target: Target
beforeAll(async () => {
  engine = await createEngine({ linked: true })
  target = await startTarget()
})
afterAll(async () => {
  target.close()
  await engine.close()
})

it('while Postgres is down, neither a claim nor a result ends as unknown: both wait, and each effect happens once', async () => {
  target.answer('/claim', (count) => ({ status: count === 1 ? 503 : 200 }))
  target.answer('/result', () => {
    engine.link?.cut()
    return { status: 200 }
  })
  const call = (node_id: string) =>
    node(node_id, {
      executor: 'http',
      idempotent: false,
      with: { request: { method: 'POST', url: `${target.url}/${node_id}`, body: {} } },
      retry: { max_attempts: 2, initial_s: 1.5, factor: 1, max_s: 2 },
    })
  const operation_id = await engine.start({
    // The link is cut after the first try of `claim` has ended and before its second begins.
    nodes: [
      call('claim'),
      node('meanwhile', { with: { delay_ms: 600 } }),
      { ...call('result'), depends_on: ['meanwhile'] },
      node('after', { depends_on: ['result'] }),
    ],
  })
  await until(async () => calls('/result') === 1, { what: 'the cut' })
  await delay(OUTAGE_MS)
  engine.link?.mend()
  expect(await engine.ends(operation_id)).toMatchObject({ status: 'succeeded' })
  const attempts = await engine.read.attempts(operation_id)
  expect(attempts.map(({ node_id, attempt, phase }) => [node_id, attempt, phase])).toEqual([
    ['after', 1, 'succeeded'],
    ['claim', 1, 'failed'],
    ['claim', 2, 'succeeded'],
    ['meanwhile', 1, 'succeeded'],
    ['result', 1, 'succeeded'],
  ])
  expect([calls('/claim'), calls('/result')]).toEqual([2, 1])
}, 90_000)

it('however long Postgres is down, no try fails of an attempt that begins or only looks: enough of them would end it as unknown', async () => {
  engine.deps.limits.slice_s = 3
  target.answer('/begin', (count) => ({ status: count === 1 ? 503 : 200 }))
  target.answer('/done', () => ({ status: 200, body: { done: !down } }))
  let down = true
  const post = (node_id: string) => ({ request: { method: 'POST', url: `${target.url}/${node_id}`, body: {} } })
  const request = { method: 'GET', url: `${target.url}/done` }
  const poll = { request, until: 'response.body.done', interval_s: 3, timeout_s: 300 }
  const retry = { max_attempts: 2, initial_s: 5, factor: 1, max_s: 5 }
  const operation_id = await engine.start({
    nodes: [
      node('begin', { executor: 'http', idempotent: false, with: post('begin'), retry }),
      node('look', { executor: 'http', idempotent: false, timeouts: { run_s: 600 }, with: { ...post('look'), poll } }),
    ],
  })
  await until(async () => (await engine.read.states(operation_id)).begin === 'backoff' && calls('/done') > 1, {
    what: 'an attempt between two tries, and one that looks',
  })
  engine.link?.cut()
  await delay(50_000)
  down = false
  engine.link?.mend()
  expect(await engine.ends(operation_id)).toMatchObject({ status: 'succeeded' })
  expect([calls('/begin'), calls('/look')]).toEqual([2, 1])
  const { events = [] } = await engine.client.workflow.getHandle(operation_id).fetchHistory()
  const named = new Map(
    events?.map(({ eventId, activityTaskScheduledEventAttributes: scheduled }) => [
      String(eventId),
      scheduled?.activityType?.name,
    ]),
  )
  const tries = events?.flatMap(({ activityTaskStartedEventAttributes: started }) =>
    started && named.get(String(started.scheduledEventId)) === 'run_attempt' ? [started.attempt] : [],
  )
  expect(Math.max(...(tries ?? []).map(Number))).toBe(1)
}, 180_000)

it('if Postgres goes down between the claim and the effect, the effect waits: it happens once, without any doubt', async () => {
  target.answer('/first', () => ({ status: 200, body: { id: 'i1' } }))
  const { pool } = engine.deps as { pool: pg.Pool }
  const query = pool.query
  let cut = false
  pool.query = ((asked: { name?: string }) => {
    if (asked.name === 'node_outputs' && !cut) {
      cut = true
      engine.link?.cut()
      setTimeout(() => engine.link?.mend(), 5000)
    }
    return (query as (asked: object) => unknown).call(pool, asked)
  }) as never
  const post = (node_id: string, body = {}) => ({
    executor: 'http',
    idempotent: false,
    with: { request: { method: 'POST', url: `${target.url}/${node_id}`, body } },
  })
  const operation_id = await engine.start({
    nodes: [
      node('first', { ...post('first'), outputs: { id: '/body/id' } }),
      node('second', { ...post('second', { id: { $from: 'nodes/first/outputs/id' } }), depends_on: ['first'] }),
    ],
  })
  expect(await engine.ends(operation_id)).toMatchObject({ status: 'succeeded' })
  pool.query = query
  expect([cut, calls('/second')]).toEqual([true, 1])
}, 90_000)

it('a secret whose file cannot be read is missing, and the step certainly has no effect', async () => {
  engine.deps.secrets_dir = mkdtempSync(join(tmpdir(), 'secrets-'))
  mkdirSync(join(engine.deps.secrets_dir, 'token.1'))
  const operation_id = await engine.start({
    nodes: [
      node('s', {
        executor: 'http',
        idempotent: false,
        secrets: { token: 'secret://file/token#1' },
        with: {
          headers: { authorization: { $secret: 'token' } },
          request: { method: 'POST', url: `${target.url}/s`, body: {} },
        },
      }),
    ],
  })
  await engine.statusIs(operation_id, 'blocked')
  const [attempt] = await engine.read.attempts(operation_id)
  expect(attempt).toMatchObject({ phase: 'failed', error: { class: 'secret_missing' } })
  expect([attempt.error.message, calls('/s')]).toEqual(['The worker cannot read secret://file/token#1: EISDIR', 0])
})

it('takes a command of a restored database, which assigns none of the numbers that the engine knows', async () => {
  const own = 'where operation_id = $1'
  // Held, or not yet compared with the broker: as in the first moment, before anyone notices.
  for (const [name, since] of [
    ['restored', new Date().toISOString()],
    ['checked operations', 'another run'],
  ]) {
    const operation_id = await engine.start({
      nodes: [node('waits', { kind: 'wait', executor: '', with: { signal: 'no' } })],
    })
    const applied = ({ command_id }: { command_id: string }) =>
      until(async () => (await engine.read.command(command_id)).status === 'applied')
    for (const max_parallel of [2, 3])
      await applied(
        await engine.command(operation_id, 'intervene', {
          type: 'set_limits',
          node_id: null,
          payload: { max_parallel },
        }),
      )
    await engine.pool.query(`delete from operations.operation_commands ${own} and seq > 1`, [operation_id])
    await engine.pool.query(`update operations.operation_control set command_seq = 1 ${own}`, [operation_id])
    await engine.pool.query('insert into operations.relay_state (name, stream_created) values ($1, $2)', [name, since])
    await applied(await engine.command(operation_id, 'pause', {}))
    await engine.pool.query('delete from operations.relay_state where name = $1', [name])
  }
})
