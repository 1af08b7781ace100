import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { drizzle } from 'drizzle-orm/node-postgres'
import { migrate as applyMigrations } from 'drizzle-orm/node-postgres/migrator'
import pg from 'pg'
import { sessionLock } from './locks.ts'

/** The areas that own a schema; each has its own folder of migrations. */
export const AREAS = ['identity', 'credential', 'session', 'token', 'catalog', 'operations'] as const
export type Area = (typeof AREAS)[number]

const folderOf = (area: Area) => fileURLToPath(new URL(`./migrations/${area}`, import.meta.url))

type Journal = { entries: { when: number; tag: string }[] }

/**
 * Brings the schemas of the given areas up to date, as the database's owner. One at a time across processes, by an
 * advisory lock. Afterwards the applied rows are compared with the journal: drizzle's migrator skips a file with an
 * older stamp silently, so a shortfall stops the start here.
 */
export const migrate = async (url: string, areas: readonly Area[] | 'all' = 'all'): Promise<void> => {
  const client = new pg.Client({ connectionString: url, application_name: 'migrate', lock_timeout: 60_000 })
  await client.connect()
  try {
    await client.query(sessionLock.wait('migrate'))
    await client.query(
      'create extension if not exists ltree; create extension if not exists pg_trgm; create extension if not exists btree_gin',
    )
    for (const area of areas === 'all' ? AREAS : areas) {
      const migrationsFolder = folderOf(area)
      const table = `migrations_${area}`
      await applyMigrations(drizzle(client), {
        migrationsFolder,
        migrationsSchema: 'migrations',
        migrationsTable: table,
      })
      const { entries } = JSON.parse(readFileSync(`${migrationsFolder}/meta/_journal.json`, 'utf8')) as Journal
      const { rows } = await client.query<{ count: string }>(`select count(*) from migrations.${table}`)
      if (Number(rows[0]?.count) < entries.length) {
        throw new Error(
          `${area}: ${entries.length} migrations in the journal, ${rows[0]?.count} applied. A migration has an older stamp than one before it: generate it again.`,
        )
      }
    }
  } finally {
    await client.end()
  }
}
