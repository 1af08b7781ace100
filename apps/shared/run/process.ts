import { type ChildProcessWithoutNullStreams, type SpawnOptions, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { availableParallelism, constants } from 'node:os'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as delay } from 'node:timers/promises'

const GRACE_MS = 10_000
/** How much of one line is read, unless the caller asks for more; the log cuts it anyway. */
const MAX_LINE = 32 * 1024
/** 256 MiB, in blocks of 512 B. */
const FILE_BLOCKS = 524_288
const OPEN_FILES = 256
/** They may start others meanwhile. */
const MOST_TURNS = 5
/** How long the pipes of an ended process are still read. */
const DRAIN_MS = 2000

/** The variable by which processes are found that left their group, on Linux. */
const MARK = 'SIGNALBOX_RUN'

/**
 * A fixed script that only sets limits and then becomes the program. The plan's values are in "$@", which no shell
 * parses again. Node cannot set limits. Beside the program a reader waits for the end of pipe 3, which comes whenever
 * this process dies. It then ends the whole group and those who left it: a program that kept running unseen would
 * collide with its retry. It ignores the signals that ask the group to end, as the program may.
 */
const LIMITED = [
  'ulimit -c 0; ulimit -t "$1"; ulimit -f "$2"; ulimit -n "$3"; [ "$4" = 0 ] || ulimit -v "$4"; m=$5; shift 5',
  `( { trap '' HUP INT QUIT TERM; read -r _ <&3; kill -KILL $(grep -lsa "${MARK}=$m" /proc/[0-9]*/environ | cut -d/ -f3); kill -KILL 0; } </dev/null >/dev/null 2>&1 & )`,
  `export ${MARK}="$m"; exec "$@" 3<&-`,
].join('\n')

export type ProcessInput = {
  /** Identifies the run of this program and its descendants; several programs may share it. */
  mark: string
  signal: AbortSignal
  /** `cut`: the line was longer than is read. */
  log: (text: string, options: { stream: 'stdout' | 'stderr'; level: 'info' | 'warn'; cut?: boolean }) => void
  /** Resolves when few enough lines are waiting to be stored. */
  stored: () => Promise<void>
  path: string
  args: readonly string[]
  cwd: string
  env: Record<string, string>
  /** A promise is written when it resolves, such as after the program's first word. */
  stdin: string | Promise<string>
  /** Milliseconds until it must end; the time may grow in the meantime. */
  left_ms: () => number
  /** cpu_s: of one processor; the program may use all of them. */
  limits: { cpu_s: number; memory_mib: number | undefined; file_blocks?: number; open_files?: number }
  /** How the process is asked to end and how long it may take before the kill. EOF: its input stays open until then. */
  ask?: { signal: 'SIGINT' | 'SIGTERM' | 'EOF'; grace_ms: () => number }
  /** How much of one line is passed to `log`. */
  max_line?: number
  /** The program is bwrap, which names the first process of its sandbox on pipe 4. */
  contained?: boolean
  uid?: number
  gid?: number
}
export type ProcessEnd =
  | { how: 'not_begun'; message: string }
  | { how: 'ended' | 'timeout' | 'told'; code: number | null; signal: string | null }

/** Runs one process in its own group, line by line into the log; when it is over, so is its whole group. */
export const runProcess = async (input: ProcessInput): Promise<ProcessEnd> => {
  const { path, args, cwd, env, stdin, limits, uid, gid, contained = false } = input
  const { ask = { signal: 'SIGTERM', grace_ms: () => GRACE_MS } } = input
  const { cpu_s, memory_mib = 0, file_blocks = FILE_BLOCKS, open_files = OPEN_FILES } = limits
  const numbers = [cpu_s * availableParallelism() + 1, file_blocks, open_files, memory_mib * 1024, input.mark].map(
    String,
  )
  const child = begin(['-c', LIMITED, 'sh', ...numbers, path, ...args], {
    cwd,
    env,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', 'pipe', ...(contained ? ['pipe' as const] : [])],
    ...(uid !== undefined && { uid, gid: gid ?? uid }),
  })
  if (child instanceof Error) return { how: 'not_begun', message: child.message }
  const leader = contained ? leaderOf(child.stdio[4] as Readable) : Promise.resolve(child.pid)
  const isOver = () => child.exitCode !== null || child.signalCode !== null
  let how: 'ended' | 'timeout' | 'told' = 'ended'
  let kill: NodeJS.Timeout | undefined
  const end = (because: 'timeout' | 'told') => {
    // One that is over has ended by itself, although its output may still be read.
    if (how !== 'ended' || isOver()) return
    how = because
    if (ask.signal === 'EOF') child.stdin.end()
    else void leader.then((pid) => askGroup(pid, ask.signal as NodeJS.Signals, isOver))
    kill = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), ask.grace_ms())
  }
  const told = () => end('told')
  const overIn = (ms: number): NodeJS.Timeout => setTimeout(look, Math.max(ms, 0))
  const look = () => {
    const left = input.left_ms()
    if (left > 0) time = overIn(left)
    else end('timeout')
  }
  let time = overIn(input.left_ms())
  input.signal.addEventListener('abort', told)
  if (input.signal.aborted) told()
  // A program may close its input pipe without reading it.
  child.stdin.on('error', () => {})
  void Promise.resolve(stdin)
    .then((text) => (ask.signal === 'EOF' ? child.stdin.write(text) : child.stdin.end(text)))
    .catch(() => child.stdin.destroy())
  try {
    return await new Promise<ProcessEnd>((resolve) => {
      child.on('error', ({ message }) => resolve({ how: 'not_begun', message }))
      const over = new Promise<void>((done) => child.on('exit', () => done()))
      const lines = Promise.all([read(child.stdout, 'stdout', input, over), read(child.stderr, 'stderr', input, over)])
      child.on('exit', (code, signal) => {
        // Its child processes end with it, including any that would keep its output open.
        signalGroup(child.pid, 'SIGKILL')
        // A child that left the group may hold a pipe open forever.
        const drained = setTimeout(() => {
          child.stdout.destroy()
          child.stderr.destroy()
        }, DRAIN_MS)
        void lines.then(() => {
          clearTimeout(drained)
          resolve({ how, ...(contained ? endWithin(code, signal) : { code, signal }) })
        })
      })
    })
  } finally {
    clearTimeout(time)
    clearTimeout(kill)
    input.signal.removeEventListener('abort', told)
  }
}

