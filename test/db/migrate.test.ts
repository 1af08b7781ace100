import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { drizzle } from 'drizzle-orm/node-postgres'
import { migrate as applyMigrations } from 'drizzle-orm/node-postgres/migrator'
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../apps/shared/http/lifecycle.ts'
import { AREAS, type Area, migrate, requireMigrations } from '../../db/migrate.ts'
import { testDatabase } from '../support/database.ts'

/** The original migrations that the initial ones have replaced. */
const BEFORE = fileURLToPath(new URL('before', import.meta.url))
const REPLACED = ['catalog', 'identity', 'operations'] as const
type Replaced = (typeof REPLACED)[number]

let database: Awaited<ReturnType<typeof testDatabase>>
let client: pg.Client
const open = async (...areas: Area[]) => {
  database = await testDatabase(...areas)
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
}
const close = async () => {
  await client.end()
  await database.drop()
}
beforeEach(() => open())
afterEach(close)

/** Runs an area's replaced migrations, without the last `short` of them. */
const applyReplaced = async (area: Replaced, short = 0) => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-before-'))
  cpSync(join(BEFORE, area), folder, { recursive: true })
  const journal = join(folder, 'meta/_journal.json')
  const { entries, ...rest } = JSON.parse(readFileSync(journal, 'utf8')) as { entries: unknown[] }
  writeFileSync(journal, JSON.stringify({ ...rest, entries: entries.slice(0, entries.length - short) }))
  await applyMigrations(drizzle(client), {
    migrationsFolder: folder,
    migrationsSchema: 'migrations',
    migrationsTable: `migrations_${area}`,
  })
  rmSync(folder, { recursive: true })
}

const rowsOf = async (query: string) => (await client.query<Record<string, unknown>>(query)).rows
const journalOf = (area: Replaced) => rowsOf(`select hash, created_at from migrations.migrations_${area} order by id`)

/** Everything in the schemas, except the order of a table's columns. */
const schemas = async () => {
  const of = `nspname in ('catalog', 'identity', 'operations')`
  return [
    ...(await rowsOf(`select nspname, relname, relkind, reloptions, pg_get_viewdef(c.oid) as view
      from pg_class c join pg_namespace n on n.oid = relnamespace where ${of} order by 1, 2`)),
    ...(await rowsOf(`select nspname, relname, attname, format_type(atttypid, atttypmod), attnotnull, attidentity,
        attgenerated, attstorage, collname, pg_get_expr(adbin, adrelid) as "default"
      from pg_attribute a join pg_class c on c.oid = attrelid join pg_namespace n on n.oid = relnamespace
      left join pg_attrdef d on adrelid = attrelid and adnum = attnum left join pg_collation l on l.oid = attcollation
      where ${of} and relkind in ('r', 'v', 'S') and attnum > 0 and not attisdropped order by 1, 2, 3`)),
    ...(await rowsOf(`select conname, conrelid::regclass::text as on, pg_get_constraintdef(c.oid) as what
      from pg_constraint c join pg_namespace n on n.oid = connamespace where ${of} order by 2, 1`)),
    ...(await rowsOf(`select schemaname, indexname, indexdef from pg_indexes
      where schemaname in ('catalog', 'identity', 'operations') order by 1, 2`)),
    ...(await rowsOf(`select pg_get_functiondef(p.oid) from pg_proc p join pg_namespace n on n.oid = pronamespace
      where ${of} and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e') order by 1`)),
    ...(await rowsOf(`select tgname, pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = tgrelid
      join pg_namespace n on n.oid = relnamespace where ${of} and not tgisinternal order by 1`)),
  ]
}

it('a database at the last of the replaced migrations keeps its rows and has the schema of a new one', async () => {
  for (const area of REPLACED) await applyReplaced(area)
  await client.query(`insert into identity.dual_control default values`)
  await client.query(`insert into catalog.search_position (name, pub_seq) values ('search', 7)`)
  await client.query(`insert into operations.calendar_entries (freeze_id, entry, put_by) values ('f', '{}', 'user:a')`)
  await migrate(database.url)
  const taken = await schemas()
  const journals = await Promise.all(REPLACED.map(journalOf))
  expect(taken.length).toBeGreaterThan(1000)

  expect(await rowsOf('select id from identity.dual_control')).toEqual([{ id: true }])
  expect(await rowsOf('select name, pub_seq from catalog.search_position')).toEqual([{ name: 'search', pub_seq: '7' }])
  expect(await rowsOf('select freeze_id, put_by from operations.calendar_entries')).toEqual([
    { freeze_id: 'f', put_by: 'user:a' },
  ])
  await migrate(database.url) // the second start finds an existing database

  await close()
  await open(...AREAS)
  expect(taken).toEqual(await schemas())
  expect(journals).toEqual(await Promise.all(REPLACED.map(journalOf)))
})

