import { setTimeout as delay } from 'node:timers/promises'
import type { Agent } from 'undici'
import { retryAfterMs } from '../../../apps/shared/contracts/client/problem.ts'
import { readPointer } from '../../../apps/shared/data/pointer.ts'
import { CelError, compileCel } from '../../../apps/shared/expressions/cel.ts'
import type { ExecutorPolicy } from '../policy.ts'
import type { Executor, ExecutorContext, ExecutorResult } from '../types.ts'
import { createAgents } from './pools.ts'
import { failed, isFailure, type Request, type Response, type Settings, send } from './send.ts'

type Poll = { request: Request; until: string; fail_if?: string; interval_s: number; timeout_s: number }
type With = Settings & {
  request: Request
  expect?: string
  fail_if?: string
  /** Pointer to the reason for a refusal in this kind of target's answer. The rest of a body is not reported. */
  reason?: string
  poll?: Poll
  artifacts?: { name: string; kind: string; media_type: string; pointer: string }[]
}
/** Where a poll resumes: it keeps the call's own answer, so that the call is never sent again. */
type Resume = { raw: Response; poll_until: number }

/** The least time that a poll request needs; if less is left, the next slice sends it. */
const MIN_SLICE_MS = 2000

/** Calls an HTTP target, then polls until a condition holds (operations.md 7.2). */
export const createHttp = (policy: ExecutorPolicy): Executor => {
  const agentOf = createAgents(policy)
  return {
    name: 'http',
    run: async (context) => {
      try {
        return await run(context, context.with as With, agentOf(context.pool))
      } catch (error) {
        if (error instanceof CelError) return failed('expression_error', error.message)
        throw error
      }
    },
  }
}

const run = async (context: ExecutorContext, values: With, agent: Agent): Promise<ExecutorResult> => {
  if (context.resume) return poll(context, values, agent, context.resume as Resume)
  const called = await call(context, values, agent)
  if (isFailure(called)) return called
  if (!values.poll) return succeed(context, values, called)
  const resume: Resume = { raw: called, poll_until: Date.now() + values.poll.timeout_s * 1000 }
  // The effect has happened: a worker that dies while it polls must not cause a second call.
  await context.checkpoint(resume)
  return poll(context, values, agent, resume)
}

/** Sends the call and judges it: `fail_if` is definite, then `expect`, otherwise any 2xx is good. */
const call = async (context: ExecutorContext, values: With, agent: Agent): Promise<Response | ExecutorResult> => {
  const answer = await send(context, values, values.request, agent, { effect: true })
  if (isFailure(answer)) return answer
  const said = () => {
    const reason = reasonOf(answer, values.reason)
    if (reason) context.log(reason, { level: 'warn' })
    return `${where(values.request)} answered ${answer.status}${reason ? `: ${reason}` : ''}`
  }
  const broken = isLimited(answer) || answer.status >= 500
  if (values.fail_if && holds(values.fail_if, answer, broken))
    return failed('condition_failed', `${said()}, and fail_if holds: ${values.fail_if}`)
  const good = values.expect
    ? holds(values.expect, answer, answer.status >= 400)
    : answer.status >= 200 && answer.status < 300
  if (good) return answer
  if (broken) return failed('remote_error', said(), retryAfter(answer))
  if (answer.status >= 400) return failed('refused', said())
  const message = `${said()}, not as expected${values.expect ? `: ${values.expect}` : ''}`
  return failed('unexpected_response', message, noneByItself(context, values))
}

/** Forges answer 403 to whoever asks too often, and say so in a header. */
const isLimited = ({ status, headers }: Response): boolean =>
  status === 429 ||
  (status === 403 && (headers['retry-after'] !== undefined || headers['x-ratelimit-remaining'] === '0'))

/** Methods that change no more when they are repeated (RFC 9110 9.2.2). */
const REPEATABLE = new Set(['GET', 'HEAD', 'PUT', 'DELETE'])
/** The call had its effect, and a repeat has another: none follows by itself, unless the step allows it. */
const noneByItself = ({ idempotent }: ExecutorContext, { request }: With) =>
  idempotent || REPEATABLE.has(request.method) ? {} : { retryable: false }

/** Polls until `until` holds. Reading has no effect, so a failed request is simply repeated. */
const poll = async (
  context: ExecutorContext,
  values: With,
  agent: Agent,
  { raw, poll_until }: Resume,
): Promise<ExecutorResult> => {
  const { request, until, fail_if, interval_s, timeout_s } = values.poll as Poll
  const awake = AbortSignal.any([context.signal, context.leave])
  for (;;) {
    const answer = await send(context, values, request, agent, { effect: false })
    let wait_s = interval_s
    if (isFailure(answer)) {
      if (answer.class === 'address_denied' || answer.class === 'refused') return answer
    } else {
      const broken = answer.status >= 400
      if (fail_if && holds(fail_if, answer, broken))
        return failed('condition_failed', `${where(request)} answered ${answer.status}, and fail_if holds: ${fail_if}`)
      if (holds(until, answer, broken)) return succeed(context, values, raw)
      wait_s = Math.max(wait_s, retryAfter(answer).retry_after_s ?? 0)
    }
    if (context.signal.aborted) return { status: 'unknown', class: 'cancelled', message: 'It was told to stop.' }
    const next = Date.now() + wait_s * 1000
    if (next > Math.min(poll_until, context.deadline)) {
      const asks = wait_s > interval_s ? `: it asks to wait ${wait_s} s, longer than the poll may last` : ''
      const limit = context.deadline < poll_until ? 'timeouts.run_s of the step' : `${timeout_s} s`
      return failed(
        'condition_timeout',
        `${where(request)}: "${until}" did not become true within ${limit}${asks}`,
        noneByItself(context, values),
      )
    }
    const later: ExecutorResult = { status: 'pending', poll_after_s: wait_s, resume: { raw, poll_until } }
    if (next + MIN_SLICE_MS > context.slice_end) return later
    await delay(wait_s * 1000, undefined, { signal: awake }).catch(() => {})
    if (context.leave.aborted) return later
  }
}

const succeed = ({ artifact }: ExecutorContext, { artifacts }: With, raw: Response): ExecutorResult => {
  for (const { pointer, ...about } of artifacts ?? []) {
    const content = readPointer(raw, pointer)
    if (content === undefined)
      // As with missing outputs, the effect has happened, so it is not repeated.
      return failed('outputs_invalid', `The response has no value at ${pointer} for the artifact ${about.name}`)
    artifact({ ...about, content: typeof content === 'string' ? content : JSON.stringify(content) })
  }
  return { status: 'succeeded', raw }
}

/** Evaluates a condition over an answer. Error answers often lack the expected members; then it does not hold. */
const holds = (source: string, response: Response, lenient: boolean): boolean => {
  try {
    return compileCel(source, ['response']).test({ response })
  } catch (error) {
    if (lenient && error instanceof CelError) return false
    throw error
  }
}

/** Not cut here: a part of a secret would not be masked. */
const reasonOf = (answer: Response, pointer: string | undefined): string => {
  const text = (pointer ?? null) === null ? undefined : readPointer(answer, pointer as string)
  return typeof text === 'string' ? text.trim() : ''
}

const where = ({ method, url }: Request): string => `${method} ${url.split('?')[0]}`

const retryAfter = ({ headers }: Response): { retry_after_s?: number } => {
  const wait_ms = retryAfterMs(headers['retry-after'])
  return wait_ms === undefined ? {} : { retry_after_s: Math.ceil(wait_ms / 1000) }
}
