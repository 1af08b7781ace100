import { Ajv2020, type ErrorObject, type Options, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { RE2JS } from 're2js'
import { LINE, NAME } from '../contracts/shapes.ts'
import type { Violation } from '../errors.ts'
import { canonicalJson } from './digest.ts'
import { isTime } from './formats.ts'
import { readPointer } from './pointer.ts'
import { ofItsKind } from './union-faults.ts'

const OURS: readonly string[] = [NAME, LINE]

/** Patterns of schemas from files or callers run in linear time (RE2), whatever their text; ours do anyway. */
const regExp = Object.assign(
  (pattern: string) => {
    if (OURS.includes(pattern)) return new RegExp(pattern, 'u')
    const compiled = RE2JS.compile(pattern)
    // Ajv keeps one matcher per text, so each must state its pattern.
    return { test: (text: string) => compiled.matcher(text).find(), toString: () => `/${pattern}/` }
  },
  { code: 'new RegExp' },
)

/**
 * Returns a validator of JSON Schema 2020-12 whose time is bounded by the size of the value: patterns in RE2, unique
 * items by their text. Members that every object inherits (`constructor`) count as missing, and a schema that names an
 * $id never meets another one with that $id.
 */
export const createAjv = (options: Options): Ajv2020 => {
  const ajv = new Ajv2020({
    strict: true,
    allErrors: true,
    ownProperties: true,
    addUsedSchema: false,
    ...options,
    code: { regExp },
  })
  ;(formats as unknown as (ajv: Ajv2020) => void)(ajv)
  ajv.addFormat('date-time', isTime)
  ajv.removeKeyword('uniqueItems')
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (wanted: boolean, list: unknown[]) => !wanted || new Set(list.map(canonicalJson)).size === list.length,
    error: { message: 'must not hold equal items' },
  })
  return ajv
}

const create = (useDefaults: boolean) => createAjv({ strictRequired: false, strictTypes: false, useDefaults })
const plain = create(false)
const filling = create(true)

const RENAMES: ReadonlySet<string> = new Set(['$id', '$anchor', '$dynamicAnchor', '$dynamicRef', '$recursiveRef'])
/** Parts of a schema, counted again for each reference to them: the cost that checking one value may reach. */
const MAX_PARTS = 2000

/**
 * Returns why a schema must not be used on others' input; `undefined` if it may. Faults: it does not compile, it refers
 * to itself, or its references multiply. A schema that passes is checked in time bounded by the size of the value.
 */
export const schemaFault = (schema: unknown): string | undefined => {
  const counted = new Map<unknown, number>()
  let foreign: string | undefined
  const parts = (part: unknown): number => {
    if (typeof part !== 'object' || part === null) return 1
    const known = counted.get(part)
    if (known !== undefined) return known
    // Infinite until it is counted: a part reached again while counting refers to itself.
    counted.set(part, Number.POSITIVE_INFINITY)
    let sum = 1
    for (const [key, member] of Object.entries(part)) {
      if (typeof member === 'string' && RENAMES.has(key))
        foreign = `uses ${key}: only a $ref such as #/$defs/name can be followed`
      else if (typeof member === 'string' && key === '$ref') {
        const target = /^#(\/[^%]*)?$/.test(member) ? readPointer(schema, member.slice(1)) : undefined
        if (target === undefined) foreign = `refers to ${JSON.stringify(member)}, which is not in the schema`
        sum += parts(target ?? null)
      } else sum += parts(member)
    }
    counted.set(part, sum)
    return sum
  }
  const total = parts(schema)
  if (foreign !== undefined) return foreign
  if (total === Number.POSITIVE_INFINITY) return 'refers to itself'
  if (total > MAX_PARTS) return `has ${total} parts, including its references; at most ${MAX_PARTS} are allowed`
  try {
    compileSchema(schema)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** A compiled JSON Schema 2020-12: returns the violations of a value, empty if it fits. */
export type SchemaCheck = (value: unknown) => Violation[]

/** The newest compiled schemas by their text: the nodes of a plan share a few, and compiling costs a thousand checks. */
const compiled = new Map<string, SchemaCheck>()
const MAX_COMPILED = 100

/** Compiles JSON Schema 2020-12; a bad schema throws one clear line. `defaults`: fills missing members in the value. */
export const compileSchema = (schema: unknown, { defaults = false } = {}): SchemaCheck => {
  const text = `${defaults} ${JSON.stringify(schema)}`
  const known = compiled.get(text)
  if (known) return known
  const ajv = defaults ? filling : plain
  const validate = ajv.compile(schema as object)
  ajv.removeSchema(schema as object)
  const check: SchemaCheck = (value) => (validate(value) ? [] : violationsOf(validate))
  const [oldest] = compiled.keys()
  if (compiled.size >= MAX_COMPILED && oldest !== undefined) compiled.delete(oldest)
  compiled.set(text, check)
  return check
}

const violationsOf = (validate: ValidateFunction): Violation[] => ofItsKind(validate.errors ?? []).map(violationOf)

export const violationOf = (error: ErrorObject): Violation => {
  const member = error.params.additionalProperty ?? error.params.missingProperty
  const token = member === undefined ? '' : `/${String(member).replaceAll('~', '~0').replaceAll('/', '~1')}`
  return { pointer: `${error.instancePath}${token}`, code: error.keyword, message: messageOf(error) }
}

const SEEN = 'must be one visible line, without control or invisible characters'
const messageOf = ({ keyword, params, message = 'is not valid' }: ErrorObject): string => {
  if (keyword === 'additionalProperties') return 'is not a known member'
  if (keyword === 'enum') return `${message}: ${(params.allowedValues as unknown[]).join(', ')}`
  return keyword === 'pattern' && OURS.includes(params.pattern) ? SEEN : message
}
