import { ApplicationFailure, Context } from '@temporalio/activity'
import { type NodeError, RETRYABLE } from '../../apps/shared/contracts/operations/graph.ts'
import { crashPoint } from '../../apps/shared/crash.ts'
import { maskerOf, maskIn } from '../../apps/shared/data/mask.ts'
import { CelError } from '../../apps/shared/expressions/cel.ts'
import { takeOutputs } from '../../apps/shared/expressions/outputs.ts'
import { ValueError } from '../../apps/shared/expressions/values.ts'
import { isOutage } from '../../apps/shared/process/outage.ts'
import { readEnd } from '../../db/operations/agents/executions.ts'
import {
  type Artifact,
  type AttemptEnd,
  type AttemptRef,
  endAttempt,
  noteAttempt,
  outputsOf,
} from '../../db/operations/nodes/attempts.ts'
import { type Claim, claimAttempt } from '../../db/operations/nodes/claim.ts'
import type { AttemptResult } from '../../workflows/operation/state/events.ts'
import type { ActivityDeps } from '../deps.ts'
import type { ExecutorResult } from '../executors/types.ts'
import {
  allowSecrets,
  inputsOf,
  isWanted,
  namesOfWork,
  PreviewStale,
  refuseOldPreview,
  resolveSecrets,
  SecretError,
  type Work,
  workOf,
} from './inputs.ts'
import { type Granted, isIdempotent, type Prepared, startAttempt, storable } from './running.ts'
import { type AttemptInput, createAims, lookOf, patiently, refOf } from './target.ts'

/** Tries of one activity; the workflow sets the same number (operations.md 8). */
const ACTIVITY_TRIES = 5
/** Seconds until an attempt that cannot be claimed now asks again. */
const AGAIN_S = 5

/** One attempt of a node: claim, resolve, executor, result. Two commits; no state between them can be lost. */
export const createExecutionActivities = (deps: ActivityDeps) => {
  const takeAim = createAims(deps)
  return {
    run_attempt: async (input: AttemptInput): Promise<AttemptResult> => {
      // This try has no effect yet, so the attempt waits out an outage of Postgres instead of ending as unknown: its next
      // part claims again, and that claim knows whether an earlier try had begun.
      const claim = await claimProved(deps, input, takeAim).catch((error) => {
        if (!isOutage(error)) throw error
        deps.log.warn({ err: error, operation_id: input.operation_id, node_id: input.node_id }, 'an attempt waits')
      })
      if (!claim) return { status: 'pending', started_at: Date.now(), poll_after_s: AGAIN_S }
      if (claim.verdict === 'refused') {
        deps.observe.refused(claim.reason)
        const { verdict: _, ...refusal } = claim
        return { status: 'refused', refusal }
      }
      if (claim.verdict === 'ended') return endedBefore(claim)
      crashPoint('activity.after_claim')
      return carryOut(deps, input, claim)
    },
  }
}

/** If the voters were proved this often and the claim still finds the proof too old, identity counts as away. */
const PROOFS = 3

/**
 * Claims an attempt whose target and voters are valid. If the voters' proof is too old, it has them proved and claims
 * again. Each claim directly follows the query about its target; otherwise that query is repeated too.
 */
const claimProved = async (
  deps: ActivityDeps,
  input: AttemptInput,
  takeAim: ReturnType<typeof createAims>,
): Promise<Exclude<Claim, { verdict: 'recheck' }>> => {
  const terms = { places: deps.policy.places, standing_s: deps.limits.standing_s }
  for (let away: string | undefined, proofs = 1; ; proofs++) {
    const claim = await patiently(async () =>
      claimAttempt(deps.pool, input, { ...terms, ...(await takeAim(input)), away, proved: proofs > 1 }),
    )
    if (claim.verdict !== 'recheck') return claim
    Context.current().heartbeat()
    // No gates: the catalog's answer is too old, so it is asked again.
    if (claim.gate_ids.length > 0)
      away = proofs > PROOFS ? 'identity' : await deps.standing.prove(input.operation_id, claim.gate_ids)
  }
}

