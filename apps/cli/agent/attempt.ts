import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Work } from '../../shared/contracts/engine/executions.ts'
import { maskerOf, maskIn } from '../../shared/data/mask.ts'
import { isObject, tokensOf } from '../../shared/data/pointer.ts'
import { faultsInJob, inexactIn } from '../../shared/expressions/job-inputs.ts'
import { endStrays } from '../../shared/run/process.ts'
import { removeTree } from '../../shared/run/remove.ts'
import { previewPlaybook, runPlaybook } from './jobs/ansible.ts'
import { command } from './jobs/command.ts'
import { merge, previewCommit, push } from './jobs/git.ts'
import { ssh } from './jobs/ssh.ts'
import { applySet } from './kubernetes/apply.ts'
import { previewSet } from './kubernetes/preview.ts'
import { undoSet } from './kubernetes/undo.ts'
import { createLog, LINES, type Log } from './log.ts'
import { type Answer, createReporter, momentNow, since } from './report.ts'
import { beginAttempt } from './span.ts'
import { apply } from './tofu/apply.ts'
import { drift } from './tofu/drift.ts'
import { lock, unlock } from './tofu/lock.ts'
import { preview } from './tofu/preview.ts'
import { PUSH, rescueUnsaved } from './tofu/unsaved.ts'
import { credentialOf, secretsIn } from './tools/credentials.ts'
import { type AgentFile, named } from './tools/file.ts'
import { letIn, writeCredential } from './tools/host.ts'
import { Ended, failed, type Job, refusedBy, type Tool, type Verdict } from './tools/types.ts'

const TOOLS: Record<string, Tool> = {
  ...{ command, ssh, 'opentofu.preview': preview, 'opentofu.apply': apply, 'opentofu.drift': drift },
  ...{ 'opentofu.lock': lock, 'opentofu.unlock': unlock },
  ...{ 'git.preview': previewCommit, 'git.push': push, 'git.merge': merge },
  ...{ 'ansible.preview': previewPlaybook, 'ansible.run': runPlaybook },
  ...{ 'kubernetes.preview': previewSet, 'kubernetes.apply': applySet, 'kubernetes.undo': undoSet },
}

/** The jobs that `signalbox agent` carries out. */
export const JOBS: readonly string[] = Object.keys(TOOLS)

/** Jobs whose programs change no target. */
const READS = /\.(preview|lock|drift)$/

/** What a kill and its report may take. */
const SPARE_MS = 1000
/** More often than required: the answer to a heartbeat carries a cancellation. */
const BEAT_MS = 2000
const MAX_MESSAGE = 1000
const FOLDER = 'signalbox-agent-'
/** The folder of a live attempt has a recent time; one that is older was left by an agent that died. */
const LEFT_MS = 300_000

/** Folders of attempts of this process: a step of the clock must not make them count as left. */
const live = new Set<string>()

const namesIn = (folder: string, start: string): string[] =>
  (existsSync(folder) ? readdirSync(folder) : [])
    .filter((name) => name.startsWith(start))
    .map((name) => join(folder, name))

/** Keeps the folder of an attempt from counting as left until it is released, also while the attempt waits to begin. */
const holdFolder = (folder: string): (() => void) => {
  live.add(basename(folder))
  const timer = setInterval(() => void utimes(folder, new Date(), new Date()).catch(() => {}), BEAT_MS)
  return () => {
    clearInterval(timer)
    live.delete(basename(folder))
  }
}

/**
 * Removes what agents left when they were killed: keys and variables of their jobs, and half a copy of a provider. A state
 * that could not be written is kept: it may be the only record of new objects.
 */
export const removeLeft = ({ uids, state_dir }: AgentFile, say: (line: string) => void): void => {
  for (const path of [...namesIn(tmpdir(), FOLDER), ...namesIn(state_dir, `providers.${FOLDER}`)]) {
    if (live.has(basename(path).replace('providers.', ''))) continue
    try {
      const { uid: owner, mtimeMs } = lstatSync(path)
      if ([...uids, process.getuid?.()].includes(owner) && Date.now() - mtimeMs > LEFT_MS) {
        const kept = rescueUnsaved(state_dir, path)
        if (kept !== undefined) say(`A killed apply left a state that was not written: ${kept}. ${PUSH}`)
        removeTree(path)
      }
    } catch (error) {
      // Another agent may have been faster.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        say(`${path} is left, with the files of a killed job: ${(error as Error).message}`)
    }
  }
}

