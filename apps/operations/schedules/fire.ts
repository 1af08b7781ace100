import type { Answer } from '../../../db/command/run.ts'
import { type Lease, listTaken } from '../../../db/operations/leases/rows.ts'
import { getPlan } from '../../../db/operations/plans/rows.ts'
import {
  beginRun,
  endRun,
  findRunning,
  getSchedule,
  lastEnd,
  leaseRun,
  lockDue,
  moveSchedule,
  noteIntent,
  type RunEnd,
  type Schedule,
} from '../../../db/operations/plans/schedules.ts'
import { actorOfCaller } from '../../shared/auth/caller.ts'
import type { IntentView } from '../../shared/contracts/operations/intents.ts'
import type { PlanView } from '../../shared/contracts/operations/plans.ts'
import { isTriggered, type When } from '../../shared/contracts/operations/schedules.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError, unavailable } from '../../shared/errors.ts'
import { uuidv5 } from '../../shared/ids.ts'
import { startLoop } from '../../shared/process/repeat.ts'
import type { Command } from '../command/command.ts'
import type { Mutation } from '../command/mutate.ts'
import { acceptCommand } from '../command/run.ts'
import type { OperationsDeps } from '../deps.ts'
import { createIntent } from '../intents/create.ts'
import { constraintsNow, startSteps } from '../operations/start.ts'
import { previewPlan } from '../plans/preview.ts'
import { callerFor, judge, watchConditions } from './watch.ts'
import { nextTime } from './when.ts'

const BATCH = 20
/** After failing for this long, a run is given up. */
const GIVE_UP_MS = 15 * 60_000

type Run = { schedule_id: string; due_at: string; begun_at: string; targets: string[] | null; intent_id: string | null }

/** A pause or an end of the schedule came before the start. */
class RunOver extends Error {}

/** Begins due runs, once across processes, and works on open ones. Missed times are one run. Returns the runs ended. */
export const fireDue = async (deps: OperationsDeps): Promise<number> => {
  const now = deps.clock.now()
  await deps.db.transaction(async (tx) => {
    for (const schedule of await lockDue(tx, now.toISOString(), BATCH)) {
      const { schedule_id, when, created_at, next_at } = schedule
      const next = nextTime(when, Date.parse(created_at), now.getTime())
      await beginRun(tx, schedule_id, next_at as string, { begun_at: now.toISOString() })
      await moveSchedule(
        tx,
        schedule_id,
        next === undefined ? { status: 'ended', next_at: null } : { next_at: new Date(next).toISOString() },
      )
    }
  })
  await watchConditions(deps)
  let ended = 0
  // One at a time: what happens while the others are made becomes part of this one.
  for (let made = 0; made < BATCH; made += 1) {
    const run = await leaseRun(deps.db)
    if (!run) break
    if (await makeRun(deps, run)) ended += 1
  }
  return ended
}

/** Takes one run to its end; returns false if it must be retried. */
const makeRun = async (deps: OperationsDeps, run: Run): Promise<boolean> => {
  const schedule = await getSchedule(deps.db, run.schedule_id)
  if (!schedule) return false
  const made: RunEnd = {}
  try {
    const running = await findRunning(deps.db, run.schedule_id)
    if (running && isTriggered(schedule.when)) {
      // What happens in the meantime counts afterwards: it does not happen again, as a time does.
      await endRun(deps.db, run, 'begun', { detail: `${running.title} is still running.` })
      return false
    }
    const targets = await targetsOf(deps, schedule, run)
    if (targets?.length === 0) {
      await endRun(deps.db, run, 'skipped', { detail: 'Its resources no longer meet the condition.' })
      return true
    }
    const state = running ? 'skipped' : await proceed(deps, schedule, { ...run, targets }, made)
    await endRun(
      deps.db,
      run,
      state,
      running ? { detail: `${running.title} is still running.` } : { detail: null, ...made },
    )
    return true
  } catch (error) {
    if (error instanceof RunOver) return true
    const refused = error instanceof AppError && error.status < 500 && !error.options.retryable
    // A run that waited for an operation was not tried before that ended.
    const since = Math.max(...[run.begun_at, (await lastEnd(deps.db, run.schedule_id)) ?? run.begun_at].map(Date.parse))
    const late = deps.clock.now().getTime() - since > GIVE_UP_MS
    const detail = error instanceof AppError ? error.message : 'It failed.'
    if (!refused) deps.telemetry.log.warn({ err: error, ...run }, 'a run of a schedule failed')
    await deps.db.transaction(async (tx) => {
      await endRun(tx, run, refused || late ? 'refused' : 'begun', { ...made, detail })
      if (refused && error.code === 'account_disabled' && schedule.status !== 'ended')
        await moveSchedule(tx, run.schedule_id, { status: 'paused', status_reason: detail, next_at: null })
    })
    return refused || late
  }
}

