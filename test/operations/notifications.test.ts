import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createMail } from '../../apps/operations/notifications/channels/mail.ts'
import { findNotices } from '../../apps/operations/notifications/find.ts'
import { startNotifier } from '../../apps/operations/notifications/loop.ts'
import { quietUntil } from '../../apps/operations/notifications/messages/quiet.ts'
import { NOTIFY_EVENTS } from '../../apps/shared/contracts/notifications/notifications.ts'
import type { NotifyRules, Quiet } from '../../apps/shared/contracts/notifications/rules.ts'
import { leaseDeliveries } from '../../db/operations/notifications/deliveries.ts'
import { until } from '../support/until.ts'
import { faultsOfWebhook } from './support/described.ts'
import { find, holdUp, newcomer, notify, send } from './support/notified.ts'
import { gated, must, type Person, type Platform, person, problem, startPlatform } from './support/platform.ts'
import { startHooks, startMailServer } from './support/receivers.ts'

/** People are notified of waiting decisions, through a real mail server and a real receiver of webhooks. */
const CONSOLE = 'https://console.example.org'
const NOTIFY = '/v1/notifications'
let p: Platform
let mail: Awaited<ReturnType<typeof startMailServer>>
let hooks: Awaited<ReturnType<typeof startHooks>>
beforeAll(async () => {
  mail = await startMailServer()
  hooks = await startHooks()
  p = await startPlatform({
    relay: false,
    instances: 2,
    env: {
      NOTIFY__ENABLED: 'true',
      GATEWAY__HTTP__PUBLIC_ORIGIN: CONSOLE,
      NOTIFY__SMTP__HOST: '127.0.0.1',
      NOTIFY__SMTP__PORT: String(mail.port),
      NOTIFY__SMTP__TLS: 'none',
      NOTIFY__SMTP__FROM: 'Signalbox <signalbox@example.org>',
      NOTIFY__GATHER_S: '0',
      NOTIFY__EGRESS__ALLOW: JSON.stringify([
        { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: [String(hooks.port)] },
        { scheme: 'http', host: 'localhost', networks: ['10.0.0.0/8'], ports: ['1-65535'] },
      ]),
    },
  })
})
afterAll(async () => {
  await p.stop()
  await mail.close()
  hooks.close()
})

let eva: Awaited<ReturnType<typeof newcomer>>
beforeEach(async () => {
  eva = await newcomer(p)
  mail.mails.length = 0
  hooks.calls.length = 0
  Object.assign(mail.state, { refuse: undefined, seen: 0 })
  Object.assign(hooks.state, { status: 200, location: undefined, retry_after: undefined })
})

const mine = (group: string) => ({ approvals: { groups: [{ group, min: 1 }] } })
const opened = async (policy: Record<string, unknown> = mine(eva.team), title = `web 2.4.0 by ${eva.name}`) => {
  const { operation_id } = await p.startOperation(gated(policy), { more: { title } })
  await p.openGate(operation_id, 'go')
  return operation_id
}
/** The other destinations are not told: notifications.security looks at that. */
const add = async (kind: string, address: string, who: Person = eva) => {
  const made = await p.as(who).post(`${NOTIFY}/destinations`, { kind, name: kind, address })
  await p.query(`delete from operations.notify_deliveries where purpose = 'security'`)
  return made
}
const hook = async (kind = 'webhook', path = '/in') =>
  must(await add(kind, `${hooks.url}${path}?key=s3cret`), 201).body.destination_id as string
const state = async (more: Partial<NotifyRules>, who: Person = eva) => {
  const { body } = must(await p.as(who).get(`${NOTIFY}/rules`), 200)
  return must(await p.as(who).put(`${NOTIFY}/rules`, { ...body, digest_s: 0, ...more }), 200).body
}
const deliveries = async () => must(await p.as(eva).get(`${NOTIFY}/deliveries`), 200).body.items
const due = () => p.query(`update operations.notify_deliveries set next_at = clock_timestamp() where state = 'queued'`)

it('pauses while nobody can be looked for, and says so once', async () => {
  await opened()
  await p.query(`insert into operations.notify_rules (owner, rules)
    select 'user:x' || n, '{"events":[],"min_risk":"low","steps":[],"quiet":null,"digest_s":0}' from generate_series(1, 120) n`)
  await p.query(`insert into operations.notify_destinations (destination_id, owner, kind, name, address, shown, status)
    select gen_random_uuid(), owner, 'webhook', 'x', '', '', 'active' from operations.notify_rules`)
  const [one] = p.running
  if (!one) throw new Error('no process runs')
  const { deps } = one
  const get = async () => {
    throw new Error('identity is away')
  }
  const warn = vi.spyOn(deps.telemetry.log, 'warn')
  const principals = { ...deps.trust.principals, get }
  expect(await findNotices({ ...deps, trust: { ...deps.trust, principals } })).toBe(false)
  expect(warn.mock.calls).toMatchObject([[{ owners: 100 }, 'some could not be looked for']])
  warn.mockRestore()
})

