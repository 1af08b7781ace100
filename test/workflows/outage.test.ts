import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { createEngine, type Engine, node } from './support/engine.ts'
import { startTarget, type Target } from './support/target.ts'

/** Longer than five tries of the engine with backoff: an attempt that gives up earlier ends with an unknown outcome. */
const OUTAGE_MS = 18_000

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
