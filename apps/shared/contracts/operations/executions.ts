import Type, { type Static } from 'typebox'
import { text } from '../text.ts'
import { Json, NodeId, NullableText, OperationId } from './common.ts'

/** What agents outside say of the work that was handed to them (operations.md 9.1). */
const closed = { additionalProperties: false } as const

const Line = Type.Object(
  {
    seq: Type.Integer({ minimum: 1, maximum: 2_147_483_647 }),
    time: Type.String({ format: 'date-time' }),
    stream: Type.Enum(['stdout', 'stderr', 'log']),
    level: Type.Enum(['debug', 'info', 'warn', 'error']),
    text: Type.String({ maxLength: 16_384 }),
  },
  closed,
)

export const ExecutionResult = Type.Object(
  {
    result_id: text('0195f0c2-0000-7000-8000-00000000000b', {
      format: 'uuid',
      description: 'The same in every repeat.',
    }),
    operation_id: OperationId,
    node_id: NodeId,
    attempt: Type.Integer({ minimum: 1 }),
    generation: Type.Integer({ minimum: 1 }),
    fence: Type.Integer({ minimum: 0 }),
    sequence: Type.Integer({ minimum: 1, description: 'Grows by one with each message of an attempt.' }),
    phase: Type.Enum(['started', 'heartbeat', 'progress', 'succeeded', 'failed']),
    progress: Type.Optional(Json),
    outputs: Type.Optional(Json),
    error: Type.Optional(
      Type.Object(
        {
          class: text('remote_error', { pattern: '^[a-z_]{1,40}$' }),
          message: text('The device answers no.', { minLength: 1, maxLength: 1000 }),
          retryable: Type.Optional(Type.Boolean()),
        },
        closed,
      ),
    ),
    lines: Type.Optional(Type.Array(Line, { maxItems: 1000, description: 'Log lines, numbered densely per attempt.' })),
  },
  {
    ...closed,
    examples: [
      {
        result_id: '0195f0c2-0000-7000-8000-00000000000b',
        operation_id: '0195f0c2-0000-7000-8000-000000000001',
        node_id: 'drain.eu1-web-01',
        attempt: 1,
        generation: 1,
        fence: 7,
        sequence: 1,
        phase: 'started',
      },
    ],
  },
)
export type ExecutionResult = Static<typeof ExecutionResult>

export const ExecutionReply = Type.Object({
  accepted: Type.Boolean(),
  duplicate: Type.Boolean(),
  node_state: text('running'),
  cancel_requested: Type.Boolean({
    description: 'Stop, and say failed with class cancelled, or what really happened.',
  }),
  next_before: NullableText,
})
export type ExecutionReply = Static<typeof ExecutionReply>
