import Type, { type Static } from 'typebox'
import { nullable, PageQuery, pageOf, Time, Uuid } from '../catalog/common.ts'
import { Closed, text } from '../shapes.ts'

const at = (description: string) => Type.String({ format: 'date-time', maxLength: 40, description })

export const DifferenceQuery = Closed({
  ...PageQuery,
  from: at('The earlier time (RFC 3339).'),
  to: Type.Optional(at('The later time; now by default. A page_token keeps the time of its first page.')),
})
export type DifferenceQuery = Static<typeof DifferenceQuery>

export const DifferenceItem = Type.Object({
  resource_id: text('eu1-web-01'),
  type_key: text('fleet.host'),
  name: text('eu1-web-01'),
  kind: Type.Enum(['added', 'removed', 'changed', 'moved', 'moved_in', 'moved_out'], {
    description:
      'moved: to another parent within the subtree; moved_in, moved_out: across its boundary, alone or with an ancestor.',
  }),
  version_from: nullable(Type.Integer()),
  version_to: nullable(Type.Integer()),
  changes: Type.Array(
    Type.Object({
      path: text('/desired_state/release'),
      before: Type.Optional(Type.Unknown({ description: 'Left out: there was no value.' })),
      after: Type.Optional(Type.Unknown({ description: 'Left out: there is no value.' })),
    }),
    { description: 'At most 100 members that differ; more_changes counts the rest.' },
  ),
  more_changes: Type.Integer(),
  relationships: Type.Array(
    Type.Object({
      op: Type.Enum(['added', 'removed', 'updated']),
      type_key: text('depends_on'),
      to_id: nullable(Type.String({ description: 'Null: a resource that you may not see.' })),
    }),
    {
      description:
        'Relationships from this resource that are open at only one of the two times, or have other properties; at most 100.',
    },
  ),
  actors: Type.Array(Type.String(), { description: 'Who changed it between the two times.' }),
  operation_ids: Type.Array(Uuid, { description: 'By which operations; at most 20.' }),
  last_change_at: nullable(Time),
})
export type DifferenceItem = Static<typeof DifferenceItem>

/** The differences in a subtree between two times (catalog.md 7.2). */
export const Difference = Type.Object({ from: Time, to: Time, ...pageOf(DifferenceItem).properties })
export type Difference = Static<typeof Difference>
