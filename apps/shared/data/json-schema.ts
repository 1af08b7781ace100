import { Ajv2020, type ErrorObject, type Options, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { RE2JS } from 're2js'
import { LINE, NAME, SENTENCES, VISIBLE } from '../contracts/shapes.ts'
import type { Violation } from '../errors.ts'
import { canonicalJson } from './digest.ts'
import { isTime } from './formats.ts'
import { readPointer } from './pointer.ts'

const OURS: readonly string[] = [NAME, LINE, VISIBLE]

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
  const member = error.params.additionalProperty ?? error.params.missingProperty ?? error.propertyName
  const token = member === undefined ? '' : `/${String(member).replaceAll('~', '~0').replaceAll('/', '~1')}`
  return { pointer: `${error.instancePath}${token}`, code: error.keyword, message: messageOf(error) }
}

const messageOf = ({ keyword, params, propertyName, message = 'is not valid' }: ErrorObject): string => {
  if (propertyName !== undefined) return `is not a valid name here: it ${message}`
  if (keyword === 'format' && params.format === 'date-time') return 'must be a time such as 2026-01-31T12:00:00Z'
  if (keyword === 'additionalProperties') return 'is not a known member'
  if (keyword === 'enum') return `${message}: ${(params.allowedValues as unknown[]).join(', ')}`
  if (keyword === 'const') return `must be ${JSON.stringify(params.allowedValue)}`
  return (keyword === 'pattern' && SENTENCES[params.pattern]) || message
}

/** Whether a fault says that a value is not of this kind. */
type Mark = (fault: ErrorObject, union: ErrorObject) => boolean
const OF_TYPE: readonly Mark[] = [
  ({ keyword, instancePath }, union) => keyword === 'type' && instancePath === union.instancePath,
]
/** Those that distinguish best come first. */
const OF_MEMBERS: readonly Mark[] = [
  (fault, union) => constAt(fault, union) !== undefined,
  ({ keyword, instancePath }, union) => keyword === 'additionalProperties' && instancePath === union.instancePath,
  ({ keyword, instancePath }, union) => keyword === 'required' && instancePath === union.instancePath,
]

/** The path of a member, such as `op`, that a kind requires to have one value. */
const constAt = ({ keyword, schemaPath, instancePath }: ErrorObject, union: ErrorObject): string | undefined => {
  const own = schemaPath.slice(union.schemaPath.length + 1).split('/').length
  return keyword === 'const' && (own === 2 || own === 4) ? instancePath : undefined
}

/**
 * Returns the faults of a value that may be one of several kinds, for the kind that it is meant to be: the one of its
 * type, of its discriminating member, or whose members it has. If its discriminating member has no known value, that is
 * the one fault. Returns all faults if no kind fits better than the others.
 */
export const ofItsKind = (faults: readonly ErrorObject[]): ErrorObject[] => {
  const dropped = new Set<ErrorObject>()
  const replaced = new Map<ErrorObject, ErrorObject>()
  for (const [at, union] of faults.entries()) {
    if (union.keyword !== 'anyOf') continue
    const all = branchesOf(faults.slice(begunAt(faults, at), at), union)
    const typed = narrowed(all, union, OF_TYPE)
    const unknown = wrongKind(typed, union)
    const kept = unknown ? typed : narrowed(typed, union, OF_MEMBERS)
    const one = unknown ?? missingIn(kept)
    if (!one && kept.length === all.length) continue
    if (one) replaced.set(union, one)
    else dropped.add(union)
    for (const branch of all) if (one || !kept.includes(branch)) for (const fault of branch) dropped.add(fault)
  }
  // The fault of a name is said by the fault before it.
  const left = faults.filter((fault) => !dropped.has(fault) && fault.keyword !== 'propertyNames')
  // Never none: that would say that the value fits.
  return left.length > 0 ? left.map((fault) => replaced.get(fault) ?? fault) : [...faults]
}

const narrowed = (branches: ErrorObject[][], union: ErrorObject, marks: readonly Mark[]): ErrorObject[][] => {
  let kept = branches
  for (const isForeign of marks) {
    const fitting = kept.filter((branch) => !branch.some((fault) => isForeign(fault, union)))
    if (fitting.length > 0) kept = fitting
  }
  return kept
}

/** Ajv states a union after the faults of its branches. Other items of a list share its schema path, not its place. */
const begunAt = (faults: readonly ErrorObject[], at: number): number => {
  let begun = at
  while (isWithin(faults[begun - 1], faults[at])) begun -= 1
  return begun
}

const isWithin = (fault: ErrorObject | undefined, union: ErrorObject | undefined): boolean => {
  if (!fault || !union) return false
  if (union.propertyName !== undefined && fault.propertyName !== union.propertyName) return false
  return fault.instancePath === union.instancePath || fault.instancePath.startsWith(`${union.instancePath}/`)
}

const branchesOf = (faults: readonly ErrorObject[], union: ErrorObject): ErrorObject[][] => {
  const branches = new Map<string | undefined, ErrorObject[]>()
  for (const fault of faults) {
    if (!fault.schemaPath.startsWith(`${union.schemaPath}/`)) continue
    const [at] = fault.schemaPath.slice(union.schemaPath.length + 1).split('/')
    const branch = branches.get(at)
    if (branch) branch.push(fault)
    else branches.set(at, [fault])
  }
  return [...branches.values()]
}

/** The discriminating member has the value of no kind. */
const wrongKind = (branches: readonly ErrorObject[][], union: ErrorObject): ErrorObject | undefined => {
  const wrong = branches.map((branch) => branch.find((fault) => constAt(fault, union) !== undefined))
  const [one] = wrong
  if (!one || wrong.length < 2 || wrong.some((fault) => fault?.instancePath !== one.instancePath)) return undefined
  const allowedValues = [...new Set(wrong.map((fault) => fault?.params.allowedValue as unknown))]
  return { ...one, keyword: 'enum', params: { allowedValues }, message: 'must be equal to one of the allowed values' }
}

/** The member that all kinds require and the value lacks. */
const missingIn = ([first = [], ...others]: readonly ErrorObject[][]): ErrorObject | undefined =>
  others.length === 0
    ? undefined
    : first.find(
        ({ keyword, instancePath, params }) =>
          keyword === 'required' &&
          others.every((branch) =>
            branch.some(
              (other) => other.instancePath === instancePath && other.params.missingProperty === params.missingProperty,
            ),
          ),
      )