it.each(REPLACED)('an older database of %s is refused unchanged, and so are the other areas', async (old) => {
  for (const area of REPLACED) await applyReplaced(area, area === old ? 1 : 0)
  const [before, journals] = [await schemas(), await Promise.all(REPLACED.map(journalOf))]
  await expect(migrate(database.url)).rejects.toThrow(
    new RegExp(`^${old}: an older build made this database .* Start the previous release on it once`),
  )
  expect(await schemas()).toEqual(before)
  expect(await Promise.all(REPLACED.map(journalOf))).toEqual(journals)
})

/** Undoes migrations of an area. */
const undo = async (area: string, which: string, how: string) => {
  await client.query(`delete from migrations.migrations_${area} where id in (${which})`)
  await client.query(how)
}
const isValid = async (index: string) =>
  (await rowsOf(`select indisvalid from pg_index where indexrelid = to_regclass('${index}')`))[0]?.indisvalid

/** Applied already, so they stay as they are. */
const BEFORE_THE_RULE = /\/(catalog\/0002_reservations|operations\/0005_overview)\.sql$/

it('migrations that only index existing tables can be built beside writers', () => {
  const folder = fileURLToPath(new URL('../../db/migrations', import.meta.url))
  const files = AREAS.flatMap((area) => readdirSync(join(folder, area)).map((name) => join(folder, area, name)))
  const indexing = files
    .filter((file) => file.endsWith('.sql') && !BEFORE_THE_RULE.test(file))
    .map((file) => readFileSync(file, 'utf8'))
  const only = indexing.filter((text) =>
    text.split(/;\s*/).every((one) => /^(-->.*\s)*(create( unique)? index|drop index|$)/i.test(one)),
  )
  expect(only.length).toBeGreaterThan(2)
  for (const text of only) expect(text).not.toMatch(/create( unique)? index (?!if not exists)/i)
})

/** Statements after which an older build no longer finds what it reads, or may no longer write what it writes. */
const CONTRACTS = [
  /\bdrop (table|column|schema|view|function|trigger|type)\b/i,
  /\brename\b/i,
  /\balter column\b/i,
  /\badd column (?!.*\bdefault\b).*\bnot null\b/i,
]
/** The rows of an older build may not satisfy these, unless the table is as new as the rule. */
const RULE = /\balter table (\S+) add constraint\b|\bcreate unique index .*?\bon (?:only )?(\S+)/i
const contractsIn = (text: string) => {
  const made = new Set(Array.from(text.matchAll(/\bcreate table (?:if not exists )?(\S+)/gi), ([, table]) => table))
  return text.split(/;\s*/).filter((statement) => {
    const one = statement.replaceAll(/\s+/g, ' ')
    const [, altered, indexed] = RULE.exec(one) ?? []
    const table = altered ?? indexed
    return (
      (table !== undefined && !made.has(table) && !HARMLESS.test(one)) ||
      CONTRACTS.some((contract) => contract.test(one))
    )
  })
}
/** The column of the first is as new, and an older build leaves it at its default. The second replaces a stricter one. */
const HARMLESS = /add constraint "users_kind"|index if not exists "scim_people_names"/i

it('no migration takes away what an older build uses beside the new one', () => {
  const folder = fileURLToPath(new URL('../../db/migrations', import.meta.url))
  for (const area of AREAS)
    for (const name of readdirSync(join(folder, area)).filter((one) => /^(?!0000_).*\.sql$/.test(one)))
      expect([area, name, contractsIn(readFileSync(join(folder, area, name), 'utf8'))]).toEqual([area, name, []])
  for (const text of [
    'ALTER TABLE "a"."b" DROP COLUMN "c"',
    'ALTER TABLE "a"."b" RENAME COLUMN "c" TO "d"',
    'ALTER TABLE "a"."b" ALTER COLUMN "c" SET DATA TYPE bigint',
    'ALTER TABLE "a"."b"\nADD COLUMN "c" text NOT NULL',
    'DROP TABLE "a"."b"',
    'ALTER TABLE "a"."b" ADD CONSTRAINT "c" CHECK ("d" > 0)',
    'CREATE UNIQUE INDEX IF NOT EXISTS "i" ON "a"."b" USING btree ("c")',
    'CREATE TABLE "a"."x" (); CREATE UNIQUE INDEX CONCURRENTLY "i" ON "a"."b" ("c")',
  ])
    expect(contractsIn(text), text).toHaveLength(1)
  expect(contractsIn(`ALTER TABLE "a"."b" ADD COLUMN "c" text DEFAULT 'x' NOT NULL; DROP INDEX "a"."i"`)).toEqual([])
  const own =
    'CREATE TABLE IF NOT EXISTS "a"."b" (); ALTER TABLE "a"."b" ADD CONSTRAINT "c" UNIQUE ("d"); CREATE UNIQUE INDEX "i" ON "a"."b" ("c")'
  expect(contractsIn(own)).toEqual([])
})

