import { setTimeout as delay } from 'node:timers/promises'
import type { Agent } from 'undici'
import { isObject } from '../../../apps/shared/data/pointer.ts'
import { CelError, compileCel } from '../../../apps/shared/expressions/cel.ts'
import type { ExecutorPolicy } from '../policy.ts'
import type { Executor, ExecutorContext, ExecutorResult } from '../types.ts'
import { createAgents } from './pools.ts'
import { type Failure, failed, isFailure, type Request, send } from './send.ts'

type Probe = { name: string; request: Request; expect?: string }
type Query = {
  name: string
  prometheus: string
  query: string
  headers?: Record<string, string>
  timeout_s?: number
  min?: number
  max?: number
  /** The rest of the fleet that a canary is compared with: bad above its value times `max_ratio`, plus `slack`. */
  baseline?: { query: string; max_ratio: number; slack?: number }
}
type Check = Probe | Query
type With = { for_s: number; every_s: number; tolerate?: number; checks: Check[] }

/** One reading of one check: the status of a probe, or the value of a query; null if it could not be read. */
type Reading = { value: number | null; baseline?: number | null; bad?: string }
type Tally = {
  samples: number
  failed: number
  last: number | null
  min: number | null
  max: number | null
  baseline?: number | null
}
/** All that a killed watch needs to resume: the rounds done, when the next is due, and the numbers so far. */
type Resume = { rounds: number; next: number; checks: Record<string, Tally> }

const TIMEOUT_S = 10
/** Well within the time that an activity has beyond its attempt. */
const LAST_MS = 10_000

/** Observes probes and queries for a time; fails if one has more bad samples than it tolerates (operations.md 7.2). */
export const createWatch = (policy: ExecutorPolicy): Executor => {
  const agentOf = createAgents(policy)
  return {
    name: 'watch',
    run: async (context) => {
      try {
        return await watch(context, context.with as With, agentOf(context.pool))
      } catch (error) {
        if (error instanceof CelError) return failed('expression_error', error.message)
        throw error
      }
    },
  }
}

const cancelled = failed('cancelled', 'It was told to stop.')

/** It counts rounds, not time: minutes without a worker were not observed, so they do not pass as healthy. */
const watch = async (context: ExecutorContext, values: With, agent: Agent): Promise<ExecutorResult> => {
  const { for_s, every_s, tolerate = 0, checks } = values
  const rounds = Math.floor(for_s / every_s) + 1
  const state = (context.resume as Resume | null) ?? { rounds: 0, next: Date.now(), checks: {} }
  const left = (rounds - state.rounds - 1) * every_s * 1000
  const needs_ms = Math.max(...checks.map(timeoutOf)) * 1000
  // The last sample begins when the time is over, and has time of its own.
  const deadline = context.deadline + LAST_MS
  if (Math.max(state.next, Date.now()) + left > deadline)
    return failed('refused', `The attempt ends before ${for_s} s of watching: raise timeouts.run_s`)
  const awake = AbortSignal.any([context.signal, context.leave])
  for (let taken = 0; ; taken++) {
    const wait = Math.max(state.next - Date.now(), 0)
    const later: ExecutorResult = {
      status: 'pending',
      poll_after_s: Math.max(Math.ceil(wait / 1000), 1),
      resume: state,
    }
    // The end of a slice never cuts a sample short: the target would get the blame.
    if (taken > 0 && Date.now() + wait + needs_ms > context.slice_end) return later
    await delay(wait, undefined, { signal: awake }).catch(() => {})
    if (context.signal.aborted) return cancelled
    if (context.leave.aborted) return later
    const readings = await Promise.all(checks.map((check) => read({ ...context, deadline }, check, agent)))
    if (context.signal.aborted) return cancelled
    state.rounds++
    state.next = Math.max(state.next + every_s * 1000, Date.now())
    for (const [i, reading] of readings.entries()) {
      if ('status' in reading) return reading
      const { name } = checks[i] as Check
      const tally = count(state.checks[name], reading)
      state.checks[name] = tally
      context.log(`sample ${state.rounds} of ${rounds}: ${name} ${said(reading)}`, {
        level: reading.bad ? 'warn' : 'info',
      })
      if (tally.failed > tolerate)
        return failed(
          'condition_failed',
          `${name}: ${tally.failed} of ${tally.samples} samples are bad, at most ${tolerate} may be; sample ${state.rounds} of ${rounds} ${said(reading)}`,
          { raw: found(state, false) },
        )
    }
    if (state.rounds >= rounds) return { status: 'succeeded', raw: found(state, true) }
    if (!(await context.checkpoint(state))) return cancelled
  }
}

/** The numbers that a gate shows and a condition reads, whether the watch passed or failed. */
const found = ({ rounds, checks }: Resume, passed: boolean) => ({ passed, samples: rounds, checks: { ...checks } })

