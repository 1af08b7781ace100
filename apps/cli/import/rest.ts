import type { ImportItem } from '../../shared/contracts/imports/imports.ts'
import { isStorable } from '../../shared/data/json.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import { type Fields, fieldsOf, isEmpty, isFields, isLabelKey, textOf } from './items.ts'
import { isSecretName, type Ledger } from './loss.ts'

/** Where the remaining fields of an item go: `attributes` of its type, or annotations with a prefix. */
export type Rest = {
  ledger: Ledger
  kind: string
  /** The prefix of annotations: `netbox.dev/`. */
  prefix: string
  /** The item's type has open attributes. */
  open: boolean
  /** Names that are not secrets here, even if they sound like it. */
  plain?: RegExp
}

const MAX_ANNOTATIONS = 30_000
const MAX_STATE = 200_000
const MAX_TEXT = 65_536
const MAX_NESTING = 16
/** A request accepts 1,000 members and 10,000 list elements per item. */
const MAX_PARTS = 800

/**
 * Keeps all fields that no rule has read: as attributes if the type has them, otherwise as annotations. Secrets stay
 * out, and fields that are too large for a resource are recorded as lost.
 */
export const withRest = (item: ImportItem, fields: Fields, rest: Rest): ImportItem => {
  const kept = readable(item, fields, rest)
  if (!rest.open) return withNotes(item, kept, rest)
  const own = fieldsOf(item.desired_state?.attributes)
  const attributes = stateOf(item, besides(own, item, kept, rest), rest, 'kept in attributes')
  if (Object.keys(attributes).length === 0) return item
  return { ...item, desired_state: { ...item.desired_state, attributes: { ...attributes, ...own } } }
}

/** Like `withRest`, for fields that the source observes: they become members of observed_state. */
export const withObserved = (item: ImportItem, fields: Fields, rest: Rest): ImportItem => {
  const kept = besides(fieldsOf(item.observed_state), item, readable(item, fields, rest), rest)
  const observed_state = stateOf(item, kept, rest, 'kept in observed_state')
  if (Object.keys(observed_state).length === 0) return item
  return { ...item, observed_state: { ...observed_state, ...item.observed_state } }
}

/** The fields that no rule or mapping has set itself: its value stays, and another one is lost. */
const besides = (own: Fields, item: ImportItem, fields: [string, unknown][], rest: Rest) =>
  fields.filter(([name, value]) => {
    if (!Object.hasOwn(own, name)) return true
    if (!equalJson(own[name], value)) lose(item, name, TAKEN, rest)
    return false
  })
const TAKEN = 'a rule sets this member to another value'

/** The fields that have a value and no secret. */
const readable = (item: ImportItem, fields: Fields, rest: Rest): [string, unknown][] =>
  Object.entries(fields).flatMap(([name, value]): [string, unknown][] => {
    if (isEmpty(value)) return []
    if (isSecretName(name) && !rest.plain?.test(name)) {
      rest.ledger.field('withheld', rest.kind, name, 'secret values are never read', item.external_id)
      return []
    }
    return [[name, withoutSecrets(value, `${name}.`, item, rest)]]
  })

/** The fields as a state can hold them, within the bounds of a resource and of a request. */
const stateOf = (item: ImportItem, fields: [string, unknown][], rest: Rest, reason: string): Fields => {
  const attributes: Fields = {}
  let room = MAX_STATE - Buffer.byteLength(JSON.stringify([item.desired_state, item.observed_state]))
  let parts = MAX_PARTS - partsIn([item.desired_state, item.observed_state])
  for (const [name, value] of fields) {
    const fit = partsIn(value) > parts ? JSON.stringify(value) : storable(value)
    const size = Buffer.byteLength(JSON.stringify([name, fit]))
    if (size > room || longestIn(fit) > MAX_TEXT) {
      lose(item, name, `too large for a resource (${size} bytes)`, rest)
      continue
    }
    room -= size
    parts -= partsIn(fit)
    attributes[name] = fit
    rest.ledger.field('untyped', rest.kind, name, reason, item.external_id)
  }
  return attributes
}

const withNotes = (item: ImportItem, fields: [string, unknown][], rest: Rest): ImportItem => {
  const annotations = { ...item.annotations }
  let room =
    MAX_ANNOTATIONS - Object.entries(annotations).reduce((sum, [key, text]) => sum + bytes(key) + bytes(text), 0)
  for (const [name, value] of fields) {
    const key = `${rest.prefix}${name}`
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    const size = bytes(key) + bytes(text)
    const taken = annotations[key]
    if (taken === text) continue
    if (taken !== undefined) lose(item, name, TAKEN, rest)
    else if (!isLabelKey(key)) lose(item, name, 'its name cannot be an annotation key', rest)
    else if (size > room) lose(item, name, `annotations have no room for its ${size} bytes`, rest)
    else {
      room -= size
      annotations[key] = text
      rest.ledger.field('untyped', rest.kind, name, 'kept as an annotation', item.external_id)
    }
  }
  return Object.keys(annotations).length === 0 ? item : { ...item, annotations }
}

const bytes = (text: string): number => Buffer.byteLength(text)
const lose = ({ external_id }: ImportItem, name: string, reason: string, { ledger, kind }: Rest): void =>
  ledger.field('lost', kind, name, reason.replace(/\d+ bytes/, 'bytes'), external_id)

/**
 * The value without members whose names suggest secrets, at any depth, and without the contents of Kubernetes Secrets.
 * A variable or setting that is named like a secret loses its value.
 */
const withoutSecrets = (value: unknown, path: string, item: ImportItem, rest: Rest): unknown => {
  if (Array.isArray(value)) return value.map((one) => withoutSecrets(one, path, item, rest))
  if (!isFields(value)) return value
  const called = textOf(value.name) ?? textOf(value.key)
  const withhold = (name: string) =>
    rest.ledger.field('withheld', rest.kind, `${path}${name}`, 'secret values are never read', item.external_id)
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => {
      if (isEmpty(inner)) return inner === null ? [] : [[name, inner]]
      const held = value.kind === 'Secret' && /^((string|binary)?data|metadata)$/i.test(name)
      if (held || (isSecretName(name) && !rest.plain?.test(name) && !isFields(inner))) {
        withhold(name)
        return []
      }
      if (name === 'value' && called !== undefined && isSecretName(called)) {
        withhold(called)
        return []
      }
      return [[name, withoutSecrets(inner, `${path}${name}.`, item, rest)]]
    }),
  )
}

/** A state holds no null in a list, no unstorable text and no deep nesting; such a value is kept as its JSON text. */
const storable = (value: unknown): unknown => (hasHole(value, 0) ? JSON.stringify(value) : value)
const hasHole = (value: unknown, depth: number): boolean => {
  if (depth > MAX_NESTING || value === null) return true
  if (typeof value === 'string') return !isStorable(value)
  if (Array.isArray(value)) return value.some((one) => hasHole(one, depth + 1))
  return isFields(value) && Object.entries(value).some(([key, one]) => !isStorable(key) || hasHole(one, depth + 1))
}
/** The longest text in a value, as JSON writes it. */
const longestIn = (value: unknown): number =>
  typeof value === 'string'
    ? JSON.stringify(value).length
    : typeof value === 'object' && value !== null
      ? Math.max(0, ...Object.values(value).map(longestIn))
      : 0
/** The number of members in a value; ten list elements count as one. */
const partsIn = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? Object.values(value).reduce<number>((sum, one) => sum + (Array.isArray(value) ? 0.1 : 1) + partsIn(one), 0)
    : 0
