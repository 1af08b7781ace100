import { createHash } from 'node:crypto'
import { chownSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { sha256Hex } from '../../../shared/data/digest.ts'
import { treeOf } from '../tools/source.ts'
import type { Job } from '../tools/types.ts'

/** HOST/NAMESPACE/TYPE/VERSION/PLATFORM, as the tools lay out unpacked providers. */
const DEPTH = 5
export const cacheOf = ({ file }: Job) => join(file.state_dir, 'providers')
const packagesIn = (root: string) =>
  treeOf(root).flatMap(({ path, entry }) => {
    const place = relative(root, path)
    return place.split('/').length === DEPTH ? [{ place, own: entry.isDirectory() }] : []
  })

/**
 * Gives the attempt a plugin cache of its own, with links to the packages that the agent keeps. Jobs read those and
 * cannot write them, so none changes the provider of another.
 */
export const offerProviders = (job: Job): string => {
  const { uid } = job.file
  const own = join(job.home, 'plugins')
  const make = (path: string) => {
    if (existsSync(path)) return
    make(dirname(path))
    mkdirSync(path)
    if (uid) chownSync(path, uid, uid)
  }
  make(own)
  mkdirSync(cacheOf(job), { recursive: true })
  for (const { place } of packagesIn(cacheOf(job))) {
    make(dirname(join(own, place)))
    symlinkSync(join(cacheOf(job), place), join(own, place))
  }
  return own
}

/** Keeps what the attempt downloaded, if the source's lock file has the hash of the copy that is kept. */
export const keepProviders = (job: Job, own: string, lock: string): void => {
  if (lock === '') return
  for (const { place } of packagesIn(own).filter(({ own }) => own)) {
    const kept = join(cacheOf(job), place)
    if (existsSync(kept)) continue
    const making = join(job.file.state_dir, `providers.${basename(job.folder)}`)
    cpSync(join(own, place), making, { recursive: true, verbatimSymlinks: true })
    if (!existsSync(kept) && lock.includes(`"${hashOf(making)}"`)) {
      mkdirSync(dirname(kept), { recursive: true })
      renameSync(making, kept)
    }
    rmSync(making, { recursive: true, force: true })
  }
}

/** The hash of a package as lock files state it (Go's dirhash, "h1"). */
const hashOf = (dir: string): string => {
  const hash = createHash('sha256')
  const files = treeOf(dir).filter(({ entry }) => !entry.isDirectory())
  for (const { path, entry } of files) {
    const sum = entry.isFile() ? sha256Hex(readFileSync(path)) : 'a link'
    hash.update(`${sum}  ${relative(dir, path)}\n`)
  }
  return `h1:${hash.digest('base64')}`
}
