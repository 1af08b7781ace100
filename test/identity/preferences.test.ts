import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startIdentity, type TestIdentity } from './support/harness.ts'

const PATH = '/v1/users/me/preferences'
const DARK = { theme: 'dark', zone: 'Europe/Berlin', language: 'de', shortcuts: false } as const
let p: TestIdentity
let ada: Awaited<ReturnType<TestIdentity['firstAdmin']>>
beforeAll(async () => {
  p = await startIdentity()
  ada = await p.firstAdmin()
})
afterAll(() => p.stop())

const put = (person: ReturnType<TestIdentity['as']>, body: object, more: { key?: string } = {}) =>
  person.put(PATH, { ...more, body })

describe('display preferences', () => {
  it('are empty at first, then the last ones set as a whole, each change in the audit log', async () => {
    const eva = await p.newUser(ada)
    expect(await eva.get(PATH)).toMatchObject({ status: 200, body: {} })
    expect(await put(eva, DARK)).toMatchObject({ status: 200, body: DARK })
    expect((await eva.get(PATH)).body).toEqual(DARK)
    expect((await put(eva, { zone: 'local' })).body).toEqual({ zone: 'local' })
    expect((await eva.get(PATH)).body).toEqual({ zone: 'local' })
    const log = await ada.get('/v1/admin/user-events?type=preferences.set')
    const events = log.body.items as { actor: string }[]
    const hers = events.filter(({ actor }) => actor === `user:${eva.user_id}`)
    expect(hers.length).toBe(2)
  })

  it('are set once per Idempotency-Key', async () => {
    const eva = await p.newUser(ada)
    const key = randomUUID()
    await put(eva, DARK, { key })
    await put(eva, { theme: 'light' })
    const again = await put(eva, DARK, { key })
    expect([again.headers['idempotency-replayed'], again.body]).toEqual(['true', DARK])
    expect((await eva.get(PATH)).body).toEqual({ theme: 'light' })
    expect((await put(eva, { theme: 'system' }, { key })).body.code).toBe('idempotency_key_reused')
  })

  it('are for their owner alone', async () => {
    const [eva, olga] = [await p.newUser(ada), await p.newUser(ada)]
    await put(eva, DARK)
    for (const other of [olga, ada]) expect((await other.get(PATH)).body).toEqual({})
    expect((await p.as(undefined).get(PATH)).status).toBe(401)
  })

  it('are those of one device as a whole if two set them for the first time at once', async () => {
    const eva = await p.newUser(ada)
    const wanted = ['dark', 'light', 'system', 'dark'].map((theme) => ({
      theme,
      zone: theme === 'dark' ? 'utc' : 'local',
    }))
    const replies = await Promise.all(wanted.map((body) => put(eva, body)))
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(wanted).toContainEqual((await eva.get(PATH)).body)
  })

  it.each([
    ['an unknown theme', { theme: 'pink' }],
    ['an unknown member', { font: 'serif' }],
    ['a language that the console does not speak', { language: 'fr' }],
    ['a zone that is none', { zone: 'Europe/Atlantis' }],
    ['a zone that is too long', { zone: 'x'.repeat(65) }],
    ['a switch that is a word', { shortcuts: 'yes' }],
  ])('are refused with %s, and stay unchanged', async (_what, body) => {
    const eva = await p.newUser(ada)
    await put(eva, DARK)
    const reply = await put(eva, body)
    expect(reply).toMatchObject({ status: 400, body: { category: 'validation_error', code: 'schema_violation' } })
    expect((await eva.get(PATH)).body).toEqual(DARK)
  })
})