type Beating = Pick<ReturnType<typeof createReporter>, 'report'> & {
  work: Work
  first: Answer
  log: Log
  stop: AbortController
  say: (line: string) => void
}

/**
 * Sends the lines of a started attempt, and learns from the answers whether it must stop. It stops by itself if none is
 * accepted for two heartbeat intervals.
 */
const startBeating = ({ work, report, first, log, stop, say }: Beating) => {
  if (first.cancel_requested) stop.abort()
  /** When the last message that was accepted was sent: the control plane has counted from then on, or later. */
  let heard = first.at ?? momentNow()
  let lost = false
  let ended = false
  /** `shut`: the attempt is no longer ours, and each further message would only be another refusal. */
  let state: 'ready' | 'busy' | 'later' | 'shut' = 'ready'
  let beating: Promise<void> = Promise.resolve()
  const halt = (why: string) => {
    if (!stop.signal.aborted) say(`${work.node_id}: ${why}`)
    stop.abort()
  }
  const lose = () => {
    lost = true
    halt('lost; stopping')
  }
  const send = async () => {
    const part = log.part()
    const { status, at, cancel_requested, category, code } = await report(
      'heartbeat',
      { lines: part },
      1000 * work.heartbeat_s,
    )
    if (status === 200) {
      heard = at ?? heard
      log.done(part)
    }
    // The attempt is no longer ours. A proxy on the way cannot know that: silence ends it in its time.
    const rejected = category === 'execution_result_rejected' || code === 'invalid_token'
    if (rejected) lose()
    else if (cancel_requested) halt('told to stop')
    state = rejected ? 'shut' : status === 200 ? 'busy' : 'later'
  }
  /** Sends until less than one whole message of lines is left, or one is not accepted. */
  const beat = () => {
    if (ended || state === 'busy' || state === 'shut') return
    state = 'busy'
    const all = async () => {
      do await send()
      while (state === 'busy' && !ended && log.lines.length >= LINES)
      if (state === 'busy') state = 'ready'
    }
    beating = all()
  }
  const timer = setInterval(
    () => {
      // A request that hangs must not delay this.
      if (since(heard) > 2000 * work.heartbeat_s) lose()
      beat()
    },
    Math.min(BEAT_MS, work.heartbeat_s * 1000),
  )
  return {
    /** A loud program does not wait for the next beat. */
    hurry: () => {
      if (log.lines.length >= LINES && state === 'ready') beat()
    },
    /** Milliseconds until another agent may get the work, once this one is lost. */
    own_ms: () => (lost ? Math.max(3000 * work.heartbeat_s - SPARE_MS - since(heard), 0) : Infinity),
    /** Resolves when the last heartbeat is answered. */
    end: (): Promise<void> => {
      clearInterval(timer)
      ended = true
      return beating
    },
  }
}

/**
 * Runs one piece of work: it begins after its "started" report is accepted, in its own folder and environment. If no
 * heartbeat is accepted for two heartbeat intervals, it interrupts itself, so a repeat elsewhere never overlaps it.
 */