describe('a mail address', () => {
  it('gets mail once its owner has sent back the code', async () => {
    const { body } = must(await add('email', 'eva@example.org'), 201)
    const path = `${NOTIFY}/destinations/${body.destination_id}`
    expect(body).toMatchObject({ kind: 'email', address: 'eva@example.org', status: 'unconfirmed' })
    await opened()
    await notify(p)
    expect(mail.mails).toHaveLength(1)
    const [code = ''] = /^\d{8}$/m.exec(mail.mails[0]?.body ?? '') ?? []
    expect(problem(await p.as(eva).post(`${path}/test`, {}))).toBe(
      '409 invalid_state_transition/destination_not_active',
    )
    expect(problem(await p.as('ivo').post(`${path}/confirm`, { code }))).toBe('404 not_found/destination')
    must(await p.as(eva).post(`${path}/confirm`, { code }), 200)
    await notify(p)
    expect(mail.mails).toHaveLength(2)
    expect(mail.mails[1]?.to).toEqual(['eva@example.org'])
    expect(mail.mails[1]?.raw).toMatch(/^Subject: Signalbox: A decision is waiting for you\.\r$/m)
    expect(mail.mails[1]?.raw).toMatch(/^Auto-Submitted: auto-generated\r$/m)
  })

  it('that is added again is the same destination; before its confirmation it gets a new code, in place of the old one', async () => {
    const first = must(await add('email', 'eva@example.org'), 201).body
    const again = must(await add('email', 'eva@example.org'), 201).body
    expect(again).toMatchObject({ address: 'eva@example.org', status: 'unconfirmed' })
    const list = async () => must(await p.as(eva).get(`${NOTIFY}/destinations`), 200).body.items
    expect(await list()).toEqual([again])
    await notify(p)
    const codes = mail.mails.flatMap(({ body }) => /^\d{8}$/m.exec(body) ?? [])
    const confirm = (id: string, code = '') => p.as(eva).post(`${NOTIFY}/destinations/${id}/confirm`, { code })
    expect(problem(await confirm(first.destination_id, codes[0]))).toBe('404 not_found/destination')
    const { body: active } = must(await confirm(again.destination_id, codes.at(-1)), 200)
    expect(must(await add('email', 'eva@example.org'), 201).body).toEqual(active)
    const hooked = await hook()
    expect(await hook()).toBe(hooked)
    expect(await hook('slack')).not.toBe(hooked)
    expect(await list()).toHaveLength(3)
    expect(problem(await p.as('ivo').get(`${NOTIFY}/destinations/${hooked}/secret`))).toBe('404 not_found/destination')
  })

  it('is confirmed once under a key, also if it is gone when the request is repeated', async () => {
    const { body } = must(await add('email', 'eva@example.org'), 201)
    const path = `${NOTIFY}/destinations/${body.destination_id}`
    await notify(p)
    const [code = ''] = /^\d{8}$/m.exec(mail.mails[0]?.body ?? '') ?? []
    const key = randomUUID()
    const first = must(await p.as(eva).post(`${path}/confirm`, { code }, { key }), 200)
    must(await p.as(eva).delete(path), 200, 204)
    const again = must(await p.as(eva).post(`${path}/confirm`, { code }, { key }), 200)
    expect(again.body).toEqual(first.body)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(problem(await p.as(eva).post(`${path}/confirm`, { code }))).toBe('404 not_found/destination')
  })

  it('cannot be confirmed by guessing', async () => {
    const { body } = must(await add('email', 'eva@example.org'), 201)
    const confirm = (code: string) => p.as(eva).post(`${NOTIFY}/destinations/${body.destination_id}/confirm`, { code })
    await notify(p)
    const [code = ''] = /^\d{8}$/m.exec(mail.mails[0]?.body ?? '') ?? []
    const wrong = code === '00000000' ? '00000001' : '00000000'
    for (let n = 0; n < 5; n++) expect(problem(await confirm(wrong))).toBe('422 validation_error/code_wrong')
    expect(problem(await confirm(code))).toBe('422 validation_error/code_wrong')
    expect(problem(await add('email', 'eva@example.org\r\nBcc: all@example.org'))).toMatch('schema_violation')
  })
})

