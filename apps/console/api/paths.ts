import type { Problem } from '../../shared/contracts/client/problem.ts'
import type {
  Gate,
  Graph,
  InboxRow,
  LogPage,
  Me,
  NodeDetail,
  NodeRow,
  Operation,
  OperationRow,
  Page,
  Plan,
  Resource,
  ResourceHealth,
  ResourceOperation,
  ResourceRelation,
  ResourceRow,
  Timeline,
  User,
} from './types.ts'

type Get<Reply, Path = Record<never, never>, Query = Record<never, never>> = {
  get: {
    parameters: { path: Path; query?: Query }
    responses: {
      200: { content: { 'application/json': Reply } }
      default: { content: { 'application/problem+json': Problem } }
    }
  }
}
type Paging = { page_size?: number; page_token?: string; sort?: string }
type OfOperation = { operation_id: string }
type OfNode = OfOperation & { node_id: string }

/** Every read of the console, in the shape of generated OpenAPI path types. */
export type paths = {
  '/v1/me': Get<Me>
  '/v1/users/me': Get<User>
  '/v1/gates': Get<Page<InboxRow>, Record<never, never>, Paging & { status?: string; for?: 'me' | 'all' }>
  '/v1/operations': Get<
    Page<OperationRow>,
    Record<never, never>,
    Paging & { status?: string[]; status_group?: string; q?: string; requester?: string; resource_id?: string }
  >
  '/v1/operations/{operation_id}': Get<Operation, OfOperation>
  '/v1/operations/{operation_id}/graph': Get<Graph, OfOperation, { collapse?: 'auto' | 'none' | 'groups' }>
  '/v1/operations/{operation_id}/timeline': Get<Timeline, OfOperation, { after_seq?: number; limit?: number }>
  '/v1/operations/{operation_id}/nodes': Get<
    Page<NodeRow>,
    OfOperation,
    Paging & { state?: string[]; group?: string; failed_first?: boolean }
  >
  '/v1/operations/{operation_id}/nodes/{node_id}': Get<NodeDetail, OfNode, { attempt?: number }>
  '/v1/operations/{operation_id}/nodes/{node_id}/logs': Get<
    LogPage,
    OfNode,
    { attempt?: number; after_seq?: number; before_seq?: number; tail?: boolean; limit?: number; q?: string }
  >
  '/v1/operations/{operation_id}/gates/{gate_id}': Get<Gate, OfOperation & { gate_id: string }>
  '/v1/plans/{plan_id}': Get<Plan, { plan_id: string }, { diff_after?: string }>
  '/v1/plans/{plan_id}/graph': Get<Graph, { plan_id: string }>
  '/v1/resources': Get<
    Page<ResourceRow>,
    Record<never, never>,
    Paging & {
      type_key?: string[]
      region_id?: string
      health_status?: string[]
      filter?: string
      include?: string
      fields?: string
    }
  >
  '/v1/resources/{resource_id}': Get<Resource, { resource_id: string }>
  '/v1/resources/{resource_id}/health': Get<ResourceHealth, { resource_id: string }>
  '/v1/resources/{resource_id}/relationships': Get<Page<ResourceRelation>, { resource_id: string }, Paging>
  '/v1/resources/{resource_id}/operations': Get<Page<ResourceOperation>, { resource_id: string }, Paging>
}
