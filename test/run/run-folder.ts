import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { bornAt, signalGroup } from '../../apps/platform/base/pids.ts'
import { watchDoor } from '../../apps/shared/run/door.ts'
import { processesWith } from '../support/pids.ts'

const PREFIX = 'signalbox-test-'
const GRACE_MS = 5000
/** Two copies of one Ctrl-C count as one. */
const ONE_SIGNAL_MS = 2000

const ownerFile = (dir: string) => join(dir, 'owner.json')
const scratchOf = (dir: string) => join(dir, 'tmp')

/**
 * Runs work with its own folder, below which all its processes keep their temporary files. Afterward it ends all
 * processes that still run from the folder, and removes the folder: also when a signal cut the work short, and by the
 * next run if this one was killed. `signal` tells the work to end.
 */
export const withRunFolder = async <T>(work: (dir: string, signal: AbortSignal) => Promise<T>): Promise<T> => {
  // Before anything is created or cleared: a signal in the meantime must not leave half of it.
  const end = endOnSignal()
  const root = tmpdir()
  for (const name of readdirSync(root)) if (name.startsWith(PREFIX)) await clearIfLeft(join(root, name))
  const dir = mkdtempSync(join(root, PREFIX))
  chmodSync(dir, 0o755) // Postgres runs under another account when we are root
  mkdirSync(scratchOf(dir))
  chmodSync(scratchOf(dir), 0o1777)
  writeFileSync(ownerFile(dir), JSON.stringify({ pid: process.pid, born: bornAt(process.pid) }))
  const before = process.env.TMPDIR
  process.env.TMPDIR = scratchOf(dir)
  try {
    end.signal.throwIfAborted()
    return await work(dir, end.signal)
  } finally {
    await clear(dir)
    end.forget()
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
}

const endOnSignal = () => {
  const stopping = new AbortController()
  let since = 0
  const end = (why: string) => {
    if (stopping.signal.aborted && performance.now() - since > ONE_SIGNAL_MS) process.exit(1)
    if (stopping.signal.aborted) return
    since = performance.now()
    stopping.abort(new Error(why))
  }
  const hear = (signal: NodeJS.Signals) => end(`ended by ${signal}`)
  watchDoor(() => end('the process that started this one is gone'))
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, hear)
  return {
    signal: stopping.signal,
    forget: () => {
      for (const signal of signals) process.off(signal, hear)
    },
  }
}

const clearIfLeft = async (dir: string): Promise<void> => {
  if (!existsSync(ownerFile(dir))) return
  try {
    const { pid, born } = JSON.parse(readFileSync(ownerFile(dir), 'utf8')) as { pid: number; born: string }
    if (bornAt(pid) === born) return
    await clear(dir)
  } catch {
    // It belongs to another account, or another process is clearing it right now.
  }
}

const clear = async (dir: string): Promise<void> => {
  const left = () => processesWith('TMPDIR', scratchOf(dir))
  const end = performance.now() + GRACE_MS
  for (const pid of left()) signalGroup(pid, 'SIGTERM')
  while (left().length > 0 && performance.now() < end) await delay(50)
  for (const pid of left()) signalGroup(pid, 'SIGKILL')
  while (left().length > 0 && performance.now() < end + GRACE_MS) await delay(50)
  rmSync(dir, { recursive: true, force: true })
}
