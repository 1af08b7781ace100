import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { encryptPush } from '../../apps/operations/notifications/channels/encrypt.ts'
import { findNotices } from '../../apps/operations/notifications/find.ts'
import { startNotifier } from '../../apps/operations/notifications/loop.ts'
import { queueSecurity } from '../../apps/operations/notifications/security.ts'
import { sendDue } from '../../apps/operations/notifications/send.ts'
import { prefixed } from '../../apps/shared/events/events.ts'
import { until } from '../support/until.ts'
import { find, holdUp, newcomer, notify, send } from './support/notified.ts'
import { gated, must, type Person, type Platform, person, problem, startPlatform } from './support/platform.ts'
import { startPushService } from './support/push-service.ts'

/** People are notified in their browsers, through a real push service whose browsers decrypt their own messages. */
const PUSH = '/v1/notifications/push'
const NOTIFY = '/v1/notifications'
const folder = mkdtempSync(join(tmpdir(), 'signalbox-push-'))
let p: Platform
let service: Awaited<ReturnType<typeof startPushService>>
const envOf = (more: Record<string, string> = {}) => {
  const key_file = join(folder, 'push.json')
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  writeFileSync(key_file, JSON.stringify(privateKey.export({ format: 'jwk' })))
  return {
    NOTIFY__ENABLED: 'true',
    NOTIFY__GATHER_S: '0',
    NOTIFY__PUSH__KEY_FILE: key_file,
    NOTIFY__PUSH__HOSTS: JSON.stringify(['127.0.0.1', 'localhost', '10.0.0.1', '*.example.org']),
    NOTIFY__EGRESS__ALLOW: JSON.stringify([
      { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: [String(service.port)] },
      { scheme: 'http', host: 'localhost', networks: ['10.0.0.0/8'], ports: ['1-65535'] },
      { scheme: 'http', host: 'hooks.internal', networks: ['127.0.0.0/8'], ports: ['1-65535'] },
    ]),
    ...more,
  }
}
beforeAll(async () => {
  service = await startPushService()
  p = await startPlatform({ relay: false, instances: 2, env: envOf() })
})
afterAll(async () => {
  await p.stop()
  service.close()
  rmSync(folder, { recursive: true })
})

let eva: Awaited<ReturnType<typeof newcomer>>
beforeEach(async () => {
  eva = await newcomer(p)
  service.state.status = 201
  service.faults.length = 0
})

const opened = async (title = `web 2.4.0 by ${eva.name}`) => {
  const policy = { approvals: { groups: [{ group: eva.team, min: 1 }] } }
  const { operation_id } = await p.startOperation(gated(policy), { more: { title } })
  await p.openGate(operation_id, 'go')
  return operation_id
}
const subscribed = async (who: Person = eva, device = service.browser()) => {
  must(await p.as(who).put(PUSH, device.body), 200)
  return device
}
const devices = async (who: Person = eva) => must(await p.as(who).get(`${NOTIFY}/destinations`), 200).body.items
const deliveries = async () => must(await p.as(eva).get(`${NOTIFY}/deliveries`), 200).body.items
const approved = (operation_id: string) =>
  p.query(
    `update operations.gates set status = 'approved', decided_by = $2, decided_at = clock_timestamp() where operation_id = $1`,
    [operation_id, JSON.stringify({ kind: 'user', id: eva.id, name: 'ada' })],
  )

