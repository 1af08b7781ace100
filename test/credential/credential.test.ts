import { randomBytes, randomUUID } from 'node:crypto'
import { type Client, Code } from '@connectrpc/connect'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildApp } from '../../apps/credential/app.ts'
import { type CredentialConfig, loadCredentialConfig } from '../../apps/credential/config.ts'
import { type CredentialDeps, createDeps } from '../../apps/credential/deps.ts'
import { Credential } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import { credentials, outbox } from '../../db/credential/tables.ts'
import { mannWhitney } from '../bench/lib/ranks.ts'
import { testDatabase } from '../support/database.ts'
import { testServices } from '../support/services.ts'
import { until } from '../support/until.ts'

const GOOD = 'Tr0mbone-Glacier-Napkin'
const BETTER = 'Vellum.Otter.Hinge.83'

let services: ReturnType<typeof testServices>
let database: Awaited<ReturnType<typeof testDatabase>>
let env: NodeJS.ProcessEnv
let config: CredentialConfig
let deps: CredentialDeps
let app: ReturnType<typeof buildApp>
let session: Client<typeof Credential>
let identity: Client<typeof Credential>
let url: string
let now = new Date('2026-03-01T12:00:00Z')

const clientOf = (name: string, at = url) =>
  createRpcClient(Credential, {
    url: at,
    signer: services.signer(name),
    audience: 'credential-internal',
    timeout_ms: 5000,
  })

/** A second process over the same database, with other settings. */
const startAnother = async (changes: Record<string, string>) => {
  const other = await createDeps(loadCredentialConfig({ ...env, ...changes }), { clock: { now: () => now } })
  const { app: listener } = buildApp(other)
  const address = await listener.listen({ host: '127.0.0.1', port: 0 })
  return {
    deps: other,
    session: clientOf('session', address),
    stop: async () => {
      await listener.close()
      await other.close()
    },
  }
}

const enrolmentOf = async (user_id: string, more: object = {}) =>
  (await identity.createEnrolmentToken({ userId: user_id, changeId: randomUUID(), ...more })).enrolmentToken
const set = (user_id: string, enrolment_token: string, new_password: string, change_id = randomUUID()) =>
  identity.setPassword({
    userId: user_id,
    newPassword: new_password,
    enrolmentToken: enrolment_token,
    changeId: change_id,
    username: 'eva',
  })
const newUser = async (password = GOOD) => {
  const user_id = randomUUID()
  expect((await set(user_id, await enrolmentOf(user_id), password)).violations).toEqual([])
  return user_id
}
const verify = async (user_id: string, password: string, client = session) =>
  (await client.verifyPassword({ userId: user_id, password })).isValid
const hashesRun = async (of = deps) => {
  const { values } = await (of.telemetry.metrics.getSingleMetric('signalbox_hash_duration_seconds')?.get() ?? {
    values: [],
  })
  return values
    .filter((v) => 'metricName' in v && v.metricName === 'signalbox_hash_duration_seconds_count')
    .reduce((sum, v) => sum + v.value, 0)
}

beforeAll(async () => {
  services = testServices()
  database = await testDatabase('credential')
  env = {
    CREDENTIAL__DATABASE__URL: database.url,
    CREDENTIAL__ENROLMENT__KEY: randomBytes(32).toString('base64'),
    CREDENTIAL__FACTORS__KEK: randomBytes(32).toString('base64'),
    CREDENTIAL__HASH__MEMORY_KIB: '16384',
    CREDENTIAL__HASH__PARALLELISM: '1',
    UV_THREADPOOL_SIZE: '16',
    AUTH__SERVICES__FILE: services.registry_file,
  }
  config = loadCredentialConfig(env)
  deps = await createDeps(config, { clock: { now: () => now } })
  app = buildApp(deps)
  url = await app.app.listen({ host: '127.0.0.1', port: 0 })
  session = clientOf('session')
  identity = clientOf('identity')
})
afterAll(async () => {
  await app.app.close()
  await deps.close()
  await database.drop()
  services.remove()
})

