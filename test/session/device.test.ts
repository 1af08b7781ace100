import { createHash, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeClient } from '../../apps/session/browser/client.ts'
import { openSession } from '../../apps/session/token/login.ts'
import { DEVICE_GRANT } from '../../apps/shared/contracts/session/devices.ts'
import { uuidv7 } from '../../apps/shared/ids.ts'
import { bearer, PASSWORD, send } from './support/auth.ts'
import { bearerOf, type Sso, startSso } from './support/sso.ts'

/** federation.md 4: a person signs in a device without a browser from another device (RFC 8628). */

let sso: Sso
let second: Awaited<ReturnType<Sso['addSession']>>
const users: Record<string, { id: string }> = {}
beforeAll(async () => {
  sso = await startSso()
  second = await sso.addSession()
  for (const name of ['ida', 'ole', 'uma', 'max', 'kim']) users[name] = await sso.addUser(name)
})
afterAll(() => sso?.stop())

type Codes = { device_code: string; user_code: string }
const BODY = { client_id: 'signalbox-cli', host: 'ci-7' }
const begin = async (body: object = BODY): Promise<Codes> => {
  const reply = await send(`${sso.gateway.url}/v1/device`, { body })
  expect(reply.status).toBe(200)
  return reply.body as Codes
}
const poll = ({ device_code }: Pick<Codes, 'device_code'>, more: object = {}, url = sso.gateway.url) =>
  send(`${url}/v1/token`, { body: { grant_type: DEVICE_GRANT, device_code, client_id: 'signalbox-cli', ...more } })
const signIn = async (username: string) =>
  bearer((await send(`${sso.gateway.url}/v1/token`, { body: { username, password: PASSWORD } })).body.access_token)
const act = (what: 'find' | 'approve' | 'deny', user_code: string, headers: object, url = sso.gateway.url) =>
  send(`${url}/v1/device/${what}`, { body: { user_code }, headers: { ...headers } })
/** Direct to a session process, as the gateway sends it. */
const direct = { 'x-forwarded-for': '127.0.0.1' }
const sessionsOf = async (headers: object) =>
  (await send(`${sso.gateway.url}/api/v1/sessions`, { headers: { ...headers } })).body.items as Record<
    string,
    unknown
  >[]
const audited = async (): Promise<Record<string, string>[]> => {
  const rows = await sso.redis.xrange(`${sso.prefix}auth:audit`, '-', '+')
  return rows.map(([, [, row]]) => JSON.parse(row ?? '{}'))
}
/** The device has waited its interval. */
const waited = async ({ device_code }: Codes) => {
  await sso.redis.hdel(`${sso.prefix}dgrant:${createHash('sha256').update(device_code).digest('hex')}`, 'polled_at')
}
const pending = { status: 400, body: { code: 'authorization_pending', error: 'authorization_pending' } }
const spent = { status: 401, body: { code: 'invalid_grant', error: 'invalid_grant' } }

