import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { objectIn } from '../../shared/data/pointer.ts'
import { type CliError, EXIT, failure } from '../errors.ts'

/** The path of a settings file of this person: `$XDG_CONFIG_HOME/signalbox/NAME`. */
export const settingsFile = (env: NodeJS.ProcessEnv, name: string): string =>
  join(env.XDG_CONFIG_HOME || join(homeFolder(), '.config'), 'signalbox', name)

/** An account without an entry in passwd has none. */
const homeFolder = (): string => {
  let home = ''
  try {
    home = homedir()
  } catch {
    // The same as an empty HOME.
  }
  if (home) return home
  throw failure(EXIT.error, 'This account has no home folder.', 'Set XDG_CONFIG_HOME to a folder of your own.')
}

/**
 * Reads the JSON of a file that only its owner may read; `undefined` if there is none. Throws a CliError if others may
 * read it, or if its content is damaged; `remedy` says what to do after removing it.
 */
export const readPrivate = <T extends object>(
  file: string,
  remedy: string,
  fits: (value: T) => boolean = () => true,
): T | undefined => {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw failure(EXIT.error, `${file} cannot be read: ${(error as Error).message}.`, 'Make it readable to you.')
  }
  if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0)
    throw failure(EXIT.sign_in, `Other users can read ${file}.`, `Run: chmod 600 ${file}`)
  const value = objectIn(text) as T | undefined
  if (value && fits(value)) return value
  throw failure(EXIT.sign_in, `${file} is damaged.`, `Remove it, then run: ${remedy}`)
}

/** Replaces the file by rename, so that a reader sees either the old or the new one. Throws a CliError if it cannot. */
export const writePrivate = (file: string, value: object): void => {
  ensureFolder(file)
  const next = `${file}.${process.pid}`
  try {
    writeFileSync(next, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 })
    chmodSync(next, 0o600)
    renameSync(next, file)
  } catch (error) {
    throw unwritable(file, error)
  }
}

export const ensureFolder = (file: string): void => {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  } catch (error) {
    throw unwritable(file, error)
  }
}

/** The failure of a write below the folder of the settings. */
export const unwritable = (file: string, error: unknown): CliError =>
  failure(
    EXIT.error,
    `${file} cannot be written: ${(error as Error).message}.`,
    'Make its folder writable, or set XDG_CONFIG_HOME to another one.',
  )
