import type { Category, CodeOf } from '../../apps/shared/contracts/codes.ts'
import type {
  CancelMode,
  Control,
  GatePolicy,
  GateStatus,
  NodeState,
  OperationStatus,
  RefusalCode,
} from '../../apps/shared/contracts/operations/graph.ts'

/**
 * What may be done to an operation, its gates and its nodes (operations.md 2). Pure: the command transaction decides
 * by them, `allowed_actions[]` is filled by them, and the reducer checks live state against them. Each returns the
 * refusal, or nothing.
 */
export type OperationFacts = {
  status: OperationStatus
  control: Control
  cancel_mode: CancelMode | null
  /** RFC 3339; when the first cancel was accepted. */
  cancelled_at: string | null
  pause_reason: string | null
  /** Nodes whose end nobody knows. */
  unknown_nodes: number
}

export type NodeFacts = {
  node_id: string
  kind: string
  state: NodeState
  generation: number
  attempt: number
  /** An attempt of this generation has begun. */
  begun: boolean
  skippable: boolean
  has_compensation: boolean
  /** An agent outside has the work and has missed a heartbeat. */
  silent?: boolean
  depends_on: readonly string[]
}

export type GateFacts = {
  gate_id: string
  kind: string
  status: GateStatus
  round: number
  digest: string
  consumed: boolean
  policy: Pick<GatePolicy, 'quorum' | 'groups' | 'reject_rule' | 'comment_on_approve'>
  votes: readonly { user_id: string; decision: 'approve' | 'reject'; group_key: string | null }[]
}

const refusal = <C extends Category>(
  category: C,
  code: CodeOf<C>,
  detail: string,
  more: Partial<RefusalCode> = {},
): RefusalCode => ({
  category,
  code,
  detail,
  ...more,
})
const wrongState = (code: CodeOf<'invalid_state_transition'>, detail: string, more: Partial<RefusalCode> = {}) =>
  refusal('invalid_state_transition', code, detail, more)

const terminal = (status: OperationStatus) =>
  wrongState('operation_terminal', `The operation has ended (${status}); redo it by a new intent with retry_of.`)
const cancelling = (mode: CancelMode | null) =>
  wrongState('already_cancelling', `The operation is being cancelled (${mode ?? 'graceful'}).`)

export const hasEnded = (status: OperationStatus): boolean =>
  status === 'succeeded' ||
  status === 'succeeded_with_exceptions' ||
  status === 'failed' ||
  status === 'cancelled' ||
  status === 'timed_out'

/** An end wins; then what is wanted; `pausing` until the engine reports paused (operations.md 2.3). */
export const statusOf = (control: Control, engine_status: string): OperationStatus => {
  const reported = engine_status as OperationStatus
  if (hasEnded(reported)) return reported
  if (control === 'cancel') return 'cancelling'
  if (control === 'pause') return reported === 'paused' ? 'paused' : 'pausing'
  return reported === 'queued' || reported === 'blocked' ? reported : 'running'
}

export const refusePause = ({ status, cancel_mode }: OperationFacts): RefusalCode | undefined => {
  if (hasEnded(status)) return terminal(status)
  if (status === 'cancelling') return cancelling(cancel_mode)
  if (status === 'pausing' || status === 'paused')
    return wrongState('already_paused', `The operation is ${status} already.`)
  return undefined
}

export const refuseResume = (facts: OperationFacts, { acknowledge_drift }: { acknowledge_drift: boolean }) => {
  const { status, cancel_mode, pause_reason, unknown_nodes } = facts
  if (hasEnded(status)) return terminal(status)
  if (status === 'cancelling') return cancelling(cancel_mode)
  if (status !== 'pausing' && status !== 'paused')
    return wrongState('not_paused', `The operation is ${status}, not paused.`)
  if (pause_reason === 'engine_lost')
    return wrongState('engine_lost', 'The workflow engine has lost this operation; it can only be cancelled.')
  if (unknown_nodes > 0)
    return wrongState(
      'outcome_unknown_open',
      `${unknown_nodes} node(s) ended nobody knows how. Say what is true of each first (retry, skip or mark).`,
    )
  if (pause_reason === 'catalog_drift' && !acknowledge_drift)
    return refusal(
      'stale_catalog_projection',
      'drift_unacknowledged',
      'Targets have changed since the plan. Resume with acknowledge_drift: true to take their new values.',
    )
  return undefined
}

export type CancelCommand = { mode: CancelMode; now: string; cooloff_s: number }

