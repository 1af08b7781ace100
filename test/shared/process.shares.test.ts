import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Deadline, withinDeadline } from '../../apps/shared/process/deadline.ts'
import type { Priority } from '../../apps/shared/process/priority.ts'
import { createDb } from '../../db/client.ts'
import { testDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
const MAX = 20
const open = (max = MAX) => createDb(database.url, { app: 'shares', max, statement_timeout_ms: 5000 })

beforeAll(async () => {
  database = await testDatabase('catalog')
})
afterAll(() => database.drop())

const requestOf = (priority: Priority, refusal = 'too late') =>
  new Deadline(performance.now() + 20_000, () => new Error(refusal), priority)
const asked = (pg: ReturnType<typeof open>, priority: Priority, seconds: number) =>
  withinDeadline(requestOf(priority), async () => await pg.db.execute(sql`select pg_sleep(${seconds})`))

it('a flood of reads leaves connections for all higher classes, and is served by its own', async () => {
  const pg = open()
  try {
    let ended = 0
    const reads = Array.from({ length: 30 }, () => asked(pg, 'read', 0.3).then(() => (ended += 1)))
    await until(() => pg.pool.totalCount - pg.pool.idleCount === 6, { what: 'the share of reads in use' })
    const before = ended
    await Promise.all((['stop', 'enter', 'decide', 'write'] as const).map((priority) => asked(pg, priority, 0)))
    // They waited for no read: at most those in flight have ended in the meantime.
    expect(ended - before).toBeLessThanOrEqual(6)
    expect(pg.pool.totalCount).toBeLessThanOrEqual(6 + 4)
    await Promise.all(reads)
  } finally {
    await pg.close()
  }
})

it('a class may use what lower classes leave, and none of the higher ones', async () => {
  const pg = open()
  try {
    const decisions = Array.from({ length: 20 }, () => asked(pg, 'decide', 0.5))
    await until(() => pg.pool.totalCount - pg.pool.idleCount === 14, { what: 'what decisions may use' })
    const stops = Array.from({ length: 6 }, () => asked(pg, 'stop', 0.5))
    await until(() => pg.pool.totalCount - pg.pool.idleCount === MAX, { what: 'the rest in use' })
    await Promise.all([...decisions, ...stops])
  } finally {
    await pg.close()
  }
})

it('a request within a transaction gets another connection, even if its class has none left', async () => {
  const pg = open()
  try {
    const both = () =>
      withinDeadline(requestOf('batch'), () =>
        pg.db.transaction(async (tx) => {
          await tx.execute(sql`select 1`)
          return (await pg.db.execute<{ two: number }>(sql`select 2 as two`)).rows[0]?.two
        }),
      )
    expect(await Promise.all([both(), both(), both()])).toEqual([2, 2, 2])
  } finally {
    await pg.close()
  }
})

it.each(['exempt', 'read'] as const)(
  'a waiting request continues in its own context, not in that of the one that made room: %s',
  async (priority) => {
    const pg = open(1)
    try {
      const first = requestOf('exempt', 'the first one is over')
      const long = withinDeadline(first, async () => await pg.db.execute(sql`select pg_sleep(5)`)).catch(
        (error: Error) => error.message,
      )
      await until(() => pg.pool.totalCount - pg.pool.idleCount === 1)
      const second = withinDeadline(
        requestOf(priority),
        async () => await pg.db.execute<{ one: number }>(sql`select 1 as one`),
      )
      await first.end()
      expect(await long).toMatch(/first one is over|Failed query/)
      expect((await second).rows).toEqual([{ one: 1 }])
    } finally {
      await pg.close()
    }
  },
)

it('a stop or decision waits until the deadline for a slow statement; a read learns of a busy database', async () => {
  const pg = createDb(database.url, { app: 'shares', statement_timeout_ms: 300 })
  const slow = (priority: Priority, time_ms: number, seconds: number) =>
    withinDeadline(new Deadline(performance.now() + time_ms, () => new Error('too late'), priority), () =>
      pg.db.transaction(async (tx) => void (await tx.execute(sql`select pg_sleep(${seconds})`))),
    )
  const cancelled = { cause: { code: '57014' } }
  try {
    await Promise.all((['stop', 'enter', 'decide'] as const).map((priority) => slow(priority, 20_000, 2)))
    for (const priority of ['write', 'read', 'exempt'] as const)
      await expect(slow(priority, 20_000, 2)).rejects.toMatchObject(cancelled)
    await expect(slow('decide', 600, 20)).rejects.toMatchObject(cancelled)
    // The next transaction on the connection has the pool's timeout again.
    await expect(pg.db.transaction(async (tx) => await tx.execute(sql`select pg_sleep(2)`))).rejects.toMatchObject(
      cancelled,
    )
  } finally {
    await pg.close()
  }
})

it('a decision waits for a connection for as long as its caller does, and a read for two seconds', async () => {
  const pg = open(4)
  try {
    const held = Array.from({ length: 4 }, () => asked(pg, 'decide', 2.5))
    const [decision, read] = await Promise.allSettled([asked(pg, 'decide', 0), asked(pg, 'read', 0), ...held])
    expect(decision.status).toBe('fulfilled')
    expect(String((read as PromiseRejectedResult).reason.cause)).toContain('all connections of this class are in use')
  } finally {
    await pg.close()
  }
})
