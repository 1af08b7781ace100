import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTls, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sealAudit } from '../../apps/relay/audit/seal.ts'
import { createSiem, type Receiver, receiverOf } from '../../apps/relay/audit/siem.ts'
import type { RelayDeps } from '../../apps/relay/deps.ts'
import { createLags } from '../../apps/relay/lags.ts'
import { startSiem } from '../../apps/relay/schemas.ts'
import { createTelemetry, type Logger } from '../../apps/shared/telemetry.ts'
import { renewAll } from '../../apps/shared/tls/pairs.ts'
import { type AuditTable, appendAuditTo } from '../../db/audit.ts'
import { createDb } from '../../db/client.ts'
import { user_events } from '../../db/identity/tables.ts'
import { audit } from '../../db/operations/tables/index.ts'
import { createAuthority } from '../support/certificates.ts'
import { testDatabase } from '../support/database.ts'

/** Real receivers behind TLS, and rows that the production code writes and seals. */
const KEY = Buffer.alloc(32, 7)
const authority = createAuthority()
const { cert, key } = authority.issue('localhost')
let database: Awaited<ReturnType<typeof testDatabase>>
let opened: ReturnType<typeof createDb>
beforeAll(async () => {
  database = await testDatabase('identity', 'credential', 'session', 'token', 'catalog', 'operations')
  opened = createDb(database.url, { app: 'test' })
})
afterAll(async () => {
  await opened.close()
  await database.drop()
})
beforeEach(() => opened.pool.query(`delete from operations.relay_state where name like 'siem %'`))

