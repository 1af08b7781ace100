import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the checkout. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')

/** Where the platform keeps its data: `.signalbox/` in the checkout, or the folder of SIGNALBOX_DIR. */
export const signalboxDir = (): string => process.env.SIGNALBOX_DIR ?? join(ROOT, '.signalbox')

/** The per-user cache of server binaries; running data does not need it. */
export const cacheDir = (): string => {
  if (process.env.SIGNALBOX_CACHE) return process.env.SIGNALBOX_CACHE
  if (process.platform === 'darwin') return join(homedir(), 'Library/Caches/signalbox')
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'signalbox')
}

/** Preloaded by every Node process of the platform; see the file. */
export const QUICK_IMPORTS = fileURLToPath(new URL('../quick-imports.mjs', import.meta.url))

/** The path of a program in node_modules/.bin. */
export const bin = (name: string): string => join(ROOT, 'node_modules/.bin', name)
