import Type, { type Static } from 'typebox'
import { DryRun, Nullable } from '../operations/common.ts'
import { Closed, text } from '../shapes.ts'
import { DestinationId, NOTIFY_EVENTS, RISKS } from './notifications.ts'

const Clock = text('22:00', { pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$' })
export const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
export const Quiet = Closed({
  timezone: text('Europe/Berlin', { maxLength: 64, description: 'An IANA time zone, through its daylight saving.' }),
  from: Clock,
  to: Clock,
  days: Type.Optional(
    Type.Array(Type.Enum([...DAYS]), {
      minItems: 1,
      uniqueItems: true,
      examples: [['sat', 'sun']],
      description: 'The days on which they begin; left out: every day.',
    }),
  ),
})
export type Quiet = Static<typeof Quiet>

export const NotifySteps = Type.Array(
  Closed({
    destination_id: DestinationId,
    after_s: Type.Integer({ minimum: 0, maximum: 604_800, description: 'If it still waits after this time.' }),
  }),
  { maxItems: 20, description: 'Which destinations are notified when. Empty: every active destination, at once.' },
)
const rules = {
  events: Type.Array(Type.Enum([...NOTIFY_EVENTS]), {
    uniqueItems: true,
    description: 'The events that are sent at all.',
  }),
  min_risk: Type.Enum([...RISKS]),
  steps: NotifySteps,
  quiet: Nullable(Quiet),
  digest_s: Type.Integer({
    minimum: 0,
    maximum: 86_400,
    description: 'The minimum time between two messages to a destination; the next one covers all events until then.',
  }),
}
export const NotifyRules = Closed(rules)
export type NotifyRules = Static<typeof NotifyRules>
export const RulesBody = Closed({ ...rules, dry_run: DryRun })
export type RulesBody = Static<typeof RulesBody>

/** The rules of a person who has set none. */
export const DEFAULT_RULES: NotifyRules = {
  events: [...NOTIFY_EVENTS],
  min_risk: 'low',
  steps: [],
  quiet: null,
  digest_s: 300,
}
