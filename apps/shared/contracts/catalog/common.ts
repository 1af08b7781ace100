import Type, { type Static, type TSchema } from 'typebox'
import { Closed, OptionalInteger, OptionalText, text } from '../shapes.ts'

/** Names, bounds and envelopes that every message of the catalog uses (catalog.md 1, 7). */
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
export const closed = { additionalProperties: false } as const

export const RESOURCE_ID = '^[a-z0-9][a-z0-9._:-]{0,127}$'
export const ResourceId = text('eu1-web-01', {
  pattern: RESOURCE_ID,
  description: 'Never changes. The server generates `res_…` if none is given.',
})
export const ResourceParams = Type.Object({ resource_id: text('eu1-web-01', { minLength: 1, maxLength: 128 }) })
export const TypeKey = text('fleet.host', { pattern: '^[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)+$', maxLength: 64 })
export const Time = text('2026-01-31T12:00:00.000000Z', { description: 'RFC 3339 in UTC with microseconds.' })
export const Uuid = text('0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10', {
  pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
  description: 'Lower case.',
})
export const InputTime = Type.String({ format: 'date-time', maxLength: 40 })

const LABEL_KEY = '^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9._-]{1,63}$'
type Texts = Record<string, string>
export const Labels = Type.Unsafe<Texts>({
  type: 'object',
  additionalProperties: { type: 'string', pattern: '^[A-Za-z0-9._-]{0,63}$' },
  propertyNames: { pattern: LABEL_KEY, maxLength: 317 },
  maxProperties: 64,
  description: 'Short marks to filter by: `[prefix/]name`.',
})
export const Annotations = Type.Unsafe<Texts>({
  type: 'object',
  additionalProperties: { type: 'string', maxLength: 32_768 },
  propertyNames: { pattern: LABEL_KEY, maxLength: 317 },
  description: 'Longer notes, 32 KiB in all; not for filtering.',
})
export const TextMap = Type.Unsafe<Texts>({ type: 'object', additionalProperties: { type: 'string' } })
export const JsonObject = Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true })

export const EvidenceRef = Closed({
  uri: text('https://ci.example/runs/412', { minLength: 1, maxLength: 2000 }),
  kind: text('change', { minLength: 1, maxLength: 63 }),
  digest: Type.Optional(Type.String({ pattern: '^sha256:[0-9a-f]{64}$' })),
  media_type: Type.Optional(Type.String({ maxLength: 127 })),
  size: Type.Optional(Type.Integer({ minimum: 0 })),
  created_at: Type.Optional(InputTime),
  label: Type.Optional(Type.String({ maxLength: 253 })),
})
export type EvidenceRef = Static<typeof EvidenceRef>

/** How old an answer from a read model is. */
export const ReadAsOf = Type.Object({
  watermark: text('1042', { description: 'The last event that the answer includes.' }),
  time: Time,
  lag_ms: Type.Integer(),
})

/** How many rows match: exactly, or at least this many. */
export const PageCount = Type.Object({ value: Type.Integer(), relation: Type.Enum(['eq', 'gte']) })
export const pageOf = <T extends TSchema>(item: T) =>
  Type.Object({
    items: Type.Array(item),
    next_page_token: nullable(Type.String()),
    prev_page_token: nullable(Type.String()),
    count: Type.Optional(PageCount),
    as_of: ReadAsOf,
  })

/** Larger numbers are no longer exact. */
const MOST = Number.MAX_SAFE_INTEGER

export const PageQuery = {
  page_size: OptionalInteger({
    minimum: 0,
    maximum: MOST,
    description: '50 unless said; 0 is 50, and more than 500 is 500.',
  }),
  page_token: Type.Optional(Type.String({ maxLength: 4000, description: 'From the previous reply.' })),
}

/** How fresh an answer must be; 503 stale_projection after two seconds of waiting. */
export const FreshnessQuery = {
  min_change: OptionalText({
    maxLength: 300,
    description: 'A change_token: the answer includes that write (read your own writes).',
  }),
  max_lag_ms: OptionalInteger({ minimum: 0, maximum: MOST, description: 'The maximum age of the answer.' }),
}

/** A parameter that may be repeated or hold several values separated by commas. */
export const many = (description: string, example?: string, each: object = {}) =>
  Type.Optional(
    Type.Array(Type.String({ maxLength: 8000, ...each }), {
      maxItems: 200,
      description,
      ...(example !== undefined && { examples: [[example]] }),
    }),
  )

/** Tells readers of the document which values there are; the route refuses others in words of its own. */
export const said = (words: readonly string[]) => {
  const one = `(${words.join('|')})`
  return { documented: { pattern: `^${one}(,${one})*,?$` } }
}
