import { readFileSync } from 'node:fs'
import { parseDocument } from 'yaml'
import { type ExitCode, missing, usageError } from './errors.ts'
import type { Api } from './session/api.ts'
import type { Credentials } from './session/credentials.ts'
import type { Output } from './terminal/output.ts'

export type Values = Record<string, string | boolean | undefined>

export type Context = {
  api: Api
  credentials: Credentials
  env: NodeJS.ProcessEnv
  out: Output
  /** `--all`: follows the cursor to the end. */
  all: boolean
  /** `--yes`: asks no question. */
  yes: boolean
  dry_run: boolean
  /** `--idempotency-key`, for commands that send more than one request. */
  idempotency_key: string | undefined
}

export type Option = {
  type: 'string' | 'boolean'
  short?: string
  /** The effect of the option, in one line of help. */
  about: string
  /** The name of its value in the help; by default the option's name in capitals. */
  value?: string
  choices?: readonly string[]
}

export type Command = {
  /** `gate approve`: noun, then verb. */
  name: string
  /** Positional arguments as the usage shows them: `GATE`, `[NAME]`, and at the end `[WORD…]` for any number. */
  takes?: string
  about: string
  /** Command lines without the program's name, shown below the help. */
  examples: readonly string[]
  options?: Record<string, Option>
  /** How long a request may take, if half a minute is too long. */
  timeout_ms?: number
  /** How often a retryable refusal is sent again; 0 for commands that do their own retries. */
  repeats?: number
  // biome-ignore lint/suspicious/noConfusingVoidType: most commands end with EXIT.done
  run: (context: Context, args: string[], values: Values) => Promise<ExitCode | void>
}

export const GLOBAL = {
  context: { type: 'string', value: 'NAME', about: 'the context to use (signalbox context list)' },
  url: { type: 'string', about: 'the address of the platform; also SIGNALBOX_URL' },
  output: {
    type: 'string',
    short: 'o',
    value: 'FORMAT',
    choices: ['table', 'json', 'yaml', 'id'],
    about: 'how to print',
  },
  select: { type: 'string', value: 'EXPR', about: 'print what this JSONata expression selects from the JSON' },
  zone: { type: 'string', value: 'NAME', about: 'the time zone of printed times, such as Europe/Berlin' },
  jsonl: { type: 'boolean', about: 'print one JSON object per line' },
  all: { type: 'boolean', about: 'follow the list to its end' },
  watch: { type: 'boolean', about: 'print a list again whenever it changes' },
  yes: { type: 'boolean', short: 'y', about: 'do not ask for confirmation' },
  'dry-run': { type: 'boolean', about: 'show what would happen, without a change' },
  'idempotency-key': { type: 'string', value: 'KEY', about: 'the key of the request: a repeat with it has one effect' },
} as const satisfies Record<string, Option>

/** The command that these words begin with: noun and verb, or a single word. */
export const commandOf = (commands: readonly Command[], [noun = '', verb = '']: string[]): Command | undefined =>
  commands.find(({ name }) => name === `${noun} ${verb}`) ?? commands.find(({ name }) => name === noun)

export const text = (values: Values, name: string): string | undefined => {
  const value = values[name]
  return typeof value === 'string' ? value : undefined
}

/** The option as a header carries it: ASCII alone. */
export const inHeader = (values: Values, name: string): string | undefined => {
  const value = text(values, name)
  if (value !== undefined && !/^[\x20-\x7e]*$/.test(value)) throw usageError(`--${name} takes ASCII characters only.`)
  return value
}

/** The value of a required option. Throws a usage error without it. */
export const needed = (values: Values, name: string): string => {
  const value = text(values, name)
  if (value === undefined) throw usageError(`--${name} is missing.`)
  return value
}

export const whole = (given: string, name: string): number => {
  if (!/^\d{1,9}$/.test(given)) throw usageError(`--${name} takes a whole number, not ${given}.`)
  return Number(given)
}

export const numberOf = (values: Values, name: string): number | undefined => {
  const given = text(values, name)
  return given === undefined ? undefined : whole(given, name)
}

/** Names the operation of a node, a gate or a patch. */
export const opOption = (of: string) =>
  ({ op: { type: 'string', value: 'OPERATION', about: `the operation of the ${of}` } }) as const

/** Reads a YAML or JSON document from a file, or from stdin as `-`. */
export const readDocument = (file: string): unknown => {
  const source = readText(file)
  try {
    const parsed = parseDocument(source, { merge: true })
    const [fault] = [...parsed.errors, ...parsed.warnings]
    if (fault) throw fault
    const document: unknown = parsed.toJS()
    // An anchor that contains itself makes a cycle, which JSON cannot represent.
    JSON.stringify(document)
    return document
  } catch (error) {
    throw usageError(`${file} is neither YAML nor JSON: ${(error as Error).message.split('\n')[0]}`)
  }
}

export const readText = (file: string): string => {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (error) {
    throw usageError(`${file} cannot be read: ${(error as Error).message}`)
  }
}

const WHOLE_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export const isWholeId = (given: string): boolean => WHOLE_ID.test(given)

/** A full id, or the only item of the list whose id ends with it. */
export const wholeId = async <T>(
  { api }: Context,
  given: string,
  path: string,
  idOf: (item: T) => string,
): Promise<string> => {
  if (isWholeId(given)) return given
  const items = await api.list<T>(path, { page_size: '500' }, false)
  return idAmong(items.map(idOf), given)
}

/** The only one of these ids that ends with it. */
export const idAmong = (ids: readonly string[], given: string): string => {
  if (given === '') throw usageError('The id is empty.')
  const found = ids.filter((id) => id.endsWith(given))
  if (found.length === 1 && found[0]) return found[0]
  const remedy = 'Lists print whole ids with -o id.'
  if (found.length === 0) throw missing(`No id ends with ${JSON.stringify(given)}.`, remedy)
  throw usageError(`${found.length} ids end with ${JSON.stringify(given)}.`, remedy)
}
