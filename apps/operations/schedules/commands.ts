import type { Queryable, Tx } from '../../../db/client.ts'
import { isKnownType } from '../../../db/operations/plans/planning.ts'
import {
  beginRun,
  countOwned,
  dropWaiting,
  getSchedule,
  insertSchedule,
  listDeliveries,
  listRuns,
  lockSchedule,
  moveSchedule,
  type Schedule,
} from '../../../db/operations/plans/schedules.ts'
import { type Caller, refuseMachine } from '../../shared/auth/caller.ts'
import { missingWords } from '../../shared/auth/permissions.ts'
import type { RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { isTriggered, type ScheduleBody, type ScheduleView } from '../../shared/contracts/operations/schedules.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError, notFound, refusal, wrongAt } from '../../shared/errors.ts'
import { requireFresh } from '../catalog/consumer.ts'
import { auditDone, type Mutation, mutate } from '../command/mutate.ts'
import type { Uses } from '../deps.ts'
import { EXECUTORS } from '../graph/executors.ts'
import { createIntent, knownTo } from '../intents/create.ts'
import { allowedAction, isInScope, isVisible, placesFor, throwIfRefused } from '../policies/authority.ts'
import { resolveTargets, type Unjudged } from '../targets/resolve.ts'
import { nextTime, nextTimes, refuseWhen } from './when.ts'

type Deps = Uses<'clock' | 'config' | 'db' | 'keys' | 'library' | 'projection'>

/** How many schedules that have not ended one person may own. */
const MOST = 200
const UPCOMING = 5
const SHOWN = 20
const DELIVERIES = 10

/**
 * Stores a schedule of this person. Its intent is checked as if created now; each run is checked again, with its
 * owner's rights at that time. A machine must do its own scheduling: its credential may permit less than its account.
 */
export const createSchedule = async (deps: Deps, mutation: Mutation, { dry_run: _, ...body }: ScheduleBody) => {
  const now = deps.clock.now().getTime()
  const checked = intentOf(body)
  const refusal = await refuseSchedule(deps, mutation, body, now).catch((error: unknown) => error)
  return mutate(deps, mutation, async (tx) => {
    // A repeat gets its stored answer first, even after its time is over.
    if (refusal !== undefined) throw refusal
    const most = deps.config.OPERATIONS__LIMITS__TARGETS
    const targets = await placed(body, resolveTargets(tx, knownTo(mutation.caller, checked), most, unjudgedOf(body)))
    await refuseTooMany(tx, mutation.caller.user_id)
    const next_at = nextTime(body.when, now, now)
    const keep = async () => {
      const schedule_id = await insertSchedule(tx, {
        owner: mutation.actor,
        requester_id: mutation.caller.user_id,
        ...pick(body, 'when', 'intent'),
        proceed: body.proceed ?? 'plan',
        resource_ids: targets.map(({ resource_id }) => resource_id),
        next_at: timeOf(next_at),
        // Its times are counted from here: by another clock the first would come twice.
        created_at: new Date(now).toISOString(),
      })
      await audit(deps, tx, mutation, 'schedule.create', schedule_id, { reason: body.intent.reason, after: body })
      const view = await readSchedule(deps, tx, mutation.caller, schedule_id)
      return { status: 201, headers: { location: `/v1/schedules/${schedule_id}` }, body: view }
    }
    return { effect: { upcoming: nextTimes(body.when, now, now, UPCOMING).map(timeOf) }, keep }
  })
}

/** Throws the reason why such a schedule is not allowed. */
const refuseSchedule = async (deps: Deps, mutation: Mutation, body: Omit<ScheduleBody, 'dry_run'>, now: number) => {
  const machine = refuseMachine(mutation.caller)
  if (machine) throw machine
  if (body.proceed === 'start' && !mutation.caller.permissions.has('plan:start'))
    throw new AppError('policy_denied', 'permission_missing', missingWords(['plan:start']))
  refuseWhen(body.when, now)
  refuseParts(body)
  await refuseUnknown(deps, body)
  const tried = createIntent(deps, { ...mutation, dry_run: true }, intentOf(body), undefined, unjudgedOf(body))
  // It is fine if no resource meets the condition yet.
  await placed(body, tried).catch((error) => {
    if (!('on' in body.when) || !(error instanceof AppError) || error.code !== 'no_targets') throw error
  })
}

/** A resource that lacks a member does not meet the condition; the status of the schedule names it. */
const unjudgedOf = ({ when }: Pick<ScheduleBody, 'when'>): Unjudged | undefined => ('on' in when ? [] : undefined)

/** Names that no run could resolve. */
const refuseUnknown = async (
  { db, projection }: Uses<'db' | 'projection'>,
  { when, intent }: Pick<ScheduleBody, 'when' | 'intent'>,
) => {
  const type_key = 'on' in when ? when.on.type_key : undefined
  if (type_key !== undefined && !(await isKnownType(db, type_key))) {
    // A type that was just loaded may not have arrived.
    await requireFresh(projection, { max_lag_ms: 0 })
    if (!(await isKnownType(db, type_key)))
      throw wrongAt('/when/on/type_key', `names no resource type: "${type_key}"`, { code: 'unknown_reference' })
  }
  for (const [i, { executor }] of (intent.graph?.nodes ?? []).entries())
    if (executor !== undefined && !EXECUTORS.has(executor))
      throw wrongAt(`/intent/graph/nodes/${i}/executor`, `names no executor: "${executor}"`, {
        code: 'unknown_executor',
        hint: `Name one of ${[...EXECUTORS.keys()].join(', ')}.`,
      })
}

const SELECTOR = /^\/targets\/0\/selector(?=\/|$|:| )/
/** The places of faults in the intent, as the body of the schedule has them. */
const placed = <T>({ when }: Pick<ScheduleBody, 'when'>, work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    if (!(error instanceof AppError) || !error.options.violations) throw error
    const move = (text: string) =>
      'on' in when && SELECTOR.test(text)
        ? text.replace(SELECTOR, '/when/on')
        : text.replace(/^(?=\/[a-z_]+(\/|$|:| ))/, '/intent')
    const violations = error.options.violations.map((one) => ({ ...one, pointer: move(one.pointer) }))
    const { status, category, code, message, options } = error
    throw new AppError(category, code as never, move(message), { ...options, status, violations })
  })

