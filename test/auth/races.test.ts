import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startUpstream } from '../gateway/support/upstream.ts'
import { type Answer, type Auth, bearer, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { startProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'

/**
 * auth.md 14.2: one winner, and no usable token survives a race with the end of the session. Three gateways, each in
 * front of its own session component, run as six separate processes; they share Redis, identity, credential and token.
 */

type Tokens = { access_token: string; refresh_token: string }
let auth: Auth
let gateways: string[]
let admin: Tokens
let upstream: Awaited<ReturnType<typeof startUpstream>>
const processes: Awaited<ReturnType<typeof startProcess>>[] = []

const ROUNDS = 6
const WRONG = 'Wrong-Horse-7-Battery'
const NEW_PASSWORD = 'Another-Staple-9-Lantern'
const gateway = (turn: number): string => gateways[turn % gateways.length] as string
const login = (username: string, turn = 0, password = PASSWORD) =>
  send(`${gateway(turn)}/auth/login`, { body: { username, password } })
const signIn = async (username: string) => (await login(username)).body as Tokens
const refresh = (refresh_token: string, turn = 1, headers = {}) =>
  send(`${gateway(turn)}/auth/refresh`, { body: { refresh_token }, headers })
const command = (path: string, turn: number, token: string, body?: object) =>
  send(`${gateway(turn)}${path}`, {
    method: 'POST',
    headers: { ...bearer(token), 'idempotency-key': randomUUID() },
    ...(body && { body }),
  })
const times = <T>(n: number, call: (turn: number) => T): T[] => Array.from({ length: n }, (_, turn) => call(turn))
const won = (answers: Answer[]) => answers.filter(({ status }) => status === 200)
const sessionOf = (token: string): string =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).session_id
const eventsOf = async (session_id: string) =>
  (await auth.redis.xrange(`${auth.prefix}auth:revoked`, '-', '+')).filter(([, fields]) => fields.includes(session_id))
/** The relay takes entries out of the stream once it has stored them. */
const revocationsOf = async (session_id: string): Promise<number> => {
  const { rows } = await auth.session.deps.db.$client.query(
    'select event_id from session.revocations where session_id = $1',
    [session_id],
  )
  return rows.length
}

/** Every token that anyone obtained is refused at every gateway. */
const expectDead = async (answers: Answer[]) => {
  for (const { status, body } of answers) {
    if (status !== 200) continue
    const { access_token, refresh_token } = body as Tokens
    const read = (turn: number) => send(`${gateway(turn)}/api/v1/resources`, { headers: bearer(access_token) })
    expect((await Promise.all(times(3, read))).map((answer) => answer.status)).toEqual([401, 401, 401])
    if (refresh_token) expect((await refresh(refresh_token)).status).toBe(401)
  }
}

beforeAll(async () => {
  upstream = await startUpstream()
  auth = await startAuth({ GATEWAY__UPSTREAM__CATALOG_URL: upstream.url, SESSION__LOCKOUT__FREE: '4' })
  const env = { ...auth.vars, SESSION__CAP__PER_USER: '3' }
  const sessions = await Promise.all(times(3, () => startProcess('session', env)))
  processes.push(...sessions)
  const before = ({ url }: { url: string }) => startProcess('gateway', { ...env, GATEWAY__UPSTREAM__SESSION_URL: url })
  const edges = await Promise.all(sessions.map(before))
  processes.push(...edges)
  gateways = edges.map(({ url }) => url)
  await auth.addRelay()
  await auth.addUser('ada', ['admin'])
  admin = await signIn('ada')
}, 60_000)
afterAll(async () => {
  await Promise.all(processes.map((each) => each.stop()))
  await auth?.stop()
  upstream?.stop()
}, 60_000)

describe('one of many at once wins', () => {
  it('a refresh token is rotated once, and the other attempts end its family (ASVS 10.4.5)', async () => {
    await auth.addUser('rotor')
    for (let round = 0; round < 3; round++) {
      const first = await signIn('rotor')
      const answers = await Promise.all(times(24, (turn) => refresh(first.refresh_token, turn)))
      expect(won(answers)).toHaveLength(1)
      // On a loaded machine some may time out: an outage is not a second winner.
      for (const { status } of answers) expect([200, 401, 503]).toContain(status)
      await expectDead(answers)
      await until(async () => (await revocationsOf(sessionOf(first.access_token))) === 1)
    }
  })

  it('the same refresh sent three times by three routes gives one successor', async () => {
    await auth.addUser('retrier')
    for (let round = 0; round < ROUNDS; round++) {
      const { refresh_token } = await signIn('retrier')
      const key = { 'idempotency-key': randomUUID() }
      const answers = await Promise.all(times(3, (turn) => refresh(refresh_token, turn, key)))
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
      expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1)
      expect((await refresh(String(answers[0]?.body.refresh_token), round)).status).toBe(200)
    }
  })

  it('a session ends once, however many ask for it', async () => {
    await auth.addUser('leaver')
    const { access_token } = await signIn('leaver')
    const answers = await Promise.all(times(9, (turn) => command('/auth/logout', turn, access_token)))
    expect(answers.map(({ status }) => status)).toEqual(Array(9).fill(204))
    await until(async () => (await revocationsOf(sessionOf(access_token))) === 1)
    await until(async () => (await eventsOf(sessionOf(access_token))).length === 0, { what: 'the relay to be done' })
    expect(await revocationsOf(sessionOf(access_token))).toBe(1)
  })

  it('guesses meet the lock after the free ones, and logins meet the cap', async () => {
    const user = await auth.addUser('many')
    // The message about the first password unlocks a locked name.
    await until(async () => (await auth.redis.exists(`${auth.prefix}pv:{${user.id}}`)) === 1)
    const guesses = await Promise.all(times(15, (turn) => login('many', turn, WRONG)))
    expect(guesses.filter(({ status }) => status === 401)).toHaveLength(5)
    expect(guesses.filter(({ body }) => body.code === 'login_locked')).toHaveLength(10)
    // On a slow machine the lock expires by itself.
    for (const lock of await auth.redis.keys(`${auth.prefix}lock:name:*`)) await auth.redis.del(lock)
    const logins = await Promise.all(times(9, (turn) => login('many', turn)))
    expect(won(logins).length).toBeGreaterThanOrEqual(3)
    expect(await auth.redis.zcard(`${auth.prefix}usess:{${user.id}}`)).toBe(3)
  })
})

