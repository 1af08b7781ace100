import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { createDb } from '../../../db/client.ts'
import { withConnection } from '../../../db/connection.ts'
import { migrate } from '../../../db/migrate.ts'
import type { CatalogProjection } from '../../operations/catalog/projection.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { databaseUrl } from '../base/database.ts'
import { signalboxDir } from '../base/paths.ts'
import { readIfThere } from '../base/record.ts'
import { directUrl, LONG_MS, OpsError, printTable, projectionOf } from './access.ts'

/** The tables of the projection: which columns of a row must be equal, and which rows count. */
type Projected = { name: string; key: string; columns: string[]; where?: string; keeps_more?: true; on_copy?: string }
const TABLES: Projected[] = [
  {
    name: 'catalog_resources',
    key: 'resource_id',
    columns: [
      ...['type_key', 'type_version', 'name', 'parent_id', 'version', 'lifecycle_status', 'health_status'],
      ...['labels', 'annotations', 'desired_state', 'observed_state'],
    ],
    on_copy: "change_seq = nextval('operations.catalog_change_seq'), updated_at = clock_timestamp()",
  },
  {
    name: 'catalog_relationships',
    key: 'relationship_id',
    columns: ['rev', 'type_key', 'from_id', 'to_id', 'properties'],
    where: 'open',
  },
  { name: 'catalog_health', key: 'resource_id', columns: ['status'] },
  // A type that the catalog no longer has stays, because resources of it may still exist.
  { name: 'catalog_types', key: 'type_key', columns: ['version', 'document'], keeps_more: true },
  { name: 'catalog_relationship_types', key: 'type_key', columns: ['inverse_key'], keeps_more: true },
]

type Rows = Map<string, string>
type Compared = Projected & { live: number; rebuilt: number; different: string[]; digests: [string, string] }

const read = async (db: pg.Client | pg.Pool, { name, key, columns, where }: Projected): Promise<Rows> => {
  const { rows } = await db.query<{ key: string; hash: string }>(
    `select ${key} as key, md5(jsonb_build_array(${columns.join(', ')})::text) as hash
     from operations.${name} ${where ? `where ${where}` : ''} order by 1`,
  )
  return new Map(rows.map(({ key, hash }) => [key, hash]))
}

const compare = async (live: pg.Client, rebuilt: pg.Pool): Promise<Compared[]> => {
  const all: Compared[] = []
  for (const one of TABLES) {
    const [a, b] = [await read(live, one), await read(rebuilt, one)]
    if (one.keeps_more) for (const key of a.keys()) if (!b.has(key)) a.delete(key)
    const different = [...new Set([...a.keys(), ...b.keys()])].filter((key) => a.get(key) !== b.get(key))
    const digest = (rows: Rows) =>
      sha256Hex(
        [...rows]
          .map((row) => row.join(' '))
          .sort()
          .join('\n'),
      ).slice(0, 16)
    all.push({ ...one, live: a.size, rebuilt: b.size, different, digests: [digest(a), digest(b)] })
  }
  return all
}

const TRIES = 6
const PAUSE_MS = 500
/** Both sides follow the catalog during the comparison, so only lasting differences count. */
const settled = async (live: pg.Client, rebuilt: pg.Pool, projection: CatalogProjection): Promise<Compared[]> => {
  for (let n = 1; ; n++) {
    await projection.catchUp()
    const found = await compare(live, rebuilt)
    if (n === TRIES || found.every(({ different }) => different.length === 0)) return found
    await delay(PAUSE_MS)
  }
}

