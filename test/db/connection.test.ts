import { randomUUID } from 'node:crypto'
import { sql, TransactionRollbackError } from 'drizzle-orm'
import { expect, it } from 'vitest'
import { isDatabaseAway } from '../../apps/shared/process/outage.ts'
import { openStamp } from '../../db/catalog/resources/stamps.ts'
import { createDb, type Queryable, together, transact } from '../../db/client.ts'
import { withConnection } from '../../db/connection.ts'
import { builtOnce } from '../../db/rows.ts'
import { serverUrl } from '../support/database.ts'

const config = { connectionString: serverUrl('DATABASE_URL'), application_name: 'test' }
const ask = (pid: number) =>
  withConnection(config, (client) => client.query('select pg_terminate_backend($1, 5000)', [pid]))

it('a connection that the server closes between two statements fails the next one, not the process', async () => {
  const work = withConnection(config, async (client) => {
    const ended = new Promise<void>((resolve) => client.once('end', () => resolve()))
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    await ask(rows[0]?.pid ?? 0)
    await ended
    return client.query('select 1')
  })
  await expect(work).rejects.toThrow()
})

it('a server that only reads since a fail-over counts as away, and the next statement goes to the new primary', async () => {
  const { db, close } = createDb(config.connectionString, { app: 'test', max: 1 })
  const name = `told_${randomUUID().replaceAll('-', '')}`
  const write = () =>
    db.transaction(async (tx) => {
      await tx.execute(sql.raw(`create table public.${name} ()`))
      await tx.execute(sql.raw(`drop table public.${name}`))
    })
  try {
    await db.execute(sql`set default_transaction_read_only = on`)
    expect(isDatabaseAway(await write().catch((error) => error))).toBe(true)
    await write()
  } finally {
    await close()
  }
})

it('a transaction that writes plans its statements once; one that reads plans for its values', async () => {
  const { db, close } = createDb(config.connectionString, { app: 'test' })
  const mode = async (on: Queryable) => {
    const { rows } = await on.execute<{ mode: string }>(sql`select current_setting('plan_cache_mode') as mode`)
    return rows[0]?.mode
  }
  try {
    expect(await db.transaction(mode)).toBe('force_generic_plan')
    expect(await db.transaction(mode, { isolationLevel: 'repeatable read', accessMode: 'read only' })).toBe('auto')
    expect(await mode(db)).toBe('auto')
  } finally {
    await close()
  }
})

it('prepares a repeated statement with or without values, but none of several in one text', async () => {
  const { pool, close } = createDb(config.connectionString, { app: 'test', max: 1 })
  const texts = ["select 'without values'", "select 'one'; select 'two'", 'show timezone']
  try {
    for (let n = 0; n < 3; n++) for (const text of texts) await pool.query(text)
    for (let n = 0; n < 3; n++) await pool.query('select $1::text', ['with values'])
    const { rows } = await pool.query<{ statement: string }>('select statement from pg_prepared_statements', [])
    const prepared = rows.map(({ statement }) => statement)
    expect(prepared).toEqual(expect.arrayContaining([texts[0], 'select $1::text']))
    expect(prepared).not.toEqual(expect.arrayContaining([expect.stringMatching(/one|show/)]))
  } finally {
    await close()
  }
})

it('a stamp is one statement at every time, so that it takes the place of no other', async () => {
  const { db, close } = createDb(config.connectionString, { app: 'test', max: 1 })
  try {
    for (const ms of [1, 2, 2]) await db.transaction((tx) => openStamp(tx, new Date(ms)))
    const { rows } = await db.execute<{ statement: string }>(sql`select statement from pg_prepared_statements`)
    const stamps = rows.map(({ statement }) => statement).filter((text) => text.includes('advisory'))
    expect(stamps).toEqual([expect.stringContaining('$1')])
  } finally {
    await close()
  }
})

it('a query that is built once runs where it is asked, with the values of each call', async () => {
  const { db, close } = createDb(config.connectionString, { app: 'test' })
  let built = 0
  const look = builtOnce(['told'], (on, { told }) => {
    built += 1
    return on
      .select({ pid: sql<number>`pg_backend_pid()`, told: sql<string>`${told}::text` })
      .from(sql`(values (1)) as one`)
  })
  const pidOf = async (on: Queryable) => {
    const { rows } = await on.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`)
    return rows[0]?.pid
  }
  try {
    await db.transaction(async (one) => {
      expect(await look(one, { told: 'a' })).toEqual([{ pid: await pidOf(one), told: 'a' }])
      await db.transaction(async (other) => {
        expect(await look(other, { told: 'b' })).toEqual([{ pid: await pidOf(other), told: 'b' }])
        expect(await pidOf(other)).not.toBe(await pidOf(one))
      })
    })
    expect(await look(db, { told: 'c' })).toMatchObject([{ told: 'c' }])
    expect(built).toBe(1)
    await expect(look(db, {} as { told: string })).rejects.toThrow('told')
  } finally {
    await close()
  }
})

it('a plan of a transaction finds rows by their keys, also if it was made while the table was small', async () => {
  const { db, close } = createDb(config.connectionString, { app: 'test', max: 1 })
  const plan = async (on: Queryable) => {
    const { rows } = await on.execute(sql`explain select from public.small where key = 1`)
    return JSON.stringify(rows)
  }
  try {
    await db.transaction(async (tx) => {
      await tx.execute(sql`create table public.small (key int primary key)`)
      await tx.execute(sql`insert into public.small values (1)`)
      await tx.execute(sql`analyze public.small`)
      expect(await plan(tx)).toContain('Index')
      await tx.execute(sql`set local enable_seqscan = on`)
      expect(await plan(tx)).toContain('Seq Scan')
      tx.rollback()
    })
  } catch (error) {
    if (!(error instanceof TransactionRollbackError)) throw error
  } finally {
    await close()
  }
})

it('steps sent together fail with the statement that failed, not with one that the server refused after it', async () => {
  const { db, close } = createDb(config.connectionString, { app: 'test', statement_timeout_ms: 200 })
  const steps = async (tx: Queryable) => {
    const first = tx.execute(sql`select 1`).then(() => tx.execute(sql`select 2`))
    await together(first, tx.execute(sql`select pg_sleep(5)`))
  }
  try {
    expect(isDatabaseAway(await db.transaction(steps).catch((error) => error))).toBe(true)
    const last = transact(db, async (tx, last) => {
      await tx.execute(sql`select 1`)
      last(tx.execute(sql`select pg_sleep(5)`))
    })
    expect(isDatabaseAway(await last.catch((error) => error))).toBe(true)
  } finally {
    await close()
  }
})