/** All resources that meet the condition now, or those of the run that do. Once its intent is made they are fixed. */
const targetsOf = async (deps: OperationsDeps, schedule: Schedule, { targets, intent_id }: Run) => {
  if (intent_id !== null || !('on' in schedule.when)) return targets
  const { now, refusal, status_reason } = await judge(deps, schedule, schedule.when.on)
  if (refusal) throw refusal
  if (!now) throw unavailable(status_reason)
  return targets ? targets.filter((id) => now.includes(id)) : now
}

/** Creates the intent, plans it, and starts the plan if the schedule says so; each step once, however often tried. */
const proceed = async (deps: OperationsDeps, schedule: Schedule, run: Run, made: RunEnd) => {
  const caller = await callerFor(deps, schedule)
  const step = (name: string): Mutation => ({
    caller,
    actor: actorOfCaller(caller),
    request_id: `schedule:${run.schedule_id}`,
    request: { caller: `schedule:${run.schedule_id}`, route: name, key: run.due_at, fingerprint: [Buffer.from(name)] },
    dry_run: false,
  })
  const targets = run.targets?.map((resource_id) => ({ resource_id }))
  const intent = { ...schedule.intent, ...(targets && { targets }) }
  const created = bodyOf<IntentView>(await createIntent(deps, step('intent'), intent))
  const { intent_id } = created
  made.intent_id = intent_id
  // A repeated try may have found others than those of the intent that exists.
  await noteIntent(deps.db, run, intent_id, run.targets && pluck(created.targets_resolved, 'resource_id'))
  const whole = bodyOf<PlanView>(await previewPlan(deps, step('plan'), intent_id, {}))
  made.plan_id = whole.plan_id
  if (schedule.proceed === 'plan') return 'planned' as const
  const looks = isLook(whole) && comesAgain(schedule.when)
  // Each try leaves out others, and replaces the plan of the last one.
  const plan = looks
    ? await freeOf(deps, whole, step(`plan of the free at ${deps.clock.now().toISOString()}`), made)
    : whole
  if (!plan) return 'skipped' as const
  made.plan_id = plan.plan_id
  const operation_id = uuidv5(run.schedule_id, run.due_at)
  const { request, request_id, actor } = step('start')
  const command: Command = {
    kind: 'start',
    class: 'start',
    operation_id,
    object: `plan:${plan.plan_id}`,
    actor,
    caller,
    reason: `Started by the schedule "${schedule.intent.title}".`,
    request_id,
    trace: null,
    dry_run: false,
    if_match: undefined,
    instance: `/v1/schedules/${run.schedule_id}`,
    request,
  }
  const steps = startSteps(deps, command, plan.plan_id, {
    reviewed_plan_hash: plan.plan_hash,
    ...(looks && { on_conflict: 'reject' as const }),
  })
  await acceptCommand(deps, command, {
    ...steps,
    decide: async (tx, subject, command_id) => {
      if (!(await endRun(tx, run, 'started', { detail: null, ...made, operation_id }))) throw new RunOver()
      return steps.decide(tx, subject, command_id)
    },
  })
  made.operation_id = operation_id
  return 'started' as const
}

/** A look waits for no change and holds up none, or one long change would stop all others. */
const isLook = ({ leases }: PlanView) => leases.length > 0 && leases.every(({ mode }) => mode === 'shared')

/** What a run at such a time leaves out, the next one does. */
const comesAgain = (when: When) => 'every_s' in when || 'cron' in when

/**
 * The same plan without targets that are being changed: the next run looks at them. Undefined if all are, or if it may
 * begin only later: by then others may hold them.
 */
const freeOf = async (deps: OperationsDeps, plan: PlanView, mutation: Mutation, made: RunEnd) => {
  const known = await getPlan(deps.db, plan.plan_id)
  const begins = known && constraintsNow(deps, known, {}, deps.clock.now().getTime())
  if (begins?.is_early) {
    made.detail = `It may begin only at ${begins.constraints.not_before}.`
    return undefined
  }
  const all = pluck(plan.catalog_pins, 'resource_id')
  const taken = new Set(await listTaken(deps.db, plan.leases as Lease[]))
  const exclude_targets = all.filter((id) => taken.has(id))
  if (exclude_targets.length === 0 && known?.status === 'ready') return plan
  if (exclude_targets.length > 0)
    made.detail = `Left out, as others hold them: ${exclude_targets.length} of ${all.length} resources.`
  if (exclude_targets.length === all.length) return undefined
  return bodyOf<PlanView>(await previewPlan(deps, mutation, plan.intent_id, { exclude_targets }))
}

const bodyOf = <T>({ body }: Answer): T => JSON.parse(body.toString('utf8')) as T

/** Fires due schedules until stopped. */
export const startSchedules = (deps: OperationsDeps) =>
  startLoop('fire schedules', () => fireDue(deps), {
    every_ms: deps.config.OPERATIONS__SWEEP__INTERVAL_MS,
    failed: (error) => deps.telemetry.log.warn({ err: error }, 'schedules could not be checked'),
  })