/** Returns the intent with its targets; for a condition, the resources that meet it. */
const intentOf = ({ intent, when }: Pick<ScheduleBody, 'intent' | 'when'>): ScheduleBody['intent'] =>
  'on' in when ? { ...intent, targets: [{ selector: when.on }] } : intent

/** Members for a single request do not belong to an intent that is created repeatedly. */
const refuseParts = ({ intent, when }: ScheduleBody): void => {
  const parts = ['dry_run', 'preview', 'retry_of', ...('on' in when ? ['targets' as const] : [])] as const
  const part = parts.find((name) => intent[name] !== undefined)
  if (part === undefined) return
  throw wrongAt(`/intent/${part}`, 'does not belong to a schedule')
}

const refuseTooMany = async (tx: Tx, user_id: string): Promise<void> => {
  if ((await countOwned(tx, user_id)) < MOST) return
  throw new AppError(
    'validation_error',
    'too_many_schedules',
    `You already own ${MOST} schedules that have not ended, the most allowed.`,
  )
}

export type ScheduleAct = 'pause' | 'resume' | 'run' | 'end'
const STATES = { pause: 'paused', resume: 'active', end: 'ended' } as const

/**
 * Pauses, resumes, runs now or ends a schedule. One that is already in that state stays so; a pause still drops a run that
 * its owner began by hand.
 */
export const changeSchedule = (
  deps: Deps,
  mutation: Mutation,
  { schedule_id, act, reason = null }: { schedule_id: string; act: ScheduleAct; reason?: string | null | undefined },
) =>
  mutate(deps, mutation, async (tx) => {
    const schedule = await lockSchedule(tx, schedule_id)
    if (!schedule || !(await sees(tx, mutation.caller, schedule))) throw notFound('schedule', schedule_id)
    throwIfRefused(await refuseAct(tx, mutation.caller, schedule, act))
    const now = deps.clock.now().getTime()
    const set = changeOf(schedule, act, now)
    const keep = async () => {
      if (act === 'run') await beginRun(tx, schedule_id, new Date(now).toISOString())
      else if ('status' in set) await moveSchedule(tx, schedule_id, { ...set, status_reason: reason })
      if (act === 'pause' || act === 'end') await dropWaiting(tx, schedule_id)
      await audit(deps, tx, mutation, `schedule.${act}`, schedule_id, { reason, after: set })
      return { status: 200, body: await readSchedule(deps, tx, mutation.caller, schedule_id) }
    }
    return { effect: set, keep }
  })

