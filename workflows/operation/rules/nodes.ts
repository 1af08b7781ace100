import type {
  GateStatus,
  NodeIntervention,
  NodeState,
  OperationIntervention,
  RefusalCode,
} from '../../../apps/shared/contracts/operations/graph.ts'
import {
  cancelling,
  hasEnded,
  type NodeFacts,
  type OperationFacts,
  refusal,
  refuseLost,
  terminal,
  wrongState,
} from './facts.ts'

/** Whether an attempt in this state may have an effect at this moment. */
export const isInFlight = (state: NodeState): boolean =>
  state === 'dispatched' || state === 'running' || state === 'compensating'

const RETRYABLE: ReadonlySet<NodeState> = new Set(['failed', 'outcome_unknown', 'succeeded', 'skipped'])

const UNBEGUN: ReadonlySet<NodeState> = new Set(['pending', 'gated', 'ready', 'removed'])

/**
 * Returns the nodes that a retry resets: the node alone, or with every descendant that is not pending, or is free to
 * start (and was not removed). In the order given. A wave that was left within its budget stays left once a node
 * after it has begun.
 */
export const resetCone = <N extends Pick<NodeFacts, 'node_id' | 'state' | 'free' | 'left' | 'depends_on'>>(
  nodes: readonly N[],
  node_id: string,
  scope: 'downstream' | 'node',
): N[] => {
  if (scope === 'node') return nodes.filter((node) => node.node_id === node_id)
  const followed = new Set(nodes.flatMap(({ state, depends_on }) => (UNBEGUN.has(state) ? [] : depends_on)))
  const waited = nodes.map((node) => ({
    node,
    node_id: node.node_id,
    depends_on: node.left && followed.has(node.node_id) ? [] : node.depends_on,
  }))
  const cone = coneOf(waited, node_id).map(({ node }) => node)
  return cone.filter(
    ({ node_id: id, state, free }) => id === node_id || free || (state !== 'pending' && state !== 'removed'),
  )
}

/** How far a node is by its row; for a pending one, how the engine treats it. */
export type Progress = 'open' | 'good' | 'bad' | 'task' | 'instant' | 'conditional'
type Linked = Pick<NodeFacts, 'node_id' | 'depends_on'> & { progress: Progress }

/**
 * Returns the pending nodes that wait for no other. The engine may have sent them before their rows say so. It may also
 * be past those that it passes or skips by itself.
 */
export const freeOf = (nodes: readonly Linked[]): Set<string> => {
  const having = (...wanted: Progress[]) => nodes.filter(({ progress }) => wanted.includes(progress))
  const idsOf = (found: Linked[]) => new Set(found.map(({ node_id }) => node_id))
  const pending = having('task', 'instant', 'conditional')
  const open = idsOf([...having('open'), ...pending])
  const bad = idsOf(having('bad'))
  const free = new Set<string>()
  for (let known = -1; known < free.size; ) {
    known = free.size
    for (const { node_id, progress, depends_on } of pending) {
      if (free.has(node_id) || depends_on.some((id) => open.has(id))) continue
      free.add(node_id)
      const mayBeSkipped = progress === 'conditional' || depends_on.some((id) => bad.has(id))
      if (mayBeSkipped) bad.add(node_id)
      if (mayBeSkipped || progress === 'instant') open.delete(node_id)
    }
  }
  return free
}

/** Returns a node and all nodes after it, in the order given. */
export const coneOf = <N extends Pick<NodeFacts, 'node_id' | 'depends_on'>>(
  nodes: readonly N[],
  node_id: string,
): N[] => {
  const dependents = new Map<string, string[]>()
  for (const node of nodes)
    for (const dependency of node.depends_on) {
      const list = dependents.get(dependency)
      if (list) list.push(node.node_id)
      else dependents.set(dependency, [node.node_id])
    }
  const reached = new Set([node_id])
  for (const id of reached) for (const next of dependents.get(id) ?? []) reached.add(next)
  return nodes.filter((node) => reached.has(node.node_id))
}

type Unpassed = { gate_id: string; status: GateStatus; guards: readonly string[]; ended: boolean }
type Unopened = Pick<Unpassed, 'status' | 'guards'> & { gate_id?: string; final?: boolean }
export type RetryCommand = { cone: readonly NodeFacts[]; reconciliation: boolean; unpassed: readonly Unopened[] }

