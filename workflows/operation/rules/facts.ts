import type { Category, CodeOf } from '../../../apps/shared/contracts/codes.ts'
import type {
  CancelMode,
  Control,
  GatePolicy,
  GateStatus,
  NodeState,
  OperationStatus,
  RefusalCode,
} from '../../../apps/shared/contracts/operations/graph.ts'

/**
 * The input of the rules of an operation, its gates and its nodes (operations.md 2). The rules are pure: the command
 * transaction decides by them, `allowed_actions[]` is filled by them, and the reducer checks live state against them.
 * Each returns the refusal, or `undefined`.
 */
export type OperationFacts = {
  status: OperationStatus
  control: Control
  cancel_mode: CancelMode | null
  /** RFC 3339; when the first cancel was accepted. */
  cancelled_at: string | null
  pause_reason: string | null
  /** Nodes with an unknown outcome. */
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
  /** Pending, but it waits for no other node. */
  free: boolean
  /** A barrier whose wave was left within its failure budget. */
  left?: boolean
  skippable: boolean
  has_compensation: boolean
  /** An external agent has the work and has missed a heartbeat. */
  silent?: boolean
  /** Who made a decision on it that the engine has not carried out yet: its state is not known. */
  decided_by?: string | null
  depends_on: readonly string[]
}

export type GateFacts = {
  gate_id: string
  kind: string
  status: GateStatus
  round: number
  digest: string
  consumed: boolean
  /** Its time has passed and silence rejects, although it is not marked as expired yet. */
  overdue?: boolean
  /** An intervention about nodes or a gate that have changed since it was requested. */
  outdated?: boolean
  policy: Pick<GatePolicy, 'quorum' | 'groups' | 'reject_rule' | 'comment_on_approve'>
  votes: readonly {
    user_id: string
    decision: 'approve' | 'reject'
    group_key: string | null
    /** The person who delegated it, if it is a vote by delegation. */
    in_place_of?: string | undefined
  }[]
}

export const refusal = <C extends Category>(
  category: C,
  code: CodeOf<C>,
  detail: string,
  more: Partial<RefusalCode> = {},
): RefusalCode => ({ category, code, detail, ...more })
export const wrongState = (code: CodeOf<'invalid_state_transition'>, detail: string, more: Partial<RefusalCode> = {}) =>
  refusal('invalid_state_transition', code, detail, more)

export const terminal = (status: OperationStatus) =>
  wrongState(
    'operation_terminal',
    `The operation has ended (${status}); to repeat it, create a new intent with retry_of.`,
  )
export const cancelling = (mode: CancelMode | null) =>
  wrongState('already_cancelling', `The operation is being cancelled (${mode ?? 'graceful'}).`)

/** Only a cancel, which ends its rows, still has an effect: the engine would carry out no other command. */
export const refuseLost = ({ pause_reason }: OperationFacts): RefusalCode | undefined =>
  pause_reason === 'engine_lost'
    ? wrongState('engine_lost', 'The workflow engine has lost this operation; it can only be cancelled.')
    : undefined

export const hasEnded = (status: OperationStatus): boolean =>
  status === 'succeeded' ||
  status === 'succeeded_with_exceptions' ||
  status === 'failed' ||
  status === 'cancelled' ||
  status === 'timed_out'

/** An end takes precedence, then the wanted control; `pausing` until the engine reports paused (operations.md 2.3). */
export const statusOf = (control: Control, engine_status: string): OperationStatus => {
  const reported = engine_status as OperationStatus
  if (hasEnded(reported)) return reported
  if (control === 'cancel') return 'cancelling'
  if (control === 'pause') return reported === 'paused' ? 'paused' : 'pausing'
  return reported === 'queued' || reported === 'blocked' ? reported : 'running'
}
