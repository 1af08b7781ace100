import { gateOfIntervention } from '../../../db/operations/gates/awaiting.ts'
import { renewalRequired } from '../../shared/auth/http.ts'
import type { InterventionBody } from '../../shared/contracts/operations/nodes.ts'
import { AppError } from '../../shared/errors.ts'
import { checkIfMatch, lockVisible, type Steps, type Subject } from '../command/command.ts'
import type { Uses } from '../deps.ts'
import { readNode } from '../nodes/read.ts'
import { readOperation } from '../operations/read.ts'
import { actionOf, operationObject, refuseByPolicy, throwIfRefused } from '../policies/authority.ts'
import { decisionOf, isOnNode, perform } from './perform.ts'
import { askSecondPerson, waitsForSecondPerson } from './second.ts'
import type { InterventionCommand, InterventionDeps } from './types.ts'

type Member = keyof InterventionBody['payload']
/** The required and optional members of each type besides its reason; anything else is refused. */
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
  override_freeze: { needs: ['freeze_id'] },
}

/**
 * An intervention: a person's change to a running operation that its plan does not contain (operations.md 5.4). Throws
 * the refusal of the rules, or a validation_error that names every member at fault.
 */
export const interventionSteps = (
  deps: InterventionDeps & Uses<'db'>,
  command: InterventionCommand,
  body: InterventionBody,
): Steps<Subject> => {
  const { type, node_id } = body
  checkMembers(body)
  return {
    lock: (tx) => lockVisible(deps, tx, command),
    decide: async (tx, subject, command_id) => {
      const action = isOnNode(type) ? 'node.intervene' : actionOf(type)
      throwIfRefused(refuseByPolicy(deps, command.caller, action, operationObject(subject), subject.places))
      const unrenewed = type === 'delegate_gate' ? renewalRequired(command.caller) : undefined
      if (unrenewed) throw unrenewed
      const intervening = { command, subject, command_id, groups: command.caller.groups }
      if (waitsForSecondPerson(subject.risk_level, type)) {
        const asked = await askSecondPerson(deps, tx, intervening, body)
        checkIfMatch(command.if_match, subject.revision)
        return asked
      }
      const done = await perform(deps, tx, intervening, body)
      checkIfMatch(command.if_match, subject.revision)
      return decisionOf(intervening, body, done)
    },
    render: async ({ command: { command_id, status }, awaits }) => ({
      intervention: {
        intervention_id: command_id,
        type,
        node_id: node_id ?? null,
        status: awaits ? 'awaiting_second_person' : status === 'applied' ? 'applied' : 'accepted',
        gate_id: awaits ? gateOfIntervention(command_id) : null,
      },
    }),
    allowed: async () =>
      node_id === undefined
        ? (await readOperation(deps, command.caller, command.operation_id)).allowed_actions
        : (await readNode(deps, command.caller, command.operation_id, node_id)).allowed_actions,
    location: (operation_id, command_id) => `/v1/operations/${operation_id}/commands/${command_id}`,
  }
}

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
  const [first] = violations
  if (first)
    throw new AppError('validation_error', 'schema_violation', `${type}: ${first.pointer} ${first.message}.`, {
      violations,
    })
}

const fault = (pointer: string, code: 'required' | 'unknown') => ({
  pointer,
  code,
  message: code === 'required' ? 'is required' : 'does not belong to this type',
})
