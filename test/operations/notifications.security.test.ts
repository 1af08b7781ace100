import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { pushOf } from '../../apps/operations/notifications/messages/push.ts'
import { securityMessage } from '../../apps/operations/notifications/messages/security.ts'
import { bodyOf } from '../../apps/operations/notifications/messages/shapes.ts'
import { queueSecurity } from '../../apps/operations/notifications/security.ts'
import { SECURITY_EVENTS } from '../../apps/shared/contracts/notifications/notifications.ts'
import { ADMINISTRATORS, type SecurityFact } from '../../db/operations/tables/index.ts'
import { faultsOfWebhook } from './support/described.ts'
import { newcomer, send } from './support/notified.ts'
import { gated, must, type Person, type Platform, person, problem, startPlatform } from './support/platform.ts'
import { startHooks, startMailServer } from './support/receivers.ts'

/** People are notified of events of their accounts, through a real mail server and a real receiver of webhooks. */
const CONSOLE = 'https://console.example.org'
const NOTIFY = '/v1/notifications'
const FACT = {
  event: 'device.new',
  at: '2026-11-24T03:30:00.000Z',
  ip_address: '192.0.2.7',
  user_agent: 'signalbox-cli/1\r\nBcc: all@example.org',
}
let p: Platform
let mail: Awaited<ReturnType<typeof startMailServer>>
let hooks: Awaited<ReturnType<typeof startHooks>>
let eva: Awaited<ReturnType<typeof newcomer>>
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
      NOTIFY__EGRESS__ALLOW: JSON.stringify([
        { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: [String(hooks.port)] },
      ]),
    },
  })
})
afterAll(async () => {
  await p.stop()
  await mail.close()
  hooks.close()
})
beforeEach(async () => {
  eva = await newcomer(p)
  mail.mails.length = 0
  hooks.calls.length = 0
})

const add = async (kind: string, address: string) =>
  must(await p.as(eva).post(`${NOTIFY}/destinations`, { kind, name: kind, address }), 201).body.destination_id
const happens = (fact: object = FACT, key = 'session.auth_events 1') =>
  p.query('insert into operations.notify_security (key, user_id, fact) values ($1, $2, $3)', [
    key,
    eva.id,
    JSON.stringify(fact),
  ])
/** Queues and sends, in two processes at once. */
const tell = async () => {
  await Promise.all(p.running.map(({ deps }) => queueSecurity(deps)))
  await send(p)
}

