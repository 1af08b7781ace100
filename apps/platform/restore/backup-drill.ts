import { spawnSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { withConnection } from '../../../db/connection.ts'
import { createProcess } from '../base/process.ts'
import { silentScreen } from '../base/screen.ts'
import { OpsError, settingOf, takeSettings } from '../ops/access.ts'
import { anchorsOfFile } from '../ops/audit-anchors.ts'
import { rebuildOperations } from '../ops/rebuild-operations.ts'
import { reportAudit } from '../ops/verify-audit.ts'
import { APP_NAMES } from '../run/apps.ts'
import { locatePostgres, postgresCommand, unprivileged } from '../servers/postgres.ts'
import { artifactsFault, contentsFault, keysFault } from './backup-contents.ts'

/** The log of a large server is replayed for hours. */
const REPLAY_MS = 24 * 3_600_000
/** The clocks of the relay, which dates anchors, and of Postgres differ a little. */
const CLOCKS_MS = 5000

type Options = { backup: string; within: string; to?: string | undefined; into?: string | undefined }

/**
 * `restore-drill --backup DIR`: restores the newest base backup, and the log in DIR/wal, into a scratch server that no
 * network reaches. It uses the newest copy of the configuration in DIR. Verifies that it opens what is sealed. Verifies the
 * read models with the evidence, the copy of the artifacts, and the audit logs up to the last anchor of that time.
 * Exits 3 if something does not hold. Also if the last change in it is more than `within` minutes older than wanted: then
 * the log was not archived.
 */
export const drillBackup = async ({ backup, within, to, into }: Options): Promise<number> => {
  const began = Date.now()
  const until = to === undefined ? began : Date.parse(to)
  if (!(until <= began)) throw new OpsError(`--to must be a time that has been, such as 2026-03-01T14:02:00Z.`)
  if (!(Number(within) > 0)) throw new OpsError(`--within must be a number of minutes, not ${within}.`)
  const from = resolve(backup)
  const base = newestBase(from, until)
  const copy = newestConfig(from)
  const program = await programFor(base.path)
  if (into !== undefined) mkdirSync(resolve(into), { recursive: true })
  const scratch = mkdtempSync(join(into === undefined ? tmpdir() : resolve(into), 'signalbox-drill-'))
  const wal = join(from, 'wal')
  const server = scratchServer(scratch, program, { base: base.path, wal, to })
  const end = async () => {
    await server.stop()
    // It holds every key and all data.
    rmSync(scratch, { recursive: true, force: true })
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => end().finally(() => process.exit(130)))
  try {
    takeConfig(copy, scratch)
    const shipped = newestLog(wal)
    await server.start()
    const replayed = await server.replayed()
    const reached = replayed.at?.getTime() ?? base.begun
    const ago_min = (until - reached) / 60_000
    console.log(`${basename(base.path)} and ${basename(copy)}, with the log up to ${new Date(reached).toISOString()}:`)
    const faults = [
      // A base backup brings the log of its own duration along, so it starts without the archive.
      (newestLog(wal).end <= base.end || (to === undefined && replayed.lsn < shipped.start)) &&
        `The log in ${wal} was not replayed: is it archived, and may the account of Postgres read it?`,
      ago_min > Number(within) &&
        `Its last change is ${Math.round(ago_min)} min older than wanted: is the log archived?`,
      await keysFault(),
      await contentsFault(),
      (await auditHolds(reached)) ? false : 'The audit logs do not hold.',
      (await rebuildOperations(false)) !== 0 && 'The read models do not match their events.',
      await artifactsFault(join(from, 'artifacts'), until),
    ].filter((fault) => typeof fault === 'string')
    for (const fault of faults) console.log(`FAIL  ${fault}`)
    console.log("Not verified: Temporal's databases. After a restore, reconcile compares them with this one.")
    const [took_s, lost_s] = [Date.now() - began, until - reached].map((ms) => Math.round(ms / 1000))
    console.log(`Restored and verified in ${took_s} s; the last change in it is ${lost_s} s older than wanted.`)
    console.log(faults.length === 0 ? 'The backup holds.' : 'The backup does not hold.')
    return faults.length === 0 ? 0 : 3
  } finally {
    await end()
  }
}

const positionOf = (lsn: string): number => {
  const [high = '', low = ''] = lsn.split('/')
  return parseInt(high, 16) * 2 ** 32 + parseInt(low, 16)
}

/** The positions between which the newest file of the log lies. */
const newestLog = (wal: string): { start: number; end: number } => {
  const names = existsSync(wal) ? readdirSync(wal).filter((name) => /^[\dA-F]{24}$/.test(name)) : []
  const newest = names.sort().at(-1)
  if (!newest) throw new OpsError(`${wal} holds no log: Postgres must archive it there.`)
  const { size } = statSync(join(wal, newest))
  const start = parseInt(newest.slice(8, 16), 16) * 2 ** 32 + parseInt(newest.slice(16), 16) * size
  return { start, end: start + size }
}

type Base = { path: string; begun: number; ended: number; end: number }

/** Base backups of `pg_basebackup`, with the times of their begin and end, and their end in the log. */
const newestBase = (backup: string, until: number): Base => {
  const names = existsSync(backup) ? readdirSync(backup).filter((name) => name.startsWith('base-')) : []
  const bases = names.flatMap((name) => {
    const manifest = join(backup, name, 'backup_manifest')
    if (!existsSync(manifest)) return []
    const text = readFileSync(manifest, 'utf8')
    const begun = Date.parse(/"Path": "backup_label".*?"Last-Modified": "([^"]+)"/.exec(text)?.[1] ?? '')
    const end = positionOf(/"End-LSN": "([^"]+)"/.exec(text)?.[1] ?? '')
    // A copy of a link would be the backup itself, and the drill would write there.
    return [{ path: realpathSync(join(backup, name)), begun, ended: statSync(manifest).mtimeMs, end }]
  })
  // Postgres cannot go back to a time before the end of its base.
  const [newest] = bases.filter(({ ended }) => ended < until).sort((a, b) => b.begun - a.begun)
  if (!newest) throw new OpsError(`${backup} has no folder base-… with a backup_manifest from before that time.`)
  if (readdirSync(join(newest.path, 'pg_tblspc')).length > 0 || lstatSync(join(newest.path, 'pg_wal')).isSymbolicLink())
    throw new OpsError(`${newest.path} has tablespaces or a log outside it: a drill would write there.`)
  return newest
}

