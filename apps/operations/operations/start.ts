import { eq } from 'drizzle-orm'
import { type Tx, together } from '../../../db/client.ts'
import { SYSTEM } from '../../../db/operations/facts/timeline.ts'
import { type Blocker, blockedOnLeases, listBlockers, takeLeases } from '../../../db/operations/leases/rows.ts'
import { insertOperation } from '../../../db/operations/nodes/start.ts'
import { lockCalendar } from '../../../db/operations/plans/calendar.ts'
import {
  type Intent,
  intentOfPlan,
  listTargetsOfPlan,
  lockIntent,
  lockPlan,
  moveIntent,
  movePlan,
  type Plan,
} from '../../../db/operations/plans/rows.ts'
import { rulesOf } from '../../../db/operations/tables/evidence.ts'
import { plans } from '../../../db/operations/tables/index.ts'
import type { Place } from '../../shared/auth/scope.ts'
import type { PlanGraph, RefusalCode } from '../../shared/contracts/operations/graph.ts'
import type { Rehearsal, StartBody } from '../../shared/contracts/operations/plans.ts'
import { nextOpening, type OperationCalendar } from '../../shared/data/calendar.ts'
import { digest } from '../../shared/data/digest.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { refuseHeld } from '../catalog/consumer.ts'
import { askHeads } from '../catalog/heads.ts'
import type { Command, Decision, Steps } from '../command/command.ts'
import type { OperationsDeps } from '../deps.ts'
import { specDigest } from '../graph/hashes.ts'
import { gateSubject } from '../graph/subject.ts'
import { bindAgain, planIntent } from '../plans/make.ts'
import { movedPins, refusePlanPolicy, renderPlan } from '../plans/preview.ts'
import { planObject, refuseStart } from '../plans/rules.ts'
import type { PlanReport } from '../plans/types.ts'
import { refuseByPolicy, throwIfRefused } from '../policies/authority.ts'
import type { PolicyResult } from '../policies/plans.ts'
import { isVisible, placesFor } from '../policies/visibility.ts'
import { MAX_PARALLEL } from '../rehearsal/input.ts'
import { calendarOf } from '../targets/calendar.ts'
import { leaseHeld } from './leases.ts'
import { readOperation } from './read.ts'

/** What a start is about: the plan and its intent, locked, and who may do what where. */
type StartSubject = { plan: Plan; intent: Intent; graph: PlanGraph; places: Place[] }

/**
 * Starts exactly the plan that was read: locks it, checks that its targets are as planned (or that a plan made now would
 * do the same), takes the leases, and writes the operation, all in one transaction (operations.md 1.2, 2.2).
 */
export const startSteps = (
  deps: OperationsDeps,
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
      throwIfRefused(refuseStart(plan))
      throwIfRefused(refuseHash(plan, body))
      throwIfRefused(refuseWindow(deps, body))
      heads.require()
      const pins = await currentPins(deps, tx, subject)
      const risk = await bindAgain(tx, deps, intent, plan)
      const blockers = body.dry_run
        ? await listBlockers(tx, plan.document.leases)
        : await takeLeases(tx, command.operation_id, plan.document.leases, { queue: body.on_conflict !== 'reject' })
      if (blockers.length > 0 && body.on_conflict === 'reject') throw leaseHeld(blockers)
      const now = deps.clock.now()
      const opens_at = openingFor(deps, plan, body, now.getTime())
      const resource_ids = pins.map(({ resource_id }) => resource_id)
      const window_id = body.window_id ?? plan.document.constraints.window_id
      await lockCalendar(tx, 'to read')
      const calendar = await calendarOf(tx, deps, { resource_ids, window_id }, now.getTime())
      return writeOperation(tx, command, subject, {
        body,
        pins,
        risk_level: risk.level,
        command_id,
        blockers,
        now: now.toISOString(),
        opens_at,
        calendar,
      })
    },
    render: ({ operation_id }) => readOperation(deps, command.caller, operation_id),
    allowed: async () =>
      command.caller ? (await renderPlan(deps, deps.db, command.caller, plan_id)).allowed_actions : [],
    location: (operation_id) => `/v1/operations/${operation_id}`,
  }
}

