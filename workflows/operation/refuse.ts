import {
  type CancelMode,
  type NodeIntervention,
  OPERATION_INTERVENTIONS,
  type OperationIntervention,
  type OperationStatus,
  type RefusalCode,
} from '../../apps/shared/contracts/operations/graph.ts'
import { refuseCancel, refusePause, refuseResume } from './rules/control.ts'
import { type GateFacts, type NodeFacts, type OperationFacts, statusOf } from './rules/facts.ts'
import { refuseGateApprove, refuseGateReject } from './rules/gates.ts'
import {
  coneOf,
  INTERVENTION_STATES,
  refuseIntervention,
  refuseOperationIntervention,
  refuseRetry,
  resetCone,
} from './rules/nodes.ts'
import { refusePatch } from './rules/patches.ts'
import { isPassed } from './state/gates.ts'
import { item } from './state/graph.ts'
import { isRefused } from './state/nodes.ts'
import type { State } from './state/types.ts'

/** A command as an engineer queries it in the Temporal UI; `round`: the current one if absent. */
export type Asked =
  | { kind: 'pause' | 'patch' }
  | { kind: 'resume'; acknowledge_drift?: boolean }
  | { kind: 'cancel'; mode?: CancelMode; cooloff_s?: number }
  | { kind: 'retry'; node_id: string; scope?: 'downstream' | 'node'; reconciliation?: boolean }
  | { kind: 'intervene'; type: NodeIntervention | OperationIntervention; node_id?: string }
  | { kind: 'approve' | 'reject'; gate_id: string; round?: number }

const COOLOFF_S = 60

/**
 * Returns why the operation's state would refuse a command; `undefined` if it would not. It applies the API's rules
 * (operations.md 8) to the workflow's state. Only the API knows who may give the command, the digests that were read,
 * and what only the rows hold (leases, heartbeats, calendar).
 */
export const refusalOf = (s: State, asked: Asked | undefined, now: number): RefusalCode | undefined => {
  if (!asked) return unknown('Name a command, such as {"kind": "retry", "node_id": "a"}.')
  const facts = factsOf(s)
  switch (asked.kind) {
    case 'pause':
      return refusePause(facts)
    case 'patch':
      return refusePatch(facts)
    case 'resume':
      return refuseResume(facts, { acknowledge_drift: asked.acknowledge_drift ?? false })
    case 'cancel': {
      const { mode = 'graceful', cooloff_s = COOLOFF_S } = asked
      return refuseCancel(facts, { mode, now: new Date(now).toISOString(), cooloff_s })
    }
    case 'retry':
      return onNode(s, asked.node_id, (node, all) => {
        const cone = resetCone(all, node.node_id, asked.scope ?? 'downstream')
        const { reconciliation = false } = asked
        return refuseRetry(facts, node, { cone, reconciliation, unpassed: unpassedOf(s) })
      })
    case 'intervene': {
      const { type, node_id = '' } = asked
      if (isOnOperation(type)) return refuseOperationIntervention(facts, type)
      if (!Object.hasOwn(INTERVENTION_STATES, type)) return unknown(`There is no intervention "${type}".`)
      return onNode(s, node_id, (node, all) =>
        refuseIntervention(facts, node, { type, cone: coneOf(all, node.node_id) }),
      )
    }
    case 'approve':
    case 'reject': {
      const gate = gateFacts(s, asked.gate_id)
      if (!gate) return notFound('gate', asked.gate_id)
      const decision = { round: asked.round ?? gate.round, user_id: '' }
      return asked.kind === 'approve'
        ? refuseGateApprove(facts, gate, decision)
        : refuseGateReject(facts, gate, decision)
    }
    default:
      return unknown(`There is no command "${(asked as { kind?: string } | undefined)?.kind}".`)
  }
}

const isOnOperation = (type: NodeIntervention | OperationIntervention): type is OperationIntervention =>
  (OPERATION_INTERVENTIONS as readonly string[]).includes(type)

const unknown = (detail: string): RefusalCode => ({ category: 'validation_error', code: 'schema_violation', detail })
const notFound = (noun: 'node' | 'gate', id: string): RefusalCode => ({
  category: 'not_found',
  code: noun,
  detail: `There is no ${noun} "${id}".`,
})

const factsOf = (s: State): OperationFacts => ({
  status: (s.end?.status as OperationStatus) ?? statusOf(s.control, s.reported?.engine_status ?? 'queued'),
  control: s.control,
  cancel_mode: s.mode,
  cancelled_at: s.cancelled_at > 0 ? new Date(s.cancelled_at).toISOString() : null,
  pause_reason: s.pause_reason,
  unknown_nodes: s.counts.outcome_unknown,
})

const onNode = (
  s: State,
  node_id: string,
  rule: (node: NodeFacts, all: readonly NodeFacts[]) => RefusalCode | undefined,
): RefusalCode | undefined => {
  const i = s.graph.index.get(node_id)
  if (i === undefined || s.graph.removed.has(i)) return notFound('node', node_id)
  const all = s.nodes.map((_, position) => nodeFacts(s, position))
  return rule(item(all, i), all)
}

const nodeFacts = (s: State, i: number): NodeFacts => {
  const { kind, skippable = true, undo, max_failures } = item(s.graph.profiles, i)
  const { state, generation, attempt, tries, open } = item(s.nodes, i)
  return {
    node_id: item(s.graph.ids, i),
    kind,
    state,
    generation,
    attempt,
    begun: tries > 0,
    free: state === 'pending' && open === 0,
    skippable,
    has_compensation: undo,
    left: state === 'succeeded' && max_failures !== null,
    depends_on: item(s.graph.deps, i).map((dep) => item(s.graph.ids, dep)),
  }
}

const unpassedOf = (s: State) =>
  s.gates
    .filter(({ status }) => !isPassed(status))
    .map(({ gate_id, status, on_reject, guards }) => ({
      gate_id,
      status,
      final: on_reject === 'cancel_operation' && isRefused(status),
      guards: guards.map((i) => item(s.graph.ids, i)),
    }))

const gateFacts = (s: State, gate_id: string): GateFacts | undefined => {
  const g = s.graph.gate_index.get(gate_id)
  if (g === undefined) return undefined
  const { status, round, guards } = item(s.gates, g)
  const consumed = isPassed(status) && guards.some((i) => item(s.nodes, i).tries > 0)
  const policy = { quorum: 1, groups: [], reject_rule: 'any', comment_on_approve: false } as const
  return {
    gate_id,
    kind: 'approval',
    status,
    round,
    digest: '',
    consumed,
    policy: { ...policy, groups: [] },
    votes: [],
  }
}
