import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { createDb } from '../../db/client.ts'
import { outbox } from '../../db/identity/tables.ts'
import { pruneInbox } from '../../db/inbox.ts'
import { inboxOf } from '../../db/operations/tables/index.ts'
import { pruneOutbox } from '../../db/outbox.ts'
import { testDatabase } from '../support/database.ts'

it('forgets what was received 40 days ago and what went out a month ago; what has not gone out stays', async () => {
  const database = await testDatabase('identity', 'operations')
  const { db, pool, close } = createDb(database.url, { app: 'test' })
  await pool.query(
    `insert into operations.inbox (consumer, event_id, received_at)
     select 'catalog', gen_random_uuid(), clock_timestamp() - d * interval '1 day' from generate_series(1, 2100) d`,
  )
  expect(await pruneInbox(db, inboxOf)).toBe(2061)
  expect((await pool.query('select count(*)::int as n from operations.inbox')).rows).toEqual([{ n: 39 }])

  const write = (name: string, published_at: string | null) =>
    pool.query(
      `insert into identity.outbox (event_id, agg_type, agg_id, agg_version, type, payload, occurred_at, published_at)
       values ($1, 'user', $2, 1, 't', '{}', '2020-01-01', clock_timestamp() - $3::interval)`,
      [randomUUID(), name, published_at],
    )
  await write('waits', null)
  await write('recent', '30 days')
  await write('old', '32 days')
  expect(await pruneOutbox(db, outbox)).toBe(1)
  expect((await pool.query('select agg_id from identity.outbox order by 1')).rows).toEqual([
    { agg_id: 'recent' },
    { agg_id: 'waits' },
  ])
  await close()
  await database.drop()
})
