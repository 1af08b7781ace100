import { eq } from 'drizzle-orm'
import { type Tx, together } from '../../../db/client.ts'
import { takeLeases } from '../../../db/operations/leases/rows.ts'
import { lockCalendar } from '../../../db/operations/plans/calendar.ts'
import { intentOfPlan, listTargetsOfPlan, lockIntent, lockPlan, type Plan } from '../../../db/operations/plans/rows.ts'
import { plans } from '../../../db/operations/tables/index.ts'
import type { PlanGate, RefusalCode } from '../../shared/contracts/operations/graph.ts'
import type { StartBody } from '../../shared/contracts/operations/plans.ts'
import { nextOpening, type OperationCalendar } from '../../shared/data/calendar.ts'
import { digest } from '../../shared/data/digest.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError, notFound, refusal } from '../../shared/errors.ts'
import { refuseHeld } from '../catalog/consumer.ts'
import { askHeads } from '../catalog/heads.ts'
import type { Command, Steps } from '../command/command.ts'
import type { PlanningDeps, ReplanDeps, Uses } from '../deps.ts'
import { freezeGate } from '../planner/gates.ts'
import { holdersFor, refuseLeaseHeld } from '../plans/leases.ts'
import { bindAgain, planIntent } from '../plans/make.ts'
import { movedPins, refusePlanPolicy, renderPlan, targetsOf } from '../plans/preview.ts'
import { isLost, refuseLost } from '../plans/reservations.ts'
import { planObject, refuseStart } from '../plans/rules.ts'
import { isVisible, placesFor, refuseByPolicy, throwIfRefused } from '../policies/authority.ts'
import { calendarOf, libraryNow } from '../targets/calendar.ts'
import { readOperation } from './read.ts'
import { constraintsOf, type StartSubject, writeOperation } from './write.ts'

/**
 * Starts exactly the plan that was reviewed. One transaction (operations.md 1.2, 2.2) locks the plan, takes the leases
 * and writes the operation. The targets must be as planned, or a plan made now must do the same.
 */
export const startSteps = (
  deps: ReplanDeps,
  command: Command,
  plan_id: string,
  body: StartBody,
): Steps<StartSubject> => {
  const heads = askHeads(deps, () => listTargetsOfPlan(deps.db, plan_id))
  return {
    ahead: heads.ahead,
    lock: (tx) => lockSubject(tx, command, plan_id),
    decide: async (tx, subject, command_id) => {
      const { plan, intent, places } = subject
      const { caller } = command
      if (!caller) throw new Error('a plan is started by a person')
      throwIfRefused(refuseByPolicy(deps, caller, 'plan.start', planObject(plan, intent, places), places))
      throwIfRefused(refusePlanPolicy(deps, plan))
      throwIfRefused(refuseStart(plan, intent))
      throwIfRefused(refuseHash(plan, body))
      throwIfRefused(refuseWider(deps, plan, body))
      heads.require()
      const pins = await currentPins(deps, tx, subject)
      await refuseLost(tx, plan.document.nodes, deps.clock.now().toISOString())
      const risk = await bindAgain(tx, deps, intent, plan)
      const now = deps.clock.now()
      const { constraints, is_early } = constraintsNow(deps, plan, body, now.getTime())
      const queue = body.on_conflict !== 'reject'
      // The clock of a deadline begins once the first leases are held, so such an operation takes them now.
      const later = constraints.deadline_s === undefined && is_early
      const blockers = await takeLeases(tx, command.operation_id, plan.document.leases, { queue, later })
      if (!queue) await refuseLeaseHeld(tx, caller, blockers)
      const resource_ids = pins.map(({ resource_id }) => resource_id)
      const window_id = body.window_id ?? plan.document.constraints.window_id
      await lockCalendar(tx, 'to read')
      const calendar = await calendarOf(tx, deps, { resource_ids, window_id }, now.getTime())
      if (calendar) await regainChanged(tx, deps, calendar, plan.document.gates)
      return writeOperation(tx, command, subject, {
        body,
        pins,
        risk_level: risk.level,
        command_id,
        blockers,
        conflicts: await holdersFor(tx, caller, blockers),
        constraints,
        later,
        calendar,
        page: new URL(`/operations/${command.operation_id}`, deps.config.GATEWAY__HTTP__PUBLIC_ORIGIN).href,
      })
    },
    render: ({ operation_id }) => readOperation(deps, command.caller, operation_id),
    allowed: async () =>
      command.caller ? (await renderPlan(deps, deps.db, command.caller, plan_id)).allowed_actions : [],
    location: (operation_id) => `/v1/operations/${operation_id}`,
  }
}

/** Locks the intent before the plan, in the order in which a preview locks them. */
const lockSubject = async (tx: Tx, { caller }: Command, plan_id: string): Promise<StartSubject> => {
  const intent_id = await intentOfPlan(tx, plan_id)
  if (intent_id === undefined) throw notFound('plan', plan_id)
  // The queries are sent in the order of the calls.
  const [intent, plan, [row]] = await together(
    lockIntent(tx, intent_id),
    lockPlan(tx, plan_id),
    tx.select({ graph: plans.graph }).from(plans).where(eq(plans.plan_id, plan_id)),
  )
  const places = intent && plan && caller ? await placesFor(tx, caller, targetsOf(intent, plan)) : []
  if (!row || !plan || !intent || !caller || !isVisible(caller, intent.requester_id, places))
    throw notFound('plan', plan_id)
  return { plan, intent, graph: row.graph, places }
}

