import { randomUUID } from 'node:crypto'
import type { NatsConnection } from 'nats'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connectNats, ensureStreams, streamName } from '../../apps/shared/events/events.ts'
import { startUpstream } from '../gateway/support/upstream.ts'
import { type Auth, bearer, cookieOf, counted, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { serverUrl } from '../support/database.ts'
import { until } from '../support/until.ts'

/** auth.md 14.4: ending a session ends its access token at every gateway, with Redis or NATS away; one event each. */

type Tokens = { access_token: string; refresh_token: string }
type User = { id: string; username: string }
let auth: Auth
let nats: NatsConnection
let upstream: Awaited<ReturnType<typeof startUpstream>>
let admin: Tokens
let gateways: Record<'one' | 'two' | 'without NATS' | 'without Redis', string>
let small: string

const NEW_PASSWORD = 'Another-Staple-9-Lantern'
const prefix = () => auth.vars.SIGNALBOX__NATS__PREFIX ?? ''
const login = async (username: string, password = PASSWORD, url = auth.session.url) => {
  const answer = await send(`${url}/auth/login`, { body: { username, password } })
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.body as Tokens
}
const sessionOf = (token: string): string =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).session_id
const command = (url: string, token: string, body?: object, method: 'POST' | 'DELETE' = 'POST') =>
  send(url, { method, headers: { ...bearer(token), 'idempotency-key': randomUUID() }, ...(body && { body }) })
/** The upstream behind this route admits everyone: only the gateway refuses. */
const asked = async (gateway: string, token: string) =>
  (await send(`${gateway}/api/v1/resources`, { headers: bearer(token) })).status
const refresh = (token: string) => send(`${auth.session.url}/auth/refresh`, { body: { refresh_token: token } })

/** The events of each session in the stream. */
const eventsOf = async (session_id: string): Promise<Record<string, unknown>[]> => {
  const consumer = await nats
    .jetstream()
    .consumers.get(streamName(prefix(), 'AUTH'), { filterSubjects: [`${prefix()}.auth.session.revoked.v1`] })
  const found: Record<string, unknown>[] = []
  const { num_pending } = await consumer.info(true)
  if (num_pending === 0) return found
  const messages = await consumer.fetch({ max_messages: num_pending, expires: 2000 })
  for await (const message of messages) {
    const event = message.json<Record<string, unknown>>()
    if (event.session_id === session_id) found.push(event)
    if (message.info.pending === 0) break
  }
  return found
}

beforeAll(async () => {
  upstream = await startUpstream()
  auth = await startAuth({ GATEWAY__UPSTREAM__CATALOG_URL: upstream.url })
  nats = await connectNats(serverUrl('NATS_URL'), 'test')
  await ensureStreams(nats, prefix(), ['AUTH'])
  await auth.addRelay()
  small = (await auth.addSession({ SESSION__CAP__PER_USER: '1' })).url
  await auth.addUser('ada', ['admin'])
  admin = await login('ada')
  const away = { GATEWAY__REDIS__URL: 'redis://127.0.0.1:9', GATEWAY__REDIS__TIMEOUT_MS: '250' }
  gateways = {
    one: (await auth.addGateway()).url,
    two: (await auth.addGateway()).url,
    'without NATS': (await auth.addGateway({ GATEWAY__NATS__URL: 'nats://127.0.0.1:9' })).url,
    'without Redis': (await auth.addGateway(away)).url,
  }
})
afterAll(async () => {
  await auth?.stop()
  upstream?.stop()
  await (await nats.jetstreamManager()).streams.delete(streamName(prefix(), 'AUTH'))
  await nats.close()
})

const identity = (path: string, body: object) =>
  command(`${auth.vars.GATEWAY__UPSTREAM__IDENTITY_URL}/v1/admin/users/${path}`, admin.access_token, body)

const CAUSES: { what: string; reason: string; end: (user: User, tokens: Tokens) => Promise<unknown> }[] = [
  {
    what: 'logout',
    reason: 'logout',
    end: (_user, { access_token }) => command(`${auth.session.url}/auth/logout`, access_token),
  },
  {
    what: 'ending it from another session',
    reason: 'logout',
    end: async ({ username }, { access_token }) =>
      command(
        `${auth.session.url}/v1/sessions/${sessionOf(access_token)}`,
        (await login(username)).access_token,
        undefined,
        'DELETE',
      ),
  },
  {
    what: 'an administrator',
    reason: 'admin',
    end: ({ id }) =>
      command(`${auth.session.url}/v1/admin/users/${id}/sessions`, admin.access_token, undefined, 'DELETE'),
  },
  { what: 'a disable', reason: 'user_disabled', end: ({ id }) => identity(`${id}/disable`, { reason: 'left' }) },
  { what: 'a delete', reason: 'user_deleted', end: ({ id }) => identity(`${id}/delete`, { reason: 'left' }) },
  {
    what: 'a change of the password elsewhere',
    reason: 'password_changed',
    end: async ({ username }) =>
      command(`${auth.session.url}/v1/users/me/password`, (await login(username)).access_token, {
        current_password: PASSWORD,
        new_password: NEW_PASSWORD,
      }),
  },
  {
    what: 'a new password by enrolment',
    reason: 'password_changed',
    end: async (user, { refresh_token }) => {
      await auth.setPassword(user, NEW_PASSWORD)
      await until(async () => (await refresh(refresh_token)).status === 401)
    },
  },
  { what: 'eviction by newer sessions', reason: 'evicted', end: ({ username }) => login(username, PASSWORD, small) },
  {
    what: 'a replay',
    reason: 'replay',
    end: async (_user, { refresh_token }) => {
      await refresh(refresh_token)
      await refresh(refresh_token)
    },
  },
]