describe('VerifyPassword', () => {
  it('accepts the right password in any Unicode spelling, and no other (ASVS 6.2.8)', async () => {
    const user_id = await newUser('Ågren-Kä5e-Ofen-Tüte')
    expect(await verify(user_id, 'Ågren-Kä5e-Ofen-Tüte'.normalize('NFD'))).toBe(true)
    expect(await verify(user_id, 'Agren-Kä5e-Ofen-Tüte')).toBe(false)
    // Neither trimmed nor cut, and in its own case (ASVS 6.2.8).
    const long = `${'Ågren-Kä5e-Ofen-'.repeat(7)}Tüte`
    const other = await newUser(long)
    expect(await verify(other, long)).toBe(true)
    expect(await verify(other, long.slice(0, -1))).toBe(false)
    for (const near of [
      'Ågren-Kä5e-Ofen-Tüte ',
      ' Ågren-Kä5e-Ofen-Tüte',
      'ågren-kä5e-ofen-tüte',
      'Ågren-Kä5e-Ofen-Tüt',
    ])
      expect(await verify(user_id, near)).toBe(false)
  })
  it('runs exactly one full hash for every cause of failure, as for success', async () => {
    const user_id = await newUser()
    const causes: [string, string, boolean][] = [
      [user_id, GOOD, true],
      [user_id, 'wrong', false],
      [user_id, '', false],
      [user_id, 'x'.repeat(200), false],
      [randomUUID(), GOOD, false],
      ['00000000-0000-0000-0000-000000000000', GOOD, false],
      ['', GOOD, false],
      ['not-a-uuid', GOOD, false],
    ]
    for (const [id, password, expected] of causes) {
      const before = await hashesRun()
      expect([id, password, await verify(id, password)]).toEqual([id, password, expected])
      expect([id, password, (await hashesRun()) - before]).toEqual([id, password, 1])
    }
  })
  it('takes as long for an unknown user as for a wrong password', async () => {
    const user_id = await newUser()
    const times = { wrong: [] as number[], unknown: [] as number[] }
    const kinds = ['wrong', 'unknown'] as const
    for (let i = 0; i < 40; i++) {
      for (const kind of i % 2 ? kinds : kinds.toReversed()) {
        const started = performance.now()
        // A password that was tried a moment ago is not hashed again.
        await verify(kind === 'wrong' ? user_id : randomUUID(), `Wrong-Passw0rd-${i}`)
        times[kind].push(performance.now() - started)
      }
    }
    // Equal samples fall below this once in ten thousand runs; without the dummy hash it is 1e-14.
    expect(mannWhitney(times.wrong, times.unknown)).toBeGreaterThan(0.0001)
  })
  it('renews a hash with older parameters after a success, and the password still matches', async () => {
    const user_id = await newUser()
    const stored = async () =>
      (await deps.db.select().from(credentials).where(eq(credentials.user_id, user_id)))[0]?.password_hash ?? ''
    expect(await stored()).toMatch(/^\$argon2id\$v=19\$m=16384,(t=3,p=1|p=1,t=3)\$/)
    const newer = await startAnother({ CREDENTIAL__HASH__TIME: '4' })
    expect(await verify(user_id, 'Wrong-Passw0rd-Here', newer.session)).toBe(false)
    expect(await verify(user_id, GOOD, newer.session)).toBe(true)
    await until(async () => /t=4/.test(await stored()))
    expect(await verify(user_id, GOOD)).toBe(true)
    await newer.stop()
  })
})

describe('a full queue', () => {
  it('is resource_exhausted for the right password and for a wrong one', async () => {
    const full = await startAnother({
      CREDENTIAL__HASH__CONCURRENCY: '1',
      CREDENTIAL__HASH__QUEUE_MAX: '0',
      CREDENTIAL__HASH__MEMORY_KIB: '65536',
      CREDENTIAL__HASH__TIME: '10',
    })
    const user_id = await newUser()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        full.session.verifyPassword({ userId: user_id, password: i % 2 ? GOOD : 'wrong' }),
      ),
    )
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(refused.length).toBeGreaterThan(0)
    for (const { reason } of refused) expect(reason).toMatchObject({ code: Code.ResourceExhausted })
    await full.stop()
  })
})

