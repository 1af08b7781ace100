import Type, { type Static } from 'typebox'
import { Closed, OptionalInteger, text } from '../shapes.ts'
import {
  ActorSchema,
  AllowedActionSchema,
  DryRun,
  ListOf,
  Nullable,
  NullableText,
  PageQuery,
  Time,
  WORDS,
} from './common.ts'
import { IntentBody } from './intents.ts'

/** Schedules: intents that are created, planned and started at set times (operations.md 3.6). */
export const SCHEDULE_STATUSES = ['active', 'paused', 'ended'] as const
export const RUN_STATES = ['begun', 'planned', 'started', 'skipped', 'refused'] as const

export const WhenOnce = Closed({
  at: text('2026-12-01T22:00:00Z', { format: 'date-time', description: 'Once, at this time.' }),
})
export const WhenEvery = Closed({
  every_s: Type.Integer({ minimum: 60, maximum: 31_536_000, description: 'This often, from its creation.' }),
})
export const WhenCron = Closed({
  cron: text('0 22 * * 1-5', {
    maxLength: 120,
    description:
      'Minute, hour, day of month, month, day of week (0 to 7; 0 and 7 are Sunday). Each is `*` or a list of numbers and ranges, such as `1,10-20`; months and days also by name (`JAN`, `MON`). A step follows `*` or a range: `*/15`, `8-18/2`. In a day field `?` means `*`. If both day fields are other than `*`, either one suffices. `L`, `W`, `#` and names such as `@daily` are refused.',
  }),
  timezone: text('Europe/Berlin', { maxLength: 64, description: 'An IANA time zone, through its daylight saving.' }),
})
export const WhenCondition = Closed(
  {
    type_key: text('fleet.host', { maxLength: 64, pattern: '^[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)+$' }),
    when: text('target.observed_state.release != target.desired_state.release', {
      minLength: 1,
      maxLength: 2048,
      description: 'CEL over `target`.',
    }),
  },
  { description: 'When resources begin to meet a condition, such as drift; those are the targets of the intent.' },
)
export const WhenMet = Closed({ on: WhenCondition })
export const WhenHook = Closed({
  webhook: Closed(
    {
      signature: Type.Enum(['standard', 'forge'], {
        description:
          '`standard`: Standard Webhooks, at most 5 minutes old. `forge`: X-Hub-Signature-256 over the body, as code forges sign; the same body counts once.',
      }),
      if: Type.Optional(
        text("body.ref == 'refs/heads/main'", {
          minLength: 1,
          maxLength: 2048,
          description: 'CEL over `body`; a delivery that does not meet it starts no run.',
        }),
      ),
    },
    { description: 'When a signed webhook comes to POST /api/v1/hooks/{schedule_id}.' },
  ),
})
export const When = Type.Union([WhenOnce, WhenEvery, WhenCron, WhenMet, WhenHook])
export type When = Static<typeof When>
/** Whether an event, not the clock, triggers it. */
export const isTriggered = (when: When): boolean => 'on' in when || 'webhook' in when

export const ScheduleBody = Closed({
  when: When,
  intent: IntentBody,
  proceed: Type.Optional(
    Type.Enum(['plan', 'start'], {
      default: 'plan',
      description: '`plan`: a person reviews and starts each plan. `start`: it starts by itself, up to its first gate.',
    }),
  ),
  dry_run: DryRun,
})
export type ScheduleBody = Static<typeof ScheduleBody>

export const ScheduleParams = Type.Object({
  schedule_id: text('0195f0c2-0000-7000-8000-000000000001', { format: 'uuid' }),
})
export const ScheduleChange = Closed({
  reason: Type.Optional(text('The release is held back', WORDS)),
  dry_run: DryRun,
})

