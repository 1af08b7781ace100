import openapiTS, { astToString } from 'openapi-typescript'

const HEAD = '/** The public API as types; made from openapi/public.json by `npm run openapi`. */\n'

/** The types of the client package. Examples are left to the document, and the client itself adds the keys of commands. */
export const clientTypes = async (document: string): Promise<string> => {
  const text = JSON.stringify(JSON.parse(document), (name, value) => (isExample(name, value) ? undefined : value))
  const parsed = JSON.parse(text, (_name, value) =>
    value?.in === 'header' && value.name === 'idempotency-key' ? { ...value, required: false } : value,
  )
  return HEAD + astToString(await openapiTS(parsed))
}

/** A list of examples, or one; a member of data may have such a name, too, but is a schema then. */
const isExample = (name: string, value: unknown): boolean =>
  (name === 'examples' && Array.isArray(value)) || name === 'example'
