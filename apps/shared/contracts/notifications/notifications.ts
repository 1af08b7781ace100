import Type, { type Static } from 'typebox'
import { DryRun, GateId, ListOf, Nullable, NullableText, OperationId, PageQuery, Time } from '../operations/common.ts'
import { Closed, LINE, OptionalInteger, text } from '../shapes.ts'

/** How people are reached when a decision waits for them or an operation stops (federation.md 9). */
const ADDED_KINDS = ['email', 'webhook', 'slack', 'teams'] as const
/** `push`: a browser, subscribed by its session. */
export const DESTINATION_KINDS = [...ADDED_KINDS, 'push'] as const
export type DestinationKind = (typeof DESTINATION_KINDS)[number]
export const NOTIFY_EVENTS = [
  'gate.waiting',
  'gate.reopened',
  'gate.escalated',
  'patch.waiting',
  'operation.held',
  'operation.failed',
] as const
export type NotifyEvent = (typeof NOTIFY_EVENTS)[number]
/** Events about people's own accounts, which they are told of whatever their rules say. */
export const SECURITY_EVENTS = [
  'device.new',
  'name.closed',
  'password.changed',
  'account.reset_requested',
  'account.reset',
  'account.recovery',
  'passkey.added',
  'passkey.removed',
  'passkey.cloned',
  'totp.added',
  'totp.removed',
  'totp.locked',
  'provider.linked',
  'provider.unlinked',
  'rights.changed',
  'destination.added',
  'destination.removed',
  'key.ending',
  'key.seen',
  'key.unused',
  'break_glass.used',
  'spray.suspected',
  'change.waiting',
  'gate.bypassed',
] as const
export type SecurityEvent = (typeof SECURITY_EVENTS)[number]
export const RISKS = ['low', 'medium', 'high', 'critical'] as const
export const DELIVERY_STATES = ['queued', 'sent', 'dead', 'obsolete'] as const

export const DestinationId = text('0195f0c2-0000-7000-8000-00000000000a', { format: 'uuid' })
/** Whose rules or destinations: the caller's own, or a group's. */
const whose = {
  group: Type.Optional(
    text('netops', {
      minLength: 1,
      maxLength: 64,
      description:
        'Those of this group instead of your own; needs identity:admin. It is told of decisions that name it, and of operations that stop on resources that its team owns.',
    }),
  ),
}
export const NotifyQuery = Closed(whose)
export const DestinationParams = Type.Object({ destination_id: DestinationId })
const Name = text('mail', { minLength: 1, maxLength: 60, pattern: LINE })

export const DestinationBody = Closed({
  kind: Type.Enum([...ADDED_KINDS]),
  name: Name,
  address: text('eva@example.org', {
    minLength: 3,
    maxLength: 2000,
    description: "An email address, or the URL of a webhook. Later only the URL's origin is shown.",
  }),
  dry_run: DryRun,
})
export type DestinationBody = Static<typeof DestinationBody>

export const DestinationView = Type.Object({
  destination_id: DestinationId,
  kind: Type.Enum([...DESTINATION_KINDS]),
  name: Name,
  address: text('eva@example.org', { description: 'An email address, or the origin of a URL.' }),
  status: Type.Enum(['unconfirmed', 'active', 'disabled']),
  status_reason: NullableText,
  previous_until: Nullable(Time),
  created_at: Time,
})
export type DestinationView = Static<typeof DestinationView>
export const DestinationList = Type.Object({ items: Type.Array(DestinationView) })

/** A browser's subscription as its `toJSON` returns it, without the expiration time. */
export const PushBody = Closed({
  name: Name,
  endpoint: text('https://fcm.googleapis.com/fcm/send/d1x', {
    minLength: 8,
    maxLength: 2000,
    description: "The browser's push endpoint. Later only its origin is shown.",
  }),
  keys: Closed({
    p256dh: text('BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4', {
      pattern: '^[A-Za-z0-9_-]{87}=?$',
    }),
    auth: text('BTBZMqHH6r4Tts7J_aSIgg', { pattern: '^[A-Za-z0-9_-]{22}(==)?$' }),
  }),
  dry_run: DryRun,
})
export type PushBody = Static<typeof PushBody>
export const PushView = Type.Object({
  public_key: Nullable(
    text('BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8', {
      description: 'The key that a browser subscribes with (RFC 8292); null: this installation sends no pushes.',
    }),
  ),
  destination: Nullable(DestinationView),
})

export const ConfirmBody = Closed({
  code: text('48201733', { pattern: '^[0-9]{8}$', description: 'The code of the mail.' }),
  dry_run: DryRun,
})
export const DestinationTest = Closed({ dry_run: DryRun })
export const SecretBody = Closed({
  overlap_s: OptionalInteger({
    minimum: 0,
    maximum: 604_800,
    default: 86_400,
    description: 'How long messages are signed with the previous secret too; 0: no longer.',
  }),
  dry_run: DryRun,
})
export const SecretView = Type.Object({
  secret: text('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', {
    description: 'Verifies `webhook-signature`: HMAC-SHA-256 over `id.timestamp.body`, as Standard Webhooks states it.',
  }),
})

export const Notice = Type.Object({
  event: Type.Enum([...NOTIFY_EVENTS]),
  operation_id: OperationId,
  gate_id: Nullable(GateId),
  patch_id: NullableText,
  round: Type.Integer(),
  escalation: Type.Integer(),
})

export const DeliveryView = Type.Object({
  delivery_id: DestinationId,
  destination_id: DestinationId,
  purpose: Type.Enum(['notices', 'outcome', 'code', 'test', 'security'], {
    description: '`outcome`: a device is told that a decision no longer waits, in place of the notification.',
  }),
  security_event: Nullable(Type.Enum([...SECURITY_EVENTS])),
  state: Type.Enum([...DELIVERY_STATES], {
    description:
      '`dead`: it was given up. `obsolete`: when it was to be sent, all of it was settled or no longer yours.',
  }),
  attempts: Type.Integer(),
  last_error: NullableText,
  next_at: Time,
  created_at: Time,
  ended_at: NullableText,
  notices: Type.Array(Notice),
})
export type DeliveryView = Static<typeof DeliveryView>
export const DeliveryParams = Type.Object({ delivery_id: DestinationId })
export const Redelivery = Closed({ dry_run: DryRun })
export const DeliveryListQuery = Closed({
  state: Type.Optional(Type.Array(Type.Enum([...DELIVERY_STATES]), { maxItems: 4 })),
  ...whose,
  ...PageQuery,
})
export const DeliveryList = ListOf(DeliveryView)