describe('a device', () => {
  it('gets codes, waits, and has a session like any other once its person approves (ASVS 6.5.4, 6.5.5, 6.6.2, 10.7.3)', async () => {
    const reply = await send(`${sso.gateway.url}/v1/device`, { body: BODY })
    expect(reply.body).toMatchObject({
      device_code: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
      verification_uri: 'http://console.test/device',
      verification_uri_complete: `http://console.test/device?code=${reply.body.user_code}`,
      expires_in: 600,
      interval: 5,
    })
    expect(reply.headers['cache-control']).toBe('no-store')
    const codes = reply.body as Codes
    expect(await poll(codes)).toMatchObject(pending)

    const ida = await signIn('ida')
    const found = await act('find', codes.user_code.toLowerCase().replace('-', ' '), ida)
    expect(found.body).toMatchObject({
      ...BODY,
      user_code: codes.user_code,
      ip_address: '127.0.0.1',
      same_address: true,
      user_agent: expect.stringContaining('Firefox'),
    })
    expect((await act('approve', codes.user_code, ida)).status).toBe(204)
    const done = await poll(codes, { remember_device: true })
    expect(done).toMatchObject({ status: 200, body: { token_type: 'Bearer', device_token: expect.any(String) } })
    expect(Object.keys(done.body).sort()).toEqual(
      ['access_token', 'device_token', 'expires_in', 'refresh_token', 'token_type'].sort(),
    )

    const own = bearer(done.body.access_token)
    const listed = await sessionsOf(own)
    expect(listed.find(({ current }) => current)).toMatchObject({ mode: 'json', metadata: { host: 'ci-7' } })
    const renewed = await send(`${sso.gateway.url}/v1/token`, {
      body: { grant_type: 'refresh_token', refresh_token: done.body.refresh_token },
    })
    expect(renewed.status).toBe(200)
    const { id } = listed.find(({ current }) => current) ?? {}
    const gone = await send(`${sso.gateway.url}/api/v1/sessions/${id}`, {
      method: 'DELETE',
      headers: { ...ida, 'idempotency-key': 'end-of-the-device-0001' },
    })
    expect(gone.status).toBe(204)
    expect((await send(`${sso.gateway.url}/api/v1/sessions`, { headers: own })).status).toBe(401)
    const row = (await audited()).findLast(({ action }) => action === 'login')
    expect(JSON.parse(row?.body ?? '').details).toEqual({ device: 'new', grant: 'device_code', host: 'ci-7' })
  })

  it('is told to slow down, or to give up, and why', async () => {
    const codes = await begin()
    expect(await poll(codes)).toMatchObject(pending)
    expect(await poll(codes)).toMatchObject({ status: 400, body: { code: 'slow_down', error: 'slow_down' } })
    await waited(codes)
    expect(await poll(codes)).toMatchObject(pending)
    const ida = await signIn('ida')
    expect((await act('deny', codes.user_code, ida)).status).toBe(204)
    expect(await poll(codes)).toMatchObject({ status: 400, body: { code: 'access_denied', error: 'access_denied' } })
    expect(await poll(codes)).toMatchObject(spent)

    const late = await begin()
    for (const one of await sso.redis.keys(`${sso.prefix}dgrant:*`)) await sso.redis.hset(one, 'expires_at', '1')
    expect(await poll(late)).toMatchObject({ status: 400, body: { code: 'expired_token', error: 'expired_token' } })
    expect((await act('approve', late.user_code, ida)).body.code).toBe('device_request')
    expect(await poll({ device_code: 'made-up' })).toMatchObject(spent)
  })

  it('leaves neither code in the store, only their hashes (ASVS 6.5.2)', async () => {
    const codes = await begin()
    const seen: string[] = []
    for (const key of await sso.redis.keys(`${sso.prefix}*`)) {
      seen.push(key)
      if (/:(dcode|dgrant):/.test(key) || /dcode:|dgrant:/.test(key))
        seen.push(
          (await sso.redis.type(key)) === 'hash'
            ? JSON.stringify(await sso.redis.hgetall(key))
            : ((await sso.redis.get(key)) ?? ''),
        )
    }
    const letters = codes.user_code.replace('-', '')
    expect(seen.join('\n')).toMatch(/dgrant:/)
    for (const secret of [codes.device_code, codes.user_code, letters]) expect(seen.join('\n')).not.toContain(secret)
    // A plain hash of so few letters could be searched for.
    expect(seen.join('\n')).toMatch(/dcode:/)
    for (const text of [codes.user_code, letters, letters.toLowerCase()])
      expect(seen.join('\n')).not.toContain(createHash('sha256').update(text).digest('hex'))
  })

  it.each<[string, object, string]>([
    ['another client', { ...BODY, client_id: 'evil' }, 'schema_violation'],
    ['a host that reads as a sentence', { ...BODY, host: 'Approve this, it is IT' }, 'schema_violation'],
    ['no host', { client_id: 'signalbox-cli' }, 'schema_violation'],
  ])('is refused with %s', async (_name, body, code) => {
    expect(await send(`${sso.gateway.url}/v1/device`, { body })).toMatchObject({ status: 400, body: { code } })
  })

  it.each<[string, object, string]>([
    ['a password beside its code', { username: 'ida', password: PASSWORD }, 'ambiguous_grant'],
    ['a refresh token beside its code', { refresh_token: 'x' }, 'ambiguous_grant'],
    ['no code', { device_code: undefined }, 'missing_grant'],
  ])('is refused a poll with %s', async (_name, more, code) => {
    expect(await poll(await begin(), more)).toMatchObject({ status: 400, body: { code } })
  })

  it('keeps its own tokens: no poll in cookie mode', async () => {
    const { device_code } = await begin()
    const body = { grant_type: DEVICE_GRANT, device_code }
    const reply = await send(`${sso.gateway.url}/v1/token?response_mode=cookie`, {
      body,
      headers: { origin: 'http://console.test' },
    })
    expect(reply).toMatchObject({ status: 400, body: { code: 'ambiguous_grant' } })
  })
})

