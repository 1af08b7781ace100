import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { Agent, request } from 'undici'
import { ensureInstallation } from '../../../apps/platform/base/installation.ts'
import { ROOT } from '../../../apps/platform/base/paths.ts'
import { createPorts } from '../../../apps/platform/base/ports.ts'
import { createProcess, type Managed } from '../../../apps/platform/base/process.ts'
import { silentScreen } from '../../../apps/platform/base/screen.ts'
import { APPS, entryOf } from '../../../apps/platform/run/apps.ts'
import { ensureServers, type Servers, startServers } from '../../../apps/platform/servers/up.ts'
import { withoutGivenServers } from '../../support/servers.ts'

/** A production installation from its own files alone: nothing but them and PATH reaches an app. */
export const ORIGIN = 'https://signalbox.example.com'
export const NAMES = APPS.map(({ name }) => name).filter((name) => name !== 'fleet')

export const filesBelow = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
  )

/** A folder `home` with the configuration in `out`, and the verbs that act on it. */
export const createInstallation = () => {
  const home = mkdtempSync(join(tmpdir(), 'signalbox-production-'))
  const out = join(home, 'config')
  const node = (...args: string[]) =>
    new Promise<{ status: number; text: string }>((resolve) => {
      const options = { cwd: home, env: { PATH: process.env.PATH } }
      execFile(process.execPath, args, options, (error, stdout, stderr) =>
        resolve({ status: Number(error?.code ?? 0), text: `${stdout}${stderr}` }),
      )
    })
  const verb = (name: string, ...args: string[]) => node(join(ROOT, `apps/platform/${name}.ts`), ...args)
  const envFilesOf = (app: string) => ['', '.secret'].map((kind) => `--env-file=${join(out, `env/${app}${kind}.env`)}`)
  return {
    home,
    out,
    node,
    verb,
    envFilesOf,
    setUp: (...args: string[]) => verb('deploy/setup', 'production', '--out', out, '--origin', ORIGIN, ...args),
    /** What a person edits: answers how to put it back. */
    edit: (file: string, change: (text: string) => string) => {
      const path = join(out, file)
      const before = readFileSync(path, 'utf8')
      const after = change(before)
      if (after === before) throw new Error(`${file} is as before`)
      writeFileSync(path, after)
      return () => writeFileSync(path, before)
    },
    shownBy: (app: string) =>
      new Agent({
        connect: {
          cert: readFileSync(join(out, `tls/${app}.pem`)),
          key: readFileSync(join(out, `tls/${app}.key`)),
          ca: readFileSync(join(out, 'tls/ca.pem')),
        },
      }),
  }
}
export type Installation = ReturnType<typeof createInstallation>

/** TLS before a server that has none of its own: Temporal's development server. */
const endTls = (port: number, target: string, out: string): Promise<Server> =>
  new Promise((resolve) => {
    const [host, target_port] = target.split(':')
    const pair = { cert: readFileSync(join(out, 'tls/temporal.pem')), key: readFileSync(join(out, 'tls/temporal.key')) }
    const server = createServer({ ...pair, ALPNProtocols: ['h2'] }, (secured) => {
      const plain = connect({ host, port: Number(target_port) })
      plain.on('error', () => secured.destroy())
      secured.on('error', () => plain.destroy())
      secured.pipe(plain).pipe(secured)
    })
    server.listen(port, '127.0.0.1', () => resolve(server))
  })

/** Servers by TLS, the database, and every app as a process of its own. */
export const startInstallation = async ({ home, out, setUp, verb, shownBy, envFilesOf }: Installation) => {
  const ports = createPorts()
  const take = (name: string) => ports.take(`secured ${name}`, 0)
  const [postgres, redis, nats, temporal] = [
    await take('postgres'),
    await take('redis'),
    await take('nats'),
    await take('temporal'),
  ]
  const identity = ensureInstallation(home)
  const made = await setUp(
    ...['--hosts', '127.0.0.1', '--data', home, '--namespace', identity.namespace],
    ...['--postgres', `postgres://localhost:${postgres}`, '--redis', `rediss://127.0.0.1:${redis}`],
    ...['--nats', `tls://127.0.0.1:${nats}`, '--temporal', `127.0.0.1:${temporal}`],
  )
  if (made.status !== 0) throw new Error(made.text)
  const { servers: secrets } = JSON.parse(readFileSync(join(out, 'keys/secrets.json'), 'utf8'))
  const servers: Servers = await withoutGivenServers(['postgres', 'redis', 'nats', 'temporal'], async () =>
    startServers({
      dir: home,
      programs: await ensureServers(silentScreen),
      secrets,
      installation: identity,
      prefer_ports: { postgres, redis, nats, temporal: 0, temporal_ui: 0 },
      tls: {
        ca_file: join(out, 'tls/ca.pem'),
        of: (server) => ({ cert_file: join(out, `tls/${server}.pem`), key_file: join(out, `tls/${server}.key`) }),
      },
    }),
  )
  const engine = await endTls(temporal, servers.temporal.address, out)
  // Listeners of this machine are shared with other tests: what a person edits stays.
  const moved = new Map<number, number>()
  for (const { name, http, internal } of APPS)
    for (const [, port] of [http, internal].filter((listener) => listener !== undefined))
      moved.set(port, await ports.take(`${name} ${port}`, 0))
  for (const file of filesBelow(join(out, 'env'))) {
    const text = readFileSync(file, 'utf8')
    const at = (port: string) => String(moved.get(Number(port)) ?? port)
    writeFileSync(file, text.replace(/(?<=PORT=|https:\/\/127\.0\.0\.1:)\d+/g, at))
  }
  const migrated = await verb('deploy/migrate', '--config', out, '--owner-url', servers.postgres.admin_url)
  if (migrated.status !== 0) throw new Error(migrated.text)
  const portOf = (app: string, listener: 'http' | 'internal') =>
    moved.get(APPS.find(({ name }) => name === app)?.[listener]?.[1] ?? 0)
  const apps: Managed[] = NAMES.map((name) =>
    createProcess(
      {
        name,
        command: () => ({
          command: process.execPath,
          args: [...envFilesOf(name), entryOf(name)],
          cwd: home,
          env: { PATH: process.env.PATH },
        }),
        probe: async () => {
          const internal = `https://127.0.0.1:${portOf(name, 'internal')}/health/ready`
          const { statusCode, body } = await request(internal, { dispatcher: shownBy(name) })
          const text = await body.text()
          if (statusCode !== 200) throw new Error(text)
        },
      },
      join(home, 'logs'),
    ),
  )
  const stop = async () => {
    await Promise.all(apps.map((app) => app.stop()))
    engine.close()
    await servers.stop()
  }
  try {
    await Promise.all(apps.map((app) => app.start()))
  } catch (error) {
    await stop()
    throw error
  }
  return { servers, portOf, stop }
}
