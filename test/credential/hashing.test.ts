import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHashing, type Hashing } from '../../apps/credential/hashing/hash.ts'
import { createSlots } from '../../apps/credential/hashing/slots.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { counted } from '../session/support/auth.ts'
import { until } from '../support/until.ts'

const PASSWORD = 'Correct-Horse-7-Battery'
const telemetry = createTelemetry('test', { level: 'silent' })
/** Far too short for a hash of this strength: every first answer comes too late. */
const slots = createSlots({ concurrency: 1, urgent: 1, queue_max: 10, wait_ms: 60_000, per_key: 100, answer_ms: 5 })
let hashing: Hashing
let stored: string
/** Resolves once the general slot has served all that wait for it. */
const idle = () => slots.begin({ key: '' }, async () => {})
const hashes = async () => {
  const text = await telemetry.metrics.metrics()
  return Number(/^signalbox_hash_wait_seconds_count\S* (\d+)/m.exec(text)?.[1] ?? 0)
}
const outcome = (user: string, hash: string | undefined, password: string, urgent = false) =>
  hashing
    .verify(`${user} ${password}`, hash, password, { key: user, urgent })
    .catch((error: { code?: string }) => error.code)

beforeAll(async () => {
  hashing = await createHashing(slots, { memory_kib: 32_768, time: 4, parallelism: 1 }, telemetry)
  const made = createSlots({ concurrency: 1, urgent: 0, queue_max: 1, wait_ms: 1000, per_key: 1, answer_ms: 60_000 })
  const patient = await createHashing(made, { memory_kib: 32_768, time: 4, parallelism: 1 }, createTelemetry('other'))
  stored = await patient.hash(PASSWORD, { key: '' })
  patient.close()
})
afterAll(() => hashing?.close())

describe('a login that is repeated', () => {
  it('joins the hash that was started for it, while it runs and after it has ended', async () => {
    expect(await outcome('eva', stored, PASSWORD)).toBe('login_busy')
    const begun = await hashes()
    const again = await until(async () => {
      const answer = await outcome('eva', stored, PASSWORD)
      return answer === true && answer
    })
    expect(again).toBe(true)
    expect(await outcome('eva', stored, PASSWORD)).toBe(true)
    expect(await hashes()).toBe(begun)
    expect(await counted(telemetry.metrics, 'signalbox_hash_joined_total')).toBeGreaterThan(1)
  })

  it('is identified by user, password and stored hash alone, and no user matches another', async () => {
    const before = await hashes()
    for (const [user, hash, password] of [
      ['eva', stored, 'another'],
      ['olga', stored, PASSWORD],
      ['ghost-1', undefined, PASSWORD],
      ['ghost-2', undefined, PASSWORD],
    ] as const)
      await outcome(user, hash, password)
    await until(async () => (await hashes()) - before === 4, { what: 'the start of all four' })
    expect(await outcome('ghost-1', undefined, PASSWORD)).toBe(false)
    expect(await outcome('eva', stored, 'another')).toBe(false)
    expect((await hashes()) - before).toBe(4)
  })

  it('runs in its own slot if it comes from a known device', async () => {
    await idle()
    const strangers = ['a', 'b', 'c'].map((user) => outcome(user, undefined, PASSWORD))
    await Promise.all(strangers)
    expect(slots.waiting()).toBe(2)
    await outcome('d', stored, PASSWORD, true)
    expect(slots.waiting()).toBe(2)
    await until(async () => (await outcome('d', stored, PASSWORD, true)) === true, { what: 'its hash' })
    await idle()
  })
})
