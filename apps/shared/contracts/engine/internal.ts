import Type, { type Static } from 'typebox'
import { GateId, NullableText, OperationId, Reason, Time } from '../operations/common.ts'
import { Closed, OptionalText, text } from '../shapes.ts'
import { CheckResult, DriftSignal, NodeSignal } from './signals.ts'

/** Messages from control planes to running operations, and the log that they can read (operations.md 9.3). */
const base = {
  signal_id: Type.String({ format: 'uuid', description: 'Becomes the command id; repeat it unchanged in a retry.' }),
  reason: Type.Optional(Reason),
}
const NoBody = Type.Optional(Closed({}))

export const GateStanding = Closed({
  operation_id: OperationId,
  gate_ids: Type.Array(GateId, { minItems: 1, maxItems: 1000 }),
})

export const WorkflowSignal = Type.Union(
  [
    Closed({ ...base, type: Type.Literal('pause'), body: NoBody }),
    Closed({
      ...base,
      type: Type.Literal('resume'),
      body: Type.Optional(Closed({ acknowledge_drift: Type.Optional(Type.Boolean()) })),
    }),
    Closed({
      ...base,
      type: Type.Literal('cancel'),
      body: Type.Optional(Closed({ mode: Type.Optional(Type.Enum(['graceful', 'compensate', 'force'])) })),
    }),
    Closed({ ...base, type: Type.Literal('node_signal'), body: NodeSignal }),
    Closed({ ...base, type: Type.Literal('external_check_result'), body: CheckResult }),
    Closed({ ...base, type: Type.Literal('calendar_changed'), body: NoBody }),
    Closed({ ...base, type: Type.Literal('catalog_drift'), body: DriftSignal }),
  ],
  {
    examples: [
      { signal_id: '0192f0c0-0000-7000-8000-000000000001', type: 'pause', reason: 'Maintenance of the rack.' },
    ],
  },
)
export type WorkflowSignal = Static<typeof WorkflowSignal>

export const WorkflowSignalReply = Type.Object({
  command_id: text('0195f0c2-0000-7000-8000-000000000003'),
  status: text('accepted'),
  duplicate: Type.Boolean(),
})

export const LogQueryParams = Closed({
  after: OptionalText({ pattern: '^\\d{1,18}$', description: 'pub_seq of the last event that is known.' }),
  agg_type: Type.Optional(Type.String({ maxLength: 50 })),
  agg_id: Type.Optional(Type.String({ maxLength: 128 })),
  after_version: Type.Optional(Type.Integer({ minimum: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
})
export const LogMessages = Type.Object({
  items: Type.Array(
    Type.Object(
      {
        event_id: text('0195f0c2-0000-7000-8000-000000000005'),
        type: text('operation.changed'),
        schema_version: Type.Integer(),
        occurred_at: Time,
        pub_seq: NullableText,
        agg_type: text('operation'),
        agg_id: text('0195f0c2-0000-7000-8000-000000000001'),
        agg_version: Type.Integer(),
        request_id: NullableText,
      },
      { additionalProperties: true },
    ),
  ),
  last_pub_seq: text('1042'),
})
