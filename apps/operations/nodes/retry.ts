import type { PgUpdateSetSource } from 'drizzle-orm/pg-core'
import { type Tx, together, updateRows } from '../../../db/client.ts'
import type { TimelineEvent } from '../../../db/operations/facts/state.ts'
import { ASKED_AGAIN, involvedWith } from '../../../db/operations/gates/ask.ts'
import { listRebound } from '../../../db/operations/gates/bind.ts'
import { listGuardingGates, listUnpassed } from '../../../db/operations/gates/rows.ts'
import { listTargets, lowerPins } from '../../../db/operations/leases/drift.ts'
import { listCone, readUndo, swapNodes } from '../../../db/operations/nodes/rows.ts'
import { gates } from '../../../db/operations/tables/index.ts'
import { NOW } from '../../../db/rows.ts'
import type { CommandBodies } from '../../../workflows/operation/messages.ts'
import type { NodeFacts } from '../../../workflows/operation/rules/facts.ts'
import { refusedForGood, refuseRetry, refuseRetryPast, resetCone } from '../../../workflows/operation/rules/nodes.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import { type GateStatus, partiesOf } from '../../shared/contracts/operations/graph.ts'
import type { RetryBody } from '../../shared/contracts/operations/nodes.ts'
import { digest } from '../../shared/data/digest.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { askHeads } from '../catalog/heads.ts'
import { type Command, checkIfMatch, lockVisible, type Steps, type Subject } from '../command/command.ts'
import type { ReplanDeps } from '../deps.ts'
import { refuseDrifted, refuseOn } from '../operations/control.ts'
import { needsSecondPerson, operationObject, refuseByPolicy, throwIfRefused } from '../policies/authority.ts'
import type { PolicyAction } from '../policies/cedar.ts'
import { overrideInputs } from './inputs.ts'
import { readNode } from './read.ts'

export type NodeCommand = Command & { node_id: string; caller: Caller }

/**
 * Retry: the node, and with scope downstream all nodes after it, begin again in a new generation. The gates that
 * guarded them are armed again if what they release has changed.
 */
export const retrySteps = (deps: ReplanDeps, command: NodeCommand, body: RetryBody): Steps<Subject> => {
  const heads = askHeads(deps, () => listTargets(deps.db, command.operation_id))
  return {
    ahead: heads.ahead,
    lock: (tx) => lockVisible(deps, tx, command),
    decide: async (tx, subject, command_id) => {
      const scope = body.scope ?? 'downstream'
      const here = [tx, subject.operation_id, command.node_id] as const
      const [all, unpassed] = await together(listCone(...here), listUnpassed(...here))
      const node = all.find(({ node_id }) => node_id === command.node_id)
      if (!node) throw notFound('node', command.node_id)
      const object = operationObject(subject)
      const may = (action: PolicyAction) =>
        throwIfRefused(refuseByPolicy(deps, command.caller, action, object, subject.places))
      may('node.retry')
      // Changed inputs are an intervention, whichever route brings them.
      if (body.input_overrides) may('node.intervene')
      const cone = resetCone(all, command.node_id, scope)
      await refuseOn(
        deps,
        tx,
        command,
        subject,
        refuseRetry(subject.facts, node, { cone, reconciliation: body.reconciliation !== undefined, unpassed }) ??
          refuseRetryPast(unpassed, node),
      )
      if (body.input_overrides && needsSecondPerson(subject.risk_level)) throw agreedInputsOnly()
      checkIfMatch(command.if_match, subject.revision)
      if (body.expected_generation !== undefined && body.expected_generation !== node.generation)
        throw generationMoved(node.generation)
      heads.require()

      const node_ids = cone.map(({ node_id }) => node_id)
      const undo = await readUndo(tx, subject.operation_id, node_ids)
      const swapped = await swapNodes(tx, subject.operation_id, generationsOf(cone), RESET)
      if (swapped !== cone.length) throw generationMoved(node.generation)
      const pins = await lowerPins(tx, subject, node_ids)
      await refuseDrifted(deps, tx, { ...subject, pins }, node_ids)
      const asked =
        body.input_overrides && (await overrideInputs(deps, tx, subject, command.node_id, body.input_overrides))
      const rearmed = await rearmGates(tx, subject.operation_id, node_ids)
      const changed = rearmed.filter(({ change }) => change !== undefined)
      const payload: CommandBodies['retry_node'] = {
        node_id: command.node_id,
        scope,
        generations: Object.fromEntries(cone.map(({ node_id, generation }) => [node_id, generation + 1])),
        gates: {
          ...Object.fromEntries(rearmed.map(({ gate_id, status, round }) => [gate_id, { status, round }])),
          ...asked?.gates,
        },
        ...(asked && { guarded_by: asked.guarded_by }),
      }
      const said = { actor: command.actor, command_id, reason: command.reason }
      const events: TimelineEvent[] = [
        ...resetEvents(command, command_id, cone, payload, body),
        ...changed.map(({ gate_id, status, round }) => ({ ...said, type: `gate.${status}`, gate_id, data: { round } })),
        ...(asked?.events ?? []).map((event) => ({ ...said, ...event })),
      ]
      const rearmed_gates = rearmedOf(payload)
      return {
        payload,
        events,
        ...(asked && { set: { involved: involvedWith(partiesOf(command.actor)) } }),
        // Rows from before the inputs moved come first, because they are restored last.
        undo: {
          nodes: undo,
          gates: beforeOf([
            ...(asked?.undo ?? []),
            ...rearmed.flatMap(({ written, undo: before }) => (written ? [before] : [])),
          ]),
        },
        effect: { reset_cone: node_ids, rearmed_gates },
        object: `node:${subject.operation_id}/${command.node_id}`,
        before: { state: node.state, generation: node.generation },
      }
    },
    render: async ({ operation_id, payload }) => {
      const body = payload as CommandBodies['retry_node']
      return {
        ...(await readNode(deps, command.caller, operation_id, command.node_id)),
        reset_cone: Object.keys(body.generations),
        rearmed_gates: rearmedOf(body),
      }
    },
    allowed: async () => (await readNode(deps, command.caller, command.operation_id, command.node_id)).allowed_actions,
  }
}

