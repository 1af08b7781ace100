import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { withConnection } from '../../../db/connection.ts'
import { connectNats } from '../../shared/events/events.ts'
import { databaseUrl } from '../base/database.ts'
import { QUICK_IMPORTS, ROOT } from '../base/paths.ts'
import { silentScreen } from '../base/screen.ts'
import { OpsError } from '../ops/access.ts'
import { APPS } from '../run/apps.ts'
import { runOf, startPlatform, writeRun } from '../run/supervisor.ts'
import { dataFolder } from '../servers/postgres.ts'
import { ensureServers } from '../servers/up.ts'

/** Fast hashes, patience on a busy machine, and an anchor each second: only the restore is measured. */
const SETTINGS = {
  CREDENTIAL__HASH__MEMORY_KIB: '1024',
  CREDENTIAL__HASH__TIME: '2',
  CREDENTIAL__HASH__PARALLELISM: '1',
  SIGNALBOX__PRESSURE__UTILISATION: '1',
  SIGNALBOX__PRESSURE__DELAY_MS: '60000',
  GATEWAY__PRESSURE__DELAY_MS: '60000',
  RELAY__AUDIT__ANCHOR_S: '1',
}
/** Servers named by these variables would not be ours to restore. */
const GIVEN = ['DATABASE_URL', 'REDIS_URL', 'NATS_URL', 'TEMPORAL_ADDRESS']

/** A whole platform in a separate folder, whose database can be saved and restored. */
export const openWorld = async (dir: string) => {
  if (existsSync(dir) && readdirSync(dir).length > 0)
    throw new OpsError(`${dir} is not empty: a drill needs an empty folder.`)
  mkdirSync(dir, { recursive: true, mode: 0o755 })
  for (const name of GIVEN) delete process.env[name]
  const destinations = [{ scheme: 'http', host: '*', networks: ['127.0.0.0/8'], ports: ['1024-65535'] }]
  const policy = {
    format: 'signalbox/executor-policy@1',
    pools: { default: { destinations, secrets: ['secret://file/fleet-*'] } },
  }
  const policy_file = join(dir, 'executor-policy.yaml')
  writeFileSync(policy_file, JSON.stringify(policy))
  const platform = await startPlatform({
    dir,
    programs: await ensureServers(silentScreen),
    any_ports: true,
    prefer_ports: { postgres: 0, redis: 0, nats: 0, temporal: 0, temporal_ui: 0 },
    fleet_port_base: 20_000 + (randomBytes(2).readUInt16BE() % 100) * 100,
    env_overrides: { ...SETTINGS, WORKER__EXECUTORS__POLICY_FILE: policy_file },
  })
  const { context, servers, apps, gateway_url } = platform
  writeRun(dir, runOf(platform))
  const { admin_url } = servers.postgres
  const database_url = databaseUrl(admin_url, context.database)
  const saved = join(dir, 'backup')
  const app = (name: string) => {
    const found = apps.get(name) ?? servers.managed.find((server) => server.name === name)
    if (!found) throw new Error(`${name} is not running`)
    return found
  }

  return {
    gateway_url,
    url: (name: string) => `http://127.0.0.1:${context.ports[name]?.http ?? context.ports[name]?.internal}`,
    internal: (name: string) => `http://127.0.0.1:${context.ports[name]?.internal}`,
    app,
    query: <T extends pg.QueryResultRow>(text: string): Promise<T[]> =>
      withClient(database_url, async (client) => (await client.query<T>(text)).rows),
    /** Lets a consumer read its stream from the start, as after a loss of NATS: it gets its earlier events again. */
    forgetConsumer: async (stream: string, durable: string): Promise<void> => {
      const nc = await connectNats(servers.nats.url('relay'), 'drill')
      await (await nc.jetstreamManager()).consumers.delete(stream, durable).finally(() => nc.close())
    },
    /** A base backup of the running server, with the log that makes it complete. */
    backup: () => baseBackup(admin_url, dataFolder(dir), saved),
    /** Restores the saved database and changes no other data. */
    restore: async (): Promise<void> => {
      await Promise.all(APPS.map(({ name }) => apps.get(name)?.stop()))
      await app('postgres').stop()
      rmSync(dataFolder(dir), { recursive: true })
      run('cp', ['-a', saved, dataFolder(dir)])
      await app('postgres').start()
      await Promise.all(APPS.map(({ name }) => apps.get(name)?.start()))
      writeRun(dir, runOf(platform))
    },
    /** Runs `npm run ops -- …` or `npm run admin -- …` on this platform, as a person would. */
    ops: (...args: string[]) => runVerb(dir, 'ops', args),
    admin: (...args: string[]) => runVerb(dir, 'admin', args),
    close: platform.stop,
  }
}
export type World = Awaited<ReturnType<typeof openWorld>>

const runVerb = (dir: string, verb: string, args: string[]): Promise<{ code: number | null; text: string }> =>
  new Promise((resolve) => {
    const child = spawn(
      process.execPath,
      ['--import', QUICK_IMPORTS, join(ROOT, `apps/platform/${verb}.ts`), ...args],
      { cwd: ROOT, env: { ...process.env, SIGNALBOX_DIR: dir, NO_COLOR: '1' }, stdio: ['ignore', 'pipe', 'pipe'] },
    )
    let text = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
    child.once('close', (code) => resolve({ code, text }))
  })

const withClient = <T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> =>
  withConnection({ connectionString: url, application_name: 'drill' }, work)

const run = (command: string, args: string[]) => {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
}

const baseBackup = (url: string, from: string, to: string): Promise<void> =>
  withClient(url, async (client) => {
    await client.query(`select pg_backup_start('drill', true)`)
    // The log compensates for files that change during the copy.
    spawnSync('cp', ['-a', from, to])
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
    rmSync(join(to, 'pg_wal'), { recursive: true })
    run('cp', ['-a', join(from, 'pg_wal'), join(to, 'pg_wal')])
    for (const name of ['postmaster.pid', 'postmaster.opts']) rmSync(join(to, name), { force: true })
    const label = join(to, 'backup_label')
    writeFileSync(label, rows[0]?.labelfile ?? '')
    run('chown', ['--reference', to, label])
  })
