import Type, { type Static } from 'typebox'
import { FreshnessQuery, many, PageQuery, pageOf, ReadAsOf } from '../catalog/common.ts'
import { Health, manyHealths, ResourceItem, ResourceListQuery, Selection } from '../catalog/resources.ts'
import { ArrayOf, Closed, text } from '../shapes.ts'
import { GraphEdge } from './graphs.ts'

const { parent_id, owned_by, lifecycle_status, drift, ids, stale_since, count } = ResourceListQuery.properties
const asListed = { parent_id, owned_by, lifecycle_status, drift, ids, stale_since, count }

/** Without `at`: the counts of places are current. */
export const TopologyQuery = Closed({
  ...PageQuery,
  region_id: Type.Optional(Type.String({ maxLength: 128 })),
  datacenter_id: Type.Optional(Type.String({ maxLength: 128 })),
  layer_id: Type.Optional(Type.String({ maxLength: 128 })),
  layer_kind: Type.Optional(Type.String({ maxLength: 32 })),
  health_status: manyHealths,
  label: many('`key` or `key=value`; all must hold.'),
  include_retired: Type.Optional(Type.Boolean()),
  filter: Type.Optional(Type.String({ maxLength: 2048 })),
  sort: Type.Optional(Type.String({ maxLength: 200 })),
  ...asListed,
  ...Selection,
  ...FreshnessQuery,
})

const Counts = Type.Record(Type.String(), Type.Integer())
export const PlaceCounts = Type.Object({ resources: Type.Integer(), by_health: Counts, by_lifecycle: Counts })
export const TopologyList = pageOf(Type.Object({ ...ResourceItem.properties, counts: PlaceCounts }))

export const TopologyGraphQuery = Closed({
  region_id: Type.Optional(Type.String({ maxLength: 128, description: 'Only this region and its contents.' })),
  max_nodes: Type.Optional(Type.Integer({ minimum: 1, maximum: 5000, default: 500 })),
  ...FreshnessQuery,
})
export type TopologyGraphQuery = Static<typeof TopologyGraphQuery>

/** All places from the regions down, outer ones first; `truncated` if there are more than max_nodes. */
export const TopologyGraph = Type.Object({
  nodes: ArrayOf({
    resource_id: text('eu1'),
    type_key: text('topology.region'),
    name: text('eu1'),
    lifecycle_status: text('active'),
    health_status: Health,
    counts: PlaceCounts,
  }),
  edges: Type.Array(GraphEdge),
  truncated: Type.Object({ nodes: Type.Boolean(), edges: Type.Boolean() }),
  as_of: ReadAsOf,
})
export type TopologyGraph = Static<typeof TopologyGraph>
