import { createHash, randomBytes } from 'node:crypto'
import type pg from 'pg'
import { crashPoint } from '../../../apps/shared/crash.ts'
import { isObject, readPointer } from '../../../apps/shared/data/pointer.ts'
import { traceNow } from '../../../apps/shared/process/trace.ts'
import {
  closeExecution,
  type Execution,
  HANDOVERS,
  insertExecution,
  leftFor,
  newestExecution,
} from '../../../db/operations/agents/executions.ts'
import { patiently } from '../../attempts/target.ts'
import { failed } from '../http/send.ts'
import type { ExecutorPolicy } from '../policy.ts'
import type { Executor, ExecutorContext, ExecutorResult } from '../types.ts'
import { type AgentChannel, bringWork, tellToStop } from './doors.ts'

export type OutsideDeps = {
  pool: pg.Pool
  /** Where agents report and fetch artifacts: a path ends it. */
  agents_url: string
  /** For pools whose agents take work from the stream. */
  agents: AgentChannel
}

/** An agent that is called answers at once. One that takes from the stream may first finish its other work. */
const START_S = { http: 60, nats: 900 }
const HEARTBEAT_S = 30
/** An answer ends the wait at once (the command node_result). This is the longest interval between silence checks. */
const LOOK_S = 60
/** The longest wait before work is offered again to a stream that is away. */
const OFFER_S = 20

/**
 * Hands an attempt to an external agent, then waits without holding any resource: the agent's results come by HTTP.
 * Each slice only checks that the agent took the work in time, still beats and has time left (operations.md 7.4). Work
 * that an agent took and never began has no effect, so another one gets it, whether or not the step may be repeated.
 */
export const createExternal = (policy: ExecutorPolicy, deps: OutsideDeps): Executor => ({
  name: 'external',
  refers: true,
  run: async (context) => {
    const known = await newest(deps, context)
    const close = async (because: 'not_started' | 'silent' | 'over') =>
      known !== undefined && closeAndTell(policy, deps, context, known, because)
    if (known?.cancelled && (known.closed || (!known.started && (await close('not_started'))))) return calledOff(known)
    // The claim found an agent that might still begin: whether another one may is asked with the next one.
    if (context.repeated && known && !known.begun && (known.closed || (known.unbegun && !known.start_due)))
      return waiting(context, 1)
    // A worker may die between the end of a handover and that of its attempt.
    if (known?.closed && known.begun && !context.idempotent) return { ...unknown('The agent was lost.'), final: true }
    if (known?.closed && known.handovers >= HANDOVERS)
      return known.started ? unknown('The agent was lost.', known) : untaken(known, labelsOf(context))
    if (!known || known.closed) return handOver(policy, deps, context, known)
    if (!known.started && (known.unbegun || known.start_due) && (await close('not_started')))
      return known.unbegun && known.handovers < HANDOVERS
        ? handOver(policy, deps, context, known)
        : untaken(known, labelsOf(context))
    if (known.overdue && (await close('over'))) return { ...unknown('The agent did not end it in time.'), final: true }
    // An outage of ours looks like silence. No other agent follows here, so a second look, after the next beat, tells.
    if (known.silent && !context.idempotent && !context.resume?.silent)
      return { ...waiting(context, 0, { silent: true }), poll_after_s: context.timeouts.heartbeat_s ?? HEARTBEAT_S }
    if (known.silent && (await close('silent'))) return unknown('The agent was silent for three heartbeats.', known)
    return waiting(context, known.look_after_s)
  },
})

/** A first handover that fails here could not be told from one whose agent is at work, so it waits for Postgres. */
const newest = async ({ pool }: OutsideDeps, context: ExecutorContext) => {
  const known = await patiently(() => newestExecution(pool, context))
  return known && { ...known, handovers: known.handovers - unsentOf(context) }
}

/** Handovers that the stream did not accept: no agent had them, so they do not count. */
const unsentOf = ({ resume }: ExecutorContext): number => Number(resume?.unsent ?? 0)

/** Its agent's messages no longer count, whether or not it learns that. */
const closeAndTell = async (
  policy: ExecutorPolicy,
  deps: OutsideDeps,
  { operation_id, node_id, attempt }: ExecutorContext,
  { fence, generation, pool }: Execution,
  because: Parameters<typeof closeExecution>[2],
): Promise<boolean> => {
  const closed = await closeExecution(deps.pool, { operation_id, node_id, attempt, fence }, because)
  crashPoint('external.after_close')
  if (closed) await tellToStop(policy, deps.agents, pool, { operation_id, node_id, attempt, generation, fence })
  return closed
}

const calledOff = ({ begun }: Execution): ExecutorResult =>
  begun
    ? { ...unknown('The operation was cancelled after its agent was lost.'), final: true }
    : failed('cancelled', 'The operation was cancelled before an agent began.')

/** The name of a key, as agents state it. Any program may have made the preview. */
const KEY = /^[0-9a-f]{8}$/

/** Those of the step. A saved plan opens only for agents that have its key, and they say so by a label. */
const labelsOf = (context: ExecutorContext): Record<string, unknown> => {
  const { labels, inputs } = context.with
  const key = readPointer(inputs, '/preview/plan/key')
  return { ...(isObject(labels) && labels), ...(typeof key === 'string' && KEY.test(key) && { seal_key: key }) }
}

