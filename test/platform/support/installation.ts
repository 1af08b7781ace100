import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { connect as connectHttp2, constants, createSecureServer, type IncomingHttpHeaders } from 'node:http2'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Agent, request } from 'undici'
import { ensureInstallation } from '../../../apps/platform/base/installation.ts'
import { cacheDir, QUICK_IMPORTS, ROOT } from '../../../apps/platform/base/paths.ts'
import { createPorts } from '../../../apps/platform/base/ports.ts'
import { createProcess, type Managed } from '../../../apps/platform/base/process.ts'
import { silentScreen } from '../../../apps/platform/base/screen.ts'
import { APPS } from '../../../apps/platform/run/apps.ts'
import { compileCacheDir } from '../../../apps/platform/run/compile-cache.ts'
import { locate } from '../../../apps/platform/servers/sources.ts'
import { ensureServers, type Servers, startServers } from '../../../apps/platform/servers/up.ts'
import { withoutGivenServers } from '../../support/servers.ts'
import { found, unpacked } from '../../support/unpacked.ts'

/** A production installation from its own files alone: only they and PATH reach an app. */
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
      const options = { cwd: home, env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCacheDir() } }
      execFile(process.execPath, ['--import', QUICK_IMPORTS, ...args], options, (error, stdout, stderr) =>
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
    /** Makes a person's edit; returns a function that reverts it. */
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

/**
 * What Temporal Cloud puts before Temporal: TLS, and an API key with each call. The development server has neither. Answers
 * how to have it ask for another key.
 */
const startFrontend = async (port: number, target: string, out: string, first_key: string) => {
  let wanted = `Bearer ${first_key}`
  let open = false
  const served = new Set<string>()
  const connections = new Map<string, unknown>()
  const pair = () => ({
    cert: readFileSync(join(out, 'tls/temporal.pem')),
    key: readFileSync(join(out, 'tls/temporal.key')),
  })
  const server = createSecureServer(pair())
  // The engine ends a connection after some minutes.
  const connected = () => connectHttp2(`http://${target}`).on('error', () => {})
  let engine = connected()
  server.on('stream', (near, headers) => {
    near.on('error', () => {})
    if (!open && headers.authorization !== wanted) {
      const refused = {
        'content-type': 'application/grpc',
        'grpc-status': '16',
        'grpc-message': 'Request unauthorized.',
      }
      return near.respond({ ':status': 200, ...refused }, { endStream: true })
    }
    const method = headers[':path']?.split('/').at(-1) ?? ''
    served.add(method)
    connections.set(method, near.session)
    if (engine.closed || engine.destroyed) engine = connected()
    const far = engine.request({ ...headers, ':authority': target })
    let trailers: IncomingHttpHeaders = {}
    far.on('error', () => near.close())
    far.on('trailers', (given) => (trailers = given))
    far.on('response', (given, flags) => {
      if (near.destroyed) return
      if (flags & constants.NGHTTP2_FLAG_END_STREAM) return near.respond(given, { endStream: true })
      near.respond(given, { waitForTrailers: true })
      near.on('wantTrailers', () => near.sendTrailers(trailers))
      far.pipe(near)
    })
    near.on('close', () => far.close())
    near.pipe(far)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    /** The methods that were called with the key asked for. */
    served,
    /** The connection of the last call of a method. */
    connectionOf: (method: string) => connections.get(method),
    ask: (key: string) => {
      served.clear()
      wanted = `Bearer ${key}`
    },
    /** Serves everyone, or only those with the key again. */
    open: (is_open: boolean) => {
      open = is_open
    },
    /** Shows the certificate that the setup has written since. */
    renew: () => server.setSecureContext(pair()),
    close: () => {
      server.close()
      engine.destroy()
    },
  }
}

/** The image, or its files in a folder. */
export type Image = {
  /** The image's checkout. */
  root: string
  /** Node. */
  program: string
  /** The environment that the image itself gives each process. */
  env: Record<string, string>
  /** Files that have changed since the image was made. */
  changed: () => string[]
  remove: () => void
}

/** The user of the image; only root can become another user. */
const USER = process.getuid?.() === 0 ? { uid: 65532, gid: 65532 } : undefined

/** The folder of the oldest Postgres that we support, with the client programs that the guides use; ours has only the server. */
export const findPostgres = async (): Promise<string> => {
  const [bin, home] = ['usr/lib/postgresql/15/bin', join(cacheDir(), 'postgres-15-tools')]
  const sources = [
    found(join('/', bin, 'pg_basebackup')),
    found(join(home, bin, 'pg_basebackup')),
    unpacked(home, ['postgresql-15', 'postgresql-client-15', 'libpq5'], join(bin, 'pg_basebackup')),
  ]
  const program = await locate('postgres 15', sources, 'install Postgres 15 with its client programs.', silentScreen)
  return dirname(dirname(program))
}

/** Servers over TLS, the database, and every app of the image as a separate process. */
export const startInstallation = async (
  { home, out, setUp, node, shownBy, envFilesOf }: Installation,
  { root, program, env }: Image,
) => {
  // The image has its own user, and Postgres too: they need access to these folders.
  for (const folder of [home, root])
    for (let at = folder; at.includes('signalbox-'); at = dirname(at)) chmodSync(at, statSync(at).mode | 0o011)
  const ports = createPorts()
  const take = (name: string) => ports.take(`secured ${name}`, 0)
  const [postgres, redis, nats, temporal] = [
    await take('postgres'),
    await take('redis'),
    await take('nats'),
    await take('temporal'),
  ]
  const identity = ensureInstallation(home)
  const data = join(home, 'data')
  mkdirSync(data)
  const api_key = randomBytes(24).toString('base64url')
  const key_file = join(home, 'temporal.key')
  writeFileSync(key_file, api_key)
  const made = await setUp(
    ...['--temporal-api-key', key_file, '--proxies', '10.0.0.0/8'],
    ...['--hosts', '127.0.0.1', '--data', data, '--namespace', identity.namespace],
    ...['--postgres', `postgres://localhost:${postgres}`, '--redis', `rediss://127.0.0.1:${redis}`],
    ...['--nats', `tls://127.0.0.1:${nats}`, '--temporal', `127.0.0.1:${temporal}`],
  )
  if (made.status !== 0) throw new Error(made.text)
  const { servers: secrets } = JSON.parse(readFileSync(join(out, 'keys/secrets.json'), 'utf8'))
  const postgres_folder = await findPostgres()
  const servers: Servers = await withoutGivenServers(['postgres', 'redis', 'nats', 'temporal'], async () =>
    startServers({
      dir: home,
      programs: { ...(await ensureServers(silentScreen)), postgres: postgres_folder },
      secrets,
      installation: identity,
      prefer_ports: { postgres, redis, nats, temporal: 0, temporal_ui: 0 },
      tls: {
        ca_file: join(out, 'tls/ca.pem'),
        of: (server) => ({ cert_file: join(out, `tls/${server}.pem`), key_file: join(out, `tls/${server}.key`) }),
      },
    }),
  )
  const frontend = await startFrontend(temporal, servers.temporal.address, out, api_key)
  // Listeners of this machine are shared with other tests: what a person edits stays.
  const moved = new Map<number, number>()
  for (const { name, http, internal } of APPS)
    for (const [, port] of [http, internal].filter((listener) => listener !== undefined))
      moved.set(port, await ports.take(`${name} ${port}`, 0))
  for (const file of filesBelow(join(out, 'env'))) {
    const text = readFileSync(file, 'utf8')
    const at = (port: string) => String(moved.get(Number(port)) ?? port)
    const here = text.replace('/signalbox/console', join(root, 'console'))
    writeFileSync(file, here.replace(/(?<=PORT=|https:\/\/127\.0\.0\.1:)\d+/g, at))
  }
  const { password } = new URL(servers.postgres.admin_url)
  const owner = {
    OWNER_URL: servers.postgres.admin_url.replace(`:${password}@`, '@'),
    PGPASSWORD: decodeURIComponent(password),
  }
  const owner_file = join(home, 'owner.env')
  writeFileSync(
    owner_file,
    Object.entries(owner)
      .map((pair) => pair.join('='))
      .join('\n'),
    { mode: 0o600 },
  )
  const migrate_file = join(root, 'apps/platform/deploy/migrate.ts')
  const migrated = await node(`--env-file=${owner_file}`, migrate_file, '--config', out)
  if (migrated.status !== 0) throw new Error(migrated.text)
  /** Gives what a command has written to the user of the image. */
  const hand = (): void => {
    const files = readdirSync(out, { recursive: true }).map((name) => join(out, String(name)))
    if (USER) for (const file of [data, out, ...files]) chownSync(file, USER.uid, USER.gid)
  }
  hand()
  const portOf = (app: string, listener: 'http' | 'internal') =>
    moved.get(APPS.find(({ name }) => name === app)?.[listener]?.[1] ?? 0)
  const apps: Managed[] = NAMES.map((name) =>
    createProcess(
      {
        name,
        command: () => ({
          command: program,
          args: [...envFilesOf(name), join(root, 'apps', name, 'main.ts')],
          cwd: root,
          // The run's TMPDIR: the cleanup of an interrupted run finds its processes by it.
          env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, ...env },
          account: USER,
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
    frontend.close()
    await servers.stop()
  }
  try {
    await Promise.all(apps.map((app) => app.start()))
  } catch (error) {
    await stop()
    throw error
  }
  return { servers, frontend, api_key, portOf, stop, apps, hand, owner, postgres_tools: join(postgres_folder, 'bin') }
}
