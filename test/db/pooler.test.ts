import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, chownSync, cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { cacheDir, ROOT } from '../../apps/platform/base/paths.ts'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { weakPostgres } from '../../apps/platform/deploy/doctor/weaknesses.ts'
import { directUrl, withDb } from '../../apps/platform/ops/access.ts'
import { locate } from '../../apps/platform/servers/sources.ts'
import { loadLinks } from '../../apps/shared/links.ts'
import { loadTokenConfig } from '../../apps/token/config.ts'
import { killKey } from '../../apps/token/keys.service.ts'
import { createDeps, keySettingsOf } from '../../apps/token/wire.ts'
import { readGraph } from '../../db/catalog/relationships/graph-load.ts'
import { createDb, ONE_ACT } from '../../db/client.ts'
import { withConnection } from '../../db/connection.ts'
import { lockOf } from '../../db/locks.ts'
import { startPlatform } from '../operations/support/platform.ts'
import { startWorker } from '../operations/support/worker.ts'
import { testDatabase } from '../support/database.ts'
import { testServices } from '../support/services.ts'
import { found, unpacked } from '../support/unpacked.ts'
import { until } from '../support/until.ts'

/** A real PgBouncer in transaction mode, with four server connections for all clients of a database. */
let database: Awaited<ReturnType<typeof testDatabase>>
let bouncer: ChildProcess
let folder: string
let url: string
const NOBODY = 65_534
const root = process.getuid?.() === 0

beforeAll(async () => {
  const home = join(cacheDir(), 'pgbouncer')
  const packages = ['pgbouncer', 'libevent-2.1-7', 'libc-ares2']
  const sources = [
    found('/usr/sbin/pgbouncer'),
    found(join(home, 'usr/sbin/pgbouncer')),
    unpacked(home, packages, 'usr/sbin/pgbouncer'),
  ]
  const located = await locate('pgbouncer', sources, 'install PgBouncer.', createScreen())
  database = await testDatabase('operations')
  folder = mkdtempSync(join(tmpdir(), 'pgbouncer-'))
  chmodSync(folder, 0o755)
  // Other users cannot read root's cache, and PgBouncer refuses to run as root.
  const near = join(folder, 'root')
  const ours = located.startsWith(home)
  if (ours) cpSync(home, near, { recursive: true, verbatimSymlinks: true })
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  const to = new URL(database.url)
  const name = to.pathname.slice(1)
  const target = `host=${to.hostname} port=${to.port} user=${to.username} password='${decodeURIComponent(to.password)}'`
  const settings = ['listen_addr = 127.0.0.1', `listen_port = ${port}`, 'unix_socket_dir =', 'auth_type = any']
  const pool = ['pool_mode = transaction', 'default_pool_size = 4', 'max_client_conn = 200']
  writeFileSync(
    join(folder, 'ini'),
    ['[databases]', `* = ${target}`, '[pgbouncer]', ...settings, ...pool, ''].join('\n'),
  )
  if (root) chownSync(join(folder, 'ini'), NOBODY, NOBODY)
  const libraries = join(near, 'usr/lib', `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`)
  bouncer = spawn(ours ? located.replace(home, near) : located, [join(folder, 'ini')], {
    ...{
      stdio: ['ignore', 'ignore', 'pipe'] as const,
      env: existsSync(libraries) ? { LD_LIBRARY_PATH: libraries } : {},
    },
    ...(root && { uid: NOBODY, gid: NOBODY }),
  })
  let said = ''
  bouncer.stderr?.on('data', (chunk) => (said += chunk))
  await until(() => /process up/.test(said), { what: `PgBouncer: ${said}` })
  url = `postgres://${to.username}@127.0.0.1:${port}/${name}`
}, 300_000)
afterAll(async () => {
  bouncer?.kill('SIGKILL')
  await database?.drop()
  rmSync(folder, { recursive: true, force: true })
})

const behind = (of: string) => `${url.replace(/[^/]*$/, '')}${new URL(of).pathname.slice(1)}?pooler=transaction`