/** Repeats the known end of an attempt, because the answer of an earlier try was lost. */
const endedBefore = ({ phase, error, started_at, ended_at }: Extract<Claim, { verdict: 'ended' }>): AttemptResult => {
  const said = error ?? { class: 'cancelled', message: 'The attempt was closed.', retryable: false }
  if (phase === 'succeeded') return { status: 'succeeded', started_at, ended_at }
  if (phase === 'failed') return { status: 'failed', started_at, ended_at, error: said }
  return { status: 'unknown', error: said }
}

/** An agent may have ended it meanwhile; then that end is reported instead of dropping the attempt. */
const endedByOther = async (deps: ActivityDeps, ref: AttemptRef): Promise<AttemptResult> => {
  const ended = await patiently(() => readEnd(deps.pool, ref))
  return ended ? endedBefore({ verdict: 'ended', ...ended }) : { status: 'dropped' }
}

const carryOut = async (deps: ActivityDeps, input: AttemptInput, claim: Granted): Promise<AttemptResult> => {
  const { fence, spec } = claim
  const ref: AttemptRef = { ...refOf(input), fence }
  const work = workOf(spec, input.role, claim.input_overrides)
  const prepared = await prepare(deps, input, work, claim).catch(asFailure)
  if ('status' in prepared) return finish(deps, ref, failureEnd(prepared, {}), prepared)
  if (!prepared.wanted) return finish(deps, ref, endOf('succeeded', prepared.inputs, null, null))
  const started = performance.now()
  const attempt = startAttempt(deps, ref, input, claim, prepared)
  const result = (await attempt.look()) ?? (await attempt.run())
  crashPoint('activity.after_effect')
  deps.observe.attempt(work.executor, result.status, (performance.now() - started) / 1000)
  const taken = hasFound(result) && input.role === 'run' ? takeOutputs(spec, result.raw) : null
  const verdict = taken?.error && result.status === 'succeeded' ? failedBy(taken.error) : result
  const lines = await attempt.rest()
  if (verdict.status === 'pending') {
    const { resume, progress } = verdict
    const note = {
      lines,
      resume: storable(resume, prepared.mask),
      ...(progress && { progress }),
      inputs: prepared.inputs,
    }
    const ours = await patiently(() => noteAttempt(deps.pool, ref, note))
    return ours
      ? { status: 'pending', started_at: claim.started_at, poll_after_s: verdict.poll_after_s }
      : endedByOther(deps, ref)
  }
  if (verdict.status === 'unknown' && !verdict.final && mayRepeat(claim, input)) {
    await patiently(() => noteAttempt(deps.pool, ref, { lines }))
    throw ApplicationFailure.retryable(prepared.mask(verdict.message), 'attempt_unknown')
  }
  const artifacts = attempt.artifacts
  const outputs = taken && !taken.error ? maskIn(taken.outputs, prepared.mask) : null
  const end =
    verdict.status === 'succeeded'
      ? endOf('succeeded', prepared.inputs, outputs, null, lines, artifacts)
      : failureEnd(verdict, prepared.inputs, lines, prepared.mask, outputs)
  return finish(deps, ref, end, verdict.status === 'failed' ? verdict : undefined)
}

/** Whether it carries a raw result; a failure may, too. */
const hasFound = (result: ExecutorResult): result is Extract<ExecutorResult, { raw?: unknown }> =>
  result.status === 'succeeded' || (result.status === 'failed' && result.raw !== undefined)

/**
 * Whether an unknown outcome is retried under a new fencing token and the same key: only if the node is idempotent. An
 * attempt that missed its heartbeats is also canceled, but without a cancel request: the engine has begun the next try.
 */
const mayRepeat = (claim: Granted, { role }: AttemptInput): boolean => {
  const { info, cancellationDetails } = Context.current()
  return isIdempotent(claim, role) && info.attempt < ACTIVITY_TRIES && !cancellationDetails?.cancelRequested
}

