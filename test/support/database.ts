import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { sessionLock } from '../../db/locks.ts'
import { type Area, migrate } from '../../db/migrate.ts'

const MIGRATIONS = fileURLToPath(new URL('../../db/migrations', import.meta.url))

/** The servers of this run; set by `npm test`, or by hand to try one file against running servers. */
export const serverUrl = (name: 'DATABASE_URL' | 'REDIS_URL' | 'NATS_URL' | 'TEMPORAL_ADDRESS'): string => {
  const url = process.env[name]
  if (!url) throw new Error(`${name} is not set: run the tests by npm test, which starts the servers.`)
  return url
}

const hashOf = (folder: string): string => {
  const hash = createHash('sha256')
  for (const name of readdirSync(folder, { recursive: true }).map(String).sort()) {
    const path = join(folder, name)
    if (statSync(path).isFile()) hash.update(name).update(readFileSync(path))
  }
  return hash.digest('hex').slice(0, 12)
}

const withAdmin = async <T>(run: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: serverUrl('DATABASE_URL') })
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}

const urlOf = (database: string): string => {
  const url = new URL(serverUrl('DATABASE_URL'))
  url.pathname = `/${database}`
  return url.href
}

/** Creates a database, copied from a template that holds the migrated schemas of these areas. */
export const createMigrated = async (name: string, areas: readonly Area[]): Promise<void> => {
  const sorted = [...areas].sort()
  const template = `tpl_${createHash('sha256')
    .update(sorted.map((area) => `${area} ${hashOf(join(MIGRATIONS, area))}`).join())
    .digest('hex')
    .slice(0, 24)}`
  await withAdmin(async (admin) => {
    await admin.query(sessionLock.wait('testTemplate'))
    const { rowCount } = await admin.query('select 1 from pg_database where datname = $1 and datistemplate', [template])
    if (!rowCount) {
      await admin.query(`drop database if exists "${template}"`)
      await admin.query(`create database "${template}"`)
      await migrate(urlOf(template), sorted)
      await admin.query(`alter database "${template}" is_template true`)
    }
    await admin.query(`create database "${name}" template "${template}"`)
    await admin.query(sessionLock.free('testTemplate'))
  })
}

/** A new database for one test file. */
export const testDatabase = async (...areas: Area[]): Promise<{ url: string; drop: () => Promise<void> }> => {
  const name = `t_${randomBytes(6).toString('hex')}`
  await createMigrated(name, areas)
  return {
    url: urlOf(name),
    // Connections that are being closed get a moment for it: forcing them would cause an error in their holder.
    drop: () =>
      withAdmin(async (admin) => {
        const open = async () =>
          (await admin.query('select 1 from pg_stat_activity where datname = $1', [name])).rowCount ?? 0
        const end = performance.now() + 3000
        while ((await open()) > 0 && performance.now() < end) await delay(20)
        await admin.query(`drop database if exists "${name}" with (force)`)
      }),
  }
}
