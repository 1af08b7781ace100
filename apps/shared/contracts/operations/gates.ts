import Type, { type Static } from 'typebox'
import { Affected } from '../catalog/affected.ts'
import { ComparedMetric } from '../catalog/health.ts'
import { Health } from '../catalog/resources.ts'
import { Assertion } from '../session/passkeys.ts'
import { Closed, text } from '../shapes.ts'
import {
  ActorSchema,
  AllowedActionSchema,
  AloneSchema,
  Batch,
  CommandView,
  Comment,
  Digest,
  DryRun,
  GateStatusSchema,
  Json,
  ListOf,
  NodeId,
  Nullable,
  NullableText,
  OperationId,
  OperationStatusSchema,
  PageQuery,
  Time,
} from './common.ts'
import { Risk } from './plans.ts'

/** Gates: the queue of decisions, their subjects, and the decision. */
export const VoteView = Type.Object({
  actor: ActorSchema,
  decision: Type.Enum(['approve', 'reject']),
  comment: NullableText,
  digest: text('sha256:3333333333333333333333333333333333333333333333333333333333333333'),
  at: Time,
  round: Type.Integer(),
  group: NullableText,
})

export const MissingVotes = Type.Object({ group: NullableText, count: Type.Integer() })
export const Escalation = Type.Object({ level: Type.Integer(), next_at: NullableText })
export const GateDecision = Type.Object({ by: ActorSchema, at: Time, command_id: NullableText })
/** Facts for a voter besides the subject, outside the digest. */
export const GateContext = Type.Object({
  as_of: Time,
  dependents: Type.Array(Type.String()),
  affected: Nullable(Affected),
  policy_results: Type.Array(Type.Unknown()),
  rehearsal: Type.Unknown(),
  evidence: Type.Array(Type.Unknown()),
  compensations: Type.Array(Type.Unknown()),
  conflicts: Type.Array(Type.Unknown()),
})

export const BriefTarget = Type.Object({ resource_id: text('eu1-web-01'), name: text('eu1-web-01'), health: Health })
export const HealthCount = Type.Object({ status: Health, count: Type.Integer() })
const targets = {
  count: Type.Integer(),
  health: Type.Array(HealthCount),
  worst: Type.Array(BriefTarget, { maxItems: 3 }),
}
/** Who requests what, the current state of the targets, and the way back: context, as of the time of the context. */
export const GateBrief = Type.Object({
  asked: Type.Object({
    requester: ActorSchema,
    title: text('web 2.4.0 on eu1'),
    reason: text('Bring release 2.4.0 to these hosts'),
    ticket: NullableText,
    plan_id: text('0195f0c2-0000-7000-8000-000000000004'),
    plan_hash: Digest,
  }),
  names: Type.Record(Type.String(), Type.String(), { description: 'For targets whose name differs from their id.' }),
  types: Type.Array(Type.Object({ type_key: text('fleet.host'), count: Type.Integer() })),
  regions: Type.Array(text('eu1')),
  batches: Type.Array(Type.Integer(), { description: 'Targets of each batch, in the order of the plan.' }),
  now: Type.Object({ ...targets, hidden: Type.Integer({ description: 'Targets that the caller may not see.' }) }),
  canary: Nullable(
    Type.Object(
      {
        ...targets,
        named: Type.Array(BriefTarget, { maxItems: 3 }),
        ended_at: Time,
        retries: Type.Integer(),
        metrics: Type.Optional(
          Nullable(
            Type.Array(ComparedMetric, {
              description:
                'Of a decided gate as they were then. Empty: the type declares none; null: the catalog did not answer.',
            }),
          ),
        ),
      },
      { description: 'The targets that ended before this gate asked.' },
    ),
  ),
  risk: Risk,
  estimates: Type.Object({ p50_s: Type.Number(), p90_s: Type.Number() }),
  undo: Type.Object(
    {
      possible: Type.Boolean(),
      lasting: Type.Array(Type.Object({ node_id: text('deploy.eu1-web-01'), name: text('deploy eu1-web-01') }), {
        maxItems: 3,
      }),
      lasting_count: Type.Integer(),
    },
    { description: 'The steps that canceling with compensation undoes, and those that it cannot.' },
  ),
  order: Type.Array(NodeId, { description: 'The released nodes of the subject, in the order of the plan.' }),
  void_votes: Type.Array(Type.Object({ name: text('eva'), why: text('voter_lost_right'), round: Type.Integer() })),
})
export type GateBrief = Static<typeof GateBrief>

