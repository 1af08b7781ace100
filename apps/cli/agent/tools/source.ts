import { createHash } from 'node:crypto'
import { chownSync, cpSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { type Job, refusal } from './types.ts'

/** Copies a folder of the agent's file into the attempt; returns the digest of its files. */
export const copySource = (job: Job, name: string, from: string, dir: string, skipped: RegExp): string => {
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
  return `sha256:${hash.digest('hex')}`
}

export const filesOf = (dir: string, folders = false): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() || (folders && entry.isDirectory()))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
