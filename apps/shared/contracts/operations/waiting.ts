import Type, { type Static } from 'typebox'
import { Closed, text } from '../shapes.ts'
import { ActorSchema, AloneSchema, AsOf, Digest, NodeId, NullableText, OperationId, Time } from './common.ts'
import { PatchId } from './patches.ts'

/** Work that waits for a person besides gates: patches to vote on, and failures that hold an operation. */
const operation = { operation_id: OperationId, operation_title: text('web 2.4.0 on eu1'), mine: Type.Boolean() }

export const WaitingPatch = Type.Object({
  ...operation,
  patch_id: PatchId,
  reason: text('The installer needs a newer image.'),
  ticket: NullableText,
  proposer: ActorSchema,
  change_count: Type.Integer(),
  approvals: Type.Integer(),
  quorum: Type.Integer(),
  waiting_since: Time,
  deadline_at: NullableText,
  digest: Digest,
  environment: NullableText,
  alone: AloneSchema,
})
export type WaitingPatch = Static<typeof WaitingPatch>

export const OpenFailure = Type.Object({
  ...operation,
  node_count: Type.Integer({ description: 'How many nodes failed and hold the operation.' }),
  nodes: Type.Array(
    Type.Object({ node_id: NodeId, name: text('install eu1-web-03'), state: text('failed'), message: NullableText }),
    { maxItems: 3 },
  ),
  waiting_since: Time,
})

export const Waiting = Type.Object({
  patches: Type.Array(WaitingPatch),
  failures: Type.Array(OpenFailure),
  as_of: AsOf,
})
export type Waiting = Static<typeof Waiting>
export const WaitingQuery = Closed({
  for: Type.Optional(Type.Enum(['me', 'all'], { description: 'me: what the caller can act on.' })),
})
