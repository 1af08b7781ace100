import { createHash } from 'node:crypto'
import { Context } from '@temporalio/activity'
import { lineMaskerOf, type Masker, maskIn } from '../../apps/shared/data/mask.ts'
import { uuidv7 } from '../../apps/shared/ids.ts'
import {
  type Artifact,
  type AttemptNote,
  type AttemptRef,
  type LogLine,
  noteAttempt,
} from '../../db/operations/nodes/attempts.ts'
import type { Claim } from '../../db/operations/nodes/claim.ts'
import type { ActivityDeps } from '../deps.ts'
import type { ExecutorContext, ExecutorResult } from '../executors/types.ts'
import type { Work } from './inputs.ts'
import { type AttemptInput, type Look, patiently, refOf, refuseTarget } from './target.ts'

const BEAT_MS = 3000
/** Bytes of log lines waiting to be stored. An executor that writes more waits for Postgres. */
const HELD_BYTES = 256 * 1024

export type Granted = Extract<Claim, { verdict: 'granted' }>

export type Prepared = {
  work: Work
  inputs: Record<string, unknown>
  with: Record<string, unknown>
  mask: Masker
  wanted: boolean
  /** Happens before the call, on the first slice. */
  look: Look | undefined
}

export const isIdempotent = ({ spec }: Granted, role: AttemptInput['role']): boolean =>
  role === 'run' ? spec.idempotent : (spec.compensate?.idempotent ?? false)

/** The running attempt: its context, heartbeat and log. Stops when told to, or when its fencing token is outdated. */
export const startAttempt = (
  deps: ActivityDeps,
  ref: AttemptRef,
  input: AttemptInput,
  claim: Granted,
  { work, with: values, mask, look }: Prepared,
) => {
  const context = Context.current()
  const stop = new AbortController()
  const log = createLog({ lines: claim.log_lines, bytes: claim.log_bytes }, mask, () => new Date())
  const artifacts: Artifact[] = []
  // One note at a time, so that lines are stored in order.
  let noted: Promise<unknown> = Promise.resolve()
  const note = (what: AttemptNote = {}): Promise<boolean> => {
    const next = noted.then(async () => {
      const ours = await noteAttempt(deps.pool, ref, { ...what, lines: log.take() })
      log.done()
      return ours
    })
    noted = next.catch(() => {})
    return next
  }
  const stored = async (below = HELD_BYTES) => {
    while (log.waiting() > below && (await patiently(note)));
  }
  const began = Date.now() - (claim.now - claim.started_at)
  const executorContext: ExecutorContext = {
    ...refOf(input),
    generation: input.generation,
    fence: ref.fence,
    key: `${ref.operation_id}:${ref.node_id}:${ref.role === 'undo' ? 'c' : ''}${ref.attempt}`,
    pool: work.pool,
    with: values,
    secrets: work.secrets,
    timeouts: claim.spec.timeouts,
    idempotent: isIdempotent(claim, input.role),
    resume: claim.resume,
    repeated: claim.repeated,
    deadline: began + claim.spec.timeouts.run_s * 1000,
    slice_end: Date.now() + deps.limits.slice_s * 1000,
    signal: AbortSignal.any([context.cancellationSignal, stop.signal]),
    leave: deps.leave,
    log: log.add,
    checkpoint: (resume) => patiently(() => note({ resume: storable(resume, mask) })),
    stored: () => stored(),
    artifact: (artifact) => void artifacts.push(artifactOf(artifact, mask)),
  }
  const beat = async () => {
    context.heartbeat()
    if (!(await note())) stop.abort()
  }
  const call = async (name: string, given: Partial<ExecutorContext> = {}): Promise<ExecutorResult> => {
    const executor = deps.executors.get(name)
    if (!executor) return { status: 'failed', class: 'refused', message: `This worker has no executor "${name}".` }
    // The next beat makes up for a failed one, and sends its lines again.
    const timer = setInterval(() => void beat().catch((error) => deps.log.warn({ err: error }, 'heartbeat')), BEAT_MS)
    try {
      return await executor.run({ ...executorContext, ...given })
    } finally {
      clearInterval(timer)
    }
  }
  /** Returns the last lines, after storing everything that does not fit into one chunk. */
  const rest = async () => {
    log.settle()
    await stored(CHUNK_BYTES)
    await noted
    if (log.isSending()) await patiently(note)
    return log.take()
  }
  return {
    run: () => call(work.executor),
    /** Returns why the attempt must not act on the target in its current state. */
    look: async () => {
      if (!look) return undefined
      const seen = await call(look.executor, { with: look.with, key: `${executorContext.key}:read` })
      return refuseTarget(look, seen, claim.repeated)
    },
    rest,
    artifacts,
  }
}

