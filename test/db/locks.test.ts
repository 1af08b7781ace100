import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lockPacks } from '../../db/catalog/types.ts'
import { createDb, type Tx } from '../../db/client.ts'
import { KEYED, keyedLock, LOCKS, lockOf, tryLockOf } from '../../db/locks.ts'
import { lockKeys } from '../../db/token/queries.ts'
import { testDatabase } from '../support/database.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
let made: ReturnType<typeof createDb>
beforeAll(async () => {
  database = await testDatabase('token')
  made = createDb(database.url, { app: 'locks' })
})
afterAll(async () => {
  await made?.pool.end()
  await database?.drop()
})

/** Runs `work` in its own transaction, which does not wait for a lock, while `holding` is held in another. */
const beside = (holding: (tx: Tx) => Promise<unknown>, work: (tx: Tx) => Promise<unknown>) =>
  made.db.transaction(async (holder) => {
    await holding(holder)
    return made.db.transaction(async (tx) => {
      await tx.execute(sql`set local lock_timeout = '50ms'`)
      return work(tx)
    })
  })
const filesWith = (text: string): string[] =>
  ['apps', 'db', 'activities', 'workflows'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((file) => join(folder, file))
      .filter((file) => /\.(ts|sql)$/.test(file) && readFileSync(file, 'utf8').includes(text))
      .sort(),
  )
const waits = { cause: { code: '55P03' } }

describe('advisory locks', () => {
  it.each([LOCKS, KEYED])('have one meaning each', (names: Record<string, unknown>) => {
    const values = Object.values(names)
    expect(new Set(values).size).toBe(values.length)
  })

  it('are taken by name: no other file writes a call of its own', () => {
    expect(filesWith('pg_advisory')).toEqual(['db/locks.ts'])
  })

  it('of a session are taken only where no PgBouncer may be: one stays with a connection that others get', () => {
    expect(filesWith('sessionLock')).toEqual([
      'apps/platform/base/database.ts',
      'apps/relay/leader.ts',
      'db/locks.ts',
      'db/migrate.ts',
    ])
  })

  it('let a key be killed while packs load and a sweep runs', async () => {
    const busy = async (tx: Tx) => {
      await lockPacks(tx)
      await tx.execute(sql`select ${tryLockOf('sweeper')}`)
    }
    await beside(busy, lockKeys)
    await expect(beside(lockKeys, lockKeys)).rejects.toMatchObject(waits)
  })

  it('of one object lock only that object and kind', async () => {
    const lock = (kind: keyof typeof KEYED, key: string) => (tx: Tx) =>
      tx.execute(sql`select ${sql.raw(keyedLock(kind, `'${key}'`))}`)
    await beside(lock('catalog', 'a'), lock('catalog', 'b'))
    await beside(lock('catalog', 'a'), lock('places', 'a'))
    await expect(beside(lock('catalog', 'a'), lock('catalog', 'a'))).rejects.toMatchObject(waits)
  })

  it('are shared by readers and exclude a writer', async () => {
    const lock = (how: 'shared' | 'exclusive') => (tx: Tx) => tx.execute(sql`select ${lockOf('calendar', how)}`)
    await beside(lock('shared'), lock('shared'))
    await expect(beside(lock('shared'), lock('exclusive'))).rejects.toMatchObject(waits)
  })
})