/** The intent before the plan: in the order in which a preview locks them. */
const lockSubject = async (tx: Tx, { caller }: Command, plan_id: string): Promise<StartSubject> => {
  const intent_id = await intentOfPlan(tx, plan_id)
  if (intent_id === undefined) throw notFound('plan', plan_id)
  // Both send as they are called.
  const [intent, plan, [row]] = await together(
    lockIntent(tx, intent_id),
    lockPlan(tx, plan_id),
    tx.select({ graph: plans.graph }).from(plans).where(eq(plans.plan_id, plan_id)),
  )
  const places = intent && caller ? await placesFor(tx, caller, intent.resource_ids) : []
  if (!row || !plan || !intent || !caller || !isVisible(caller, intent.requester_id, places))
    throw notFound('plan', plan_id)
  return { plan, intent, graph: row.graph, places }
}

/** Only the paper that was read can be started. */
export const refuseHash = (
  { plan_hash }: Pick<Plan, 'plan_hash'>,
  { reviewed_plan_hash }: Pick<StartBody, 'reviewed_plan_hash'>,
): RefusalCode | undefined =>
  reviewed_plan_hash === plan_hash
    ? undefined
    : {
        category: 'version_conflict',
        code: 'plan_hash_moved',
        status: 412,
        detail: 'This plan is not the one you reviewed: its hash differs.',
        extra: { plan_hash },
      }

const refuseWindow = ({ library }: OperationsDeps, { window_id }: StartBody): RefusalCode | undefined =>
  window_id === undefined || library.windows.some((window) => window.window_id === window_id)
    ? undefined
    : {
        category: 'validation_error',
        code: 'unknown_reference',
        status: 422,
        detail: `There is no window "${window_id}".`,
      }

/** Fresh versions of the targets. Where one has moved, a plan made now must do the same, or this one is stale. */
const currentPins = async (
  deps: OperationsDeps,
  tx: Tx,
  { plan, intent }: StartSubject,
): Promise<Plan['document']['catalog_pins']> => {
  const pins = plan.document.catalog_pins
  // A target that stands still here may have moved there.
  await refuseHeld(
    tx,
    pins.map(({ resource_id }) => resource_id),
  )
  const moved = await movedPins(tx, pins)
  if (moved.length === 0) return pins
  const planned = new Set(pins.map(({ resource_id }) => resource_id))
  const exclude = intent.resource_ids.filter((resource_id) => !planned.has(resource_id))
  const at = deps.clock.now().toISOString()
  const made = await planIntent(tx, deps, intent, { exclude, at }).catch((error: unknown) => {
    if (error instanceof AppError && error.category !== 'internal_error') return undefined
    throw error
  })
  if (made?.semantic_digest === plan.semantic_digest) return made.document.catalog_pins
  const [first] = moved
  throw new AppError(
    'stale_catalog_projection',
    'resource_version_moved',
    `"${first?.resource_id}" has moved from version ${first?.planned} to ${first?.current ?? 'nothing'}, and a plan made now would differ.`,
    { hint: 'Preview the intent again and review what changed.', extra: { pins_moved: moved } },
  )
}

type Decided = {
  body: StartBody
  /** By what is known now; the plan shows that of its preview. */
  risk_level: string
  pins: Plan['document']['catalog_pins']
  command_id: string
  blockers: Blocker[]
  now: string
  /** When its windows let it begin, where that is later than now. */
  opens_at: string | undefined
  calendar: OperationCalendar | null
}