it('an app waits for the migrations of its build, and ends with their names if they do not come', async () => {
  const wait = (ms: number) => waitFor('Postgres', () => requireMigrations(client, 'token', 'catalog'), ms)
  await expect(wait(0)).rejects.toThrow('lacks the migrations token/0000_initial, catalog/0000_initial, catalog/0001')
  await migrate(database.url)
  await wait(0)
  const { rows } = await client.query<{ id: string }>(
    'delete from migrations.migrations_catalog where id = (select max(id) from migrations.migrations_catalog) returning *',
  )
  const last = readdirSync(fileURLToPath(new URL('../../db/migrations/catalog', import.meta.url)))
    .filter((name) => name.endsWith('.sql'))
    .at(-1)
  await expect(wait(0)).rejects.toThrow(
    `the database lacks the migrations catalog/${last?.replace('.sql', '')}: run "npm run migrate".`,
  )
  const waiting = wait(10_000)
  await client.query(
    'insert into migrations.migrations_catalog select * from json_populate_record(null::migrations.migrations_catalog, $1)',
    [rows[0]],
  )
  await waiting
  // A newer build has been here.
  await client.query("insert into migrations.migrations_catalog (hash, created_at) values ('newer', 9999999999999)")
  await wait(0)
})

it.each(['for the first time', 'after a build that was cut off'])(
  'an index is built beside writers, %s',
  async (when) => {
    await migrate(database.url)
    const index = 'operations.inbox_received_at_index'
    const last = 'select id from migrations.migrations_operations order by id desc limit 13'
    await undo('operations', last, `drop index ${index}`)
    const write = (of: pg.Client) =>
      of.query(`insert into operations.inbox (consumer, event_id, received_at) values ('a', gen_random_uuid(), now())`)
    const other = new pg.Client({ connectionString: database.url, statement_timeout: 2000 })
    await other.connect()
    try {
      // An unfinished writer: a lock on the whole table would wait for it, and every other writer for that lock.
      await client.query('begin')
      await write(client)
      if (when !== 'for the first time') {
        const build = 'create index concurrently inbox_received_at_index on operations.inbox (received_at)'
        await expect(other.query(build)).rejects.toThrow(/statement timeout/)
        expect(await isValid(index)).toBe(false)
      }
      const done = migrate(database.url)
      for (let n = 0; n < 20; n += 1) {
        await write(other)
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      await client.query('commit')
      await done
      expect(await isValid(index)).toBe(true)
    } finally {
      await other.end()
    }
  },
)

const OUTBOX_INDEX = 'identity.outbox_published_at_index'
it.each([
  [
    'an index behind another migration is built beside writers',
    'identity.outbox',
    'identity',
    '8, 9',
    `alter table identity.machine_credentials drop column networks, drop column told; drop index ${OUTBOX_INDEX}`,
  ],
  [
    'a migration that meets a lock lets writers pass, and is repeated',
    'operations.operation_control',
    'operations',
    '18',
    'alter table operations.operation_control drop column more_leases',
  ],
] as const)(
  '%s',
  async (_what, table, area, ids, how) => {
    await migrate(database.url)
    await undo(area, ids, how)
    const write = (of: pg.Client) => of.query(`delete from ${table} where false`)
    const other = new pg.Client({ connectionString: database.url, statement_timeout: 4000 })
    await other.connect()
    try {
      await client.query('begin')
      await write(client)
      const done = migrate(database.url)
      for (const end = Date.now() + 6000; Date.now() < end; ) {
        await write(other)
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      await client.query('commit')
      await done
      await requireMigrations(client, area)
      expect(await isValid(OUTBOX_INDEX)).toBe(true)
    } finally {
      await other.end()
    }
  },
  60_000,
)