const newestConfig = (backup: string): string => {
  const newest = readdirSync(backup)
    .filter((name) => /^config-.+\.tgz$/.test(name))
    .sort()
    .at(-1)
  if (!newest) throw new OpsError(`${backup} has no config-….tgz, without whose keys no backup can be read.`)
  return join(backup, newest)
}

/** Programs of another major version cannot read the data. */
const programFor = async (base: string): Promise<string> => {
  const major = readFileSync(join(base, 'PG_VERSION'), 'utf8').trim()
  const own = (process.env.PATH ?? '').split(':').map((bin) => join(bin, '..'))
  const places = [...own, `/usr/lib/postgresql/${major}`, `/usr/pgsql-${major}`]
  const embedded = await locatePostgres(silentScreen).catch(() => undefined)
  const found = [...places, embedded].find((place) => {
    if (!place) return false
    const { stdout } = spawnSync(join(place, 'bin/postgres'), ['--version'], { encoding: 'utf8' })
    return stdout?.includes(` ${major}.`)
  })
  if (!found) throw new OpsError(`${base} is of Postgres ${major}: put its programs in the PATH.`)
  return found
}

/** A server with a copy of the data, none of its settings, and a socket in a closed folder as its only door. */
const scratchServer = (
  scratch: string,
  program: string,
  from: { base: string; wal: string; to?: string | undefined },
) => {
  const data = join(scratch, 'data')
  // The path of a socket has at most 107 bytes.
  const door = mkdtempSync(join(tmpdir(), 'drill-'))
  const settings = {
    config_file: join(door, 'postgresql.conf'),
    hba_file: join(door, 'pg_hba.conf'),
    listen_addresses: '',
    unix_socket_directories: door,
    shared_preload_libraries: '',
    // What it writes must not reach the archive.
    archive_mode: 'off',
    hot_standby: 'off',
    default_transaction_read_only: 'on',
    restore_command: `cp "${from.wal}/%f" "%p"`,
    recovery_target_action: 'promote',
    ...(from.to !== undefined && { recovery_target_time: new Date(from.to).toISOString() }),
  }
  const urlOf = (given: string) => {
    const { username, pathname } = new URL(given)
    // PGPORT and PGSSLMODE of whoever drills are about another server.
    return `postgres://${username}@${encodeURIComponent(door)}:5432${pathname}?sslmode=disable`
  }
  const ask = async (): Promise<{ at: Date | null; lsn: number }> =>
    withConnection({ connectionString: urlOf(settingOf('relay', 'DATABASE__URL')) }, async (client) => {
      const { rows } = await client.query(
        'select pg_last_xact_replay_timestamp() as at, pg_last_wal_replay_lsn() as lsn, pg_is_in_recovery() as still',
      )
      if (rows[0].still) throw new Error('it still replays the log')
      return { at: rows[0].at, lsn: positionOf(rows[0].lsn) }
    })
  const command = () => postgresCommand(program, data, 5432, settings)
  const server = createProcess({ name: 'postgres', command, probe: ask, stop_signal: 'SIGINT' }, scratch)
  return {
    start: async (): Promise<void> => {
      copyData(from.base, data)
      writeFileSync(settings.config_file, '')
      writeFileSync(settings.hba_file, 'local all all trust\n')
      const account = unprivileged()
      if (account)
        for (const path of [scratch, door, settings.config_file, settings.hba_file])
          chownSync(path, account.uid, account.gid)
      await server.start(REPLAY_MS)
      for (const app of APP_NAMES) {
        const name = `${app.toUpperCase()}__DATABASE__URL`
        if (process.env[name]) process.env[name] = urlOf(process.env[name])
      }
    },
    /** How far the log was replayed, and the time of its last change; null if it has none after the base backup. */
    replayed: ask,
    stop: async (): Promise<void> => {
      await server.stop()
      rmSync(door, { recursive: true, force: true })
    },
  }
}

