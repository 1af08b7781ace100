import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { pagesOf, queryOf, reading } from '../api/read.ts'
import type { Gate } from '../api/types.ts'

/** Reads of operations: lists, graph, nodes, gates and history. The key's first word is the noun; live frames find the cached reply by it. */
export const OPERATIONS_TABS = ['running', 'waiting', 'failed', 'all', 'succeeded', 'cancelled'] as const
export type OperationsTab = (typeof OPERATIONS_TABS)[number]
/** Which operations a list shows: by words, by when they ended (RFC 3339), and by its other filters. */
export type OperationsSearch = { tab: OperationsTab; q: string } & {
  [name in 'from' | 'to' | 'kind' | 'by' | 'on' | 'env' | 'age']?: string | undefined
}
export const operationQuery = (operation_id: string) =>
  queryOf(['operation', operation_id], '/v1/operations/{operation_id}', { path: { operation_id } })

/** The intents that lead back to the state before an ended operation. */
export const rollbackQuery = (operation_id: string) =>
  queryOf(['rollback', operation_id], '/v1/operations/{operation_id}/rollback', { path: { operation_id } })

/** Changes to its nodes are found by their states; comparing thousands of them member by member takes too long. */
export const graphQuery = (operation_id: string) =>
  queryOf(
    ['graph', operation_id],
    '/v1/operations/{operation_id}/graph',
    { path: { operation_id } },
    { structuralSharing: false },
  )

/** The graph of one revision, whose nodes and dependencies never change. */
export const revisionQuery = (operation_id: string, revision: number) =>
  queryOf(['revision', operation_id, revision], '/v1/operations/{operation_id}/graph', {
    path: { operation_id },
    query: { revision },
  })

/** The newest run of every node, failures first; operations of up to 2,000 nodes are read in pages of 500. */
export const nodesQuery = (operation_id: string) =>
  pagesOf(['nodes', operation_id], '/v1/operations/{operation_id}/nodes', {
    path: { operation_id },
    query: { page_size: 500, failed_first: true },
  })

/** The nodes whose newest attempt has an error. */
export const errorsQuery = (operation_id: string) =>
  pagesOf(['nodes', operation_id, 'errors'], '/v1/operations/{operation_id}/nodes', {
    path: { operation_id },
    query: { page_size: 500, state: ['failed', 'outcome_unknown', 'backoff', 'compensation_failed'] },
  })

export const nodeQuery = (operation_id: string, node_id: string, attempt?: number) =>
  queryOf(
    ['node', operation_id, node_id, attempt ?? 0],
    '/v1/operations/{operation_id}/nodes/{node_id}',
    { path: { operation_id, node_id }, query: attempt === undefined ? {} : { attempt } },
    { placeholderData: keepPreviousData },
  )

export const gateQuery = (operation_id: string, gate_id: string) =>
  queryOptions({
    queryKey: ['gate', operation_id, gate_id],
    queryFn: async ({ signal }) =>
      (await reading('/v1/operations/{operation_id}/gates/{gate_id}', { path: { operation_id, gate_id } })({
        signal,
      })) as Gate,
  })

export const timelineQuery = (operation_id: string) =>
  infiniteQueryOptions({
    queryKey: ['timeline', operation_id],
    initialPageParam: 0,
    queryFn: ({ pageParam, signal }) =>
      reading('/v1/operations/{operation_id}/timeline', {
        path: { operation_id },
        query: { after_seq: pageParam, limit: 1000 },
      })({ signal }),
    // `last_seq` is the newest of the operation, not of the page.
    getNextPageParam: (last) => (last.events.length < 1000 ? undefined : last.events.at(-1)?.seq),
  })
