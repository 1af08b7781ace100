import { closeSync, openSync, rmSync, statSync, utimes } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { foldUsername } from '../../shared/auth/username.ts'
import { CliError, EXIT } from '../errors.ts'
import { ensureFolder, readPrivate, settingsFile, unwritable, writePrivate } from './private-file.ts'

/** One sign-in. `retry_key` is kept while a refresh is in flight: it proves that a repeat comes from this client. */
export type Entry = {
  username: string
  access_token: string
  refresh_token: string
  /** Milliseconds since 1970 by this machine's clock. */
  expires_at: number
  retry_key?: string
  /** The API key of a machine, in place of a refresh token. */
  api_key?: string
}

/** Device tokens by URL and name: proof that this person has signed in from here before. They outlive a logout. */
type Devices = Record<string, Record<string, string>>

const LOCK_WAIT_MS = 15_000
/** Whose process lives renews its lock: a refresh may take minutes, and a lock that a dead one left opens in seconds. */
const LOCK_RENEW_MS = 2000
const LOCK_STALE_MS = 10_000
const AGAIN = 'signalbox login NAME'

/**
 * The credentials file: one entry per URL, mode 0600, replaced by rename. A file that others may read is refused. A
 * change of an entry holds a lock file, so that two processes never use the same refresh token.
 */
export const createCredentials = (env: NodeJS.ProcessEnv) => {
  const file = settingsFile(env, 'credentials.json')
  const devices_file = settingsFile(env, 'devices.json')
  const lock = `${file}.lock`

  const readAll = () => readPrivate<Record<string, Entry>>(file, AGAIN) ?? {}
  const readDevices = () => readPrivate<Devices>(devices_file, AGAIN) ?? {}

  const save = (url: string, entry: Entry | undefined): void => {
    const { [url]: _, ...others } = readAll()
    writePrivate(file, entry ? { ...others, [url]: entry } : others)
  }

  const tryLock = (): boolean => {
    ensureFolder(lock)
    try {
      closeSync(openSync(lock, 'wx', 0o600))
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw unwritable(lock, error)
      if (ageOf(lock) > LOCK_STALE_MS) rmSync(lock, { force: true })
      return false
    }
  }

  return {
    file,
    get: (url: string): Entry | undefined => readAll()[url],
    save,
    /** The token by which the platform knows this person's device; without a name, of the last who signed in here. */
    device: (url: string, username?: string): string | undefined => {
      const known = readDevices()[url] ?? {}
      if (username !== undefined) return known[foldUsername(username)]
      return Object.values(known).at(-1)
    },
    saveDevice: (url: string, username: string, token: string): void => {
      const name = foldUsername(username)
      const { [url]: { [name]: _, ...others } = {}, ...elsewhere } = readDevices()
      writePrivate(devices_file, { ...elsewhere, [url]: { ...others, [name]: token } })
    },
    /** Runs `act` exclusively among all processes of this person. */
    alone: async <T>(act: () => Promise<T>): Promise<T> => {
      for (const end = Date.now() + LOCK_WAIT_MS; !tryLock(); await delay(50))
        if (Date.now() > end)
          throw new CliError(EXIT.error, `Another signalbox holds ${lock}. Remove the file if none is running.`)
      const renewing = setInterval(() => renew(lock), LOCK_RENEW_MS)
      try {
        return await act()
      } finally {
        clearInterval(renewing)
        rmSync(lock, { force: true })
      }
    },
  }
}
export type Credentials = ReturnType<typeof createCredentials>

const renew = (file: string): void => {
  const now = new Date()
  utimes(file, now, now, () => {})
}

const ageOf = (file: string): number => {
  try {
    return Date.now() - statSync(file).mtimeMs
  } catch {
    return 0
  }
}