export const HookSecretBody = Closed({
  overlap_s: OptionalInteger({
    minimum: 0,
    maximum: 604_800,
    default: 86_400,
    description: 'How long the previous secret stays valid; 0: it ends at once.',
  }),
  dry_run: DryRun,
})
export const HookSecretView = Type.Object({
  schedule_id: ScheduleParams.properties.schedule_id,
  url: text('/api/v1/hooks/0195f0c2-0000-7000-8000-000000000001'),
  secret: text('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', { description: 'Shown only here.' }),
  previous_until: Nullable(Time),
})
export type HookSecretView = Static<typeof HookSecretView>
/** The headers that sign a delivery. Only the signature is judged: all unsigned deliveries get one refusal. */
export const HookHeaders = Type.Object({
  'webhook-id': Type.Optional(
    text('msg_2b1c8a4f7e10', {
      description: '`standard`: names the delivery, which counts once; 1 to 200 visible ASCII characters.',
    }),
  ),
  'webhook-timestamp': Type.Optional(
    text('1769860800', { description: '`standard`: when it was signed, in Unix seconds; at most 5 minutes off.' }),
  ),
  'webhook-signature': Type.Optional(
    text('v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=', {
      description: '`standard`: `v1,` and the base64 HMAC-SHA-256 of `id.timestamp.body`; up to ten, space-separated.',
    }),
  ),
  'x-hub-signature-256': Type.Optional(
    text(`sha256=${'0'.repeat(64)}`, {
      description: '`forge`: `sha256=` and the hexadecimal HMAC-SHA-256 of the body.',
    }),
  ),
})
export const HookDeliveryView = Type.Object({
  status: Type.Enum(['accepted', 'duplicate', 'ignored']),
  detail: NullableText,
})
export type HookDeliveryView = Static<typeof HookDeliveryView>

export const ScheduleRun = Type.Object({
  due_at: Time,
  state: Type.Enum([...RUN_STATES]),
  detail: Nullable(text('web 2.4.0 on eu1 is still running.', { description: 'Why it was skipped or refused.' })),
  targets: Nullable(Type.Array(Type.String(), { description: 'The resources that began to meet the condition.' })),
  intent_id: NullableText,
  plan_id: NullableText,
  operation_id: NullableText,
})

const row = {
  schedule_id: ScheduleParams.properties.schedule_id,
  title: text('Renew the certificates'),
  status: Type.Enum([...SCHEDULE_STATUSES]),
  status_reason: NullableText,
  owner: ActorSchema,
  when: When,
  proceed: Type.Enum(['plan', 'start']),
  next_at: Nullable(Time),
  last_run: Nullable(ScheduleRun),
  created_at: Time,
  updated_at: Time,
}
export const HookView = Type.Object(
  {
    url: text('/api/v1/hooks/0195f0c2-0000-7000-8000-000000000001'),
    has_secret: Type.Boolean({ description: 'False: no secret exists yet.' }),
    previous_until: Nullable(Time),
    deliveries: Type.Array(
      Type.Object({
        at: Time,
        status: Nullable(Type.Enum(['accepted', 'ignored'], { description: 'Null: it came before this was kept.' })),
        detail: Nullable(text('The body does not meet body.ref == "main".', { description: 'Why it was ignored.' })),
      }),
      { description: 'The last ten deliveries with a valid signature, newest first.' },
    ),
  },
  { description: 'Where and how a webhook comes to this schedule.' },
)
export const ScheduleView = Type.Object({
  ...row,
  hook: Nullable(HookView),
  intent: IntentBody,
  upcoming: Type.Array(Time, { description: 'The next five times.' }),
  runs: Type.Array(ScheduleRun, { description: 'The last 20, newest first.' }),
  allowed_actions: Type.Array(AllowedActionSchema),
})
export type ScheduleView = Static<typeof ScheduleView>
export const ScheduleListQuery = Closed({
  status: Type.Optional(Type.Array(Type.Enum([...SCHEDULE_STATUSES]), { maxItems: 3 })),
  ...PageQuery,
})
const ScheduleRow = Type.Object(row)
export type ScheduleRow = Static<typeof ScheduleRow>
export const ScheduleList = ListOf(ScheduleRow)
