import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bornAt } from './pids.ts'

/** A recorded process. The id alone is not enough, because it may have been reused since. */
export type Recorded = { name: string; pid: number; born: string | undefined }

const lockFile = (dir: string) => join(dir, 'platform.pid')
const childrenFile = (dir: string) => join(dir, 'children.json')

/** Reads the JSON of a file; `undefined` if it is missing or broken. */
export const readIfThere = <T>(file: string): T | undefined => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T
  } catch {
    return undefined
  }
}

export const lives = (process: Recorded | undefined): boolean =>
  process?.born !== undefined && bornAt(process.pid) === process.born

/** The process that serves a folder now, if any. */
export const holderOf = (dir: string): number | undefined => {
  const holder = readIfThere<Recorded>(lockFile(dir))
  return holder && lives(holder) ? holder.pid : undefined
}

/**
 * Takes a folder for this process. If a living platform serves the folder, refuses in one line; takes over a stale
 * lock. Returns a function that releases the folder.
 */
export const takeFolder = (dir: string): (() => void) => {
  mkdirSync(dir, { recursive: true })
  const mine = JSON.stringify({ name: 'platform', pid: process.pid, born: bornAt(process.pid) } satisfies Recorded)
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      writeFileSync(lockFile(dir), mine, { flag: 'wx', mode: 0o600 })
      return () => rmSync(lockFile(dir), { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const holder = holderOf(dir)
      if (holder !== undefined) throw new FolderTaken(dir, holder)
      rmSync(lockFile(dir), { force: true })
    }
  }
  throw new FolderTaken(dir, 0)
}

/** Two platforms on one folder would serve the same data twice. */
export class FolderTaken extends Error {
  constructor(dir: string, pid: number) {
    const run = readRun<{ gateway: string }>(dir)
    super(
      `Signalbox is already running on ${dir} (process ${pid}${run ? `, ${run.gateway}` : ''}). Stop it there with Ctrl-C, or set SIGNALBOX_DIR to another folder.`,
    )
  }
}

const children = new Map<string, Recorded>()

/** Records a child, so that a start after a crash of the platform finds the processes left running. */
export const recordChild = (dir: string, name: string, pid: number): void => {
  children.set(`${dir}/${name}`, { name, pid, born: bornAt(pid) })
  const mine = [...children].filter(([key]) => key.startsWith(`${dir}/`)).map(([, child]) => child)
  // Atomic: half a list would be unreadable, and its processes would stay forever.
  const next = `${childrenFile(dir)}.new`
  writeFileSync(next, JSON.stringify(mine), { mode: 0o600 })
  renameSync(next, childrenFile(dir))
}

export const forgetChildren = (dir: string): void => rmSync(childrenFile(dir), { force: true })

/** The recorded processes that a platform has left running on a folder. */
export const recordedChildren = (dir: string): Recorded[] =>
  (readIfThere<Recorded[]>(childrenFile(dir)) ?? []).filter(lives)

/** Reads `run.json`; `undefined` if no platform serves the folder, even if a killed one left the file behind. */
export const readRun = <T>(dir: string): T | undefined =>
  holderOf(dir) === undefined ? undefined : readIfThere<T>(join(dir, 'run.json'))
