import { randomUUID } from 'node:crypto'
import { type SQL, sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDb } from '../../db/client.ts'
import { listGuardingGates, listUnpassed } from '../../db/operations/gates/rows.ts'
import { listCone } from '../../db/operations/nodes/rows.ts'
import { testDatabase } from '../support/database.ts'

const LARGE = randomUUID()
const HOSTS = 2500
let database: Awaited<ReturnType<typeof testDatabase>>
let opened: ReturnType<typeof createDb>

/** Nodes of these operations in chains of four steps per host; the gate stands before the second. */
const fill = async (operation_ids: SQL, hosts: number) => {
  await opened.db.execute(sql`
    insert into operations.nodes (operation_id, node_id, ordinal, name, kind, executor, depends_on, gate_ids, spec, spec_digest, state)
    select o.id, s.step || '.' || h, s.rank * ${hosts} + h, s.step, 'task', 'fleet', case when s.before is null then '{}' else array[s.before || '.' || h] end,
      case when s.step = 'move' then array['cutover'] else '{}' end, '{"with": {}, "compensate": {"executor": "fleet"}}', '', 'pending'
    from (${operation_ids}) o(id), generate_series(1, ${hosts}) h,
      (values (0, 'drain', null), (1, 'move', 'drain'), (2, 'check', 'move'), (3, 'undrain', 'check')) s(rank, step, before)`)
}

beforeAll(async () => {
  database = await testDatabase('operations')
  opened = createDb(database.url, { app: 'test', max: 1 })
  const { db } = opened
  await db.execute(sql`set session_replication_role = replica`)
  await fill(sql`select gen_random_uuid() from generate_series(1, 300)`, 1)
  // What the planner believes from now on: an operation has four nodes.
  await db.execute(sql`alter table operations.nodes set (autovacuum_enabled = off)`)
  await db.execute(sql`analyze operations.nodes`)
  await fill(sql`select ${LARGE}::uuid`, HOSTS)
  await db.execute(sql`
    insert into operations.gates (operation_id, gate_id, ordinal, kind, question, policy, guards, subject, digest)
    select ${LARGE}, 'cutover', 0, 'approval', 'Go on?', '{"binds": ["nodes/drain/outputs"]}', array_agg(node_id), '{}', ''
    from operations.nodes where operation_id = ${LARGE} and node_id like 'move.%'`)
}, 120_000)
afterAll(async () => {
  await opened.close()
  await database.drop()
})

it.each(['drain.1', 'move.2487', `undrain.${HOSTS}`])(
  'a large operation beside many small ones is read within the time of a statement, whatever the planner expects: %s',
  async (node_id) => {
    const { db } = opened
    for (const mode of ['force_custom_plan', 'force_generic_plan']) {
      await db.execute(sql.raw(`set plan_cache_mode = ${mode}`))
      const unpassed = await listUnpassed(db, LARGE, node_id)
      expect(unpassed.map(({ gate_id }) => gate_id)).toEqual(node_id.startsWith('drain') ? [] : ['cutover'])
      await listCone(db, LARGE, node_id)
      await db.transaction((tx) => listGuardingGates(tx, LARGE, [node_id]))
    }
  },
)