describe('a push', () => {
  it('is encrypted to the byte as in the example of RFC 8291', () => {
    const keys = {
      p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
      auth: 'BTBZMqHH6r4Tts7J_aSIgg',
    }
    const salt = Buffer.from('DGv6ra1nlYgDCS1FRnbzlw', 'base64url')
    const private_key = Buffer.from('yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw', 'base64url')
    const body = encryptPush('When I grow up, I want to be a watermelon', keys, { salt, private_key })
    expect(body.toString('base64url')).toBe(
      'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
    )
  })

  it('announces each gate and round once, is signed for its push service, and is replaced by the outcome', async () => {
    const phone = await subscribed()
    const operation_id = await opened()
    const other = await opened('another')
    await Promise.all([notify(p), notify(p), notify(p)])
    await notify(p)
    expect(service.faults).toEqual([])
    expect(phone.got).toHaveLength(2)
    const [first] = phone.got.filter(({ payload }) => payload.tag === `${operation_id}/go`)
    expect(first?.payload).toEqual({
      tag: `${operation_id}/go`,
      title: 'Continue?',
      body: `web 2.4.0 by ${eva.name} · Risk: low`,
      url: `/operations/${operation_id}/gates/go?round=1`,
      silent: false,
    })
    expect(first?.headers).toMatchObject({ ttl: '86400', urgency: 'normal', 'content-encoding': 'aes128gcm' })
    expect(first?.headers.topic).toMatch(/^[\w-]{32}$/)
    expect(first?.size).toBeLessThan(4096)
    const lives_s = (first?.claims.exp ?? 0) - Date.now() / 1000
    expect(lives_s > 0 && lives_s <= 86_400).toBe(true)

    await approved(operation_id)
    await Promise.all([notify(p), notify(p)])
    await notify(p)
    expect(phone.got).toHaveLength(3)
    expect(phone.got[2]?.payload).toMatchObject({ tag: `${operation_id}/go`, title: 'Approved by ada.', silent: true })
    expect(phone.got[2]?.headers.topic).toBe(first?.headers.topic)
    // A new round replaces the previous one without an outcome in between.
    await p.query('update operations.gates set round = 2 where operation_id = $1', [other])
    await notify(p)
    await notify(p)
    expect(phone.got.slice(3).map(({ payload }) => [payload.tag, payload.silent])).toEqual([[`${other}/go`, false]])
    const topics = phone.got.filter(({ payload }) => payload.tag === `${other}/go`).map(({ headers }) => headers.topic)
    expect(new Set(topics).size).toBe(2)
    expect((await deliveries()).map(({ purpose }: { purpose: string }) => purpose).sort()).toEqual([
      'notices',
      'notices',
      'notices',
      'outcome',
    ])
  })

  it('announces an operation that a failure holds up, and is replaced once that is over or the operation has failed', async () => {
    const phone = await subscribed(p.people.olga)
    const [mended, failed] = [await opened('mended'), await opened('failed')]
    for (const operation_id of [mended, failed]) await holdUp(p, operation_id)
    await notify(p)
    const tagOf = (operation_id: string) => `${operation_id}/operation`
    const of = (operation_id: string) =>
      phone.got.filter(({ payload }) => payload.tag === tagOf(operation_id)).map(({ payload }) => payload)
    expect(of(mended)).toEqual([
      {
        tag: tagOf(mended),
        title: 'A failure holds up an operation.',
        body: 'mended · Risk: low',
        url: `/operations/${mended}`,
        silent: false,
      },
    ])
    await p.query(`update operations.nodes set state = 'running' where operation_id = $1 and node_id = 'behind'`, [
      mended,
    ])
    const end = `update operations.operations set engine_status = 'failed', ended_at = clock_timestamp() where operation_id = $1`
    await p.query(end, [failed])
    await notify(p)
    await notify(p)
    expect(of(mended).slice(1)).toMatchObject([{ title: 'An operation is no longer held up.', silent: true }])
    expect(of(failed).slice(1)).toMatchObject([{ title: 'An operation failed.', silent: false }])
    // That is final: its notification stays.
    await p.query(`update operations.operations set ended_at = ended_at - interval '3 d' where operation_id = $1`, [
      failed,
    ])
    await notify(p)
    expect(of(failed)).toHaveLength(2)
  })

  it('is not replaced while a failure still holds the operation, whatever becomes of a patch', async () => {
    const phone = await subscribed(p.people.olga)
    const operation_id = await opened('patched')
    await holdUp(p, operation_id)
    await notify(p)
    const changes = [{ op: 'add_node', node: { node_id: 'repair', executor: 'noop', with: {} } }]
    const body = { base_revision: 1, reason: 'to see', changes }
    must(await p.as('olga').post(`/v1/operations/${operation_id}/patches`, body), 201)
    await notify(p)
    await p.query(`update operations.patches set status = 'rejected' where operation_id = $1`, [operation_id])
    await notify(p)
    const tag = `${operation_id}/operation`
    const titles = () => phone.got.filter(({ payload }) => payload.tag === tag).map(({ payload }) => payload.title)
    expect(titles()).toEqual(['A failure holds up an operation.'])
    await p.query(`update operations.nodes set state = 'running' where operation_id = $1 and node_id = 'behind'`, [
      operation_id,
    ])
    await notify(p)
    expect(titles().slice(1)).toEqual(['An operation is no longer held up.'])
  })

  it('is replaced once the operation has failed, even if the rules leave failures out', async () => {
    const phone = await subscribed(p.people.olga)
    const { body: rules } = must(await p.as('olga').get(`${NOTIFY}/rules`), 200)
    must(await p.as('olga').put(`${NOTIFY}/rules`, { ...rules, events: ['operation.held'] }), 200)
    const operation_id = await opened('left out')
    await holdUp(p, operation_id)
    await notify(p)
    await p.query(
      `update operations.operations set engine_status = 'failed', ended_at = clock_timestamp() where operation_id = $1`,
      [operation_id],
    )
    await notify(p)
    await notify(p)
    const tag = `${operation_id}/operation`
    expect(phone.got.filter(({ payload }) => payload.tag === tag).map(({ payload }) => payload.title)).toEqual([
      'A failure holds up an operation.',
      'An operation is no longer held up.',
    ])
  })

  it('does not say that a hold is over if the operation is held again, or its failure is told instead', async () => {
    const phone = await subscribed(p.people.olga)
    const [again, failed] = [await opened('held again'), await opened('then failed')]
    const both = [again, failed]
    for (const operation_id of both) await holdUp(p, operation_id)
    await notify(p)
    for (const operation_id of both)
      await p.query(`update operations.nodes set state = 'running' where operation_id = $1 and node_id = 'behind'`, [
        operation_id,
      ])
    await find(p)
    const queued = await p.query(`select 1 from operations.notify_deliveries where purpose = 'outcome'`)
    expect(queued).toHaveLength(2)
    await holdUp(p, again)
    await p.query(
      `update operations.operations set engine_status = 'failed', ended_at = clock_timestamp() where operation_id = $1`,
      [failed],
    )
    await send(p)
    await notify(p)
    await notify(p)
    const titles = (operation_id: string) =>
      phone.got.filter(({ payload }) => payload.tag === `${operation_id}/operation`).map(({ payload }) => payload.title)
    expect(titles(again)).not.toContain('An operation is no longer held up.')
    expect(titles(failed)).toEqual(['A failure holds up an operation.', 'An operation failed.'])
  })

  it('is one for many decisions at once', async () => {
    const phone = await subscribed()
    for (let n = 0; n < 6; n++) await opened(`many ${n}`)
    await notify(p)
    expect(phone.got.map(({ payload }) => payload)).toEqual([
      { tag: 'inbox', title: '6 decisions are waiting for you.', body: '', url: '/inbox?for=me', silent: false },
    ])
  })

  it('gives the outcome without words to a person who may no longer read it', async () => {
    const phone = await subscribed()
    const operation_id = await opened('secret plan')
    await notify(p)
    await approved(operation_id)
    eva.roles = []
    await new Promise((resolve) => setTimeout(resolve, 60))
    await notify(p)
    expect(phone.got[1]?.payload).toMatchObject({ title: 'A decision is no longer waiting for you.', body: '' })
  })

  it('contains no token, and no words if the installation forbids them', async () => {
    const minimal = await startPlatform({ relay: false, env: envOf({ NOTIFY__CONTENT: 'minimal' }) })
    try {
      const device = service.browser()
      must(await minimal.as('eva').put(PUSH, device.body), 200)
      const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
      const { operation_id } = await minimal.startOperation(gated(policy), { more: { title: 'web 2.4.0' } })
      await minimal.openGate(operation_id, 'go')
      const { deps } = minimal.running[0] as (typeof minimal.running)[number]
      await findNotices(deps)
      if (deps.channels) await sendDue({ ...deps, channels: deps.channels })
      expect(device.got[0]?.payload).toMatchObject({ title: 'A decision is waiting for you.', body: '' })
      expect(JSON.stringify(device.got[0]?.payload)).not.toMatch(/web 2\.4\.0|Go on|sha256|token|digest/)
    } finally {
      await minimal.stop()
    }
  })

  it('also reports account events, and a test on request', async () => {
    const phone = await subscribed()
    const [{ destination_id }] = await devices()
    must(await p.as(eva).post(`${NOTIFY}/destinations/${destination_id}/test`, {}), 200)
    const fact = { event: 'device.new', at: '2026-11-24T03:30:00.000Z', ip_address: '192.0.2.7' }
    const row = ['session.auth_events 1', eva.id, JSON.stringify(fact)]
    await p.query('insert into operations.notify_security (key, user_id, fact) values ($1, $2, $3)', row)
    for (const { deps } of p.running) await queueSecurity(deps)
    await send(p)
    expect(phone.got.map(({ payload }) => [payload.tag, payload.url]).sort()).toEqual([
      ['device.new', '/settings/sessions'],
      ['test', '/'],
    ])
    expect(JSON.stringify(phone.got)).not.toContain('192.0.2.7')
  })
})