/** Whether the node waits at a gate that no longer asks: only a retry opens it again (`on_reject: hold`). */
const isHeldBack = ({ node_id, state }: NodeFacts, unpassed: readonly Unopened[]): boolean =>
  state === 'gated' &&
  unpassed.some(({ guards, status }) => guards.includes(node_id) && (status === 'rejected' || status === 'expired'))

/** A refusal that ends the operation is not asked again, although a paused operation still waits for it. */
export const refusedForGood = ({ gate_id = '' }: { gate_id?: string }): RefusalCode =>
  wrongState(
    'node_not_retryable',
    `Gate "${gate_id}" was not approved, which cancels the operation as soon as it is not paused.`,
  )

export const refuseRetry = (
  facts: OperationFacts,
  node: NodeFacts,
  { cone, reconciliation, unpassed }: RetryCommand,
) => {
  if (hasEnded(facts.status)) return terminal(facts.status)
  if (facts.status === 'cancelling') return cancelling(facts.cancel_mode)
  const lost = refuseLost(facts)
  if (lost) return lost
  const end = unpassed.find(({ final, guards }) => final && guards.includes(node.node_id))
  if (end) return refusedForGood(end)
  if (!RETRYABLE.has(node.state) && !isHeldBack(node, unpassed))
    return wrongState(
      'node_not_retryable',
      `The node is ${node.state}; only an ended node, or one behind a rejected or expired gate, can be retried.`,
    )
  const decided = cone.find(({ decided_by }) => decided_by)
  if (decided) return wrongState('node_not_retryable', undecided(decided))
  const busy = cone.filter(({ state }) => isInFlight(state)).map(({ node_id }) => node_id)
  if (busy.length > 0) {
    const more = busy.length > 1 ? `, and ${busy.length - 1} more` : ''
    return wrongState('cone_in_flight', `Nodes that would be reset are still running: "${busy[0]}"${more}.`, {
      extra: { in_flight: busy.slice(0, 100) },
    })
  }
  if (node.state === 'outcome_unknown' && !reconciliation)
    return refusal(
      'validation_error',
      'reconciliation_required',
      'The outcome of this node is unknown: state in `reconciliation` what you found at the target.',
      { status: 422 },
    )
  return undefined
}

/** States of a node in which each intervention makes sense (operations.md 5.4); the reducer uses the same table. */
export const INTERVENTION_STATES: Record<NodeIntervention, ReadonlySet<NodeState>> = {
  skip: new Set(['pending', 'gated', 'ready', 'backoff', 'failed', 'outcome_unknown']),
  mark_succeeded: new Set(['failed', 'outcome_unknown']),
  mark_failed: new Set(['outcome_unknown']),
  mark_compensated: new Set(['compensation_failed']),
  set_output: new Set(['succeeded']),
  set_input: new Set(['pending', 'gated', 'ready', 'failed']),
  trigger_compensation: new Set(['succeeded', 'compensation_failed']),
}
const OF_AN_UNDO: ReadonlySet<NodeIntervention> = new Set(['mark_compensated', 'trigger_compensation'])

const undecided = ({ decided_by, node_id }: NodeFacts): string =>
  `${decided_by} decided on node "${node_id}" a moment ago: look at it again once that has taken effect.`

const notApplicable = (detail: string, extra?: Record<string, unknown>) =>
  wrongState('intervention_not_applicable', detail, extra ? { extra } : {})

export type InterventionCommand = {
  type: NodeIntervention
  /** The node and all nodes after it. */
  cone: readonly NodeFacts[]
}

