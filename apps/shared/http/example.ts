/** The parts of a JSON schema from which examples are made. */
export type JsonSchema = {
  type?: string | string[]
  examples?: unknown[]
  default?: unknown
  const?: unknown
  enum?: unknown[]
  anyOf?: JsonSchema[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  minItems?: number
  minimum?: number
  format?: string
}

const FORMATS: Record<string, string> = {
  uuid: '0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10',
  'date-time': '2026-01-31T12:00:00.000Z',
}

/**
 * Returns the example of a schema: its own `examples`, or one built from its members. An example is therefore written
 * once, at its field. Text needs one (or a format); `lacks` is called where it is missing.
 */
export const exampleOf = (schema: JsonSchema, lacks: (pointer: string) => void, pointer = ''): unknown => {
  if (schema.examples?.length) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.enum?.length) return schema.enum[0]
  if (schema.default !== undefined) return schema.default
  if (schema.anyOf) return exampleOfUnion(schema.anyOf, lacks, pointer)
  const type = [schema.type ?? []].flat().find((one) => one !== 'null')
  switch (type) {
    case 'object':
      return exampleOfObject(schema, lacks, pointer)
    case 'array':
      return isBareText(schema.items) ? [] : [exampleOf(schema.items ?? {}, lacks, `${pointer}/0`)]
    case 'boolean':
      return true
    case 'integer':
    case 'number':
      return schema.minimum ?? 1
    case 'string':
      if (schema.format && FORMATS[schema.format]) return FORMATS[schema.format]
      break
    case undefined: // any value, or only null
      return null
  }
  return lacks(pointer)
}

/** A list of texts without an example is shown empty. */
const isBareText = (items: JsonSchema | undefined) =>
  items?.type === 'string' && !items.examples && !items.format && !items.enum

/** Of alternatives, takes the first that has an example; null only if no other has one. */
const exampleOfUnion = (members: JsonSchema[], lacks: (pointer: string) => void, pointer: string): unknown => {
  for (const member of members.filter(({ type }) => type !== 'null')) {
    let whole = true
    const example = exampleOf(member, () => {
      whole = false
    })
    if (whole) return example
  }
  return members.some(({ type }) => type === 'null') ? null : lacks(pointer)
}

/** Builds required members, and optional ones that have an example. */
const exampleOfObject = (schema: JsonSchema, lacks: (pointer: string) => void, pointer: string): unknown =>
  Object.fromEntries(
    Object.entries(schema.properties ?? {})
      .filter(([name, member]) => schema.required?.includes(name) || member.examples)
      .map(([name, member]) => [name, exampleOf(member, lacks, `${pointer}/${name}`)]),
  )
