import { equals, type Tx } from '../../../db/client.ts'
import { giveUpExecution } from '../../../db/operations/agents/executions.ts'
import { askAgain, involvedWith } from '../../../db/operations/gates/ask.ts'
import { readNodesRead } from '../../../db/operations/gates/awaiting.ts'
import { listRebound } from '../../../db/operations/gates/bind.ts'
import { listUnpassed, waitingGates } from '../../../db/operations/gates/rows.ts'
import { getNode, listCone, readUndo, swapNodes } from '../../../db/operations/nodes/rows.ts'
import { type RunningRows, readRunning } from '../../../db/operations/patches/rows.ts'
import { nodes } from '../../../db/operations/tables/index.ts'
import type { CommandBodies } from '../../../workflows/operation/messages.ts'
import type { NodeFacts } from '../../../workflows/operation/rules/facts.ts'
import { INTERVENTION_STATES, refuseGuardedEnd, refuseIntervention } from '../../../workflows/operation/rules/nodes.ts'
import { type NodeIntervention, partiesOf } from '../../shared/contracts/operations/graph.ts'
import type { InterventionBody } from '../../shared/contracts/operations/nodes.ts'
import { compileSchema } from '../../shared/data/json-schema.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import type { PlanningDeps, PolicyDeps } from '../deps.ts'
import { coneOf } from '../graph/graph.ts'
import { overrideInputs } from '../nodes/inputs.ts'
import { generationMoved, generationsOf } from '../nodes/retry.ts'
import { refuseOn } from '../operations/control.ts'
import { isUntouched } from '../plans/ahead.ts'
import { holdsPreview } from '../policies/previews.ts'
import type { Intervened, Intervening } from './types.ts'

type Payload = InterventionBody['payload']

/**
 * An intervention on one node: a person states its end, changes its inputs or outputs, or has it undone. Ending it
 * advances the generation, so that a claim in flight is refused.
 */
export const interveneOnNode = async (
  deps: PlanningDeps & PolicyDeps,
  tx: Tx,
  { command, subject, command_id }: Intervening,
  { type, node_id, payload }: { type: NodeIntervention; node_id: string; payload: Payload },
): Promise<Intervened> => {
  const { operation_id } = subject
  const cone = await listCone(tx, operation_id, node_id)
  const node = cone.find((candidate) => candidate.node_id === node_id)
  const row = node && (await getNode(tx, operation_id, node_id))
  if (!node || !row) throw notFound('node', node_id)
  await refuseOn(deps, tx, command, subject, refuseIntervention(subject.facts, node, { type, cone }))
  const unpassed = await listUnpassed(tx, operation_id, node_id)
  await refuseOn(deps, tx, command, subject, refuseGuardedEnd(unpassed, node, { type, cone }))
  if (payload.outputs !== undefined) checkOutputs(payload.outputs, row.spec.outputs_schema)

  // An undo is about all that ran after the node, too.
  const about = type === 'trigger_compensation' ? pluck(cone, 'node_id') : [node_id]
  const was = await readNodesRead(tx, operation_id, about)
  const made = await CHANGES[type](deps, tx, { subject, node, cone, payload })
  const undo = { nodes: made.before, gates: made.gates?.undo ?? [] }
  const asked = made.gates?.events ?? []
  const body: CommandBodies['intervene'] = {
    type,
    node_id,
    ...(made.generation !== undefined && { generation: made.generation }),
    ...(made.generations && { generations: made.generations }),
    ...(made.gates && { gates: made.gates.gates, guarded_by: made.gates.guarded_by }),
    payload: {
      ...(payload.message !== undefined && { message: payload.message }),
      ...(made.attempt !== undefined && { attempt: made.attempt }),
    },
  }
  const exception = EXCEPTIONS.has(type)
    ? { kind: type, node_id, actor: command.actor, at: subject.now, command_id }
    : undefined
  const involved = suppliesValues(type, payload) ? partiesOf(command.actor) : undefined
  return {
    payload: body,
    events: asked,
    data: { ...payload, ...(made.generation !== undefined && { generation: made.generation }) },
    set: {
      ...(exception && { exceptions: [...subject.exceptions, exception] }),
      ...(asked.length > 0 && { open_gates: waitingGates(operation_id) }),
      ...(involved && { involved: involvedWith(involved) }),
    },
    ...(involved && { involved }),
    undo,
    exception: exception !== undefined,
    overrides: { was },
    statement: `${type} on node ${node_id}, which was ${node.state}`,
    effect: { node_id, from: node.state, ...(made.gates && { rearmed_gates: Object.keys(made.gates.gates) }) },
    before: { state: node.state, generation: node.generation },
  }
}

/**
 * Whether gates may release a value that the author of this intervention chose. The author then takes part in the
 * operation like the proposer of a patch, because no one may approve their own values.
 */
const suppliesValues = (type: NodeIntervention, { outputs = {} }: Payload): boolean =>
  type === 'set_input' || type === 'set_output' || Object.keys(outputs).length > 0

/** Interventions after which the operation can at best succeed with exceptions. */
const EXCEPTIONS: ReadonlySet<NodeIntervention> = new Set([
  'skip',
  'mark_succeeded',
  'mark_failed',
  'mark_compensated',
  'trigger_compensation',
])

