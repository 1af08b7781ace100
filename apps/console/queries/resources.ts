import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { pageOf, pagesOf, queryOf, reading } from '../api/read.ts'

/** Reads of resources and their parts. The key's first word is the noun; live frames find the cached reply by it. */
export const resourceTypeQuery = (type_key: string) =>
  queryOf(['resource-type', type_key], '/v1/resource-types/{type_key}', { path: { type_key } })

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
  queryOf(['resource-types'], '/v1/resource-types', { query: { page_size: 500 } }, { staleTime: 600_000 })

/** The filters of lists and of words alike. An empty text does not filter. */
const narrowing = (find: ResourceFind) => ({
  ...(find.type ? { type_key: [find.type] } : {}),
  ...(find.region ? { region_id: find.region } : {}),
  ...(find.health?.length ? { health_status: [...find.health] } : {}),
  ...(find.lifecycle ? { lifecycle_status: [find.lifecycle] } : {}),
  ...(find.drift ? { drift: find.drift as 'drifted' } : {}),
})
const matching = (find: ResourceFind) => ({
  ...narrowing(find),
  ...(find.q ? { filter: find.q } : {}),
  ...(find.sort ? { sort: `${find.sort},resource_id` } : {}),
})

/** Resources that match every given filter. */
export const resourcesQuery = (find: ResourceFind) =>
  pagesOf(
    ['resources', find],
    '/v1/resources',
    { query: { page_size: 100, ...matching(find), ...(find.counted ? { count: 'capped' as const } : {}) } },
    { placeholderData: keepPreviousData },
  )
export const resourcesPage = (find: ResourceFind) => pageOf('/v1/resources', matching(find))

/** How many resources one read names, because the length of a URL is limited. */
const NAMED = 100
/** All these resources, with states and field managers. */
export const targetsQuery = (ids: readonly string[]) =>
  queryOptions({
    queryKey: ['resources', 'of', ids],
    queryFn: async ({ signal }) => {
      const blocks = Array.from({ length: Math.ceil(ids.length / NAMED) }, (_, n) =>
        ids.slice(n * NAMED, (n + 1) * NAMED),
      )
      const items: Awaited<ReturnType<typeof readBlock>>['items'] = []
      for (const block of blocks) items.push(...(await readBlock(block, signal)).items)
      // A read of many pages is repeated less often: each page is one request.
      return { items, pages: blocks }
    },
    placeholderData: keepPreviousData,
  })
const readBlock = (ids: string[], signal: AbortSignal) =>
  reading('/v1/resources', { query: { ids, page_size: NAMED, include: ['state', 'owners'] } })({ signal })

export const resourceQuery = (resource_id: string) =>
  queryOf(['resource', resource_id], '/v1/resources/{resource_id}', { path: { resource_id } })

/** The versions of a resource with author and time, newest first. */
export const versionsQuery = (resource_id: string) =>
  pagesOf(['resource', resource_id, 'versions'], '/v1/resources/{resource_id}/versions', {
    path: { resource_id },
    query: { page_size: 50 },
  })

/** The resource as it was at a version, which never changes. */
export const versionQuery = (resource_id: string, at_version: number) =>
  queryOf(
    ['version', resource_id, at_version],
    '/v1/resources/{resource_id}',
    { path: { resource_id }, query: { at_version } },
    { staleTime: Number.POSITIVE_INFINITY },
  )

/** The resource with the managers of its fields. */
export const managersQuery = (resource_id: string) =>
  queryOf(['resource', resource_id, 'managers'], '/v1/resources/{resource_id}', {
    path: { resource_id },
    query: { include: ['owners'] },
  })

/** Frames report the resource, but not those around it. */
const AROUND_MS = 15_000

/** With the roll-up over its dependencies. */
export const healthQuery = (resource_id: string) =>
  queryOf(
    ['health', resource_id],
    '/v1/resources/{resource_id}/health',
    { path: { resource_id } },
    { refetchInterval: AROUND_MS },
  )

export const relationsQuery = (resource_id: string) =>
  queryOf(
    ['relations', resource_id],
    '/v1/resources/{resource_id}/relationships',
    { path: { resource_id }, query: { page_size: 200 } },
    { refetchInterval: AROUND_MS },
  )

export type Assumption = 'unhealthy' | 'gone' | 'maintenance'

/** The resources that depend on a resource, transitively, worst first, and the needs that it meets. */
export const impactQuery = (resource_id: string, assume: Assumption) =>
  queryOf(
    ['impact', resource_id, assume],
    '/v1/resources/{resource_id}/impact',
    { path: { resource_id }, query: { ...(assume !== 'unhealthy' && { assume }), limit: 200 } },
    { refetchInterval: AROUND_MS },
  )

export const resourceOperationsQuery = (resource_id: string) =>
  queryOf(['resource-operations', resource_id], '/v1/resources/{resource_id}/operations', {
    path: { resource_id },
    query: { page_size: 50 },
  })

export const capabilitiesQuery = (resource_id: string) =>
  queryOf(['resource-capabilities', resource_id], '/v1/resources/{resource_id}/capabilities', { path: { resource_id } })

/** Resources that contain all the words, best first. */
export const searchQuery = ({ q = '', ...find }: ResourceFind, limit = 100) =>
  queryOf(['resources', 'search', q, narrowing(find), limit], '/v1/search', {
    query: { q: q.slice(0, 200), limit, ...narrowing(find) },
  })