describe('a decision', () => {
  it('is announced once for each round, however many processes look and send', async () => {
    await hook()
    await state({})
    const operation_id = await opened()
    await Promise.all([notify(p), notify(p), notify(p)])
    await notify(p)
    expect(hooks.calls).toHaveLength(1)
    expect(JSON.parse(hooks.calls[0]?.body ?? '').data.items).toMatchObject([
      { event: 'gate.waiting', operation_id, gate_id: 'go', round: 1, escalation: 0 },
    ])
    await p.query(`update operations.gates set round = 2 where operation_id = $1`, [operation_id])
    await notify(p)
    await notify(p)
    expect(hooks.calls).toHaveLength(2)
    expect(hooks.calls[1]?.body).toContain('gate.reopened')
  })

  it('shares one message with others that wait', async () => {
    await hook()
    await state({ digest_s: 300 })
    for (let n = 0; n < 3; n++) await opened()
    await find(p)
    await opened()
    await notify(p)
    expect(hooks.calls.map(({ body }) => JSON.parse(body).data.items.length)).toEqual([4])
    // Later ones are also sent together, once five minutes are over.
    await opened()
    await find(p)
    await opened()
    await notify(p)
    expect(hooks.calls).toHaveLength(1)
    const [queued] = await deliveries()
    expect(queued).toMatchObject({ state: 'queued', attempts: 0 })
    expect(Date.parse(queued.next_at) - Date.now()).toBeGreaterThan(250_000)
    await due()
    await notify(p)
    expect(hooks.calls.map(({ body }) => JSON.parse(body).data.items.length)).toEqual([4, 2])
  })

  it('is not announced to people who may not make it or lost the right meanwhile', async () => {
    await hook()
    must(await add('webhook', `${hooks.url}/ivo`, p.people.ivo), 201)
    must(await add('webhook', `${hooks.url}/vic`, p.people.vic), 201)
    await state({})
    await opened()
    await find(p)
    eva.roles = ['viewer']
    await send(p)
    expect(hooks.calls).toEqual([])
    expect(await deliveries()).toMatchObject([{ state: 'obsolete', notices: [] }])
    eva.roles = ['approver']
    eva.disabled = true
    await notify(p)
    expect(hooks.calls).toEqual([])
    eva.disabled = false
    await new Promise((resolve) => setTimeout(resolve, 60))
    await notify(p)
    expect(hooks.calls.map(({ path }) => path)).toEqual(['POST /in?key=s3cret'])
  })

  it('is not announced once it is made', async () => {
    await hook()
    await state({})
    const operation_id = await opened()
    await find(p)
    await p.query(`update operations.gates set status = 'approved' where operation_id = $1`, [operation_id])
    await send(p)
    expect(hooks.calls).toEqual([])
  })

  it('reveals no secret, and its link is a page without effect', async () => {
    const id = await hook()
    const title = 'web <!channel> [here](http://evil.example) & more'
    const operation_id = await opened(undefined, title)
    await hook('slack', '/slack')
    await hook('teams', '/teams')
    await state({})
    await notify(p)
    const link = `${CONSOLE}/operations/${operation_id}/gates/go?round=1`
    const by = Object.fromEntries(hooks.calls.map(({ path, body }) => [path.split(/[ ?]/)[1], body]))
    for (const body of Object.values(by)) {
      expect(body).toContain(link)
      expect(body).not.toMatch(/sha256:|token|digest|s3cret|whsec|password/i)
    }
    expect(Object.keys(by).sort()).toEqual(['/in', '/slack', '/teams'])
    const slack = JSON.parse(by['/slack'] ?? '')
    expect(slack).toMatchObject({ text: 'A decision is waiting for you.' })
    const types = slack.blocks.map(({ text }: { text?: { type: string } }) => text?.type)
    expect(types.filter(Boolean)).toEqual(['plain_text', 'plain_text'])
    expect(JSON.parse(by['/teams'] ?? '').attachments[0]).toMatchObject({
      contentType: 'application/vnd.microsoft.card.adaptive',
      content: { type: 'AdaptiveCard', actions: [{ type: 'Action.OpenUrl', url: link }] },
    })
    // Opening it decides no gate: no GET does.
    const path = `/v1/operations/${operation_id}/gates/go`
    expect(must(await p.as(eva).get(path), 200).body).toMatchObject({ status: 'waiting', round: 1 })
    for (const act of ['approve', 'reject']) expect((await p.as(eva).get(`${path}/${act}`)).status).toBe(404)
    // Stored data is sealed; replies, audit and messages hold no URL.
    const kept = await p.query<{ text: string }>(
      `select (select string_agg(d::text, '') from operations.notify_destinations d) || (select string_agg(a::text, '') from operations.audit a) || (select string_agg(convert_from(body, 'UTF8'), '') from operations.idempotency where body is not null) as text`,
    )
    expect(kept[0]?.text).toContain(id)
    expect(kept[0]?.text).not.toMatch(/s3cret|whsec/)
  })

  it('is signed as its receiver expects', async () => {
    const id = await hook()
    await state({})
    await opened()
    await notify(p)
    const { secret } = must(await p.as(eva).get(`${NOTIFY}/destinations/${id}/secret`), 200).body
    expect(problem(await p.as('ivo').get(`${NOTIFY}/destinations/${id}/secret`))).toBe('404 not_found/destination')
    const { headers, body } = hooks.calls[0] as (typeof hooks.calls)[number]
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
    expect(Math.abs(Number(headers['webhook-timestamp']) - Date.now() / 1000)).toBeLessThan(60)
  })

  it('is signed with the next secret and the previous one for as long as they overlap', async () => {
    const id = await hook()
    await state({})
    const path = `${NOTIFY}/destinations/${id}/secret`
    const current = async () => must(await p.as(eva).get(path), 200).body.secret as string
    const first = await current()
    const made = must(await p.as(eva).post(path, { overlap_s: 600 }), 200).body
    expect(Date.parse(made.previous_until) - Date.now()).toBeGreaterThan(500_000)
    const second = await current()
    expect(second).not.toBe(first)
    expect(problem(await p.as('ivo').post(path, {}))).toBe('404 not_found/destination')
    const signedBy = async () => {
      hooks.calls.length = 0
      must(await p.as(eva).post(`${NOTIFY}/destinations/${id}/test`, {}), 200)
      await notify(p)
      const { headers, body } = hooks.calls[0] as (typeof hooks.calls)[number]
      const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
      const by = (secret: string) =>
        `v1,${createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
          .update(signed)
          .digest('base64')}`
      return { signatures: String(headers['webhook-signature']).split(' '), by }
    }
    const both = await signedBy()
    expect(both.signatures).toEqual([both.by(second), both.by(first)])
    await p.query(`update operations.notify_destinations set previous_until = clock_timestamp()`)
    const one = await signedBy()
    expect(one.signatures).toEqual([one.by(second)])
    expect(must(await p.as(eva).post(path, { overlap_s: 0 }), 200).body.previous_until).toBeNull()
    const third = await signedBy()
    expect(third.signatures).toEqual([third.by(await current())])
  })

  it('is announced to the next destination if it still waits, and again if its gate is escalated', async () => {
    const now = await hook('webhook', '/now')
    const later = await hook('webhook', '/later')
    await state({
      steps: [
        { destination_id: now, after_s: 0 },
        { destination_id: later, after_s: 600 },
      ],
    })
    const operation_id = await opened()
    await notify(p)
    const paths = () => hooks.calls.map(({ path }) => path.split(/[ ?]/)[1])
    expect(paths()).toEqual(['/now'])
    await p.query(
      `update operations.gates set waiting_since = waiting_since - interval '11 min' where operation_id = $1`,
      [operation_id],
    )
    await notify(p)
    expect(paths()).toEqual(['/now', '/later'])
    await p.query('update operations.gates set escalation_level = 1 where operation_id = $1', [operation_id])
    await notify(p)
    expect(paths().slice(2).sort()).toEqual(['/later', '/now'])
    expect(hooks.calls[3]?.body).toContain('gate.escalated')
    await state({ events: ['patch.waiting'], steps: [] })
    await p.query('update operations.gates set escalation_level = 2 where operation_id = $1', [operation_id])
    await notify(p)
    expect(hooks.calls).toHaveLength(4)
  })

  it('is announced however many others wait that are less risky or were announced', async () => {
    const id = await hook()
    await state({ min_risk: 'high' })
    const crowd = await opened()
    await p.query(
      `insert into operations.gates select c.* from operations.gates g, generate_series(1, 501) n,
         jsonb_populate_record(g, jsonb_build_object('gate_id', 'old-' || n, 'waiting_since', now() - interval '1 d')) c
       where g.operation_id = $1 and g.gate_id = 'go'`,
      [crowd],
    )
    const risky = await opened()
    await p.query(`update operations.operations set risk_level = 'high' where operation_id = $1`, [risky])
    await notify(p)
    expect(hooks.calls.map(({ body }) => JSON.parse(body).data.items)).toMatchObject([[{ operation_id: risky }]])
    await p.query(
      `insert into operations.notify_notices (destination_id, operation_id, object, round, escalation, delivery_id, event, urgent)
       select $1, operation_id, 'gate:' || gate_id, round, escalation_level, gen_random_uuid(), 'gate.waiting', false
       from operations.gates where operation_id = $2`,
      [id, crowd],
    )
    await state({ min_risk: 'low' })
    const usual = await opened()
    await notify(p)
    expect(hooks.calls.slice(1).map(({ body }) => JSON.parse(body).data.items)).toMatchObject([
      [{ operation_id: usual }],
    ])
    await p.query(`delete from operations.gates where gate_id like 'old-%'`)
  })

  it('is announced everywhere if the rules name only destinations that are gone', async () => {
    await hook()
    const [later, gone] = [await hook('webhook', '/late'), await hook('webhook', '/gone')]
    const steps = [
      { destination_id: gone, after_s: 0 },
      { destination_id: later, after_s: 3600 },
    ]
    await state({ steps })
    must(await p.as(eva).delete(`${NOTIFY}/destinations/${gone}`), 204)
    await p.query(`delete from operations.notify_deliveries where purpose = 'security'`)
    await opened()
    await notify(p)
    expect(hooks.calls).toEqual([])
    await p.query(`update operations.notify_destinations set status = 'disabled' where destination_id = $1`, [later])
    await notify(p)
    expect(hooks.calls.map(({ path }) => path)).toEqual([expect.stringContaining('/in')])
  })

  it('about a patch is announced too', async () => {
    await hook()
    await state({})
    const { operation_id } = await p.startOperation(gated(mine(eva.team)))
    const changes = [{ op: 'update_node', node_id: 'behind', set: { name: 'b again' } }]
    const path = `/v1/operations/${operation_id}/patches`
    const { body } = must(await p.as('olga').post(path, { base_revision: 1, reason: 'to see', changes }), 201)
    await notify(p)
    expect(JSON.parse(hooks.calls[0]?.body ?? '').data.items).toMatchObject([
      {
        event: 'patch.waiting',
        patch_id: body.patch_id,
        link: `${CONSOLE}/operations/${operation_id}/patches/${body.patch_id}`,
      },
    ])
  })
})