/** One fact for each node of the cone; the first carries the evidence. */
const resetEvents = (
  command: NodeCommand,
  command_id: string,
  cone: readonly NodeFacts[],
  payload: CommandBodies['retry_node'],
  { reconciliation, input_overrides }: RetryBody,
): TimelineEvent[] =>
  cone.map(({ node_id, generation }, index) => ({
    actor: command.actor,
    command_id,
    reason: command.reason,
    type: 'node.reset',
    node_id,
    data: { generation: generation + 1, scope: payload.scope, ...(reconciliation && { reconciliation }) },
    ...(index === 0 && { evidence: evidenceOf(command, command_id, payload, input_overrides !== undefined) }),
  }))

/** Changed inputs are an intervention, which a second person must review at this risk; a retry must not bypass that. */
const agreedInputsOnly = () =>
  new AppError('policy_denied', 'second_person_needed', 'At this risk a second person must review changed inputs.')

/** Gates that are asked before any node of the cone runs. */
const rearmedOf = ({ gates: now }: CommandBodies['retry_node']): string[] =>
  Object.entries(now).flatMap(([gate_id, { status }]) => (status === 'armed' ? [gate_id] : []))

const beforeOf = (rows: Record<string, unknown>[]) => [
  ...new Map(rows.toReversed().map((row) => [row.gate_id, row])).values(),
]

/** A node at its beginning; its attempts and what it wrote to the catalog stay as history. */
const RESET = {
  state: 'pending',
  error: null,
  outputs: null,
  exception: null,
  ready_at: null,
  gated_at: null,
  started_at: null,
  ended_at: null,
}

export const generationsOf = (nodes: readonly { node_id: string; generation: number }[]): Record<string, number> =>
  Object.fromEntries(nodes.map(({ node_id, generation }) => [node_id, generation]))

export const generationMoved = (generation: number) =>
  new AppError('version_conflict', 'generation_moved', `The node is now in generation ${generation}.`, {
    extra: { generation },
  })

const evidenceOf = (
  command: NodeCommand,
  command_id: string,
  payload: CommandBodies['retry_node'],
  with_inputs: boolean,
) => ({
  kind: 'command' as const,
  statement: `${command.actor.name} retried ${command.node_id}; nodes that run again: ${Object.keys(payload.generations).length}`,
  subject: { type: 'node', id: command.node_id, ...(with_inputs && { involved: partiesOf(command.actor) }) },
  subject_digest: digest({ command_id, reason: command.reason, ...payload }),
})

type Rearmed = {
  gate_id: string
  status: GateStatus
  round: number
  change: PgUpdateSetSource<typeof gates> | undefined
  /** Whether its row changed: a used approval that holds can be used once more. */
  written: boolean
  undo: Record<string, unknown>
}

/**
 * Decides what happens to the gates that guard reset nodes (operations.md 2.5). Refused gates are asked again. An
 * approval holds if it covers the same digest, to be used once more. A gate about outputs that are, or meanwhile were,
 * produced again is asked again.
 */
const rearmGates = async (tx: Tx, operation_id: string, node_ids: readonly string[]): Promise<Rearmed[]> => {
  const guarding = await listGuardingGates(tx, operation_id, node_ids)
  const rearmed: Rearmed[] = []
  for (const gate of guarding) {
    const { guards: _, bound, final, guards_reset, guards_wait, ...undo } = gate
    if (final && guards_reset) throwIfRefused(refusedForGood(gate))
    const again = { status: 'armed' as const, round: gate.round + 1, ...ASKED_AGAIN }
    const passed = gate.status === 'approved' || gate.status === 'bypassed'
    const used = passed && gate.consumed_at !== null
    // The outputs that it was asked about are produced again.
    const outdated = bound && (used ? guards_reset || guards_wait : passed || gate.status === 'waiting')
    const refused = guards_reset && (gate.status === 'rejected' || gate.status === 'expired')
    const holds = gate.digest === gate.approved_digest && (await listRebound(tx, operation_id, gate)).length === 0
    const change =
      refused || outdated ? again : used && guards_reset ? (holds ? { consumed_at: null } : again) : undefined
    if (change)
      await updateRows(tx, { operation_id, gate_id: gate.gate_id, round: gate.round }, gates, {
        ...change,
        updated_at: NOW,
      })
    const armed = change === again
    rearmed.push({
      gate_id: gate.gate_id,
      status: armed ? 'armed' : gate.status,
      round: armed ? again.round : gate.round,
      change: armed ? again : undefined,
      written: change !== undefined,
      undo,
    })
  }
  return rearmed
}
