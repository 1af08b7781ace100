import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { createDb } from '../../db/client.ts'
import { pruneDrafts } from '../../db/operations/plans/prune.ts'
import { testDatabase } from '../support/database.ts'

it('forgets unstarted plans 90 days after their end, with their intents; started and waiting ones stay', async () => {
  const database = await testDatabase('operations')
  const { db, pool, close } = createDb(database.url, { app: 'test' })
  const add = async (name: string, status: string, days: number, operation_id: string | null = null) => {
    const [plan_id, intent_id] = [randomUUID(), randomUUID()]
    const at = new Date(Date.now() - days * 86_400_000)
    const intent_status = status === 'expired' ? 'expired' : operation_id ? 'started' : 'previewed'
    await pool.query(
      `insert into operations.intents (intent_id, status, kind, title, reason, request, targets_resolved, requester,
         requester_id, labels, constraints, updated_at, expires_at, operation_id)
       values ($1, $2, 'graph', $3, 'r', '{}', '[]', '{}', 'olga', '{}', '{}', $4, $4, $5)`,
      [intent_id, intent_status, name, at, operation_id],
    )
    await pool.query(
      `insert into operations.plans (plan_id, intent_id, status, plan_hash, semantic_digest, document, report, graph,
         requester_id, updated_at, expires_at, operation_id)
       values ($1, $2, $3, $4, 'd', '{}', '{}', '{}', 'olga', $5, $5, $6)`,
      [plan_id, intent_id, status, name, at, operation_id],
    )
  }
  await add('expired long ago', 'expired', 91)
  await add('expired', 'expired', 89)
  await add('replaced long ago', 'superseded', 91)
  await add('ready long ago', 'ready', 91)
  await add('started long ago', 'superseded', 91, randomUUID())
  await pool.query(
    `insert into operations.durations (step, operation_id, node_id, ms, at)
     select 's', gen_random_uuid(), d::text, 1, clock_timestamp() - d * interval '1 day' from generate_series(399, 401) d`,
  )
  await pool.query(
    `insert into operations.engine_findings (operation_id, found, handled_at)
     values (gen_random_uuid(), 'handled', clock_timestamp() - interval '401 days'), (gen_random_uuid(), 'open', null)`,
  )
  await pruneDrafts(db)
  const listed = async (query: string) =>
    (await pool.query<{ name: string }>(query)).rows.map(({ name }) => name).sort()
  expect(await listed('select plan_hash as name from operations.plans')).toEqual([
    'expired',
    'ready long ago',
    'started long ago',
  ])
  // An intent that may still be planned again keeps its place although its plan was removed.
  expect(await listed('select title as name from operations.intents')).toEqual([
    'expired',
    'ready long ago',
    'replaced long ago',
    'started long ago',
  ])
  expect(await listed('select node_id as name from operations.durations')).toEqual(['399'])
  expect(await listed('select found as name from operations.engine_findings')).toEqual(['open'])
  await close()
  await database.drop()
})
