import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { paging, reading } from '../api/read.ts'

/** Reads of places, and of capabilities with their providers. The key's first word is the noun; live frames find the cached reply by it. */
export const LEVELS = ['regions', 'datacenters', 'layers', 'segments'] as const
export type PlaceLevel = (typeof LEVELS)[number]
export type Within = { region_id?: string; datacenter_id?: string; layer_id?: string }

/** Places of one level below a place, with the counts of their resources. */
export const placesQuery = (level: PlaceLevel, within: Within) =>
  infiniteQueryOptions({
    queryKey: ['places', level, within],
    placeholderData: keepPreviousData,
    ...paging(`/v1/topology/${level}`, { query: { page_size: 100, ...within } }),
  })

/** All places from the regions down, of one region or of all; only the first if there are very many. */
export const placeGraphQuery = (region_id: string | undefined) =>
  queryOptions({
    queryKey: ['places', 'graph', region_id ?? ''],
    placeholderData: keepPreviousData,
    queryFn: reading('/v1/topology/graph', { query: { max_nodes: 500, ...(region_id ? { region_id } : {}) } }),
  })

/** Unmet needs, with the resources that have them. */
export const gapsQuery = () =>
  infiniteQueryOptions({
    queryKey: ['gaps'],
    ...paging('/v1/graphs/capabilities', { query: { unsatisfied_only: true, page_size: 100 } }),
  })

export const definitionsQuery = () =>
  queryOptions({
    queryKey: ['definitions'],
    queryFn: reading('/v1/capabilities/definitions', { query: { page_size: 500 } }),
  })

export const providersQuery = (capability_key: string) =>
  infiniteQueryOptions({
    queryKey: ['providers', capability_key],
    placeholderData: keepPreviousData,
    ...paging('/v1/capabilities/providers', { query: { capability_key, page_size: 100 } }),
  })