/** Returns the error of a process that did not begin: its arguments are too long, or no process or pipe is left. */
const begin = (args: string[], options: SpawnOptions): ChildProcessWithoutNullStreams | Error => {
  try {
    const child = spawn('/bin/sh', args, options)
    if (child.stdin) return child as ChildProcessWithoutNullStreams
    child.on('error', () => {})
    return new Error('too many files are open')
  } catch (error) {
    return error as Error
  }
}

/** Ends every process of a run that is left, such as one that a program has put into a group of its own. */
export const endStrays = (mark: string): void => {
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    const found = pids().filter((pid) => environmentOf(pid).includes(`${MARK}=${mark}\0`))
    if (found.length === 0) return
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended in the meantime.
      }
    }
  }
}

const pids = (): number[] => (existsSync('/proc') ? readdirSync('/proc').map(Number).filter(Number.isInteger) : [])

/** Empty if it may not be read: then the process is not ours. */
const environmentOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch {
    return ''
  }
}

/** False if the group is empty. */
const signalGroup = (pid: number | undefined, signal: NodeJS.Signals): boolean => {
  if (pid === undefined) return false
  try {
    return process.kill(-pid, signal)
  } catch (error) {
    // ESRCH: the group is empty. EPERM (macOS): the same for a group of ended processes.
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ESRCH' && code !== 'EPERM') throw error
    return false
  }
}

/** The first process of a sandbox leads its group only a moment after bwrap has named it. */
const askGroup = async (pid: number | undefined, signal: NodeJS.Signals, isOver: () => boolean): Promise<void> => {
  while (!isOver() && !signalGroup(pid, signal)) await delay(10)
}

/** The first process of a sandbox. bwrap itself would end at a signal, and kill the program with it. */
const leaderOf = (info: Readable): Promise<number> =>
  new Promise((resolve) => {
    let text = ''
    info.on('data', (chunk) => {
      text = `${text}${chunk}`.slice(0, 1000)
      const [, pid] = /"child-pid": *(\d+)/.exec(text) ?? []
      if (pid !== undefined) resolve(Number(pid))
    })
  })

/** bwrap states the signal that killed its program as a code, as shells do. */
const endWithin = (code: number | null, signal: string | null) => {
  const [name] = Object.entries(constants.signals).find(([, number]) => number + 128 === code) ?? []
  return name === undefined ? { code, signal } : { code: null, signal: name }
}

/** Reads lines of one stream, no faster than they can be stored; little is left in its pipe when it is `over`. */
const read = async (
  stream: Readable,
  name: 'stdout' | 'stderr',
  { log, stored, max_line = MAX_LINE }: ProcessInput,
  over: Promise<void>,
): Promise<void> => {
  const decoder = new StringDecoder('utf8')
  let open = ''
  let cut = false
  const put = () => {
    const level = name === 'stderr' ? 'warn' : 'info'
    log(open.replace(/\r$/, ''), { stream: name, level, ...(cut && { cut }) })
    open = ''
    cut = false
  }
  try {
    for await (const chunk of stream) {
      const parts = decoder.write(chunk as Buffer).split('\n')
      for (const [i, part] of parts.entries()) {
        cut ||= open.length + part.length > max_line
        open = (open + part).slice(0, max_line)
        if (i === parts.length - 1) break
        put()
      }
      await Promise.race([stored(), over])
    }
  } catch {
    // The stream broke off with the process; its exit status says the rest.
  }
  if (open !== '') put()
}
