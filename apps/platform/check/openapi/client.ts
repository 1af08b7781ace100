import openapiTS, { astToString } from 'openapi-typescript'

const HEAD = '/** The public API as types; made from openapi/public.json by `npm run openapi`. */\n'

/**
 * The types of the client package. Examples are left to the document, and the client itself adds the keys of commands.
 * An answer that is JSON by default is typed only as JSON: `read` parses it so; `send` returns its text forms.
 */
export const clientTypes = async (document: string): Promise<string> => {
  const text = JSON.stringify(JSON.parse(document), (name, value) => (isExample(name, value) ? undefined : value))
  const parsed = JSON.parse(text, (_name, value) =>
    value?.in === 'header' && value.name === 'idempotency-key' ? { ...value, required: false } : jsonAlone(value),
  )
  return HEAD + astToString(await openapiTS(parsed, { defaultNonNullable: false }))
}

const jsonAlone = (value: { content?: Record<string, unknown>; description?: unknown } | null): unknown => {
  const json = value?.description !== undefined && value.content?.['application/json']
  return json ? { ...value, content: { 'application/json': json } } : value
}

/** A list of examples, or one. A member of data may also have such a name, but is then a schema. */
const isExample = (name: string, value: unknown): boolean =>
  (name === 'examples' && Array.isArray(value)) || name === 'example'
