import Type, { type Static } from 'typebox'
import { ArrayOf, Closed, OptionalText, text } from '../shapes.ts'
import { EvidenceRef, FreshnessQuery, InputTime, nullable, PageQuery, ReadAsOf, Time } from './common.ts'
import { Health } from './resources.ts'
import { HealthMetric } from './types.ts'

/** The source of a roll-up: the path from the resource to one that is not healthy itself. */
const Cause = Type.Object({
  path: Type.Array(nullable(Type.String()), { description: 'Resource ids; null for one that you may not see.' }),
  resource_id: nullable(Type.String()),
  status: Health,
  check: nullable(Type.Object({ source: text('fleet'), check_key: text('http'), status: Health })),
  age_s: nullable(Type.Integer()),
  hidden: Type.Boolean(),
})

const RollUp = Type.Object(
  {
    status: Health,
    causes: Type.Array(Cause, { description: 'At most 5: the worst, then the nearest.' }),
    visited: Type.Integer(),
    truncated: Type.Boolean({
      description: 'More than 100,000 resources are in reach, so the true health may be worse.',
    }),
  },
  { description: 'Includes every resource that it takes health from. Present only.' },
)

const HistoryItem = Type.Object({
  source: text('fleet'),
  check_key: text('http'),
  status: Health,
  observed_at: Time,
  expires_at: Time,
  summary: nullable(Type.String()),
  evidence_refs: Type.Array(EvidenceRef),
  command_id: text('0195f0c2-0000-7000-8000-000000000003'),
  operation_id: nullable(Type.String()),
})

export const HealthQuery = Closed({
  ...PageQuery,
  at: OptionalText({ format: 'date-time', maxLength: 40, description: 'Own health as it was; kept for 30 days.' }),
  history_since: OptionalText({
    format: 'date-time',
    maxLength: 40,
    description: 'Adds observations since then, newest first.',
  }),
  ...FreshnessQuery,
})
export type HealthQuery = Static<typeof HealthQuery>

/** How many resources one comparison may name on each side: an hour of their numbers is read in a fraction of a second. */
export const COMPARED_MAX = 200
const ids = (description?: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
    maxItems: COMPARED_MAX,
    ...(description && { description }),
  })
export const HealthCompareQuery = Closed(
  {
    resource_ids: ids(),
    rest_ids: ids('Those of other types than resource_ids do not count.'),
    started_at: InputTime,
    ended_at: InputTime,
    until: Type.Optional({ ...InputTime, description: 'Compares as it was then; observations are kept for 30 days.' }),
  },
  {
    examples: [
      {
        resource_ids: ['eu1-web-01'],
        rest_ids: ['eu1-web-02'],
        started_at: '2026-01-31T12:00:00Z',
        ended_at: '2026-01-31T12:04:00Z',
      },
    ],
  },
)
export type HealthCompareQuery = Static<typeof HealthCompareQuery>

export const Median = Type.Object({ median: nullable(Type.Number()), samples: Type.Integer() })
/** One metric of some resources that were changed, against the rest and against themselves before. */
export const ComparedMetric = Type.Object(
  { ...HealthMetric.properties, own: Median, rest: Median, before: Median },
  {
    description:
      'own and rest: since ended_at, but at most the last hour before `until`. before: the resources themselves in the hour before started_at.',
  },
)
export const HealthCompared = Type.Object({
  metrics: Type.Array(ComparedMetric, { description: 'Empty: their types declare none.' }),
})
export type HealthCompared = Static<typeof HealthCompared>

/** Own health of one resource: the worst of its unexpired checks, by source. */
export const HealthView = Type.Object({
  own: Type.Object({
    status: Health,
    reason: Type.Enum(['never_observed', 'expired', 'observed', 'lifecycle']),
    since: Time,
    expires_at: nullable(Time),
  }),
  checks: ArrayOf({
    source: text('fleet'),
    check_key: text('http'),
    status: Health,
    observed_at: Time,
    expires_at: Time,
    expired: Type.Boolean(),
    summary: nullable(Type.String()),
  }),
  rollup: Type.Optional(RollUp),
  history: Type.Optional(
    Type.Object({
      items: Type.Array(HistoryItem),
      next_page_token: nullable(Type.String()),
      prev_page_token: nullable(Type.String()),
    }),
  ),
  health_revision: Type.Integer(),
  as_of: ReadAsOf,
})