export const refuseCancel = (facts: OperationFacts, { mode, now, cooloff_s }: CancelCommand) => {
  const { status, cancel_mode, cancelled_at } = facts
  if (hasEnded(status)) return terminal(status)
  if (status !== 'cancelling')
    return mode === 'force'
      ? wrongState('force_needs_cancel_first', 'Force is for a cancel that does not end: cancel gracefully first.')
      : undefined
  if (cancel_mode === mode) return cancelling(cancel_mode)
  if (cancel_mode === 'force')
    return wrongState('mode_not_allowed', 'The operation is being cancelled by force; no other mode can follow.')
  if (mode === 'graceful')
    return wrongState('mode_not_allowed', 'The operation is being cancelled with compensation; that goes on.')
  if (mode === 'force' && cancelled_at !== null) {
    const available_at = new Date(Date.parse(cancelled_at) + cooloff_s * 1000).toISOString()
    if (Date.parse(now) < Date.parse(available_at))
      return wrongState('cooloff_not_elapsed', `Force is possible ${cooloff_s} s after the first cancel.`, {
        available_at,
        extra: { available_at },
      })
  }
  return undefined
}

/** States in which an attempt may have an effect at this moment. */
export const isInFlight = (state: NodeState): boolean =>
  state === 'dispatched' || state === 'running' || state === 'compensating'

const RETRYABLE: ReadonlySet<NodeState> = new Set(['failed', 'outcome_unknown', 'succeeded', 'skipped'])

/**
 * The nodes that a retry resets: the node alone, or with every descendant that is not pending (and was not removed).
 * In the order given.
 */
export const resetCone = <N extends Pick<NodeFacts, 'node_id' | 'state' | 'depends_on'>>(
  nodes: readonly N[],
  node_id: string,
  scope: 'downstream' | 'node',
): N[] => {
  if (scope === 'node') return nodes.filter((node) => node.node_id === node_id)
  return coneOf(nodes, node_id).filter(
    (node) => node.node_id === node_id || (node.state !== 'pending' && node.state !== 'removed'),
  )
}

/** A node and all that comes after it, in the order given. */
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

export type RetryCommand = { cone: readonly NodeFacts[]; reconciliation: boolean }

export const refuseRetry = (facts: OperationFacts, node: NodeFacts, { cone, reconciliation }: RetryCommand) => {
  if (hasEnded(facts.status)) return terminal(facts.status)
  if (facts.status === 'cancelling') return cancelling(facts.cancel_mode)
  if (!RETRYABLE.has(node.state))
    return wrongState('node_not_retryable', `The node is ${node.state}; only an ended node can run again.`)
  const busy = cone.filter(({ state }) => isInFlight(state))
  if (busy.length > 0)
    return wrongState('cone_in_flight', `${busy.length} node(s) that would be reset are running.`, {
      extra: { in_flight: busy.slice(0, 100).map(({ node_id }) => node_id) },
    })
  if (node.state === 'outcome_unknown' && !reconciliation)
    return refusal(
      'validation_error',
      'reconciliation_required',
      'Nobody knows how this node ended: say in `reconciliation` what you found at the target.',
      { status: 422 },
    )
  return undefined
}

export const NODE_INTERVENTIONS = [
  'skip',
  'mark_succeeded',
  'mark_failed',
  'mark_compensated',
  'set_output',
  'set_input',
  'trigger_compensation',
] as const
export type NodeIntervention = (typeof NODE_INTERVENTIONS)[number]
export const OPERATION_INTERVENTIONS = [
  'extend_deadline',
  'set_limits',
  'release_leases',
  'delegate_gate',
  'override_freeze',
] as const
export type OperationIntervention = (typeof OPERATION_INTERVENTIONS)[number]

/** States of a node in which each intervention makes sense (operations.md 5.4); the reducer looks at the same table. */
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

const notApplicable = (detail: string, extra?: Record<string, unknown>) =>
  wrongState('intervention_not_applicable', detail, extra ? { extra } : {})

export type InterventionCommand = {
  type: NodeIntervention
  /** The node and all that comes after it. */
  cone: readonly NodeFacts[]
}

