import type { Static } from 'typebox'
import type { AuditView } from '../../shared/contracts/audit.ts'
import type {
  CapabilityDefinition,
  Provider,
  ResourceCapabilities,
} from '../../shared/contracts/catalog/capabilities.ts'
import type { HealthView } from '../../shared/contracts/catalog/health.ts'
import type { RelationshipItem } from '../../shared/contracts/catalog/relationships.ts'
import type { ResourceItem, ResourceView, VersionItem } from '../../shared/contracts/catalog/resources.ts'
import type { ResourceType as ResourceTypeReply } from '../../shared/contracts/catalog/types.ts'
import type { ChangeView } from '../../shared/contracts/identity/changes.ts'
import type { MachineView } from '../../shared/contracts/identity/machines.ts'
import type { GrantView, GroupView, ListedGrant, UserDetail } from '../../shared/contracts/identity/users.ts'
import type { AllowedActionSchema } from '../../shared/contracts/operations/common.ts'
import type { Gate as GateReply, GateSummary, InboxItem, VoteView } from '../../shared/contracts/operations/gates.ts'
import type { FieldChange, GateSubject } from '../../shared/contracts/operations/graph.ts'
import type { ArtifactView, AttemptView, Node, NodeSummary } from '../../shared/contracts/operations/nodes.ts'
import type {
  Evidence as EvidenceReply,
  OperationGraph,
  Operation as OperationReply,
  OperationSummary,
  Timeline,
  TimelineEventView,
} from '../../shared/contracts/operations/operations.ts'
import type { PatchDetail, Patch as PatchReply } from '../../shared/contracts/operations/patches.ts'
import type { PlanView } from '../../shared/contracts/operations/plans.ts'
import type { SessionView } from '../../shared/contracts/session/sessions.ts'
import type { NeedsGraph } from '../../shared/contracts/topology/capability-graphs.ts'
import type { SearchItem } from '../../shared/contracts/topology/search.ts'
import type { TopologyList } from '../../shared/contracts/topology/topology.ts'

/** The replies that the console reads: static types of the servers' contracts. */
export type { Me } from '../../shared/contracts/operations/events.ts'
export type { PatchChange } from '../../shared/contracts/operations/patches.ts'
export type { FieldChange, GateSubject, Timeline }
export type UserRow = Static<typeof UserDetail>
export type GroupRow = Static<typeof GroupView>
export type UserGrant = Static<typeof GrantView>
export type GrantRow = Static<typeof ListedGrant>
export type MachineRow = MachineView
export type ChangeRow = ChangeView
export type SessionRow = Static<typeof SessionView>
export type AllowedAction = Static<typeof AllowedActionSchema>
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
export type { Waiting } from '../../shared/contracts/operations/waiting.ts'

/** The parts of a gate's rule that are shown to people. */
export type GateRule = {
  quorum: number
  groups: { group: string; min: number }[]
  four_eyes: boolean
  comment_on_approve?: boolean
  escalation?: { after_s: number; add_groups: string[] }[]
}
export type GateContext = {
  as_of: string
  affected: Plan['impact']['affected']
  policy_results: { policy_id: string; level: string; result: string }[]
  evidence: { seq: number; kind: string; statement: string; at?: string }[]
  rehearsal: Plan['rehearsal']
  conflicts: Plan['conflicts']
}
export type Gate = Omit<GateReply, 'subject' | 'context'> & { subject: GateSubject | null; context: GateContext }

export type Patch = PatchReply
export type { PatchDetail }
export type Artifact = ArtifactView
export type Evidence = EvidenceReply
export type EvidenceRecord = Evidence['records'][number]

export type AsOf = { time: string; seq?: string; lag_ms?: number }
export type Page<Item> = { items: Item[]; next_page_token: string | null; as_of?: AsOf }

export type { IntentRow } from '../../shared/contracts/operations/intents.ts'
export type {
  ScheduleRow,
  ScheduleView,
} from '../../shared/contracts/operations/schedules.ts'
export type ResourceType = ResourceTypeReply
export type Plan = PlanView
export type ResourceHealth = Static<typeof HealthView>
export type HealthCheck = ResourceHealth['checks'][number]
export type FoundResource = SearchItem
export type { SearchResult } from '../../shared/contracts/topology/search.ts'
export type ResourceRow = Static<typeof ResourceItem>
export type Resource = ResourceView
export type VersionRow = Static<typeof VersionItem>
export type { Impact } from '../../shared/contracts/topology/impact.ts'
export type ResourceRelation = Static<typeof RelationshipItem>
export type Place = Static<typeof TopologyList>['items'][number]
export type Definition = CapabilityDefinition
export type ProviderRow = Provider
export type Capabilities = Static<typeof ResourceCapabilities>
/** The last report of every process of the platform; the gateway's reply has no schema. */
export type PlatformHealth = {
  parts: {
    app: string
    instance: string
    status: string
    since: string
    checks: Record<string, unknown>
    lags: Record<string, number>
  }[]
  as_of: string
}
/** A requirement in the graph of capabilities, with its resource. */
export type { NeedsGraph }
export type Gap = Extract<NeedsGraph['nodes'][number], { kind: 'requirement' }>
export type Need = Capabilities['required'][number]

/** A row of any log; rows of sign-ins have no roles, and only those of users have details. */
export type AuditRow = Pick<Static<typeof AuditView>, 'at' | 'actor' | 'action' | 'object' | 'outcome'> & {
  roles?: string[]
  reason: string | null
  request_id: string | null
  details?: Record<string, unknown> | null
}
