import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** A process to run and keep running. */
export type Unit = {
  name: string
  command: string
  args: string[]
  env?: NodeJS.ProcessEnv
  cwd?: string
  account?: { uid: number; gid: number } | undefined
  /** Resolves when the process serves; throws the reason while it does not. */
  probe: () => Promise<void>
  stop_signal?: NodeJS.Signals
  stop_timeout_ms?: number
}

export type UnitEvents = {
  /** It ended without being asked to; the next try comes after `retry_ms`. */
  died: (how: string, retry_ms: number) => void
  back: (after_ms: number) => void
  spawned: (pid: number) => void
}

const LOG_LIMIT = 20 * 1024 * 1024
const READY_MS = 120_000
const BACK_OFF_MS = [250, 500, 1000, 2000, 5000, 10_000, 30_000]
const STABLE_MS = 60_000

/**
 * One supervised child in a process group of its own, so that a Ctrl-C in the terminal reaches the platform only. Its
 * output goes to `<log_dir>/<name>.log`. What dies is started again with back-off until `stop`.
 */
export const createProcess = (unit: Unit, log_dir: string, events: Partial<UnitEvents> = {}) => {
  const log = join(log_dir, `${unit.name}.log`)
  let child: ChildProcess | undefined
  let wanted = false
  let failures = 0
  let exited: Promise<string> = Promise.resolve('not started')

  const launch = (): Promise<string> => {
    mkdirSync(log_dir, { recursive: true })
    if (existsSync(log) && statSync(log).size > LOG_LIMIT) renameSync(log, `${log}.1`)
    const out = openSync(log, 'a', 0o600)
    const started = spawn(unit.command, unit.args, {
      stdio: ['ignore', out, out],
      detached: true,
      cwd: unit.cwd ?? '/',
      env: unit.env ?? process.env,
      ...unit.account,
    })
    closeSync(out)
    child = started
    if (started.pid) events.spawned?.(started.pid)
    exited = new Promise((resolve) => {
      started.once('error', (error) => resolve(error.message))
      started.once('exit', (code, signal) => resolve(signal ? `killed by ${signal}` : `exit code ${code}`))
    })
    return exited
  }

  /** Starts it and waits until it serves. A process that ends before that is an error with its last words. */
  const start = async (timeout_ms = READY_MS): Promise<void> => {
    wanted = true
    const end = launch()
    const outcome = await Promise.race([end, untilReady(unit.probe, timeout_ms, () => hasEnded(child))])
    if (outcome !== true) {
      wanted = false
      await stop()
      const said = ownWords(unit.name, log)
      throw new Error(said ?? `${unit.name} did not start: ${outcome}. ${lastWords(log)}\n  Its log: ${log}`)
    }
    watch(end)
  }

  const watch = (end: Promise<string>) => {
    const since = performance.now()
    end.then(async (how) => {
      if (!wanted) return
      failures = performance.now() - since > STABLE_MS ? 0 : failures
      const retry_ms = BACK_OFF_MS[Math.min(failures++, BACK_OFF_MS.length - 1)] ?? 0
      events.died?.(how, retry_ms)
      const died = performance.now()
      await delay(retry_ms)
      if (!wanted) return
      const next = launch()
      watch(next)
      const back = await Promise.race([next.then(() => false), untilReady(unit.probe, READY_MS, () => !wanted)])
      if (back === true) events.back?.(performance.now() - died)
    })
  }

  const kill = (signal: NodeJS.Signals): void => {
    if (child?.pid && !hasEnded(child)) signalGroup(child.pid, signal)
  }

  /** Asks it to end, and kills it when it does not. */
  const stop = async (): Promise<void> => {
    wanted = false
    kill(unit.stop_signal ?? 'SIGTERM')
    const late = setTimeout(() => kill('SIGKILL'), unit.stop_timeout_ms ?? 45_000)
    await exited
    clearTimeout(late)
  }

  /** Ends it with this signal and leaves it down: the next `start` is the caller's. */
  const crash = async (signal: NodeJS.Signals): Promise<void> => {
    wanted = false
    kill(signal)
    await exited
  }

  return {
    name: unit.name,
    log,
    crash,
    start,
    stop,
    kill,
    /** Waits until it serves again, for callers that killed it. */
    ready: (timeout_ms = READY_MS) => untilReady(unit.probe, timeout_ms, () => !wanted),
    get pid() {
      return child?.pid
    },
    get running() {
      return !hasEnded(child)
    },
  }
}

export type Managed = ReturnType<typeof createProcess>

/** Signals a process group, or the process alone where it leads none. */
export const signalGroup = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pid, signal)
  } catch {
    try {
      process.kill(pid, signal)
    } catch {
      // It is gone, which is what was wanted.
    }
  }
}

const hasEnded = (child: ChildProcess | undefined) => !child || child.exitCode !== null || child.signalCode !== null

const untilReady = async (
  probe: () => Promise<void>,
  timeout_ms: number,
  gone: () => boolean,
): Promise<true | string> => {
  const end = performance.now() + timeout_ms
  for (let wait = 20; ; wait = Math.min(wait * 1.5, 250)) {
    try {
      await probe()
      return true
    } catch (error) {
      if (performance.now() > end) return `not ready within ${timeout_ms / 1000} s: ${(error as Error).message}`
      if (gone()) return (error as Error).message
    }
    await delay(wait)
  }
}

/** What an app itself says about why it cannot start: its last words, from the line that begins with its name. */
const ownWords = (name: string, log: string): string | undefined => {
  const text = readIfThere(log)
  const from = text.lastIndexOf(`\n${name}: `) + 1
  const words = text.slice(from).trim()
  return words.startsWith(`${name}: `) && !/\n( {4}at |\{)/.test(words) ? words : undefined
}

const readIfThere = (file: string): string => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

const lastWords = (log: string): string => readIfThere(log).trim().split('\n').slice(-6).join('\n  ')

/** When a process began, in the system's own words, or nothing when there is no such process: tells a reused id apart. */
export const bornAt = (pid: number): string | undefined => {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return undefined
  }
  if (process.platform === 'linux') {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return fields[0] === 'Z' ? undefined : fields[19]
    } catch {
      return undefined
    }
  }
  const { stdout } = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout?.trim() || undefined
}
