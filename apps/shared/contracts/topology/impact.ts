import Type, { type Static } from 'typebox'
import { FreshnessQuery, nullable, ReadAsOf } from '../catalog/common.ts'
import { Health } from '../catalog/resources.ts'
import { Closed, OptionalInteger, text } from '../shapes.ts'

export const ASSUMPTIONS = ['unhealthy', 'gone', 'maintenance'] as const
export const ImpactQuery = Closed({
  assume: Type.Optional(
    Type.Enum([...ASSUMPTIONS], {
      default: 'unhealthy',
      description:
        'What becomes of the resource. gone: as unhealthy, and `without`. maintenance: it passes on no health, so no item; only `without`.',
    }),
  ),
  max_distance: OptionalInteger({
    minimum: 1,
    maximum: 64,
    default: 64,
    description: 'The maximum number of steps from the resource.',
  }),
  limit: OptionalInteger({
    minimum: 1,
    maximum: 1000,
    default: 100,
    description: 'The maximum number of items; counts include all.',
  }),
  ...FreshnessQuery,
})
export type ImpactQuery = Static<typeof ImpactQuery>

const Effect = Type.Enum(['unhealthy', 'degraded'], {
  description: 'The health that the resource would roll up to if the given one failed and all others were healthy.',
})
export type Effect = Static<typeof Effect>

export const ImpactItem = Type.Object({
  resource_id: text('eu1-checkout'),
  type_key: text('fleet.service'),
  name: text('checkout'),
  lifecycle_status: text('active'),
  health_status: Health,
  effect: Effect,
  distance: Type.Integer({ minimum: 1, description: 'Steps from the resource.' }),
  path: Type.Array(
    Type.Object({
      relationship_type: text('depends_on'),
      resource_id: nullable(Type.String({ description: 'Null: a resource that you may not see.' })),
    }),
    { description: 'A shortest way from the resource to this one, which comes last.' },
  ),
})
export type ImpactItem = Static<typeof ImpactItem>

const Numbers = Type.Record(Type.String(), Type.Integer())

const Without = Type.Object({
  needs: Type.Array(
    Type.Object({
      resource_id: text('eu1-checkout'),
      name: text('checkout'),
      requirement_key: text('database'),
      capability_key: text('sql.database'),
      needed: Type.Integer({ description: 'How many providers the requirement asks for.' }),
      left: Type.Integer({
        description:
          'Other resources, of those that you may see, that meet it or could, with an available provider. Each need is judged alone: several may count the same free capacity.',
      }),
    }),
    { description: 'Requirements that the resource meets, unmet ones first.' },
  ),
  unmet: Type.Integer({ description: 'Needs with fewer providers left than needed.' }),
  hidden: Type.Integer({ description: 'Resources that use its capabilities and that you may not see.' }),
  cut: Type.Boolean({ description: 'More than 1,000 resources use its capabilities; the others are left out.' }),
  prevent_retiring: Type.Integer({ description: 'Resources whose relationships refuse its retirement.' }),
})
export type Without = Static<typeof Without>

/** Everything that depends on a resource, transitively (catalog.md 7.2). */
export const Impact = Type.Object({
  resource_id: text('eu1-db-01'),
  items: Type.Array(ImpactItem, { description: 'By effect (worst first), then distance, then id.' }),
  counts: Type.Object({
    total: Type.Integer({ description: 'All affected resources, including hidden ones.' }),
    hidden: Type.Integer({ description: 'Affected resources that you may not see.' }),
    by_effect: Type.Object({ unhealthy: Type.Integer(), degraded: Type.Integer() }),
    by_type: Numbers,
    by_health: Numbers,
  }),
  without: nullable(Without),
  truncated: Type.Object({
    items: Type.Boolean({ description: 'There are more items than `limit`.' }),
    visited: Type.Boolean({
      description: 'The traversal stopped at its limit or at max_distance: counts are lower bounds.',
    }),
  }),
  as_of: ReadAsOf,
})
export type Impact = Static<typeof Impact>
