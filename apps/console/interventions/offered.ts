import { OPERATION_INTERVENTIONS } from '../../shared/contracts/operations/graph.ts'
import type { AllowedAction, NodeDetail, Operation } from '../api/types.ts'

/** The subject of the dialog: a node, or the whole operation with its named parts. */
export type Intervened = {
  operation_id: string
  node_id?: string
  name: string
  /** A finding about it holds only for this: for a node, one outcome. */
  seen: string
  offered: AllowedAction[]
  gates: { value: string; label: string }[]
  freezes: { value: string; label: string }[]
  max_parallel?: number
}

const ON_OPERATION: ReadonlySet<string> = new Set(OPERATION_INTERVENTIONS)

/** The interventions that the server offers for this node, besides a retry. */
export const interventionsOfNode = (node: NodeDetail): Intervened => ({
  operation_id: node.operation_id,
  node_id: node.node_id,
  name: node.name,
  seen: `${node.generation} ${node.state}`,
  offered: node.allowed_actions.filter(({ action }) => action !== 'retry'),
  gates: [],
  freezes: [],
})

/** The interventions that the server offers for the whole operation, except commands that have their own buttons. */
export const interventionsOfOperation = (operation: Operation): Intervened => ({
  operation_id: operation.operation_id,
  name: operation.title,
  seen: '',
  offered: operation.allowed_actions.filter(({ action }) => ON_OPERATION.has(action)),
  gates: operation.open_gates.map(({ gate_id, question }) => ({ value: gate_id, label: question })),
  freezes: operation.blocked_on.flatMap(({ kind, id }) => (kind === 'freeze' && id ? [{ value: id, label: id }] : [])),
  max_parallel: operation.max_parallel,
})