export const carryOut = async (file: AgentFile, handed: Work, told: AbortSignal, say: (line: string) => void) => {
  const work = isObject(handed.inputs) ? { ...handed, inputs: stated(handed.inputs) } : handed
  const span = beginAttempt(work, file.traces)
  const { report, keep, fetch, left_ms } = createReporter(work, span.traceparent)
  // Without it no work can begin, such as on a full disk.
  const folder = mkdtempSync(join(tmpdir(), FOLDER))
  const release = holdFolder(folder)
  const first = await report('started')
  if (first.status !== 200) {
    release()
    rmSync(folder, { recursive: true })
    return say(`${work.node_id}: not started, ${first.code ?? first.status}`)
  }
  say(`${work.node_id}: ${work.job} started, attempt ${work.attempt}`)
  const given = isObject(work.inputs) ? credentialOf(file, work.inputs, work.job) : '"inputs" must be an object.'
  const mask = maskerOf(typeof given === 'string' ? [] : secretsIn(given))
  const stop = new AbortController()
  const journal = createLog(mask, stop.signal)
  const { hurry, own_ms, end } = startBeating({ work, report, first, log: journal, stop, say })
  const log: Job['log'] = (text, line) => {
    journal.add(text, line)
    hurry()
  }
  const signal = AbortSignal.any([stop.signal, told])
  const tool = named(TOOLS, work.job)
  let acted = false
  const executed: Job['executed'] = {}
  const began = () => {
    acted ||= !READS.test(work.job)
  }
  const act = async (): Promise<Verdict> => {
    if (!tool) return refusedBy(`This agent does not know the job "${work.job}".`)
    if (typeof given === 'string') return refusedBy(given)
    const inputs = work.inputs as Record<string, unknown>
    const [wrong] = [...faultsInJob(work.job, inputs), ...inexactIn({ ...inputs, preview: undefined }, Infinity)]
    if (wrong)
      return refusedBy(`"${tokensOf(wrong.pointer).join('.')}" ${wrong.message.replace(/[.?]?$/, (end) => end || '.')}`)
    if (Object.keys(work.secrets ?? {}).length > 0)
      return refusedBy('This agent resolves no references to secrets; name a credential of its file.')
    const home = join(folder, 'home')
    const own = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: home, TMPDIR: join(home, 'tmp'), LANG: 'C.UTF-8' }
    const traced = span.traceparent ? { TRACEPARENT: span.traceparent } : {}
    for (const path of [home, own.TMPDIR]) mkdirSync(path, { mode: 0o700 })
    if (file.uid) letIn(file.uid, folder, home, own.TMPDIR)
    const env = { ...own, ...traced, ...given.env, ...writeCredential({ file, folder }, given.files) }
    const reports = { log, stored: journal.stored, keep, fetch, left_ms, own_ms, began, executed }
    return tool({ work, file, folder, home, env, mask, signal, ...reports })
  }
  try {
    const verdict = await act().catch((error: Error) =>
      error instanceof Ended ? error.verdict : faultOf(error, acted),
    )
    await end()
    journal.settle()
    // All lines except the last part are sent before the final message, which carries that part.
    for (let part = journal.part(); part.length < journal.lines.length; part = journal.part()) {
      journal.done(part)
      await report('heartbeat', { lines: part })
    }
    const { status, ...rest } = verdict
    void span.end(status)
    const ran = executedOf(executed)
    const last = async () => report(status, { ...closing(rest, mask), ...ran, lines: journal.lines })
    let said = await last().catch(asUnwritten)
    if ('outputs' in verdict && UNTAKEN.has(said.status))
      said = await report('failed', {
        ...closing(status === 'succeeded' ? untaken(said) : { ...rest, outputs: undefined, resume: undefined }, mask),
        ...ran,
        lines: journal.lines,
      })
    // The control plane may never learn it: this line is then all that tells what became of the work.
    const words = 'message' in verdict ? ` ${mask(verdict.message)}` : ''
    const refused = `, but the report was refused: ${said.code ?? said.status}.${words}`
    say(`${work.node_id}: ${status}${said.status === 200 ? '' : refused}`)
  } finally {
    void end()
    release()
    endStrays(basename(folder))
    try {
      removeTree(folder)
    } catch (error) {
      say(`${work.node_id}: ${folder} is left, with the files of the job: ${(error as Error).message}`)
    }
  }
}

/** An input of null counts as absent, as in the plan. */
const stated = (inputs: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(inputs).filter(([, value]) => value !== null))

type Failed = Extract<Verdict, { status: 'failed' }>

/** A fault of this agent after an acting job may have had an effect: nobody knows which. */
const faultOf = ({ message }: Error, acted: boolean): Verdict =>
  acted ? { status: 'unknown', class: 'agent_error', message } : failed('agent_error', message)

/** The outputs are too large or too deep, or the control plane refuses them for another reason. */
const UNTAKEN = new Set([400, 413, 422])
const untaken = ({ detail = 'the control plane refuses them.' }: Answer) => ({
  class: 'outputs_invalid',
  message: `The job succeeded, but not its outputs: ${detail}`,
  retryable: false,
})

/** Outputs nested thousands deep cannot even be sent: this is as if they were refused. */
const asUnwritten = ({ message }: Error): Answer => ({
  status: 422,
  detail: `they cannot be written as JSON (${message}).`,
})

/** None if no program began. */
const executedOf = ({ tool, ...more }: Job['executed']) => (tool === undefined ? {} : { executed: { tool, ...more } })

const closing = (verdict: object, mask: (text: string) => string) => {
  const { class: kind, message = '', retryable, outputs, resume } = verdict as Partial<Failed>
  const text = mask(message).slice(0, MAX_MESSAGE)
  return {
    ...(outputs && { outputs: maskIn(outputs, mask) }),
    ...(resume && { resume }),
    ...(kind !== undefined && { error: { class: kind, message: text, ...(retryable !== undefined && { retryable }) } }),
  }
}
