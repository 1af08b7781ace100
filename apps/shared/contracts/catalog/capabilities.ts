import Type, { type Static } from 'typebox'
import { ArrayOf, Closed, OptionalInteger, OptionalText, text } from '../shapes.ts'
import { FreshnessQuery, JsonObject, many, nullable, PageQuery, pageOf, ReadAsOf, said, Time } from './common.ts'
import { Scope } from './resources.ts'
import { Capability } from './types.ts'

/** Capabilities as clients read them: definitions, providers, and what a resource needs (catalog.md 5). */
export const PROVIDER_STATUSES = ['available', 'degraded', 'stale', 'withdrawn'] as const
const Counts = Type.Record(Type.String(), Type.Integer())

export const CapabilityDefinition = Type.Object({
  ...Capability.properties,
  versions: Type.Array(Type.String(), { description: 'All versions ever loaded, newest first.' }),
  providers: Type.Object(
    { total: Type.Integer(), by_status: Counts, by_region: Counts },
    { description: 'Of all versions; only what the caller may see.' },
  ),
})
export type CapabilityDefinition = Static<typeof CapabilityDefinition>
export const DefinitionList = pageOf(CapabilityDefinition)
export const DefinitionsQuery = Closed({
  ...PageQuery,
  category: Type.Optional(Type.String({ maxLength: 64 })),
  status: Type.Optional(Type.Enum(['active', 'deprecated'])),
  version: OptionalText({ maxLength: 64, description: 'Only definitions whose newest version is this one.' }),
  ...FreshnessQuery,
})
export const DefinitionParams = Type.Object({ capability_key: text('compute.slots', { minLength: 1, maxLength: 64 }) })
export const DefinitionQuery = Closed({ version: Type.Optional(Type.String({ maxLength: 64 })) })

export const Provider = Type.Object({
  provider_id: text('prv_0195f0c27c1d7e389d552b1c8a'),
  resource_id: text('eu1-web-01'),
  type_key: text('fleet.host'),
  capability_key: text('compute.slots'),
  version: text('1.0.0'),
  attributes: JsonObject,
  capacity: nullable(
    Type.Object(
      {
        total: nullable(Type.Number()),
        reserved: Type.Number({ description: 'Sum of the claims: open uses_capability edges.' }),
        used: nullable(Type.Number()),
        unit: nullable(Type.String()),
      },
      { description: 'null: nothing was reported and nothing is claimed.' },
    ),
  ),
  free: nullable(Type.Number({ description: 'total less the greater of reserved and used; null: unlimited.' })),
  overcommitted: Type.Boolean({ description: 'More is claimed than exists.' }),
  status: Type.Enum([...PROVIDER_STATUSES]),
  status_reason: text('ok'),
  priority: Type.Integer(),
  expires_at: nullable(Time),
  last_command_id: nullable(Type.String()),
  rev: Type.Integer(),
  scope: Scope,
  distance: OptionalInteger({ description: 'From near: 0 same segment, 1 data center, 2 region, 3 elsewhere.' }),
})
export type Provider = Static<typeof Provider>

/** Why a provider is rejected: the first rule that fails. */
export const Rejection = Type.Object({
  provider_id: text('prv_0195f0c27c1d7e389d552b1c8a'),
  resource_id: text('eu1-web-01'),
  rule: Type.Enum(['status', 'version', 'scope', 'attribute', 'capacity', 'self']),
  attribute: Type.Optional(Type.String()),
  match_rule: Type.Optional(Type.String()),
  wanted: Type.Unknown(),
  offered: Type.Unknown(),
})
export type Rejection = Static<typeof Rejection>
const Rejected = Type.Record(Type.String(), Type.Integer(), { description: 'Of all candidates, by rule.' })

export const ProviderList = Type.Object({
  ...pageOf(Provider).properties,
  rejected: Type.Optional(Type.Array(Rejection, { description: 'With explain: the first 20 that do not match.' })),
  rejected_count: Type.Optional(Rejected),
})

export const ProvidersQuery = Closed(
  {
    ...PageQuery,
    capability_key: Type.Optional(Type.String({ maxLength: 64 })),
    version_range: Type.Optional(Type.String({ maxLength: 128, description: 'As npm writes it: ^1.0.0.' })),
    region_id: Type.Optional(Type.String({ maxLength: 128 })),
    datacenter_id: Type.Optional(Type.String({ maxLength: 128 })),
    layer_id: Type.Optional(Type.String({ maxLength: 128 })),
    segment_id: Type.Optional(Type.String({ maxLength: 128 })),
    min_free: Type.Optional(Type.Number({ minimum: 0 })),
    status: many(
      'available, degraded, stale, withdrawn; all but withdrawn unless said.',
      undefined,
      said(PROVIDER_STATUSES),
    ),
    requirement_of: OptionalText({
      maxLength: 256,
      description: 'resource_id/requirement_key: providers that would meet that requirement.',
    }),
    allow_degraded: Type.Optional(Type.Boolean({ description: 'With requirement_of: degraded providers match too.' })),
    near: Type.Optional(Type.String({ maxLength: 128, description: 'A resource to measure distance from.' })),
    sort: OptionalText({ maxLength: 200, description: 'At most 3 of priority, free, distance; `-` = descending.' }),
    explain: Type.Optional(Type.Boolean({ description: 'Adds providers that do not match, and why.' })),
    ...FreshnessQuery,
  },
  {
    patternProperties: {
      '^attr\\.[A-Za-z0-9_.-]{1,64}$': { type: 'array', items: { type: 'string', maxLength: 500 } },
    },
  },
)
export type ProvidersQuery = Static<typeof ProvidersQuery>

export const Requirement = Type.Object(
  {
    requirement_key: text('slot'),
    capability_key: text('compute.slots'),
    version_range: text('^1.0.0'),
    where: JsonObject,
    amount: nullable(Type.Number()),
    min: Type.Integer(),
    scope: Type.Enum(['any', 'same_region', 'same_datacenter', 'same_segment']),
  },
  { description: 'As the type demands, with values of the resource filled in.' },
)
export type Requirement = Static<typeof Requirement>

export const ResourceCapabilities = Type.Object({
  provided: Type.Array(Provider),
  required: ArrayOf({
    requirement: Requirement,
    state: Type.Enum(['bound', 'satisfiable', 'unsatisfied']),
    bound_to: ArrayOf({
      relationship_id: text('rel_000000000000a'),
      resource_id: text('eu1-web-01'),
      provider_id: nullable(Type.String()),
      amount: nullable(Type.Number()),
    }),
    providers: Type.Array(Provider, { description: 'The first 5 that match.' }),
    why_not: Type.Array(Rejection, { description: 'The first 20 that do not match.' }),
    rejected_count: Rejected,
  }),
  as_of: ReadAsOf,
})
export const ResourceCapabilitiesQuery = Closed({
  status: many(
    'Only provided capabilities of these statuses; all but withdrawn unless said.',
    undefined,
    said(PROVIDER_STATUSES),
  ),
  allow_degraded: Type.Optional(Type.Boolean({ description: 'Degraded providers also meet requirements.' })),
  at: OptionalText({
    format: 'date-time',
    maxLength: 40,
    description: 'The state at this time; health comes from the observations of 30 days.',
  }),
  ...FreshnessQuery,
})
