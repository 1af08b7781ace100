import Type, { type Static } from 'typebox'
import { text } from '../text.ts'
import { nullable } from './common.ts'

/** The read models of one process and how far each is (catalog.md 7.5). */
export const Projections = Type.Object({
  items: Type.Array(
    Type.Object({
      name: text('graph'),
      state: Type.Enum(['live', 'loading', 'off', 'held'], {
        description: 'held: events of some aggregates wait for a person.',
      }),
      pub_seq: nullable(Type.String({ description: 'The last event of the own log that it holds.' })),
      lag_ms: nullable(Type.Integer()),
      figures: Type.Record(Type.String(), Type.Number()),
    }),
  ),
  last_pub_seq: text('1042'),
})
export type Projections = Static<typeof Projections>
