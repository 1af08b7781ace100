import Type, { type Static } from 'typebox'
import { Closed, text } from '../shapes.ts'
import { nullable } from './common.ts'
import { Health } from './resources.ts'

export const AffectedQuery = Closed(
  { resource_ids: Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { maxItems: 5000 }) },
  { examples: [{ resource_ids: ['eu1-db-01'] }] },
)
export type AffectedQuery = Static<typeof AffectedQuery>

/** All resources that depend on the given ones together, transitively, in groups of one type and health. */
export const Affected = Type.Object({
  total: Type.Integer({
    description: 'Resources that would be affected if the targets failed, excluding the targets.',
  }),
  at_least: Type.Boolean({ description: 'The traversal stopped at its limit: counts are lower bounds.' }),
  unhealthy: Type.Integer({ description: 'How many of them would become unhealthy; the others would be degraded.' }),
  groups: Type.Array(
    Type.Object({
      type_key: text('fleet.service'),
      health_status: Health,
      count: Type.Integer(),
      unhealthy: Type.Integer(),
      nearest: Type.Array(Type.Object({ resource_id: text('eu1-checkout'), name: text('checkout') }), {
        description: 'The ones nearest to the targets.',
      }),
    }),
    { description: 'The largest group first, at most 50.' },
  ),
  watermark: text('1042', { description: 'The last event of the catalog that was counted.' }),
})
export type Affected = Static<typeof Affected>

export const AffectedReply = Type.Object({
  /** Null: this deployment has disabled the graph in memory. */
  affected: nullable(Affected),
})
