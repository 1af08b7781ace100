import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import type { Static } from 'typebox'
import type { OperationListQuery } from '../../shared/contracts/operations/operations.ts'
import { api, read } from './client.ts'

/** Every read as query options. The key's first word is the noun; live frames find the cached reply by it. */
export const meQuery = () =>
  queryOptions({ queryKey: ['me'], queryFn: ({ signal }) => read(api.GET('/v1/me', { params: { path: {} }, signal })) })

/** Where the person is signed in. */
export const sessionsQuery = () =>
  queryOptions({
    queryKey: ['sessions'],
    queryFn: ({ signal }) => read(api.GET('/v1/sessions', { params: { path: {} }, signal })),
  })

export const inboxQuery = (whose: 'me' | 'all') =>
  queryOptions({
    queryKey: ['inbox', whose],
    queryFn: ({ signal }) =>
      read(
        api.GET('/v1/gates', {
          params: { path: {}, query: { status: 'waiting', for: whose, sort: 'deadline', page_size: 100 } },
          signal,
        }),
      ),
  })

export type OperationsTab = 'running' | 'waiting' | 'failed' | 'all'
const TABS: Record<OperationsTab, Pick<Static<typeof OperationListQuery>, 'status_group' | 'status'>> = {
  running: { status_group: 'open' },
  waiting: { status_group: 'needs_attention' },
  failed: { status: ['failed', 'timed_out'] },
  all: {},
}

export const operationsQuery = (tab: OperationsTab, q: string) =>
  infiniteQueryOptions({
    queryKey: ['operations', tab, q],
    initialPageParam: '',
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/operations', {
          params: {
            path: {},
            query: {
              page_size: 50,
              sort: '-created_at',
              ...TABS[tab],
              ...(q === '' ? {} : { q }),
              ...(pageParam === '' ? {} : { page_token: pageParam }),
            },
          },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.next_page_token || undefined,
  })

export const operationQuery = (operation_id: string) =>
  queryOptions({
    queryKey: ['operation', operation_id],
    queryFn: ({ signal }) =>
      read(api.GET('/v1/operations/{operation_id}', { params: { path: { operation_id } }, signal })),
  })

export const graphQuery = (operation_id: string) =>
  queryOptions({
    queryKey: ['graph', operation_id],
    queryFn: ({ signal }) =>
      read(api.GET('/v1/operations/{operation_id}/graph', { params: { path: { operation_id } }, signal })),
  })

/** The graph of one revision: its nodes and dependencies never change any more. */
export const revisionQuery = (operation_id: string, revision: number) =>
  queryOptions({
    queryKey: ['revision', operation_id, revision],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) =>
      read(
        api.GET('/v1/operations/{operation_id}/graph', {
          params: { path: { operation_id }, query: { revision } },
          signal,
        }),
      ),
  })

/** The newest run of every node, failures first; operations of up to 2,000 nodes are read in pages of 500. */
export const nodesQuery = (operation_id: string) =>
  infiniteQueryOptions({
    queryKey: ['nodes', operation_id],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/operations/{operation_id}/nodes', {
          params: {
            path: { operation_id },
            query: { page_size: 500, failed_first: true, ...(pageParam === '' ? {} : { page_token: pageParam }) },
          },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.next_page_token || undefined,
  })

export const nodeQuery = (operation_id: string, node_id: string, attempt?: number) =>
  queryOptions({
    queryKey: ['node', operation_id, node_id, attempt ?? 0],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) =>
      read(
        api.GET('/v1/operations/{operation_id}/nodes/{node_id}', {
          params: { path: { operation_id, node_id }, query: attempt === undefined ? {} : { attempt } },
          signal,
        }),
      ),
  })

export const gateQuery = (operation_id: string, gate_id: string) =>
  queryOptions({
    queryKey: ['gate', operation_id, gate_id],
    queryFn: ({ signal }) =>
      read(
        api.GET('/v1/operations/{operation_id}/gates/{gate_id}', {
          params: { path: { operation_id, gate_id } },
          signal,
        }),
      ),
  })

/** Every patch of an operation, in the order of proposal. */
export const patchesQuery = (operation_id: string) =>
  infiniteQueryOptions({
    queryKey: ['patches', operation_id],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/operations/{operation_id}/patches', {
          params: {
            path: { operation_id },
            query: { page_size: 100, ...(pageParam === '' ? {} : { page_token: pageParam }) },
          },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.next_page_token || undefined,
  })

export const patchQuery = (operation_id: string, patch_id: string) =>
  queryOptions({
    queryKey: ['patch', operation_id, patch_id],
    queryFn: ({ signal }) =>
      read(
        api.GET('/v1/operations/{operation_id}/patches/{patch_id}', {
          params: { path: { operation_id, patch_id } },
          signal,
        }),
      ),
  })

const EVIDENCE_PAGE = 200

/** The records of the chain in their order. */
export const evidenceQuery = (operation_id: string) =>
  infiniteQueryOptions({
    queryKey: ['evidence', operation_id],
    initialPageParam: 0,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/operations/{operation_id}/evidence', {
          params: { path: { operation_id }, query: { after_seq: pageParam, limit: EVIDENCE_PAGE } },
          signal,
        }),
      ),
    getNextPageParam: ({ records }) => (records.length < EVIDENCE_PAGE ? undefined : records.at(-1)?.seq),
  })

