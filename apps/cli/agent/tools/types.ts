import { basename } from 'node:path'
import type { Work } from '../../../shared/contracts/engine/executions.ts'
import type { Executed } from '../../../shared/contracts/operations/common.ts'
import type { Masker } from '../../../shared/data/mask.ts'
import { type ProcessEnd, runProcess } from '../../../shared/run/process.ts'
import type { AgentFile } from './file.ts'
import { programAt } from './program.ts'
import { contain } from './sandbox.ts'

export type Verdict =
  | { status: 'succeeded'; outputs: Record<string, unknown> }
  | {
      status: 'failed'
      class: string
      message: string
      retryable?: boolean
      /** What it has found despite the failure. */
      outputs?: Record<string, unknown>
      /** What the next attempt of the node gets with its work. */
      resume?: Record<string, unknown>
    }
  /** The tool was killed, so its effect is unknown. */
  | { status: 'unknown'; class: string; message: string }

export type LogLine = { stream: 'stdout' | 'stderr' | 'log'; level: 'info' | 'warn' | 'error'; cut?: boolean }

/** The environment of a job: one sandbox and access to the control plane. */
export type Job = {
  work: Work
  file: AgentFile
  /** The attempt's own folder, removed with it. */
  folder: string
  /** The part of it that its programs may write to. */
  home: string
  env: Record<string, string>
  /** Masks the values of the job's credentials. */
  mask: Masker
  /** Aborted when the work must stop. */
  signal: AbortSignal
  log: (text: string, line?: Partial<LogLine>) => void
  stored: () => Promise<void>
  keep: (about: { name: string; kind: string; media_type: string }, bytes: Buffer) => Promise<{ sha256: string }>
  fetch: (sha256: string) => Promise<Buffer>
  /** Milliseconds until the end of the work's time. */
  left_ms: () => number
  /** Milliseconds until another agent may get the work: no end, unless this one is lost. */
  own_ms: () => number
  /** The job may have an effect from here on. */
  began: () => void
  /** The program so far, for the evidence. */
  executed: Partial<Executed>
}
export type Tool = (job: Job) => Promise<Verdict>

export const failed = (kind: string, message: string, retryable?: boolean): Verdict => ({
  status: 'failed',
  class: kind,
  message,
  ...(retryable !== undefined && { retryable }),
})
/** The commit that a job has put into force, for the catalog; of a folder it forgets an earlier one. */
export const inForce = ({ executed }: Job): { commit: string | null } => ({ commit: executed.commit ?? null })
/** The agent's own rules refuse the job; no tool was started. */
export const refusedBy = (message: string): Verdict => failed('agent_refused', message)

/** Ends a job early with a verdict. */
export class Ended extends Error {
  readonly verdict: Verdict
  constructor(verdict: Verdict) {
    super()
    this.verdict = verdict
  }
}
/** Ends a job by a rule of the agent. */
export const refusal = (message: string): Ended => new Ended(refusedBy(message))
const STALE = 'No change was made. Retry the preview: the gate asks with the new plan.'
/** The approved preview no longer holds. */
export const stale = (moved: string): Verdict => failed('preview_stale', `${moved} ${STALE}`, false)

type Run = {
  path: string
  args: readonly string[]
  cwd: string
  stdin?: string | Promise<string>
  grace_s: number
  ask?: 'SIGINT' | 'EOF'
  /** A lock keeps others from repeating it while it runs. */
  alone?: boolean
  /** It only prepares the work or looks at its result: evidence states the end of another program. */
  aside?: boolean
  env?: Record<string, string>
  log?: Job['log']
  timeout_s?: number
  max_line?: number
  memory_mib?: number | undefined
  uid?: number | undefined
  /** Other programs that it starts, and paths outside of the attempt's folder that it needs in a sandbox. */
  programs?: readonly string[]
  read?: readonly string[]
  write?: readonly string[]
}
/** The time of the work may be extended, but not this limit of a running program. */
const DAY_S = 86_400
const BIG = { file_blocks: 8_388_608, open_files: 4096 }

/**
 * Runs a program of a job in its own process group. It is interrupted when the work must stop or its time ends, and
 * killed after its grace period. It is killed at once if this agent dies.
 */
export const runTool = async (
  job: Job,
  { grace_s, ask = 'SIGINT', alone = false, aside = false, env = {}, log = job.log, timeout_s, uid, ...run }: Run,
): Promise<ProcessEnd> => {
  const program = await programAt(run.path)
  if (!aside) {
    // They are those of the run before.
    delete job.executed.exit
    delete job.executed.tool_sha256
  }
  if (!aside || job.executed.tool === undefined) Object.assign(job.executed, program)
  const left_ms = Math.max(job.left_ms(), 0)
  // The grace period and the final report must fit into the work's time.
  const grace_ms = Math.min(grace_s * 1000, left_ms / 4)
  const spare_ms = grace_ms + Math.min(2000, left_ms / 10)
  const end = Date.now() + (timeout_s ?? Infinity) * 1000
  const as = uid ?? job.file.uid
  const { sandbox } = job.file
  const { path, args, cwd, stdin = '', programs = [], read = [], write = [] } = run
  const started = sandbox
    ? { ...contain(sandbox, { path, args, cwd, programs, read, write: [...write, job.folder] }), contained: true }
    : { path, args }
  if (!aside) job.began()
  const ended = await runProcess({
    ...{ ...started, cwd, stdin, env: { ...job.env, ...env } },
    left_ms: () => Math.min(job.left_ms() - spare_ms, end - Date.now()),
    mark: basename(job.folder),
    limits: { cpu_s: DAY_S, memory_mib: run.memory_mib, ...BIG },
    // The lock of a state outlasts a lost agent, and a state that is not written is lost: such a tool has its time.
    ask: { signal: ask, grace_ms: () => Math.min(grace_ms, alone ? Infinity : job.own_ms()) },
    ...(run.max_line !== undefined && { max_line: run.max_line }),
    ...(as && { uid: as, gid: as }),
    signal: job.signal,
    log,
    stored: job.stored,
  })
  if (!aside && ended.how !== 'not_begun' && ended.code !== null) job.executed.exit = ended.code
  return ended
}

/** Whether an acting program ended well, even if it was told to stop: its effect took place. */
export const isDone = (end: ProcessEnd): boolean => end.how !== 'not_begun' && end.code === 0

/** The verdict if the program did not end on its own: someone stopped or killed it. `reads`: it changes no target. */
export const stopped = (end: ProcessEnd, name: string, reads = false): Verdict | undefined => {
  const done = reads ? ' No change was made.' : ''
  if (end.how === 'not_begun') return failed('refused', `${name} could not be started: ${end.message}`)
  if (end.code === null) {
    const message = `${name} was killed by ${end.signal}.${done}`
    const kind = { timeout: 'timeout', told: 'cancelled', ended: 'tool_failed' }[end.how]
    // Killed from outside, such as for lack of memory: a job that only reads may be tried again.
    return reads ? failed(kind, message, end.how !== 'told') : { status: 'unknown', class: kind, message }
  }
  if (end.how === 'timeout') return failed('timeout', `${name} ran out of time and ended on request.${done}`, false)
  if (end.how === 'told') return failed('cancelled', `${name} was canceled and ended.${done}`)
  return undefined
}
