import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { paging, reading } from '../api/read.ts'

/** Reads of resources and their parts. The key's first word is the noun; live frames find the cached reply by it. */
export const resourceTypeQuery = (type_key: string) =>
  queryOptions({
    queryKey: ['resource-type', type_key],
    queryFn: reading('/v1/resource-types/{type_key}', { path: { type_key } }),
  })

type ResourceFind = {
  type?: string
  region?: string
  health?: readonly string[]
  lifecycle?: string | undefined
  drift?: string | undefined
  q?: string
  /** The member to sort by; a leading `-` sorts in descending order. */
  sort?: string | undefined
  /** Whether to count the matches too. */
  counted?: boolean
}

/** Every type that a resource may have. */
export const typesQuery = () =>
  queryOptions({
    queryKey: ['resource-types'],
    staleTime: 600_000,
    queryFn: reading('/v1/resource-types', { query: { page_size: 500 } }),
  })

/** Resources that match every given filter; an empty text does not filter. */
export const resourcesQuery = (find: ResourceFind) =>
  infiniteQueryOptions({
    queryKey: ['resources', find],
    placeholderData: keepPreviousData,
    ...paging('/v1/resources', {
      query: {
        page_size: 100,
        ...(find.type ? { type_key: [find.type] } : {}),
        ...(find.region ? { region_id: find.region } : {}),
        ...(find.health?.length ? { health_status: [...find.health] } : {}),
        ...(find.q ? { filter: find.q } : {}),
        ...(find.lifecycle ? { lifecycle_status: [find.lifecycle] } : {}),
        ...(find.drift ? { drift: find.drift as 'drifted' } : {}),
        ...(find.sort ? { sort: `${find.sort},resource_id` } : {}),
        ...(find.counted ? { count: 'capped' as const } : {}),
      },
    }),
  })

/** Resources with states and field managers: only the first 100, because the length of a URL is limited. */
export const targetsQuery = (ids: readonly string[]) =>
  queryOptions({
    queryKey: ['resources', 'of', ids],
    placeholderData: keepPreviousData,
    queryFn: reading('/v1/resources', {
      query: { ids: ids.slice(0, 100), page_size: 100, include: ['state', 'owners'] },
    }),
  })

export const resourceQuery = (resource_id: string) =>
  queryOptions({
    queryKey: ['resource', resource_id],
    queryFn: reading('/v1/resources/{resource_id}', { path: { resource_id } }),
  })

/** The versions of a resource with author and time, newest first. */
export const versionsQuery = (resource_id: string) =>
  infiniteQueryOptions({
    queryKey: ['resource', resource_id, 'versions'],
    ...paging('/v1/resources/{resource_id}/versions', { path: { resource_id }, query: { page_size: 50 } }),
  })

/** The resource as it was at a version, which never changes. */
export const versionQuery = (resource_id: string, at_version: number) =>
  queryOptions({
    queryKey: ['version', resource_id, at_version],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: reading('/v1/resources/{resource_id}', { path: { resource_id }, query: { at_version } }),
  })

/** The resource with the managers of its fields. */
export const managersQuery = (resource_id: string) =>
  queryOptions({
    queryKey: ['resource', resource_id, 'managers'],
    queryFn: reading('/v1/resources/{resource_id}', { path: { resource_id }, query: { include: ['owners'] } }),
  })

export const healthQuery = (resource_id: string) =>
  queryOptions({
    queryKey: ['health', resource_id],
    queryFn: reading('/v1/resources/{resource_id}/health', { path: { resource_id } }),
  })

/** Frames report the resource, but not those around it. */
const AROUND_MS = 15_000

export const relationsQuery = (resource_id: string) =>
  queryOptions({
    queryKey: ['relations', resource_id],
    refetchInterval: AROUND_MS,
    queryFn: reading('/v1/resources/{resource_id}/relationships', { path: { resource_id }, query: { page_size: 200 } }),
  })

/** The resources that depend on a resource, transitively, worst first. */
export const impactQuery = (resource_id: string) =>
  queryOptions({
    queryKey: ['impact', resource_id],
    refetchInterval: AROUND_MS,
    queryFn: reading('/v1/resources/{resource_id}/impact', { path: { resource_id }, query: { limit: 200 } }),
  })

export const resourceOperationsQuery = (resource_id: string) =>
  queryOptions({
    queryKey: ['resource-operations', resource_id],
    queryFn: reading('/v1/resources/{resource_id}/operations', { path: { resource_id }, query: { page_size: 50 } }),
  })

export const capabilitiesQuery = (resource_id: string) =>
  queryOptions({
    queryKey: ['resource-capabilities', resource_id],
    queryFn: reading('/v1/resources/{resource_id}/capabilities', { path: { resource_id } }),
  })

/** A field and an operator: the catalog's own filter language. */
const FILTER =
  /(^|[\s(-])(resource_id|type_key|name|display_name|owner|parent_id|lifecycle_status|health_status|layer_kind|drift|provides|(created|updated)_(at|by)|version|(scope|labels|desired_state|observed_state)\.[^\s=<>:!]+)\s*(=|!=|<|>|:)/

/** Whether a text is words to search for rather than a filter. */
export const isWords = (q: string): boolean => q !== '' && !FILTER.test(q)

/** Resources that contain all the words, best first. */
export const searchQuery = ({ q = '', type, region, health }: ResourceFind, limit = 100) =>
  queryOptions({
    queryKey: ['resources', 'search', { q, type, region, health }, limit],
    queryFn: reading('/v1/search', {
      query: {
        q: q.slice(0, 200),
        limit,
        ...(type ? { type_key: [type] } : {}),
        ...(region ? { region_id: region } : {}),
        ...(health?.length ? { health_status: [...health] } : {}),
      },
    }),
  })
