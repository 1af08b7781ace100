import { createHash } from 'node:crypto'
import {
  chownSync,
  cpSync,
  type Dirent,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
} from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { type Job, refusal } from './types.ts'

const real = realpathSync.native

/** Matches the path of a file in a source whose name ends like this. */
export const pathTo = (ending: string): RegExp =>
  new RegExp(`^(?!-|.*(^|/)\\.{0,2}(/|$))[A-Za-z0-9._/-]{1,200}${ending}$`)

/** Copies a folder of the agent's file into the attempt; returns the digest of its files and links. */
export const copySource = (job: Job, name: string, from: string, dir: string, skipped: RegExp): string => {
  try {
    const filter = (path: string) => !skipped.test(basename(path))
    cpSync(real(from), dir, { recursive: true, verbatimSymlinks: true, filter })
  } catch (error) {
    throw refusal(`The source "${name}" cannot be read: ${(error as NodeJS.ErrnoException).code}.`)
  }
  return digestOf(name, dir, job.file.uid)
}

/**
 * Returns the digest of a source's files and links, and gives them to a user. A link that leads out is refused: what it
 * names may change unseen, and the agent may read more than its jobs.
 */
export const digestOf = (name: string, dir: string, uid?: number): string => {
  const hash = createHash('sha256')
  const links: string[] = []
  for (const { path, entry } of treeOf(dir)) {
    const place = relative(dir, path)
    if (entry.isSymbolicLink()) {
      if (leadsOut(dir, path))
        throw refusal(`The link "${place}" leads out of the source "${name}". Copy what it names into the source.`)
      links.push(`${place}\0-> ${readlinkSync(path)}\n`)
      continue
    }
    if (uid) chownSync(path, uid, uid)
    if (!entry.isFile()) continue
    hash.update(`${place}\0${createHash('sha256').update(readFileSync(path)).digest('hex')}\n`)
  }
  for (const link of links) hash.update(link)
  if (uid) chownSync(dir, uid, uid)
  return `sha256:${hash.digest('hex')}`
}

/** By its text, and by the file system: over another link, ".." leads elsewhere than the text says. */
const leadsOut = (dir: string, path: string): boolean =>
  [
    relative(dir, resolve(dirname(path), readlinkSync(path))),
    ...(existsSync(path) ? [relative(real(dir), real(path))] : []),
  ].some((to) => /^\.\.(\/|$)/.test(to))

/** All entries below a folder, by path. It follows no link: two that lead to their own folder would never end. */
export const treeOf = (dir: string): { path: string; entry: Dirent }[] =>
  readdirSync(dir, { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(dir, entry.name)
      return [{ path, entry }, ...(entry.isDirectory() ? treeOf(path) : [])]
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1))

export const filesOf = (dir: string): string[] =>
  treeOf(dir).flatMap(({ path, entry }) => (entry.isFile() ? [path] : []))
