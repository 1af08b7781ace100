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
