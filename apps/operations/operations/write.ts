import { type Tx, together } from '../../../db/client.ts'
import { SYSTEM, type TimelineEvent } from '../../../db/operations/facts/state.ts'
import type { Blocker } from '../../../db/operations/leases/rows.ts'
import { insertOperation } from '../../../db/operations/operations/insert.ts'
import { type Intent, moveIntent, movePlan, type Plan } from '../../../db/operations/plans/rows.ts'
import type { Place } from '../../shared/auth/scope.ts'
import { type PlanGraph, partiesOf } from '../../shared/contracts/operations/graph.ts'
import type { PlanView, Rehearsal, StartBody } from '../../shared/contracts/operations/plans.ts'
import { freezeEnds, type OperationCalendar } from '../../shared/data/calendar.ts'
import { digest } from '../../shared/data/digest.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import { rulesOf } from '../../shared/evidence/rules.ts'
import type { Command, Decision } from '../command/command.ts'
import { specDigest } from '../graph/hashes.ts'
import { gateSubject } from '../graph/subject.ts'
import { askedOf } from '../plans/difference.ts'
import type { PlanReport } from '../plans/types.ts'
import type { PolicyResult } from '../policies/plans.ts'
import { MAX_PARALLEL } from '../rehearsal/input.ts'

/** The subject of a start: the plan and its intent, locked, with the places of its targets. */
export type StartSubject = { plan: Plan; intent: Intent; graph: PlanGraph; places: Place[] }

export type Starting = {
  body: StartBody
  /** The current level; the plan shows the level of its preview. */
  risk_level: string
  pins: Plan['document']['catalog_pins']
  command_id: string
  blockers: Blocker[]
  /** The blockers as the starter may see them. */
  conflicts: PlanView['conflicts']
  constraints: ReturnType<typeof constraintsOf>
  /** Whether it begins at a later time, and takes its leases then. */
  later: boolean
  calendar: OperationCalendar | null
  /** Its page in the console. */
  page: string
}

/** Writes the operation of a plan, locks the plan and moves its intent. Returns the decision of the start. */
export const writeOperation = async (
  tx: Tx,
  command: Command,
  subject: StartSubject,
  starting: Starting,
): Promise<Decision> => {
  const { plan, intent } = subject
  const { operation_id, actor } = command
  const { document } = plan
  const origin = { actor, request_id: command.request_id, data: { operation_id } }
  const [, locked, executing] = await together(
    insertOperation(tx, rowsOf(command, subject, starting)),
    movePlan(tx, plan.plan_id, ['ready'], { status: 'locked', operation_id }, origin),
    moveIntent(tx, intent.intent_id, ['previewed'], { status: 'executing', operation_id }, origin),
  )
  if (!locked || !executing) throw new AppError('plan_locked', 'already_started', 'This plan has already started.')
  return {
    payload: {
      ...pick(intent, 'title', 'kind'),
      ...pick(plan, 'plan_id', 'plan_hash'),
      requester: intent.requester.name,
      page: starting.page,
    },
    object: `operation:${operation_id}`,
    before: { plan_status: 'ready' },
    effect: {
      conflicts: starting.conflicts,
      first_nodes: document.nodes.slice(0, 5).map(({ node_id, name }) => ({ node_id, name })),
      first_gate: document.gates[0]?.gate_id ?? null,
    },
    events: eventsOf(command, subject, starting),
  }
}

/** The rows of the new operation. */
const rowsOf = (
  { operation_id, actor }: Command,
  { plan, intent, graph }: StartSubject,
  { pins, risk_level, calendar, constraints, later }: Starting,
): Parameters<typeof insertOperation>[1] => {
  const { document } = plan
  const report = plan.report as unknown as PlanReport
  return {
    operation_id,
    ...pick(plan, 'plan_id', 'plan_hash'),
    ...pick(intent, 'title', 'kind', 'requester', 'intent_id'),
    starter_id: actor.id,
    involved: partiesOf(intent.requester, actor),
    risk_level,
    ...pick(intent, 'labels', 'ticket', 'retry_of'),
    constraints,
    max_parallel: Number(constraints.max_parallel ?? MAX_PARALLEL),
    deadline_s: typeof constraints.deadline_s === 'number' ? constraints.deadline_s : null,
    estimate_s: report.estimates.p50_s,
    pins,
    graph,
    nodes: document.nodes.map((node) => ({ ...node, spec_digest: specDigest(node) })),
    gates: document.gates.map((gate) => ({
      ...gate,
      ...gateSubject(operation_id, gate, document.nodes, report.diff, { asked: askedOf(intent, plan) }),
    })),
    calendar,
    lease_state: later && document.leases.length > 0 ? 'released' : 'held',
    resources: resourcesOf(plan, report, pins),
  }
}

/** The facts of a start: the plan as reviewed, its policies and rehearsal, and the command. */
const eventsOf = (
  { operation_id, actor }: Command,
  { plan, intent }: StartSubject,
  { body, pins, command_id, blockers, calendar, constraints }: Starting,
): TimelineEvent[] => {
  const { document } = plan
  const report = plan.report as unknown as PlanReport
  const start = { operation_id, plan_id: plan.plan_id, plan_hash: plan.plan_hash, constraints, starter: actor.id }
  return [
    {
      type: 'operation.queued',
      actor,
      reason: body.comment ?? intent.reason,
      data: {
        ...pick(intent, 'kind', 'title'),
        status: 'queued',
        resources: pins.map(({ resource_id }) => resource_id),
        ...pick(plan, 'plan_id', 'plan_hash'),
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
          involved: partiesOf(intent.requester, actor),
          rules: document.gates.map(rulesOf),
          freezes: freezeEnds(calendar),
        },
        subject_digest: digest(start),
      },
    },
    ...(blockers.length > 0 ? [{ type: 'lease.waiting', actor: SYSTEM, data: { blockers } }] : []),
  ]
}

/** The policies that forbade the plan and were overridden or only shown. */
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

/** The rehearsal that the starter could read: evidence, so that it can be distinguished from hindsight. */
const rehearsedEvent = (plan_id: string, rehearsal: Rehearsal) => ({
  type: 'plan.rehearsed',
  actor: SYSTEM,
  data: { seed: rehearsal.seed, ends: rehearsal.ends, duration_s: rehearsal.duration_s, digest: digest(rehearsal) },
  evidence: {
    kind: 'rehearsal' as const,
    statement: `The rehearsal of the plan with seed ${rehearsal.seed} ended as ${rehearsal.ends}`,
    subject: { type: 'plan', id: plan_id },
    subject_digest: digest(rehearsal),
  },
})

/** The bounds of the intent, narrowed by the starter; `opens_at`: when its windows let it begin, if later than now. */
export const constraintsOf = (
  given: Record<string, unknown>,
  { not_before, window_id, max_parallel, deadline_s }: Omit<StartBody, 'reviewed_plan_hash'>,
  opens_at: string | undefined,
) => ({
  ...given,
  ...(not_before !== undefined && { not_before }),
  ...(opens_at !== undefined && { not_before: opens_at }),
  ...(window_id !== undefined && { window_id }),
  ...(max_parallel !== undefined && { max_parallel }),
  ...(deadline_s !== undefined && { deadline_s }),
})

/** Returns targets, their containers, and dependents as far as the plan shows them: each once, by nearest relation. */
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
    ...more('ancestor', pluck(document.leases, 'resource_id')),
    ...more('dependent', impact.dependents),
  ]
}
