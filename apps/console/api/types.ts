import type { Static } from 'typebox'
import type {
  ActorSchema,
  AllowedActionSchema,
  BlockedOnSchema,
  CommandView,
} from '../../shared/contracts/operations/common.ts'
import type { Gate as GateReply, GateSummary, InboxItem, VoteView } from '../../shared/contracts/operations/gates.ts'
import type { FieldChange, GateSubject } from '../../shared/contracts/operations/graph.ts'
import type { AttemptView, Node, NodeSummary } from '../../shared/contracts/operations/nodes.ts'
import type {
  OperationGraph,
  Operation as OperationReply,
  OperationSummary,
  Timeline,
  TimelineEventView,
} from '../../shared/contracts/operations/operations.ts'

/** The replies that the console reads: static types of the servers' own contracts. */
export type { Me } from '../../shared/contracts/operations/events.ts'
export type { LogPage } from '../../shared/contracts/operations/logs.ts'
export type { FieldChange, GateSubject, Timeline }
export type Actor = Static<typeof ActorSchema>
export type AllowedAction = Static<typeof AllowedActionSchema>
export type BlockedOn = Static<typeof BlockedOnSchema>
export type PendingCommand = Static<typeof CommandView>
export type OperationRow = OperationSummary
export type Operation = OperationReply
export type Graph = OperationGraph
export type GraphNode = OperationGraph['nodes'][number]
export type NodeRow = NodeSummary
export type NodeDetail = Node
export type Attempt = Static<typeof AttemptView>
export type TimelineEvent = Static<typeof TimelineEventView>
export type Vote = Static<typeof VoteView>
export type GateRow = GateSummary
export type InboxRow = InboxItem

/** The rule of a gate, as far as a person reads it. */
export type GateRule = {
  quorum: number
  groups: { group: string; min: number }[]
  four_eyes: boolean
  comment_on_approve?: boolean
}
export type GateContext = {
  as_of: string
  dependents: { resource_id: string; name?: string; health_status?: string }[]
  policy_results: { policy_id: string; level: string; result: string }[]
  evidence: { seq: number; kind: string; statement: string; at?: string }[]
  compensations: { node_id: string; name?: string }[]
  conflicts: { operation_id?: string; title?: string; message?: string }[]
}
export type Gate = Omit<GateReply, 'subject' | 'context'> & { subject: GateSubject | null; context: GateContext }

export type AsOf = { time: string; seq?: string; lag_ms?: number }
export type Page<Item> = { items: Item[]; next_page_token: string | null; as_of?: AsOf }

export type User = {
  id: string
  username: string
  status: string
  roles: string[]
  groups: string[]
  session?: { id: string; mode: string; auth_time: number | string }
}

export type DryRun = {
  dry_run: true
  effect: Record<string, unknown>
  allowed_actions?: AllowedAction[]
}

export type Plan = {
  plan_id: string
  intent_id: string
  status: string
  status_reason: string | null
  plan_hash: string
  counts: {
    create: number
    update: number
    replace: number
    delete: number
    no_change: number
    nodes: number
    gates: number
  }
  diff: { resource_id: string; name: string; change: string; fields: FieldChange[] }[]
  risk: { level: string; score: number; factors: unknown[] }
  conflicts: { message?: string; operation_id?: string }[]
  policy_results: { policy_id: string; level: string; result: string }[]
  gates: { gate_id: string; question: string; guards: string[]; who: string[]; can_i: boolean }[]
  warnings: (string | { message: string })[]
  estimates: { p50_s: number | null; p90_s: number | null; critical_path: string[] } | null
  expires_at: string | null
  operation_id: string | null
  allowed_actions: AllowedAction[]
}

export type ResourceRow = {
  resource_id: string
  type_key: string
  name: string
  display_name?: string
  lifecycle_status: string
  health_status: string
  version: number
  scope?: { region_id: string | null; datacenter_id: string | null; layer_id: string | null; segment_id: string | null }
  drift?: { status: string; paths?: string[] } | string
  last_operation?: { operation_id: string; at: string } | null
}
export type Resource = ResourceRow & {
  type_version: number
  labels: Record<string, string>
  owner?: string | null
  desired_state: Record<string, unknown>
  observed_state: Record<string, unknown>
  conditions?: { type: string; status: string; reason?: string; message?: string; last_transition_at?: string }[]
  created_at: string
  updated_at: string
}
export type ResourceRelation = {
  relationship: { relationship_id: string; type_key: string }
  direction: 'out' | 'in'
  peer: { resource_id: string; type_key: string; name: string; lifecycle_status: string; health_status: string }
}
export type ResourceOperation = {
  operation_id: string
  title: string
  kind: string
  status: string
  relation?: string
  change?: string | null
  version_from?: number | null
  version_to?: number | null
  started_at: string | null
  ended_at: string | null
}
