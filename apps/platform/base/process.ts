import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { PORT_TAKEN } from '../../shared/http/lifecycle.ts'
import { within } from '../../shared/sleep.ts'
import { signalGroup } from './pids.ts'

export type Command = {
  command: string
  args: string[]
  env?: NodeJS.ProcessEnv
  cwd?: string
  account?: { uid: number; gid: number } | undefined
}

/** A process to start and keep running. */
export type Unit = {
  name: string
  /** Called before each launch, because a port may have moved since the last one. */
  command: () => Command
  /** Resolves when the process with this id serves; throws the reason while it does not, or if another one answers. */
  probe: (pid: number) => Promise<unknown>
  /** Takes another port. Called if the process ended because its port was taken. */
  move?: () => Promise<void>
  /** A serving process is probed every 5 s; after this many failures in a row it is killed and restarted. */
  misses?: number
  stop_signal?: NodeJS.Signals
  stop_timeout_ms?: number
}

export type UnitEvents = {
  /** The process ended unexpectedly; the next try comes after `retry_ms`. */
  died: (how: string, retry_ms: number) => void
  back: (after_ms: number) => void
  spawned: (pid: number) => void
  /** The process runs but does not answer. It is killed, or left alone if killing did not help before. */
  silent: (for_ms: number, why: string, killed: boolean) => void
}

const LOG_LIMIT = 20 * 1024 * 1024
const READY_MS = 600_000
const BACK_OFF_MS = [250, 500, 1000, 2000, 5000, 10_000, 30_000]
const STABLE_MS = 60_000
const PROBE_MS = 5000
const LOOK_MS = 5000
/** If a process is killed for its silence this often within 15 min, the cause must be a different one. */
const KILLS = 3
const KILLS_MS = 15 * 60_000
const MOVES = 20
const TAKEN_WORDS = /address already in use/i

/** A supervised child, across its launches. */
type Supervised = {
  unit: Unit
  events: Partial<UnitEvents>
  log_dir: string
  log: string
  child: ChildProcess | undefined
  exited: Promise<string>
  /** Where the output of the latest launch begins in the log. */
  from: number
  /** The number of the latest `start`; 0 while no process is wanted. */
  run: number
  runs: number
  renewing: boolean
  moves: number
  kills: number[]
}

/**
 * One supervised child in its own process group, so that a Ctrl-C in the terminal reaches only the platform. Its output
 * goes to `<log_dir>/<name>.log`. A child that dies, or stops answering, is restarted until `stop`; one whose port is
 * taken gets another.
 */
export const createProcess = (unit: Unit, log_dir: string, events: Partial<UnitEvents> = {}) => {
  const one: Supervised = {
    unit,
    events,
    log_dir,
    log: join(log_dir, `${unit.name}.log`),
    child: undefined,
    exited: Promise.resolve('not started'),
    from: 0,
    run: 0,
    runs: 0,
    renewing: false,
    moves: 0,
    kills: [],
  }

  return {
    name: unit.name,
    log: one.log,
    start: (timeout_ms = READY_MS): Promise<void> => start(one, timeout_ms),
    /** Asks the process to end, and kills it if it does not. */
    stop: (): Promise<void> => stop(one),
    /** Restarts it with the current `command`. */
    renew: (): Promise<void> => renew(one),
    kill: (signal: NodeJS.Signals): void => kill(one, signal),
    /** Ends it with this signal and leaves it down; the caller must call the next `start`. */
    crash: (signal: NodeJS.Signals): Promise<void> => crash(one, signal),
    /** Waits until it serves again, for callers that killed it. */
    ready: (timeout_ms = 120_000): Promise<void> => readyAgain(one, timeout_ms),
    get pid() {
      return one.child?.pid
    },
    get running() {
      return !hasEnded(one.child)
    },
  }
}

export type Managed = ReturnType<typeof createProcess>

const launch = (one: Supervised): Promise<string> => {
  mkdirSync(one.log_dir, { recursive: true })
  if (existsSync(one.log) && statSync(one.log).size > LOG_LIMIT) renameSync(one.log, `${one.log}.1`)
  const out = openSync(one.log, 'a', 0o600)
  one.from = fstatSync(out).size
  const { command, args, env = process.env, cwd = '/', account } = one.unit.command()
  const started = spawn(command, args, { stdio: ['ignore', out, out], detached: true, cwd, env, ...account })
  closeSync(out)
  one.child = started
  if (started.pid) one.events.spawned?.(started.pid)
  one.exited = new Promise((resolve) => {
    started.once('error', (error) => resolve(error.message))
    started.once('exit', (code, signal) => resolve(signal ? `killed by ${signal}` : `exit code ${code}`))
  })
  return one.exited
}

const served = async (one: Supervised, launched: ChildProcess): Promise<void> => {
  const late = () => new Error(`no answer within ${PROBE_MS / 1000} s`)
  await within(one.unit.probe(launched.pid as number), PROBE_MS, late)
  if (hasEnded(launched)) throw new Error('it has ended')
}

/** Returns true once this launch serves, otherwise why it does not. */
const untilReady = async (
  one: Supervised,
  launched: ChildProcess | undefined,
  timeout_ms: number,
): Promise<true | string> => {
  const end = performance.now() + timeout_ms
  for (let wait = 20; ; wait = Math.min(wait * 1.5, 250)) {
    try {
      if (!launched) return 'not started'
      await served(one, launched)
      return true
    } catch (error) {
      if (hasEnded(launched)) return 'it has ended'
      if (performance.now() > end) return `not ready within ${timeout_ms / 1000} s: ${(error as Error).message}`
    }
    await delay(wait)
  }
}