let number = 0
const say = async (count: number) => {
  const objects: string[] = []
  for (let i = 0; i < count; i++) {
    number += 1
    const table = (number % 2 ? user_events : audit) as AuditTable
    const outcome = number % 3 ? ('done' as const) : ('denied' as const)
    objects.push(`thing:${number}`)
    const entry = { actor: 'user:u1', action: 'test', object: `thing:${number}`, outcome, reason: 'ünïcode\nline' }
    await opened.db.transaction((tx) => appendAuditTo(tx, table, KEY, entry))
  }
  while (await sealAudit(opened.pool));
  return objects
}
const listening = async (server: Server, host = 'localhost') => {
  server.listen(0, host)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
let authorization = 'Bearer secret'
let refused: object[] = []
const log = { error: (fields: object) => void refused.push(fields) } as unknown as Logger
const siemTo = (url: string, ca = authority.ca, own: { cert?: string; key?: string } = {}) =>
  createSiem({
    ...{ pool: opened.pool, url, headers: () => ({ authorization }), log },
    tls: { ca, cert: own.cert, key: own.key },
  })
const allTurns = async (siem: ReturnType<typeof siemTo>) => {
  while (await siem.turn());
}

describe('audit rows sent to a log system by https', () => {
  type Told = { object: string; log: string; seal_seq: string; mac: string }
  let told: Told[] = []
  /** The answers to the next requests; later ones get 200. */
  let answers: (number | 'cut' | 'taken and cut')[] = []
  /** Bodies with this text are answered with this status. */
  let poison: { text: string; status: number } | undefined
  const server = createHttps({ cert, key }, (req, res) => {
    let body = ''
    req.on('data', (chunk) => (body += chunk))
    req.on('end', () => {
      const answer = answers.shift() ?? (poison && body.includes(poison.text) ? poison.status : 200)
      expect(req.headers.authorization).toBe(authorization)
      if (answer === 200 || answer === 'taken and cut')
        for (const line of body.trimEnd().split('\n')) told.push(JSON.parse(line))
      if (typeof answer === 'number') res.writeHead(answer).end('an answer')
      else req.socket.destroy()
    })
  })
  let url = ''
  beforeAll(async () => {
    url = `https://localhost:${await listening(server)}/audit`
  })
  beforeEach(() => {
    told = []
    answers = []
    poison = undefined
    refused = []
  })
  afterAll(() => void server.close())

  it('arrive from the first on, in the order of each chain, each once while all is well', async () => {
    await say(450)
    const siem = siemTo(url)
    await allTurns(siem)
    const { rows } = await opened.pool.query(
      `select (select count(*) from identity.user_events) + (select count(*) from operations.audit) as n`,
    )
    expect(told).toHaveLength(Number(rows[0].n))
    for (const log of ['identity.user_events', 'operations.audit'])
      expect(told.filter((line) => line.log === log).map(({ seal_seq }) => Number(seal_seq))).toEqual(
        Array.from({ length: told.filter((line) => line.log === log).length }, (_, i) => i + 1),
      )
    expect(told[0]).toMatchObject({ actor: 'user:u1', outcome: expect.any(String), mac: expect.any(String) })
    const before = told.length
    await allTurns(siem)
    expect(told).toHaveLength(before)
    const news = await say(3)
    await allTurns(siemTo(url))
    expect(told.slice(before).map(({ object }) => object)).toEqual(expect.arrayContaining(news))
    expect(told).toHaveLength(before + 3)
  })

  it.each([503, 401, 302, 'cut', 'taken and cut'] as const)('are not lost if it answers %s', async (answer) => {
    await allTurns(siemTo(url))
    told = []
    const news = await say(4)
    answers = [answer]
    const siem = siemTo(url)
    await expect(siem.turn()).rejects.toThrow()
    // The process dies here; the next one continues.
    await allTurns(siemTo(url))
    expect([...new Set(told.map(({ object }) => object))].sort()).toEqual(news.sort())
  })

  it('carry the header that the receiver asks for, with its present token', async () => {
    const siem = siemTo(url)
    await allTurns(siem)
    for (const next of ['Splunk a: b', 'Splunk c']) {
      authorization = next
      const news = await say(1)
      await siem.turn()
      expect(told.at(-1)?.object).toBe(news[0])
    }
    authorization = 'Bearer secret'
  })

  const behind = async () => {
    const telemetry = createTelemetry('test', { level: 'silent' })
    createLags(opened.pool, telemetry, { siem: true })
    const text = await telemetry.metrics.metrics()
    const value = (name: string, table: string) =>
      Number(new RegExp(`^${name}\\{log="${table}",app="test"\\} (\\S+)$`, 'm').exec(text)?.[1])
    return (table: string) => [value('signalbox_siem_behind', table), value('signalbox_siem_oldest_seconds', table)]
  }

  it.each([400, 413, 422])(
    'leave a stub in place of one row that it answers with %s; the others arrive',
    async (status) => {
      await allTurns(siemTo(url))
      told = []
      const news = await say(9)
      poison = { text: `"${news[4]}"`, status }
      await allTurns(siemTo(url))
      const stubs = told.filter(({ object }) => object === undefined)
      expect(told.flatMap(({ object }) => object ?? []).sort()).toEqual(news.filter((_, at) => at !== 4).sort())
      expect(stubs).toEqual([
        {
          ...{ log: expect.any(String), seal_seq: expect.any(String), seal_hash: expect.any(String) },
          ...{ mac: expect.any(String), refused: true },
        },
      ])
      expect(refused).toMatchObject([{ seal_seq: stubs[0]?.seal_seq }])
      const again = await say(1)
      await allTurns(siemTo(url))
      expect(told.at(-1)?.object).toBe(again[0])
    },
  )

  it('of one log wait if even the stub is refused, and hold up no other log; the figures say so', async () => {
    await allTurns(siemTo(url))
    told = []
    const news = await say(6)
    poison = { text: 'identity.user_events', status: 400 }
    await expect(siemTo(url).turn()).rejects.toThrow('400')
    expect(told.map(({ log }) => log)).toEqual(Array(3).fill('operations.audit'))
    const of = await behind()
    expect(of('identity.user_events')).toEqual([3, expect.any(Number)])
    expect(of('identity.user_events')[1]).toBeGreaterThan(0)
    expect(of('operations.audit')).toEqual([0, 0])
    poison = undefined
    await allTurns(siemTo(url))
    expect(told.map(({ object }) => object).sort()).toEqual(news.sort())
  })

  it('never go to a receiver of another authority', async () => {
    await say(1)
    const other = createAuthority()
    await expect(siemTo(url, other.ca).turn()).rejects.toThrow(/certificate|signature/i)
    expect(told).toEqual([])
  })
})

describe('audit rows sent to a log system by syslog over TLS', () => {
  it('reach a receiver at an IPv6 address, whose certificate is for it', async () => {
    const heard: Buffer[] = []
    const server = createTls({ cert, key }, (socket) => void socket.on('data', (chunk) => heard.push(chunk)))
    const warned: Error[] = []
    const note = (warning: Error) => void warned.push(warning)
    process.on('warning', note)
    const siem = siemTo(`syslog+tls://[::1]:${await listening(server, '::1')}`)
    const [object = ''] = await say(1)
    await allTurns(siem)
    process.off('warning', note)
    expect([Buffer.concat(heard).includes(object), warned]).toEqual([true, []])
    server.close()
  })

  it('arrive in frames by length, a refusal as a warning; unread rows are sent again', async () => {
    let received = Buffer.alloc(0)
    let broken = true
    const server = createTls({ cert, key }, (socket) => {
      if (broken) return void socket.destroy()
      socket.on('data', (chunk) => (received = Buffer.concat([received, chunk])))
    })
    const siem = siemTo(`syslog+tls://localhost:${await listening(server)}`)
    const news = await say(5)
    await expect(siem.turn()).rejects.toThrow()
    broken = false
    await allTurns(siem)
    server.close()
    const messages: string[] = []
    for (let rest = received; rest.length > 0; ) {
      const space = rest.indexOf(' ')
      const end = space + 1 + Number(rest.subarray(0, space).toString())
      messages.push(rest.subarray(space + 1, end).toString())
      rest = rest.subarray(end)
    }
    const lines = messages.map((message) => {
      const [, priority, log, json] = /^<(\d+)>1 \S+Z \S+ signalbox - (\S+) - (.*)$/s.exec(message) ?? []
      return { priority, log, ...(JSON.parse(json ?? '') as { object: string; outcome: string }) }
    })
    expect(lines.map(({ object }) => object)).toEqual(expect.arrayContaining(news))
    for (const { priority, outcome } of lines) expect(priority).toBe(outcome === 'denied' ? '108' : '109')
  })

  it('show the certificate of the relay to a receiver that asks for one (RFC 5425, 4.2)', async () => {
    const names: (string | undefined)[] = []
    const asking = { cert, key, ca: authority.ca, requestCert: true, rejectUnauthorized: true }
    const server = createTls(asking, (socket) => {
      names.push(String(socket.getPeerCertificate().subject?.CN))
      socket.resume().on('end', () => socket.end())
    })
    const url = `syslog+tls://localhost:${await listening(server)}`
    await say(1)
    await expect(siemTo(url).turn()).rejects.toThrow()
    await allTurns(siemTo(url, authority.ca, authority.issue('relay')))
    server.close()
    expect(new Set(names)).toEqual(new Set(['relay']))
  })
})

it.each(['https', 'syslog+tls'])(
  'a receiver by %s that answers in drips for ever holds up no export',
  async (scheme) => {
    const drips: NodeJS.Timeout[] = []
    const drip = (to: { write: (text: string) => unknown }) => void drips.push(setInterval(() => to.write('.'), 20))
    const server =
      scheme === 'https'
        ? createHttps({ cert, key }, (_req, res) => drip(res))
        : createTls({ cert, key }, (socket) => drip(socket.on('error', () => {})))
    const siem = createSiem({
      ...{ pool: opened.pool, url: `${scheme}://localhost:${await listening(server)}`, headers: () => ({}), log },
      ...{ tls: { ca: authority.ca, cert: undefined, key: undefined }, longest_ms: 500 },
    })
    await say(1)
    // By https it has answered 200 by then.
    if (scheme === 'https') await siem.turn()
    else await expect(siem.turn()).rejects.toThrow('too slow')
    for (const one of drips) clearInterval(one)
    await siem.close()
    server.close()
  },
)

it.each(['https', 'syslog+tls'])('a receiver by %s that never answers holds up no relay that stops', async (scheme) => {
  const taken = Promise.withResolvers<void>()
  const server =
    scheme === 'https'
      ? createHttps({ cert, key }, () => taken.resolve())
      : createTls({ cert, key, allowHalfOpen: true }, (socket) => {
          socket.on('error', () => {}).resume()
          taken.resolve()
        })
  const url = `${scheme}://localhost:${await listening(server)}`
  const receiver = { url, headers: () => ({}), tls: { ca: authority.ca, cert: undefined, key: undefined } }
  const telemetry = createTelemetry('test', { level: 'silent' })
  await say(2)
  const { siem } = startSiem({ siem: receiver, telemetry, pool: opened.pool } as unknown as RelayDeps)
  await taken.promise
  const begun = performance.now()
  await siem?.stop()
  // Silence alone would end each of the logs only after ten seconds.
  expect(performance.now() - begun).toBeLessThan(5000)
  server.close()
})

describe('the files of a log system', () => {
  const dir = mkdtempSync(join(tmpdir(), 'signalbox-siem-'))
  afterAll(() => rmSync(dir, { recursive: true }))
  const put = (name: string, text: string) => {
    writeFileSync(join(dir, name), text)
    return join(dir, name)
  }
  const settings = (url: string, own = authority.issue('relay')) => ({
    RELAY__SIEM__URL: url,
    RELAY__SIEM__HEADER: 'Authorization: Bearer {token}',
    RELAY__SIEM__TOKEN_FILE: put('token', 'secret'),
    RELAY__SIEM__CA_FILE: put('ca.pem', authority.ca),
    RELAY__SIEM__CERT_FILE: put('relay.pem', own.cert),
    RELAY__SIEM__KEY_FILE: put('relay.key', own.key),
  })

  it.each(['https', 'syslog+tls'])('count for %s once renewed, without a restart', async (protocol) => {
    const shown: string[] = []
    const note = (socket: TLSSocket) => void shown.push(socket.getPeerCertificate().fingerprint256)
    const asking = { cert, key, ca: authority.ca, requestCert: true, rejectUnauthorized: true }
    const server =
      protocol === 'https'
        ? createHttps(asking, (req, res) => {
            note(req.socket as TLSSocket)
            req.resume().on('end', () => res.setHeader('connection', 'close').end())
          })
        : createTls(asking, (socket) => {
            note(socket)
            socket.resume().on('end', () => socket.end())
          })
    const [own, next] = [authority.issue('relay'), createAuthority()]
    const renewed = next.issue('relay')
    const receiver = receiverOf(settings(`${protocol}://localhost:${await listening(server)}`, own)) as Receiver
    const siem = createSiem({ ...receiver, pool: opened.pool, log })
    const { log: quiet } = createTelemetry('test', { level: 'silent' })
    const shownNow = async () => {
      renewAll(quiet)
      await say(1)
      await allTurns(siem)
      return shown.at(-1)
    }
    try {
      expect(await shownNow()).toBe(new X509Certificate(own.cert).fingerprint256)
      // Between the writes of a renewal the previous pair stays.
      put('relay.pem', renewed.cert)
      expect(await shownNow()).toBe(new X509Certificate(own.cert).fingerprint256)
      put('relay.key', renewed.key)
      put('ca.pem', next.ca)
      server.setSecureContext(next.issue('localhost'))
      expect(await shownNow()).toBe(new X509Certificate(renewed.cert).fingerprint256)
    } finally {
      server.close()
    }
  })

  it('stop the start if one cannot be read or has no partner', () => {
    const well = settings('https://siem.invalid')
    for (const kind of ['TOKEN', 'CA', 'CERT', 'KEY'])
      expect(() => receiverOf({ ...well, [`RELAY__SIEM__${kind}_FILE`]: join(dir, 'none') })).toThrow(
        `RELAY__SIEM__${kind}_FILE names`,
      )
    const { RELAY__SIEM__KEY_FILE: _key, ...half } = well
    expect(() => receiverOf(half)).toThrow('belong together')
    expect(receiverOf({ RELAY__SIEM__HEADER: well.RELAY__SIEM__HEADER })).toBeUndefined()
  })
})
