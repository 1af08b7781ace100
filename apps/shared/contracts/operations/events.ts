import Type, { type Static } from 'typebox'
import { Closed, text } from '../shapes.ts'
import { Nullable } from './common.ts'

/** The live stream, and information about the caller. Frames of the stream: contracts/client/frames.ts. */
export const EventsQuery = Closed({
  topics: text('me,inbox,operations', {
    minLength: 1,
    maxLength: 8000,
    description:
      'Comma separated, at most 50: me, inbox, operations, operation:{id}, log:{operation_id}/{node_id}/{attempt}, resources, resource:{id}.',
  }),
})
export const EventsHeaders = Type.Object({ 'last-event-id': Type.Optional(Type.String({ maxLength: 8000 })) })

export const Me = Type.Object({
  user_id: text('0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
  username: text('olga'),
  roles: Type.Array(Type.String()),
  permissions: Type.Array(Type.String()),
  groups: Type.Array(Type.String()),
  counts: Type.Object({
    gates_mine: Type.Integer(),
    gates_all: Type.Integer(),
    patches_mine: Type.Integer(),
    failures_mine: Type.Integer(),
  }),
  tickets: Nullable(
    Type.Object(
      { url: text('https://tickets.example/{ticket}'), pattern: text('[A-Z]{2,10}-[0-9]{1,9}') },
      { description: 'Where a ticket leads that matches the pattern as a whole.' },
    ),
  ),
  version: text('1.0.0'),
  degraded: Type.Array(Type.String()),
})
export type Me = Static<typeof Me>