describe('an enrolment token', () => {
  it('sets a password once; a repeat of the same change succeeds, any other use is refused', async () => {
    const user_id = randomUUID()
    const token = await enrolmentOf(user_id)
    const change = randomUUID()
    expect((await set(user_id, token, GOOD, change)).violations).toEqual([])
    expect((await set(user_id, token, GOOD, change)).violations).toEqual([])
    for (const key of [randomUUID(), change])
      await expect(set(user_id, token, BETTER, key)).rejects.toMatchObject({ code: Code.FailedPrecondition })
    expect(await verify(user_id, GOOD)).toBe(true)
  })
  it('is used by only one of many at once (ASVS 6.4.1)', async () => {
    const user_id = randomUUID()
    const token = await enrolmentOf(user_id)
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => set(user_id, token, GOOD)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBe(1)
    expect((await deps.db.select().from(outbox).where(eq(outbox.agg_id, user_id))).length).toBe(1)
  })
  it('is not used up by a weak password (ASVS 6.1.2, 6.2.11)', async () => {
    const user_id = randomUUID()
    const token = await enrolmentOf(user_id)
    expect((await set(user_id, token, 'weak')).violations.length).toBeGreaterThan(0)
    // Anyone would guess the product's name.
    const named = 'Signalbox-Kx7'
    expect((await deps.strength.estimate(named, [])).score).toBe(4)
    expect((await set(user_id, token, named)).violations).toMatchObject([{ code: 'PasswordTooWeakError' }])
    expect((await set(user_id, token, GOOD)).violations).toEqual([])
  })
  it('of another user, altered by a character, or re-spelled is refused (ASVS 6.4.1)', async () => {
    const [user_id, other] = [randomUUID(), randomUUID()]
    const token = await enrolmentOf(user_id)
    const [, , token_id = ''] = token.split('.')
    for (const forged of [
      token.replace(user_id, other),
      token.replace(token_id, randomUUID()),
      `${token}=`,
      `${token}.x`,
      token.replace('e1', 'e2'),
      '',
      'e1...',
    ]) {
      await expect(set(forged.includes(other) ? other : user_id, forged, GOOD)).rejects.toMatchObject({
        code: Code.FailedPrecondition,
      })
    }
    await expect(set(other, token, GOOD)).rejects.toMatchObject({ code: Code.FailedPrecondition })
  })
  it('ends after an hour, and with any newer password (ASVS 6.4.1)', async () => {
    const user_id = randomUUID()
    const [first, second] = [await enrolmentOf(user_id), await enrolmentOf(user_id)]
    expect((await set(user_id, first, GOOD)).violations).toEqual([])
    await expect(set(user_id, second, BETTER)).rejects.toMatchObject({ code: Code.FailedPrecondition })
    const third = await enrolmentOf(user_id)
    const before = now
    now = new Date(now.getTime() + 3600_000)
    await expect(set(user_id, third, BETTER)).rejects.toMatchObject({ code: Code.FailedPrecondition })
    now = before
  })
  it('is the same for a repeated change, and none is given to a user with a password on request', async () => {
    const user_id = randomUUID()
    const change = { userId: user_id, changeId: randomUUID(), onlyIfNoPassword: true }
    const [first, second] = [await identity.createEnrolmentToken(change), await identity.createEnrolmentToken(change)]
    expect(second).toEqual(first)
    await expect(identity.createEnrolmentToken({ ...change, userId: randomUUID() })).rejects.toMatchObject({
      code: Code.InvalidArgument,
    })
    await set(user_id, first.enrolmentToken, GOOD)
    await expect(identity.createEnrolmentToken({ ...change, changeId: randomUUID() })).rejects.toMatchObject({
      code: Code.FailedPrecondition,
    })
  })
})

