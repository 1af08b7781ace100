import type { Static, TSchema } from 'typebox'
import type { AuditQuery } from '../../shared/contracts/audit.ts'
import type {
  DefinitionsQuery,
  ProvidersQuery,
  ResourceCapabilitiesQuery,
} from '../../shared/contracts/catalog/capabilities.ts'
import type { NeedsGraph, NeedsGraphQuery } from '../../shared/contracts/catalog/capability-graphs.ts'
import type { RelationshipQuery } from '../../shared/contracts/catalog/relationships.ts'
import type { ResourceListQuery } from '../../shared/contracts/catalog/resources.ts'
import type { TopologyQuery } from '../../shared/contracts/catalog/topology.ts'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import type { InboxQuery } from '../../shared/contracts/operations/gates.ts'
import type { IntentListQuery } from '../../shared/contracts/operations/intents.ts'
import type { LogQuery } from '../../shared/contracts/operations/logs.ts'
import type { ArtifactQuery, NodeListQuery, NodeQuery } from '../../shared/contracts/operations/nodes.ts'
import type {
  EvidenceQuery,
  GraphQuery,
  OperationListQuery,
  ResourceOperationsQuery,
  TimelineQuery,
} from '../../shared/contracts/operations/operations.ts'
import type { PatchListQuery } from '../../shared/contracts/operations/patches.ts'
import type { PlanQuery } from '../../shared/contracts/operations/plans.ts'
import type {
  Artifact,
  AuditRow,
  Capabilities,
  Definition,
  Evidence,
  Gate,
  Graph,
  InboxRow,
  IntentRow,
  LogPage,
  Me,
  NodeDetail,
  NodeRow,
  Operation,
  OperationRow,
  Page,
  Patch,
  Place,
  Plan,
  PlatformHealth,
  ProviderRow,
  Resource,
  ResourceHealth,
  ResourceRelation,
  ResourceRow,
  ResourceType,
  SessionRow,
  Timeline,
} from './types.ts'

type Nothing = Record<never, never>
type Get<Reply, Path = Nothing, Query = unknown> = {
  get: {
    parameters: {
      path: Path
      query?: Query extends TSchema ? Partial<Static<Query>> : Query extends object ? Query : Nothing
    }
    responses: {
      200: { content: { 'application/json': Reply } }
      default: { content: { 'application/problem+json': Problem } }
    }
  }
}
/** The logs of users and of sign-ins: no contract of their own, the same filters in both. */
type UserEventsQuery = {
  page_size?: number
  page_token?: string
  user_id?: string
  type?: string
  from?: string
  to?: string
}
type OfOperation = { operation_id: string }
type OfNode = OfOperation & { node_id: string }
type OfResource = { resource_id: string }

/**
 * Every read of the console, in the shape of OpenAPI path types. Queries and replies are the static types of the very
 * schemas by which the servers validate; that each path is documented, a test compares with the committed documents.
 */
export type paths = {
  '/v1/me': Get<Me>
  '/v1/sessions': Get<{ items: SessionRow[] }>
  '/v1/gates': Get<Page<InboxRow>, Nothing, typeof InboxQuery>
  '/v1/operations': Get<Page<OperationRow>, Nothing, typeof OperationListQuery>
  '/v1/operations/{operation_id}': Get<Operation, OfOperation>
  '/v1/operations/{operation_id}/graph': Get<Graph, OfOperation, typeof GraphQuery>
  '/v1/operations/{operation_id}/timeline': Get<Timeline, OfOperation, typeof TimelineQuery>
  '/v1/operations/{operation_id}/nodes': Get<Page<NodeRow>, OfOperation, typeof NodeListQuery>
  '/v1/operations/{operation_id}/nodes/{node_id}': Get<NodeDetail, OfNode, typeof NodeQuery>
  '/v1/operations/{operation_id}/nodes/{node_id}/logs': Get<LogPage, OfNode, typeof LogQuery>
  '/v1/operations/{operation_id}/gates/{gate_id}': Get<Gate, OfOperation & { gate_id: string }>
  '/v1/operations/{operation_id}/patches': Get<Page<Patch>, OfOperation, typeof PatchListQuery>
  '/v1/operations/{operation_id}/patches/{patch_id}': Get<Patch, OfOperation & { patch_id: string }>
  '/v1/operations/{operation_id}/evidence': Get<Evidence, OfOperation, typeof EvidenceQuery>
  '/v1/operations/{operation_id}/artifacts': Get<Page<Artifact>, OfOperation, typeof ArtifactQuery>
  '/v1/plans/{plan_id}': Get<Plan, { plan_id: string }, typeof PlanQuery>
  '/v1/plans/{plan_id}/graph': Get<Graph, { plan_id: string }>
  '/v1/intents': Get<Page<IntentRow>, Nothing, typeof IntentListQuery>
  '/v1/resource-types/{type_key}': Get<ResourceType, { type_key: string }>
  '/v1/resources': Get<Page<ResourceRow>, Nothing, typeof ResourceListQuery>
  '/v1/resources/{resource_id}': Get<Resource, OfResource>
  '/v1/resources/{resource_id}/health': Get<ResourceHealth, OfResource>
  '/v1/resources/{resource_id}/relationships': Get<Page<ResourceRelation>, OfResource, typeof RelationshipQuery>
  '/v1/resources/{resource_id}/capabilities': Get<Capabilities, OfResource, typeof ResourceCapabilitiesQuery>
  '/v1/topology/regions': Get<Page<Place>, Nothing, typeof TopologyQuery>
  '/v1/topology/datacenters': Get<Page<Place>, Nothing, typeof TopologyQuery>
  '/v1/topology/layers': Get<Page<Place>, Nothing, typeof TopologyQuery>
  '/v1/topology/segments': Get<Page<Place>, Nothing, typeof TopologyQuery>
  '/v1/graphs/capabilities': Get<NeedsGraph, Nothing, typeof NeedsGraphQuery>
  '/v1/capabilities/definitions': Get<Page<Definition>, Nothing, typeof DefinitionsQuery>
  '/v1/capabilities/providers': Get<Page<ProviderRow>, Nothing, typeof ProvidersQuery>
  '/v1/audit': Get<Page<AuditRow>, Nothing, typeof AuditQuery>
  '/v1/audit/catalog': Get<Page<AuditRow>, Nothing, typeof AuditQuery>
  '/v1/admin/user-events': Get<Page<AuditRow>, Nothing, UserEventsQuery>
  '/v1/admin/auth-events': Get<Page<AuditRow>, Nothing, UserEventsQuery>
  '/v1/admin/users': Get<Page<{ id: string; username: string }>, Nothing, { page_size?: number }>
  '/v1/platform/health': Get<PlatformHealth>
  '/v1/resources/{resource_id}/operations': Get<Page<OperationRow>, OfResource, typeof ResourceOperationsQuery>
}
