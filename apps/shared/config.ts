import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import { Value } from 'typebox/value'

/** The start stops because the environment is wrong; only the message is printed. `faults` names single settings. */
export class ConfigError extends Error {
  readonly faults: readonly string[]
  constructor(message: string, faults: readonly string[] = []) {
    super(message)
    this.faults = faults
  }
}

/** Returns one error that names every wrong setting, and how to have them written. */
export const wrongSettings = (faults: readonly string[], env: NodeJS.ProcessEnv = process.env): ConfigError => {
  const remedy = env.NODE_ENV === 'production' ? '\n"npm run setup -- production" writes all of them.' : ''
  const text =
    faults.length === 1 ? faults[0] : `${faults.length} settings are wrong:\n  ${faults.join('\n  ')}${remedy}`
  return new ConfigError(text ?? '', faults)
}

/** Returns the faults of an attempt to read settings; none if it succeeds. */
export const faultsOf = (read: () => unknown): readonly string[] => {
  try {
    read()
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.length > 0 ? error.faults : [error.message]
  }
}

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
const shown = (name: string, { type }: Setting, text: string) =>
  SECRET_NAME.test(name) && (type === 'string' || type === 'array')
    ? '(a value that is not shown)'
    : JSON.stringify(text)

export type Setting = TSchema & {
  type?: string
  default?: unknown
  description?: string
  minimum?: number
  maximum?: number
  enum?: readonly unknown[]
  pattern?: string
}

/** What a setting is for, and its allowed values; the description of a text names these itself. */
export const allowed = (setting: Setting): string => [setting.description, valuesOf(setting)].filter(Boolean).join(' ')

const valuesOf = ({ description, type, minimum, maximum, enum: values, pattern }: Setting): string => {
  if (values) return `Allowed: ${values.join(', ')}.`
  if (type === 'boolean') return 'Allowed: true, false.'
  if (type === 'integer' || type === 'number') {
    const least = minimum === undefined ? '' : ` of at least ${minimum}`
    const most =
      maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? '' : ` ${least ? 'and' : 'of'} at most ${maximum}`
    return `Allowed: ${type === 'integer' ? 'a whole number' : 'a number'}${least}${most}.`
  }
  if (description) return ''
  if (type === 'array') return 'Allowed: a JSON array.'
  return pattern ? `Allowed: a string that matches ${pattern}.` : 'Allowed: a string.'
}

/** A setting's options: production must set it itself, its address must be encrypted there, its value is a secret. */
export type SettingOptions = { production?: 'required' | 'https' | 'tls'; secret?: true }

/** For an address with a password, which is not repeated. */
export const NO_URL = 'is no URL: write / # ? and @ of a password as %2F %23 %3F and %40.'

/** Returns why an address is too weak for production, with the remedy; `undefined` if encrypted and with an account. */
const weaknessOf = (name: string, text: string, env: NodeJS.ProcessEnv): string | undefined => {
  if (namesSeveral(text))
    return 'names several servers: write one name that leads to each of them, and that is in their certificates.'
  if (!/^(rediss|tls|postgres(ql)?):\/\//.test(text)) {
    const scheme = text.startsWith('redis:') ? 'rediss' : 'tls'
    return `is plain: write ${scheme}://, and name the server's authority in SIGNALBOX__TLS__CA_FILE.`
  }
  if (!URL.canParse(text)) return NO_URL
  const { protocol, username, searchParams } = new URL(text)
  if (protocol.startsWith('postgres')) {
    const mode = ['sslmode', 'ssl', 'uselibpqcompat'].flatMap((name) => searchParams.getAll(name)).join()
    if (mode !== 'verify-full')
      return 'is plain or trusts any server: end it with ?sslmode=verify-full&sslrootcert=FILE.'
  }
  const elsewhere = /__TEMPORAL__/.test(name) || (/__NATS__/.test(name) && env.SIGNALBOX__NATS__NKEY_FILE)
  return username || elsewhere ? undefined : 'names no account: write user:password@ before the host.'
}

