import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { prepareDatabase } from '../../apps/platform/base/database.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'

const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, maxBuffer: 2 ** 30 })

/**
 * An earlier build of the platform, in a folder: the one before the newest migration unless a revision is named, so
 * that a roll meets a database that it did not create. Throws if this checkout does not contain it.
 */
export const earlierBuild = (dir: string, revision?: string) => {
  const wanted = revision ?? `${git('log', '-1', '--format=%H', '--', 'db/migrations').toString().trim()}^`
  const commit = git('rev-parse', '--verify', `${wanted}^{commit}`).toString().trim()
  const root = join(dir, 'earlier')
  mkdirSync(root, { recursive: true })
  execFileSync('tar', ['-x', '-C', root], { input: git('archive', commit) })
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  return { commit: commit.slice(0, 10), root }
}

/** Brings a database to the schema that a build expects, with that build's own migrations. */
export const databaseOf = async (root: string): Promise<typeof prepareDatabase> =>
  (await import(join(root, 'apps/platform/base/database.ts'))).prepareDatabase
