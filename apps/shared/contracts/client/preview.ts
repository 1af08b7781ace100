import Type, { type Static } from 'typebox'

/** What a tool says that it would do, made by an agent before anything is done (operations.md 7.5). Types alone read it. */
const Field = Type.Object({
  path: Type.String(),
  before: Type.Optional(Type.Unknown()),
  after: Type.Optional(Type.Unknown()),
  /** Known once it is done. */
  unknown: Type.Optional(Type.Boolean()),
  /** It changes, and its value is shown to nobody. */
  sensitive: Type.Optional(Type.Boolean()),
})
const Change = Type.Object({
  id: Type.String(),
  action: Type.String(),
  fields: Type.Array(Field),
  fields_count: Type.Optional(Type.Integer()),
})
export const Preview = Type.Object({
  format: Type.Literal('signalbox/preview@1'),
  /** `exact`: the file that was read is the file that runs. */
  binding: Type.Literal('exact'),
  tool: Type.String(),
  source_digest: Type.String(),
  base: Type.Object({ lineage: Type.Union([Type.String(), Type.Null()]), serial: Type.Integer() }),
  plan: Type.Object({ sha256: Type.String(), content_sha256: Type.String() }),
  changes: Type.Array(Change),
  changes_count: Type.Integer(),
  digest: Type.String(),
  counts: Type.Record(Type.String(), Type.Integer()),
  unknowns: Type.Integer(),
  drift: Type.Integer(),
  no_change: Type.Boolean(),
})
export type Preview = Static<typeof Preview>
export type PreviewChange = Static<typeof Change>
export type PreviewField = Static<typeof Field>
