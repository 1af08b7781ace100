import Type, { type Static } from 'typebox'
import { text } from '../shapes.ts'
import { nullable, Time } from './common.ts'

export const PROJECTIONS = ['graph', 'operations_index'] as const

const name = text('graph', { description: PROJECTIONS.join(' or ') })
export const ProjectionParams = Type.Object({ name })

const Proof = Type.Object({
  kind: Type.Enum(['verify', 'rebuild']),
  at: Time,
  result: Type.Enum(['equal', 'different', 'failed'], {
    description: 'different: after a rebuild the new projection has replaced it. failed: no change was made.',
  }),
  pub_seq: nullable(Type.String({ description: "The position in the app's own log at which both were compared." })),
  compared: Type.Integer({ description: 'Resources of the graph, operations of the index.' }),
  differ: Type.Integer(),
  skipped: Type.Integer({ description: 'Held, or no longer complete in the log: left unchanged.' }),
  different: Type.Array(Type.String(), { description: 'The first ids that differ.' }),
  digests: Type.Object({ live: Type.String(), truth: Type.String() }),
})
export type Proof = Static<typeof Proof>

const Projection = Type.Object({
  name,
  state: Type.Enum(['live', 'loading', 'off', 'held', 'paused'], {
    description: 'held: events of some aggregates wait for an administrator.',
  }),
  pub_seq: nullable(
    Type.String({
      description:
        'The last event that it includes, of the log that feeds it: for operations_index that of the operations app.',
    }),
  ),
  lag_ms: nullable(Type.Integer()),
  figures: Type.Record(Type.String(), Type.Number()),
  running: nullable(Type.Enum(['verify', 'rebuild'])),
  proof: nullable(Proof),
})
export type Projection = Static<typeof Projection>

export const ProjectionPaused = Type.Object({ name, state: Type.Enum(['live', 'paused']) })
export const ProjectionProving = Type.Object({ name, running: Type.Enum(['verify', 'rebuild']) })

/** The read models of one process and how far each has progressed (catalog.md 7.5). */
export const Projections = Type.Object({ items: Type.Array(Projection), last_pub_seq: text('1042') })
export type Projections = Static<typeof Projections>