export const refuseIntervention = (facts: OperationFacts, node: NodeFacts, { type, cone }: InterventionCommand) => {
  const { status, cancel_mode } = facts
  if (hasEnded(status)) return terminal(status)
  const undoing = OF_AN_UNDO.has(type) && node.state === 'compensation_failed'
  if (status === 'cancelling' && !(undoing && (type === 'mark_compensated' || cancel_mode === 'compensate')))
    return cancelling(cancel_mode)
  // Nobody has to wait until three heartbeats are missed.
  const givenUp = type === 'mark_failed' && node.state === 'running' && node.silent === true
  if (!INTERVENTION_STATES[type].has(node.state) && !givenUp)
    return notApplicable(`The node is ${node.state}: ${type} does not apply.`)
  if (type === 'skip' && !node.skippable) return notApplicable('The plan says that this node must not be skipped.')
  const later = cone.filter(({ node_id }) => node_id !== node.node_id)
  if (type === 'set_output') return refuseBegun(later, 'has used these outputs already')
  if (type === 'set_input') {
    if (node.kind !== 'task') return notApplicable(`A ${node.kind} has no inputs.`)
    return node.begun ? notApplicable('An attempt with the inputs of before has been made: retry the node.') : undefined
  }
  if (type !== 'trigger_compensation') return undefined
  if (!node.has_compensation) return notApplicable('The plan has no compensation for this node.')
  if (node.state === 'succeeded' && status !== 'paused' && status !== 'blocked')
    return notApplicable(`The operation is ${status}: pause it before something is undone.`)
  const busy = later.filter(({ state }) => isInFlight(state))
  return busy.length > 0 ? notApplicable(`"${busy[0]?.node_id}", which comes after it, is under way.`) : undefined
}

const refuseBegun = (nodes: readonly NodeFacts[], what: string) => {
  const begun = nodes.filter((node) => node.begun).map(({ node_id }) => node_id)
  return begun.length > 0 ? notApplicable(`"${begun[0]}" ${what}.`, { nodes: begun.slice(0, 100) }) : undefined
}

/** What is extended, delegated or limited is looked at by who reads it; this is what the operation itself allows. */
export const refuseOperationIntervention = (
  { status, cancel_mode }: OperationFacts,
  type: OperationIntervention,
): RefusalCode | undefined => {
  if (hasEnded(status)) return terminal(status)
  // A cancel may have to wait for an attempt: only that time can be given.
  if (status === 'cancelling' && type !== 'extend_deadline') return cancelling(cancel_mode)
  if (type === 'release_leases' && status !== 'paused')
    return notApplicable(`The operation is ${status}: only one that is paused gives its leases back.`)
  return undefined
}

/** Whether the graph of an operation can be changed at all (operations.md 2.6). */
export const refusePatch = ({ status, cancel_mode }: OperationFacts): RefusalCode | undefined => {
  if (hasEnded(status)) return terminal(status)
  return status === 'cancelling' ? cancelling(cancel_mode) : undefined
}

export type PatchFacts = { status: string; status_reason: string | null; rebase: unknown }

/** Whether a patch still takes votes. One that came too late says so, with what could be proposed instead. */
export const refusePatchDecision = (
  facts: OperationFacts,
  { status, status_reason, rebase }: PatchFacts,
): RefusalCode | undefined => {
  const moved = PATCH_CODES.find((code) => status === 'not_applicable' && code === status_reason)
  if (moved)
    return refusal('patch_not_applicable', moved, 'The graph has moved on since this was proposed.', {
      extra: { rebase },
    })
  if (status !== 'awaiting_approval') return wrongState('patch_closed', `The patch is ${status} already.`)
  return refusePatch(facts)
}
const PATCH_CODES = ['base_revision_moved', 'node_already_dispatched', 'unsound'] as const

const notWaiting = (code: CodeOf<'gate_not_waiting'>, detail: string, extra?: Record<string, unknown>) =>
  refusal('gate_not_waiting', code, detail, extra ? { extra } : {})

/** Why the gate takes no decision in this round, or nothing while it waits. */
const refuseRound = (gate: GateFacts, round: number): RefusalCode | undefined => {
  if (gate.status === 'armed') return notWaiting('not_reached', 'The operation has not come to this gate yet.')
  if (gate.status === 'cancelled') return notWaiting('cancelled', 'The gate is closed: nothing waits behind it.')
  if (round !== gate.round)
    return notWaiting('round_superseded', `You decided on round ${round}; the gate is in round ${gate.round}.`, {
      round: gate.round,
    })
  if (gate.status === 'expired') return notWaiting('expired', 'The time to decide is over.')
  if (gate.consumed) return notWaiting('already_consumed', 'The gate is decided and its nodes have started.')
  if (gate.status !== 'waiting') return notWaiting('already_decided', `The gate is ${gate.status} already.`)
  return undefined
}