type Subjected = { subject: Intervening['subject']; node: NodeFacts; cone: readonly NodeFacts[]; payload: Payload }
type Changed = {
  before: Awaited<ReturnType<typeof readUndo>>
  generation?: number
  generations?: Record<string, number>
  /** An attempt that was in flight and has been given up. */
  attempt?: number
  gates?: Awaited<ReturnType<typeof askAgain>>
}
type Change = (deps: PlanningDeps, tx: Tx, subjected: Subjected) => Promise<Changed>

/** States the end of a node; the reducer writes the state itself. */
const end =
  (set: (payload: Payload) => Parameters<typeof swapNodes>[3]): Change =>
  async (_deps, tx, { subject: { operation_id }, node, payload }) => {
    const before = await readUndo(tx, operation_id, [node.node_id])
    await swap(tx, operation_id, [node], set(payload))
    return { before, generation: node.generation + 1 }
  }

/** Whether a node refers to outputs of another one: a gate that has shown them shows their correction before it begins. */
const usesOutputs = ({ spec, input_overrides }: RunningRows['nodes'][number], node_id: string): boolean =>
  JSON.stringify([spec.with, input_overrides]).includes(`"nodes/${node_id}/outputs`)

const CHANGES: Record<NodeIntervention, Change> = {
  skip: end(({ outputs }) => ({ exception: 'skip', ...(outputs && { outputs }) })),
  mark_succeeded: end(({ outputs }) => ({ exception: 'mark_succeeded', ...(outputs && { outputs }) })),
  mark_failed: async (deps, tx, subjected) => {
    const { subject, node, payload } = subjected
    const made = await end(() => ({}))(deps, tx, subjected)
    if (node.state !== 'running') return made
    const error = { class: 'cancelled', message: payload.message ?? '', retryable: false }
    if (!(await giveUpExecution(tx, { ...subject, ...node }, error)))
      throw new AppError('invalid_state_transition', 'intervention_not_applicable', 'The agent reported a moment ago.')
    return { ...made, attempt: node.attempt }
  },
  mark_compensated: end(() => ({ exception: 'mark_compensated' })),
  set_output: async (_deps, tx, { subject: { operation_id }, node: { node_id }, payload: { outputs = {} } }) => {
    const before = await readUndo(tx, operation_id, [node_id])
    await tx.update(nodes).set({ outputs }).where(equals(nodes, { operation_id, node_id }))
    const rebound = await listRebound(tx, operation_id, { status: ['waiting', 'approved', 'bypassed'] })
    const rows = await readRunning(tx, operation_id)
    const unbegun = rows.nodes.filter((row) => isUntouched(row) && usesOutputs(row, node_id))
    const behind = (gate_id: string): string[] => {
      const gate = rows.gates.find((one) => one.gate_id === gate_id)
      const cone = coneOf(pluck(rows.nodes, 'spec'), gate?.guards ?? [])
      return unbegun.flatMap((row) => (cone.has(row.node_id) ? [row.node_id] : []))
    }
    return { before, gates: await askAgain(tx, operation_id, rows.gates, rebound, behind) }
  },
  set_input: async (deps, tx, { subject, node, payload: { input_overrides = {} } }) => {
    const before = await readUndo(tx, subject.operation_id, [node.node_id])
    await swap(tx, subject.operation_id, [node], {})
    const gates = await overrideInputs(deps, tx, subject, node.node_id, input_overrides)
    return { before, generation: node.generation + 1, gates }
  },
  // All waiting nodes after it begin a new generation: a claim in flight must not build on what is being undone.
  trigger_compensation: async (_deps, tx, { subject, node, cone }) => {
    const { operation_id } = subject
    const later = node.state === 'succeeded' ? cone.filter(isWaiting) : []
    const before = await readUndo(
      tx,
      operation_id,
      [node, ...later].map(({ node_id }) => node_id),
    )
    await swap(tx, operation_id, [node], { state: 'compensating', exception: 'trigger_compensation' })
    await swap(tx, operation_id, later, {})
    const generations = Object.fromEntries(later.map(({ node_id, generation }) => [node_id, generation + 1]))
    return { before, generation: node.generation + 1, generations }
  },
}

const swap = async (
  tx: Tx,
  operation_id: string,
  nodes: readonly NodeFacts[],
  set: Parameters<typeof swapNodes>[3],
): Promise<void> => {
  if (nodes.length === 0) return
  const swapped = await swapNodes(tx, operation_id, generationsOf(nodes), set)
  if (swapped !== nodes.length) throw generationMoved(nodes[0]?.generation ?? 0)
}

const isWaiting = ({ state }: NodeFacts): boolean =>
  INTERVENTION_STATES.skip.has(state) && state !== 'failed' && state !== 'outcome_unknown'

const checkOutputs = (outputs: Record<string, unknown>, schema: Record<string, unknown> | undefined): void => {
  // No policy has judged it, and a gate would show it as the forecast of the tool.
  if (holdsPreview(outputs))
    throw new AppError(
      'invalid_state_transition',
      'intervention_not_applicable',
      'Only the agent of a node can state a preview.',
      { hint: 'Retry the node: it makes a new preview.' },
    )
  const faults = schema ? compileSchema(schema)(structuredClone(outputs)) : []
  if (faults.length > 0)
    throw new AppError('validation_error', 'parameters_invalid', "The outputs do not match the node's schema.", {
      violations: faults.map((fault) => ({ ...fault, pointer: `/payload/outputs${fault.pointer}` })),
    })
}