/** Whether the process ended because its port was taken, and has moved to another. */
const moved = async (one: Supervised, how: string): Promise<boolean> => {
  const taken = how === `exit code ${PORT_TAKEN}` || TAKEN_WORDS.test(wordsFrom(one.log, one.from))
  if (!taken || !one.unit.move || one.moves >= MOVES) return false
  one.moves += 1
  await one.unit.move()
  return true
}

/** Runs the process until it is stopped, launch after launch. `first` gets the first success, or why there is none. */
const supervise = async (one: Supervised, mine: number, timeout_ms: number, first: (failure?: string) => void) => {
  let failures = 0
  let down_at: number | undefined
  let serving = false
  while (one.run === mine) {
    const since = performance.now()
    const end = launch(one)
    const launched = one.child as ChildProcess
    let outcome = await Promise.race([end, untilReady(one, launched, timeout_ms)])
    if (hasEnded(launched)) outcome = await end
    if (outcome === true) {
      if (!serving) first()
      else if (down_at !== undefined) one.events.back?.(performance.now() - down_at)
      serving = true
      one.moves = 0
      if (one.unit.misses) void watch(one, launched, one.unit.misses)
    } else if (!serving && one.run === mine && !one.renewing) {
      if (hasEnded(launched) && (await moved(one, outcome))) continue
      return first(outcome)
    }
    const how = await end
    if (one.run !== mine) break
    down_at = performance.now()
    if (one.renewing) {
      one.renewing = false
      continue
    }
    failures = performance.now() - since > STABLE_MS ? 0 : failures
    const retry_ms = BACK_OFF_MS[Math.min(failures++, BACK_OFF_MS.length - 1)] ?? 0
    one.events.died?.(how, retry_ms)
    await delay(retry_ms)
    if (one.run === mine) await moved(one, how)
  }
  first('it was stopped')
}

/** Kills a process that runs but no longer serves. */
const watch = async (one: Supervised, launched: ChildProcess, misses: number): Promise<void> => {
  let missed = 0
  let said = false
  let silent_at = 0
  while (!hasEnded(launched) && one.child === launched) {
    await delay(LOOK_MS, undefined, { ref: false })
    const asked = performance.now()
    const why = await served(one, launched).then(
      () => undefined,
      (error: Error) => error.message,
    )
    if (hasEnded(launched) || one.child !== launched || one.run === 0) return
    if (why === undefined) {
      missed = 0
      continue
    }
    if (missed === 0) silent_at = asked
    missed += 1
    if (missed < misses) continue
    const now = performance.now()
    const killed = one.kills.filter((at) => now - at < KILLS_MS).length < KILLS
    if (killed || !said) one.events.silent?.(now - silent_at, why, killed)
    said = true
    if (!killed) continue
    one.kills.push(now)
    kill(one, 'SIGKILL')
    return
  }
}

/** Starts the process and waits until it serves. If it ends before that, throws an error with its last output. */
const start = async (one: Supervised, timeout_ms: number): Promise<void> => {
  one.runs += 1
  const mine = one.runs
  one.run = mine
  const failure = await new Promise<string | undefined>((resolve, reject) => {
    supervise(one, mine, timeout_ms, resolve).catch(reject)
  }).catch((error: Error) => error.message)
  if (failure === undefined) return
  if (one.run === mine) await stop(one)
  const said = ownWords(one.unit.name, one.log)
  throw new Error(said ?? `${one.unit.name} did not start: ${failure}. ${lastWords(one.log)}\n  Log file: ${one.log}`)
}

const kill = (one: Supervised, signal: NodeJS.Signals): void => {
  if (one.child?.pid && !hasEnded(one.child)) signalGroup(one.child.pid, signal)
}

const readyAgain = async (one: Supervised, timeout_ms: number): Promise<void> => {
  const end = performance.now() + timeout_ms
  for (;;) {
    const outcome = await untilReady(one, one.child, Math.max(0, end - performance.now()))
    if (outcome === true || one.run === 0) return
    if (performance.now() > end) throw new Error(`${one.unit.name}: ${outcome}`)
    await delay(50)
  }
}

const end = async (one: Supervised, signal: NodeJS.Signals): Promise<void> => {
  kill(one, signal)
  // A stopped (SIGSTOP) process receives no other signal.
  const late = setTimeout(() => kill(one, 'SIGKILL'), one.unit.stop_timeout_ms ?? 45_000)
  await one.exited
  clearTimeout(late)
}

const stop = async (one: Supervised): Promise<void> => {
  one.run = 0
  await end(one, one.unit.stop_signal ?? 'SIGTERM')
}

const renew = async (one: Supervised): Promise<void> => {
  if (one.run === 0 || hasEnded(one.child)) return
  one.renewing = true
  await end(one, one.unit.stop_signal ?? 'SIGTERM')
}

const crash = async (one: Supervised, signal: NodeJS.Signals): Promise<void> => {
  one.run = 0
  kill(one, signal)
  await one.exited
}

const hasEnded = (child: ChildProcess | undefined) =>
  !child?.pid || child.exitCode !== null || child.signalCode !== null

/** An app's own message about why it cannot start: its last output, from the line that begins with its name. */
const ownWords = (name: string, log: string): string | undefined => {
  const text = wordsFrom(log)
  const from = text.lastIndexOf(`\n${name}: `) + 1
  const words = text.slice(from).trim()
  return words.startsWith(`${name}: `) && !/\n( {4}at |\{)/.test(words) ? words : undefined
}

const wordsFrom = (log: string, from = 0): string => {
  try {
    return readFileSync(log).subarray(from).toString()
  } catch {
    return ''
  }
}

const lastWords = (log: string): string => wordsFrom(log).trim().split('\n').slice(-6).join('\n  ')