export const artifactsQuery = (operation_id: string) =>
  infiniteQueryOptions({
    queryKey: ['artifacts', operation_id],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/operations/{operation_id}/artifacts', {
          params: {
            path: { operation_id },
            query: { page_size: 100, ...(pageParam === '' ? {} : { page_token: pageParam }) },
          },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.next_page_token || undefined,
  })

export const timelineQuery = (operation_id: string) =>
  infiniteQueryOptions({
    queryKey: ['timeline', operation_id],
    initialPageParam: 0,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/operations/{operation_id}/timeline', {
          params: { path: { operation_id }, query: { after_seq: pageParam, limit: 1000 } },
          signal,
        }),
      ),
    getNextPageParam: (last) => (last.events.length < 1000 ? undefined : last.last_seq),
  })

export const planQuery = (plan_id: string) =>
  queryOptions({
    queryKey: ['plan', plan_id],
    queryFn: ({ signal }) => read(api.GET('/v1/plans/{plan_id}', { params: { path: { plan_id } }, signal })),
  })

export const intentsQuery = (whose: 'mine' | 'all') =>
  infiniteQueryOptions({
    queryKey: ['intents', whose],
    initialPageParam: '',
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/intents', {
          params: {
            path: {},
            query: {
              page_size: 50,
              ...(whose === 'mine' ? { requester: 'me' } : {}),
              ...(pageParam === '' ? {} : { page_token: pageParam }),
            },
          },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.next_page_token || undefined,
  })

export const resourceTypeQuery = (type_key: string) =>
  queryOptions({
    queryKey: ['resource-type', type_key],
    queryFn: ({ signal }) => read(api.GET('/v1/resource-types/{type_key}', { params: { path: { type_key } }, signal })),
  })

/** The drawing of a plan; a plan never changes. */
export const planGraphQuery = (plan_id: string) =>
  queryOptions({
    queryKey: ['plan-graph', plan_id],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => read(api.GET('/v1/plans/{plan_id}/graph', { params: { path: { plan_id } }, signal })),
  })

export const resourcesQuery = (find: { type: string; region: string; health: string; q: string }) =>
  infiniteQueryOptions({
    queryKey: ['resources', find],
    initialPageParam: '',
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/resources', {
          params: {
            path: {},
            query: {
              page_size: 100,
              ...(find.type === '' ? {} : { type_key: [find.type] }),
              ...(find.region === '' ? {} : { region_id: find.region }),
              ...(find.health === '' ? {} : { health_status: [find.health] }),
              ...(find.q === '' ? {} : { filter: filterOf(find.q) }),
              ...(pageParam === '' ? {} : { page_token: pageParam }),
            },
          },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.next_page_token || undefined,
  })

export const resourceQuery = (resource_id: string) =>
  queryOptions({
    queryKey: ['resource', resource_id],
    queryFn: ({ signal }) =>
      read(api.GET('/v1/resources/{resource_id}', { params: { path: { resource_id } }, signal })),
  })

export const healthQuery = (resource_id: string) =>
  queryOptions({
    queryKey: ['health', resource_id],
    queryFn: ({ signal }) =>
      read(api.GET('/v1/resources/{resource_id}/health', { params: { path: { resource_id } }, signal })),
  })

export const relationsQuery = (resource_id: string) =>
  queryOptions({
    queryKey: ['relations', resource_id],
    queryFn: ({ signal }) =>
      read(
        api.GET('/v1/resources/{resource_id}/relationships', {
          params: { path: { resource_id }, query: { page_size: 200 } },
          signal,
        }),
      ),
  })

export const resourceOperationsQuery = (resource_id: string) =>
  queryOptions({
    queryKey: ['resource-operations', resource_id],
    queryFn: ({ signal }) =>
      read(
        api.GET('/v1/resources/{resource_id}/operations', {
          params: { path: { resource_id }, query: { page_size: 50 } },
          signal,
        }),
      ),
  })

export const capabilitiesQuery = (resource_id: string) =>
  queryOptions({
    queryKey: ['resource-capabilities', resource_id],
    queryFn: ({ signal }) =>
      read(api.GET('/v1/resources/{resource_id}/capabilities', { params: { path: { resource_id } }, signal })),
  })

export const LEVELS = ['regions', 'datacenters', 'layers', 'segments'] as const
export type PlaceLevel = (typeof LEVELS)[number]
export type Within = { region_id?: string; datacenter_id?: string; layer_id?: string }

/** Places of one level below a place, with the counts of what is in them. */
export const placesQuery = (level: PlaceLevel, within: Within) =>
  infiniteQueryOptions({
    queryKey: ['places', level, within],
    initialPageParam: '',
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET(`/v1/topology/${level}`, {
          params: {
            path: {},
            query: { page_size: 100, ...within, ...(pageParam === '' ? {} : { page_token: pageParam }) },
          },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.next_page_token || undefined,
  })

export const definitionsQuery = () =>
  queryOptions({
    queryKey: ['definitions'],
    queryFn: ({ signal }) =>
      read(api.GET('/v1/capabilities/definitions', { params: { path: {}, query: { page_size: 500 } }, signal })),
  })

export const providersQuery = (capability_key: string) =>
  infiniteQueryOptions({
    queryKey: ['providers', capability_key],
    initialPageParam: '',
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/capabilities/providers', {
          params: {
            path: {},
            query: { capability_key, page_size: 100, ...(pageParam === '' ? {} : { page_token: pageParam }) },
          },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.next_page_token || undefined,
  })

/** A bare word searches names; anything with an operator is the catalog's own filter language. */
const filterOf = (q: string): string => (/[=<>:]/.test(q) ? q : `name:${JSON.stringify(q)}`)
