import { sql } from 'drizzle-orm'
import pg from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { pruneOld } from '../../db/catalog/resources/commands.ts'
import { createDb, type Db } from '../../db/client.ts'
import { pruneKeys } from '../../db/command/keys.ts'
import { outbox } from '../../db/identity/tables.ts'
import { pruneInbox } from '../../db/inbox.ts'
import { pruneDrafts } from '../../db/operations/plans/prune.ts'
import { idempotency, inboxOf } from '../../db/operations/tables/index.ts'
import { pruneOutbox } from '../../db/outbox.ts'
import { testDatabase } from '../support/database.ts'

vi.setConfig({ testTimeout: 300_000 })

let database: Awaited<ReturnType<typeof testDatabase>>
let made: ReturnType<typeof createDb>
let admin: pg.Client
beforeAll(async () => {
  database = await testDatabase('catalog', 'operations', 'identity')
  // Statements end after two seconds, as those of the apps.
  made = createDb(database.url, { app: 'sweeps', max: 2 })
  admin = new pg.Client({ connectionString: database.url })
  await admin.connect()
}, 120_000)
afterAll(async () => {
  await admin?.end()
  await made?.close()
  await database?.drop()
})

const ROWS = 100_000
const OVER = 5000
const MARGIN = 10
const drained = async (turn: () => Promise<boolean>) => {
  while (await turn());
}
const old = (name: 'command_log' | 'observation_history', days: number) => (db: Db) =>
  drained(() => pruneOld(db, name, new Date(Date.now() - days * 86_400_000).toISOString()))

/** A table, the rows of a second at full load (growth.md), the days they are kept, a row of the time `t`, the sweep. */
type Case = [table: string, a_second: number, days: number, row: string, sweep: (db: Db) => Promise<unknown>]
it.each<Case>([
  [
    'operations.inbox',
    190,
    40,
    `(consumer, event_id, received_at) select 'c', gen_random_uuid(), t`,
    (db) => pruneInbox(db, inboxOf),
  ],
  [
    'operations.idempotency',
    60,
    7,
    `(caller, route, key, fingerprint, created_at) select 'u', 'POST', i::text, 'f', t`,
    (db) => pruneKeys(db, idempotency),
  ],
  [
    'operations.durations',
    50,
    400,
    `(step, operation_id, node_id, ms, at) select 's', gen_random_uuid(), 'n', 1, t`,
    pruneDrafts,
  ],
  [
    'identity.outbox',
    10,
    31,
    `(event_id, agg_type, agg_id, agg_version, type, payload, occurred_at, published_at) select gen_random_uuid(), 'u', i::text, 1, 't', '{}', t, t`,
    (db) => pruneOutbox(db, outbox),
  ],
  [
    'catalog.command_log',
    190,
    0,
    `(command_id, scope, idempotency_key, fingerprint, created_at, retain_until) select gen_random_uuid(), 's', i::text, 'f', t, t + interval '30 days'`,
    old('command_log', -30),
  ],
  [
    'catalog.observation_history',
    1000,
    30,
    `(rid, source, check_key, status, observed_at, expires_at, command_id) select i % 1000, 's', 'c', 'ok', t, t, gen_random_uuid()`,
    old('observation_history', 30),
  ],
])('%s: with %s new rows a second, the sweep keeps up tenfold', async (table, a_second, days, row, sweep) => {
  // In no order, as in a table whose space was used again and again.
  const [over, kept] = [`interval '2 days' * random()`, `interval '${days + 1} days' * random()`]
  await admin.query(
    `insert into ${table} ${row} from (select i, case when i % ${ROWS / OVER} = 0
       then now() - interval '${days} days' - ${over} else now() - interval '${days} days' + interval '1 min' + ${kept} end as t
     from generate_series(1, ${ROWS}) i) rows`,
  )
  await admin.query(`analyze ${table}`)
  const count = async () => Number((await admin.query(`select count(*) as n from ${table}`)).rows[0].n)
  /** Rows that the statements of the sweep have read without an index. */
  const read = async () => {
    const flush = () => made.db.execute(sql`select pg_stat_force_next_flush()`)
    await Promise.all([flush(), flush()])
    const { rows } = await admin.query(
      `select seq_tup_read as n from pg_stat_user_tables where relid = '${table}'::regclass`,
    )
    return Number(rows[0].n)
  }
  const before = await count()
  await admin.query('select pg_stat_force_next_flush()')
  const read_before = await read()
  const begun = performance.now()
  await sweep(made.db)
  const sweep_ms = performance.now() - begun
  // A month at full load is 26 million rows: to read them all takes longer than a statement may.
  expect((await read()) - read_before).toBe(0)
  const removed = before - (await count())
  const rate = Math.round((1000 * removed) / sweep_ms)
  console.log(`${table}: ${rate} rows a second removed, ${a_second} come at full load`)
  expect(removed).toBe(OVER)
  expect(rate).toBeGreaterThan(MARGIN * a_second)
})