describe('an operation that stops', () => {
  // Those of other tests have stopped too.
  beforeEach(() =>
    p.query(
      `update operations.operations set failed = 0, engine_status = 'cancelled' where failed > 0 or engine_status = 'failed'`,
    ),
  )
  const started = async (by: 'olga' | 'both' = 'olga') => (await p.startOperation(gated(), { by })).operation_id
  const hold = (operation_id: string, after_s = 0) => holdUp(p, operation_id, after_s)
  const retried = (operation_id: string) =>
    p.query(`update operations.nodes set state = 'running' where operation_id = $1 and node_id = 'behind'`, [
      operation_id,
    ])
  const fail = (operation_id: string) =>
    p.query(
      `update operations.operations set engine_status = 'failed', ended_at = clock_timestamp() where operation_id = $1`,
      [operation_id],
    )
  const messages = () => hooks.calls.map(({ path, body }) => ({ to: path.split(/[ ?]/)[1], ...JSON.parse(body) }))
  const olgas = async (path = '/olga') =>
    must(await add('webhook', `${hooks.url}${path}`, p.people.olga), 201).body.destination_id as string

  it('is announced to those who take part in it: once for each hold, and once when it has failed', async () => {
    await hook()
    await olgas()
    must(await add('webhook', `${hooks.url}/vic`, p.people.vic), 201)
    await state({}, p.people.olga)
    const operation_id = await started()
    await hold(operation_id, -60)
    await notify(p)
    await notify(p)
    const item = { operation_id, gate_id: null, patch_id: null, link: `${CONSOLE}/operations/${operation_id}` }
    expect(messages()).toMatchObject([
      {
        ...{ to: '/olga', type: 'operations.stopped' },
        data: { subject: 'A failure holds up an operation.', items: [{ ...item, event: 'operation.held' }] },
      },
    ])
    await retried(operation_id)
    await notify(p)
    expect(hooks.calls).toHaveLength(1)
    await hold(operation_id)
    await notify(p)
    await fail(operation_id)
    await notify(p)
    await notify(p)
    expect(messages().slice(1)).toMatchObject([
      { to: '/olga', data: { items: [{ ...item, event: 'operation.held' }] } },
      { to: '/olga', data: { subject: 'An operation failed.', items: [{ ...item, event: 'operation.failed' }] } },
    ])
  })

  it('is announced once for a hold, however many nodes hold it and whichever of them is retried', async () => {
    await olgas()
    await state({}, p.people.olga)
    const operation_id = await started()
    await hold(operation_id, -60)
    await p.query(
      `update operations.nodes set state = 'failed', ended_at = clock_timestamp() - interval '30 s'
       where operation_id = $1 and node_id = 'before'`,
      [operation_id],
    )
    await notify(p)
    await retried(operation_id)
    await notify(p)
    await hold(operation_id)
    await notify(p)
    expect(messages()).toMatchObject([{ to: '/olga', data: { items: [{ operation_id, event: 'operation.held' }] } }])
  })

  it('is not announced if the rules leave it out, if it has moved since, or if it failed before', async () => {
    const early = await started()
    await fail(early)
    await olgas()
    await state({ events: ['gate.waiting', 'operation.held'] }, p.people.olga)
    const [held, failed] = [await started(), await started()]
    await hold(held)
    await find(p)
    await retried(held)
    await fail(failed)
    await send(p)
    await notify(p)
    await state({ events: [...NOTIFY_EVENTS] }, p.people.olga)
    await p.query(`update operations.operations set retry_of = $1 where operation_id = $2`, [failed, await started()])
    await notify(p)
    expect(hooks.calls).toEqual([])
  })

  it('is announced to the next destination unless another was started in its place', async () => {
    const [now, later] = [await olgas('/now'), await olgas('/later')]
    const steps = [
      { destination_id: now, after_s: 0 },
      { destination_id: later, after_s: 600 },
    ]
    await state({ steps }, p.people.olga)
    const [failed, again] = [await started(), await started()]
    await fail(failed)
    await p.query(`update operations.operations set retry_of = $1 where operation_id = $2`, [failed, again])
    await p.query(
      `update operations.operations set ended_at = clock_timestamp() - interval '11 min' where operation_id = $1`,
      [failed],
    )
    await p.query(`update operations.notify_destinations set created_at = created_at - interval '1 h'`)
    await notify(p)
    expect(hooks.calls).toEqual([])
    await p.query('update operations.operations set retry_of = null where operation_id = $1', [again])
    await notify(p)
    expect(
      messages()
        .map(({ to }) => to)
        .sort(),
    ).toEqual(['/later', '/now'])
  })

  it('shares one message with decisions that wait', async () => {
    must(await add('webhook', `${hooks.url}/both`, p.people.both), 201)
    for (const operation_id of [await started('both'), await started('both')]) await hold(operation_id)
    const waits = await started()
    await p.openGate(waits, 'go')
    await notify(p)
    const [message, ...others] = messages()
    expect(others).toEqual([])
    expect(message).toMatchObject({
      type: 'decisions.waiting',
      data: { subject: 'A decision is waiting for you. 2 operations failed or are held up by a failure.' },
    })
    expect(message?.data.items).toHaveLength(3)
  })

  it('reaches a webhook as the document describes it, as decisions and tests do', async () => {
    const destination_id = await olgas()
    await state({}, p.people.olga)
    await hold(await started())
    await notify(p)
    must(await p.as('olga').post(`${NOTIFY}/destinations/${destination_id}/test`, {}), 200)
    await send(p)
    await hook()
    await state({})
    await opened()
    await notify(p)
    expect(messages().map(({ type }) => type)).toEqual(['operations.stopped', 'test', 'decisions.waiting'])
    expect(hooks.calls.flatMap(faultsOfWebhook)).toEqual([])
  })

  it('is announced to the group whose team owns a target', async () => {
    const admin = person('admin', ['admin'])
    Object.assign(p.people, { admin })
    const body = { kind: 'webhook', name: 'team', address: `${hooks.url}/team` }
    must(await p.as(admin).post(`${NOTIFY}/destinations?group=${eva.team}`, body), 201)
    const [owned, other] = [await started(), await started()]
    const [team_id, host_id] = [`the-${eva.team}`, `host-of-${eva.team}`]
    await p.query(
      `insert into operations.catalog_resources (resource_id, type_key, type_version, name, version, lifecycle_status, labels, desired_state, observed_state)
       values ($1, 'org.team', 1, $2, 1, 'active', '{}', '{}', '{}')`,
      [team_id, eva.team],
    )
    await p.query(
      `insert into operations.catalog_relationships (relationship_id, rev, type_key, from_id, to_id) values ($3, 1, 'owned_by', $1, $2)`,
      [host_id, team_id, `rel_${eva.team}`],
    )
    await p.query('update operations.operations set resource_ids = $2 where operation_id = $1', [owned, [host_id]])
    for (const operation_id of [owned, other]) await hold(operation_id)
    await notify(p)
    expect(messages()).toMatchObject([{ to: '/team', data: { items: [{ operation_id: owned }] } }])
  })
})

