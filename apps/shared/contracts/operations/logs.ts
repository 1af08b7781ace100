import Type, { type Static } from 'typebox'
import { Closed } from '../closed.ts'
import { text } from '../text.ts'
import { Nullable } from './common.ts'

/** Log of one attempt: dense line numbers, read forwards, backwards, from the end, or searched. */
export const LogQuery = Closed({
  attempt: Type.Optional(Type.Integer({ minimum: 1, description: 'The latest when left out.' })),
  role: Type.Optional(
    Type.Enum(['run', 'undo'], { description: 'The attempt of the node (default) or of its compensation.' }),
  ),
  stream: Type.Optional(Type.String({ maxLength: 50 })),
  level: Type.Optional(Type.String({ maxLength: 20 })),
  after_seq: Type.Optional(Type.Integer({ minimum: 0 })),
  before_seq: Type.Optional(Type.Integer({ minimum: 1 })),
  tail: Type.Optional(Type.Boolean()),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 2000, default: 500 })),
  q: Type.Optional(Type.String({ minLength: 2, maxLength: 200, description: 'Plain text, any case.' })),
  match_before_seq: Type.Optional(
    Type.Integer({ minimum: 1, description: 'With q: at most 200 matches before this line, the newest first.' }),
  ),
  wait_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 5000, default: 0 })),
})
export type LogQuery = Static<typeof LogQuery>

export const LogLineView = Type.Object({
  seq: Type.Integer(),
  time: text('2026-01-31T12:00:00.000000Z'),
  stream: text('stdout'),
  level: text('info'),
  text: text('drained: 0 connections left'),
  cut: Type.Optional(Type.Boolean()),
})
export type LogLineView = Static<typeof LogLineView>

export const LogPage = Type.Object({
  attempt: Type.Integer(),
  lines: Type.Array(LogLineView),
  first_seq: Nullable(Type.Integer()),
  last_seq: Nullable(Type.Integer()),
  total_lines: Type.Integer(),
  total_bytes: Type.Integer(),
  complete: Type.Boolean(),
  storage: Type.Enum(['hot', 'archive']),
  matches: Type.Optional(Type.Object({ count: Type.Integer(), seqs: Type.Array(Type.Integer()) })),
})
export type LogPage = Static<typeof LogPage>

export const RawLogQuery = Closed({
  attempt: Type.Optional(Type.Integer({ minimum: 1 })),
  role: Type.Optional(Type.Enum(['run', 'undo'])),
})
