import { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHttpApp } from '../../apps/shared/http/app.ts'
import { CATALOG_CODES } from '../../apps/shared/http/edge-codes.ts'
import { toAppError } from '../../apps/shared/http/problems.ts'
import { Away, isDatabaseAway, isOutage, refusalOf } from '../../apps/shared/process/outage.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { createDb } from '../../db/client.ts'
import { testDatabase } from '../support/database.ts'
import { type Link, startLink } from '../support/link.ts'
import { freePort } from '../support/ports.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
let link: Link
let db: ReturnType<typeof createDb>
beforeAll(async () => {
  database = await testDatabase('operations')
  link = await startLink(database.url)
  db = createDb(link.url, { app: 'test', max: 2 })
})
afterAll(async () => {
  link.thaw()
  await db.close()
  link.stop()
  await database.drop()
})

describe('a database that disappears silently', () => {
  it('costs a statement its own time and a second, within a transaction too, and is an outage', async () => {
    await db.pool.query('select 1')
    link.freeze()
    const started = performance.now()
    const failures = await Promise.all([
      db.pool.query('select 1').catch((error: Error) => error),
      db.db.transaction((tx) => tx.execute('select 1')).catch((error: Error) => error),
    ])
    expect(performance.now() - started).toBeLessThan(6000)
    for (const failure of failures) {
      expect(failure).toBeInstanceOf(Error)
      expect(isOutage(failure)).toBe(true)
      expect(isDatabaseAway(failure)).toBe(true)
    }
    link.thaw()
    expect((await db.pool.query('select 7 as n')).rows).toEqual([{ n: 7 }])
  }, 60_000)
})

describe('a transaction left idle by its process for too long', () => {
  it('is ended by the server, and its caller is told to try again', async () => {
    const failure = await db.db
      .transaction(async (tx) => {
        await tx.execute('set local idle_in_transaction_session_timeout = 50')
        // It blocks, like a process without a core.
        for (const end = performance.now() + 300; performance.now() < end; );
        await tx.execute('select 1')
      })
      .catch((error: Error) => error)
    expect(isDatabaseAway(failure)).toBe(true)
    expect(isOutage(failure)).toBe(true)
    expect(toAppError(failure, CATALOG_CODES)).toMatchObject({ status: 503, code: 'unavailable' })
  })
})

describe('an error', () => {
  const sql = (code: string) => new Error('failed query', { cause: Object.assign(new Error('x'), { code }) })
  it('of the owner, the network, the database or the clock is an outage', async () => {
    const free = `http://127.0.0.1:${await freePort()}/`
    const refused = await fetch(free).catch((error: Error) => error)
    const late = await fetch(free, { signal: AbortSignal.timeout(0) }).catch((error: Error) => error)
    for (const error of [
      refused,
      late,
      new Away('x'),
      new Error('x', { cause: new Away('y') }),
      sql('40001'),
      sql('57P01'),
      sql('53100'),
      sql('58030'),
      sql('25P03'),
      sql('25006'),
      Object.assign(new Error('getaddrinfo EAI_AGAIN'), { code: 'EAI_AGAIN' }),
      Object.assign(new Error('certificate has expired'), { code: 'CERT_HAS_EXPIRED' }),
    ])
      expect(isOutage(error)).toBe(true)
    for (const status of [401, 403, 429, 500, 502, 503]) expect(isOutage(refusalOf('it', status, 'that'))).toBe(true)
  })
  it('of the request is not', () => {
    const none = [
      new Error('wrong shape'),
      new TypeError('x is not a function'),
      new SyntaxError('no JSON'),
      sql('23505'),
      sql('25P02'),
      Object.assign(new Error('no such file'), { code: 'ENOENT' }),
      Object.assign(new Error('untrusted'), { code: 'SELF_SIGNED_CERT_IN_CHAIN' }),
      Object.assign(new TypeError('x'), { code: 'ERR_INVALID_ARG_TYPE' }),
    ]
    for (const error of [...none, undefined, 'words', refusalOf('it', 404, 'that'), refusalOf('it', 422, 'that')])
      expect(isOutage(error)).toBe(false)
  })
})

describe('the log of an outage', () => {
  const REFUSED = 'connect ECONNREFUSED 127.0.0.1:4201'
  const lines: Record<string, unknown>[] = []
  const into = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(JSON.parse(String(chunk)))
      done()
    },
  })
  const telemetry = { ...createTelemetry('outage'), log: pino(into) as never }
  const app = createHttpApp({ telemetry, codes: CATALOG_CODES, deadline_ms: 100 })
  app.get('/away', () => {
    throw new TypeError('fetch failed', { cause: Object.assign(new Error(REFUSED), { code: 'ECONNREFUSED' }) })
  })
  app.get('/late', async () => {
    await delay(300)
    throw new Error('its connection was cut')
  })
  app.get('/broken', () => {
    throw new TypeError('a fault of ours')
  })
  afterAll(() => app.close())
  const get = async (url: string) => (await app.inject({ url, headers: { 'x-request-deadline': '5000' } })).statusCode

  it('is one line without a stack, however many requests it refuses', async () => {
    for (let n = 0; n < 5; n += 1) expect(await get('/away')).toBe(503)
    expect(lines.splice(0)).toEqual([
      expect.objectContaining({ route: '/away', why: `fetch failed: ${REFUSED}`, code: 'unavailable' }),
    ])
  })

  it('is one line for an answer that came too late', async () => {
    expect(await get('/late')).toBe(503)
    await delay(400)
    expect(lines.splice(0)).toEqual([expect.objectContaining({ route: '/late', msg: 'The answer took too long.' })])
  })

  it('hides no fault of ours: each has its stack', async () => {
    for (let n = 0; n < 2; n += 1) expect(await get('/broken')).toBe(500)
    for (const line of lines) expect(line).toMatchObject({ err: { stack: expect.stringContaining('a fault of ours') } })
    expect(lines.splice(0)).toHaveLength(2)
  })
})