const writeOperation = async (
  tx: Tx,
  command: Command,
  { plan, intent, graph }: StartSubject,
  { body, pins, risk_level, command_id, blockers, now, opens_at, calendar }: Decided,
): Promise<Decision> => {
  const { operation_id, actor } = command
  const { document } = plan
  const report = plan.report as unknown as PlanReport
  const constraints = constraintsOf(document.constraints, body, opens_at)
  const nodes = document.nodes.map((node) => ({ ...node, spec_digest: specDigest(node) }))
  const guarded = document.gates.map((gate) => ({
    ...gate,
    ...gateSubject(operation_id, gate, document.nodes, report.diff),
  }))
  const inserted = insertOperation(tx, {
    operation_id,
    intent_id: intent.intent_id,
    plan_id: plan.plan_id,
    plan_hash: plan.plan_hash,
    title: intent.title,
    kind: intent.kind,
    requester: intent.requester,
    starter_id: actor.id,
    risk_level,
    labels: intent.labels,
    ticket: intent.ticket,
    retry_of: intent.retry_of,
    constraints,
    max_parallel: Number(constraints.max_parallel ?? MAX_PARALLEL),
    deadline_s: typeof constraints.deadline_s === 'number' ? constraints.deadline_s : null,
    estimate_s: report.estimates.p50_s,
    pins,
    graph,
    nodes,
    gates: guarded,
    calendar,
    resources: resourcesOf(plan, report, pins),
  })
  const origin = { actor, request_id: command.request_id, data: { operation_id } }
  const [, locked] = await together(
    inserted,
    movePlan(tx, plan.plan_id, ['ready'], { status: 'locked', operation_id }, origin),
    moveIntent(tx, intent.intent_id, ['previewed'], { status: 'executing', operation_id }, origin),
  )
  if (!locked) throw new AppError('plan_locked', 'already_started', 'Somebody else started this plan a moment ago.')
  const start = { operation_id, plan_id: plan.plan_id, plan_hash: plan.plan_hash, constraints, starter: actor.id }
  return {
    payload: {
      title: intent.title,
      plan_id: plan.plan_id,
      plan_hash: plan.plan_hash,
      requester: intent.requester.name,
      kind: intent.kind,
    },
    object: `operation:${operation_id}`,
    before: { plan_status: 'ready' },
    effect: {
      conflicts: blockers,
      first_nodes: document.nodes.slice(0, 5).map(({ node_id, name }) => ({ node_id, name })),
      first_gate: document.gates[0]?.gate_id ?? null,
    },
    events: [
      {
        type: 'operation.queued',
        actor,
        reason: body.comment ?? intent.reason,
        data: {
          kind: intent.kind,
          title: intent.title,
          status: 'queued',
          resources: pins.map(({ resource_id }) => resource_id),
          plan_id: plan.plan_id,
          plan_hash: plan.plan_hash,
        },
        evidence: {
          kind: 'plan',
          statement: `The plan of "${intent.title}", as reviewed by ${actor.name}`,
          subject: { type: 'plan', id: plan.plan_id },
          subject_digest: plan.plan_hash,
        },
      },
      ...policyEvents(plan.plan_id, report.policy_results ?? []),
      ...(report.rehearsal ? [rehearsedEvent(plan.plan_id, report.rehearsal)] : []),
      {
        type: 'command.accepted',
        actor,
        command_id,
        reason: body.comment ?? null,
        data: { kind: 'start' },
        evidence: {
          kind: 'start',
          statement: `${actor.name} started the plan`,
          subject: {
            type: 'operation',
            id: operation_id,
            authority: 1,
            requester: intent.requester.id,
            starter: actor.id,
            involved: [...new Set([intent.requester.id, actor.id])],
            rules: document.gates.map(rulesOf),
          },
          subject_digest: digest(start),
        },
      },
      ...(blockers.length > 0 ? [{ type: 'lease.waiting', actor: SYSTEM, data: { blockers } }] : []),
    ],
    ...(blockers.length > 0 && { set: { blocked_on: blockedOnLeases(blockers, now) } }),
  }
}

