import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createHttpApp, listen } from '../../apps/shared/http/app.ts'
import { CATALOG_CODES } from '../../apps/shared/http/edge-codes.ts'
import { apart } from '../../apps/shared/process/deadline.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { createDb, transact } from '../../db/client.ts'
import { testDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
let pg: ReturnType<typeof createDb>
let app: ReturnType<typeof createHttpApp>
let url: string
const stays: Promise<unknown>[] = []

const DEADLINE_MS = 400

beforeAll(async () => {
  database = await testDatabase('catalog')
  pg = createDb(database.url, { app: 'late', max: 4, statement_timeout_ms: 5000 })
  await pg.pool.query('create table note (body text)')
  app = createHttpApp({ telemetry: createTelemetry('late'), codes: CATALOG_CODES, deadline_ms: DEADLINE_MS })
  app.post('/long-statement', () =>
    pg.db.transaction(async (tx) => {
      await tx.execute(sql`insert into note values ('long-statement')`)
      await tx.execute(sql`select pg_sleep(3)`)
    }),
  )
  app.post('/many-statements', () =>
    transact(pg.db, async (tx, last) => {
      await tx.execute(sql`insert into note values ('many-statements')`)
      for (let i = 0; i < 100; i++) await tx.execute(sql`select pg_sleep(0.02)`)
      last(tx.execute(sql`insert into note values ('many-statements')`))
    }),
  )
  app.post('/thinking', () =>
    pg.db.transaction(async (tx) => {
      await tx.execute(sql`insert into note values ('thinking')`)
      await delay(DEADLINE_MS + 200)
    }),
  )
  app.post('/blocking', () =>
    pg.db.transaction(async (tx) => {
      await tx.execute(sql`insert into note values ('blocking')`)
      const end = performance.now() + DEADLINE_MS + 100
      while (performance.now() < end);
    }),
  )
  app.get('/read', () => pg.db.execute(sql`select pg_sleep(3)`))
  app.post('/write-and-go', () =>
    pg.db.transaction(async (tx) => {
      await tx.execute(sql`select pg_sleep(0.2)`)
      await tx.execute(sql`insert into note values ('write-and-go')`)
    }),
  )
  app.post('/in-time', async () => {
    await pg.db.transaction((tx) => tx.execute(sql`insert into note values ('in-time')`))
    return { done: true }
  })
  app.post('/apart', async () => {
    stays.push(
      apart(() => pg.db.transaction((tx) => tx.execute(sql`insert into note select 'apart' from pg_sleep(0.7)`))),
    )
    await delay(5000)
  })
  url = await listen(app, '127.0.0.1', 0)
})
afterAll(async () => {
  await app.close()
  await pg.close()
  await database.drop()
})
beforeEach(() => pg.pool.query('delete from note'))

const notes = async () => (await pg.pool.query<{ body: string }>('select body from note')).rows.map(({ body }) => body)
/** Statements and transactions of this pool that the server still works on. */
const busy = async () => {
  const { rows } = await pg.pool.query(
    `select query from pg_stat_activity where application_name = 'late' and datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()`,
  )
  return rows
}
const post = (path: string, init: RequestInit = {}) => fetch(`${url}${path}`, { method: 'POST', ...init })

describe('the deadline of a request', () => {
  it.each(['long-statement', 'many-statements', 'thinking', 'blocking'])(
    'ends its transaction wherever it is, and no part of it is stored: %s',
    async (name) => {
      const started = performance.now()
      const reply = await post(`/${name}`)
      expect({ status: reply.status, body: await reply.json() }).toMatchObject({
        status: 503,
        body: {
          code: 'unavailable',
          detail: expect.stringMatching(/^The (answer took too long|database was too busy)\.$/),
          retryable: true,
        },
      })
      expect(performance.now() - started).toBeLessThan(DEADLINE_MS + 1500)
      await until(async () => (await busy()).length === 0, { what: 'the server to let go', timeout_ms: 1500 })
      expect(await notes()).toEqual([])
    },
  )

  it('ends a read outside a transaction, and its connection serves the next one', async () => {
    expect((await fetch(`${url}/read`)).status).toBe(503)
    await until(async () => (await busy()).length === 0, { what: 'the server to let go', timeout_ms: 1500 })
    expect((await post('/in-time')).status).toBe(200)
    expect(await notes()).toEqual(['in-time'])
  })

  it('ends a read whose caller left, and lets a write finish', async () => {
    const gone = AbortSignal.timeout(50)
    await expect(fetch(`${url}/read`, { signal: gone })).rejects.toThrow()
    await until(async () => (await busy()).length === 0, { what: 'the server to let go', timeout_ms: 1500 })
    // Aborted once the server is at work. On a busy machine its deadline may pass first: then it tries again.
    for (let left = false; !left; ) {
      const leaving = new AbortController()
      const gone_away = post('/write-and-go', { signal: leaving.signal }).then(
        () => false,
        () => true,
      )
      const over = { now: false }
      void gone_away.then(() => (over.now = true))
      await until(async () => over.now || (await busy()).length > 0, { what: 'the server at work', every_ms: 5 })
      leaving.abort()
      left = await gone_away
    }
    await until(async () => (await notes()).length > 0, { what: 'the write' })
    expect(await notes()).toEqual(['write-and-go'])
  })

  it('never affects work that a request starts for others', async () => {
    expect((await post('/apart')).status).toBe(503)
    await Promise.all(stays)
    expect(await notes()).toEqual(['apart'])
  })
})