describe('an approval', () => {
  it('needs a sign-in of the last five minutes; a refusal does not (ASVS 10.3.4)', async () => {
    const { user_code } = await begin()
    const ida = await signIn('ida')
    const { session_id } = JSON.parse(Buffer.from(ida.authorization.split('.')[1] ?? '', 'base64url').toString()) as {
      session_id: string
    }
    const key = `${sso.prefix}sess:{${users.ida?.id}}:${session_id}`
    const stale = await sso.session.deps.issuer.access(
      {
        user_id: users.ida?.id ?? '',
        session_id,
        username: 'ida',
        mode: 'json',
        auth_time: Math.floor(Date.now() / 1000) - 301,
        amr: ['pwd'],
      },
      'request-1',
    )
    expect(await sso.redis.exists(key)).toBe(1)
    const refused = await act('approve', user_code, bearer(stale))
    expect(refused).toMatchObject({
      status: 403,
      body: { code: 'reauth_required', max_age_s: 300, hint: expect.stringMatching(/passkey.*\/v1\/sso/) },
    })
    expect((await act('find', user_code, bearer(stale))).status).toBe(200)
    expect((await act('deny', user_code, bearer(stale))).status).toBe(204)
  })

  it('is not a GET, needs a session, and in a browser its CSRF token (ASVS 7.6.2, 10.7.1)', async () => {
    const { user_code, device_code } = await begin()
    for (const path of ['/v1/device/approve', '/v1/device/find', `/v1/device/approve?user_code=${user_code}`])
      expect((await send(`${sso.gateway.url}${path}`, { headers: await signIn('ida') })).status).toBe(405)
    expect((await act('approve', user_code, {})).status).toBe(401)
    const browser = sso.browser()
    await browser.signIn('s-mia')
    const { 'x-csrf-token': _, ...headers } = await bearerOf(browser)
    expect(await act('approve', user_code, headers)).toMatchObject({ status: 403, body: { code: 'csrf_failed' } })
    expect(await act('approve', user_code, { ...headers, origin: 'https://evil.test' })).toMatchObject({
      status: 403,
      body: { code: 'origin_not_allowed' },
    })
    expect(await poll({ device_code })).toMatchObject(pending)
  })

  it('has one winner of many, over two processes: person against person, and approve against deny', async () => {
    const headers = await Promise.all(['ida', 'ole', 'uma', 'max'].map(signIn))
    for (let round = 0; round < 4; round++) {
      const { user_code, device_code } = await begin()
      const answers = await Promise.all(
        headers.map((who, i) =>
          act(
            i % 2 === round % 2 ? 'approve' : 'deny',
            user_code,
            { ...who, ...direct },
            i % 2 ? second.url : sso.session.url,
          ),
        ),
      )
      const codes = answers.map(({ status, body }) => (status === 204 ? 'won' : body.code)).sort()
      expect(codes).toEqual(['device_decided', 'device_decided', 'device_decided', 'won'])
      const winner = answers.findIndex(({ status }) => status === 204)
      const reply = await poll({ device_code })
      expect(reply.status).toBe(winner % 2 === round % 2 ? 200 : 400)
      if (reply.status === 200) {
        const me = await send(`${sso.gateway.url}/api/v1/users/me`, { headers: bearer(reply.body.access_token) })
        expect(me.body.username).toBe(['ida', 'ole', 'uma', 'max'][winner])
      }
    }
  })

  it('leaves no session to many polls at the same moment, over two processes: one of them has a stolen code (ASVS 6.5.1)', async () => {
    const kim = await signIn('kim')
    const before = (await sessionsOf(kim)).length
    for (let round = 0; round < 3; round++) {
      const codes = await begin()
      expect((await act('approve', codes.user_code, kim)).status).toBe(204)
      // A repeat of the same press has no effect.
      if (round === 0) expect((await act('approve', codes.user_code, kim)).status).toBe(204)
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, i) => poll(codes, {}, i % 2 ? second.url : sso.session.url)),
      )
      expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1)
      for (const reply of answers) if (reply.status !== 200) expect(reply).toMatchObject(spent)
      expect((await sessionsOf(kim)).length).toBe(before)
    }
  })

  it('is taken back if its device code is sent again later (ASVS 10.4.2)', async () => {
    const kim = await signIn('kim')
    const codes = await begin()
    await act('approve', codes.user_code, kim)
    const headers = bearer((await poll(codes)).body.access_token)
    const me = () => send(`${sso.gateway.url}/api/v1/users/me`, { headers })
    expect((await me()).status).toBe(200)
    expect(await poll(codes)).toMatchObject(spent)
    expect((await me()).status).toBe(401)
  })

  it('ends with the approving session, and with the account', async () => {
    const codes = await begin()
    const uma = await signIn('uma')
    await act('approve', codes.user_code, uma)
    await send(`${sso.gateway.url}/auth/logout`, { method: 'POST', headers: uma })
    expect(await poll(codes)).toMatchObject({ status: 400, body: { code: 'access_denied' } })
  })

  it('ends when its person ends the other sessions or changes the password, and a newer one counts', async () => {
    await sso.addUser('zoe')
    let zoe = await signIn('zoe')
    const approved = async () => {
      const codes = await begin()
      expect((await act('approve', codes.user_code, zoe)).status).toBe(204)
      return codes
    }
    const own = (path: string, body: object) =>
      send(`${sso.gateway.url}/api/v1/${path}`, { body, headers: { ...zoe, 'idempotency-key': randomUUID() } })
    const before = await approved()
    expect((await own('sessions/revoke-others', {})).status).toBe(200)
    expect(await poll(before)).toMatchObject({ status: 400, body: { code: 'access_denied' } })
    expect(await poll(before)).toMatchObject(spent)
    // Also just before its session is stored.
    const { store } = sso.session.deps
    const { create } = store
    const racing = await approved()
    store.create = async (...wanted) => {
      store.create = create
      expect((await own('sessions/revoke-others', {})).status).toBe(200)
      return create(...wanted)
    }
    expect(await poll(racing)).toMatchObject({ status: 400, body: { code: 'access_denied' } })
    expect(await sessionsOf(zoe)).toHaveLength(1)
    const between = await approved()
    const change = { current_password: PASSWORD, new_password: 'Winter-Otter-88-Lantern' }
    const changed = await own('users/me/password', change)
    expect(changed.status).toBe(200)
    expect(await poll(between)).toMatchObject({ status: 400, body: { code: 'access_denied' } })
    zoe = bearer(changed.body.access_token)
    expect((await poll(await approved())).status).toBe(200)
  })

  it('by a person of a provider ends when the provider ends their session, and not later than theirs (ASVS 7.3.2, 7.6.1)', async () => {
    sso.configure({ session_max_s: 3600 })
    const browser = sso.browser()
    await browser.signIn('s-mia')
    const headers = await bearerOf(browser)
    const codes = await begin()
    expect((await act('approve', codes.user_code, headers)).status).toBe(204)
    const done = await poll(codes)
    expect(done.status).toBe(200)
    const own = bearer(done.body.access_token)
    const [current] = (await sessionsOf(own)).filter((one) => one.current)
    const [parent] = (await sessionsOf(own)).filter(({ mode }) => mode === 'cookie')
    expect(current).toMatchObject({ metadata: { provider: 'corp', host: 'ci-7' } })
    expect(Date.parse(String(current?.expires_at))).toBeLessThanOrEqual(Date.parse(String(parent?.expires_at)) + 1000)
    const { provider } = sso
    const logout_token = await provider.sign(
      {
        iss: provider.issuer,
        aud: provider.client_id,
        sub: 's-mia',
        iat: Math.floor(Date.now() / 1000),
        jti: randomUUID(),
        events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
      },
      { typ: 'logout+jwt' },
    )
    const told = await send(`${sso.gateway.url}/v1/sso/corp/backchannel-logout`, { body: { logout_token } })
    expect(told.status).toBe(200)
    expect((await send(`${sso.gateway.url}/api/v1/sessions`, { headers: own })).status).toBe(401)
    sso.configure()
  })
})

