import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { run, type Source } from '../../apps/platform/servers/sources.ts'

/** Files of Debian packages in a folder of the cache. Not installed, because a server's package would start it. */
export const unpacked = (home: string, packages: readonly string[], program: string): Source => ({
  what: `apt-get download ${packages.join(' ')}`,
  run: async () => {
    const scratch = `${home}.${process.pid}`
    mkdirSync(scratch, { recursive: true })
    try {
      const get = () => run('apt-get', ['download', '-q', ...packages], { timeout_ms: 120_000, cwd: scratch })
      await get().catch(async () => {
        await run('apt-get', ['update', '-q'], { timeout_ms: 300_000 })
        return get()
      })
      for (const name of readdirSync(scratch).filter((one) => one.endsWith('.deb')))
        await run('dpkg-deb', ['-x', name, 'root'], { timeout_ms: 60_000, cwd: scratch })
      await run('chmod', ['-R', 'a+rX', scratch], { timeout_ms: 60_000 })
      if (!existsSync(home)) renameSync(join(scratch, 'root'), home)
      return join(home, program)
    } finally {
      rmSync(scratch, { recursive: true, force: true })
    }
  },
})
/** A program that this machine has. */
export const found = (path: string): Source => ({
  what: path,
  run: async () => {
    if (!existsSync(path)) throw new Error('not there')
    return path
  },
})