describe('a subscription', () => {
  it('ends with its session: a revoked one gets no push', async () => {
    const phone = await subscribed()
    await opened()
    await find(p)
    p.endSession(eva.session_id)
    await send(p)
    expect(phone.got).toEqual([])
    expect(await devices()).toEqual([])
    expect((await deliveries())[0]).toMatchObject({ state: 'obsolete' })
  })

  it('ends at once when the revocation arrives', async () => {
    await subscribed()
    const other = { ...eva, session_id: crypto.randomUUID() }
    await subscribed(other)
    const { deps } = p.running[0] as (typeof p.running)[number]
    const notifier = startNotifier({ ...deps, channels: deps.channels && { ...deps.channels, close: async () => {} } })
    try {
      await until(
        async () => {
          deps.nats.publish(
            prefixed(deps.config.SIGNALBOX__NATS__PREFIX, 'auth.session.revoked.v1'),
            JSON.stringify({ session_id: eva.session_id }),
          )
          return (await devices()).length === 1
        },
        { what: 'the browser of the ended session to go' },
      )
      expect(must(await p.as(other).get(PUSH), 200).body.destination).toMatchObject({ kind: 'push', name: 'Phone' })
      expect(must(await p.as(eva).get(PUSH), 200).body.destination).toBeNull()
    } finally {
      await notifier.stop()
    }
  })

  it('belongs to one person: another user of the browser gets no message of the first', async () => {
    const phone = await subscribed()
    await opened()
    await find(p)
    const ada = person(`ada of ${eva.name}`, ['approver'], [eva.team])
    Object.assign(p.people, { [ada.name]: ada })
    const [{ destination_id }] = await devices()
    must(await p.as(eva).post(`${NOTIFY}/destinations/${destination_id}/test`, {}), 200)
    await subscribed(ada, phone)
    expect(await devices()).toEqual([])
    await send(p)
    expect(phone.got).toEqual([])
    await notify(p)
    expect(phone.got).toHaveLength(1)
  })

  it('is one per session and browser, however many subscribe at once', async () => {
    const [one, two] = [service.browser(), service.browser()]
    const answers = await Promise.all(
      [one, two, one, two, one, two].map(({ body }, n) => p.as(eva).put(PUSH, body, { instance: n % 2 })),
    )
    for (const answer of answers) must(answer, 200)
    expect(await devices()).toHaveLength(1)
    must(await p.as(eva).delete(PUSH), 204)
    must(await p.as(eva).delete(PUSH), 204)
    expect(await devices()).toEqual([])
  })

  it('is dropped if its push service says that it is gone, and retried if it is busy', async () => {
    const phone = await subscribed()
    await opened()
    service.state.status = 503
    await notify(p)
    expect((await deliveries())[0]).toMatchObject({ state: 'queued', last_error: 'It answered 503.' })
    service.state.status = 201
    phone.leave()
    await p.query(`update operations.notify_deliveries set next_at = clock_timestamp()`)
    await send(p)
    expect((await deliveries())[0]).toMatchObject({ state: 'dead', last_error: 'It answered 404.' })
    expect(await devices()).toEqual([])
  })

  it('leads to a push service that the installation allows, and never to an internal address', async () => {
    const at = (endpoint: string) => p.as(eva).put(PUSH, { ...service.browser().body, endpoint })
    for (const foreign of [
      'https://push.evil.example/1',
      `http://hooks.internal:${service.port}/push/1`,
      'https://example.org.evil.example/1',
      'http://push.example.org/1',
      'https://10.0.0.1/push/1',
    ])
      expect(problem(await at(foreign)), foreign).toBe('422 validation_error/address_refused')
    const denied = await p.query(
      `select 1 from operations.audit where outcome = 'denied' and reason = 'address_refused'`,
    )
    expect(denied).toHaveLength(5)
    for (const wrong of ['file:///etc/passwd', 'https://u:p@push.example.org/1', 'no address'])
      expect(problem(await at(wrong)), wrong).toBe('422 validation_error/schema_violation')
    // A name that the installation allows, but that resolves to an internal address.
    must(await at(`http://localhost:${service.port}/push/1`), 200)
    const [{ destination_id }] = await devices()
    must(await p.as(eva).post(`${NOTIFY}/destinations/${destination_id}/test`, {}), 200)
    await send(p)
    expect((await deliveries())[0]).toMatchObject({ state: 'dead', last_error: 'Its address may not be called.' })
  })

  it('needs keys of a subscription, a person and an installation that pushes; its data is sealed', async () => {
    const { body } = service.browser()
    const keys = { ...body.keys, p256dh: `B${'A'.repeat(86)}` }
    expect((await p.as(eva).put(PUSH, { ...body, keys })).body.violations).toMatchObject([{ pointer: '/keys' }])
    expect(must(await p.as(eva).put(PUSH, { ...body, dry_run: true }), 200).body).toMatchObject({ dry_run: true })
    expect(await devices()).toEqual([])
    const bot = person('machine:bot', ['operator'])
    bot.machine = { permissions: ['operation:read'], behind: [eva.id] }
    Object.assign(p.people, { bot })
    expect(problem(await p.as(bot).put(PUSH, body))).toBe('403 policy_denied/person_required')
    expect(
      problem(await p.as(eva).post(`${NOTIFY}/destinations`, { kind: 'push', name: 'x', address: 'https://x.org' })),
    ).toMatch('schema_violation')
    must(await p.as(eva).put(PUSH, body), 200)
    const kept = await p.query<{ text: string }>(
      `select (select string_agg(d::text, '') from operations.notify_destinations d) || (select string_agg(a::text, '') from operations.audit a) || (select string_agg(convert_from(body, 'UTF8'), '') from operations.idempotency where body is not null) as text`,
    )
    expect(kept[0]?.text).toContain('notify.device.subscribe')
    expect(kept[0]?.text).not.toContain(new URL(body.endpoint).pathname)
    expect(kept[0]?.text).not.toContain(body.keys.auth)
    const off = await startPlatform({ relay: false, env: { NOTIFY__ENABLED: 'true' } })
    try {
      expect(must(await off.as('eva').get(PUSH), 200).body).toEqual({ public_key: null, destination: null })
      expect(problem(await off.as('eva').put(PUSH, body))).toBe('422 validation_error/notifications_off')
    } finally {
      await off.stop()
    }
  })
})
