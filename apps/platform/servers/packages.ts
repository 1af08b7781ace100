import { elapsed } from '../base/screen.ts'
import { run, type Source, which } from './sources.ts'

const INSTALL_MS = 600_000
const APT = ['-y', '-q', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=2']
const QUIET = { DEBIAN_FRONTEND: 'noninteractive' }

/** One apt-get at a time in this process; the lock timeout of apt-get waits for those of other processes. */
let queue: Promise<unknown> = Promise.resolve()

const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
  const turn = queue.then(work, work)
  queue = turn.catch(() => {})
  return turn
}

let listsAreFresh = false

const installed = new Map<string, Promise<void>>()

/** Installs a Debian package as root, once. Fetches the lists first if they are missing or too old for the package. */
export const aptInstall = (name: string, say: (text: string) => void): Promise<void> => {
  const work = installed.get(name) ?? inTurn(() => install(name, say))
  installed.set(name, work)
  return work
}

const install = async (name: string, say: (text: string) => void): Promise<void> => {
  if (!which('apt-get')) throw new Error('apt-get is not installed')
  if (process.getuid?.() !== 0) throw new Error('installing a system package needs root')
  say(`apt-get install ${name}`)
  const started = performance.now()
  const attempt = () => run('apt-get', ['install', ...APT, name], { timeout_ms: INSTALL_MS, env: QUIET })
  try {
    await attempt()
  } catch (error) {
    if (listsAreFresh) throw error
    await run('apt-get', ['update', '-q'], { timeout_ms: INSTALL_MS, env: QUIET })
    listsAreFresh = true
    await attempt()
  }
  say(`apt-get install ${name}: done in ${elapsed(performance.now() - started)}`)
}

/** A program from the system's package manager: apt-get as root, Homebrew as any user. */
export const systemPackage = (names: { apt?: string; brew?: string }, programs: string[]): Source => ({
  what: [names.apt && `apt-get install ${names.apt}`, names.brew && `brew install ${names.brew}`]
    .filter(Boolean)
    .join(' or '),
  run: async (say) => {
    if (names.brew && which('brew')) {
      say(`brew install ${names.brew}`)
      await run('brew', ['install', '--quiet', names.brew], { timeout_ms: INSTALL_MS })
    } else if (names.apt) await aptInstall(names.apt, say)
    else throw new Error('there is no package manager for it here')
    const found = programs.map(which).find(Boolean)
    if (!found) throw new Error(`the package did not install ${programs.join(' or ')}`)
    return found
  },
})
