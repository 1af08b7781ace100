import { chownSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { bornAt } from './pids.ts'

/** A recorded process. The id alone is not enough, because it may have been reused since. */
export type Recorded = { name: string; pid: number; born: string | undefined }

const PLATFORM = 'platform.pid'
const childrenFile = (dir: string) => join(dir, 'children.json')

/** Reads the JSON of a file; `undefined` if it is missing or broken. */
export const readIfThere = <T>(file: string): T | undefined => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T
  } catch {
    return undefined
  }
}

/** Replaces a file as a whole, whenever the process dies; owner and mode stay. */
export const writeWhole = (file: string, text: string, mode = 0o600): void => {
  const [next, before] = [`${file}.next`, statSync(file, { throwIfNoEntry: false })]
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  writeFileSync(next, text, { mode: before ? before.mode & 0o777 : mode })
  if (before && process.getuid?.() === 0) chownSync(next, before.uid, before.gid)
  renameSync(next, file)
}

export const lives = (process: Recorded | undefined): boolean =>
  process?.born !== undefined && bornAt(process.pid) === process.born

/** The process that serves a folder now, or that has another lock in it, if any. */
export const holderOf = (dir: string, lock = PLATFORM): number | undefined => {
  const holder = readIfThere<Recorded>(join(dir, lock))
  return holder && lives(holder) ? holder.pid : undefined
}

/**
 * Takes a folder for this process: as the platform that serves it, or by another lock. If a living process has it,
 * throws `refusal`; takes over a stale lock. Returns a function that releases the folder.
 */
export const takeFolder = (
  dir: string,
  lock = PLATFORM,
  refusal = (pid: number): Error => new FolderTaken(dir, pid),
): (() => void) => {
  const file = join(dir, lock)
  try {
    mkdirSync(dir, { recursive: true, mode: lock === PLATFORM ? 0o777 : 0o700 })
  } catch (error) {
    throw unwritable(dir, error as Error)
  }
  const mine = JSON.stringify({ name: 'platform', pid: process.pid, born: bornAt(process.pid) } satisfies Recorded)
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      writeFileSync(file, mine, { flag: 'wx', mode: 0o600 })
      // Two processes may have found the same stale lock: the later one has removed the lock of the other.
      if (attempt > 0) pause()
      if (readFileSync(file, 'utf8') === mine) return () => rmSync(file, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw unwritable(dir, error as Error)
      // Another process may just have created the file, and not written it yet.
      if (readIfThere(file) === undefined) pause()
      const holder = holderOf(dir, lock)
      if (holder !== undefined) throw refusal(holder)
      rmSync(file, { force: true })
    }
  }
  throw refusal(0)
}

const unwritable = (dir: string, { message }: Error): Error =>
  new Error(
    `${dir} cannot be written (${message}): make it writable for this account, free its disk, or name another folder.`,
  )

const pause = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)

/** Two platforms on one folder would serve the same data twice. */
class FolderTaken extends Error {
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
  writeWhole(childrenFile(dir), JSON.stringify(mine))
}

export const forgetChildren = (dir: string): void => rmSync(childrenFile(dir), { force: true })

/** The recorded processes that a platform has left running on a folder. */
export const recordedChildren = (dir: string): Recorded[] =>
  (readIfThere<Recorded[]>(childrenFile(dir)) ?? []).filter(lives)

/** Reads `run.json`; `undefined` if no platform serves the folder, even if a killed one left the file behind. */
export const readRun = <T>(dir: string): T | undefined =>
  holderOf(dir) === undefined ? undefined : readIfThere<T>(join(dir, 'run.json'))
