import { type ChildProcess, fork } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDice } from '../chaos/dice.ts'
import { until } from '../support/until.ts'
import { newcomer } from './support/notified.ts'
import { gated, must, type Platform, startPlatform } from './support/platform.ts'
import { startPushService } from './support/push-service.ts'
import { startMailServer } from './support/receivers.ts'

/** The process that sends messages is killed at random moments, while receivers are slow, refuse or lose answers. */
const KILLS = 4
const FACTS = 20
/** Messages that one process sends at once (`send.ts`). */
const AT_ONCE = 20
const NOTIFY = '/v1/notifications'
const dice = createDice(11)

/** A receiver whose paths misbehave until `calm`. It keeps the ids that it took, and those whose answer it lost. */
const startHooks = async () => {
  const state = { calm: false }
  const taken: Record<string, string[]> = {}
  const lost: string[] = []
  const server = createServer((req, res) => {
    req.resume().on('end', async () => {
      const { url = '' } = req
      const id = String(req.headers['webhook-id'])
      const refuses = url === '/dead' || (url === '/refuse' && !state.calm && dice.between(0, 1) < 0.6)
      if (refuses) return res.writeHead(503).end()
      taken[url] = [...(taken[url] ?? []), id]
      if (url === '/slow' && !state.calm) await delay(dice.between(50, 900))
      if (url !== '/lose' || state.calm || dice.between(0, 1) < 0.4) return res.writeHead(200).end()
      lost.push(id)
      req.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, state, taken, lost, close: () => server.close() }
}

let p: Platform
let mail: Awaited<ReturnType<typeof startMailServer>>
let push: Awaited<ReturnType<typeof startPushService>>
let hooks: Awaited<ReturnType<typeof startHooks>>
let vars: Record<string, string>
let child: ChildProcess | undefined
const dir = mkdtempSync(join(tmpdir(), 'signalbox-notifier-'))
beforeAll(async () => {
  mail = await startMailServer()
  push = await startPushService()
  hooks = await startHooks()
  const key_file = join(dir, 'push.json')
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  writeFileSync(key_file, JSON.stringify(privateKey.export({ format: 'jwk' })))
  const env = {
    OPERATIONS__SECRET__KEYS: JSON.stringify([randomBytes(32).toString('base64')]),
    OPERATIONS__SWEEP__INTERVAL_MS: '50',
    NOTIFY__ENABLED: 'true',
    NOTIFY__GATHER_S: '0',
    NOTIFY__SMTP__HOST: '127.0.0.1',
    NOTIFY__SMTP__PORT: String(mail.port),
    NOTIFY__SMTP__TLS: 'none',
    NOTIFY__SMTP__FROM: 'Signalbox <signalbox@example.org>',
    NOTIFY__PUSH__KEY_FILE: key_file,
    NOTIFY__PUSH__HOSTS: '["127.0.0.1"]',
    NOTIFY__EGRESS__ALLOW: JSON.stringify([
      { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: ['1024-65535'] },
    ]),
  }
  p = await startPlatform({ relay: false, env })
  const { OPERATIONS__DATABASE__URL, OPERATIONS__NATS__URL, OPERATIONS__ARTIFACTS__DIR } = p.config
  vars = { ...env, OPERATIONS__DATABASE__URL, OPERATIONS__NATS__URL, OPERATIONS__ARTIFACTS__DIR } as typeof vars
  vars.SIGNALBOX__NATS__PREFIX = p.prefix
}, 60_000)
afterAll(async () => {
  await kill()
  await p?.stop()
  await mail?.close()
  push?.close()
  hooks?.close()
  rmSync(dir, { recursive: true, force: true })
})

const begin = async () => {
  const env = { ...process.env, NOTIFIER: JSON.stringify({ vars, people: p.people }) }
  child = fork(new URL('./support/notifier.process.ts', import.meta.url), {
    env,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  await once(child, 'message')
}
const kill = async () => {
  if (child?.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

it('loses no message, repeats few, and keeps steps, quiet hours and dead letters', async () => {
  const eva = await newcomer(p)
  const by = p.as(eva)
  const add = async (kind: string, address: string) =>
    must(await by.post(`${NOTIFY}/destinations`, { kind, name: kind, address }), 201).body.destination_id as string
  const paths = ['/slow', '/refuse', '/lose', '/dead', '/later']
  const ids: string[] = []
  for (const path of paths) ids.push(await add('webhook', `${hooks.url}${path}`))
  ids.push(await add('email', 'eva@example.org'))
  await p.query(`update operations.notify_destinations set status = 'active'`)
  await p.query(`delete from operations.notify_deliveries`)
  const phone = push.browser()
  must(await by.put(`${NOTIFY}/push`, phone.body), 200)
  const [slow = '', , , , later = ''] = ids
  const { body: rules } = must(await by.get(`${NOTIFY}/rules`), 200)
  const clock = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16)
  const quiet = { timezone: 'UTC', from: clock(-1), to: clock(0.5) }
  const steps = [slow, later].map((destination_id, at) => ({ destination_id, after_s: at * 600 }))
  must(await by.put(`${NOTIFY}/rules`, { ...rules, digest_s: 0, quiet, steps }), 200)
  const open = async (risk: string) => {
    const policy = { approvals: { groups: [{ group: eva.team, min: 1 }] } }
    const { operation_id } = await p.startOperation(gated(policy), { more: { title: risk } })
    await p.query('update operations.operations set risk_level = $2 where operation_id = $1', [operation_id, risk])
    await p.openGate(operation_id, 'go')
    return operation_id
  }
  await open('low')
  const urgent = await open('high')
  const about = (at: number) => ({ event: 'device.new', at: new Date().toISOString(), user_agent: `device ${at}` })

  for (let round = 0; round < KILLS; round++) {
    await begin()
    for (let n = 0; n < FACTS / KILLS; n++)
      await p.query('insert into operations.notify_security (key, user_id, fact) values ($1, $2, $3)', [
        `k${round}-${n}`,
        eva.id,
        JSON.stringify(about(round)),
      ])
    await delay(dice.between(50, 1200))
    await kill()
  }
  hooks.state.calm = true
  // A minute passes: messages that the dead processes had leased are free again.
  await p.query(`update operations.notify_deliveries set leased_until = null, next_at = least(next_at, clock_timestamp() + interval '1 s')
    where state = 'queued' and (fact is not null or next_at < clock_timestamp() + interval '1 min')`)
  await begin()
  const open_now = async () => {
    await p.query(
      `update operations.notify_deliveries set tried_since = tried_since - interval '25 h' where state = 'queued' and destination_id = $1 and state = 'queued'`,
      [ids[3]],
    )
    return p.query(`select 1 from operations.notify_deliveries where state = 'queued'
      union all select 1 from operations.notify_security`)
  }
  await until(async () => (await open_now()).length === 0, { what: 'every message to end' })

  const rows = await p.query<{ delivery_id: string; destination_id: string; state: string; purpose: string }>(
    'select delivery_id, destination_id, state, purpose from operations.notify_deliveries',
  )
  const of = (destination_id: string | undefined) => rows.filter((row) => row.destination_id === destination_id)
  const taken = (path: string) => hooks.taken[path] ?? []
  for (const [at, path] of ['/slow', '/refuse', '/lose'].entries()) {
    const mine = of(ids[at])
    expect([path, mine.filter(({ purpose }) => purpose === 'security').length]).toEqual([path, FACTS])
    expect(new Set(mine.map(({ state }) => state))).toEqual(new Set(['sent']))
    expect(new Set(taken(path))).toEqual(new Set(mine.map(({ delivery_id }) => delivery_id)))
  }
  expect(new Set(mail.mails.map(({ raw }) => /^Message-ID: <(.+)@/im.exec(raw)?.[1]))).toEqual(
    new Set(of(ids[5]).map(({ delivery_id }) => delivery_id)),
  )
  // Doubles: one for each answer that was lost, and at most what was being sent when a process was killed.
  const accepted = [
    ...Object.values(hooks.taken).flat(),
    ...mail.mails.map(({ raw }) => /^Message-ID: <(.+)@/im.exec(raw)?.[1]),
  ]
  const doubles = accepted.length - new Set(accepted).size - hooks.lost.length
  expect(doubles).toBeLessThanOrEqual(KILLS * AT_ONCE)
  for (const id of new Set(accepted)) {
    const times = accepted.filter((one) => one === id).length - hooks.lost.filter((one) => one === id).length
    expect(times).toBeLessThanOrEqual(1 + KILLS)
  }
  expect(push.faults).toEqual([])
  expect(phone.got.length).toBeGreaterThanOrEqual(FACTS)

  // Dead letters are shown to their owner.
  const { items: dead } = must(await by.get(`${NOTIFY}/deliveries?state=dead&page_size=100`), 200).body
  expect(dead.map(({ delivery_id }: { delivery_id: string }) => delivery_id).sort()).toEqual(
    of(ids[3])
      .map(({ delivery_id }) => delivery_id)
      .sort(),
  )
  // The decision of high risk was told despite quiet hours, the other waits; the second step is told when it is due.
  const told = async (destination_id: string) =>
    (
      await p.query<{ operation_id: string }>(
        'select operation_id from operations.notify_notices where destination_id = $1',
        [destination_id],
      )
    ).map((row) => row.operation_id)
  expect(await told(slow)).toEqual([urgent])
  expect(await told(later)).toEqual([])
  await p.query(`update operations.gates set waiting_since = waiting_since - interval '11 min'`)
  await until(async () => (await told(later)).length > 0, { what: 'the second step' })
  expect([await told(later), await told(slow)]).toEqual([[urgent], [urgent]])
}, 180_000)