/** To resume an active one would move its next time past one that is due. */
const changeOf = ({ when, created_at, status }: Schedule, act: ScheduleAct, now: number) => {
  if (act === 'run' || status === STATES[act]) return {}
  if (act === 'pause') return { status: 'paused' as const, next_at: null }
  if (act === 'end') return { status: 'ended' as const, next_at: null }
  const next = nextTime(when, Date.parse(created_at), now)
  return {
    status: next === undefined && !isTriggered(when) ? ('ended' as const) : ('active' as const),
    next_at: timeOf(next),
  }
}

/** The owner may do all. Who controls its targets may only hold it back: it acts with its owner's rights. */
const refuseAct = async (db: Queryable, caller: Caller, schedule: Schedule, act: ScheduleAct) => {
  const { requester_id, resource_ids, status } = schedule
  if (requester_id !== caller.user_id) {
    if (act === 'resume' || act === 'run')
      return refusal('policy_denied', 'not_your_schedule', 'Only its owner may start it.')
    const places = await placesFor(db, caller, resource_ids)
    if (!caller.permissions.has('operation:control'))
      return refusal('policy_denied', 'permission_missing', missingWords(['operation:control']), {
        extra: { permission: 'operation:control' },
      })
    if (!isInScope(caller, 'operation:control', places))
      return refusal('policy_denied', 'out_of_scope', 'Your roles do not cover every target.')
  }
  if (status === 'ended' && act !== 'end')
    return refusal('invalid_state_transition', 'schedule_ended', 'The schedule has ended.')
  return undefined
}

export const sees = async (db: Queryable, caller: Caller, { requester_id, resource_ids }: Schedule) =>
  isVisible(caller, requester_id, await placesFor(db, caller, resource_ids))

/** Returns the schedule with its last runs; 404 if the caller may not see it. */
export const readSchedule = async (
  { clock }: Uses<'clock'>,
  db: Queryable,
  caller: Caller,
  schedule_id: string,
): Promise<ScheduleView> => {
  const schedule = await getSchedule(db, schedule_id)
  if (!schedule || !(await sees(db, caller, schedule))) throw notFound('schedule', schedule_id)
  const runs = (await listRuns(db, [schedule_id], SHOWN)).map(runOf)
  const acts = (['pause', 'resume', 'run', 'end'] as const).map(async (act) =>
    allowedAction(act, await refuseAct(db, caller, schedule, act)),
  )
  const hook = 'webhook' in schedule.when ? await hookOf(db, schedule) : null
  const made = Date.parse(schedule.created_at)
  return {
    ...rowOf(schedule, runs[0]),
    intent: schedule.intent,
    upcoming:
      schedule.status === 'active'
        ? nextTimes(schedule.when, made, clock.now().getTime(), UPCOMING).map((at) => new Date(at).toISOString())
        : [],
    runs,
    hook,
    allowed_actions: [
      ...(await Promise.all(acts)),
      ...(hook ? [allowedAction('secret', refuseSecret(caller, schedule))] : []),
    ],
  }
}

const hookOf = async (db: Queryable, { schedule_id, secret_number, previous_until }: Schedule) => ({
  url: `/api/v1/hooks/${schedule_id}`,
  has_secret: secret_number > 0,
  previous_until,
  deliveries: await listDeliveries(db, schedule_id, DELIVERIES),
})

/** Only the owner may create a webhook's secret: its runs act with the owner's rights. */
export const refuseSecret = (caller: Caller, { requester_id, when, status }: Schedule): RefusalCode | undefined => {
  if (requester_id !== caller.user_id)
    return refusal('policy_denied', 'not_your_schedule', 'Only its owner may read its secret.')
  if (!('webhook' in when)) return refusal('invalid_state_transition', 'no_webhook', 'The schedule has no webhook.')
  if (status === 'ended') return refusal('invalid_state_transition', 'schedule_ended', 'The schedule has ended.')
  return undefined
}

type Run = Awaited<ReturnType<typeof listRuns>>[number]
export const runOf = (run: Run) =>
  pick(run, 'due_at', 'state', 'detail', 'targets', 'intent_id', 'plan_id', 'operation_id')
export const rowOf = (schedule: Schedule, last: ReturnType<typeof runOf> | undefined) => ({
  ...pick(schedule, 'schedule_id', 'status', 'status_reason', 'owner', 'when', 'proceed'),
  ...pick(schedule, 'next_at', 'created_at', 'updated_at'),
  title: schedule.intent.title,
  last_run: last ?? null,
})

const timeOf = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString())

export const audit = (
  deps: Uses<'keys'>,
  tx: Tx,
  mutation: Mutation,
  action: string,
  schedule_id: string,
  told: { reason: string | null; after: unknown },
) => auditDone(deps, tx, mutation, { action, object: `schedule:${schedule_id}`, ...told })
