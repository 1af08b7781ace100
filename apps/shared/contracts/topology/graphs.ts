import Type, { type Static } from 'typebox'
import { FreshnessQuery, many, nullable, ReadAsOf, said } from '../catalog/common.ts'
import { Health } from '../catalog/resources.ts'
import { ArrayOf, Closed, OptionalInteger, OptionalText, text } from '../shapes.ts'

export const GraphQuery = Closed({
  root_id: many('1 to 20 resource ids to start from.', 'eu1-web-01'),
  filter: OptionalText({ maxLength: 2048, description: 'Instead of root_id: selects at most 500 roots.' }),
  depth: Type.Optional(Type.Integer({ minimum: 0, maximum: 10, default: 2 })),
  direction: Type.Optional(Type.Enum(['out', 'in', 'both'], { default: 'both' })),
  relationship_types: many('Only these relationships; all by default.'),
  node_types: many('Other types are neither shown nor passed through; derived types count.'),
  max_nodes: Type.Optional(Type.Integer({ minimum: 1, maximum: 5000, default: 500 })),
  max_edges: Type.Optional(Type.Integer({ minimum: 1, maximum: 20_000, default: 2000 })),
  fanout: OptionalInteger({
    minimum: 1,
    maximum: 5000,
    default: 200,
    description: 'The maximum number of neighbors of one node.',
  }),
  at: OptionalText({
    format: 'date-time',
    maxLength: 40,
    description: 'The graph as it was at this time (RFC 3339); health from the observations of 30 days.',
  }),
  include: many('`health`: the roll-up of each node, with all that it takes health from.', undefined, said(['health'])),
  ...FreshnessQuery,
  page_token: OptionalText({
    maxLength: 4000,
    description: 'From an entry of a frontier: its next neighbors. All other parameters must stay the same.',
  }),
  format: Type.Optional(Type.Enum(['json', 'graphml', 'dot'], { default: 'json' })),
})
export type GraphQuery = Static<typeof GraphQuery>

export const ResourceGraphNode = Type.Object({
  resource_id: text('eu1-web-01'),
  type_key: text('fleet.host'),
  name: text('eu1-web-01'),
  lifecycle_status: text('active'),
  health_status: Health,
  rollup_status: Type.Optional(Health),
  depth: Type.Integer(),
  degree: Type.Integer({ description: 'Open edges of the allowed types to resources that the caller may see.' }),
})
export type GraphNode = Static<typeof ResourceGraphNode>

export const GraphEdge = Type.Object({
  relationship_id: text('rel_000000000000a'),
  type_key: text('fleet.host'),
  from: text('eu1-web-01'),
  to: text('eu1-a-web'),
})

/** A truncated graph says so: `truncated` names the bound, `frontier` the place. */
export const Graph = Type.Object({
  roots: Type.Array(Type.String()),
  nodes: Type.Array(ResourceGraphNode),
  edges: Type.Array(GraphEdge),
  truncated: Type.Object({
    nodes: Type.Boolean(),
    edges: Type.Boolean(),
    fanout: Type.Boolean(),
    depth: Type.Boolean(),
  }),
  frontier: ArrayOf({
    resource_id: text('eu1-web-01'),
    direction: Type.Enum(['out', 'in', 'both']),
    omitted: Type.Integer({ description: 'Neighbors that are not shown.' }),
    page_token: nullable(Type.String()),
  }),
  frontier_omitted: Type.Integer(),
  rollup: Type.Optional(
    Type.Object(
      { visited: Type.Integer(), truncated: Type.Boolean() },
      { description: 'With include=health: how many resources were visited, and whether the visit was cut short.' },
    ),
  ),
  as_of: ReadAsOf,
})
export type Graph = Static<typeof Graph>
