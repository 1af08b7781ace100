import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ensureAccounts } from '../../apps/platform/demo/accounts.ts'
import { DEVICE_GRANT } from '../../apps/shared/contracts/session/devices.ts'
import { startHooks } from '../operations/support/receivers.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { until } from '../support/until.ts'

/** The whole path of a message about an account: sign-in, audit log, relay, notifier, receiver. */

let stack: Stack
let pool: pg.Pool
let hooks: Awaited<ReturnType<typeof startHooks>>
beforeAll(async () => {
  hooks = await startHooks()
  stack = await startStack({
    apps: ['token', 'credential', 'identity', 'session', 'catalog', 'operations', 'relay', 'gateway'],
    env_overrides: {
      NOTIFY__ENABLED: 'true',
      NOTIFY__EGRESS__ALLOW: JSON.stringify([
        { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: [String(hooks.port)] },
      ]),
    },
  })
  pool = new pg.Pool({ connectionString: stack.database_url, max: 2 })
}, 120_000)
afterAll(async () => {
  await pool?.end()
  await stack?.stop()
  hooks?.close()
}, 60_000)

it('notifies a person of a device that was signed in by its code, without the codes', async () => {
  const { users } = await ensureAccounts(stack.gateway_url, stack.dir)
  const { username, password } = users.find((user) => user.username === 'eva') ?? {}
  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const sent = { 'content-type': 'application/json', 'idempotency-key': randomUUID(), ...headers }
    const reply = await fetch(`${stack.gateway_url}${path}`, {
      method: 'POST',
      headers: sent,
      body: JSON.stringify(body),
    })
    expect(reply.ok, `${path} ${reply.status}`).toBe(true)
    return JSON.parse((await reply.text()) || '{}') as Record<string, string>
  }
  const { access_token } = await post('/v1/token', { username, password })
  const eva = { authorization: `Bearer ${access_token}` }
  const destination = { kind: 'webhook', name: 'mine', address: `${hooks.url}/eva` }
  await post('/api/v1/notifications/destinations', destination, eva)

  const device = { 'user-agent': 'the-device/1' }
  const asked = await post('/v1/device', { client_id: 'signalbox-cli', host: 'ci-7' }, device)
  const { device_code = '', user_code = '' } = asked
  await post('/v1/device/approve', { user_code }, eva)
  const made = await post('/v1/token', { grant_type: DEVICE_GRANT, device_code, client_id: 'signalbox-cli' }, device)

  const sent = async () => {
    const { rows } = await pool.query<{ delivery_id: string }>(
      `select delivery_id from operations.notify_deliveries where state = 'sent' and fact ->> 'user_agent' = 'the-device/1'`,
    )
    return rows.map(({ delivery_id }) => delivery_id)
  }
  await until(async () => (await sent()).length > 0, { what: 'the message about the device' })
  const [delivery_id] = await sent()
  const calls = hooks.calls.filter(({ headers }) => headers['webhook-id'] === delivery_id)
  expect(calls.map(({ body }) => JSON.parse(body).type)).toEqual(['device.new'])
  for (const secret of [device_code, user_code, made.access_token, made.refresh_token])
    expect(calls[0]?.body).not.toContain(secret)
}, 120_000)