/** Whether the operation can still open gates at all. */
const refuseDeciding = ({ status, cancel_mode }: OperationFacts) => {
  if (hasEnded(status)) return notWaiting('cancelled', `The operation has ended (${status}).`)
  if (status === 'cancelling') return notWaiting('cancelled', `The operation is being cancelled (${cancel_mode}).`)
  return undefined
}

export type GateDecision = { round: number; user_id: string }

export const refuseGateApprove = (facts: OperationFacts, gate: GateFacts, { round }: GateDecision) =>
  refuseRound(gate, round) ?? refuseDeciding(facts)

/** Rejecting is also possible for one who approved, as long as nothing behind the gate has started. */
export const refuseGateReject = (facts: OperationFacts, gate: GateFacts, { round, user_id }: GateDecision) =>
  (mayTakeBack(gate, user_id) && round === gate.round ? undefined : refuseRound(gate, round)) ?? refuseDeciding(facts)

export const mayTakeBack = (gate: GateFacts, user_id: string): boolean =>
  gate.status === 'approved' &&
  !gate.consumed &&
  gate.votes.some((vote) => vote.user_id === user_id && vote.decision === 'approve')

/** The digest that the person saw must be the gate's digest now: checked after state, so a stranger learns nothing. */
/** The same for a patch: the digest that was read must be the one that is decided. */
export const refuseDigestOf = (now: string, reviewed_digest: string): RefusalCode | undefined =>
  reviewed_digest === now
    ? undefined
    : refusal('version_conflict', 'digest_moved', 'This is not what you read: its digest differs.', {
        status: 412,
        extra: { digest: now },
      })

export const refuseDigest = (gate: GateFacts, reviewed_digest: string): RefusalCode | undefined =>
  reviewed_digest === gate.digest
    ? undefined
    : refusal('version_conflict', 'digest_moved', 'What the gate releases has changed since you read it.', {
        status: 412,
        extra: { digest: gate.digest, round: gate.round },
      })

/** What a set of votes of one round comes to: approved at quorum and group minimums, rejected by the rule, else waiting. */
export const outcomeOfVotes = ({
  policy,
  votes,
}: Pick<GateFacts, 'policy' | 'votes'>): 'approved' | 'rejected' | 'waiting' => {
  const rejections = votes.filter(({ decision }) => decision === 'reject').length
  const needed = policy.reject_rule === 'any' ? 1 : Math.floor(policy.quorum / 2) + 1
  if (rejections >= needed) return 'rejected'
  const missing = missingVotes({ policy, votes })
  return missing.count === 0 && missing.groups.length === 0 ? 'approved' : 'waiting'
}

/** How many approvals are missing in all, and of which groups. */
export const missingVotes = ({ policy, votes }: Pick<GateFacts, 'policy' | 'votes'>) => {
  const approvals = votes.filter(({ decision }) => decision === 'approve')
  const groups = policy.groups
    .map(({ group, min }) => ({
      group,
      count: min - approvals.filter(({ group_key }) => group_key === group).length,
    }))
    .filter(({ count }) => count > 0)
  return { count: Math.max(0, policy.quorum - approvals.length), groups }
}

/** These approvals as votes that satisfy the policy, each with the group it fills; undefined if they are not enough. */
export const fillGate = <A extends { user_id: string; groups: readonly string[] }>(
  policy: GateFacts['policy'],
  approvals: readonly A[],
): (A & { decision: 'approve'; group_key: string | null })[] | undefined => {
  const eligible = policy.groups.map(({ group }) => group)
  const votes: (A & { decision: 'approve'; group_key: string | null })[] = []
  for (const approval of approvals) {
    const { groups } = approval
    if (eligible.length > 0 && !groups.some((group) => eligible.includes(group))) continue
    const group_key = groupOfVote({ policy, votes }, eligible, groups)
    votes.push({ ...approval, decision: 'approve', group_key })
  }
  return outcomeOfVotes({ policy, votes }) === 'approved' ? votes : undefined
}

/**
 * The group that a vote fills: the named one, else the first that is still missing, else any that the person is in.
 * A person counts once.
 */
export const groupOfVote = (
  gate: Pick<GateFacts, 'policy' | 'votes'>,
  eligible_groups: readonly string[],
  caller_groups: readonly string[],
  as_group?: string,
): string | null => {
  const own = eligible_groups.filter((group) => caller_groups.includes(group))
  if (as_group !== undefined && own.includes(as_group)) return as_group
  const missing = missingVotes(gate).groups.find(({ group }) => own.includes(group))
  return missing?.group ?? own[0] ?? null
}
