import { readFileSync } from 'node:fs'
import Type, { type Static } from 'typebox'
import { Value } from 'typebox/value'
import { parse } from 'yaml'
import { Closed } from '../../../shared/contracts/shapes.ts'
import { SourceError } from '../source.ts'

/** A text with columns in braces: `rack/{site}/{rack}`. */
const Template = Type.String({ minLength: 1, maxLength: 1000 })
const Field = Type.Union([
  Template,
  Closed({
    column: Type.String({ minLength: 1 }),
    as: Type.Optional(Type.Enum(['text', 'integer', 'number', 'boolean', 'list', 'json'])),
    separator: Type.Optional(Type.String({ minLength: 1, maxLength: 8 })),
    values: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  }),
])
const Item = Closed({
  id: Template,
  type: Template,
  name: Template,
  when: Type.Optional(Type.String({ minLength: 1 })),
  display_name: Type.Optional(Template),
  parent: Type.Optional(Template),
  parent_id: Type.Optional(Template),
  owner: Type.Optional(Template),
  lifecycle_status: Type.Optional(Template),
  fields: Type.Optional(
    Type.Record(Type.String({ pattern: '^/(labels|annotations|desired_state|observed_state)/[^/]+(/[^/]+)*$' }), Field),
  ),
  relations: Type.Optional(
    Type.Array(
      Closed({
        type: Type.String({ minLength: 1 }),
        to: Type.Optional(Template),
        to_id: Type.Optional(Template),
        separator: Type.Optional(Type.String({ minLength: 1, maxLength: 8 })),
      }),
      { maxItems: 100 },
    ),
  ),
  rest: Type.Optional(Type.Enum(['annotations', 'attributes'])),
})
const Mapping = Closed({
  format: Type.Literal('signalbox.mapping/v1'),
  delimiter: Type.Optional(Type.String({ minLength: 1, maxLength: 1 })),
  rows: Type.Optional(Type.String({ pattern: '^(/[^/]*)*$' })),
  ignore: Type.Optional(Type.Array(Type.String())),
  items: Type.Array(Item, { minItems: 1, maxItems: 100 }),
})
/** How rows become items: `--mapping FILE` (catalog.md 13). */
export type Mapping = Static<typeof Mapping>
export type ItemRule = Static<typeof Item>
export type FieldRule = Static<typeof Field>

/** Throws a SourceError with the place of the first fault. */
export const readMapping = (file: string): Mapping => {
  let document: unknown
  try {
    document = parse(readFileSync(file, 'utf8'), { uniqueKeys: true, maxAliasCount: 0 })
  } catch (error) {
    throw new SourceError(`the mapping ${file} cannot be read: ${(error as Error).message.split('\n')[0]}`)
  }
  if (Value.Check(Mapping, document)) return document
  const [fault] = Value.Errors(Mapping, document)
  throw new SourceError(
    `the mapping ${file} is not valid at ${fault?.instancePath || '/'}: it ${fault?.message ?? 'does not fit'}`,
  )
}
