import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { sha256Hex } from '../../apps/shared/data/digest.ts'
import { connectNats, streamName } from '../../apps/shared/events/events.ts'
import { type Answer, bearer, cookieOf, send } from '../session/support/auth.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { codeAt, fromBase32 } from '../support/totp.ts'
import { until } from '../support/until.ts'

/** auth.md 14.11: after a run of all flows no log, metric, event, problem, audit row or stored reply holds a secret. */

const APPS = ['token', 'credential', 'identity', 'session', 'relay', 'gateway'] as const
let stack: Stack
const answers: Answer[] = []
/** Every secret of the run, with its kind. */
const secrets = new Map<string, string>()
const sessions = new Set<string>()
const keep = (what: string, secret: unknown): string => {
  const text = String(secret ?? '')
  if (text.length >= 12) secrets.set(text, what)
  return text
}

const password = (what: string) => keep(what, `Canary-${randomUUID()}-Q7!`)
const PASSWORDS = {
  ada: password('the password of ada'),
  eva: password('the password of eva'),
  next: password('a new password'),
  wrong: password('a wrong password'),
  weak: keep('a weak password', `canary${randomUUID().replaceAll('-', '')}`),
}

const call = async (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown, headers = {}) => {
  const answer = await send(`${stack.gateway_url}${path}`, {
    method,
    headers: { 'idempotency-key': randomUUID(), ...headers },
    ...(body !== undefined && { body }),
  })
  answers.push(answer)
  return take(answer)
}

/** Records the secrets of an answer. */
const take = (answer: Answer): Answer => {
  const { access_token, refresh_token, csrf_token, device_token, enrolment } = answer.body as Record<string, string> & {
    enrolment?: { token: string }
  }
  for (const [what, token] of Object.entries({ access_token, refresh_token })) {
    if (!token) continue
    keep(`an ${what}`, token.split('.')[2])
    sessions.add(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).session_id)
  }
  for (const token of [refresh_token, cookieOf(answer).slice('refresh_token='.length)]) {
    if (!token) continue
    keep('a refresh token', token.split('.')[2])
    keep('the hash of a refresh token', sha256Hex(token))
  }
  keep('a CSRF token', csrf_token?.split('.')[2])
  keep('a device token', device_token?.split('.')[2])
  keep('the device cookie', cookieOf(answer, '__Host-device').split('.')[2])
  keep('an enrolment token', enrolment?.token.split('.')[3])
  return answer
}

const login = (username: string, secret: string, query = '') =>
  call('POST', `/v1/token${query}`, { username, password: secret, remember_device: true })

beforeAll(async () => {
  stack = await startStack({
    apps: [...APPS],
    env_overrides: { SIGNALBOX_LOG_LEVEL: 'trace', TOKEN__TOKENS__COOKIE_SECURE: 'true' },
  })
}, 180_000)
afterAll(() => stack?.stop(), 60_000)

const admin = (...args: string[]) =>
  spawnSync(process.execPath, [join(ROOT, 'apps/platform/admin.ts'), ...args], {
    encoding: 'utf8',
    env: { ...process.env, SIGNALBOX_DIR: stack.context.dir },
  })

