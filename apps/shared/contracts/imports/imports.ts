import Type, { type Static, type TSchema } from 'typebox'
import { CapabilityChange } from '../catalog/commands.ts'
import { Annotations, JsonObject, Labels, ResourceId, Time, TypeKey } from '../catalog/common.ts'
import { ArrayOf, Closed, text } from '../shapes.ts'

export const IMPORT_ITEMS = 200
const ExternalId = text('device/42', { minLength: 1, maxLength: 512, pattern: '^[^\\x00-\\x1f\\x7f]+$' })

export const ImportEdge = Closed(
  {
    type_key: text('depends_on', { minLength: 1, maxLength: 64 }),
    direction: Type.Optional(Type.Enum(['out', 'in'])),
    target_external_id: Type.Optional(ExternalId),
    target_id: Type.Optional(ResourceId),
    properties: Type.Optional(JsonObject),
  },
  { description: 'Names its target by the id in the source, or by our own.' },
)

/** Omitted members keep their value; states, labels and annotations are merged member by member. */
export const ImportItem = Closed({
  external_id: ExternalId,
  type_key: TypeKey,
  name: text('eu1-web-09', { minLength: 1, maxLength: 253, pattern: '^[^\\x00-\\x1f\\x7f]*$' }),
  display_name: Type.Optional(Type.String({ minLength: 1, maxLength: 253 })),
  parent_external_id: Type.Optional(ExternalId),
  parent_id: Type.Optional(ResourceId),
  labels: Type.Optional(Labels),
  annotations: Type.Optional(Annotations),
  owner: Type.Optional(Type.String({ maxLength: 128 })),
  lifecycle_status: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
  desired_state: Type.Optional(JsonObject),
  observed_state: Type.Optional(JsonObject),
  relationships: Type.Optional(Type.Array(ImportEdge, { maxItems: 100 })),
  provided_capabilities: Type.Optional(Type.Array(CapabilityChange, { maxItems: 100 })),
})
export type ImportItem = Static<typeof ImportItem>

const EXAMPLE = {
  source: { kind: 'netbox', name: 'netbox' },
  items: [
    {
      external_id: 'site/1',
      type_key: 'topology.region',
      name: 'eu9',
      desired_state: { code: 'eu9' },
      labels: { environment: 'lab' },
    },
  ],
}

export const ImportSource = Closed({
  kind: text('netbox', { minLength: 1, maxLength: 64 }),
  name: text('netbox', { pattern: '^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$', description: 'Ids are unique in it.' }),
  file_digest: Type.Optional(Type.String({ pattern: '^sha256:[0-9a-f]{64}$' })),
})

export type ImportSource = Static<typeof ImportSource>

export const ImportOptions = Closed({
  adopt: Type.Optional(
    Type.Boolean({ description: 'Adopts a resource with the same natural key, or the same type, parent and name.' }),
  ),
  complete_relationship_types: Type.Optional(
    Type.Array(Type.String({ maxLength: 64 }), {
      maxItems: 20,
      description: 'Outgoing edges of these types that an item does not list are removed.',
    }),
  ),
  complete_relationships: Type.Optional(
    Type.Boolean({
      description: 'Edges that only this source states of an item are removed once the item no longer lists them.',
    }),
  ),
  unowned_relationships: Type.Optional(
    Type.Boolean({
      description: 'Edges that leave an item, were stated before owners were stored and are not listed are removed.',
    }),
  ),
  complete_fields: Type.Optional(
    Type.Boolean({
      description:
        'Labels, annotations, desired_state and owner that this source set and an item does not list are removed; its display_name becomes the name.',
    }),
  ),
  force: Type.Optional(Type.Boolean({ description: 'Takes over fields and properties of edges that others set.' })),
})

export type ImportOptions = Static<typeof ImportOptions>

const requestOf = (maxItems: number, item: TSchema = ImportItem) =>
  Closed(
    {
      source: ImportSource,
      items: Type.Array(Type.Unsafe<ImportItem>(item), { minItems: 1, maxItems }),
      options: Type.Optional(ImportOptions),
    },
    { examples: [EXAMPLE] },
  )
export const ImportRequest = requestOf(IMPORT_ITEMS)
export type ImportRequest = Static<typeof ImportRequest>
/** The request as its route checks it: each item is then checked by itself, so that one bad item does not stop the others. */
export const ImportBody = requestOf(IMPORT_ITEMS, JsonObject)

export const ImportQuery = Closed({
  validate_only: Type.Optional(
    Type.Boolean({ description: 'Runs all checks, returns the differences and stores nothing.' }),
  ),
})

/** `deferred`: the request's time was over before this item; send it in another request. */
export const OUTCOMES = ['created', 'updated', 'unchanged', 'conflict', 'refused', 'deferred'] as const
export type ImportOutcome = (typeof OUTCOMES)[number]
const Open = { additionalProperties: true }

export const ImportProblem = Type.Object(
  { category: text('validation_error'), code: text('schema_violation'), detail: text('It does not match.') },
  Open,
)

export const ImportResult = Type.Object({
  index: Type.Integer(),
  external_id: text('site/1', { description: 'Empty if the item has none.' }),
  outcome: Type.Enum([...OUTCOMES]),
  resource_id: Type.Optional(text('eu9')),
  version: Type.Optional(Type.Integer()),
  diff: ArrayOf({
    path: text('/desired_state/code'),
    before: Type.Optional(Type.Unknown()),
    after: Type.Optional(Type.Unknown()),
  }),
  problem: Type.Optional(ImportProblem),
})
export type ImportResult = Static<typeof ImportResult>

export const ImportCounts = Type.Object(
  Object.fromEntries(OUTCOMES.map((outcome) => [outcome, Type.Integer()])) as Record<ImportOutcome, Type.TInteger>,
)

export const ImportReply = Type.Object({ results: Type.Array(ImportResult), counts: ImportCounts })
export type ImportReply = Static<typeof ImportReply>

export const JOB_ITEMS = 1000
/** A job takes more items than one request and continues on its own. */
export const ImportJobRequest = requestOf(JOB_ITEMS)
export type ImportJobRequest = Static<typeof ImportJobRequest>
export const ImportJobBody = requestOf(JOB_ITEMS, JsonObject)

export const ImportJob = Type.Object({
  job_id: text('0195f0c2-0000-7000-8000-000000000009'),
  status: Type.Enum(['queued', 'running', 'done', 'cancelled', 'failed']),
  source: Type.Object({ kind: text('netbox'), name: text('netbox') }, Open),
  total: Type.Integer(),
  done: Type.Integer({ description: 'Items with a result.' }),
  counts: ImportCounts,
  problem: Type.Optional(
    Type.Object({ category: text('internal_error'), code: text('unexpected'), detail: text('It failed.') }, Open),
  ),
  created_at: Time,
  updated_at: Time,
  ended_at: Type.Union([Time, Type.Null()]),
})
export type ImportJob = Static<typeof ImportJob>

export const ImportResults = Type.Object({
  items: Type.Array(ImportResult),
  next_page_token: Type.Union([Type.String(), Type.Null()]),
})