/** Where an attempt resumes, with the secrets masked in what its target answered. */
export const storable = (resume: Record<string, unknown>, mask: Masker): Record<string, unknown> =>
  'raw' in resume ? { ...resume, raw: maskIn(resume.raw, mask) } : resume

/** Bytes that are text are masked like a log. */
const artifactOf = (
  { content, ...about }: Parameters<ExecutorContext['artifact']>[0],
  mask: (text: string) => string,
): Artifact => {
  const text = content.toString()
  const isText = typeof content === 'string' || Buffer.from(text).equals(content)
  const bytes = isText ? Buffer.from(mask(text)) : content
  return {
    ...about,
    artifact_id: uuidv7(),
    size: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    content: bytes.toString('base64'),
  }
}

const MAX_LINE = 16 * 1024
/** Maximum text of one stored chunk. */
const CHUNK_BYTES = 64 * 1024
const MAX_LOG = 50 * 1024 * 1024

/** An attempt's log lines: numbered without gaps across its slices, masked and bounded. One line marks a cut. */
export const createLog = ({ lines, bytes }: { lines: number; bytes: number }, mask: Masker, now: () => Date) => {
  let seq = lines
  let size = bytes
  let full = size > MAX_LOG
  const waiting: LogLine[] = []
  /** On its way to Postgres: until it is stored, it is sent again unchanged. */
  let chunk: LogLine[] = []
  let held = 0
  const masker = lineMaskerOf<{ stream: string; level: string; cut: boolean }>(mask, () => now().getTime())
  const push = (text: string, level: string, stream: string, cut: boolean) => {
    seq += 1
    const own = Buffer.byteLength(text)
    size += own
    held += own
    waiting.push({ seq, time: now().toISOString(), stream, level, text, ...(cut && { cut }) })
  }
  const put = ({ text, about: { level, stream, cut: begun } }: ReturnType<typeof masker.rest>[number]) => {
    const cut = Buffer.byteLength(text) > MAX_LINE
    push(cut ? Buffer.from(text).subarray(0, MAX_LINE).toString('utf8') : text, level, stream, cut || begun)
  }
  /** No line follows: none waits for the rest of a secret. */
  const settle = () => masker.rest().forEach(put)
  return {
    settle,
    add: (
      text: string,
      { level = 'info', stream = 'log', cut: begun = false }: Partial<Pick<LogLine, 'level' | 'stream' | 'cut'>> = {},
    ) => {
      if (full) return
      if (size > MAX_LOG) {
        full = true
        settle()
        return push('The log is longer than 50 MiB; the rest is not stored.', 'warn', 'log', false)
      }
      masker.add(text, { level, stream, cut: begun }).forEach(put)
    },
    /** Bytes not taken yet. */
    waiting: () => held,
    isSending: () => chunk.length > 0,
    /** The lines that the last `take` returned are stored. */
    done: () => {
      chunk = []
    },
    /** The next lines to store, at most one chunk; the same ones until they are `done`. */
    take: (): LogLine[] => {
      if (chunk.length > 0) return chunk
      // More than one chunk may hold the program up.
      masker.due(held > CHUNK_BYTES).forEach(put)
      let taken = 0
      let total = 0
      for (const line of waiting) {
        const own = Buffer.byteLength(line.text)
        if (taken > 0 && total + own > CHUNK_BYTES) break
        total += own
        taken += 1
      }
      held -= total
      chunk = waiting.splice(0, taken)
      return chunk
    },
  }
}