describe('a guess of a user code', () => {
  it('counts against the person, whatever the codes are, and is audited (ASVS 6.6.3)', async () => {
    const max = await signIn('max')
    const answers: (number | string)[] = []
    for (let i = 0; i < 12; i++) {
      const letters = 'BCDFGHJKLMNP'
      answers.push((await act(i % 2 ? 'find' : 'approve', `BBBB-BBB${letters[i]}`, max)).status)
    }
    expect(answers.filter((status) => status === 404).length).toBeLessThanOrEqual(10)
    expect(answers.slice(-2)).toEqual([429, 429])
    // Also for a correct code.
    const { user_code } = await begin()
    expect((await act('approve', user_code, max)).status).toBe(429)
    const rows = (await audited()).filter(
      ({ action, reason }) => action === 'device_grant' && reason === 'unknown_code',
    )
    expect(rows.length).toBeGreaterThan(5)
  })

  it('counts against the code, whoever looks (ASVS 6.6.3)', async () => {
    const { user_code } = await begin()
    const people = await Promise.all(['pia', 'pam', 'pat'].map((name) => sso.addUser(name).then(() => signIn(name))))
    const answers: number[] = []
    for (let i = 0; i < 14; i++) answers.push((await act('find', user_code, people[i % 3] ?? {})).status)
    expect(answers.filter((status) => status === 200).length).toBeLessThanOrEqual(10)
    expect(answers.at(-1)).toBe(429)
  })
})

