// Makes schema.d.ts, the public API as types, from the document. It is not in the repository: `npm run check`,
// `npm run openapi` and `npm pack` make it again if one of its sources has changed.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))
const FILE = at('schema.d.ts')
const DOCUMENT = readFileSync(at('../shared/contracts/openapi/public.json'), 'utf8')
const TOOLS = ['make-types.mjs', '../../node_modules/openapi-typescript/package.json']
const MADE_OF = [DOCUMENT, ...TOOLS.map((file) => readFileSync(at(file), 'utf8'))]
const HEAD = `/** Made by make-types.mjs from ${createHash('sha256').update(MADE_OF.join('\n')).digest('hex')}. */\n`

/** A list of examples, or one. A member of data may also have such a name, but is then a schema. */
const isExample = (name, value) => (name === 'examples' && Array.isArray(value)) || name === 'example'

/** An answer that is JSON by default is typed only as JSON: `read` parses it so; `send` returns its text forms. */
const jsonAlone = (value) => {
  const json = value?.description !== undefined && value.content?.['application/json']
  return json ? { ...value, content: { 'application/json': json } } : value
}

/** Examples are left to the document, and the client itself adds the keys of commands. */
const make = async () => {
  const { default: openapiTS, astToString } = await import('openapi-typescript')
  const text = JSON.stringify(JSON.parse(DOCUMENT), (name, value) => (isExample(name, value) ? undefined : value))
  const parsed = JSON.parse(text, (_name, value) =>
    value?.in === 'header' && value.name === 'idempotency-key' ? { ...value, required: false } : jsonAlone(value),
  )
  const whole = `${FILE}.${process.pid}`
  writeFileSync(whole, HEAD + astToString(await openapiTS(parsed, { defaultNonNullable: false })))
  renameSync(whole, FILE)
}

if (!existsSync(FILE) || !readFileSync(FILE, 'utf8').startsWith(HEAD)) await make()
