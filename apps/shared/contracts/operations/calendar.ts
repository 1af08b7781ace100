import Type, { type Static } from 'typebox'
import { GrantScope } from '../identity/users.ts'
import { ArrayOf, Closed, LINE, text } from '../shapes.ts'
import { AllowedActionSchema, DryRun, Nullable, Time } from './common.ts'

/** Windows and freezes (operations.md 3.5). */
const Cel = text("target.scope.region_id == 'eu1'")
export const FreezeItem = Type.Object({
  freeze_id: text('year-end'),
  title: text('No changes over the new year'),
  applies: Cel,
  from: Time,
  to: Time,
  approvers: Type.Array(Type.String()),
  within: Nullable(Type.Array(GrantScope, { description: 'It covers targets only here: where its maker may freeze.' })),
  in_force: Type.Boolean(),
  put_by: Nullable(
    text('user:olga', { description: 'The person (user:NAME) or control plane that made it; null: a file.' }),
  ),
  allowed_actions: Type.Array(AllowedActionSchema),
})
export type FreezeItem = Static<typeof FreezeItem>
export const CalendarView = Type.Object({
  windows: ArrayOf({
    window_id: text('eu1-night'),
    applies: Cel,
    timezone: text('Europe/Berlin'),
    days: Type.Array(Type.String()),
    from: text('22:00'),
    to: text('04:00'),
    open: Type.Boolean(),
    opens_at: Nullable(Time),
    closes_at: Nullable(Time),
    openings: Type.Array(Type.Object({ opens_at: Time, closes_at: Time }), {
      description: 'Its spans of the next 15 days, the first of which may have begun.',
    }),
  }),
  freezes: Type.Array(FreezeItem),
  as_of: Time,
})

const freeze = {
  title: text('No changes while the network is rebuilt', { minLength: 1, maxLength: 200, pattern: LINE }),
  applies: text("target.labels.?environment.orValue('') == 'prod'", {
    minLength: 1,
    maxLength: 2048,
    description: 'CEL over `target`; a target that it cannot be evaluated for is covered.',
  }),
  from: text('2026-12-24T00:00:00Z', { format: 'date-time' }),
  to: text('2027-01-02T00:00:00Z', { format: 'date-time', description: 'Not included; later than `from`.' }),
  approvers: Type.Array(text('netops-leads', { pattern: '^[a-z][a-z0-9-]{1,62}$' }), {
    minItems: 1,
    maxItems: 20,
    description: 'Groups whose members may override it for an operation.',
  }),
}
export const FreezeParams = Type.Object({ freeze_id: text('network-rebuild', { pattern: '^[a-z][a-z0-9_-]{0,62}$' }) })
export const FreezeBody = Closed(freeze)

export const FreezeCreation = Closed({ ...FreezeParams.properties, ...freeze, dry_run: DryRun })
export type FreezeCreation = Static<typeof FreezeCreation>
export const FreezeEnd = Closed({
  at: Type.Optional(
    text('2099-12-27T00:00:00Z', {
      format: 'date-time',
      description: 'Ends it then instead of now: later than now and than `from`, earlier than its present end.',
    }),
  ),
  dry_run: DryRun,
})
export type FreezeEnd = Static<typeof FreezeEnd>
export const FreezeEnded = Type.Object({ freeze_id: text('network-rebuild') })

const Told = Type.Integer({ description: 'Running operations whose nodes this request holds or releases.' })
export const FreezeReply = Type.Object({
  freeze_id: text('network-rebuild'),
  ...freeze,
  put_by: text('demo-control-plane'),
  updated_at: Time,
  changed: Type.Boolean({ description: 'False: an identical one already existed.' }),
  operations: Told,
})
export const FreezeWithdrawn = Type.Object({
  freeze_id: text('network-rebuild'),
  withdrawn: Type.Boolean({ description: 'False: none existed.' }),
  operations: Told,
})
