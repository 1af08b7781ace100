import Type, { type Static } from 'typebox'
import { closed, FreshnessQuery, many, PageQuery, pageOf } from './common.ts'
import { ResourceItem, ResourceListQuery, Selection } from './resources.ts'

export const TopologyQuery = Type.Object(
  {
    ...PageQuery,
    region_id: Type.Optional(Type.String({ maxLength: 128 })),
    datacenter_id: Type.Optional(Type.String({ maxLength: 128 })),
    layer_id: Type.Optional(Type.String({ maxLength: 128 })),
    layer_kind: Type.Optional(Type.String({ maxLength: 32 })),
    health_status: many('Own health of the place.'),
    label: many('`key` or `key=value`; all must hold.'),
    include_retired: Type.Optional(Type.Boolean()),
    filter: Type.Optional(Type.String({ maxLength: 2048 })),
    sort: Type.Optional(Type.String({ maxLength: 200 })),
    count: ResourceListQuery.properties.count,
    ...Selection,
    ...FreshnessQuery,
  },
  closed,
)
export type TopologyQuery = Static<typeof TopologyQuery>

const Counts = Type.Record(Type.String(), Type.Integer())
export const TopologyList = pageOf(
  Type.Object({
    ...ResourceItem.properties,
    counts: Type.Object({ resources: Type.Integer(), by_health: Counts, by_lifecycle: Counts }),
  }),
)
