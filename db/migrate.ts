import { hash as digestOf } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import pg from 'pg'
import { ConfigError } from '../apps/shared/config.ts'
import { sessionLock } from './locks.ts'

/** The areas that own a schema; each has its own migrations folder. */
export const AREAS = ['identity', 'credential', 'session', 'token', 'catalog', 'operations'] as const
export type Area = (typeof AREAS)[number]

const folderOf = (area: Area) => fileURLToPath(new URL(`./migrations/${area}`, import.meta.url))

/** SHA-256 over the hashes, in order, of the migrations replaced by an initial migration. */
const REPLACED: { [area in Area]?: string } = {
  catalog: 'dd7cb6d2380e940485f0fa6e899afa16bf9e3a9e9dd9a0de10c66031d3ec0d72',
  identity: 'ba656a8f3b43748105c8bad1c1206a53356f86e070a78148553f6636f33683f4',
  operations: '449695b487e0347f0dbf42e6b69cc5626b96ba7e13faf62d0443c564c3e57616',
}

/**
 * A database at the last of the replaced migrations already has the schema of the initial one: one journal row replaces
 * theirs. An older database is refused unchanged.
 */
const takeOver = async (client: pg.Client, area: Area): Promise<void> => {
  const table = `migrations.migrations_${area}`
  const { rows: found } = await client.query('select where to_regclass($1) is not null', [table])
  if (found.length === 0) return
  const { rows } = await client.query<{ hash: string }>(`select hash from ${table} order by created_at`)
  const [initial] = readMigrationFiles({ migrationsFolder: folderOf(area) })
  if (!initial || rows.length === 0 || rows[0]?.hash === initial.hash) return
  if (digestOf('sha256', rows.map((row) => row.hash).join('\n')) !== REPLACED[area]) {
    throw new Error(
      `${area}: an older build made this database (${rows.length} migrations applied). Start the previous release on it once, then this one. To drop the data instead: npm start -- --reset`,
    )
  }
  await client.query(`delete from ${table}`)
  await client.query(`insert into ${table} (hash, created_at) values ($1, $2)`, [initial.hash, initial.folderMillis])
}

const ASK_AGAIN_MS = 100
/** Asks until it is this process's turn. A statement that waited would hold a snapshot, and indexes wait for those. */
const takeTurn = async (client: pg.Client): Promise<void> => {
  for (;;) {
    const { rows } = await client.query<{ held: boolean }>(sessionLock.try('migrate'))
    if (rows[0]?.held) return
    await delay(ASK_AGAIN_MS)
  }
}

const INDEX = /^create (?:unique )?index if not exists ("[^"]+") on ("[^"]+")\./i
const OF_INDEXES = /^(create (unique )?index if not exists|drop index) /i

/** Builds the indexes of a migration that concerns only indexes, so that writers continue meanwhile. */
const buildIndexes = async (client: pg.Client, statements: readonly string[]): Promise<void> => {
  // It waits for transactions, not in their way.
  await client.query('set lock_timeout = 60000')
  for (const statement of statements) {
    const [, index, schema] = INDEX.exec(statement) ?? []
    if (!index || !schema) continue
    // An earlier build that was cut off has left an index that no query uses.
    const broken = 'select where exists (select from pg_index where indexrelid = to_regclass($1) and not indisvalid)'
    if ((await client.query(broken, [`${schema}.${index}`])).rows.length > 0)
      await client.query(`drop index concurrently ${schema}.${index}`)
    await client.query(statement.replace(/ index /i, ' index concurrently '))
  }
  await client.query('reset lock_timeout')
}

/** Who waits for the lock of a whole table makes all others wait behind it: it gives way to them, and tries again. */
const LOCK_MS = 2000
const TRIES = 60
const LOCK_TIMEOUT = '55P03'

