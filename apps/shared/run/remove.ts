import { chmodSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Removes a folder with all that programs left in it, also below folders that they made read-only. */
export const removeTree = (path: string): void => {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    unlock(path)
    rmSync(path, { recursive: true, force: true })
  }
}

/** Follows no link. */
const unlock = (folder: string): void => {
  chmodSync(folder, 0o700)
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) unlock(join(folder, entry.name))
}