/** Every flow of section 4, with its refusals, and requests that put a secret where none belongs. */
const runEverything = async () => {
  const { stdout } = admin('identity', 'bootstrap-admin', '--username', 'ada')
  const first = stdout.trim().split('#')[1] ?? ''
  keep('the first enrolment token', first.split('.')[3])
  const enrol = (enrolment_token: string, new_password: string) =>
    call('POST', '/api/v1/users/enrol', { enrolment_token, new_password })
  expect((await enrol(first, PASSWORDS.weak)).status).toBe(422)
  expect((await enrol(first, PASSWORDS.ada)).status).toBe(204)
  expect((await enrol(first, PASSWORDS.ada)).status).toBe(422)
  const ada = bearer((await login('ada', PASSWORDS.ada)).body.access_token)
  await withApp('ada', ada, PASSWORDS.ada)

  const made = await call('POST', '/api/v1/admin/users', { username: 'eva', grants: [{ role: 'viewer' }] }, ada)
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  const { user, enrolment } = made.body as unknown as { user: { id: string }; enrolment: { token: string } }
  expect((await enrol(enrolment.token, PASSWORDS.eva)).status).toBe(204)

  expect((await login('eva', PASSWORDS.wrong)).status).toBe(401)
  expect((await login(PASSWORDS.eva, PASSWORDS.eva)).status).toBe(401)
  const json = await login('eva', PASSWORDS.eva)
  const eva = bearer(json.body.access_token)
  await call('GET', `/api/v1/users/me?access_token=${json.body.access_token}`, undefined, eva)
  await call('GET', '/api/v1/admin/users', undefined, eva)
  const retry = { 'idempotency-key': keep('a retry key', randomUUID()) }
  const next = await call('POST', '/auth/refresh', { refresh_token: json.body.refresh_token }, retry)
  expect(next.status, next.text).toBe(200)
  await call('POST', '/auth/refresh', { refresh_token: json.body.refresh_token }, retry)
  await call('POST', '/auth/refresh', { refresh_token: json.body.refresh_token })
  await call('POST', '/auth/refresh', { refresh_token: `${next.body.refresh_token}x` })
  await call('POST', '/auth/login', { username: 'eva', password: PASSWORDS.eva, extra: PASSWORDS.eva })
  await call('POST', '/auth/login', `{"username":"eva","password":"${PASSWORDS.eva}"`)
  await call('POST', '/auth/login', { username: 'eva', password: [PASSWORDS.eva] })

  const cookie = await login('eva', PASSWORDS.eva, '?response_mode=cookie')
  const jar = [cookieOf(cookie), cookieOf(cookie, '__Host-device')].join('; ')
  const csrf = { cookie: jar, 'x-csrf-token': String(cookie.body.csrf_token), 'sec-fetch-site': 'same-origin' }
  await call('GET', '/v1/token/csrf', undefined, csrf)
  const grant = { grant_type: 'refresh_token' }
  await call('POST', '/v1/token?response_mode=cookie', grant, { ...csrf, 'x-csrf-token': 'v1.x.y' })
  const rotated = await call('POST', '/v1/token?response_mode=cookie', grant, csrf)
  expect(rotated.status).toBe(200)
  let inCookie = { ...bearer(rotated.body.access_token), ...csrf }
  await call('POST', '/v1/token/reauth', { password: PASSWORDS.wrong }, inCookie)
  const fresh = await call('POST', '/v1/token/reauth', { password: PASSWORDS.eva }, inCookie)
  expect(fresh.status).toBe(200)
  inCookie = { ...bearer(fresh.body.access_token), ...csrf }
  const change = (current_password: string, new_password: string) =>
    call('POST', '/api/v1/users/me/password', { current_password, new_password }, inCookie)
  expect((await change(PASSWORDS.wrong, PASSWORDS.next)).status).toBe(422)
  expect((await change(PASSWORDS.eva, PASSWORDS.weak)).status).toBe(422)
  expect((await change(PASSWORDS.eva, PASSWORDS.next)).status).toBe(200)
  await withApp('eva', inCookie, PASSWORDS.next)

  expect((await login('eva', PASSWORDS.next)).status).toBe(403)
  expect((await call('DELETE', '/api/v1/users/me/totp', undefined, inCookie)).status).toBe(204)
  const other = await login('eva', PASSWORDS.next)
  const late = bearer(other.body.access_token)
  await call('GET', '/api/v1/sessions', undefined, late)
  await call('POST', '/api/v1/sessions/revoke-others', undefined, late)
  await call('POST', '/auth/logout', undefined, late)
  await call('GET', '/api/v1/users/me', undefined, late)
  const USER = `/api/v1/admin/users/${user.id}`
  expect((await call('POST', `${USER}/enrolment-token`, undefined, ada)).status).toBe(201)
  for (let i = 0; i < 7; i++) await login('eva', PASSWORDS.wrong)
  expect((await call('POST', `${USER}/unlock`, undefined, ada)).status).toBe(204)
  await login('eva', PASSWORDS.next)
  await call('GET', `${USER}/sessions`, undefined, ada)
  await call('POST', `${USER}/disable`, { reason: 'left' }, ada)
  await login('eva', PASSWORDS.next)
  await call('POST', `${USER}/enable`, { reason: 'back' }, ada)
  await call('POST', `${USER}/delete`, { reason: 'gone' }, ada)
  await call('GET', '/api/v1/admin/auth-events', undefined, ada)
  await call('GET', '/api/v1/admin/user-events', undefined, ada)
  const jwks = await call('GET', '/.well-known/jwks.json')
  for (const { kid } of (jwks.body as unknown as { keys: { kid: string }[] }).keys) admin('token', 'kill-key', kid)
}

/** Sets up an authenticator app, signs in with it (refusals included), and keeps it. */
const withApp = async (name: string, session: Record<string, string>, secret_word: string) => {
  const begun = await call('POST', '/api/v1/users/me/totp/setup', {}, session)
  const secret = keep('the secret of an authenticator app', begun.body.secret)
  for (const form of ['hex', 'base64', 'latin1'] as const)
    keep(`that secret as ${form}`, fromBase32(secret).toString(form))
  const setup = keep('the set-up of an authenticator app', begun.body.setup)
  const set = (code: string) => call('PUT', '/api/v1/users/me/totp', { setup, code }, session)
  expect((await set('000000')).status).toBe(403)
  expect((await set(codeAt(secret, new Date(), -1))).status).toBe(200)
  const { factor_token } = (await login(name, secret_word)).body
  const second = (totp: string) =>
    call('POST', '/v1/token', { grant_type: 'second_factor', factor_token: keep('a factor token', factor_token), totp })
  expect((await second(codeAt(secret, new Date(), -1))).status).toBe(403)
  expect((await second(secret)).status).toBe(400)
  expect((await second(codeAt(secret, new Date()))).status).toBe(200)
}

