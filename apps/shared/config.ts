import { readFileSync } from 'node:fs'
import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import { Value } from 'typebox/value'

/** A start that stops because the environment is wrong: the message is the whole of what is printed. */
export class ConfigError extends Error {}

const parseText = (schema: TSchema, text: string): unknown => {
  const type = (schema as { type?: string }).type
  if (type === 'number' || type === 'integer') return text.trim() === '' ? text : Number(text)
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (type === 'array' || type === 'object') {
    try {
      return JSON.parse(text)
    } catch {
      return text
    }
  }
  return text
}

const SECRET_NAME = /SECRET|KEK|PASSWORD|KEY|DATABASE__URL|REDIS__URL|NATS__URL/
const shown = (name: string, text: string) =>
  SECRET_NAME.test(name) ? '(a value that is not shown)' : JSON.stringify(text)

/**
 * Reads the environment once, by a schema whose keys are the variables' names. A missing or wrong value throws a
 * ConfigError that names the variable, what was found and what is allowed; secrets are never repeated.
 */
export const loadConfig = <P extends TProperties>(
  schema: TObject<P>,
  env: NodeJS.ProcessEnv = process.env,
): Static<TObject<P>> => {
  const values: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(schema.properties) as [
    string,
    TSchema & { default?: unknown; description?: string },
  ][]) {
    const text = env[name]
    if (text === undefined || text === '') {
      if (property.default !== undefined) values[name] = structuredClone(property.default)
      else if ((schema.required as readonly string[] | undefined)?.includes(name)) {
        throw new ConfigError(`${name} is not set. ${property.description ?? 'Set it in the environment.'}`)
      }
      continue
    }
    const value = parseText(property, text)
    const [first] = Value.Errors(property, value)
    if (first)
      throw new ConfigError(`${name} is ${shown(name, text)}: ${first.message}. ${property.description ?? ''}`.trim())
    values[name] = value
  }
  return values as Static<TObject<P>>
}

const port = (fallback: number) =>
  Type.Integer({ minimum: 0, maximum: 65535, default: fallback, description: 'A port number; 0 takes a free one.' })

/** The settings that every app reads under its own name (platform.md 6), such as CATALOG__DATABASE__URL. */
export const settings = {
  port,
  host: () => Type.String({ default: '127.0.0.1', description: 'The address to listen on.' }),
  postgres: () =>
    Type.String({
      pattern: '^postgres(ql)?://',
      description: 'A Postgres URL: postgres://user:password@host:port/database.',
    }),
  redis: () => Type.String({ pattern: '^rediss?://', description: 'A Redis URL: redis://user:password@host:port.' }),
  nats: () => Type.String({ pattern: '^(nats|tls)://', description: 'A NATS URL: nats://user:password@host:port.' }),
  url: (fallback: string) =>
    Type.String({ pattern: '^https?://', default: fallback, description: 'An http or https URL.' }),
  secretKeys: () =>
    Type.Array(Type.String({ minLength: 43, maxLength: 44 }), {
      minItems: 1,
      description: 'A JSON array of 32 byte keys in base64; the first signs, all verify.',
    }),
  integer: (fallback: number, minimum = 0, maximum = Number.MAX_SAFE_INTEGER) =>
    Type.Integer({ default: fallback, minimum, maximum }),
  prefix: () =>
    Type.String({ default: '', pattern: '^[A-Za-z0-9_-]*$', description: 'A prefix that keeps test runs apart.' }),
  logLevel: () => Type.String({ default: 'info', pattern: '^(trace|debug|info|warn|error|fatal|silent)$' }),
}

/** The 32 byte keys of a `…__SECRET__KEYS` setting, the signing one first. */
export const secretKeysOf = (keys: readonly string[]): [Buffer, ...Buffer[]] => {
  const parsed = keys.map((key) => Buffer.from(key, 'base64'))
  if (!parsed[0] || parsed.some((key) => key.length !== 32))
    throw new ConfigError('A secret key must be 32 bytes in base64.')
  return parsed as [Buffer, ...Buffer[]]
}

/** Reads a JSON file that a setting names; a missing or broken file is a ConfigError that names both. */
export const readJsonFile = <T>(variable: string, path: string): T => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T
  } catch (error) {
    throw new ConfigError(`${variable} names ${path}, which cannot be read as JSON: ${(error as Error).message}`)
  }
}
