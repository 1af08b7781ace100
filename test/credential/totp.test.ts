import { randomBytes, randomUUID } from 'node:crypto'
import type { Client } from '@connectrpc/connect'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { buildApp } from '../../apps/credential/app.ts'
import { loadCredentialConfig } from '../../apps/credential/config.ts'
import { createDeps } from '../../apps/credential/deps.ts'
import { stepOf } from '../../apps/credential/totp/codes.ts'
import { Credential } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import { totp_factors } from '../../db/credential/tables.ts'
import { testDatabase } from '../support/database.ts'
import { testServices } from '../support/services.ts'
import { codeAt, fromBase32 } from '../support/totp.ts'
import { until } from '../support/until.ts'

/** federation.md 8: the authenticator app in credential, with two processes over one database and a test clock. */

const MINUTE_MS = 60_000
let services: ReturnType<typeof testServices>
let database: Awaited<ReturnType<typeof testDatabase>>
let now = new Date('2026-03-01T12:00:00Z')
let one: Process
let two: Process

const keks = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
const start = async (kek: string) => {
  const config = loadCredentialConfig({
    CREDENTIAL__DATABASE__URL: database.url,
    CREDENTIAL__ENROLMENT__KEY: randomBytes(32).toString('base64'),
    CREDENTIAL__FACTORS__KEK: kek,
    CREDENTIAL__HASH__MEMORY_KIB: '1024',
    CREDENTIAL__HASH__PARALLELISM: '1',
    UV_THREADPOOL_SIZE: '16',
    AUTH__SERVICES__FILE: services.registry_file,
  })
  const deps = await createDeps(config, { clock: { now: () => now } })
  const { app } = buildApp(deps)
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const clientOf = (name: string): Client<typeof Credential> =>
    createRpcClient(Credential, { url, signer: services.signer(name), audience: 'credential-internal' })
  return { deps, clientOf, session: clientOf('session'), stop: () => app.close().then(() => deps.close()) }
}
type Process = Awaited<ReturnType<typeof start>>

beforeAll(async () => {
  services = testServices()
  database = await testDatabase('credential')
  one = await start(keks[0] ?? '')
  two = await start(keks[0] ?? '')
})
afterAll(async () => {
  await Promise.all([one?.stop(), two?.stop()])
  await database.drop()
  services.remove()
})
beforeEach(() => {
  now = new Date(now.getTime() + 3 * 60 * MINUTE_MS)
})

const begin = (userId: string) => one.session.beginTotp({ userId, username: 'eva', issuer: 'Signalbox test' })
/** A person whose app was set up some time ago. */
const person = async () => {
  const user_id = randomUUID()
  const { secret, setup } = await begin(user_id)
  expect(await one.session.setTotp({ userId: user_id, setup, code: codeAt(secret, now) })).toMatchObject({
    refused: '',
  })
  now = new Date(now.getTime() + 10 * MINUTE_MS)
  return { user_id, secret, setup }
}
const verify = ({ user_id }: { user_id: string }, code: string, by = one) =>
  by.session.verifyTotp({ userId: user_id, code })
const wrongOf = (secret: string) => {
  const right = [-1, 0, 1].map((steps) => codeAt(secret, now, steps))
  return ['000000', '111111', '222222', '333333'].find((code) => !right.includes(code)) ?? ''
}

describe('a code', () => {
  it.each([
    [59, '94287082'],
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ])('matches RFC 6238, appendix B, at %i s', (seconds, vector) => {
    const secret = Buffer.from('12345678901234567890')
    const at = new Date(seconds * 1000)
    expect(stepOf(secret, vector.slice(2), at)).toBe(Math.floor(seconds / 30))
    expect(codeAt('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ', at)).toBe(vector.slice(2))
  })

  it('is accepted one step early or late, and no further (ASVS 6.5.5)', async () => {
    const eva = await person()
    const taken: boolean[] = []
    for (const steps of [-2, 2, -1, 0, 1]) taken.push((await verify(eva, codeAt(eva.secret, now, steps))).isValid)
    expect(taken).toEqual([false, false, true, true, true])
  })

  it('of any other form is invalid, and throws no error', () => {
    const secret = Buffer.alloc(20, 7)
    for (const text of ['', '12345', '1234567', '12 345', 'abcdef', '１２３４５６', '-12345', '1e5   '])
      expect(stepOf(secret, text, now)).toBeUndefined()
  })

  it('counts once, and so do older ones', async () => {
    const eva = await person()
    expect(await verify(eva, codeAt(eva.secret, now))).toMatchObject({ isValid: true, cause: '' })
    for (const [steps, by] of [
      [0, one],
      [0, two],
      [-1, two],
    ] as const)
      expect(await verify(eva, codeAt(eva.secret, now, steps), by)).toMatchObject({ isValid: false, cause: 'replayed' })
    expect((await verify(eva, codeAt(eva.secret, now, 1))).isValid).toBe(true)
  })

  it('has one winner when many requests send it at once to two processes', async () => {
    for (let round = 0; round < 5; round++) {
      const eva = await person()
      const code = codeAt(eva.secret, now)
      const answers = await Promise.all([one, two, one, two, one, two].map((by) => verify(eva, code, by)))
      expect(answers.filter(({ isValid }) => isValid)).toHaveLength(1)
    }
  })

  it('that set up the app is used', async () => {
    const user_id = randomUUID()
    const { secret, setup } = await begin(user_id)
    const code = codeAt(secret, now)
    await one.session.setTotp({ userId: user_id, setup, code })
    expect(await verify({ user_id }, code)).toMatchObject({ isValid: false, cause: 'replayed' })
    // Repeating the same setup keeps the row: its codes stay used.
    expect(await two.session.setTotp({ userId: user_id, setup, code })).toMatchObject({ refused: '' })
    expect((await verify({ user_id }, code)).isValid).toBe(false)
  })
})

