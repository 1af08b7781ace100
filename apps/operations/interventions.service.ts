import type { Tx } from '../../db/client.ts'
import type { TimelineEvent } from '../../db/operations/timeline.ts'
import {
  NODE_INTERVENTIONS,
  type NodeIntervention,
  type OperationIntervention,
} from '../../workflows/operation/state/rules.ts'
import type { Caller } from '../shared/auth/caller.ts'
import type { InterventionBody } from '../shared/contracts/operations/nodes.ts'
import { digest } from '../shared/digest.ts'
import { AppError } from '../shared/errors.ts'
import { operationObject, refuseByPolicy, throwIfRefused } from './authority.ts'
import type { Command, Decision, Steps } from './commands.service.ts'
import type { OperationsDeps } from './deps.ts'
import { interveneOnNode } from './interventions.node.ts'
import { interveneOnOperation } from './interventions.operation.ts'
import { readNode } from './nodes.read.ts'
import { readOperation } from './operations.read.ts'
import { checkIfMatch, lockVisible, type Subject } from './subject.ts'

export type InterventionCommand = Command & { caller: Caller }
export type Intervening = { command: InterventionCommand; subject: Subject; command_id: string }

/** What an intervention came to: rows are written; this is what is told of it. */
export type Intervened = {
  payload: Record<string, unknown> | null
  /** Facts beside the intervention itself. */
  events?: Omit<TimelineEvent, 'actor'>[]
  set?: Decision['set']
  undo?: Record<string, unknown>
  /** Recorded as an exception to the plan. */
  exception?: boolean
  node_id?: string
  gate_id?: string
  statement: string
  data: Record<string, unknown>
  effect: Record<string, unknown>
  before: unknown
}

type Member = keyof InterventionBody['payload']
/** What each type must and may say beside its reason; anything else is refused. */
const MEMBERS: Record<InterventionBody['type'], { needs: readonly Member[]; may?: readonly Member[] }> = {
  skip: { needs: [], may: ['outputs'] },
  mark_succeeded: { needs: ['outputs', 'note'] },
  mark_failed: { needs: ['message'] },
  mark_compensated: { needs: ['note'] },
  set_output: { needs: ['outputs'] },
  set_input: { needs: ['input_overrides'] },
  trigger_compensation: { needs: [] },
  extend_deadline: { needs: ['of', 'add_s'], may: ['id'] },
  set_limits: { needs: ['max_parallel'] },
  release_leases: { needs: [] },
  delegate_gate: { needs: ['gate_id', 'to_user', 'until'] },
}

const isOnNode = (type: InterventionBody['type']): type is NodeIntervention =>
  (NODE_INTERVENTIONS as readonly string[]).includes(type)

/**
 * An intervention: a person does something to a running operation that its plan does not say (operations.md 5.4). Throws
 * the refusal of the rules, or a validation_error that names every member at fault.
 */
export const interventionSteps = (
  deps: OperationsDeps,
  command: InterventionCommand,
  body: InterventionBody,
): Steps<Subject> => {
  const { type, node_id } = body
  checkMembers(body)
  return {
    lock: (tx) => lockVisible(deps, tx, command),
    decide: async (tx, subject, command_id) => {
      const action = isOnNode(type) ? 'node.intervene' : 'operation.intervene'
      throwIfRefused(refuseByPolicy(deps, command.caller, action, operationObject(subject), subject.places))
      if (isRisky(subject.risk_level) && !ALONE.has(type)) throw secondPersonNeeded(subject.risk_level)
      const done = await perform(deps, tx, { command, subject, command_id }, body)
      checkIfMatch(command.if_match, subject.revision)
      return decisionOf({ command, subject, command_id }, body, done)
    },
    render: async ({ command: { command_id, status } }) => ({
      intervention: {
        intervention_id: command_id,
        type,
        node_id: node_id ?? null,
        status: status === 'applied' ? 'applied' : 'accepted',
        gate_id: null,
      },
    }),
    allowed: async () =>
      node_id === undefined
        ? (await readOperation(deps, command.caller, command.operation_id)).allowed_actions
        : (await readNode(deps, command.caller, command.operation_id, node_id)).allowed_actions,
    location: (operation_id, command_id) => `/v1/operations/${operation_id}/commands/${command_id}`,
  }
}

const perform = (
  deps: OperationsDeps,
  tx: Tx,
  intervening: Intervening,
  body: InterventionBody,
): Promise<Intervened> => {
  const { type, node_id = '', payload } = body
  return isOnNode(type)
    ? interveneOnNode(deps, tx, intervening, { type, node_id, payload })
    : interveneOnOperation(deps, tx, intervening, { type: type as OperationIntervention, payload })
}

const decisionOf = (
  { command, subject, command_id }: Intervening,
  { type, node_id, payload, ticket }: InterventionBody,
  done: Intervened,
): Decision => {
  const at = { node_id: done.node_id ?? node_id ?? null, gate_id: done.gate_id ?? null }
  const said = { actor: command.actor, reason: command.reason, command_id }
  const of = node_id === undefined ? { type: 'operation', id: subject.operation_id } : { type: 'node', id: node_id }
  return {
    payload: done.payload,
    events: [
      {
        ...said,
        ...at,
        type: 'intervention.applied',
        data: { type, ...done.data, ...(ticket !== undefined && { ticket }) },
        evidence: {
          kind: done.exception ? 'exception' : 'command',
          statement: `${command.actor.name}: ${done.statement}`,
          subject: of,
          subject_digest: digest({ command_id, type, payload, reason: command.reason }),
        },
      },
      ...(done.events ?? []).map((event) => ({ ...said, ...event })),
    ],
    ...(done.set && { set: done.set }),
    ...(done.undo && { undo: done.undo }),
    effect: { type, ...done.effect },
    object: node_id === undefined ? `operation:${subject.operation_id}` : `node:${subject.operation_id}/${node_id}`,
    before: done.before,
  }
}

export const isRisky = (risk: string): boolean => risk === 'high' || risk === 'critical'

/** Types that nobody else needs to see before they are done: they do not change what the plan does. */
export const ALONE: ReadonlySet<InterventionBody['type']> = new Set(['extend_deadline', 'set_limits'])

/** Above medium risk one person alone does not override what a plan says. */
const secondPersonNeeded = (risk: string) =>
  new AppError('policy_denied', 'second_person', `The risk of this operation is ${risk}: nobody overrides it alone.`, {
    hint: 'Retry the node, or cancel the operation with compensation.',
  })

const checkMembers = ({ type, node_id, payload }: InterventionBody): void => {
  const { needs, may = [] } = MEMBERS[type]
  const wanted = [...needs, ...(type === 'extend_deadline' && payload.of !== 'operation' ? (['id'] as const) : [])]
  const given = Object.keys(payload) as Member[]
  const violations = [
    ...wanted
      .filter((member) => payload[member] === undefined)
      .map((member) => fault(`/payload/${member}`, 'required')),
    ...given
      .filter((member) => ![...wanted, ...may].includes(member))
      .map((member) => fault(`/payload/${member}`, 'unknown')),
    ...(isOnNode(type) && node_id === undefined ? [fault('/node_id', 'required')] : []),
    ...(!isOnNode(type) && node_id !== undefined ? [fault('/node_id', 'unknown')] : []),
  ]
  if (violations.length > 0)
    throw new AppError('validation_error', 'schema_violation', `This is not what ${type} takes.`, {
      status: 400,
      violations,
    })
}

const fault = (pointer: string, code: 'required' | 'unknown') => ({
  pointer,
  code,
  message: code === 'required' ? 'is required' : 'does not belong to this type',
})
