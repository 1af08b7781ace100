import { randomUUID } from 'node:crypto'
import { type SQL, sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDb } from '../../db/client.ts'
import { getBrief } from '../../db/operations/gates/brief.ts'
import { getGateContext, listGuardingGates, listUnpassed } from '../../db/operations/gates/rows.ts'
import { listCone } from '../../db/operations/nodes/rows.ts'
import { testDatabase } from '../support/database.ts'

const LARGE = randomUUID()
const HOSTS = 2500
let database: Awaited<ReturnType<typeof testDatabase>>
let opened: ReturnType<typeof createDb>

/** Nodes of these operations in chains of four steps per host; the gate stands before the second. */
const fill = async (operation_ids: SQL, hosts: number) => {
  await opened.db.execute(sql`
    insert into operations.nodes (operation_id, node_id, ordinal, name, kind, executor, depends_on, gate_ids, spec, spec_digest, state, target_id)
    select o.id, s.step || '.' || h, s.rank * ${hosts} + h, s.step, 'task', 'fleet', case when s.before is null then '{}' else array[s.before || '.' || h] end,
      case when s.step = 'move' then array['cutover'] else '{}' end, '{"with": {}, "compensate": {"executor": "fleet"}}', '', 'pending', 'host' || h
    from (${operation_ids}) o(id), generate_series(1, ${hosts}) h,
      (values (0, 'drain', null), (1, 'move', 'drain'), (2, 'check', 'move'), (3, 'undrain', 'check')) s(rank, step, before)`)
}

const EMPTY: Record<string, string> = {
  jsonb: '{}',
  uuid: LARGE,
  integer: '0',
  bigint: '0',
  'timestamp with time zone': 'now',
  boolean: 'f',
}
/** A row with these values, and empty ones where the table requires any. */
const insert = async (table: string, given: Record<string, unknown>) => {
  const { db } = opened
  const { rows } = await db.execute<{ name: string; type: string }>(sql`
    select column_name as name, data_type as type from information_schema.columns where table_schema = 'operations'
      and table_name = ${table} and is_nullable = 'NO' and column_default is null and is_identity = 'NO' and is_generated = 'NEVER'`)
  const values = { ...Object.fromEntries(rows.map(({ name, type }) => [name, EMPTY[type] ?? ''])), ...given }
  const columns = sql.raw(Object.keys(values).join())
  await db.execute(sql`insert into ${sql.raw(`operations.${table}`)} (${columns}) select ${columns}
    from jsonb_populate_record(null::${sql.raw(`operations.${table}`)}, ${JSON.stringify(values)}::jsonb)`)
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
  const guards = Array.from({ length: HOSTS }, (_, host) => `move.${host + 1}`)
  const changes = guards.map((_, host) => ({ resource_id: `host${host + 1}` }))
  await insert('gates', {
    operation_id: LARGE,
    gate_id: 'cutover',
    guards: `{${guards}}`,
    subject: { changes },
    policy: { binds: ['nodes/drain/outputs'] },
  })
  for (const table of ['intents', 'plans', 'operations']) await insert(table, {})
  // A region for each host.
  await db.execute(sql`
    insert into operations.catalog_resources (resource_id, type_key, type_version, name, parent_id, version, lifecycle_status, labels, desired_state, observed_state)
    select c.id, c.type, 1, c.id, c.parent, 1, 'active', '{}', '{}', '{}' from (
      select 'host' || h as id, 'infra.generic' as type, 'region' || h as parent from generate_series(1, ${HOSTS}) h
      union all select 'region' || r, 'topology.region', null from generate_series(1, ${HOSTS}) r) c`)
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
      await getGateContext(db, LARGE, 'cutover')
      const brief = await getBrief(db, LARGE, 'cutover')
      const regions = brief?.targets.map(({ region_id }) => region_id)
      expect(regions).toEqual(brief?.targets.map(({ resource_id }) => resource_id.replace('host', 'region')))
      expect(regions).toHaveLength(HOSTS)
      await db.transaction((tx) => listGuardingGates(tx, LARGE, [node_id]))
    }
  },
)