/** The secrets of the setup itself. */
const keepOwnSecrets = (value: unknown): void => {
  if (typeof value === 'string') {
    if (/^[A-Za-z0-9+/]{43}=$/.test(value)) keep('a key of the set-up', value)
    for (const key of value.match(/"([A-Za-z0-9+/]{43}=)"/g) ?? []) keep('a key of the set-up', key.slice(1, -1))
  } else if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) keepOwnSecrets(one)
}

const TABLES = [
  'identity.user_events',
  'identity.outbox',
  'identity.idempotency',
  'credential.outbox',
  'credential.enrolment_tokens',
  'credential.totp_factors',
  'token.key_events',
  'token.outbox',
  'session.auth_events',
  'session.revocations',
  'session.idempotency',
]

it('finds no secret, token or hash in any log, metric, event, problem, audit row or stored reply (ASVS 10.1.1)', async () => {
  keepOwnSecrets(JSON.parse(readFileSync(join(stack.context.dir, 'keys/secrets.json'), 'utf8')))
  await runEverything()
  const db = new pg.Client({ connectionString: stack.database_url })
  await db.connect()
  const redis = new Redis(stack.servers.redis.url('session'))
  const nats = await connectNats(stack.servers.nats.url('relay'), 'test')
  try {
    const { rows: hashes } = await db.query('select password_hash from credential.credentials')
    for (const { password_hash } of hashes) keep('a password hash', password_hash)
    for (const schema of ['identity', 'credential', 'token'])
      await until(
        async () => (await db.query(`select 1 from ${schema}.outbox where published_at is null`)).rowCount === 0,
      )
    const audit = `${stack.context.prefix.redis}auth:audit`
    await until(async () => (await redis.xlen(audit)) === 0, { what: 'the relay to store the audit rows' })

    const surfaces: Record<string, string> = {}
    for (const name of APPS) {
      surfaces[`the log of ${name}`] = readFileSync(stack.log(name), 'utf8')
      surfaces[`the metrics of ${name}`] = (await send(`${stack.internal(name)}/metrics`)).text
    }
    for (const table of TABLES) {
      const { rows } = await db.query(`select t::text as text, to_jsonb(t) as json from ${table} t`)
      surfaces[table] = rows.map(({ text, json }) => text + JSON.stringify(json)).join('\n')
      const bodies = await db.query(`select * from ${table}`)
      surfaces[`${table} as text`] = bodies.rows
        .map((row) => Object.values(row).map((value) => (Buffer.isBuffer(value) ? value.toString('latin1') : '')))
        .join('\n')
      expect([table, rows.length > 0]).toEqual([table, true])
    }
    surfaces['Redis names'] = (await redis.keys('*')).join('\n')
    const jsm = await nats.jetstreamManager()
    const stream = streamName(stack.context.prefix.nats, 'AUTH')
    const { state } = await jsm.streams.info(stream)
    const events: string[] = []
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      events.push(new TextDecoder().decode((await jsm.streams.getMessage(stream, { seq })).data))
    }
    expect(events.length).toBeGreaterThan(5)
    surfaces['the stream AUTH'] = events.join('\n')
    const refusals = answers.filter(({ status }) => status >= 400)
    expect(refusals.length).toBeGreaterThan(15)
    expect(refusals.filter(({ status }) => status >= 500)).toEqual([])
    surfaces.problems = refusals.map(({ text, headers }) => text + JSON.stringify({ ...headers })).join('\n')

    expect(secrets.size).toBeGreaterThan(40)
    const found: string[] = []
    for (const [surface, text] of Object.entries(surfaces)) {
      for (const [secret, what] of secrets) {
        // The problem that asks for the second factor is how its caller gets the token.
        const given = surface === 'problems' && what === 'a factor token'
        if (!given && text.includes(secret)) found.push(`${what} in ${surface}`)
      }
      if (/\$argon2|PRIVATE KEY|eyJ[A-Za-z0-9_-]{20,}\.eyJ/.test(text)) found.push(`the form of a secret in ${surface}`)
      // Session ids are HMACs in logs and audit rows.
      if (!/^the log|_events/.test(surface)) continue
      for (const id of sessions) if (text.includes(id)) found.push(`a session id in ${surface}`)
    }
    expect([...new Set(found)]).toEqual([])
  } finally {
    redis.disconnect()
    await nats.close()
    await db.end()
  }
}, 120_000)