describe('quiet hours', () => {
  it('span midnight and daylight saving', () => {
    const quiet = { timezone: 'Europe/Berlin', from: '22:00', to: '07:00' }
    const until = (text: string) => {
      const end = quietUntil(quiet, Date.parse(text))
      return end && new Date(end).toISOString()
    }
    expect(until('2026-10-24T19:59:00Z')).toBeUndefined()
    expect(until('2026-10-24T20:00:00Z')).toBe('2026-10-25T06:00:00.000Z')
    expect(until('2026-10-25T05:59:00Z')).toBe('2026-10-25T06:00:00.000Z')
    expect(until('2026-10-25T06:00:00Z')).toBeUndefined()
    expect(quietUntil(null, 0)).toBeUndefined()
    const night = { ...quiet, to: '02:30' }
    for (let now = Date.parse('2026-10-24T19:00:00Z'); now < Date.parse('2026-10-25T04:00:00Z'); now += 60_000)
      expect(quietUntil(night, now) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(now)
    // In this night they fall into the hour that does not exist: they must not last until the next one.
    for (const [from, to] of [
      ['02:00', '03:00'],
      ['02:15', '02:45'],
    ] as const)
      expect(quietUntil({ ...quiet, from, to }, Date.parse('2026-03-29T10:00:00Z'))).toBeUndefined()
  })

  it('begin on the chosen days only, and last into the next', () => {
    const night = { timezone: 'Europe/Berlin', from: '22:00', to: '07:00', days: ['fri', 'sun'] } satisfies Quiet
    const ends = (quiet: Quiet, text: string) => {
      const end = quietUntil(quiet, Date.parse(text))
      return end && new Date(end).toISOString()
    }
    // 6 November 2026 is a Friday.
    expect(ends(night, '2026-11-06T20:59:00Z')).toBeUndefined()
    expect(ends(night, '2026-11-06T21:00:00Z')).toBe('2026-11-07T06:00:00.000Z')
    expect(ends(night, '2026-11-07T05:59:00Z')).toBe('2026-11-07T06:00:00.000Z')
    expect(ends(night, '2026-11-07T06:00:00Z')).toBeUndefined()
    expect(ends(night, '2026-11-07T21:30:00Z')).toBeUndefined()
    expect(ends(night, '2026-11-08T23:00:00Z')).toBe('2026-11-09T06:00:00.000Z')
    expect(ends(night, '2026-11-09T21:30:00Z')).toBeUndefined()
    const [short, long] = [
      { from: '06:30', to: '07:00' },
      { from: '08:00', to: '07:30' },
    ]
    expect(ends({ ...night, ...short }, '2026-11-06T07:00:00Z')).toBeUndefined()
    expect(ends({ ...night, ...short }, '2026-11-06T05:45:00Z')).toBe('2026-11-06T06:00:00.000Z')
    expect(ends({ ...night, ...long }, '2026-11-07T06:15:00Z')).toBe('2026-11-07T06:30:00.000Z')
    expect(ends({ ...night, ...long }, '2026-11-07T06:45:00Z')).toBeUndefined()
    // A day of 25 hours.
    expect(ends({ ...night, from: '03:30', to: '03:00', days: ['sat'] }, '2026-10-25T01:30:00Z')).toBe(
      '2026-10-25T02:00:00.000Z',
    )
  })

  it('hold messages back, except for high risk', async () => {
    await hook()
    const clock = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16)
    const quiet = { timezone: 'UTC', from: clock(-1), to: clock(0.9) }
    await state({})
    const early = await opened()
    await find(p)
    await state({ quiet, digest_s: 3600 })
    await send(p)
    expect(Date.parse((await deliveries())[0].next_at) - Date.now()).toBeGreaterThan(3_000_000)
    await opened()
    await notify(p)
    expect(hooks.calls).toEqual([])
    const urgent = await opened()
    await p.query(`update operations.operations set risk_level = 'high' where operation_id = $1`, [urgent])
    // The message that was put off until the morning does not hold it back.
    await notify(p)
    // A message that is sent anyway includes the items that were to be sent with it.
    const told = hooks.calls.flatMap(({ body }) => JSON.parse(body).data.items)
    expect(told.map((item: { operation_id: string }) => item.operation_id).sort()).toEqual([early, urgent].sort())
    // One that was queued before the quiet hours and ends within them is not late.
    await state({ quiet: null })
    const short = await opened()
    await find(p)
    await state({ quiet })
    await p.query(`update operations.gates set deadline_at = now() + interval '5 min' where operation_id = $1`, [short])
    hooks.calls.length = 0
    await due()
    await send(p)
    expect(hooks.calls.map(({ body }) => body).join()).toContain(short)
    await state({ quiet: null })
    await due()
    await notify(p)
    expect(hooks.calls.flatMap(({ body }) => JSON.parse(body).data.items)).toHaveLength(2)
    for (const timezone of ['Mars/Base', '+02:00'])
      expect(
        problem(await p.as(eva).put(`${NOTIFY}/rules`, { ...(await state({})), quiet: { ...quiet, timezone } })),
      ).toMatch('schema_violation')
  })
})

