import Type, { type Static } from 'typebox'
import { Provider, Rejection, Requirement } from '../catalog/capabilities.ts'
import { FreshnessQuery, many, nullable, PageQuery, ReadAsOf } from '../catalog/common.ts'
import { Health, Scope } from '../catalog/resources.ts'
import { ArrayOf, Closed, OptionalText, text } from '../shapes.ts'
import { GraphQuery } from './graphs.ts'

/** Capabilities as graphs: resources with their offers and needs, and definitions with counts (catalog.md 7.2). */
const Narrowing = {
  capability_key: Type.Optional(Type.String({ maxLength: 64, description: 'Only this capability.' })),
  region_id: OptionalText({
    maxLength: 128,
    description: 'Only resources of this region; their providers may be elsewhere.',
  }),
  root_id: many('Only these resources, at most 20.', 'eu1-web-01'),
  unsatisfied_only: Type.Optional(Type.Boolean({ description: 'Only unmet needs.' })),
  allow_degraded: Type.Optional(Type.Boolean({ description: 'Degraded providers also meet requirements.' })),
  format: GraphQuery.properties.format,
}
export const CapabilityGraphQuery = Closed({ ...Narrowing, ...FreshnessQuery })
export type CapabilityGraphQuery = Static<typeof CapabilityGraphQuery>
export const NeedsGraphQuery = Closed({ ...Narrowing, ...PageQuery, ...FreshnessQuery })
export type NeedsGraphQuery = Static<typeof NeedsGraphQuery>

const State = Type.Enum(['bound', 'satisfiable', 'unsatisfied'])

const ResourceNode = Type.Object({
  id: text('resource:eu1-web-01'),
  kind: Type.Literal('resource'),
  resource_id: text('eu1-web-01'),
  type_key: text('fleet.host'),
  name: text('eu1-web-01'),
  lifecycle_status: text('active'),
  health_status: Health,
  scope: Scope,
})
const CapabilityNode = Type.Object({
  id: text('capability:compute.slots'),
  kind: Type.Literal('capability'),
  capability_key: text('compute.slots'),
  title: text('Room for machines'),
})
const RequirementNode = Type.Object({
  id: text('requirement:eu1-vm-01/slot'),
  kind: Type.Literal('requirement'),
  resource_id: text('eu1-vm-01'),
  requirement: Requirement,
  state: State,
  why_not: Type.Array(Rejection, { description: 'The first 20 that do not match.' }),
  rejected_count: Type.Record(Type.String(), Type.Integer()),
})
const NeedsEdge = Type.Object({
  type: Type.Enum(['provides', 'requires', 'satisfied_by']),
  from: text('resource:eu1-web-01'),
  to: text('capability:compute.slots'),
  provider_id: Type.Optional(Provider.properties.provider_id),
  status: Type.Optional(Provider.properties.status),
  free: Type.Optional(Provider.properties.free),
  bound: Type.Optional(Type.Boolean({ description: 'satisfied_by: claimed already; false: would do.' })),
})

/** One page of resources with their needs and offers; `next_page_token` continues with the next resources. */
export const NeedsGraph = Type.Object({
  nodes: Type.Array(Type.Union([ResourceNode, CapabilityNode, RequirementNode])),
  edges: Type.Array(NeedsEdge),
  next_page_token: nullable(Type.String()),
  prev_page_token: nullable(Type.String()),
  as_of: ReadAsOf,
})
export type NeedsGraph = Static<typeof NeedsGraph>

const Counts = Type.Record(Type.String(), Type.Integer())
/** Requirements by state. */
export const RequirementCounts = Type.Object({
  total: Type.Integer(),
  bound: Type.Integer(),
  satisfiable: Type.Integer(),
  unsatisfied: Type.Integer(),
})

export const CapabilityGraph = Type.Object({
  nodes: Type.Array(
    Type.Union([
      Type.Object({
        ...CapabilityNode.properties,
        providers: Type.Object({ total: Type.Integer(), by_status: Counts }),
        requirements: RequirementCounts,
      }),
      Type.Object({
        id: text('type:fleet.host'),
        kind: Type.Literal('type'),
        type_key: text('fleet.host'),
        title: text('Host'),
      }),
    ]),
  ),
  edges: ArrayOf({
    type: Type.Enum(['provides', 'requires']),
    from: text('type:fleet.host'),
    to: text('capability:compute.slots'),
    providers: Type.Optional(Type.Integer({ description: 'provides: how many there are.' })),
    requirements: Type.Optional(RequirementCounts),
  }),
  as_of: ReadAsOf,
})
export type CapabilityGraph = Static<typeof CapabilityGraph>
