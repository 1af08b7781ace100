import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import pg from 'pg'
import { expect, it } from 'vitest'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { pruneOld } from '../../db/catalog/resources/commands.ts'
import { inboxOf as catalogInbox } from '../../db/catalog/tables.ts'
import { createDb } from '../../db/client.ts'
import { pruneKeys } from '../../db/command/keys.ts'
import { pruneEnrolmentTokens } from '../../db/credential/queries.ts'
import { pruneEndedSetups } from '../../db/credential/totp.ts'
import { pruneAssertions } from '../../db/identity/machines.ts'
import { pruneInbox } from '../../db/inbox.ts'
import { AREAS } from '../../db/migrate.ts'
import { expireArtifacts } from '../../db/operations/agents/artifacts.ts'
import { pruneAnswers } from '../../db/operations/agents/results.ts'
import { archiveLogs, expireLogs } from '../../db/operations/history/archive.ts'
import { pruneDeliveries } from '../../db/operations/notifications/deliveries.ts'
import { pruneDrafts } from '../../db/operations/plans/prune.ts'
import { pruneHookDeliveries } from '../../db/operations/plans/schedules.ts'
import { idempotency, inboxOf } from '../../db/operations/tables/index.ts'
import { testDatabase } from '../support/database.ts'

const GUIDE = 'apps/platform/deploy/guides/growth.md'
/** In each schema that publishes or consumes events. */
const COMMON = ['projection', 'projection_version', 'relay_state']

it('the guide names the bound of every table, and no other table', async () => {
  const database = await testDatabase(...AREAS)
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  const { rows } = await client.query<{ name: string }>(
    `select table_schema || '.' || table_name as name from information_schema.tables t
     where table_schema = any($1) and table_type = 'BASE TABLE' and not table_name = any($2)
       and not exists (select from pg_inherits where inhrelid = format('%I.%I', table_schema, table_name)::regclass)`,
    [AREAS, COMMON],
  )
  await client.end()
  await database.drop()
  const guide = readFileSync(join(ROOT, GUIDE), 'utf8')
  const named = [...guide.matchAll(/`((?:catalog|credential|identity|operations|session|token)\.\w+)`/g)].map(
    ([, n]) => n,
  )
  expect(named.toSorted()).toEqual(rows.map(({ name }) => name).toSorted())
})

/** As many rows as people, destinations or lost workflows: each is read through in milliseconds. */
const SMALL = ['engine_findings', 'notify_security']

it('expired rows are found by an index: a sweep scans no table that grows with operations', async () => {
  const database = await testDatabase(...AREAS)
  const { db, close } = createDb(database.url, { app: 'test', max: 1 })
  try {
    // Empty tables would be read through at once.
    await db.execute(sql`set enable_seqscan = off`)
    await db.execute(sql`select pg_stat_force_next_flush(), pg_stat_reset()`)
    const now = new Date().toISOString()
    for (const name of ['command_log', 'observation_history', 'relationship_history', 'provider_history'] as const)
      await pruneOld(db, name, now)
    await pruneKeys(db, idempotency)
    for (const tables of [inboxOf, catalogInbox]) await pruneInbox(db, tables)
    await pruneAssertions(db)
    await pruneEnrolmentTokens(db)
    await pruneEndedSetups(db)
    await pruneDeliveries(db)
    await pruneDrafts(db)
    await pruneHookDeliveries(db)
    await pruneAnswers(db)
    await archiveLogs(db, 7)
    await expireLogs(db, 90)
    await expireArtifacts(db, 90, async () => {})
    await db.execute(sql`select pg_stat_force_next_flush()`)
    const { rows } = await db.execute<{ name: string; seq_scan: string; idx_scan: string }>(
      sql`select relname as name, seq_scan, idx_scan from pg_stat_user_tables where seq_scan > 0 or idx_scan > 0`,
    )
    const by_index = rows.filter(({ idx_scan }) => Number(idx_scan) > 0).map(({ name }) => name)
    expect(by_index).toEqual(
      expect.arrayContaining([
        'inbox',
        'durations',
        'notify_deliveries',
        'idempotency',
        'log_chunks',
        'execution_results',
      ]),
    )
    expect(rows.filter(({ name, seq_scan }) => Number(seq_scan) > 0 && !SMALL.includes(name))).toEqual([])
  } finally {
    await close()
    await database.drop()
  }
})
