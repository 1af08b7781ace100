import type { Tx } from '../../../db/client.ts'
import { announceArtifacts } from '../../../db/operations/agents/artifacts.ts'
import { HANDOVERS } from '../../../db/operations/agents/executions.ts'
import {
  appendLines,
  closeHandover,
  endExecution,
  type Handed,
  isNoted,
  keepAnswer,
  keepExecuted,
  knownAnswer,
  lockExecution,
  noteMessage,
} from '../../../db/operations/agents/results.ts'
import { noteBegun } from '../../../db/operations/agents/rows.ts'
import { offerPlaces } from '../../../db/operations/commands/places.ts'
import { tellEngine } from '../../../db/operations/commands/rows.ts'
import { stateFacts } from '../../../db/operations/facts/state.ts'
import type { LogLine } from '../../../db/operations/nodes/attempts.ts'
import type { ExecutionReply, ExecutionResult } from '../../shared/contracts/engine/executions.ts'
import type { Actor, NodeError, RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { digest, sha256Hex } from '../../shared/data/digest.ts'
import { AppError, type CodeOf } from '../../shared/errors.ts'
import { takeOutputs } from '../../shared/expressions/outputs.ts'
import type { Uses } from '../deps.ts'
import { refused } from '../policies/authority.ts'
import type { PlanPolicies } from '../policies/plans.ts'
import { judgePreviews } from '../policies/previews.ts'
import { attemptsOf } from './metrics.ts'

/** How long after the end of an attempt its log lines are still accepted. */
const LOGS_AFTER_S = 600
const MAX_OUTPUTS = 262_144
const MAX_PROGRESS = 16_384
const MAX_LOG = 50 * 1024 * 1024
const MAX_SEQ = 2 ** 31 - 1
/** An attempt that has less time is not handed over again. */
const LEAST_S = 10
const LOG_CUT = 'The log is longer than 50 MiB; the rest is not stored.'
const TERMINAL: ReadonlySet<ExecutionResult['phase']> = new Set(['succeeded', 'failed', 'unknown'])

/** `ended`: the refused message has ended the attempt, so a repeat gets the same answer. */
type Outcome = { reply: ExecutionReply } | { refusal: RefusalCode; ended?: true }

/**
 * Takes a message of an agent (operations.md 9.1). A late, stale, repeated or out-of-order message has no effect except
 * its exact answer. A refused message leaves a line in the history, unless an equal one is there, and the log lines
 * that it brought in time.
 */
export const takeResult = async (
  deps: Uses<'artifacts' | 'db' | 'nats' | 'planPolicies' | 'telemetry'>,
  token: string | undefined,
  message: ExecutionResult,
  request_id: string,
): Promise<ExecutionReply> => {
  if (message.outputs && Buffer.byteLength(JSON.stringify(message.outputs)) > MAX_OUTPUTS)
    throw new AppError('validation_error', 'too_large', `Outputs are at most ${MAX_OUTPUTS} bytes.`, { status: 422 })
  if (message.progress && Buffer.byteLength(JSON.stringify(message.progress)) > MAX_PROGRESS)
    throw new AppError('validation_error', 'too_large', `Progress is at most ${MAX_PROGRESS} bytes.`, { status: 422 })
  if (message.resume && Buffer.byteLength(JSON.stringify(message.resume)) > MAX_PROGRESS)
    throw new AppError('validation_error', 'too_large', `"resume" is at most ${MAX_PROGRESS} bytes.`, { status: 422 })
  const token_sha256 = sha256Hex(token ?? '')
  const stored = await storedAmong(deps, message)
  const mayEnd = TERMINAL.has(message.phase) || message.phase === 'started'
  const { handed, outcome } = await deps.db.transaction(async (tx) => {
    const handed = await lockExecution(tx, token_sha256, mayEnd)
    if (!handed || handed.expired) throw tokenRefused()
    checkIds(handed, message)
    return { handed, outcome: await answered(tx, deps.planPolicies, token_sha256, handed, message, stored) }
  })
  const { pool } = handed
  if (mayEnd) {
    // Whoever waits for the place need not wait for the sweeper.
    await offerPlaces(deps.db).catch((error) => deps.telemetry.log.warn({ err: error }, 'places'))
    deps.nats.wake('operations')
  }
  if (TERMINAL.has(message.phase) && ('reply' in outcome ? !outcome.reply.duplicate : outcome.ended))
    attemptsOf(deps.telemetry).inc({ pool, result: resultOf(outcome, message) })
  if ('refusal' in outcome) {
    // In a later transaction, because everyone else locks the history of an operation before its nodes.
    await deps.db.transaction((tx) => noteRefusal(tx, handed, message, outcome.refusal, request_id))
    throw refused(outcome.refusal)
  }
  // The list of agents is for people: no failure here keeps an agent from its work.
  if (message.agent !== undefined && mayEnd)
    await noteBegun(deps.db, token_sha256, pool, message.agent).catch((error) =>
      deps.telemetry.log.warn({ err: error }, 'the list of agents could not be written'),
    )
  return outcome.reply
}

/** A succeeded attempt may be stored as failed: its outputs or its preview were refused. */
const resultOf = (outcome: Outcome, { phase }: ExecutionResult) =>
  'refusal' in outcome || outcome.reply.node_state === 'failed' ? 'failed' : phase

type Kept = ExecutionReply | { refusal: RefusalCode }

/** Returns the answer to a message, which is kept for its repeats. */
const answered = async (
  tx: Tx,
  policies: PlanPolicies,
  token_sha256: string,
  handed: Handed,
  message: ExecutionResult,
  stored: ReadonlySet<string>,
): Promise<Outcome> => {
  const fingerprint = digest(message)
  const known = await knownAnswer(tx, token_sha256, message.result_id)
  if (known && known.fingerprint !== fingerprint)
    return { refusal: rejected('result_conflict', 'This result_id was sent before with different content.') }
  const answer = known?.answer as Kept | undefined
  if (answer && 'refusal' in answer) return answer
  if (answer) return repeated(tx, token_sha256, answer, handed, message)
  const outcome = await take(tx, policies, token_sha256, handed, message, stored)
  const kept = 'reply' in outcome ? outcome.reply : outcome.ended && { refusal: outcome.refusal }
  if (kept) await keepAnswer(tx, token_sha256, message.result_id, fingerprint, kept)
  return outcome
}

/**
 * The message that ended an attempt keeps its answer. Any other repeat is a sign of life, and accepted only while the
 * work is the agent's: it may act because of this answer, after an earlier one was lost.
 */
const repeated = async (
  tx: Tx,
  token_sha256: string,
  answer: ExecutionReply,
  handed: Handed,
  message: ExecutionResult,
): Promise<Outcome> => {
  if (TERMINAL.has(message.phase)) return { reply: { ...answer, duplicate: true, left_s: handed.left_s } }
  const refusal = refuseStale(handed, message) ?? refuseClosed(handed)
  if (refusal) return { refusal }
  const { sequence } = handed
  await noteMessage(tx, token_sha256, handed, { sequence, progress: undefined, started: false })
  return { reply: { ...replyOf(handed, handed.node_state), duplicate: true } }
}

export const tokenRefused = () =>
  new AppError('policy_denied', 'invalid_token', 'The execution token is not valid.', {
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
    hint: 'Use the execution_token that came with the work; it ends with the attempt.',
  })

const rejected = (code: CodeOf<'execution_result_rejected'>, detail: string, status = 409): RefusalCode => ({
  category: 'execution_result_rejected',
  code,
  detail,
  status,
})

/** Token and body must name the same work. */
const checkIds = (handed: Handed, message: ExecutionResult): void => {
  const wrong = (['operation_id', 'node_id'] as const).filter((name) => handed[name] !== message[name])
  if (wrong.length === 0) return
  throw new AppError('validation_error', 'id_mismatch', 'The token was given for other work.', {
    violations: wrong.map((name) => ({
      pointer: `/${name}`,
      code: 'id_mismatch',
      message: 'does not match the token',
    })),
  })
}

/** Returns the announced bytes that are already stored, by another attempt or another operation. */
const storedAmong = async ({ artifacts }: Uses<'artifacts'>, message: ExecutionResult): Promise<Set<string>> => {
  const stored = new Set<string>()
  for (const { sha256, size } of message.artifacts ?? []) if (await artifacts.has(sha256, size)) stored.add(sha256)
  return stored
}

const take = async (
  tx: Tx,
  policies: PlanPolicies,
  token_sha256: string,
  handed: Handed,
  message: ExecutionResult,
  stored: ReadonlySet<string>,
): Promise<Outcome> => {
  const stale = refuseStale(handed, message)
  if (stale) return { refusal: stale }
  const keeps = !isLate(handed) || (handed.ended_s ?? 0) <= LOGS_AFTER_S
  const lines = bounded(handed, message.lines ?? [])
  const conflict = keeps ? await appendLines(tx, handed, handed.generation, lines) : undefined
  if (conflict !== undefined)
    return {
      refusal: rejected(
        'log_conflict',
        `Line ${conflict - handed.lines_before} already exists with different text.`,
        422,
      ),
    }
  const other =
    keeps && handed.started
      ? await announceArtifacts(tx, handed, message.artifacts ?? [], stored, token_sha256)
      : undefined
  if (other !== undefined)
    return {
      refusal: rejected(
        'artifact_digest_mismatch',
        `The artifact "${other}" was already announced with different content.`,
        422,
      ),
    }
  const closed = refuseClosed(handed)
  if (closed) return { refusal: closed }
  const unready = refuseBegin(handed, message.phase === 'started')
  if (unready) return { refusal: rejected('not_dispatched', unready) }
  if (message.phase === 'started' && handed.role === 'run' && handed.control === 'cancel') {
    const [phase, when] = handed.begun_before
      ? (['unknown', 'after its agent was lost'] as const)
      : (['failed', 'before an agent began'] as const)
    const error = { class: 'cancelled', message: `The operation was cancelled ${when}.` }
    await end(tx, policies, token_sha256, handed, { ...message, phase, error })
    return { refusal: rejected('attempt_closed', error.message), ended: true }
  }
  const terminal = TERMINAL.has(message.phase)
  // Out of order: an old heartbeat is ignored; an end still counts.
  if (!terminal && message.sequence <= handed.sequence) return { reply: replyOf(handed, handed.node_state) }
  if (!terminal) {
    await noteMessage(tx, token_sha256, handed, {
      sequence: message.sequence,
      progress: message.progress,
      started: message.phase === 'started',
    })
    return { reply: replyOf(handed, handed.node_state) }
  }
  return end(tx, policies, token_sha256, handed, message)
}

const isLate = ({ phase }: Handed): boolean => phase !== 'running' && phase !== 'dispatched'

const refuseClosed = (handed: Handed): RefusalCode | undefined =>
  isLate(handed) || handed.closed
    ? rejected('attempt_closed', `The attempt is ${(isLate(handed) && handed.phase) || 'closed'}.`)
    : undefined

/** One "started" is accepted: of two agents that have the same work, one begins it. None does once a cancel was accepted. */
const refuseBegin = ({ started, start_due }: Handed, begins: boolean): string | undefined => {
  if (!begins) return started ? undefined : 'Report "started" first, and continue once it is accepted.'
  if (started) return 'Another agent has begun it. A retry must use the same result_id.'
  return start_due ? 'The time to begin has passed.' : undefined
}

/** Limits the log as for any other attempt; the line after the last one kept says so. */
const bounded = (
  { log_bytes, log_lines, lines_before }: Handed,
  given: NonNullable<ExecutionResult['lines']>,
): LogLine[] => {
  if (log_bytes > MAX_LOG) return []
  const lines: LogLine[] = given.flatMap(({ seq, ...line }) =>
    seq + lines_before < MAX_SEQ ? { seq: seq + lines_before, ...line } : [],
  )
  const last = lines.reduce((most, line) => Math.max(most, line.seq), 0)
  // Lines whose answer was lost come again; they are counted already.
  const size = lines.reduce((sum, { seq, text }) => (seq > log_lines ? sum + Buffer.byteLength(text) : sum), log_bytes)
  if (size > MAX_LOG)
    lines.push({ seq: last + 1, time: new Date().toISOString(), stream: 'log', level: 'warn', text: LOG_CUT })
  return lines
}

const refuseStale = (handed: Handed, { attempt, generation, fence }: ExecutionResult): RefusalCode | undefined => {
  const current =
    attempt === handed.attempt &&
    generation === handed.generation &&
    handed.attempt === handed.node_attempt &&
    handed.generation === handed.node_generation
  if (!current)
    return rejected(
      'stale_attempt',
      `The node is in attempt ${handed.node_attempt}, generation ${handed.node_generation}.`,
    )
  if (fence !== handed.fence || !handed.newest)
    return rejected('stale_fence', 'The attempt was handed to another agent.')
  return undefined
}

const replyOf = (handed: Handed, node_state: string): ExecutionReply => ({
  accepted: true,
  duplicate: false,
  node_state,
  cancel_requested: handed.control === 'cancel' && handed.cancel_mode === 'force',
  next_before: new Date(Date.now() + 3000 * handed.heartbeat_s).toISOString(),
  left_s: handed.left_s,
})

const end = async (
  tx: Tx,
  policies: PlanPolicies,
  token_sha256: string,
  handed: Handed,
  message: ExecutionResult,
): Promise<Outcome> => {
  const done = message.phase === 'succeeded'
  // Other nodes must not use the outputs of an undo. A failure may have some too.
  const taken =
    handed.role === 'run' && (done || (message.phase === 'failed' && message.outputs))
      ? takeOutputs(handed.spec, message.outputs ?? {})
      : { outputs: null, error: null }
  const denied =
    taken.outputs && !taken.error ? await judgePreviews(tx, policies, handed, message.outputs ?? {}) : undefined
  const unfit = (done ? taken.error : null) ?? denied
  const error = unfit ?? (done ? null : errorOf(message))
  // Only an agent that killed its tool reports an unknown outcome.
  const status = message.phase === 'unknown' ? 'unknown' : error ? 'failed' : 'succeeded'
  const { operation_id, node_id, role, attempt, fence } = handed
  const result = { node_id, role, attempt, fence, status, ...(error && { ...error }) }
  const executed = message.executed ? { ...message.executed, ...(handed.agent && { agent: handed.agent }) } : null
  if (status === 'unknown' && mayRepeat(handed)) {
    if (executed) await keepExecuted(tx, handed, executed)
    await closeHandover(tx, token_sha256)
    await tellEngine(tx, operation_id, 'node_result', { ...result, status: 'again' }, { actor: agentOf(handed) })
    return { reply: { ...replyOf(handed, handed.node_state), next_before: null } }
  }
  const phase = status === 'unknown' ? 'outcome_unknown' : status
  const outputs = unfit || taken.error ? null : taken.outputs
  const resume = phase === 'failed' ? (message.resume ?? null) : null
  if (!(await endExecution(tx, token_sha256, handed, { phase, outputs, resume, error, executed })))
    return { refusal: rejected('attempt_closed', 'The attempt was closed a moment ago.') }
  await tellEngine(tx, operation_id, 'node_result', result, { actor: agentOf(handed) })
  if (done && taken.error) return { refusal: rejected('outputs_invalid', taken.error.message, 422), ended: true }
  return { reply: { ...replyOf(handed, phase), next_before: null } }
}

/** An outcome that its agent does not know is treated like that of a lost agent: only an idempotent step is repeated. */
const mayRepeat = ({ spec, role, control, cancel_mode, handovers, left_s }: Handed): boolean => {
  const stopped = role === 'run' ? control === 'cancel' : cancel_mode === 'force'
  const idempotent = role === 'run' ? spec.idempotent : (spec.compensate?.idempotent ?? false)
  return idempotent && !stopped && handovers < HANDOVERS && left_s >= LEAST_S
}

const errorOf = ({ error }: ExecutionResult): NodeError => ({
  class: error?.class ?? 'remote_error',
  message: error?.message ?? 'The agent gave no reason.',
  retryable: error?.retryable ?? false,
})

const agentOf = ({ pool }: Handed): Actor => ({ kind: 'executor', id: `agent:${pool}`, name: `agent of ${pool}` })

/** Once: an agent that does not understand the refusal of a heartbeat sends the next one. */
const noteRefusal = async (
  tx: Tx,
  handed: Handed,
  { phase, attempt, fence }: ExecutionResult,
  { code, detail }: RefusalCode,
  request_id: string,
): Promise<void> => {
  const { operation_id, node_id } = handed
  const event = { type: 'node.result_refused', node_id, data: { code, phase, attempt, fence }, reason: detail }
  if (await isNoted(tx, operation_id, event)) return
  await stateFacts(tx, operation_id, { request_id, events: [{ ...event, actor: agentOf(handed) }] })
}
