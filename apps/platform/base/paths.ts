import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')

/** Where the platform keeps its data: `.signalbox/` in the checkout, or the folder of SIGNALBOX_DIR. */
export const signalboxDir = (): string => resolve(process.env.SIGNALBOX_DIR || join(ROOT, '.signalbox'))

/** The per-user cache of server binaries; running data does not need it. */
export const cacheDir = (): string => {
  const { SIGNALBOX_CACHE: own, XDG_CACHE_HOME: caches } = process.env
  if (own) return resolve(own)
  const home = homeFolder()
  if (process.platform === 'darwin' && home) return join(home, 'Library/Caches/signalbox')
  if (caches) return resolve(caches, 'signalbox')
  return home ? join(home, '.cache/signalbox') : join(ROOT, '.signalbox/cache')
}

/** An account without an entry in passwd has none. */
const homeFolder = (): string => {
  try {
    return homedir()
  } catch {
    return ''
  }
}

/** Preloaded by every Node process of the platform; see the file. An address: a path with `#` or `%` would be none. */
export const QUICK_IMPORTS = new URL('../quick-imports.mjs', import.meta.url).href

export const bin = (name: string): string => join(ROOT, 'node_modules/.bin', name)