describe('a message that does not arrive', () => {
  it('is retried under the same id, later each time, and finally given up', async () => {
    await hook()
    await state({})
    await opened()
    hooks.state.status = 503
    await notify(p)
    const [first] = await deliveries()
    expect(first).toMatchObject({ state: 'queued', attempts: 1, last_error: 'It answered 503.' })
    await notify(p)
    expect(hooks.calls).toHaveLength(1)
    await due()
    await send(p)
    expect(hooks.calls).toHaveLength(2)
    expect(new Set(hooks.calls.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    const [second] = await deliveries()
    expect(Date.parse(second.next_at) - Date.now()).toBeGreaterThan(15_000)
    const aDayLater = `update operations.notify_deliveries set tried_since = tried_since - interval '25 h'`
    await p.query(aDayLater)
    await due()
    await send(p)
    await due()
    await send(p)
    expect(hooks.calls).toHaveLength(3)
    expect(must(await p.as(eva).get(`${NOTIFY}/deliveries?state=dead`), 200).body.items).toMatchObject([
      { state: 'dead', attempts: 3, last_error: 'It answered 503.', notices: [{ gate_id: 'go', round: 1 }] },
    ])
  })

  it('is retried as long if it waited for its digest or for quiet hours before', async () => {
    await hook()
    const clock = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16)
    await state({})
    await opened()
    await find(p)
    await state({ quiet: { timezone: 'UTC', from: clock(-1), to: clock(0.9) } })
    await send(p)
    // Put off, it was not tried.
    await p.query(
      `update operations.notify_deliveries set created_at = created_at - interval '25 h', tried_since = tried_since - interval '25 h'`,
    )
    await state({ quiet: null })
    hooks.state.status = 503
    for (const attempts of [1, 2]) {
      await due()
      await send(p)
      expect((await deliveries())[0]).toMatchObject({ state: 'queued', attempts })
    }
  })

  it('is given up at once if its address or secret was sealed with a key that is gone', async () => {
    const id = await hook()
    await state({})
    for (const part of ['address', 'secret']) {
      const [kept] = await p.query(`select ${part} as part from operations.notify_destinations`)
      await p.query(`update operations.notify_destinations set ${part} = '\\x00'`)
      await opened()
      await notify(p)
      expect((await deliveries())[0]).toMatchObject({ state: 'dead', attempts: 1, last_error: 'Its key is gone.' })
      const secret = await p.as(eva).get(`${NOTIFY}/destinations/${id}/secret`)
      if (part === 'secret') expect(problem(secret)).toBe('404 not_found/destination')
      await p.query(`update operations.notify_destinations set ${part} = $1`, [kept?.part])
    }
    expect(hooks.calls).toEqual([])
    const [dead] = await deliveries()
    must(await p.as(eva).post(`${NOTIFY}/deliveries/${dead.delivery_id}/redeliver`, {}), 200)
    await send(p)
    expect(hooks.calls).toHaveLength(1)
  })

  it('is retried when its receiver asks, even by a date', async () => {
    await hook()
    await state({})
    await opened()
    Object.assign(hooks.state, { status: 429, retry_after: new Date(Date.now() + 600_000).toUTCString() })
    await notify(p)
    const [one] = await deliveries()
    expect(one).toMatchObject({ state: 'queued', attempts: 1 })
    expect(Date.parse(one.next_at) - Date.now()).toBeGreaterThan(590_000)
  })

  it('is not held up by a receiver that hangs', async () => {
    const [hanging, other] = [await hook('webhook', '/hang'), await hook()]
    const { deps } = p.running[0] as (typeof p.running)[number]
    const notifier = startNotifier({ ...deps, channels: deps.channels && { ...deps.channels, close: async () => {} } })
    const arrives = async (destination_id: string, path: string) => {
      must(await p.as(eva).post(`${NOTIFY}/destinations/${destination_id}/test`, {}), 200)
      await until(() => hooks.calls.some((call) => call.path.startsWith(`POST ${path}`)), { timeout_ms: 8000 })
    }
    try {
      await arrives(hanging, '/hang')
      const queued = `insert into operations.notify_deliveries (delivery_id, destination_id, owner, purpose, next_at, created_at)
        select gen_random_uuid(), destination_id, owner, 'test', clock_timestamp() - interval '1 s', now() - interval '2 d'
        from operations.notify_destinations, generate_series(1, 25) where destination_id = $1`
      await p.query(queued, [hanging])
      await arrives(other, '/in')
      expect(hooks.calls.filter(({ path }) => path.startsWith('POST /hang')).length).toBeLessThanOrEqual(2)
    } finally {
      hooks.cut()
      await notifier.stop()
    }
  })

  it('follows the one before at once, and so do the people and the accounts that are looked for', async () => {
    const { deps } = p.running[0] as (typeof p.running)[number]
    await opened()
    const id = await hook()
    await p.query(
      `insert into operations.notify_deliveries (delivery_id, destination_id, owner, purpose, next_at)
         select gen_random_uuid(), destination_id, owner, 'test', clock_timestamp()
         from operations.notify_destinations, generate_series(1, 30) where destination_id = $1`,
      [id],
    )
    await p.query(
      `insert into operations.notify_rules (owner, rules) select 'user:' || gen_random_uuid(), $1::jsonb from generate_series(1, 150)`,
      [JSON.stringify(await state({}))],
    )
    await p.query(
      `insert into operations.notify_security (key, user_id, fact)
         select gen_random_uuid()::text, gen_random_uuid()::text, '{"event": "device.new"}'::jsonb from generate_series(1, 120)`,
    )
    const config = { ...deps.config, OPERATIONS__SWEEP__INTERVAL_MS: 3_600_000 }
    const channels = deps.channels && { ...deps.channels, close: async () => {} }
    const notifier = startNotifier({ ...deps, config, channels })
    try {
      await until(async () => {
        const [left] = await p.query(
          `select (select count(*) from operations.notify_deliveries where state = 'queued' and purpose = 'test')
             + (select count(*) from operations.notify_rules where looked_at is null)
             + (select count(*) from operations.notify_security) as n`,
        )
        return Number(left?.n) === 0
      })
    } finally {
      await notifier.stop()
    }
  })

  it('of one kind takes at most its share of what is sent at once', async () => {
    const { deps } = p.running[0] as (typeof p.running)[number]
    for (const [kind, count] of Object.entries({ email: 15, webhook: 3 }))
      await p.query(
        `with d as (insert into operations.notify_destinations (destination_id, owner, kind, name, address, shown, status)
           select gen_random_uuid(), $1, $2, 'x', 'x', 'x', 'active' from generate_series(1, $3) returning destination_id)
         insert into operations.notify_deliveries (delivery_id, destination_id, owner, purpose, next_at)
           select gen_random_uuid(), destination_id, $1, 'test', clock_timestamp() - interval '1 s' from d`,
        ['user:x', kind, count],
      )
    const lease = async () => (await leaseDeliveries(deps.db, { limit: 20, per_kind: 10 })).length
    expect([await lease(), await lease()]).toEqual([13, 0])
    await p.query(
      'update operations.notify_deliveries set leased_until = null, state = $1 where leased_until > now()',
      ['sent'],
    )
    expect(await lease()).toBe(5)
  })

  it('by mail is put off if the server answers without end', async () => {
    const server = createServer((socket) => {
      const drip = setInterval(() => socket.write('220-wait\r\n'), 20)
      socket.on('close', () => clearInterval(drip)).on('error', () => {})
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { config } = (p.running[0] as (typeof p.running)[number]).deps
    const slow = createMail({ ...config, NOTIFY__SMTP__PORT: (server.address() as AddressInfo).port }, 300)
    const reach = { delivery_id: 'x', address: 'eva@example.org', secrets: [] }
    const sent = await slow?.send(reach, { subject: 'x', text: 'x', items: [] } as never)
    expect(sent).toEqual({ error: 'The mail server cannot be reached: ETIMEDOUT.' })
    server.close()
  })

  it('by mail becomes a file if a development platform has no mail server', async () => {
    const { NOTIFY__SMTP__HOST: _, ...config } = (p.running[0] as (typeof p.running)[number]).deps.config
    const dir = join(mkdtempSync(join(tmpdir(), 'signalbox-mail-')), 'mail')
    const reach = { delivery_id: 'x', address: 'eva@example.org', secrets: [] }
    const mailbox = createMail({ ...config, NOTIFY__MAIL__DIR: dir })
    expect(await mailbox?.send(reach, { subject: 'a code', text: '123456', items: [] } as never)).toEqual({})
    expect(readFileSync(join(dir, 'x.eml'), 'utf8')).toMatch(
      /To: eva@example\.org[\s\S]+Subject: Signalbox: a code[\s\S]+123456/,
    )
    expect(createMail(config as never)).toBeUndefined()
    rmSync(dirname(dir), { recursive: true })
  })

  it('is sent by another process if the first one dies', async () => {
    await hook()
    await state({})
    await opened()
    await find(p)
    await p.query(
      `update operations.notify_deliveries set leased_until = clock_timestamp() + interval '1 min' where state = 'queued'`,
    )
    await send(p)
    expect(hooks.calls).toEqual([])
    await p.query(
      `update operations.notify_deliveries set leased_until = clock_timestamp() - interval '1 s' where state = 'queued'`,
    )
    await Promise.all([send(p), send(p)])
    expect(hooks.calls).toHaveLength(1)
  })

  it('is final if the mail server refuses for good, and disables a webhook that is gone', async () => {
    must(await add('email', 'nobody@example.org'), 201)
    mail.state.refuse = 450
    await send(p)
    expect((await deliveries())[0]).toMatchObject({ state: 'queued', last_error: 'The mail server answered 450.' })
    mail.state.refuse = 550
    await due()
    await send(p)
    expect((await deliveries())[0]).toMatchObject({ state: 'dead', last_error: 'The mail server answered 550.' })
    const id = await hook()
    await state({})
    hooks.state.status = 410
    await opened()
    await notify(p)
    const { items } = must(await p.as(eva).get(`${NOTIFY}/destinations`), 200).body
    expect(items.find((one: { destination_id: string }) => one.destination_id === id)).toMatchObject({
      status: 'disabled',
      status_reason: 'It answered 410.',
      address: hooks.url,
    })
  })
})

describe('a message that was given up', () => {
  const dead = async (items = {}): Promise<string> => {
    await hook()
    await state({ steps: [], ...items })
    hooks.state.status = 503
    const operation_id = await opened()
    await notify(p)
    await p.query(`update operations.notify_deliveries set tried_since = tried_since - interval '25 h'`)
    await due()
    await send(p)
    hooks.state.status = 200
    hooks.calls.length = 0
    const [{ delivery_id, state: now }] = await deliveries()
    expect(now).toBe('dead')
    return `${delivery_id} ${operation_id}`
  }
  const again = (delivery_id: string, who: Parameters<Platform['as']>[0] = eva, body = {}) =>
    p.as(who).post(`${NOTIFY}/deliveries/${delivery_id}/redeliver`, body)

  it('is sent again once, however many request it, under its id', async () => {
    const [delivery_id = ''] = (await dead()).split(' ')
    expect(must(await again(delivery_id, eva, { dry_run: true }), 200).body.effect).toEqual({ redeliver: hooks.url })
    expect((await deliveries())[0].state).toBe('dead')
    const replies = await Promise.all(Array.from({ length: 8 }, () => again(delivery_id)))
    expect(replies.map(problem).sort()).toEqual([
      '200 undefined/undefined',
      ...Array.from({ length: 7 }, () => '409 invalid_state_transition/delivery_not_dead'),
    ])
    expect(replies.find(({ status }) => status === 200)?.body).toMatchObject({
      delivery_id,
      state: 'queued',
      ended_at: null,
    })
    await Promise.all([notify(p), notify(p)])
    expect(hooks.calls.map(({ headers }) => headers['webhook-id'])).toEqual([delivery_id])
    expect(await deliveries()).toMatchObject([{ delivery_id, state: 'sent' }])
    const rows = await p.query(
      `select actor from operations.audit where action = 'notify.delivery.redeliver' and object = $1`,
      [`notification:${delivery_id}`],
    )
    expect(rows).toEqual([{ actor: `user:${eva.id}` }])
    expect(problem(await again(delivery_id))).toBe('409 invalid_state_transition/delivery_not_dead')
  })

  it('is given up again after one try past its time, and announces no decision already made', async () => {
    const [delivery_id = '', operation_id] = (await dead()).split(' ')
    hooks.state.status = 503
    must(await again(delivery_id), 200)
    await send(p)
    expect(await deliveries()).toMatchObject([{ state: 'dead', attempts: 3 }])
    hooks.state.status = 200
    hooks.calls.length = 0
    await p.query(`update operations.gates set status = 'approved' where operation_id = $1`, [operation_id])
    must(await again(delivery_id), 200)
    await send(p)
    expect(hooks.calls).toEqual([])
    expect(await deliveries()).toMatchObject([{ state: 'obsolete' }])
  })

  it('belongs to its owner, and needs an active destination', async () => {
    const [delivery_id = ''] = (await dead()).split(' ')
    expect(problem(await again(delivery_id, 'ivo'))).toBe('404 not_found/delivery')
    expect(problem(await again('0195f0c2-0000-7000-8000-0000000000ff'))).toBe('404 not_found/delivery')
    await p.query(`update operations.notify_destinations set status = 'disabled'`)
    expect(problem(await again(delivery_id))).toBe('409 invalid_state_transition/destination_not_active')
    await p.query('delete from operations.notify_destinations')
    const gone = await again(delivery_id)
    expect(problem(gone)).toBe('409 invalid_state_transition/destination_not_active')
    expect(gone.body.detail).toContain('removed')
    expect((await deliveries())[0].state).toBe('dead')
  })
})

describe('a webhook', () => {
  it('never leads to an internal address: by its URL, by its name, or by a redirect', async () => {
    const internal = [
      'http://example.org/in',
      'http://127.0.0.1:1/in',
      'http://169.254.169.254/latest/meta-data',
      'http://[::ffff:127.0.0.1]/in',
      'https://10.0.0.1/in',
      'https://[::1]/in',
      'https://169.254.169.254/in',
      'https://2130706433/in',
      'https://0x7f.1/in',
      'https://0.0.0.0/in',
      'https://[fd00::1]/in',
      'https://[::ffff:10.0.0.1]/in',
      'https://[64:ff9b::a00:1]/in',
      'https://localhost/in',
      'https://LOCALHOST./in',
      'https://a.localhost/in',
      'https://metadata.google.internal/in',
      'https://printer.local/in',
      'https://intranet/in',
      'https://xn--/in',
      `https://${'a'.repeat(300)}.example.org/in`,
      'https://100.64.0.1/in',
    ]
    for (const url of internal)
      expect(problem(await add('webhook', url)), url).toBe('422 validation_error/address_refused')
    const denied = await p.query(`select actor from operations.audit
      where outcome = 'denied' and reason = 'address_refused' and action = 'POST ${NOTIFY}/destinations'`)
    expect(denied).toEqual(internal.map(() => ({ actor: `user:${eva.id}` })))
    for (const url of [
      'ftp://example.org',
      'file:///etc/passwd',
      'https://user:pass@example.org',
      'https://example.org/\nin',
    ])
      expect((await add('webhook', url)).body.code, url).toBe('schema_violation')
    // Names that the deployer allowed are checked when they are called: this one resolves to an internal address.
    const named = [`http://localhost:${hooks.port}/in`]
    for (const url of named) must(await add('webhook', url), 201)
    await opened()
    await notify(p)
    expect(hooks.calls).toEqual([])
    const tried = await deliveries()
    expect(tried).toHaveLength(named.length)
    for (const one of tried) expect(one).toMatchObject({ state: 'dead', last_error: 'Its address may not be called.' })
  })

  it('follows no redirects', async () => {
    await hook()
    await state({})
    Object.assign(hooks.state, { status: 307, location: `${hooks.url}/elsewhere` })
    await opened()
    await notify(p)
    expect(hooks.calls.map(({ path }) => path)).toEqual(['POST /in?key=s3cret'])
    expect((await deliveries())[0]).toMatchObject({ state: 'queued', last_error: 'It answered 307.' })
  })
})

describe('destinations and rules', () => {
  it('exist in an installation that sends', async () => {
    const off = await startPlatform({ relay: false })
    const body = { kind: 'webhook', name: 'chat', address: 'https://hooks.invalid/in' }
    try {
      expect(problem(await off.as('eva').post(`${NOTIFY}/destinations`, body))).toBe(
        '422 validation_error/notifications_off',
      )
    } finally {
      await off.stop()
    }
  })

  it('belong to one person, and a machine has none', async () => {
    const id = await hook()
    expect(problem(await p.as('ivo').delete(`${NOTIFY}/destinations/${id}`))).toBe('404 not_found/destination')
    const rules = await state({})
    const foreign = await p.as('ada').put(`${NOTIFY}/rules`, { ...rules, steps: [{ destination_id: id, after_s: 0 }] })
    expect(foreign.body.violations?.[0].pointer).toBe('/steps/0/destination_id')
    const bot = person('machine:bot', ['operator'])
    bot.machine = { permissions: ['operation:read'], behind: [eva.id] }
    Object.assign(p.people, { bot })
    expect(problem(await add('webhook', hooks.url, bot))).toBe('403 policy_denied/person_required')
    must(await p.as(eva).post(`${NOTIFY}/destinations/${id}/test`, {}), 200)
    await send(p)
    expect(JSON.parse(hooks.calls[0]?.body ?? '')).toMatchObject({ type: 'test' })
    const [own] = await deliveries()
    expect(own).toMatchObject({ destination_id: id })
    const theirs = must(await p.as('ivo').get(`${NOTIFY}/deliveries`), 200).body.items as (typeof own)[]
    expect(theirs.map(({ delivery_id }) => delivery_id)).not.toContain(own.delivery_id)
    must(await p.as(eva).delete(`${NOTIFY}/destinations/${id}`), 204)
    await opened()
    await notify(p)
    expect(hooks.calls).toHaveLength(1)
    expect(must(await p.as(eva).delete(`${NOTIFY}/rules`), 200).body).toMatchObject({ digest_s: 300, quiet: null })
  })

  it('of a group are set by an administrator, and announce decisions that name it', async () => {
    const admin = person('admin', ['admin'])
    Object.assign(p.people, { admin })
    const group = eva.team
    const url = `${NOTIFY}/destinations?group=${group}`
    const body = { kind: 'slack', name: 'team', address: `${hooks.url}/team` }
    expect(problem(await p.as(eva).post(url, body))).toBe('403 policy_denied/permission_missing')
    expect(problem(await p.as(eva).get(`${NOTIFY}/deliveries?group=${group}`))).toBe(
      '403 policy_denied/permission_missing',
    )
    const made = must(await p.as(admin).post(url, body), 201)
    const rules = must(await p.as(admin).get(`${NOTIFY}/rules?group=${group}`), 200).body
    must(await p.as(admin).put(`${NOTIFY}/rules?group=${group}`, { ...rules, digest_s: 0 }), 200)
    await opened(mine('another'))
    await notify(p)
    expect(hooks.calls).toEqual([])
    const later = await opened(mine('another'))
    await p.query(
      `update operations.gates set policy = jsonb_set(policy, '{escalation}', $2) where operation_id = $1`,
      [later, JSON.stringify([{ after_s: 60, add_groups: [group] }])],
    )
    const named = await opened()
    await notify(p)
    expect(hooks.calls).toHaveLength(1)
    expect(hooks.calls[0]?.body).toContain(named)
    await p.query('update operations.gates set escalation_level = 1 where operation_id = $1', [later])
    await notify(p)
    expect(hooks.calls[1]?.body).toContain(later)
    // Once its members have left, its channel can still be removed.
    eva.groups = []
    must(await p.as(admin).delete(`${NOTIFY}/destinations/${made.body.destination_id}?group=${group}`), 204)
    expect(must(await p.as(admin).delete(`${NOTIFY}/rules?group=${group}`), 200).body.digest_s).toBe(300)
  })

  it('are refused for a group that no one is in', async () => {
    const admin = person('admin', ['admin'])
    Object.assign(p.people, { admin })
    const body = { kind: 'slack', name: 'team', address: `${hooks.url}/team` }
    const rules = must(await p.as(admin).get(`${NOTIFY}/rules?group=${eva.team}`), 200).body
    for (const group of ['netosp', `${eva.team}0`])
      for (const refused of [
        await p.as(admin).post(`${NOTIFY}/destinations?group=${group}`, body),
        await p.as(admin).put(`${NOTIFY}/rules?group=${group}`, rules),
      ]) {
        expect(problem(refused)).toBe('422 validation_error/unknown_reference')
        expect(refused.body).toMatchObject({
          hint: expect.stringContaining('first member'),
          violations: [{ pointer: '/querystring/group' }],
        })
      }
    expect(await p.query(`select owner from operations.notify_rules where owner like 'group:%'`)).toEqual([])
  })

  it('are ten at most', async () => {
    for (let n = 0; n < 10; n++) await hook('webhook', `/${n}`)
    expect(problem(await add('webhook', hooks.url))).toBe('422 validation_error/too_many_destinations')
  })

  it('are sent no more than twenty codes and tests a day, however many are asked for at once', async () => {
    const id = await hook()
    const asked = await Promise.all(
      Array.from({ length: 30 }, () => p.as(eva).post(`${NOTIFY}/destinations/${id}/test`, {})),
    )
    expect(asked.filter(({ status }) => status === 200)).toHaveLength(20)
  })

  it('are ten at most, however many are added at once', async () => {
    const body = { kind: 'webhook', name: 'webhook' }
    const addresses = Array.from({ length: 20 }, (_, n) => `${hooks.url}/${n}`)
    const added = await Promise.all(
      addresses.map((address) => p.as(eva).post(`${NOTIFY}/destinations`, { ...body, address })),
    )
    expect(added.filter(({ status }) => status === 201)).toHaveLength(10)
    expect(new Set(added.filter(({ status }) => status !== 201).map(problem))).toEqual(
      new Set(['422 validation_error/too_many_destinations']),
    )
  })
})