/** The policies that forbade the plan, and were overridden or only shown. */
const policyEvents = (plan_id: string, results: PolicyResult[]) =>
  results
    .filter(({ result }) => result === 'forbids')
    .map((result) => ({
      type: 'plan.policy_forbids',
      actor: SYSTEM,
      data: { ...result },
      evidence: {
        kind: 'policy_result' as const,
        statement: `The ${result.level} policy ${result.policy_id} forbids the plan: ${result.detail}`,
        subject: { type: 'plan', id: plan_id },
        subject_digest: digest(result),
      },
    }))

/** What whoever started it may have read of how it would go: part of the evidence, so that it can be told from hindsight. */
const rehearsedEvent = (plan_id: string, rehearsal: Rehearsal) => ({
  type: 'plan.rehearsed',
  actor: SYSTEM,
  data: { seed: rehearsal.seed, ends: rehearsal.ends, duration_s: rehearsal.duration_s, digest: digest(rehearsal) },
  evidence: {
    kind: 'rehearsal' as const,
    statement: `The plan was rehearsed with seed ${rehearsal.seed}: ${rehearsal.ends}`,
    subject: { type: 'plan', id: plan_id },
    subject_digest: digest(rehearsal),
  },
})

const OPENINGS = 50

/**
 * An operation stays queued until a window of its targets is open, and the one that was asked for (operations.md 2.3).
 * Refuses one that would never begin.
 */
const openingFor = (
  { library }: OperationsDeps,
  { document }: Plan,
  { not_before, window_id }: StartBody,
  now: number,
): string | undefined => {
  const asked = window_id ?? document.constraints.window_id
  const of = (test: (id: string) => boolean) => library.windows.filter((window) => test(window.window_id))
  const earliest = not_before ?? document.constraints.not_before
  const from = Math.max(now, typeof earliest === 'string' ? Date.parse(earliest) : now)
  const [own, named] = [of((id) => id === asked), of((id) => id !== asked && document.windows.includes(id))]
  // Each opening moves the other: a time at which both are open, or none within some weeks.
  let at = from
  for (let n = 0; n < OPENINGS && Number.isFinite(at); n++) {
    const next = nextOpening(own, nextOpening(named, at))
    if (next === at) return at > from ? new Date(at).toISOString() : undefined
    at = next
  }
  throw new AppError('validation_error', 'unknown_reference', 'The windows of this plan do not open.', { status: 422 })
}

/** What the intent bounds, narrowed by who starts. */
const constraintsOf = (
  given: Record<string, unknown>,
  { not_before, window_id, max_parallel, deadline_s }: StartBody,
  opens_at: string | undefined,
) => ({
  ...given,
  ...(not_before !== undefined && { not_before }),
  ...(opens_at !== undefined && { not_before: opens_at }),
  ...(window_id !== undefined && { window_id }),
  ...(max_parallel !== undefined && { max_parallel }),
  ...(deadline_s !== undefined && { deadline_s }),
})

/** Targets, what contains them, and what depends on them as far as the plan shows it: each once, by the nearest relation. */
const resourcesOf = ({ document }: Plan, { diff, impact }: PlanReport, pins: Plan['document']['catalog_pins']) => {
  const change = new Map(diff.map((entry) => [entry.resource_id, entry.change]))
  const seen = new Set(pins.map(({ resource_id }) => resource_id))
  const more = (relation: 'ancestor' | 'dependent', ids: readonly string[]) => {
    const fresh = ids.filter((resource_id) => !seen.has(resource_id))
    for (const resource_id of fresh) seen.add(resource_id)
    return fresh.map((resource_id) => ({ resource_id, relation, change: null, version: null }))
  }
  return [
    ...pins.map(({ resource_id, version }) => ({
      resource_id,
      relation: 'target' as const,
      change: change.get(resource_id) ?? null,
      version,
    })),
    ...more(
      'ancestor',
      document.leases.map(({ resource_id }) => resource_id),
    ),
    ...more('dependent', impact.dependents),
  ]
}