describe('an account event', () => {
  it('reaches each active destination once, whatever the rules and quiet hours say', async () => {
    await add('webhook', `${hooks.url}/in`)
    const { body } = must(await p.as(eva).get(`${NOTIFY}/rules`), 200)
    const quiet = { timezone: 'UTC', from: '00:00', to: '23:59' }
    must(await p.as(eva).put(`${NOTIFY}/rules`, { ...body, events: [], min_risk: 'critical', quiet }), 200)
    await happens()
    await tell()
    await tell()
    expect(hooks.calls).toHaveLength(1)
    expect(JSON.parse(hooks.calls[0]?.body ?? '')).toMatchObject({
      type: 'device.new',
      data: {
        subject: 'A new device signed in to your account.',
        details: 'Time: 2026-11-24 03:30 UTC\nAddress: 192.0.2.7\nClient: signalbox-cli/1 Bcc: all@example.org',
        link: `${CONSOLE}/settings/sessions`,
        items: [],
      },
    })
    expect(hooks.calls.flatMap(faultsOfWebhook)).toEqual([])
    const { items } = must(await p.as(eva).get(`${NOTIFY}/deliveries`), 200).body
    expect(items).toMatchObject([{ purpose: 'security', security_event: 'device.new', state: 'sent', notices: [] }])
  })

  it('of a kind that this build does not know waits for a newer one, and is in no list', async () => {
    await add('webhook', `${hooks.url}/in`)
    await happens()
    await tell()
    const later = { ...FACT, event: 'later.kind' }
    await p.query('update operations.notify_deliveries set fact = $1', [JSON.stringify(later)])
    await happens(later, 'session.auth_events 2')
    await tell()
    expect(await p.query('select key from operations.notify_security')).toEqual([{ key: 'session.auth_events 2' }])
    const { items } = must(await p.as(eva).get(`${NOTIFY}/deliveries`), 200).body
    expect(items).toMatchObject([{ purpose: 'security', security_event: null, state: 'sent' }])
    // One that a newer process queued is not sent without words.
    await p.query(`update operations.notify_deliveries set state = 'queued', next_at = now()`)
    await send(p)
    expect(hooks.calls).toHaveLength(1)
  })

  it('is mailed with time and place, and no client text looks like ours', async () => {
    const destination_id = await add('email', 'eva@example.org')
    await happens()
    await tell()
    // Not before its owner has confirmed the address; earlier events are not reported later.
    expect(mail.mails.filter(({ raw }) => raw.includes('new device'))).toEqual([])
    await p.query(`update operations.notify_destinations set status = 'active' where destination_id = $1`, [
      destination_id,
    ])
    await happens(FACT, 'session.auth_events 2')
    await tell()
    const told = mail.mails.filter(({ raw }) => raw.includes('new device'))
    expect(told).toHaveLength(1)
    expect(told[0]?.raw).toMatch(/^Subject: Signalbox: A new device signed in to your account\.\r$/m)
    expect(told[0]?.body).toContain('Time: 2026-11-24 03:30 UTC')
    expect(told[0]?.body).toContain('Address: 192.0.2.7')
    expect(told[0]?.body).toContain('Client: signalbox-cli/1 Bcc: all@example.org')
    expect(told[0]?.to).toEqual(['eva@example.org'])
  })

  it('is mailed with a link that can only end all sessions of its person; other channels never bring it', async () => {
    const destination_id = await add('email', 'eva@example.org')
    await p.query(`update operations.notify_destinations set status = 'active' where destination_id = $1`, [
      destination_id,
    ])
    await add('webhook', `${hooks.url}/in`)
    /** The mails about one fact; those about the new destinations have left before it. */
    const bodyOf = async (key: string, fact: object = FACT) => {
      await tell()
      mail.mails.length = 0
      await happens(fact, key)
      await tell()
      return mail.mails.map(({ body }) => body).join('\n')
    }
    expect(await bodyOf('session.auth_events 1')).toContain(`${CONSOLE}/sign-out#so1.${eva.id}`)
    expect(JSON.stringify(hooks.calls)).not.toContain('so1.')
    expect(await bodyOf('k1', { ...FACT, event: 'key.ending' }), 'of a machine').not.toContain('so1.')
    p.identity.away = true
    const without = await bodyOf('session.auth_events 2')
    p.identity.away = false
    expect(without).toContain(`${CONSOLE}/settings/sessions`)
    expect(without).not.toContain('so1.')
  })

  it('is written in the language and the time zone of its person; one for a program is not', async () => {
    await add('slack', `${hooks.url}/slack`)
    await add('webhook', `${hooks.url}/program`)
    const textOf = (path: string) =>
      hooks.calls.flatMap((call) => (call.path.endsWith(path) ? [call.body] : [])).join('\n')
    Object.assign(eva, { language: 'de', zone: 'Europe/Berlin' })
    await happens()
    await tell()
    expect(textOf('/slack')).toContain('Ein neues Gerät hat sich in Ihrem Konto angemeldet.')
    expect(textOf('/slack')).toContain('Zeit: 24.11.2026, 04:30 Europe/Berlin')
    expect(textOf('/program')).toContain('Time: 2026-11-24 03:30 UTC')
    // The zone of the device is unknown here; that of the quiet hours is known.
    Object.assign(eva, { language: '', zone: 'local' })
    const { body } = must(await p.as(eva).get(`${NOTIFY}/rules`), 200)
    const quiet = { timezone: 'America/New_York', from: '00:00', to: '00:01' }
    must(await p.as(eva).put(`${NOTIFY}/rules`, { ...body, quiet }), 200)
    await happens(FACT, 'session.auth_events 2')
    await tell()
    expect(textOf('/slack')).toContain('Time: 2026-11-23 22:30 America/New_York')
    // A notice of an account does not wait for identity.
    p.identity.away = true
    await happens(FACT, 'session.auth_events 3')
    await tell().finally(() => (p.identity.away = false))
    expect(textOf('/slack').match(/new device signed in/g)).toHaveLength(4)
  })

  it('says until when a credential works in the zone of its person', () => {
    const fact = {
      ...FACT,
      event: 'key.ending' as const,
      about: 'machine:ci, key deploy, until 2026-12-01T23:00:00.000Z',
    }
    const reader = { language: 'de', zone: 'Europe/Berlin' } as const
    const { text } = securityMessage(fact, { console_url: CONSOLE, content: 'titles', reader })
    expect(text).toContain('machine:ci, key deploy, bis 02.12.2026, 00:00 Europe/Berlin')
  })

  it('takes no part of a name for the end of a credential', () => {
    const textOf = (about: string) =>
      securityMessage({ ...FACT, event: 'key.ending', about }, { console_url: CONSOLE, content: 'titles' }).text
    const named = 'machine:ci, key x, until 9999-99-99T9Z'
    expect(textOf(`${named}, until 2026-12-01T23:00:00.000Z`)).toContain(`${named}, until 2026-12-01 23:00 UTC`)
    expect(textOf(named)).toContain(named)
  })

  it('that cannot be told is given up in the end', async () => {
    await add('webhook', `${hooks.url}/in`)
    await happens({ ...FACT, at: 'never' })
    await tell()
    const states = () => p.query('select state, last_error from operations.notify_deliveries')
    expect(await states()).toEqual([{ state: 'queued', last_error: null }])
    await p.query(
      `update operations.notify_deliveries set tried_since = tried_since - interval '25 h', next_at = clock_timestamp()`,
    )
    await tell()
    expect(await states()).toEqual([{ state: 'dead', last_error: 'The message could not be made.' }])
    expect(hooks.calls).toEqual([])
  })

  it('reaches every administrator and no one else if it is about the installation', async () => {
    const ida = person(`ida${eva.name}`, ['admin'])
    Object.assign(p.people, { [ida.name]: ida })
    for (const one of [eva, ida])
      must(
        await p
          .as(one)
          .post(`${NOTIFY}/destinations`, { kind: 'webhook', name: 'in', address: `${hooks.url}/${one.name}` }),
        201,
      )
    const fact = { ...FACT, event: 'break_glass.used' as const, about: 'root\r\nBcc: all' }
    await p.query('insert into operations.notify_security (key, user_id, fact) values ($1, $2, $3)', [
      'session.auth_events 9',
      ADMINISTRATORS,
      JSON.stringify(fact),
    ])
    // While identity is away, only what is for the administrators waits.
    p.identity.away = true
    await happens()
    await tell()
    p.identity.away = false
    expect(hooks.calls.map(({ path }) => path)).toEqual([`POST /${eva.name}`])
    hooks.calls.length = 0
    await tell()
    expect(hooks.calls.map(({ path }) => path)).toEqual([`POST /${ida.name}`])
    expect(JSON.parse(hooks.calls[0]?.body ?? '').type).toBe('break_glass.used')
    const { text } = securityMessage(fact, { console_url: CONSOLE, content: 'titles' })
    expect(text).toContain('root Bcc: all\nTime: 2026-11-24 03:30 UTC\nAddress: 192.0.2.7')
  })

  it('tells every administrator that a gate was bypassed, and leads to the gate', async () => {
    const ida = person(`ida${eva.name}`, ['admin'])
    Object.assign(p.people, { [ida.name]: ida })
    const destination = { kind: 'webhook', name: 'in', address: `${hooks.url}/${ida.name}` }
    must(await p.as(ida).post(`${NOTIFY}/destinations`, destination), 201)
    const { operation_id } = await p.startOperation(gated())
    await p.openGate(operation_id, 'go')
    const path = `/operations/${operation_id}/gates/go`
    const broken = { ...(await p.seen(operation_id, 'go')), break_glass: { reason: 'the site is down' } }
    must(await p.as('both').post(`/v1${path}/approve`, { ...broken, dry_run: true }), 200)
    await tell()
    expect(hooks.calls).toEqual([])
    must(await p.as('both').post(`/v1${path}/approve`, broken), 200, 202)
    await tell()
    await tell()
    expect(hooks.calls.map((call) => call.path)).toEqual([`POST /${ida.name}`])
    expect(JSON.parse(hooks.calls[0]?.body ?? '')).toMatchObject({
      type: 'gate.bypassed',
      data: { details: expect.stringContaining('both: a test, go\n'), link: `${CONSOLE}${path}` },
    })
    expect(hooks.calls.flatMap(faultsOfWebhook)).toEqual([])
  })

  it('always leads to a page of the console', () => {
    const routes = ['account', 'admin', 'home', 'operations'].map((name) =>
      readFileSync(new URL(`../../apps/console/routes/${name}.tsx`, import.meta.url), 'utf8'),
    )
    const style = { console_url: '', content: 'titles' as const }
    for (const event of SECURITY_EVENTS) {
      const { link } = securityMessage({ event, at: FACT.at, about: 'x' }, style)
      const own = link.replace(/^\/admin(?=\/)/, '')
      expect([event, link, routes.some((text) => text.includes(`'${own}'`))]).toEqual([event, link, true])
    }
  })

  it('is limited: fifty messages a day of its kind to one destination, which silence no other kind', async () => {
    await add('webhook', `${hooks.url}/in`)
    for (let i = 0; i < 60; i++) await happens(FACT, `session.auth_events ${i}`)
    for (let i = 0; i < 4; i++) await tell()
    await happens({ ...FACT, event: 'password.changed' }, 'session.auth_events 60')
    await tell()
    const rows = await p.query(
      `select fact ->> 'event' as event, count(*)::int as n from operations.notify_deliveries group by 1 order by 1`,
    )
    expect(rows).toEqual([
      { event: 'device.new', n: 50 },
      { event: 'password.changed', n: 1 },
    ])
    const last = await p.query<{ fact: SecurityFact }>(
      `select fact from operations.notify_deliveries where fact ->> 'last' = 'true'`,
    )
    const texts = last.map(({ fact }) => securityMessage(fact, { console_url: CONSOLE, content: 'minimal' }).text)
    expect(texts).toEqual([expect.stringContaining('last message of this kind')])
    expect(await p.query('select 1 from operations.notify_security')).toEqual([])
  })

  it.each(['slack', 'teams', 'webhook'] as const)('tells %s what it was about, as plain text', (kind) => {
    const fact = { ...FACT, event: 'key.ending' as const, about: 'machine:ci *bold* <!channel>' }
    const body = bodyOf(kind, securityMessage(fact, { console_url: CONSOLE, content: 'titles' }), FACT.at)
    expect(body).toContain('machine:ci *bold* <!channel>')
    expect(body).not.toContain('mrkdwn","text":"machine')
    const minimal = bodyOf(kind, securityMessage(fact, { console_url: CONSOLE, content: 'minimal' }), FACT.at)
    expect(minimal).not.toContain('machine:ci')
  })

  it('does not replace another event on a device', () => {
    const push = (about: string) =>
      pushOf(securityMessage({ ...FACT, event: 'key.ending', about }, { console_url: CONSOLE, content: 'titles' }))
    expect(push('machine:ci').payload.body).toContain('machine:ci')
    expect(push('machine:ci').topic).toBe(push('machine:ci').topic)
    expect(push('machine:ci').topic).not.toBe(push('machine:cd').topic)
  })
})