it('a URL that does not name the pooler is refused by it, so that no timeout is lost unseen', async () => {
  const { db, close } = createDb(url, { app: 'test' })
  await expect(db.execute(sql`select 1`)).rejects.toThrow()
  await close()
})

it('a repair goes to Postgres itself, where it has its own time-out', async () => {
  const { password } = new URL(database.url)
  process.env.CATALOG__DATABASE__URL = Object.assign(new URL(behind(database.url)), { password }).href
  process.env.RELAY__DATABASE__URL = database.url
  try {
    const { rows } = await withDb('catalog', (db) => db.execute(sql`show statement_timeout`))
    expect(rows).toEqual([{ statement_timeout: '1min' }])
  } finally {
    delete process.env.CATALOG__DATABASE__URL
    delete process.env.RELAY__DATABASE__URL
  }
})

it('a repair has port and database from the URL of the relay, whatever that of the pooler names', () => {
  process.env.CATALOG__DATABASE__URL = 'postgres://catalog:secret@pooler:6432/alias?pooler=transaction'
  process.env.RELAY__DATABASE__URL = 'postgres://relay:other@db.internal/signalbox?sslmode=verify-full'
  try {
    expect(directUrl('catalog')).toBe('postgres://catalog:secret@db.internal/signalbox?sslmode=verify-full')
  } finally {
    delete process.env.CATALOG__DATABASE__URL
    delete process.env.RELAY__DATABASE__URL
  }
})

it('the doctor names a pooler missing from a URL, and one that a URL names but does not exist', async () => {
  const look = async (app: string, at: string) =>
    (await weakPostgres({ app, links: loadLinks({}), prefix: '', namespace: '' }, at)).map(([what]) => what).join()
  const [unsaid, missing] = ['a pooler is before Postgres, and its URL does not say so', 'but no pooler answers']
  for (const app of ['operations', 'relay']) expect(await look(app, url)).toContain(unsaid)
  expect(await look('operations', `${url}?pooler=transaction`)).not.toMatch(/pooler/)
  expect(await look('operations', database.url)).not.toMatch(/pooler/)
  expect(await look('operations', `${database.url}?pooler=transaction`)).toContain(missing)
})

it('the doctor names a server with fewer connections than two of each app take, unless a pooler shares them', async () => {
  await withConnection({ connectionString: database.url }, async (client) => {
    await client.query('create schema doctor')
    await client.query(`create view doctor.pg_settings as select name,
      case name when 'max_connections' then '100' else setting end as setting from pg_catalog.pg_settings`)
  })
  const few = '?options=-c%20search_path%3Ddoctor,pg_catalog'
  const look = async (app: string, at: string) =>
    (await weakPostgres({ app, links: loadLinks({}), prefix: '', namespace: '' }, at)).map(([what]) => what).join()
  expect(await look('operations', `${database.url}${few}`)).toContain('max_connections is 100')
  expect(await look('relay', `${database.url}${few}`)).not.toContain('max_connections')
  for (const at of [database.url, url]) expect(await look('operations', at)).not.toContain('max_connections')
})

