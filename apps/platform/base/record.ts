import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { bornAt, signalGroup } from './process.ts'
import type { Screen } from './screen.ts'

/** A process as the record knows it: the id alone may have been given to another since. */
type Recorded = { name: string; pid: number; born: string | undefined }

const lockFile = (dir: string) => join(dir, 'platform.pid')
const childrenFile = (dir: string) => join(dir, 'children.json')

const read = <T>(file: string): T | undefined => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T
  } catch {
    return undefined
  }
}

const lives = (process: Recorded | undefined): boolean =>
  process?.born !== undefined && bornAt(process.pid) === process.born

/** Who serves a folder now, if anybody does. */
export const holderOf = (dir: string): number | undefined => {
  const holder = read<Recorded>(lockFile(dir))
  return holder && lives(holder) ? holder.pid : undefined
}

/**
 * Takes a folder for this process. A folder that a living platform serves is refused with one line; a lock that was
 * left behind is taken over. Answers how to give it back.
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
    const run = read<{ gateway: string }>(join(dir, 'run.json'))
    super(
      `Signalbox already runs on ${dir} (process ${pid}${run ? `, ${run.gateway}` : ''}). Stop it there with Ctrl-C, or set SIGNALBOX_DIR to another folder.`,
    )
  }
}

const children = new Map<string, Recorded>()

/** Notes a child, so that a start after a crash of the platform finds what was left running. */
export const recordChild = (dir: string, name: string, pid: number): void => {
  children.set(`${dir}/${name}`, { name, pid, born: bornAt(pid) })
  const mine = [...children].filter(([key]) => key.startsWith(`${dir}/`)).map(([, child]) => child)
  writeFileSync(childrenFile(dir), JSON.stringify(mine), { mode: 0o600 })
}

export const forgetChildren = (dir: string): void => rmSync(childrenFile(dir), { force: true })

const GRACE_MS = 8000

/** Ends what a platform that was killed has left running on this folder: apps first, then servers. */
export const endOrphans = async (dir: string, screen: Screen): Promise<void> => {
  if (!existsSync(childrenFile(dir))) return
  const orphans = (read<Recorded[]>(childrenFile(dir)) ?? []).filter(lives)
  if (orphans.length > 0) screen.line('platform', `ending ${orphans.length} processes that an earlier run left behind`)
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const left = orphans.filter(lives)
    // Fast shutdown for Postgres; SIGTERM would wait for its clients.
    for (const { name, pid } of left) signalGroup(pid, name === 'postgres' && signal === 'SIGTERM' ? 'SIGINT' : signal)
    const end = performance.now() + GRACE_MS
    while (orphans.some(lives) && performance.now() < end) await delay(50)
  }
  forgetChildren(dir)
}
