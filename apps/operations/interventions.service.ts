import { getNode, listNodeFacts, readUndo, swapNodes } from '../../db/operations/nodes.ts'
import type { CommandBodies } from '../../workflows/operation/messages.ts'
import { refuseIntervention } from '../../workflows/operation/state/rules.ts'
import type { InterventionBody } from '../shared/contracts/operations/nodes.ts'
import { digest } from '../shared/digest.ts'
import { AppError, notFound } from '../shared/errors.ts'
import { compileSchema } from '../shared/json-schema.ts'
import { operationObject, refuseByPolicy, throwIfRefused } from './authority.ts'
import type { Steps } from './commands.service.ts'
import type { OperationsDeps } from './deps.ts'
import { readNode } from './nodes.read.ts'
import { generationMoved, generationsOf, type NodeCommand } from './nodes.service.ts'
import { refuseOn } from './operations.service.ts'
import { checkIfMatch, lockVisible, type Subject } from './subject.ts'

/** What each intervention must say beside its reason. */
const REQUIRED = {
  skip: [],
  mark_succeeded: ['outputs', 'note'],
  mark_failed: ['message'],
  mark_compensated: ['note'],
} as const

/**
 * An intervention: a person states what is to count as the end of a node. The generation moves on, so that a claim on its
 * way is refused, and the operation can at best succeed with exceptions.
 */
export const interventionSteps = (
  deps: OperationsDeps,
  command: NodeCommand,
  { type, payload }: InterventionBody,
): Steps<Subject> => ({
  lock: (tx) => lockVisible(deps, tx, command),
  decide: async (tx, subject, command_id) => {
    const { operation_id } = subject
    const node = (await listNodeFacts(tx, operation_id)).find(({ node_id }) => node_id === command.node_id)
    const row = node && (await getNode(tx, operation_id, command.node_id))
    if (!node || !row) throw notFound('node', command.node_id)
    throwIfRefused(refuseByPolicy(deps, command.caller, 'node.intervene', operationObject(subject), subject.places))
    if (subject.risk_level === 'high' || subject.risk_level === 'critical') throw secondPersonNeeded(subject.risk_level)
    refuseOn(deps, command, subject, refuseIntervention(subject.facts, node, { type }))
    checkIfMatch(command.if_match, subject.revision)
    checkPayload(type, payload, row.spec.outputs_schema)

    const undo = await readUndo(tx, operation_id, [command.node_id])
    const generation = node.generation + 1
    const set = {
      ...(payload.outputs !== undefined && { outputs: payload.outputs }),
      ...(type !== 'mark_failed' && { exception: type }),
    }
    const swapped = await swapNodes(tx, operation_id, generationsOf([node]), set)
    if (swapped !== 1) throw generationMoved(node.generation)
    const body: CommandBodies['intervene'] = {
      type,
      node_id: command.node_id,
      generation,
      payload: payload.message === undefined ? {} : { message: payload.message },
    }
    return {
      payload: body,
      events: [
        {
          type: 'intervention.applied',
          actor: command.actor,
          reason: command.reason,
          node_id: command.node_id,
          command_id,
          data: { type, generation, ...payload },
          evidence: {
            kind: 'exception',
            statement: `${command.actor.name}: ${type} of node ${command.node_id}, which was ${node.state}`,
            subject: { type: 'node', id: command.node_id },
            subject_digest: digest({ command_id, type, payload, reason: command.reason }),
          },
        },
      ],
      undo: { nodes: undo },
      effect: { type, node_id: command.node_id, from: node.state, generation },
      object: `node:${operation_id}/${command.node_id}`,
      before: { state: node.state, generation: node.generation },
    }
  },
  render: async ({ command: { command_id, status } }) => ({
    intervention: {
      intervention_id: command_id,
      type,
      node_id: command.node_id,
      status: status === 'applied' ? 'applied' : 'accepted',
      gate_id: null,
    },
  }),
  allowed: async () => (await readNode(deps, command.caller, command.operation_id, command.node_id)).allowed_actions,
  location: (operation_id, command_id) => `/v1/operations/${operation_id}/commands/${command_id}`,
})

/** Above medium risk one person alone does not override what a plan says. */
const secondPersonNeeded = (risk: string) =>
  new AppError('policy_denied', 'second_person', `The risk of this operation is ${risk}: nobody overrides it alone.`, {
    hint: 'Retry the node, or cancel the operation with compensation.',
  })

const checkPayload = (
  type: InterventionBody['type'],
  payload: InterventionBody['payload'],
  outputs_schema: Record<string, unknown> | undefined,
): void => {
  const missing = REQUIRED[type].filter((member) => payload[member] === undefined)
  if (missing.length > 0)
    throw new AppError('validation_error', 'schema_violation', `${type} needs ${missing.join(' and ')}.`, {
      status: 400,
      violations: missing.map((member) => ({
        pointer: `/payload/${member}`,
        code: 'required',
        message: 'is required',
      })),
    })
  if (payload.outputs === undefined || !outputs_schema) return
  const faults = compileSchema(outputs_schema)(structuredClone(payload.outputs))
  if (faults.length > 0)
    throw new AppError('validation_error', 'parameters_invalid', 'The outputs do not fit what the node promises.', {
      status: 422,
      violations: faults.map((fault) => ({ ...fault, pointer: `/payload/outputs${fault.pointer}` })),
    })
}
