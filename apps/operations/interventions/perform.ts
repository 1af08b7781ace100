import type { Tx } from '../../../db/client.ts'
import {
  NODE_INTERVENTIONS,
  type NodeIntervention,
  type OperationIntervention,
} from '../../shared/contracts/operations/graph.ts'
import type { InterventionBody } from '../../shared/contracts/operations/nodes.ts'
import { digest } from '../../shared/data/digest.ts'
import type { Decision } from '../command/command.ts'
import { interveneOnNode } from './node.ts'
import { interveneOnOperation } from './operation.ts'
import type { Intervened, Intervening, InterventionDeps } from './types.ts'

export const isOnNode = (type: InterventionBody['type']): type is NodeIntervention =>
  (NODE_INTERVENTIONS as readonly string[]).includes(type)

/** Carries out an intervention on the rows, or throws why it is impossible. */
export const perform = (
  deps: InterventionDeps,
  tx: Tx,
  intervening: Intervening,
  body: InterventionBody,
): Promise<Intervened> => {
  const { type, node_id = '', payload } = body
  return isOnNode(type)
    ? interveneOnNode(deps, tx, intervening, { type, node_id, payload })
    : interveneOnOperation(deps, tx, intervening, { type: type as OperationIntervention, payload })
}

export const decisionOf = (
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
        // Else the engine has yet to carry it out, or to refuse it.
        type: done.payload === null ? 'intervention.applied' : 'intervention.accepted',
        data: { type, ...done.data, ...(ticket !== undefined && { ticket }) },
        evidence: {
          kind: done.exception ? 'exception' : 'command',
          statement: `${command.actor.name}: ${done.statement}`,
          subject: {
            ...of,
            ...(done.involved && { involved: done.involved }),
            ...(done.freezes && { freezes: done.freezes }),
          },
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