describe('no usable token survives', () => {
  it('refreshes that race a logout', async () => {
    await auth.addUser('eva')
    for (let round = 0; round < ROUNDS; round++) {
      const first = await login('eva')
      const { access_token, refresh_token } = first.body as Tokens
      const [out, ...answers] = await Promise.all([
        command('/auth/logout', round, access_token),
        refresh(refresh_token, round + 1),
      ])
      expect(out.status).toBe(204)
      await expectDead([first, ...answers])
    }
  })

  it('refreshes and logins that race a disable (ASVS 7.4.2)', async () => {
    for (let round = 0; round < ROUNDS / 2; round++) {
      const user = await auth.addUser(`racer-${round}`)
      const first = await login(user.username)
      const { refresh_token } = first.body as Tokens
      const [disabled, ...answers] = await Promise.all([
        command(`/api/v1/admin/users/${user.id}/disable`, round, admin.access_token, { reason: 'left' }),
        refresh(refresh_token, round + 1),
        ...times(4, (turn) => login(user.username, turn)),
      ])
      expect([disabled.status, disabled.body.sessions]).toEqual([200, 'revoked'])
      await expectDead([first, ...answers])
      expect(await auth.redis.keys(`${auth.prefix}sess:{${user.id}}:*`)).toEqual([])
    }
  })

  it('refreshes of other sessions that race a change of the password', async () => {
    for (let round = 0; round < ROUNDS / 2; round++) {
      const { username } = await auth.addUser(`changer-${round}`)
      const mine = await signIn(username)
      const other = await login(username, 1)
      const [changed, ...answers] = await Promise.all([
        command('/api/v1/users/me/password', round, mine.access_token, {
          current_password: PASSWORD,
          new_password: NEW_PASSWORD,
        }),
        refresh((other.body as Tokens).refresh_token, round + 1),
        login(username, round + 2),
      ])
      expect(changed.status).toBe(200)
      await expectDead([other, ...answers])
      expect((await refresh(String(changed.body.refresh_token), round)).status).toBe(200)
    }
  })

  it('of two password changes one succeeds, and only its session continues', async () => {
    const { username } = await auth.addUser('twice')
    const sessions = [await login(username, 0), await login(username, 1)]
    const wanted = [NEW_PASSWORD, `${NEW_PASSWORD}-too`]
    const change = ({ body }: Answer, turn: number) =>
      command('/api/v1/users/me/password', turn, String(body.access_token), {
        current_password: PASSWORD,
        new_password: wanted[turn],
      })
    const answers = await Promise.all(sessions.map(change))
    const winner = answers.findIndex(({ status }) => status === 200)
    expect(won(answers)).toHaveLength(1)
    await expectDead([sessions[1 - winner] as Answer])
    expect((await login(username, 2, wanted[1 - winner])).status).toBe(401)
    expect((await login(username, 2, wanted[winner])).status).toBe(200)
  })
})
