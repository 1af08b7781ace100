import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { foldUsername } from '../../shared/auth/username.ts'
import { CliError, EXIT } from '../errors.ts'

/** What is kept of one sign-in. `retry_key` stands while a refresh is under way: its repeat proves who asks. */
export type Entry = {
  username: string
  access_token: string
  refresh_token: string
  /** Milliseconds since 1970 by this machine. */
  expires_at: number
  retry_key?: string
}

/** Device tokens by URL and by name: proofs that this person signed in from here before. They outlive a logout. */
type Devices = Record<string, Record<string, string>>

const LOCK_WAIT_MS = 15_000
const LOCK_STALE_MS = 30_000

/**
 * The credentials file: one entry per URL, mode 0600, replaced by rename. A file that others may read is refused. Who
 * changes an entry holds a lock file, so that two processes never use one refresh token.
 */
export const createCredentials = (env: NodeJS.ProcessEnv) => {
  const folder = join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'signalbox')
  const file = join(folder, 'credentials.json')
  const devices_file = join(folder, 'devices.json')
  const lock = `${file}.lock`

  const readAll = () => readPrivate<Record<string, Entry>>(file)

  const save = (url: string, entry: Entry | undefined): void => {
    const { [url]: _, ...others } = readAll()
    writePrivate(file, entry ? { ...others, [url]: entry } : others)
  }

  const tryLock = (): boolean => {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    try {
      closeSync(openSync(lock, 'wx', 0o600))
      return true
    } catch {
      if (ageOf(lock) > LOCK_STALE_MS) rmSync(lock, { force: true })
      return false
    }
  }

  return {
    file,
    get: (url: string): Entry | undefined => readAll()[url],
    save,
    /** The token by which this person's device is known there. */
    device: (url: string, username: string): string | undefined =>
      readPrivate<Devices>(devices_file)[url]?.[foldUsername(username)],
    saveDevice: (url: string, username: string, token: string): void => {
      const all = readPrivate<Devices>(devices_file)
      writePrivate(devices_file, { ...all, [url]: { ...all[url], [foldUsername(username)]: token } })
    },
    /** Runs alone among all processes of this person. */
    alone: async <T>(act: () => Promise<T>): Promise<T> => {
      for (const end = Date.now() + LOCK_WAIT_MS; !tryLock(); await delay(50))
        if (Date.now() > end)
          throw new CliError(
            EXIT.error,
            `failed   another signalbox holds ${lock}.`,
            'hint     Remove it when none runs.',
          )
      try {
        return await act()
      } finally {
        rmSync(lock, { force: true })
      }
    },
  }
}
export type Credentials = ReturnType<typeof createCredentials>

/** A file of JSON that others may not read: one that they may is refused, one that is not there is empty. */
const readPrivate = <T extends object>(file: string): T => {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    return {} as T
  }
  if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0)
    throw new CliError(EXIT.sign_in, `refused  ${file} may be read by others.`, `hint     chmod 600 ${file}`)
  try {
    return JSON.parse(text) as T
  } catch {
    throw new CliError(
      EXIT.sign_in,
      `failed   ${file} is not JSON.`,
      `hint     Remove it and sign in again: signalbox login`,
    )
  }
}

const writePrivate = (file: string, value: object): void => {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const next = `${file}.${process.pid}`
  writeFileSync(next, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 })
  chmodSync(next, 0o600)
  renameSync(next, file)
}

const ageOf = (file: string): number => {
  try {
    return Date.now() - statSync(file).mtimeMs
  } catch {
    return 0
  }
}