const untaken = (known: Execution, labels: Record<string, unknown>): ExecutorResult => {
  const did = known.unbegun ? 'began' : 'took'
  return known.begun
    ? unknown(`An agent was lost, and no other ${did} the work in time.`, known)
    : failed('not_picked_up', `${noneOf(known.pool, labels)} ${did} it in time, so it has no effect.`)
}

const noneOf = (pool: string, labels: Record<string, unknown>): string => {
  const asked = Object.entries(labels).map((pair) => pair.join('='))
  return `No agent of the pool "${pool}"${asked.length > 0 ? ` with ${asked.join(', ')}` : ''}`
}

const unknown = (message: string, { handovers = 0 }: Partial<Execution> = {}) => {
  const lost = { status: 'unknown' as const, class: 'timeout', message }
  return handovers < HANDOVERS ? lost : { ...lost, final: true }
}

const waiting = (context: ExecutorContext, look_after_s: number, found = {}): ExecutorResult => ({
  status: 'pending',
  poll_after_s: Math.min(look_after_s, LOOK_S),
  resume: { handed_over: true, ...(unsentOf(context) > 0 && { unsent: unsentOf(context) }), ...found },
})

/** What NATS says of a message that it never accepts. */
const TOO_LARGE = 'MAX_PAYLOAD_EXCEEDED'

/** The row precedes the message, so that an agent that answers at once finds its token known. */
const handOver = async (policy: ExecutorPolicy, deps: OutsideDeps, context: ExecutorContext, known?: Execution) => {
  const { operation_id, node_id, attempt, generation, fence, key, pool, timeouts } = context
  const { job, inputs = {}, labels: asked } = context.with
  const { secrets } = context
  if (!known?.begun && (typeof job !== 'string' || !isObject(inputs) || !isObject(asked ?? {})))
    return failed('refused', '"job" must be a text; "inputs" and "labels" must be objects.')
  const labels = labelsOf(context)
  const door = policy.agentsOf(pool)
  if (!door) return failed('refused', `The pool "${pool}" has no agents.`)
  // The time of the work begins with its first agent; a later one has the rest.
  const left_s = known?.left_s ?? timeouts.run_s
  const { heartbeat_s = HEARTBEAT_S } = timeouts
  const whole_s = timeouts.start_s ?? START_S[door.mode]
  // Until an agent begins, all handovers share the time of the first one to begin.
  const start_s = known && !known.begun ? Math.min(whole_s, known.start_left_s) : whole_s
  if (known && start_s <= 0) return untaken(known, labels)
  if (left_s <= 0) return { ...unknown('An agent was lost, and there was no time left for another.'), final: true }
  const token = `exe_${randomBytes(32).toString('base64url')}`
  const token_sha256 = createHash('sha256').update(token).digest('hex')
  const ref = { operation_id, node_id, attempt, fence }
  const row = { ...ref, role: context.role, token_sha256, generation, pool, start_s, heartbeat_s, left_s }
  const { start_before, deadline_at } = await patiently(() => insertExecution(deps.pool, row))
  const left = context.role === 'run' && attempt > 1 ? await patiently(() => leftFor(deps.pool, context)) : undefined
  // The span of this attempt, in the trace of the command that released the node.
  const trace = traceNow()
  const body = {
    v: 1,
    ...ref,
    generation,
    key,
    execution_token: token,
    deadline_at,
    heartbeat_s,
    start_before,
    results_url: `${deps.agents_url}/execution-results`,
    artifacts_url: `${deps.agents_url}/artifacts`,
    ...(trace !== undefined && { trace }),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(left && { resume: left }),
    // Last, because others fill these: an agent that reads the first member of a name reads ours.
    job,
    inputs,
    secrets,
  }
  const ends = Date.now() + 1000 * (known?.begun ? Math.min(start_s, left_s) : start_s)
  const refused = await bringWork(policy, deps.agents, context, body)
  if (refused !== undefined && (await patiently(() => closeExecution(deps.pool, ref, 'not_started')))) {
    // Closed, so that the next claim asks everything again, as for a first start, and a copy on its way is refused.
    const again_s = Math.min(OFFER_S, 2 ** unsentOf(context))
    const isAway = door.mode === 'nats' && !refused.endsWith(TOO_LARGE) && !context.signal.aborted
    if (isAway && Date.now() + 1000 * again_s < ends) {
      const message = `The work is offered again until ${start_before}: ${refused}`
      return { ...waiting(context, again_s, { unsent: unsentOf(context) + 1 }), progress: { message } }
    }
    return known?.begun
      ? unknown(`An agent was lost, and no other accepted the work: ${refused}`, known)
      : failed('not_picked_up', `No agent of pool "${pool}" accepted the work: ${refused}`)
  }
  // A cancel that came during the handover found no waiting slice that it could wake.
  const given = await newest(deps, context)
  const cancelled = given?.fence === fence && given.cancelled && !given.started
  if (cancelled && (given.closed || (await closeAndTell(policy, deps, context, given, 'not_started'))))
    return calledOff(given)
  // An agent that begins at once has then used its time, or been silent for three heartbeats if it died at once.
  return waiting(context, Math.min(start_s, 3 * heartbeat_s, left_s))
}