const timeoutOf = (check: Check): number =>
  ('request' in check ? check.request.timeout_s : check.timeout_s) ?? TIMEOUT_S

const said = ({ value, baseline, bad }: Reading): string =>
  `${shown(value)}${baseline === undefined ? '' : ` (rest ${shown(baseline)})`}${bad ? `: ${bad}` : ''}`

/** Six digits: more are noise of a quotient. */
const shown = (value: number | null): string => (value === null ? 'no value' : String(Number(value.toPrecision(6))))

const count = (before: Tally | undefined, { value, baseline, bad }: Reading): Tally => {
  const extreme = (pick: (...all: number[]) => number, known: number | null = null) =>
    value === null ? known : known === null ? value : pick(known, value)
  return {
    samples: (before?.samples ?? 0) + 1,
    failed: (before?.failed ?? 0) + (bad ? 1 : 0),
    last: value,
    min: extreme(Math.min, before?.min),
    max: extreme(Math.max, before?.max),
    ...(baseline !== undefined && { baseline }),
  }
}

/** An unreachable target is a bad sample; one that the policy refuses ends the watch. */
const read = async (context: ExecutorContext, check: Check, agent: Agent): Promise<Reading | Failure> => {
  if ('request' in check) return probe(context, check, agent)
  const { query, min, max, baseline: rest } = check
  const [own, others] = await Promise.all([
    ask(context, check, query, agent),
    rest ? ask(context, check, rest.query, agent) : undefined,
  ])
  if ('status' in own) return own
  if (others && 'status' in others) return others
  const { value } = own
  const reading: Reading = { value, ...(others && { baseline: others.value }) }
  const bad = own.bad ?? (others?.bad && `the rest: ${others.bad}`) ?? outside(value as number, min, max)
  if (bad) return { ...reading, bad }
  if (!rest) return reading
  const limit = (others?.value as number) * rest.max_ratio + (rest.slack ?? 0)
  return (value as number) > limit ? { ...reading, bad: `worse than the rest, which allows ${shown(limit)}` } : reading
}

const outside = (value: number, min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY): string | undefined => {
  if (value > max) return `above max ${max}`
  return value < min ? `below min ${min}` : undefined
}

const away = (failure: ExecutorResult): Reading | Failure => {
  const { class: kind, message } = failure as Failure
  return kind === 'address_denied' || kind === 'refused' ? (failure as Failure) : { value: null, bad: message }
}

const probe = async (context: ExecutorContext, check: Probe, agent: Agent): Promise<Reading | Failure> => {
  const request = { ...check.request, timeout_s: timeoutOf(check) }
  const answer = await send(context, {}, request, agent, { effect: false })
  if (isFailure(answer)) return away(answer)
  const { status } = answer
  const good = check.expect ? holds(check.expect, answer) : status >= 200 && status < 300
  return good ? { value: status } : { value: status, bad: `not as expected: ${check.expect ?? '2xx'}` }
}

/** A member missing from the answer makes the sample bad, not the node invalid. */
const holds = (source: string, response: unknown): boolean => {
  const test = compileCel(source, ['response'])
  try {
    return test.test({ response })
  } catch (error) {
    if (error instanceof CelError) return false
    throw error
  }
}

/** Sends an instant query that yields one number: from a scalar, or from a vector with one element. */
const ask = async (context: ExecutorContext, check: Query, query: string, agent: Agent): Promise<Reading | Failure> => {
  const url = `${check.prometheus.replace(/\/$/, '')}/api/v1/query`
  const request: Request = { method: 'GET', url, query: { query }, timeout_s: timeoutOf(check) }
  const answer = await send(context, { ...(check.headers && { headers: check.headers }) }, request, agent, {
    effect: false,
  })
  if (isFailure(answer)) return away(answer)
  const body = isObject(answer.body) ? answer.body : {}
  if (answer.status !== 200 || body.status !== 'success' || !isObject(body.data))
    return {
      value: null,
      bad: `Prometheus answered ${answer.status}: ${String(body.error ?? 'no result').slice(0, 200)}`,
    }
  const { resultType, result } = body.data
  const list: unknown[] = Array.isArray(result) ? result : []
  if (resultType === 'vector' && list.length !== 1) {
    const remedy = list.length === 0 ? '; append `or vector(0)` if none means 0' : ''
    return { value: null, bad: `the query returned ${list.length} series: it must return one${remedy}` }
  }
  if (resultType === 'matrix') return { value: null, bad: 'the query returned a range: it must return one value' }
  const pair = resultType === 'vector' && isObject(list[0]) ? list[0].value : resultType === 'scalar' ? list : undefined
  const text = Array.isArray(pair) ? pair[1] : undefined
  const value = typeof text === 'string' && text !== '' ? Number(text) : Number.NaN
  return Number.isFinite(value)
    ? { value }
    : { value: null, bad: `the query did not return a number: ${String(text).slice(0, 40)}` }
}
