import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { securityMessage } from '../../apps/operations/notifications/messages/security.ts'
import { queueSecurity } from '../../apps/operations/notifications/security.ts'
import { SECURITY_EVENTS } from '../../apps/shared/contracts/notifications/notifications.ts'
import { ADMINISTRATORS } from '../../db/operations/tables/index.ts'
import { newcomer, send } from './support/notified.ts'
import { must, type Platform, person, startPlatform } from './support/platform.ts'
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
      data: { subject: 'A new device signed in to your account.', link: `${CONSOLE}/settings/sessions`, items: [] },
    })
    const { items } = must(await p.as(eva).get(`${NOTIFY}/deliveries`), 200).body
    expect(items).toMatchObject([{ purpose: 'security', security_event: 'device.new', state: 'sent', notices: [] }])
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

  it('always leads to a page of the console', () => {
    const routes = ['account', 'admin', 'home'].map((name) =>
      readFileSync(new URL(`../../apps/console/routes/${name}.tsx`, import.meta.url), 'utf8'),
    )
    const style = { console_url: '', content: 'titles' as const }
    for (const event of SECURITY_EVENTS) {
      const { link } = securityMessage({ event, at: FACT.at, about: 'x' }, style)
      const own = link.replace(/^\/admin(?=\/)/, '')
      expect([event, link, routes.some((text) => text.includes(`'${own}'`))]).toEqual([event, link, true])
    }
  })

  it('is limited: fifty messages a day to one destination', async () => {
    await add('webhook', `${hooks.url}/in`)
    for (let i = 0; i < 60; i++) await happens(FACT, `session.auth_events ${i}`)
    for (let i = 0; i < 4; i++) await tell()
    const [row] = await p.query<{ n: string }>('select count(*) as n from operations.notify_deliveries')
    expect(Number(row?.n)).toBe(50)
    expect(await p.query('select 1 from operations.notify_security')).toEqual([])
  })
})