describe('guesses from one address', () => {
  it('count together, whoever sends them and whatever the codes are', async () => {
    const letters = 'BCDFGHJKLM'
    const names = Array.from(letters, (_, n) => `guess-${n}`).concat('guess-more')
    const people = await Promise.all(names.map((name) => sso.addUser(name).then(() => signIn(name))))
    const began = Date.now()
    const answers = await Promise.all(
      people.flatMap((who, row) =>
        Array.from(letters, (letter) => {
          const headers = { ...who, 'x-forwarded-for': '198.51.100.7' }
          return act('find', `CCC${'BCDFGHJKLMN'[row]}-CCC${letter}`, headers, sso.session.url)
        }),
      ),
    )
    const looked = answers.filter(({ status }) => status === 404).length
    expect(looked).toBeGreaterThanOrEqual(100)
    expect(looked).toBeLessThanOrEqual(101 + Math.floor((Date.now() - began) / 6000))
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(110 - looked)
  })
})

describe('a device that is signed in', () => {
  it('never evicts the session that approved it, however few a person may have', async () => {
    const small = await sso.addSession({ SESSION__CAP__PER_USER: '1' })
    await sso.addUser('solo')
    const codes = await begin()
    const solo = await signIn('solo')
    expect((await act('approve', codes.user_code, solo)).status).toBe(204)
    const done = await send(`${small.url}/v1/token`, {
      body: { grant_type: DEVICE_GRANT, device_code: codes.device_code, client_id: 'signalbox-cli' },
      headers: direct,
    })
    expect(done.status).toBe(200)
    expect(await sessionsOf(solo)).toHaveLength(2)
  })

  it('whose process ended before it answered leaves no session: the next poll ends what it had opened', async () => {
    const { id } = await sso.addUser('lost')
    const codes = await begin()
    const who = await signIn('lost')
    expect((await act('approve', codes.user_code, who)).status).toBe(204)
    // As far as such a process came: the claim and the session, whose tokens no one has.
    const { deps } = sso.session
    const opening = uuidv7()
    await deps.deviceGrants.claim(codes.device_code, opening)
    const owner = { user_id: id, username: 'lost', mode: 'json' as const, metadata: '{}', amr: ['pwd' as const] }
    await openSession(deps, { ...owner, session_id: opening }, describeClient('test', undefined), 'test')
    expect(await sessionsOf(who)).toHaveLength(2)
    expect(await poll(codes)).toMatchObject(spent)
    expect(await sessionsOf(who)).toHaveLength(1)
  })
})

describe('AUTH__DEVICE_GRANT=off', () => {
  it('disables the whole flow', async () => {
    const codes = await begin()
    const closed = await sso.addSession({ AUTH__DEVICE_GRANT: 'off' })
    const off = { status: 403, body: { code: 'device_grant_off' } }
    expect(await send(`${closed.url}/v1/device`, { body: BODY, headers: direct })).toMatchObject(off)
    const who = { ...(await signIn('ida')), ...direct }
    for (const what of ['find', 'approve', 'deny'] as const)
      expect(await act(what, codes.user_code, who, closed.url)).toMatchObject(off)
    expect(await poll(codes, {}, closed.url)).toMatchObject({ status: 400, body: { code: 'unsupported_grant_type' } })
  })
})

// The last one: its limit applies to the address of all others.
describe('the gateway', () => {
  it('limits how many devices an address starts, and charges no poll to the refreshes beside it', async () => {
    const gateway = await sso.addGateway({ GATEWAY__LIMITS__DEVICE: '2/600/2', GATEWAY__LIMITS__REFRESH_IP: '1/600/1' })
    const asked = () => send(`${gateway.url}/v1/device`, { body: BODY })
    const codes = (await asked()).body as Codes
    expect([(await asked()).status, (await asked()).status]).toEqual([200, 429])
    for (let i = 0; i < 3; i++) expect((await poll(codes, {}, gateway.url)).status).toBe(400)
    const renewal = () => send(`${gateway.url}/v1/token`, { body: { refresh_token: 'x' } })
    expect([(await renewal()).status, (await renewal()).status]).toEqual([401, 429])
    expect((await poll(codes, {}, gateway.url)).status).toBe(400)
  })
})
