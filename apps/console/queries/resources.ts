import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { api, read } from '../api/client.ts'
import { PAGED, pageOf } from './pages.ts'

/** Reads of resources and what belongs to one. The key's first word is the noun; live frames find the cached reply by it. */
export const resourceTypeQuery = (type_key: string) =>
  queryOptions({
    queryKey: ['resource-type', type_key],
    queryFn: ({ signal }) => read(api.GET('/v1/resource-types/{type_key}', { params: { path: { type_key } }, signal })),
  })

type ResourceFind = { type?: string; region?: string; health?: readonly string[]; q?: string; worst_first?: boolean }

/** Resources that match every given filter; an empty text filters none. */
export const resourcesQuery = (find: ResourceFind) =>
  infiniteQueryOptions({
    queryKey: ['resources', find],
    ...PAGED,
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/resources', {
          params: {
            query: {
              page_size: 100,
              ...(find.type ? { type_key: [find.type] } : {}),
              ...(find.region ? { region_id: find.region } : {}),
              ...(find.health?.length ? { health_status: [...find.health] } : {}),
              ...(find.q ? { filter: filterOf(find.q) } : {}),
              ...(find.worst_first ? { sort: '-health_status,resource_id' } : {}),
              ...pageOf(pageParam),
            },
          },
          signal,
        }),
      ),
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

/** A bare word searches names; anything with an operator is the catalog's own filter language. */
export const filterOf = (q: string): string => (/[=<>:]/.test(q) ? q : `name:${JSON.stringify(q)}`)