/** Runs statements in one transaction, again if they met a lock. */
const inTurns = async (client: pg.Client, area: Area, run: () => Promise<void>): Promise<void> => {
  for (let tries = 1; ; tries += 1) {
    try {
      await client.query('begin')
      await run()
      await client.query('commit')
      return
    } catch (error) {
      await client.query('rollback').catch(() => {})
      if ((error as { code?: string }).code !== LOCK_TIMEOUT) throw error
      if (tries === TRIES)
        throw new Error(
          `${area}: a long transaction holds a table that a migration changes. End it, and migrate again.`,
        )
      await delay(LOCK_MS)
    }
  }
}

/** Applies the pending migrations of an area, each in a transaction of its own. */
const migrateArea = async (client: pg.Client, area: Area): Promise<void> => {
  const table = `migrations.migrations_${area}`
  await client.query(`create schema if not exists migrations;
    create table if not exists ${table} (id serial primary key, hash text not null, created_at bigint)`)
  const { rows } = await client.query<{ at: string }>(`select created_at as at from ${table}`)
  const applied = new Set(rows.map(({ at }) => Number(at)))
  for (const { folderMillis, hash, sql } of readMigrationFiles({ migrationsFolder: folderOf(area) })) {
    if (applied.has(folderMillis)) continue
    let statements = sql.map((one) => one.trim())
    // No one writes to a new database.
    if (applied.size > 0 && statements.every((one) => OF_INDEXES.test(one))) {
      await buildIndexes(client, statements)
      statements = statements.filter((one) => !INDEX.test(one))
    }
    await inTurns(client, area, async () => {
      for (const statement of statements) await client.query(statement)
      await client.query(`insert into ${table} (hash, created_at) values ($1, $2)`, [hash, folderMillis])
    })
  }
}

/** Updates the schemas of the given areas, as the database's owner. An advisory lock allows one run at a time. */
export const migrate = async (url: string, areas: readonly Area[] | 'all' = 'all'): Promise<void> => {
  const client = new pg.Client({ connectionString: url, application_name: 'migrate', lock_timeout: LOCK_MS })
  client.on('error', () => {}) // The statement in progress fails.
  await client.connect()
  try {
    await takeTurn(client)
    await client.query(
      'create extension if not exists ltree; create extension if not exists pg_trgm; create extension if not exists btree_gin',
    )
    const wanted = areas === 'all' ? AREAS : areas
    await client.query('begin') // All areas or none: no release starts on a partly migrated database.
    for (const area of wanted) await takeOver(client, area)
    await client.query('commit')
    for (const area of wanted) await migrateArea(client, area)
  } finally {
    await client.end()
  }
}

type Asked = Pick<pg.Pool | pg.Client, 'query'>
type Journal = { entries: { tag: string; when: number }[] }

/** The migrations of an area that this build has and the database lacks. A newer build's migrations do not matter. */
export const lackingMigrations = async (db: Asked, area: Area): Promise<string[]> => {
  const { entries } = JSON.parse(readFileSync(join(folderOf(area), 'meta/_journal.json'), 'utf8')) as Journal
  const table = `migrations.migrations_${area}`
  const { rows: found } = await db.query('select where to_regclass($1) is not null', [table])
  const { rows } =
    found.length > 0 ? await db.query<{ at: string }>(`select created_at as at from ${table}`) : { rows: [] }
  const applied = new Set(rows.map(({ at }) => Number(at)))
  return entries.filter(({ when }) => !applied.has(when)).map(({ tag }) => `${area}/${tag}`)
}

/**
 * Throws unless the database has every migration of this build. An app that started without one would fail only later,
 * when no process of the previous build is left.
 */
export const requireMigrations = async (db: Asked, ...areas: Area[]): Promise<void> => {
  const lacking: string[] = []
  for (const area of areas) lacking.push(...(await lackingMigrations(db, area)))
  if (lacking.length > 0)
    throw new ConfigError(`the database lacks the migrations ${lacking.join(', ')}: run "npm run migrate".`)
}