/** Whether the address is a list; a comma before the first @ is part of a password. */
export const namesSeveral = (address: string): boolean => {
  const [, authority = ''] = /^\w+:\/\/([^/?]*)/.exec(address) ?? []
  return authority.slice(authority.indexOf('@') + 1).includes(',')
}

/** Production refuses a secret of the development setup, and one that a person typed. */
const refuseWeakSecret = (name: string, text: string, env: NodeJS.ProcessEnv): void => {
  const keys = text.match(/[A-Za-z0-9+/_-]{43}=?/g) ?? []
  if (keys.some((key) => new Set(Buffer.from(key, 'base64')).size < MIN_DISTINCT))
    throw new ConfigError(`${name} is a placeholder: production needs 32 random bytes.`)
  const file = join(env.SIGNALBOX_DIR ?? '.signalbox', 'keys/secrets.json')
  const development = existsSync(file) ? readFileSync(file, 'utf8') : ''
  if (keys.some((key) => development.includes(key)))
    throw new ConfigError(`${name} holds a development secret (from ${file}): create a new one for production.`)
}

/** 32 random bytes have about 30 distinct values; a typed or repeated key has far fewer. */
const MIN_DISTINCT = 16

/** Production sets its own addresses and secrets; those that development generated are refused (auth.md 11). */
const refuseDevelopment = (
  name: string,
  property: SettingOptions,
  text: string | undefined,
  env: NodeJS.ProcessEnv,
): void => {
  const { production, secret } = property
  const stated = production === 'tls' ? (property as Setting).default !== undefined : production
  if (stated && !text) throw new ConfigError(`${name} is not set: production has no default for it.`)
  if (!text) return
  if (production === 'https' && !text.startsWith('https://'))
    throw new ConfigError(`${name} is ${shown(name, property as Setting, text)}: production needs an https origin.`)
  const weakness = production === 'tls' ? weaknessOf(name, text, env) : undefined
  if (weakness) throw new ConfigError(`${name} ${weakness}`)
  if (/_FILE$/.test(name) && /(^|\/)\.signalbox\//.test(text))
    throw new ConfigError(`${name} names a file of the development set-up: production needs its own.`)
  if (secret) refuseWeakSecret(name, text, env)
}

/** The text of a setting. A secret, or an address with an account, may be in a file instead, which NAME_FILE names. */
const textOf = (name: string, { secret, production }: SettingOptions, env: NodeJS.ProcessEnv): string | undefined => {
  const file = env[`${name}_FILE`]
  if (!file || !(secret || production === 'tls')) return env[name]
  if (env[name]) throw new ConfigError(`${name} and ${name}_FILE are both set: keep one of them.`)
  return readTextFile(`${name}_FILE`, file)
}

/** An environment with the secrets that are in files, each in the setting of its own name; the faulty ones stay. */
export const withSecretFiles = (properties: Record<string, Setting>, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv => {
  const read = { ...env }
  const take = (name: string, setting: Setting) => {
    const text = textOf(name, setting as SettingOptions, env)
    if (text === env[name]) return
    read[name] = text
    delete read[`${name}_FILE`]
  }
  for (const [name, setting] of Object.entries(properties)) faultsOf(() => take(name, setting))
  return read
}

/** The pattern of a web address. */
const WEB = '^https?://'

/** Returns the value of one setting; `undefined` if it is optional and not set. */
const readSetting = (name: string, property: Setting, required: boolean, env: NodeJS.ProcessEnv): unknown => {
  const text = textOf(name, property as SettingOptions, env)
  if (env.NODE_ENV === 'production') refuseDevelopment(name, property as SettingOptions, text, env)
  if (text === undefined || text === '') {
    if (property.default !== undefined) return structuredClone(property.default)
    if (required) throw new ConfigError(`${name} is not set. ${allowed(property)}`)
    return undefined
  }
  const value = parseText(property, text)
  const [first] = Value.Errors(property, value)
  const no_url = property.pattern?.startsWith(WEB) && !URL.canParse(text) && 'must be a URL'
  const wrong = first?.message ?? no_url
  if (wrong) throw new ConfigError(`${name} is ${shown(name, property, text)}: it ${wrong}. ${allowed(property)}`)
  return value
}

/**
 * Reads the environment once, by a schema whose keys are the variables' names. A ConfigError names every variable that
 * is missing or wrong, the value found and the allowed values; secrets are never repeated.
 */
export const loadConfig = <P extends TProperties>(
  schema: TObject<P>,
  env: NodeJS.ProcessEnv = process.env,
): Static<TObject<P>> => {
  const values: Record<string, unknown> = {}
  const faults: string[] = []
  const required = new Set(schema.required as readonly string[] | undefined)
  for (const [name, property] of Object.entries(schema.properties) as [string, Setting][]) {
    try {
      const value = readSetting(name, property, required.has(name), env)
      if (value !== undefined) values[name] = value
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      faults.push(error.message)
    }
  }
  if (faults.length > 0) throw wrongSettings(faults, env)
  return values as Static<TObject<P>>
}

const port = (fallback: number, description = 'The port to listen on; 0 takes a free one.') =>
  Type.Integer({ minimum: 0, maximum: 65535, default: fallback, description })

const server = (pattern: string, description: string) => Type.String({ pattern, production: 'tls', description })

/** The settings that every app reads under its own name (platform.md 6), such as CATALOG__DATABASE__URL. */
export const settings = {
  port,
  host: () => Type.String({ default: '127.0.0.1', description: 'The address to listen on.' }),
  postgres: () => server('^postgres(ql)?://', 'A Postgres URL: postgres://user:password@host:port/database.'),
  redis: () => server('^rediss?://', 'A Redis URL: redis://user:password@host:port; rediss:// by TLS.'),
  nats: () => server('^(nats|tls)://', 'A NATS URL: nats://user:password@host:port; tls:// by TLS.'),
  /** The address of another service: production has no default for it. */
  url: (fallback: string, options: SettingOptions & { description?: string } = { production: 'required' }) =>
    Type.String({ pattern: WEB, default: fallback, description: 'The http or https URL of an app.', ...options }),
  temporal: () =>
    Type.String({
      default: '127.0.0.1:7233',
      pattern: '^(tls://)?[^/]+$',
      production: 'tls',
      description: 'host:port of the Temporal frontend; tls://host:port by TLS.',
    }),
  secretKeys: () =>
    Type.Array(Type.String({ pattern: '^[A-Za-z0-9+/]{43}=?$' }), {
      minItems: 1,
      secret: true,
      description: 'A JSON array of 32 byte keys in base64; the first signs, all verify.',
    }),
  kek: (sealed: string) =>
    Type.String({
      minLength: 43,
      secret: true,
      description: `The key that seals ${sealed}: 32 bytes in base64, or a JSON array of keys, of which the first seals.`,
    }),
  integer: (description: string, fallback: number, minimum = 0, maximum = Number.MAX_SAFE_INTEGER) =>
    Type.Integer({ default: fallback, minimum, maximum, description }),
  prefix: () =>
    Type.String({ default: '', pattern: '^[A-Za-z0-9_-]*$', description: 'A prefix that keeps test runs apart.' }),
}

/** Returns the 32-byte keys of a `…__SECRET__KEYS` setting, the signing one first. */
export const secretKeysOf = (keys: readonly string[], variable?: string): [Buffer, ...Buffer[]] => {
  const parsed = keys.map((key) => Buffer.from(key, 'base64'))
  if (!parsed[0] || parsed.some((key) => key.length !== 32))
    throw new ConfigError(`${variable ?? 'A secret key'} must be 32 bytes in base64.`)
  return parsed as [Buffer, ...Buffer[]]
}

/** Reads a file that a setting names, trimmed; an unreadable file is a ConfigError that names both. */
export const readTextFile = (variable: string, path: string): string => {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new ConfigError(`${variable} names ${path}, which cannot be read: ${(error as Error).message}`)
  }
}

/** Reads a JSON file that a setting names; a missing or invalid file is a ConfigError that names both. */
export const readJsonFile = <T>(variable: string, path: string): T => {
  const text = readTextFile(variable, path)
  try {
    return JSON.parse(text) as T
  } catch {
    throw new ConfigError(`${variable} names ${path}, which is not JSON.`)
  }
}
