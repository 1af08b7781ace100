import Type, { type Static } from 'typebox'
import { AsOf, InRegion, Nullable, NullableText, OperationId, Time } from '../operations/common.ts'
import { Closed, OptionalInteger, text } from '../shapes.ts'

/** Ended, open and planned operations (console.md 5.6). */
export const OVERVIEW_DAYS = [14, 30, 90] as const
export const OverviewQuery = Closed({
  days: OptionalInteger({ enum: [...OVERVIEW_DAYS], default: 14, description: 'Days back, including today, in UTC.' }),
  environment: Type.Optional(Type.String({ maxLength: 200 })),
  region_id: InRegion,
})

const ended = {
  succeeded: Type.Integer({ description: 'With and without exceptions.' }),
  failed: Type.Integer({ description: 'Failed or timed out.' }),
  cancelled: Type.Integer(),
}
export const Spread = Type.Union([Type.Object({ p50_s: Type.Number(), p90_s: Type.Number() }), Type.Null()], {
  description: 'Median and 90th percentile in seconds; null if there are none.',
})
export type Spread = Static<typeof Spread>
export const OverviewPeriod = Type.Object({
  from: Time,
  to: Time,
  ...ended,
  /** From start to end, for operations that succeeded. */
  duration: Spread,
  /** From the question to the approval, for gates that people approved. */
  approval: Spread,
})
export type OverviewPeriod = Static<typeof OverviewPeriod>

export const PlannedTick = Type.Object({
  at: Time,
  kind: Type.Enum(['schedule', 'operation', 'gate'], {
    description: 'A schedule runs; an operation must have ended; a gate must be decided.',
  }),
  title: text('Renew the certificates'),
  schedule_id: NullableText,
  operation_id: NullableText,
  gate_id: NullableText,
})
export type PlannedTick = Static<typeof PlannedTick>

export const Overview = Type.Object({
  now: Type.Object({
    open: Type.Integer({ description: 'Operations that have not ended.' }),
    needs_attention: Type.Integer({ description: 'Of these, those that wait for people or have failed nodes.' }),
  }),
  regions: Type.Array(
    Type.Object({
      region_id: text('eu1'),
      open: Type.Integer({ description: 'Operations with a target there that have not ended.' }),
      needs_attention: Type.Integer(),
      gates: Type.Integer({ description: 'Gates of these operations that wait for people.' }),
    }),
    {
      description: 'Of the 1,000 newest open operations, by their first 50 targets; regions without one are left out.',
    },
  ),
  waiting: Type.Array(
    Type.Object({
      group: Nullable(text('netops', { description: 'Null: any approver may decide.' })),
      gates: Type.Integer(),
      patches: Type.Integer(),
      oldest: Type.Object({ since: Time, operation_id: OperationId, title: text('web 2.4.0 on eu1') }),
    }),
    {
      description:
        'Gates and patches that wait, by the groups whose members may decide; one of several groups counts in each. Longest wait first, at most 50.',
    },
  ),
  days: Type.Array(Type.Object({ day: text('2026-01-31'), ...ended }), {
    description: 'Every day of the period, by the day on which operations ended.',
  }),
  period: OverviewPeriod,
  before: OverviewPeriod,
  planned: Type.Array(PlannedTick, { description: 'Of the next 14 days, the first 200.' }),
  planned_more: Type.Boolean({ description: 'More items are planned than are listed.' }),
  as_of: AsOf,
})
export type Overview = Static<typeof Overview>
