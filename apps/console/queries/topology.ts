import { keepPreviousData } from '@tanstack/react-query'
import { pagesOf, queryOf } from '../api/read.ts'

/** Reads of places, and of capabilities with their providers. The key's first word is the noun; live frames find the cached reply by it. */
export const LEVELS = ['regions', 'datacenters', 'layers', 'segments'] as const
export type PlaceLevel = (typeof LEVELS)[number]
export type Within = { region_id?: string; datacenter_id?: string; layer_id?: string }

/** Places of one level below a place, with the counts of their resources. */
export const placesQuery = (level: PlaceLevel, within: Within) =>
  pagesOf(
    ['places', level, within],
    `/v1/topology/${level}`,
    { query: { page_size: 100, ...within } },
    { placeholderData: keepPreviousData },
  )

/** All places from the regions down, of one region or of all; only the first if there are very many. */
export const placeGraphQuery = (region_id: string | undefined) =>
  queryOf(
    ['places', 'graph', region_id ?? ''],
    '/v1/topology/graph',
    { query: { max_nodes: 500, ...(region_id ? { region_id } : {}) } },
    { placeholderData: keepPreviousData },
  )

/** A data center with everything in it. */
export const contentsQuery = (datacenter_id: string) =>
  queryOf(['places', 'contents', datacenter_id], '/v1/graphs/topology', {
    query: {
      ...{ root_id: [datacenter_id], relationship_types: ['contained_in'], direction: 'in', depth: 10 },
      ...{ max_nodes: 5000, max_edges: 5000, fanout: 5000 },
    },
  })

/** Unmet needs, with the resources that have them. */
export const gapsQuery = () =>
  pagesOf(['gaps'], '/v1/graphs/capabilities', { query: { unsatisfied_only: true, page_size: 100 } })

/** Who needs a capability and who provides it; only the first if there are very many. */
export const needsQuery = (capability_key: string) =>
  queryOf(['gaps', capability_key], '/v1/graphs/capabilities', { query: { capability_key, page_size: 500 } })

export const definitionsQuery = () =>
  queryOf(['definitions'], '/v1/capabilities/definitions', { query: { page_size: 500 } })

export const providersQuery = (capability_key: string) =>
  pagesOf(
    ['providers', capability_key],
    '/v1/capabilities/providers',
    { query: { capability_key, page_size: 100 } },
    { placeholderData: keepPreviousData },
  )
