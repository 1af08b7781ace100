import Type, { type Static } from 'typebox'
import { Closed, text } from '../shapes.ts'
import {
  ActorSchema,
  AloneSchema,
  AsOf,
  Digest,
  InRegion,
  NodeId,
  Nullable,
  NullableText,
  OperationId,
  Time,
} from './common.ts'
import { PatchId } from './patches.ts'

/** Work that waits for a person besides gates: patches to vote on, operations that stopped, deadlines. */
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
  node_count: Type.Integer({
    description:
      'How many nodes failed and hold the operation; 0: it is paused because its targets changed in the catalog.',
  }),
  nodes: Type.Array(
    Type.Object({ node_id: NodeId, name: text('install eu1-web-03'), state: text('failed'), message: NullableText }),
    { maxItems: 3 },
  ),
  waiting_since: Time,
})

export const Expiring = Type.Object({
  kind: Type.Enum(['operation', 'plan', 'gate', 'delegation']),
  operation_id: Nullable(OperationId),
  plan_id: NullableText,
  gate_id: NullableText,
  title: text('web 2.4.0 on eu1', { description: 'Of the operation, or of the intent of a plan.' }),
  question: NullableText,
  expires_at: Time,
  follows: Nullable(
    text('reject', {
      description: 'For a gate: reject, hold, approve. For an operation: graceful, compensate (its cancellation).',
    }),
  ),
  mine: Type.Boolean(),
})
export type Expiring = Static<typeof Expiring>

export const Waiting = Type.Object({
  patches: Type.Array(WaitingPatch),
  failures: Type.Array(OpenFailure),
  expiring: Type.Array(Expiring),
  as_of: AsOf,
})
export type Waiting = Static<typeof Waiting>
export const WaitingQuery = Closed({
  for: Type.Optional(Type.Enum(['me', 'all'], { description: 'me: what the caller can act on.' })),
  environment: Type.Optional(Type.String({ maxLength: 200 })),
  region_id: InRegion,
})