/** Only the plan that was reviewed can be started. */
const refuseHash = (
  { plan_hash }: Pick<Plan, 'plan_hash'>,
  { reviewed_plan_hash }: Pick<StartBody, 'reviewed_plan_hash'>,
): RefusalCode | undefined =>
  reviewed_plan_hash === plan_hash
    ? undefined
    : refusal('version_conflict', 'plan_hash_moved', 'This plan is not the one you reviewed: its hash differs.', {
        status: 412,
        extra: { plan_hash },
      })

/** The starter may narrow the limits that were reviewed with the plan, but not widen them. */
const refuseWider = ({ library }: Uses<'library'>, { document }: Plan, body: StartBody): RefusalCode | undefined => {
  const known = document.constraints as Pick<StartBody, 'window_id' | 'not_before' | 'max_parallel' | 'deadline_s'>
  const window_id = body.window_id ?? known.window_id
  if (window_id !== undefined && !library.windows.some((window) => window.window_id === window_id))
    return refusal('validation_error', 'unknown_reference', `There is no window "${window_id}".`, { status: 422 })
  const more = (['max_parallel', 'deadline_s'] as const).filter(
    (name) => (body[name] ?? 0) > (known[name] ?? Number.POSITIVE_INFINITY),
  )
  const earlier = Date.parse(body.not_before ?? '') < Date.parse(known.not_before ?? '')
  const other = known.window_id !== undefined && window_id !== known.window_id
  const [wider] = [...more, ...(earlier ? ['not_before' as const] : []), ...(other ? ['window_id' as const] : [])]
  const detail = `The reviewed plan has ${wider} ${wider && known[wider]}, which a start can narrow but not widen.`
  return wider && refusal('validation_error', 'beyond_plan', detail, { status: 422 })
}

/** A freeze that changed after its gate was planned holds the operation even if that gate passes. */
const regainChanged = async (
  tx: Tx,
  { library }: Uses<'library'>,
  { freezes }: OperationCalendar,
  gates: readonly PlanGate[],
): Promise<void> => {
  const asked = gates.filter(({ kind }) => kind === 'freeze')
  if (asked.length === 0) return
  for (const freeze of (await libraryNow(tx, library)).freezes) {
    const gate = asked.find(({ policy }) => policy.key === freeze.freeze_id)
    const { question, policy } = freezeGate(freeze)
    const same = gate && gate.question === question && digest(gate.policy.groups) === digest(policy.groups)
    const held = freezes[freeze.freeze_id]
    if (held && !same) held.regained = true
  }
}

/** Returns the targets' fresh versions. If one moved, a plan made now must do the same; otherwise this one is stale. */
const currentPins = async (deps: PlanningDeps, tx: Tx, { plan, intent }: StartSubject) => {
  const pins = plan.document.catalog_pins
  // A target with events set aside may have moved in the catalog without moving here.
  await refuseHeld(tx, pluck(pins, 'resource_id'))
  const moved = await movedPins(tx, pins)
  if (moved.length === 0) return pins
  const planned = new Set(pins.map(({ resource_id }) => resource_id))
  const exclude = intent.resource_ids.filter((resource_id) => !planned.has(resource_id))
  const at = deps.clock.now().toISOString()
  const made = await planIntent(tx, deps, intent, { exclude, at }).catch((error: unknown) => {
    if (error instanceof AppError && error.category !== 'internal_error' && !isLost(error)) return undefined
    throw error
  })
  if (made?.semantic_digest === plan.semantic_digest) return made.document.catalog_pins
  const [first] = moved
  throw new AppError(
    'stale_catalog_projection',
    'resource_version_moved',
    `"${first?.resource_id}" ${first?.current ? `has changed from version ${first.planned} to ${first.current}` : 'no longer exists'}, so this plan is no longer valid.`,
    { hint: 'Preview the intent again and review what changed.', extra: { pins_moved: moved } },
  )
}

/** The constraints of an operation that is started now, and whether it would begin only later. */
export const constraintsNow = (
  deps: Uses<'library'>,
  plan: Plan,
  body: Omit<StartBody, 'reviewed_plan_hash'>,
  now: number,
) => {
  const constraints = constraintsOf(plan.document.constraints, body, openingFor(deps, plan, body, now))
  return { constraints, is_early: Date.parse(String(constraints.not_before)) > now }
}

const OPENINGS = 50

/**
 * Returns when an operation may begin: when a window of its targets and the requested window are open (operations.md
 * 2.3). It is queued until then. Refuses one that would never begin.
 */
const openingFor = (
  { library }: Uses<'library'>,
  { document }: Plan,
  { not_before, window_id }: Omit<StartBody, 'reviewed_plan_hash'>,
  now: number,
): string | undefined => {
  const asked = window_id ?? document.constraints.window_id
  const of = (test: (id: string) => boolean) => library.windows.filter((window) => test(window.window_id))
  const earliest = not_before ?? document.constraints.not_before
  const from = Math.max(now, typeof earliest === 'string' ? Date.parse(earliest) : now)
  const [own, named] = [of((id) => id === asked), of((id) => id !== asked && document.windows.includes(id))]
  // Each opening may move the other: finds a time when both are open, or none within some weeks.
  let at = from
  for (let n = 0; n < OPENINGS && Number.isFinite(at); n++) {
    const next = nextOpening(own, nextOpening(named, at))
    if (next === at) return at > from ? new Date(at).toISOString() : undefined
    at = next
  }
  throw new AppError('validation_error', 'unknown_reference', 'The windows of this plan do not open again.')
}