describe('ChangePassword', () => {
  const change = (user_id: string, current: string, next: string, change_id = randomUUID()) =>
    session.changePassword({
      userId: user_id,
      currentPassword: current,
      newPassword: next,
      keepSessionId: 'keep',
      changeId: change_id,
      username: 'eva',
    })

  it('needs the current password and takes effect at once', async () => {
    const user_id = await newUser()
    expect(await change(user_id, 'wrong', BETTER)).toMatchObject({ currentIsValid: false })
    expect(await change(randomUUID(), GOOD, BETTER)).toMatchObject({ currentIsValid: false })
    expect(await change(user_id, GOOD, BETTER)).toMatchObject({ currentIsValid: true, violations: [] })
    expect([await verify(user_id, GOOD), await verify(user_id, BETTER)]).toEqual([false, true])
  })
  it('answers the repeat of an applied change with success, and promises one event', async () => {
    const user_id = await newUser()
    const change_id = randomUUID()
    for (let i = 0; i < 2; i++)
      expect(await change(user_id, GOOD, BETTER, change_id)).toMatchObject({ currentIsValid: true, violations: [] })
    const events = await deps.db.select().from(outbox).where(eq(outbox.agg_id, user_id)).orderBy(outbox.agg_version)
    expect(events.map(({ type, agg_version }) => [type, agg_version])).toEqual([
      ['password_set', 1],
      ['password_changed', 2],
    ])
    expect(events[1]?.payload).toMatchObject({ user_id, keep_session_id: 'keep' })
    // Another change under the same key is no repeat: it must not be reported as done.
    const another = `${GOOD}-2`
    expect(await change(user_id, 'wrong', another, change_id)).toMatchObject({ currentIsValid: false })
    expect(await change(user_id, BETTER, another, change_id)).toMatchObject({ currentIsValid: true, violations: [] })
    expect([await verify(user_id, BETTER), await verify(user_id, another)]).toEqual([false, true])
  })
  it('lets one of several at once win', async () => {
    const user_id = await newUser()
    const outcomes = await Promise.allSettled(['A', 'B', 'C', 'D'].map((c) => change(user_id, GOOD, `${BETTER}${c}`)))
    const won = outcomes.flatMap((outcome) =>
      outcome.status === 'fulfilled' && outcome.value.currentIsValid ? [outcome.value] : [],
    )
    expect(won.length).toBe(1)
  })
  it('names the rules that the new password breaks and changes nothing', async () => {
    const user_id = await newUser()
    const { violations } = await change(user_id, GOOD, 'short')
    expect(violations[0]?.code).toBe('PasswordTooWeakError')
    expect(await verify(user_id, GOOD)).toBe(true)
  })
})

describe('scopes', () => {
  it('keep session from setting and identity from verifying', async () => {
    await expect(session.setPassword({ userId: randomUUID() })).rejects.toMatchObject({ code: Code.PermissionDenied })
    await expect(identity.verifyPassword({ userId: randomUUID() })).rejects.toMatchObject({
      code: Code.PermissionDenied,
    })
  })
})

describe('the start', () => {
  it('is refused with too small a thread pool, more than ten hashes at once, or weak parameters in production', () => {
    expect(() => loadCredentialConfig({ ...env, UV_THREADPOOL_SIZE: '4' })).toThrow('UV_THREADPOOL_SIZE')
    expect(() => loadCredentialConfig({ ...env, UV_THREADPOOL_SIZE: undefined })).toThrow('UV_THREADPOOL_SIZE')
    expect(() => loadCredentialConfig({ ...env, CREDENTIAL__HASH__CONCURRENCY: '11' })).toThrow(
      'CREDENTIAL__HASH__CONCURRENCY',
    )
    const secured = {
      ...env,
      NODE_ENV: 'production',
      CREDENTIAL__DATABASE__URL: 'postgres://credential:secret@db/signalbox?sslmode=verify-full',
    }
    expect(() => loadCredentialConfig(secured)).toThrow('CREDENTIAL__HASH__MEMORY_KIB')
  })
})