describe('guesses', () => {
  it('are ten an hour, however many come at once: then even the right code is refused', async () => {
    const eva = await person()
    const wrong = wrongOf(eva.secret)
    const guesses = await Promise.all(Array.from({ length: 30 }, (_, i) => verify(eva, wrong, i % 2 ? one : two)))
    expect(guesses.filter(({ cause }) => cause === 'wrong_code')).toHaveLength(10)
    expect(guesses.filter(({ cause }) => cause === 'locked')).toHaveLength(20)
    expect(guesses.filter(({ lockedNow }) => lockedNow)).toHaveLength(1)
    now = new Date(now.getTime() + 59 * MINUTE_MS)
    expect(await verify(eva, codeAt(eva.secret, now))).toMatchObject({ isValid: false, lockedMs: 60_000n })
    now = new Date(now.getTime() + MINUTE_MS)
    expect((await verify(eva, codeAt(eva.secret, now))).isValid).toBe(true)
  })

  it('of an hour expire only with time, not by a right code between them', async () => {
    const eva = await person()
    for (let guess = 0; guess < 9; guess++) await verify(eva, wrongOf(eva.secret))
    expect((await verify(eva, codeAt(eva.secret, now))).isValid).toBe(true)
    expect(await verify(eva, wrongOf(eva.secret))).toMatchObject({ cause: 'wrong_code', lockedNow: true })
    const olga = await person()
    for (let guess = 0; guess < 9; guess++) await verify(olga, wrongOf(olga.secret))
    now = new Date(now.getTime() + 61 * MINUTE_MS)
    expect(await verify(olga, wrongOf(olga.secret))).toMatchObject({ cause: 'wrong_code', lockedNow: false })
  })

  it('at one person do not affect others', async () => {
    const [eva, olga] = [await person(), await person()]
    for (let guess = 0; guess < 10; guess++) await verify(eva, wrongOf(eva.secret))
    expect((await verify(olga, codeAt(olga.secret, now))).isValid).toBe(true)
    expect(await verify({ user_id: randomUUID() }, '123456')).toMatchObject({ isValid: false, cause: 'none' })
  })
})