export const refuseIntervention = (facts: OperationFacts, node: NodeFacts, { type, cone }: InterventionCommand) => {
  const { status, cancel_mode } = facts
  if (hasEnded(status)) return terminal(status)
  const undoing = OF_AN_UNDO.has(type) && node.state === 'compensation_failed'
  if (status === 'cancelling' && !(undoing && (type === 'mark_compensated' || cancel_mode === 'compensate')))
    return cancelling(cancel_mode)
  const lost = refuseLost(facts)
  if (lost) return lost
  if (node.decided_by) return notApplicable(undecided(node))
  // No one has to wait until three heartbeats are missed.
  const givenUp = type === 'mark_failed' && node.state === 'running' && node.silent === true
  if (!INTERVENTION_STATES[type].has(node.state) && !givenUp)
    return notApplicable(`The node is ${node.state}: ${type} does not apply.`)
  if (type === 'skip' && !node.skippable) return notApplicable('The plan says that this node must not be skipped.')
  const later = cone.filter(({ node_id }) => node_id !== node.node_id)
  if (type === 'set_output') return refuseBegun(later, 'has used these outputs already')
  if (type === 'set_input') {
    if (node.kind !== 'task') return notApplicable(`A ${node.kind} has no inputs.`)
    return node.begun ? notApplicable('An attempt has already used the earlier inputs: retry the node.') : undefined
  }
  if (type !== 'trigger_compensation') return undefined
  if (!node.has_compensation) return notApplicable('The plan has no compensation for this node.')
  if (node.state === 'succeeded' && status !== 'paused' && status !== 'blocked')
    return notApplicable(`The operation is ${status}: pause it before you undo a node.`)
  const busy = later.filter(({ state }) => isInFlight(state))
  return busy.length > 0 ? notApplicable(`The downstream node "${busy[0]?.node_id}" is running.`) : undefined
}

/**
 * A node after a guarded one was approved together with it: an end of the guarded node that a person states would let
 * the later one begin without that approval, unless the same gate guards it too. A success is also the guarded node's
 * own effect. Checked only on the rows, where gates are decided.
 */
export const refuseGuardedEnd = (
  unpassed: readonly Unpassed[],
  { node_id, state }: Pick<NodeFacts, 'node_id' | 'state'>,
  { type, cone }: InterventionCommand,
): RefusalCode | undefined => {
  if (type !== 'skip' && type !== 'mark_succeeded') return undefined
  const next = cone.filter((other) => other.state !== 'removed' && other.depends_on.includes(node_id))
  const own = type === 'mark_succeeded' && state === 'failed'
  for (const { gate_id, guards } of unpassed) {
    const loose = next.find((other) => !guards.includes(other.node_id))?.node_id
    if (own && guards.includes(node_id))
      return notApplicable(`Gate "${gate_id}" has not passed: retry the node to have it asked again.`)
    if (loose !== undefined)
      return notApplicable(
        `Gate "${gate_id}" has not passed, and node "${loose}" would start without it: decide the gate, or remove this node with a patch.`,
      )
  }
  return undefined
}

/** A retry begins even after failed or skipped nodes, but not past a gate that held one of them back. */
export const refuseRetryPast = (
  unpassed: readonly Unpassed[],
  { node_id }: Pick<NodeFacts, 'node_id'>,
): RefusalCode | undefined => {
  const past = unpassed.find(({ guards, ended }) => ended && !guards.includes(node_id))
  return (
    past &&
    wrongState(
      'node_not_retryable',
      `Gate "${past.gate_id}" has not passed, and this node would start without it: retry a node that the gate guards.`,
    )
  )
}

const refuseBegun = (nodes: readonly NodeFacts[], what: string) => {
  const begun = nodes.filter((node) => node.begun).map(({ node_id }) => node_id)
  return begun.length > 0 ? notApplicable(`"${begun[0]}" ${what}.`, { nodes: begun.slice(0, 100) }) : undefined
}

/** Returns the operation's own refusal; the caller checks the object that is extended, delegated or limited. */
export const refuseOperationIntervention = (
  facts: OperationFacts,
  type: OperationIntervention,
): RefusalCode | undefined => {
  const { status, cancel_mode } = facts
  if (hasEnded(status)) return terminal(status)
  // A cancel may have to wait for an attempt: only that time can be extended.
  if (status === 'cancelling' && type !== 'extend_deadline') return cancelling(cancel_mode)
  if (type === 'release_leases' && status !== 'paused')
    return notApplicable(`The operation is ${status}: only a paused operation can release its leases.`)
  return refuseLost(facts)
}

/** Returns the seconds to wait before the next try, after `tries` tries. */
export const backoffOf = (retry: { initial_s: number; factor: number; max_s: number }, tries: number): number =>
  Math.min(retry.initial_s * retry.factor ** Math.max(tries - 1, 0), retry.max_s)