/** Replaces the rows that differ with the rebuilt ones, while the projection's writers wait; readers continue. */
const replace = async (live: pg.Client, rebuilt: pg.Pool, projection: CatalogProjection): Promise<Compared[]> => {
  await live.query('begin')
  await live.query(
    `lock table ${[...TABLES.map(({ name }) => name), 'projection_version'].map((name) => `operations.${name}`).join(', ')} in share row exclusive mode`,
  )
  await projection.catchUp()
  for (const { name, key, different, on_copy } of await compare(live, rebuilt)) {
    if (different.length === 0) continue
    await live.query(`delete from operations.${name} where ${key} = any($1)`, [different])
    await copy(live, rebuilt, name, `where ${key} = any($1)`, [different])
    if (on_copy) await live.query(`update operations.${name} set ${on_copy} where ${key} = any($1)`, [different])
  }
  const { rows } = await rebuilt.query("select * from operations.projection_version where consumer = 'catalog'")
  for (const row of rows)
    await live.query(
      `insert into operations.projection_version as v (consumer, agg_type, agg_id, ver) values ('catalog', $1, $2, $3)
       on conflict (consumer, agg_type, agg_id) do update set ver = greatest(v.ver, excluded.ver), held = false`,
      [row.agg_type, row.agg_id, row.ver],
    )
  await live.query(
    "update operations.dead_letter set released_at = clock_timestamp() where consumer = 'catalog' and released_at is null",
  )
  const after = await compare(live, rebuilt)
  const equal = after.every(({ different }) => different.length === 0)
  await live.query(equal ? 'commit' : 'rollback')
  return after
}

const copy = async (live: pg.Client, rebuilt: pg.Pool, name: string, where: string, values: unknown[]) => {
  const { rows } = await rebuilt.query<{ row: unknown }>(
    `select to_jsonb(t) as row from operations.${name} t ${where}`,
    values,
  )
  for (const { row } of rows)
    await live.query(
      `insert into operations.${name} select * from jsonb_populate_record(null::operations.${name}, $1)`,
      [row],
    )
}

/** An account that may create the database in which the projection is rebuilt beside the current one. */
const adminUrl = (): string => {
  const url = process.env.DATABASE_URL ?? readIfThere<{ postgres: string }>(join(signalboxDir(), 'run.json'))?.postgres
  if (url) return url
  throw new OpsError('The platform is not running; set DATABASE_URL to an account that may create databases.')
}

const withClient = <T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> =>
  withConnection({ connectionString: url, application_name: 'ops', options: '-c timezone=UTC' }, work)

const print = (found: Compared[]) => {
  const rows = found.map(({ name, live, rebuilt, different, digests }) => [
    name,
    String(live),
    String(rebuilt),
    different.length === 0 ? 'none' : `${different.length}: ${different.slice(0, 3).join(', ')}`,
    ...digests,
  ])
  printTable(['TABLE', 'LIVE', 'REBUILT', 'DIFFERENT', 'DIGEST LIVE', 'DIGEST REBUILT'], rows)
}

/**
 * `rebuild catalog [--apply]`: rebuilds operations' projection of the catalog in a separate database, with the code
 * that follows the catalog in normal operation. Compares it with the current one. --apply replaces the differences in
 * one transaction, and only if both are equal afterwards. Exits 3 if they differ.
 */
export const rebuild = async (name: string | undefined, apply: boolean): Promise<number> => {
  if (name !== 'catalog')
    throw new OpsError("rebuild what? There are catalog (operations' copy of it) and operations (read models).")
  const live_name = new URL(directUrl('operations')).pathname.slice(1)
  const admin = adminUrl()
  const scratch = `signalbox_rebuild_${process.pid}`
  return withClient(databaseUrl(admin, live_name), async (live) => {
    await live.query(`create database ${scratch}`)
    const { db, pool, close } = createDb(databaseUrl(admin, scratch), {
      app: 'ops',
      max: 4,
      statement_timeout_ms: LONG_MS,
    })
    try {
      await migrate(databaseUrl(admin, scratch), ['operations'])
      const projection = projectionOf(db)
      const found = await settled(live, pool, projection)
      print(found)
      const differ = found.some(({ different }) => different.length > 0)
      if (!differ) console.log('The projection equals the catalog.')
      else if (!apply) console.log('They differ. With --apply the rebuilt rows take the place of those that differ.')
      if (!differ || !apply) return differ ? 3 : 0
      const after = await replace(live, pool, projection)
      print(after)
      const equal = after.every(({ different }) => different.length === 0)
      console.log(equal ? 'Replaced: the projection equals the catalog.' : 'Still not equal: no row was changed.')
      return equal ? 0 : 3
    } finally {
      await close()
      await live.query(`drop database if exists ${scratch} with (force)`)
    }
  })
}