describe('an access token is dead at every gateway after (ASVS 7.4.1, 7.4.2)', () => {
  it.each(CAUSES)('$what', async ({ what, reason, end }) => {
    const user = await auth.addUser(what.replaceAll(' ', '-'))
    // The message about the user's own first password is not what ends the session here.
    await until(async () => (await auth.redis.exists(`${auth.prefix}pv:{${user.id}}`)) === 1)
    const tokens = await login(user.username)
    for (const [name, url] of Object.entries(gateways))
      expect([name, await asked(url, tokens.access_token)]).toEqual([name, 200])

    await end(user, tokens)
    for (const name of ['one', 'two', 'without NATS'] as const)
      expect([name, await asked(gateways[name], tokens.access_token)]).toEqual([name, 401])
    await until(async () => (await asked(gateways['without Redis'], tokens.access_token)) === 401, {
      what: 'the refusal by the event alone',
    })
    expect((await refresh(tokens.refresh_token)).status).toBe(401)
    const events = await until(async () => {
      const found = await eventsOf(sessionOf(tokens.access_token))
      return found.length > 0 && found
    })
    expect(events).toMatchObject([{ reason, user_id: user.id, type: 'auth.session.revoked.v1', schema_version: 1 }])
    expect(Object.keys((events as Record<string, unknown>[])[0] ?? {}).sort()).toEqual(
      [
        'event_id',
        'type',
        'schema_version',
        'occurred_at',
        'request_id',
        'actor',
        'session_id',
        'user_id',
        'reason',
        'access_valid_until',
      ].sort(),
    )
  })
})

/**
 * Everything that the design counts (auth.md 12): a counter by its value, a histogram by its number of observations.
 */
const COUNTED =
  /^(signalbox_)?((http_requests|token_refresh(ed|_attempts|_outcomes)|csrf_errors|user_login(_failures)?|sessions_revoked|token_rejected|rate_limited|policy_denied)_total|(gateway_added|hash_duration|hash_wait|token_sign|revocation_delay)_seconds|denylist_entries)$/

type Metrics = Auth['session']['deps']['telemetry']['metrics']

/** Every counted series of these parts: `part name label=value` and its value. Calls between services are left out. */
const seriesOf = async (parts: Record<string, Metrics>): Promise<Map<string, number>> => {
  const series = new Map<string, number>()
  for (const [part, metrics] of Object.entries(parts)) {
    for (const metric of await metrics.getMetricsAsJSON()) {
      if (!COUNTED.test(metric.name)) continue
      for (const { labels, value, ...more } of metric.values) {
        const { metricName = metric.name } = more as { metricName?: string }
        const named = Object.entries(labels).filter(([name]) => name !== 'app')
        const shown = named.map(([name, text]) => ` ${name}=${text}`).join('')
        if (!/_(sum|bucket)$/.test(metricName) && !shown.includes('=/signalbox.'))
          series.set(`${part} ${metricName}${shown}`, value)
      }
    }
  }
  return series
}