const gate = {
  gate_id: text('go'),
  operation_id: text('0195f0c2-0000-7000-8000-000000000001'),
  operation_title: text('web 2.4.0 on eu1'),
  kind: text('approval'),
  question: text('Shall the rest follow?'),
  status: GateStatusSchema,
  round: Type.Integer(),
  guards: Type.Array(Type.String()),
  policy: Json,
  votes: Type.Array(VoteView),
  missing: Type.Array(MissingVotes),
  eligible: Type.Array(Type.Object({ id: text('0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'), name: text('eva') })),
  eligible_me: Type.Boolean(),
  why_not_me: NullableText,
  digest: text('sha256:3333333333333333333333333333333333333333333333333333333333333333'),
  waiting_since: NullableText,
  deadline_at: NullableText,
  on_timeout: text('reject'),
  on_reject: text('hold'),
  escalation: Escalation,
  consumed_at: NullableText,
  decided: Nullable(GateDecision),
  change_seq: Type.Integer(),
  allowed_actions: Type.Array(AllowedActionSchema),
}
const single = {
  ...gate,
  subject: Type.Unknown({ description: 'The subject of the decision; `digest` is the digest of its canonical JSON.' }),
  context: GateContext,
  brief: Type.Union([GateBrief, Type.Null()], { description: 'Null in the answer to a vote.' }),
}
export const GateSummary = Type.Object(gate)
export type GateSummary = Static<typeof GateSummary>
export const Gate = Type.Object(single)
export type Gate = Static<typeof Gate>
export const GateList = ListOf(GateSummary)
export type GateList = Static<typeof GateList>
export const GateListQuery = Closed({ status: Type.Optional(Type.Array(GateStatusSchema)), ...PageQuery })

export const InboxItem = Type.Object({
  ...gate,
  risk: text('low'),
  environment: NullableText,
  change_counts: Type.Object({ added: Type.Integer(), changed: Type.Integer(), removed: Type.Integer() }),
  alone: AloneSchema,
})
export type InboxItem = Static<typeof InboxItem>
export const Inbox = ListOf(InboxItem)
export const InboxQuery = Closed({
  status: Type.Optional(Type.Literal('waiting')),
  for: Type.Optional(Type.Enum(['me', 'all'])),
  risk: Type.Optional(Type.Array(Type.Enum(['low', 'medium', 'high', 'critical']))),
  environment: Type.Optional(Type.String({ maxLength: 100 })),
  sort: Type.Optional(Type.Literal('deadline')),
  ...PageQuery,
})

/** What open gates would lose if a person or a group lost rights. */
const Id = Type.String({ minLength: 1, maxLength: 100 })
export const LosingQuery = Closed({ user_id: Type.Optional(Id), group: Type.Optional(Id), grant_id: Type.Optional(Id) })
export type LosingQuery = Static<typeof LosingQuery>

const Losing = Type.Object({
  operation_id: OperationId,
  operation_title: text('web 2.4.0 on eu1'),
  gate_id: text('go'),
  question: text('Shall the rest follow?'),
  voters_left: Type.Integer({ description: 'How many people could still vote.' }),
  votes_lost: Type.Integer({ description: 'Approvals that would no longer count.' }),
  blocked: Type.Boolean({ description: 'Too few people would be left to approve it.' }),
})
export type Losing = Static<typeof Losing>
export const LosingGates = Type.Object({ items: Type.Array(Losing) })

/** The text that a passkey signs: the challenge is the SHA-256 of this in canonical JSON (federation.md 8). */
export const BallotView = Type.Object({
  v: Type.Literal(1),
  rp_id: text('signalbox.example.com'),
  operation_id: text('0195f0c2-0000-7000-8000-000000000001'),
  type: Type.Enum(['gate', 'patch']),
  id: text('go'),
  round: Nullable(Type.Integer()),
  digest: text('sha256:3333333333333333333333333333333333333333333333333333333333333333'),
  decision: Type.Literal('approve'),
  user_id: text('0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
  nonce: text('q1w2e3r4t5z6u7i8o9p0a1'),
  expires_at: Time,
})
export type Ballot = Static<typeof BallotView>
/** A ballot with a passkey's answer, as evidence carries it: enough to verify it offline. */
export type VoteSignature = {
  ballot: Ballot
  credential_id: string
  jwk: Record<string, string>
  client_data: string
  authenticator_data: string
  signature: string
}
export const BallotBody = Closed(
  {
    type: BallotView.properties.type,
    id: Type.String({ minLength: 1, maxLength: 128 }),
    round: Nullable(Type.Integer({ minimum: 1 })),
    digest: Digest,
  },
  { examples: [{ type: 'gate', id: 'go', round: 1, digest: `sha256:${'0'.repeat(64)}` }] },
)
export type BallotBody = Static<typeof BallotBody>
export const BallotReply = Type.Object({ ballot: BallotView, credential_ids: Type.Array(Type.String()) })
export type BallotReply = Static<typeof BallotReply>

const round = Type.Integer({ minimum: 1, description: 'The round that you decide.' })
export const ApproveBody = Closed(
  {
    reviewed_digest: Digest,
    round,
    comment: Type.Optional(Comment),
    as_group: Type.Optional(Type.String({ maxLength: 63 })),
    assertion: Type.Optional(Assertion),
    break_glass: Type.Optional(Closed({ reason: Comment })),
    batch: Type.Optional(Batch),
    dry_run: DryRun,
  },
  {
    examples: [
      {
        reviewed_digest: 'sha256:0000000000000000000000000000000000000000000000000000000000000000',
        round: 1,
        comment: 'The canary is healthy.',
      },
    ],
  },
)
export type ApproveBody = Static<typeof ApproveBody>
export const RejectBody = Closed(
  { round, comment: Comment, batch: Type.Optional(Batch), dry_run: DryRun },
  { examples: [{ round: 1, comment: 'The canary loses connections.' }] },
)
export type RejectBody = Static<typeof RejectBody>
export const GateReply = Type.Object({ ...single, operation_status: OperationStatusSchema, command: CommandView })