it('through the pooler each statement, transaction and lock is correct, and no state of one caller reaches the next', async () => {
  await withConnection({ connectionString: database.url }, (client) =>
    client.query('create table public.sums (id int, n int)'),
  )
  await withConnection({ connectionString: database.url }, (client) =>
    client.query('insert into public.sums values (1, 0)'),
  )
  const { db, close } = createDb(`${url}?pooler=transaction`, { ...ONE_ACT, app: 'test', max: 20 })
  try {
    const rounds = Array.from({ length: 300 }, (_, i) => i)
    const seen = await Promise.all(
      rounds.map(async (i) => {
        const { rows } = await db.execute<{ i: number }>(sql`select ${i}::int as i`)
        await db.transaction(async (tx) => {
          await tx.execute(sql`select ${lockOf('sweeper')}`)
          const { rows: sums } = await tx.execute<{ n: number }>(sql`select n from public.sums where id = ${1}`)
          await tx.execute(sql`update public.sums set n = ${(sums[0]?.n ?? 0) + 1} where id = ${1}`)
        })
        return rows[0]?.i
      }),
    )
    expect(seen).toEqual(rounds)
    const { rows } = await db.execute<{ n: number; mode: string }>(
      sql`select n, current_setting('plan_cache_mode') as mode from public.sums`,
    )
    expect(rows).toEqual([{ n: 300, mode: 'auto' }])
    const failed = db.transaction(async (tx) => {
      await tx.execute(sql`update public.sums set n = 0`)
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    expect((await db.execute<{ n: number }>(sql`select n from public.sums`)).rows).toEqual([{ n: 300 }])
  } finally {
    await close()
  }
}, 60_000)

it('token listens to no connection of it, and stops signing with a killed key at its next look', async () => {
  const own = await testDatabase('token')
  const services = testServices()
  const config = loadTokenConfig({
    TOKEN__DATABASE__URL: behind(own.url),
    TOKEN__SECRET__KEYS: JSON.stringify([randomBytes(32).toString('base64')]),
    TOKEN__KEYS__KEK: randomBytes(32).toString('base64'),
    AUTH__SERVICES__FILE: services.registry_file,
  })
  const deps = await createDeps(config)
  const { db, close } = createDb(own.url, { app: 'test' })
  try {
    const kid = deps.keyring.active()?.kid ?? ''
    expect(await killKey(keySettingsOf(config, db), kid)).toBe('killed')
    const changed = () => ![kid, undefined].includes(deps.keyring.active()?.kid)
    await until(changed, { what: 'the next key' })
    const { rows } = await db.execute(
      sql`select query from pg_stat_activity where datname = current_database() and query ilike 'listen%'`,
    )
    expect(rows).toEqual([])
  } finally {
    await deps.close()
    await close()
    services.remove()
    await own.drop()
  }
}, 60_000)

it('the graph of the catalog is read over two of its connections with the same snapshot', async () => {
  const catalog = await testDatabase('catalog')
  const heads: unknown[] = []
  await readGraph(behind(catalog.url), { onHead: (head) => heads.push(head), onPiece: () => {} })
  expect(heads).toMatchObject([{ max_rid: 0 }])
  await catalog.drop()
})

it('operations and its worker run behind it: one of many votes decides, and the operation ends with its evidence', async () => {
  const p = await startPlatform({ instances: 2, behind })
  const worker = await startWorker(p, join(ROOT, 'activities/executors/policy.yaml'))
  try {
    const node = (node_id: string, depends_on: string[]) => ({ node_id, executor: 'noop', with: {}, depends_on })
    const { operation_id } = await p.startOperation({
      nodes: [node('a', []), ...Array.from({ length: 20 }, (_, i) => node(`b${i}`, ['a']))],
      gates: [{ gate_id: 'go', guards: ['a'], policy: { approvals: { groups: [{ group: 'netops', min: 1 }] } } }],
    })
    const path = `/v1/operations/${operation_id}`
    const gate = await until(
      async () => {
        const { body } = await p.as('eva').get(`${path}/gates/go`)
        return body.status === 'waiting' ? body : undefined
      },
      { what: 'the gate' },
    )
    const vote = { reviewed_digest: gate.digest, round: gate.round }
    const votes = await Promise.all(
      Array.from({ length: 24 }, (_, i) =>
        p
          .as(i % 2 ? 'eva' : 'ada')
          .post(`${path}/gates/go/${i % 3 ? 'approve' : 'reject'}`, i % 3 ? vote : { ...vote, reason: 'no' }, {
            instance: i % 2,
          }),
      ),
    )
    expect(votes.filter(({ status }) => status < 300)).toHaveLength(1)
    const won = (await p.as('vic').get(`${path}/gates/go`)).body.status
    const end = await until(
      async () => {
        const { body } = await p.as('vic').get(path)
        return ['succeeded', 'blocked'].includes(body.status) ? body : undefined
      },
      { what: 'the end' },
    )
    expect(end.status).toBe(won === 'approved' ? 'succeeded' : 'blocked')
  } finally {
    await worker.stop()
    await p.stop()
    await worker.end()
  }
}, 240_000)
