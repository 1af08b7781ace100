import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { ROOT } from '../../../apps/platform/base/paths.ts'
import { until } from '../../support/until.ts'

/** The test run's variables about servers and Node, which a separate platform must not inherit. */
const FOREIGN = [
  'DATABASE_URL',
  'REDIS_URL',
  'NATS_URL',
  'TEMPORAL_ADDRESS',
  'NODE_OPTIONS',
  'NODE_ENV',
  'CHROMIUM_PATH',
  'CHROMIUM_SHELL_PATH',
]
const own = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !FOREIGN.includes(name) && !/^VITEST/.test(name)))

export type VerbOptions = {
  env?: Record<string, string>
  uid?: number
  gid?: number
  /** Another checkout whose entry point is used. */
  root?: string
}

/** A process and its output so far, without colors. */
export const running = (child: ChildProcess) => {
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  return {
    pid: child.pid as number,
    ended,
    text: () => stripVTControlCharacters(text),
    signal: (signal: NodeJS.Signals) => child.kill(signal),
    /** Waits until it has printed this; if it ends before, fails with all of its output. */
    says: async (what: RegExp, timeout_ms = 30_000): Promise<void> => {
      let over = false
      void ended.then(() => (over = true))
      const said = await until(() => what.test(text) || over, { timeout_ms }).catch(() => false)
      if (!said || !what.test(text)) throw new Error(`it ${over ? 'ended without' : 'did not say'} ${what}:\n${text}`)
    },
  }
}
export type Running = ReturnType<typeof running>

/** Runs `npm run <verb>` as its script does, without npm in between. */
export const runVerb = (verb: string, args: string[] = [], options: VerbOptions = {}): Running =>
  launch(process.execPath, [join(options.root ?? ROOT, 'apps/platform/bootstrap.mjs'), verb, ...args], options)

/** Runs it through npm itself. */
export const runNpm = (verb: string, args: string[] = [], options: VerbOptions = {}): Running =>
  launch('npm', ['run', '--silent', verb, '--', ...args], options)

const launch = (command: string, args: string[], { env, root = ROOT, ...who }: VerbOptions): Running =>
  running(
    spawn(command, args, {
      cwd: root,
      env: { ...own(), NO_COLOR: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...who,
    }),
  )
