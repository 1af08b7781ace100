import Type, { type Static, type TSchema } from 'typebox'
import { Closed, OptionalInteger, text, VISIBLE } from '../shapes.ts'
import { GATE_STATUSES, NODE_STATES, OPERATION_STATUSES } from './graph.ts'

/** Pieces that the replies of the operations API share. Static types of the same names serve console and command line. */
export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
export const NullableText = Nullable(Type.String())
export const LogLevel = Type.Enum(['debug', 'info', 'warn', 'error'])
export const Time = text('2026-01-31T12:00:00.000000Z', { description: 'RFC 3339, UTC, microseconds.' })
export const Json = Type.Record(Type.String(), Type.Unknown())

export const OperationId = text('0195f0c2-0000-7000-8000-000000000001', {
  format: 'uuid',
  description: 'The operation; also its workflow id.',
})
export const NodeId = text('drain.eu1-web-01', { minLength: 1, maxLength: 96, pattern: '^[a-z0-9][a-z0-9._:-]{0,95}$' })
export const GateId = text('go', { minLength: 1, maxLength: 128, pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$' })
export const Digest = text(`sha256:${'0'.repeat(64)}`, { pattern: '^sha256:[0-9a-f]{64}$' })
/** A person's words that the history keeps; blanks and invisible characters alone are refused. */
export const WORDS = { minLength: 1, maxLength: 2000, pattern: VISIBLE } as const
export const Reason = text('Bring release 2.4.0 to these hosts', {
  ...WORDS,
  description: 'Why; kept in history and audit.',
})
export const Comment = text('The canary is healthy.', WORDS)

export const SHA256 = '^[0-9a-f]{64}$'
export const PLAIN = '^[^\\x00-\\x1f\\x7f]+$'
/** The program that an agent ran, by its own word. It becomes evidence (operations.md 6.3). */
export const EXECUTED = {
  tool: text('tofu', { maxLength: 100, pattern: PLAIN, description: 'The file name of the program.' }),
  tool_sha256: Type.Optional(
    text('3333333333333333333333333333333333333333333333333333333333333333', { pattern: SHA256 }),
  ),
  version: Type.Optional(text('1.11.4', { maxLength: 100, pattern: PLAIN, description: 'As the program states it.' })),
  exit: OptionalInteger({ minimum: 0, maximum: 255, description: 'Absent if the program was killed, or none acted.' }),
  content_sha256: Type.Optional(
    text('4444444444444444444444444444444444444444444444444444444444444444', {
      pattern: SHA256,
      description: 'The saved plan, or the set of objects, that was carried out.',
    }),
  ),
  commit: Type.Optional(text('3f2a1b4c5d6e7f8091a2b3c4d5e6f708192a3b4c', { pattern: '^[0-9a-f]{40,64}$' })),
}
/** As evidence states it, with the agent as the control plane knows it. */
export const Executed = Type.Object(
  { ...EXECUTED, agent: Type.Optional(text('machine:runner/eu1-runner-01')) },
  { additionalProperties: true },
)
export type Executed = Static<typeof Executed>

export const OperationParams = Type.Object({ operation_id: OperationId })
export const NodeParams = Type.Object({ operation_id: OperationId, node_id: NodeId })
export const GateParams = Type.Object({ operation_id: OperationId, gate_id: GateId })

export const OperationStatusSchema = Type.Enum([...OPERATION_STATUSES])
export const NodeStateSchema = Type.Enum([...NODE_STATES])
export const GateStatusSchema = Type.Enum([...GATE_STATUSES])

export const ActorSchema = Type.Object({
  kind: Type.Enum(['user', 'service', 'executor', 'engine', 'system']),
  id: text('go'),
  name: text('olga'),
  roles: Type.Optional(Type.Array(Type.String())),
  in_place_of: Type.Optional(
    Type.String({ description: 'For a vote by delegation: who delegated. The two count as one.' }),
  ),
})

export const AllowedActionSchema = Type.Object(
  {
    action: text('pause'),
    allowed: Type.Boolean(),
    reason_category: NullableText,
    reason_code: NullableText,
    reason: NullableText,
    available_at: NullableText,
  },
  {
    description:
      'The actions that the caller may take now, by the rules that also decide the command, with the reason for each that is not allowed.',
  },
)

export const BlockedOnSchema = Type.Object({
  kind: text('gate'),
  id: text('go'),
  href: Type.Optional(Type.String()),
  since: Type.Optional(Type.String()),
  until: Type.Optional(Type.String()),
  message: text('It waits for the gate go.'),
})

export const AsOf = Type.Object({
  time: Time,
  seq: text('1042', { description: 'Position in the log of this app, as text.' }),
})

/** A page of rows by keyset; no endpoint uses offsets. */
export const ListOf = <T extends TSchema>(item: T) =>
  Type.Object({ items: Type.Array(item), next_page_token: NullableText, as_of: AsOf })

export const PageQuery = {
  page_size: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 50 })),
  page_token: Type.Optional(
    Type.String({ maxLength: 2000, description: 'next_page_token of the previous page; keep all filters.' }),
  ),
}
export const DryRun = Type.Optional(
  Type.Boolean({ description: 'Check and show the effect; nothing is stored. Answers 200 or the real refusal.' }),
)
export const DryRunReply = Type.Object({
  dry_run: Type.Literal(true),
  effect: Json,
  allowed_actions: Type.Array(AllowedActionSchema),
})

/** The state of a command: `accepted` until its outcome is known. */
export const CommandView = Type.Object({
  command_id: text('0195f0c2-0000-7000-8000-000000000003'),
  kind: text('gate'),
  status: Type.Enum(['accepted', 'applied', 'refused', 'withdrawn']),
  code: NullableText,
  seq: Type.Integer(),
  accepted_at: Time,
  not_after: NullableText,
})
export type CommandView = Static<typeof CommandView>

export const CommandReply = Type.Object({
  command: CommandView,
  outcome: Nullable(
    Type.Object({ category: NullableText, code: NullableText, detail: NullableText }, { additionalProperties: true }),
  ),
})

export const MAX_BATCH = 20
export const Batch = Closed(
  {
    id: text('0195f0c2-0000-7000-8000-00000000000c', {
      format: 'uuid',
      description: 'The same in each vote of the batch.',
    }),
    size: Type.Integer({ minimum: 1, maximum: MAX_BATCH }),
  },
  { description: 'For a vote that is part of a bulk decision; the evidence says so.' },
)
export type Batch = Static<typeof Batch>

/** Why a gate or patch must be decided alone. */
const ALONE = ['kind', 'signature', 'policy', 'comment', 'risk'] as const
export type Alone = (typeof ALONE)[number]
const Why = Nullable(Type.Enum([...ALONE]))
export const AloneSchema = Type.Object(
  { approve: Why, reject: Why },
  { description: 'Why it cannot be decided in bulk; null if it can.' },
)

export const InRegion = Type.Optional(
  Type.String({ maxLength: 200, description: 'Only what has a target in this region.' }),
)