describe('the counters of the design', () => {
  it('each count exactly what happened, and no other counter moves', async () => {
    const edge = await auth.addGateway({ GATEWAY__LIMITS__ENROL: '1/3600/1' })
    await until(() => edge.deps.feed.isLive())
    const known = edge.deps.denylist.size()
    const parts = {
      gateway: edge.deps.telemetry.metrics,
      session: auth.session.deps.telemetry.metrics,
      identity: auth.identity_deps.telemetry.metrics,
      credential: auth.credential_deps.telemetry.metrics,
      token: auth.token_deps.telemetry.metrics,
    }
    const post = (path: string, body?: object, headers: Record<string, string> = {}) =>
      send(`${edge.url}${path}`, {
        method: 'POST',
        headers: { 'idempotency-key': randomUUID(), ...headers },
        ...(body && { body }),
      })
    const sign = (username: string, password: string, query = '') => post(`/v1/token${query}`, { username, password })
    const renew = async (refresh_token: string) => (await post('/auth/refresh', { refresh_token })).body as Tokens
    const user = await auth.addUser('counted')
    await until(async () => (await auth.redis.exists(`${auth.prefix}pv:{${user.id}}`)) === 1)
    const before = await seriesOf(parts)

    const first = (await sign('counted', PASSWORD)).body as Tokens
    await sign('counted', 'Wrong-Horse-7-Battery')
    await sign('nobody-here', PASSWORD)
    await renew('garbage')
    const second = await renew(first.refresh_token)
    await asked(edge.url, second.access_token)
    await asked(edge.url, 'garbage')
    await send(`${edge.url}/api/v1/admin/users`, { headers: bearer(second.access_token) })
    await renew(first.refresh_token) // a replay
    await asked(edge.url, second.access_token)
    const cookie = await sign('counted', PASSWORD, '?response_mode=cookie')
    const jar = { cookie: cookieOf(cookie) }
    const mine = { ...jar, ...bearer(cookie.body.access_token) }
    await post('/v1/token?response_mode=cookie', {}, jar) // without the CSRF token
    await post('/auth/logout', undefined, mine)
    await post('/auth/logout', undefined, { ...mine, 'x-csrf-token': String(cookie.body.csrf_token) })
    for (const enrolment_token of ['one', 'two'])
      await post('/api/v1/users/enrol', { enrolment_token, new_password: 'x' })
    await until(() => edge.deps.denylist.size() >= known + 2)

    const moved = [...(await seriesOf(parts))].map(([name, value]) => [name, value - (before.get(name) ?? 0)] as const)
    expect(Object.fromEntries(moved.filter(([name, by]) => by !== 0 && !name.includes('endpoint=/jwks')))).toEqual({
      // The second sign-in joined the hash of the first.
      'credential signalbox_hash_duration_seconds_count act=verify': 3,
      'credential signalbox_hash_wait_seconds_count': 3,
      'gateway csrf_errors_total': 1,
      'gateway signalbox_denylist_entries': 2,
      'gateway signalbox_gateway_added_seconds_count': 12,
      'gateway http_requests_total endpoint=/api/v1/admin/users status=403': 1,
      'gateway http_requests_total endpoint=/api/v1/resources status=200': 1,
      'gateway http_requests_total endpoint=/api/v1/resources status=401': 2,
      'gateway http_requests_total endpoint=/api/v1/users/enrol status=422': 1,
      'gateway http_requests_total endpoint=/api/v1/users/enrol status=429': 1,
      'gateway http_requests_total endpoint=/auth/logout status=204': 1,
      'gateway http_requests_total endpoint=/auth/logout status=403': 1,
      'gateway http_requests_total endpoint=/auth/refresh status=200': 1,
      'gateway http_requests_total endpoint=/auth/refresh status=401': 2,
      'gateway http_requests_total endpoint=/v1/token status=200': 2,
      'gateway http_requests_total endpoint=/v1/token status=401': 2,
      'gateway http_requests_total endpoint=/v1/token status=403': 1,
      'gateway signalbox_rate_limited_total class=enrol': 1,
      'gateway signalbox_revocation_delay_seconds_count': 2,
      'gateway signalbox_token_rejected_total cause=malformed': 1,
      'gateway signalbox_token_rejected_total cause=revoked': 1,
      'identity http_requests_total endpoint=/v1/admin/users status=403': 1,
      'identity http_requests_total endpoint=/v1/users/enrol status=422': 1,
      'identity signalbox_policy_denied_total policy_id=permission_missing': 1,
      'session csrf_errors_total': 1,
      'session http_requests_total endpoint=/auth/logout status=204': 1,
      'session http_requests_total endpoint=/auth/refresh status=200': 1,
      'session http_requests_total endpoint=/auth/refresh status=401': 2,
      'session http_requests_total endpoint=/v1/token status=200': 2,
      'session http_requests_total endpoint=/v1/token status=401': 2,
      'session http_requests_total endpoint=/v1/token status=403': 1,
      'session signalbox_policy_denied_total policy_id=csrf_failed': 1,
      'session signalbox_sessions_revoked_total reason=logout': 1,
      'session signalbox_sessions_revoked_total reason=replay': 1,
      'session token_refresh_attempts_total': 4,
      'session signalbox_token_refresh_outcomes_total outcome=csrf_failed': 1,
      'session signalbox_token_refresh_outcomes_total outcome=not_valid': 1,
      'session signalbox_token_refresh_outcomes_total outcome=replay': 1,
      'session signalbox_token_refresh_outcomes_total outcome=rotated': 1,
      'session token_refreshed_total': 1,
      'session signalbox_token_rejected_total cause=malformed': 1,
      'session signalbox_user_login_failures_total cause=unknown': 1,
      'session signalbox_user_login_failures_total cause=wrong_password': 1,
      'session user_login_total': 2,
      'token signalbox_token_sign_seconds_count': 3,
    })
    expect(await counted(parts.gateway, 'signalbox_jwks_age_seconds')).toBeLessThanOrEqual(300)
    expect(await counted(parts.gateway, 'signalbox_redis_fallback_active')).toBe(0)
    expect(await counted(parts.credential, 'signalbox_hash_waiting')).toBe(0)
  })
})
