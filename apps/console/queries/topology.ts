import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { api, read } from '../api/client.ts'
import { PAGED, pageOf } from './pages.ts'

/** Reads of places, and of capabilities with their providers. The key's first word is the noun; live frames find the cached reply by it. */
export const LEVELS = ['regions', 'datacenters', 'layers', 'segments'] as const
export type PlaceLevel = (typeof LEVELS)[number]
export type Within = { region_id?: string; datacenter_id?: string; layer_id?: string }

/** Places of one level below a place, with the counts of their resources. */
export const placesQuery = (level: PlaceLevel, within: Within) =>
  infiniteQueryOptions({
    queryKey: ['places', level, within],
    ...PAGED,
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET(`/v1/topology/${level}`, {
          params: { query: { page_size: 100, ...within, ...pageOf(pageParam) } },
          signal,
        }),
      ),
  })

/** Unmet needs, with the resources that have them. */
export const gapsQuery = () =>
  infiniteQueryOptions({
    queryKey: ['gaps'],
    ...PAGED,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/graphs/capabilities', {
          params: { query: { unsatisfied_only: true, page_size: 100, ...pageOf(pageParam) } },
          signal,
        }),
      ),
  })

export const definitionsQuery = () =>
  queryOptions({
    queryKey: ['definitions'],
    queryFn: ({ signal }) =>
      read(api.GET('/v1/capabilities/definitions', { params: { query: { page_size: 500 } }, signal })),
  })

export const providersQuery = (capability_key: string) =>
  infiniteQueryOptions({
    queryKey: ['providers', capability_key],
    ...PAGED,
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/capabilities/providers', {
          params: { query: { capability_key, page_size: 100, ...pageOf(pageParam) } },
          signal,
        }),
      ),
  })