describe('a set-up', () => {
  it('shows 160 bits once, and creates no row before its first code', async () => {
    const user_id = randomUUID()
    const { secret, uri } = await begin(user_id)
    expect(fromBase32(secret)).toHaveLength(20)
    expect(uri).toBe(
      `otpauth://totp/Signalbox%20test:eva?issuer=Signalbox%20test&secret=${secret}&algorithm=SHA1&digits=6&period=30`,
    )
    expect(await one.session.getTotp({ userId: user_id })).not.toHaveProperty('totp')
    expect((await verify({ user_id }, codeAt(secret, now))).isValid).toBe(false)
  })

  it('is refused with a wrong, late or altered code, or for another person', async () => {
    const user_id = randomUUID()
    const { secret, setup } = await begin(user_id)
    const set = async (more: object = {}) =>
      (await two.session.setTotp({ userId: user_id, setup, code: codeAt(secret, now), ...more })).refused
    expect(await set({ code: wrongOf(secret) })).toBe('totp_invalid')
    expect(await set({ userId: randomUUID() })).toBe('challenge_expired')
    for (const other of ['', 'x', `${setup.slice(0, -2)}AA`, setup.split('.')[1] ?? ''])
      expect(await set({ setup: other })).toBe('challenge_expired')
    now = new Date(now.getTime() + 10 * MINUTE_MS)
    expect(await set({ code: codeAt(secret, now) })).toBe('challenge_expired')
    expect(await one.session.getTotp({ userId: user_id })).not.toHaveProperty('totp')
  })

  it('that is spent takes a right code, and brings back no app that was removed or replaced', async () => {
    const eva = await person()
    now = new Date(now.getTime() - 9 * MINUTE_MS)
    const again = async (code: string, { setup } = eva) =>
      (await two.session.setTotp({ userId: eva.user_id, setup, code })).refused
    expect(await again(wrongOf(eva.secret))).toBe('totp_invalid')
    expect(await again(codeAt(eva.secret, now))).toBe('')
    const next = await begin(eva.user_id)
    expect(await again(codeAt(next.secret, now), { ...eva, ...next })).toBe('')
    expect(await again(codeAt(eva.secret, now))).toBe('challenge_expired')
    await one.session.removeTotp({ userId: eva.user_id })
    expect(await again(codeAt(next.secret, now), { ...eva, ...next })).toBe('challenge_expired')
    expect(await one.session.getTotp({ userId: eva.user_id })).not.toHaveProperty('totp')
    // An older build takes any row for an app.
    expect(await one.deps.db.select().from(totp_factors).where(eq(totp_factors.user_id, eva.user_id))).toEqual([])
    const fresh = await begin(eva.user_id)
    expect(await again(codeAt(fresh.secret, now), { ...eva, ...fresh })).toBe('')
  })

  it('brings back no app that is being removed', async () => {
    for (let round = 0; round < 5; round++) {
      const eva = await person()
      now = new Date(now.getTime() - 9 * MINUTE_MS)
      const code = codeAt(eva.secret, now)
      const set = (by: Process) => by.session.setTotp({ userId: eva.user_id, setup: eva.setup, code })
      await Promise.all([set(two), one.session.removeTotp({ userId: eva.user_id }), set(one), set(two)])
      expect(await one.session.getTotp({ userId: eva.user_id })).not.toHaveProperty('totp')
    }
  })

  it('replaces the previous app, whose codes then no longer count', async () => {
    const eva = await person()
    const next = await begin(eva.user_id)
    await two.session.setTotp({ userId: eva.user_id, setup: next.setup, code: codeAt(next.secret, now, -1) })
    expect((await verify(eva, codeAt(eva.secret, now))).isValid).toBe(false)
    expect((await verify(eva, codeAt(next.secret, now))).isValid).toBe(true)
    expect(await one.session.removeTotp({ userId: eva.user_id })).toMatchObject({ removed: true })
    expect(await one.session.removeTotp({ userId: eva.user_id })).toMatchObject({ removed: false })
    expect((await verify(eva, codeAt(next.secret, now, 1))).cause).toBe('none')
  })
})

describe('the secret', () => {
  it('is sealed at rest for its person, and opens under a new key until the old one is removed (ASVS 6.5.2)', async () => {
    const eva = await person()
    const row = async () => {
      const [found] = await one.deps.db.select().from(totp_factors).where(eq(totp_factors.user_id, eva.user_id))
      return found
    }
    const plain = fromBase32(eva.secret)
    const before = await row()
    for (const form of [plain, plain.toString('hex'), eva.secret, plain.toString('base64')])
      expect(before?.secret.includes(form)).toBe(false)

    // A row copied to another person does not open.
    const olga = await person()
    await one.deps.db.update(totp_factors).set({ secret: before?.secret }).where(eq(totp_factors.user_id, olga.user_id))
    await expect(verify(olga, codeAt(eva.secret, now))).rejects.toThrow()
    await one.session.removeTotp({ userId: olga.user_id })

    const rotated = await start(JSON.stringify([keks[1], keks[0]]))
    expect((await verify(eva, codeAt(eva.secret, now), rotated)).isValid).toBe(true)
    await until(async () => (await row())?.kek_id !== before?.kek_id)
    await rotated.stop()
    const renewed = await start(keks[1] ?? '')
    expect((await verify(eva, codeAt(eva.secret, now, 1), renewed)).isValid).toBe(true)
    await renewed.stop()
  })

  it('is open only to authorized services: session writes and proves, identity removes', async () => {
    const request = { userId: randomUUID(), code: '123456' }
    const identity = one.clientOf('identity')
    await expect(identity.verifyTotp(request)).rejects.toThrow(/permission/i)
    await expect(identity.getTotp(request)).rejects.toThrow(/permission/i)
    await expect(identity.beginTotp({ ...request, username: 'eva', issuer: 'x' })).rejects.toThrow(/permission/i)
    await expect(one.clientOf('operations').verifyTotp(request)).rejects.toThrow(/service token/i)
    expect(await identity.removeTotp(request)).toMatchObject({ removed: false })
  })
})
