import Type from 'typebox'
import { text } from '../text.ts'
import { AsOf, nullable, Time } from './common.ts'
import { Health } from './resources.ts'

/** Own health of one resource: the worst of its unexpired checks, by source. */
export const HealthView = Type.Object({
  own: Type.Object({
    status: Health,
    reason: Type.Enum(['never_observed', 'expired', 'observed', 'lifecycle']),
    since: Time,
    expires_at: nullable(Time),
  }),
  checks: Type.Array(
    Type.Object({
      source: text('fleet'),
      check_key: text('http'),
      status: Health,
      observed_at: Time,
      expires_at: Time,
      expired: Type.Boolean(),
      summary: nullable(Type.String()),
    }),
  ),
  health_revision: Type.Integer(),
  as_of: AsOf,
})