const run = (command: string, ...args: string[]): void => {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
  if (status !== 0) throw new OpsError(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`)
}

const copyData = (base: string, data: string): void => {
  run('cp', '-a', base, data)
  for (const name of ['postmaster.pid', 'postmaster.opts', 'standby.signal', 'postgresql.auto.conf'])
    rmSync(join(data, name), { force: true })
  writeFileSync(join(data, 'recovery.signal'), '')
  writeFileSync(join(data, 'postgresql.auto.conf'), '')
  const account = unprivileged()
  if (account) run('chown', '-R', `${account.uid}:${account.gid}`, data)
  run('chmod', '0700', data)
}

/**
 * Uses the copy alone, neither the folder nor the environment that is in use: a key that only those have would be lost
 * with them.
 */
const takeConfig = (archive: string, scratch: string): void => {
  const config = join(scratch, 'config')
  mkdirSync(config, { mode: 0o700 })
  run('tar', '-xzf', archive, '-C', config)
  for (const name of Object.keys(process.env))
    if (/^[A-Z]+__/.test(name) && name !== 'RELAY__AUDIT__ANCHOR_FILE') delete process.env[name]
  process.env.SIGNALBOX_DIR = scratch
  takeSettings(config)
  process.env.RELAY__AUDIT__KEY_FILE = join(config, 'keys', basename(settingOf('relay', 'AUDIT__KEY_FILE')))
}

const auditHolds = async (reached: number): Promise<boolean> => {
  const all = anchorsOfFile()
  const isThen = (i: number) => Date.parse(all.anchors[i]?.at ?? '') <= reached - CLOCKS_MS
  const anchors = all.anchors.filter((_anchor, i) => isThen(i))
  return (await reportAudit([{ ...all, anchors, lines: all.lines.filter((_line, i) => isThen(i)) }], true)) === 0
}
