import { readChangeMark } from '../../../db/operations/history/tail.ts'
import {
  beginRun,
  joinWaiting,
  listWatching,
  lockUnchanged,
  moveSchedule,
  type Schedule,
} from '../../../db/operations/plans/schedules.ts'
import { type Caller, callerBy } from '../../shared/auth/caller.ts'
import type { Principal } from '../../shared/auth/principals.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import type { Uses } from '../deps.ts'
import { knownTo } from '../intents/create.ts'
import { isKnownIn, loadTargets, resolveTargets, SelectorTooSlow, type Unjudged } from '../targets/resolve.ts'

type Deps = Uses<'clock' | 'config' | 'db' | 'telemetry' | 'trust'>

/** A busy machine must not pause what people rely on. */
const IN_VAIN = 'The condition could not be judged in time. It is tried again each minute.'
const TOO_MANY = 'Too many resources are of its type, or meet the condition. It is tried again each minute.'
const UNREADABLE = 'Its owner may read no resource now. It is tried again each minute.'

/**
 * Begins a run for resources that newly meet a schedule's condition; one that stops and begins again counts again. Each
 * is judged without a lock, so that a pause waits for none, and a failure of one holds up no other.
 */
export const watchConditions = async (deps: Deps): Promise<void> => {
  const seen = await readChangeMark(deps.db)
  const outages: AppError[] = []
  for (const schedule of await listWatching(deps.db, seen, [IN_VAIN, TOO_MANY, UNREADABLE]))
    await look(deps, schedule, seen).catch((error: unknown) => {
      if (error instanceof AppError) outages.push(error)
      else deps.telemetry.log.warn({ err: error, schedule_id: schedule.schedule_id }, 'a condition could not be judged')
    })
  const [err] = outages
  if (err) deps.telemetry.log.warn({ err, schedules: outages.length }, 'the rights of owners could not be read')
}

const look = async (deps: Deps, schedule: Schedule, seen: number): Promise<void> => {
  const { schedule_id, when, matched, status_reason: before } = schedule
  if (!('on' in when)) return
  const judged = await judge(deps, schedule, when.on)
  await deps.db.transaction(async (tx) => {
    // It was paused meanwhile, or another process was faster.
    if (!(await lockUnchanged(tx, schedule))) return
    const { now, beyond, refusal, status_reason } = judged
    if (!now)
      return void (await moveSchedule(tx, schedule_id, {
        ...(refusal && { status: 'paused' as const }),
        status_reason,
      }))
    const fresh = now.filter((id) => !matched.includes(id))
    if (fresh.length > 0 && !(await joinWaiting(tx, schedule_id, fresh)))
      await beginRun(tx, schedule_id, deps.clock.now().toISOString(), { targets: fresh })
    await moveSchedule(tx, schedule_id, {
      seen,
      ...((fresh.length > 0 || now.length + beyond.length < matched.length) && { matched: [...now, ...beyond] }),
      ...(status_reason !== before && { status_reason }),
    })
  })
}

type Condition = Extract<Schedule['when'], { on: unknown }>['on']

/**
 * Only resources that its owner may know now can meet a condition or be named. `beyond`: those that met it and that the
 * owner may no longer know. They stay as they are, or a right that comes back would begin a run for all of them.
 * `refusal`: why it cannot be judged until a person acts.
 */
export const judge = async (deps: Deps, schedule: Schedule, on: Condition) => {
  const { config, db, trust } = deps
  const unjudged: Unjudged = []
  try {
    const caller = callerOf(schedule, await trust.principals.get(schedule.owner.id))
    const request = knownTo(caller, { targets: [{ selector: on }] })
    if (request.within?.length === 0) return { status_reason: UNREADABLE }
    const found = await resolveTargets(db, request, config.OPERATIONS__LIMITS__TARGETS, unjudged)
    const now = pluck(found, 'resource_id')
    const gone = schedule.matched.filter((id) => !now.includes(id))
    const beyond = (await loadTargets(db, gone)).filter((target) => !isKnownIn(request.within, target))
    return { now, beyond: pluck(beyond, 'resource_id'), status_reason: reasonOf(unjudged) }
  } catch (error) {
    if (error instanceof SelectorTooSlow) return { status_reason: IN_VAIN }
    if (!(error instanceof AppError) || error.status >= 500) throw error
    // Their number falls again without a person who resumes it.
    if (error.code === 'too_many_targets') return { status_reason: TOO_MANY }
    return { refusal: error, status_reason: error.message }
  }
}

/** Returns the owner with current rights: a right lost since then is lost here too. */
export const callerFor = async ({ trust }: Uses<'trust'>, schedule: Schedule): Promise<Caller> =>
  callerOf(schedule, await trust.principals.ask(schedule.owner.id))

const callerOf = ({ owner }: Schedule, principal: Principal | undefined): Caller => {
  if (principal?.user.status !== 'ACTIVE')
    throw new AppError('policy_denied', 'account_disabled', `The account of ${owner.name} is no longer active.`)
  return callerBy(principal)
}

/** Resources without a member that the condition asks for do not meet it; its owner should know of them. */
const reasonOf = ([first, ...others]: Unjudged): string | null =>
  first
    ? `The condition cannot be judged on ${first.resource_id}${others.length > 0 ? ` and ${others.length} others` : ''}: ${first.message}`
    : null
