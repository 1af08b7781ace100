import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { createDb } from '../../db/client.ts'
import { pruneEnrolmentTokens } from '../../db/credential/queries.ts'
import { pruneEndedSetups } from '../../db/credential/totp.ts'
import { pruneAssertions } from '../../db/identity/machines.ts'
import { outbox } from '../../db/identity/tables.ts'
import { pruneInbox } from '../../db/inbox.ts'
import { pruneDeliveries } from '../../db/operations/notifications/deliveries.ts'
import { inboxOf } from '../../db/operations/tables/index.ts'
import { pruneOutbox } from '../../db/outbox.ts'
import { testDatabase } from '../support/database.ts'

it('forgets events received 40 days ago and sent a month ago; unsent ones stay', async () => {
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

it('forgets only links, set-ups, sign-ins of machines and messages that are over', async () => {
  const database = await testDatabase('identity', 'credential', 'operations')
  const { db, pool, close } = createDb(database.url, { app: 'test' })
  const days = [6, 8, 29, 31, -1]
  const of = (d: string) => `clock_timestamp() - ${d} * interval '1 day'`
  const each = `unnest(array[${days}]) d`
  await pool.query(
    `insert into credential.enrolment_tokens (token_id, user_id, change_id, created_at, expires_at)
       select gen_random_uuid(), gen_random_uuid(), d::text, ${of('d')}, ${of('d')} from ${each}`,
  )
  await pool.query(
    `insert into credential.totp_ended (user_id, setup_id, ended_at)
       select gen_random_uuid(), lpad(abs(d)::text, 32, '0')::uuid, ${of('d')} from ${each}`,
  )
  await pool.query(
    `insert into identity.machine_assertions (credential_id, jti, expires_at) select gen_random_uuid(), d::text, ${of('d')} from ${each}`,
  )
  await pool.query(
    `insert into operations.notify_security (key, user_id, fact, added_at) select d::text, 'u', '{}', ${of('d')} from ${each}`,
  )
  await pool.query(
    `insert into operations.notify_deliveries (delivery_id, destination_id, owner, purpose, state, next_at, ended_at)
       select gen_random_uuid(), gen_random_uuid(), d::text, 'test', case d when 29 then 'queued' else 'sent' end,
         ${of('d')}, case d when 29 then null else ${of('d')} end from ${each}`,
  )
  await pruneEnrolmentTokens(db)
  await pruneEndedSetups(db)
  await pruneAssertions(db)
  await pruneDeliveries(db)
  const left = async (table: string, column: string) =>
    (await pool.query<{ n: string }>(`select ${column} as n from ${table}`)).rows.map(({ n }) => Number(n)).sort()
  expect(await left('credential.enrolment_tokens', 'change_id')).toEqual([-1, 6])
  expect(await left('credential.totp_ended', 'right(setup_id::text, 2)')).toEqual([1])
  expect(await left('identity.machine_assertions', 'jti')).toEqual([-1])
  expect(await left('operations.notify_security', 'key')).toEqual([-1, 29, 6, 8])
  expect(await left('operations.notify_deliveries', 'owner')).toEqual([-1, 29, 6, 8])
  await close()
  await database.drop()
})