const prepare = async (
  deps: ActivityDeps,
  input: AttemptInput,
  work: Work,
  { spec, resume, repeated }: Granted,
): Promise<Prepared> => {
  // No effect has begun here either, but a repeat of the claim could not know that.
  const nodes = await patiently(() => outputsOf(deps.pool, input.operation_id, namesOfWork(work)))
  const wanted = isWanted(work, nodes)
  const inputs = inputsOf(work, nodes)
  // A repeat may find work that has begun, and an undo restores, however long ago its change was foreseen.
  if (!repeated && input.role === 'run') await refuseOldPreview(deps.pool, input.operation_id, work, inputs.max_age_s)
  const read = wanted && input.role === 'run' && (resume === null || !repeated) ? spec.read : undefined
  const refers = deps.executors.get(work.executor)?.refers === true
  if (refers) allowSecrets(work.secrets, work.pool, deps.policy)
  const secrets = read || (wanted && !refers) ? await resolveSecrets(work.secrets, work.pool, deps) : {}
  return {
    work,
    wanted,
    inputs,
    with: refers ? inputs : wanted ? inputsOf(work, nodes, secrets) : {},
    mask: maskerOf(Object.values(secrets)),
    look: read && lookOf(read, secrets),
  }
}

type Failed = Extract<ExecutorResult, { status: 'failed' }>
const failedBy = ({ class: kind, message, retryable }: NodeError): Failed => ({
  status: 'failed',
  class: kind,
  message,
  retryable,
})

/** A value that cannot be resolved is a definite failure, because no call was sent. */
const asFailure = (error: unknown): Failed => {
  if (error instanceof SecretError) return { status: 'failed', class: error.kind, message: error.message }
  if (error instanceof PreviewStale)
    return { status: 'failed', class: 'preview_stale', message: error.message, retryable: false }
  if (error instanceof ValueError || error instanceof CelError)
    return { status: 'failed', class: 'expression_error', message: error.message }
  throw error
}

const endOf = (
  phase: AttemptEnd['phase'],
  inputs: unknown,
  outputs: AttemptEnd['outputs'],
  error: NodeError | null,
  lines: AttemptEnd['lines'] = [],
  artifacts: Artifact[] = [],
): AttemptEnd => ({ phase, inputs, outputs, error, lines, artifacts })

const MAX_MESSAGE = 1000

const failureEnd = (
  result: Exclude<ExecutorResult, { status: 'pending' | 'succeeded' }>,
  inputs: unknown,
  lines: AttemptEnd['lines'] = [],
  mask: (text: string) => string = (text) => text,
  outputs: AttemptEnd['outputs'] = null,
): AttemptEnd => {
  const retryable = result.status === 'failed' && (result.retryable ?? RETRYABLE.has(result.class))
  const hint = result.status === 'failed' ? result.hint : undefined
  const message = mask(result.message).slice(0, MAX_MESSAGE)
  const error = { class: result.class, message, retryable, ...(hint !== undefined && { hint }) }
  return endOf(result.status === 'unknown' ? 'outcome_unknown' : 'failed', inputs, outputs, error, lines)
}

/** Writes the end, with patience: the effect has happened, and a repeat would be a costly way to find that out. */
const finish = async (
  deps: ActivityDeps,
  ref: AttemptRef,
  end: AttemptEnd,
  failure?: Failed,
): Promise<AttemptResult> => {
  const times = await patiently(() => endAttempt(deps.pool, ref, end))
  if (!times) return endedByOther(deps, ref)
  if (end.phase === 'succeeded') return { status: 'succeeded', ...times }
  const error = end.error ?? { class: 'cancelled', message: 'It ended without a reason.', retryable: false }
  if (end.phase === 'outcome_unknown') return { status: 'unknown', error }
  const retry_after_s = failure?.retry_after_s
  return { status: 'failed', ...times, error, ...(retry_after_s !== undefined && { retry_after_s }) }
}