describe('a change of the destinations', () => {
  const stale = (): Person => ({ ...eva, auth_age_s: 3600 })

  it('is told to the others, and to a mail address for a week after it was removed', async () => {
    const mailed = await add('email', 'eva@example.org')
    await p.query(`update operations.notify_destinations set status = 'active'`)
    const hooked = await add('webhook', `${hooks.url}/in`)
    await tell()
    expect(mail.mails.at(-1)?.body).toContain(`webhook: ${hooks.url}`)
    mail.mails.length = 0
    must(await p.as(eva).delete(`${NOTIFY}/destinations/${mailed}`), 204)
    must(await p.as(eva).delete(`${NOTIFY}/destinations/${hooked}`), 204)
    expect(must(await p.as(eva).get(`${NOTIFY}/destinations`), 200).body.items).toEqual([])
    await happens()
    // Two at once go to one address.
    await tell()
    await tell()
    const subjects = mail.mails.map(({ body }) => body.trim().split('\n')[0]?.trim()).sort()
    const removed = 'A destination was removed from the notifications of your account.'
    expect(subjects).toEqual([removed, removed, 'A new device signed in to your account.'])

    await p.query(`update operations.notify_destinations set removed_at = now() - interval '8 days'`)
    await happens(FACT, 'session.auth_events 2')
    await tell()
    expect(mail.mails).toHaveLength(3)
  })

  it('is told once to an address that was removed and added again', async () => {
    const active = () => p.query(`update operations.notify_destinations set status = 'active' where removed_at is null`)
    for (let n = 0; n < 3; n++) {
      const mailed = await add('email', 'eva@example.org')
      await active()
      await tell()
      must(await p.as(eva).delete(`${NOTIFY}/destinations/${mailed}`), 204)
      await tell()
    }
    // The last removal is told to one of three removed rows; a fourth that nobody has confirmed silences none.
    for (const confirm of [async () => {}, () => add('email', 'eva@example.org'), active]) {
      await confirm()
      await tell()
      mail.mails.length = 0
      await happens(FACT, `session.auth_events ${++told}`)
      // One message at a time goes to one address.
      for (let n = 0; n < 4; n++) await tell()
      expect(mail.mails.filter(({ body }) => body.includes('A new device signed in'))).toHaveLength(1)
    }
  })
  let told = 100

  it('sends nothing else to a removed address, which no one can use again', async () => {
    const mailed = await add('email', 'eva@example.org')
    await p.query(`update operations.notify_destinations set status = 'active'`)
    must(await p.as(eva).post(`${NOTIFY}/destinations/${mailed}/test`, {}), 200)
    must(await p.as(eva).delete(`${NOTIFY}/destinations/${mailed}`), 204)
    await tell()
    expect(mail.mails.filter(({ raw }) => raw.includes('A test'))).toEqual([])
    const gone = [
      await p.as(eva).post(`${NOTIFY}/destinations/${mailed}/test`, {}),
      await p.as(eva).post(`${NOTIFY}/destinations/${mailed}/confirm`, { code: '12345678' }),
    ]
    for (const answer of gone) expect(problem(answer)).toBe('404 not_found/destination')
  })

  it('needs a recent sign-in', async () => {
    const hooked = await add('webhook', `${hooks.url}/in`)
    const body = { kind: 'webhook', name: 'x', address: `${hooks.url}/x` }
    const refused = [
      await p.as(stale()).post(`${NOTIFY}/destinations`, body),
      await p.as(stale()).delete(`${NOTIFY}/destinations/${hooked}`),
    ]
    for (const answer of refused) expect(problem(answer)).toBe('403 policy_denied/reauth_required')
    expect(must(await p.as(eva).get(`${NOTIFY}/destinations`), 200).body.items).toHaveLength(1)
  })
})
