import { createHash } from 'node:crypto'
import { chownSync, cpSync, existsSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { type Job, refusal } from './types.ts'

/**
 * Copies a folder of the agent's file into the attempt; returns the digest of its files and links. `closed`: the job reads
 * it again after the approval, so a link that leads out is refused: what it names may change unseen.
 */
export const copySource = (
  job: Job,
  name: string,
  from: string,
  dir: string,
  { skipped, closed = false }: { skipped: RegExp; closed?: boolean },
): string => {
  try {
    cpSync(from, dir, { recursive: true, verbatimSymlinks: true, filter: (path) => !skipped.test(basename(path)) })
  } catch (error) {
    throw refusal(`The source "${name}" cannot be read: ${(error as NodeJS.ErrnoException).code}.`)
  }
  const { uid } = job.file
  if (uid) for (const path of [...filesOf(dir, true), dir]) chownSync(path, uid, uid)
  const hash = createHash('sha256')
  for (const path of filesOf(dir)) {
    const content = createHash('sha256').update(readFileSync(path)).digest('hex')
    hash.update(`${relative(dir, path)}\0${content}\n`)
  }
  for (const path of linksOf(dir)) {
    const [link, place] = [readlinkSync(path), relative(dir, path)]
    // Over another link, ".." leads elsewhere than its text says.
    const leads = [relative(dir, resolve(dirname(path), link))]
    if (existsSync(path)) leads.push(relative(realpathSync(dir), realpathSync(path)))
    if (closed && leads.some((to) => /^\.\.(\/|$)/.test(to)))
      throw refusal(`The link "${place}" leads out of the source "${name}". Copy what it names into the source.`)
    hash.update(`${place}\0-> ${link}\n`)
  }
  return `sha256:${hash.digest('hex')}`
}

const linksOf = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isSymbolicLink())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()

export const filesOf = (dir: string, folders = false): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() || (folders && entry.isDirectory()))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
