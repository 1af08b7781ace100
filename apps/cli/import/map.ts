import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { ImportItem } from '../../shared/contracts/imports/imports.ts'
import { isObject, readPointer, tokensOf } from '../../shared/data/pointer.ts'
import { fitted } from './fit.ts'
import { type Found, fieldsOf } from './items.ts'
import { withRest } from './rest.ts'
import { SourceError } from './source.ts'

/** A user's rule for one kind of the source, which takes precedence over the reader's. */
type Rule = { type_key: string; fields: Map<string, string> }
export type Overrides = ReadonlyMap<string, Rule>

const TYPE_KEY = /^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$/
const TARGET = /^\/(name|display_name|owner|lifecycle_status|(labels|annotations|desired_state|observed_state)\/.+)$/

/**
 * Reads `--map` (catalog.md 13): YAML or JSON that maps a kind of the source (Kubernetes kind, Terraform resource type,
 * NetBox model) to `type_key` and `fields`. Each entry of `fields` maps a field of the source (dotted names or a JSON
 * pointer) to a JSON pointer in the item.
 */
export const readOverrides = (file: string): Overrides => {
  let document: unknown
  try {
    document = parse(readFileSync(file, 'utf8'), { uniqueKeys: true, maxAliasCount: 0 })
  } catch (error) {
    throw new SourceError((error as Error).message.split('\n')[0])
  }
  if (!isObject(document)) throw new SourceError('it is not an object from kinds to rules')
  return new Map(Object.entries(document).map(([kind, rule]) => [kind, ruleOf(kind, rule)]))
}

const ruleOf = (kind: string, rule: unknown): Rule => {
  if (!isObject(rule)) throw new SourceError(`${kind} needs type_key and fields`)
  const { type_key, fields = {}, ...others } = rule
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new SourceError(`${kind} has the unknown member ${unknown}`)
  if (typeof type_key !== 'string' || !TYPE_KEY.test(type_key)) throw new SourceError(`${kind} has no valid type_key`)
  if (!isObject(fields)) throw new SourceError(`the fields of ${kind} must be an object`)
  for (const [field, to] of Object.entries(fields))
    if (typeof to !== 'string' || !TARGET.test(to))
      throw new SourceError(
        `${kind} maps ${field} to ${JSON.stringify(to)}: the target must be /name, /display_name, /owner, /lifecycle_status, or a pointer into labels, annotations, desired_state or observed_state`,
      )
  return { type_key, fields: new Map(Object.entries(fields as Record<string, string>)) }
}

/**
 * Applies a user's choices over those of the reader. Members made for another type are dropped, because its states
 * would not fit. Mapped kinds are known, so they are no longer generic.
 */
export const applyOverrides = (found: Found, overrides: Overrides): Found => {
  const generic = new Map([...found.generic].filter(([kind]) => !overrides.has(kind)))
  const seen = new Set<string>()
  const items = found.items.map((item) => {
    const origin = found.origins.get(item.external_id)
    const rule = origin && overrides.get(origin.kind)
    if (!rule) return item
    seen.add(origin.kind)
    const { made, sent } = overridden(item, rule, origin.fields)
    const whole = made.type_key === item.type_key ? made : keeping(item, made, sent, found, origin.kind)
    return fitted(whole, origin.kind, found.ledger)
  })
  const idle = [...overrides.keys()].filter((kind) => !seen.has(kind))
  const notes = idle.map((kind) => `--map names ${kind}, but the import has no items of it`)
  return { ...found, items, generic, notes: [...found.notes, ...notes] }
}

/** Keeps as annotations what the old type held and the rule does not send elsewhere. */
const keeping = (
  item: ImportItem,
  made: ImportItem,
  sent: readonly string[][],
  { ledger }: Found,
  kind: string,
): ImportItem => {
  const { attributes, provider: _, kind: __, ...members } = fieldsOf(item.desired_state)
  const left = { ...members, ...structuredClone(fieldsOf(attributes)) }
  for (const path of sent) {
    const inside = path.slice(0, -1).reduce<unknown>((at, name) => fieldsOf(fieldsOf(at)[name]), left)
    delete fieldsOf(inside)[path.at(-1) ?? '']
  }
  return withRest(made, left, { ledger, kind, prefix: 'import/', open: false })
}

/** The item as the rule wants it, and the fields of the source that it now holds. */
const overridden = (item: ImportItem, { type_key, fields }: Rule, source: unknown) => {
  const { desired_state, observed_state, lifecycle_status, ...kept } = item
  const same = type_key === item.type_key
  const made: ImportItem = same ? structuredClone(item) : { ...structuredClone(kept), type_key, desired_state: {} }
  const sent: string[][] = []
  for (const [field, to] of fields) {
    const pointer = field.startsWith('/') ? field : `/${field.replaceAll('.', '/')}`
    const value = readPointer(source, pointer)
    const part = tokensOf(to)
    const fit = part[0] === 'desired_state' || part[0] === 'observed_state' ? value : textFor(value)
    if (fit === undefined || fit === null || fit === '') continue
    put(made as unknown as Members, part, fit)
    sent.push(tokensOf(pointer))
  }
  return { made, sent }
}

/** Targets outside the state hold texts; a value that is not a scalar cannot go there. */
const textFor = (value: unknown): string | undefined =>
  ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined

type Members = Record<string, unknown>
const put = (into: Members, [name = '', ...rest]: readonly string[], value: unknown): void => {
  const set = (part: unknown) =>
    Object.defineProperty(into, name, { value: part, enumerable: true, configurable: true, writable: true })
  if (rest.length === 0) {
    set(value)
    return
  }
  const inner = Object.hasOwn(into, name) && isObject(into[name]) ? (into[name] as Members) : {}
  put(inner, rest, value)
  set(inner)
}
