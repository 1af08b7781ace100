import Type, { type Static, type TSchema } from 'typebox'
import { Closed, text } from '../shapes.ts'
import { ActorSchema, Nullable, NullableText } from './common.ts'
import { GateSummary } from './gates.ts'
import { LogLineView, Node } from './nodes.ts'
import { OperationSummary } from './operations.ts'
import { Patch } from './patches.ts'

/** The live stream, and information about the caller. How clients apply a frame: contracts/client/frames.ts. */
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

const FrameId = Type.Optional(
  Type.String({ description: 'For Last-Event-ID. Absent from `bye`, and from all but the last frame of a change.' }),
)
const frame = <Event extends string, Data extends TSchema>(event: Event, data: Data, description: string) =>
  Type.Object({ event: Type.Literal(event), id: FrameId, data }, { description })

const Hello = Type.Object({
  topics: Type.Array(Type.String()),
  refused: Type.Array(
    Type.Object({ topic: Type.String(), reason: Type.Enum(['malformed', 'not_found', 'permission_missing']) }),
  ),
  cursor: Type.String({ description: 'The position at which the stream begins.' }),
  server_time: Type.String({ format: 'date-time' }),
})

const ofOperation = OperationSummary.properties
const OperationChange = Type.Object({
  operation_id: ofOperation.operation_id,
  title: ofOperation.title,
  status: ofOperation.status,
  pause_reason: ofOperation.pause_reason,
  end_reason: ofOperation.end_reason,
  blocked_on: ofOperation.blocked_on,
  progress: ofOperation.progress,
  open_gates: ofOperation.open_gates,
  started_at: ofOperation.started_at,
  ended_at: ofOperation.ended_at,
  updated_at: ofOperation.updated_at,
  eta_at: ofOperation.eta_at,
  revision: ofOperation.revision,
  change_seq: ofOperation.change_seq,
})

const ofNode = Node.properties
const NodeChange = Type.Object({
  operation_id: ofNode.operation_id,
  node_id: ofNode.node_id,
  state: ofNode.state,
  generation: ofNode.generation,
  attempt: ofNode.attempt,
  error_class: ofNode.error_class,
  error_message: ofNode.error_message,
  ready_at: ofNode.ready_at,
  gated_at: ofNode.gated_at,
  started_at: ofNode.started_at,
  ended_at: ofNode.ended_at,
  exception: ofNode.exception,
  log_lines: ofNode.log_lines,
  change_seq: ofNode.change_seq,
})

const decided = { decided_at: NullableText, decided_by: Nullable(ActorSchema) }
const ofGate = GateSummary.properties
const GateChange = Type.Object({
  operation_id: ofGate.operation_id,
  gate_id: ofGate.gate_id,
  status: ofGate.status,
  round: ofGate.round,
  digest: ofGate.digest,
  waiting_since: ofGate.waiting_since,
  deadline_at: ofGate.deadline_at,
  consumed_at: ofGate.consumed_at,
  ...decided,
  change_seq: ofGate.change_seq,
})

const ofPatch = Patch.properties
const PatchChanged = Type.Object({
  operation_id: ofPatch.operation_id,
  patch_id: ofPatch.patch_id,
  status: ofPatch.status,
  status_reason: ofPatch.status_reason,
  base_revision: ofPatch.base_revision,
  applied_revision: ofPatch.applied_revision,
  ...decided,
  change_seq: ofPatch.change_seq,
})

const ResourceChange = Type.Object({
  resource_id: text('eu1-web-01'),
  version: Type.Integer(),
  type_key: text('fleet.host'),
  name: text('eu1-web-01'),
  lifecycle_status: text('active'),
  health_status: text('healthy'),
})

const CommandOutcome = Type.Object(
  {
    operation_id: ofOperation.operation_id,
    command_id: text('0195f0c2-0000-7000-8000-000000000003'),
    status: Type.Enum(['applied', 'refused', 'withdrawn']),
  },
  { additionalProperties: true, description: 'Also the kind of the command, and why it was refused.' },
)

const LogGrowth = Type.Object({
  operation_id: ofOperation.operation_id,
  node_id: ofNode.node_id,
  attempt: ofNode.attempt,
  from_seq: Type.Optional(Type.Integer()),
  to_seq: Type.Integer(),
  lines: Type.Optional(
    Type.Array(LogLineView, { description: 'Absent above 200 lines or 64 KiB: read from the log itself.' }),
  ),
})

const InboxChange = Type.Object({
  counts: Me.properties.counts,
  operation_id: ofOperation.operation_id,
  gate_id: Type.Optional(ofGate.gate_id),
  round: Type.Optional(Type.Integer()),
  patch_id: Type.Optional(ofPatch.patch_id),
  node_id: Type.Optional(ofNode.node_id),
  cause: text('waiting', { description: 'The event after its noun, such as `waiting`, `approved`, `failed`.' }),
})

const Bye = Type.Object({
  reason: Type.Enum(['token', 'revoked', 'shutdown', 'slow']),
  retry_ms: Type.Optional(Type.Integer({ description: 'When to connect again.' })),
})

/** One server-sent event of the stream, with `data` as the JSON that it holds. */
export const StreamFrame = Type.Union([
  frame('hello', Hello, 'The first frame: the topics that are followed, and those that are refused.'),
  frame('operation', OperationChange, 'The row of an operation. A gap in its change_seq means: read it again.'),
  frame('node', NodeChange, 'The live members of a node.'),
  frame('gate', GateChange, 'The live members of a gate.'),
  frame('patch', PatchChanged, 'The live members of a patch.'),
  frame('resource', ResourceChange, 'The row of a resource.'),
  frame('command', CommandOutcome, 'The outcome of a command: your own, or one of an operation that you follow.'),
  frame('log', LogGrowth, 'New lines of a followed log.'),
  frame('inbox', InboxChange, 'Something began or ceased to wait for a person.'),
  frame('resync', Type.Object({ topic: Type.String() }), 'Changes of this topic were not sent: read it again.'),
  frame('bye', Bye, 'The last frame: why the stream ends.'),
])
