import { Value } from 'typebox/value'
import { HIDDEN } from '../../shared/contracts/hidden.ts'
import { ImportItem } from '../../shared/contracts/imports/imports.ts'
import { isStorable } from '../../shared/data/json.ts'
import { type Fields, isFields, labelOf, some } from './items.ts'
import type { Ledger } from './loss.ts'
import { withRest } from './rest.ts'
import { SourceError } from './source.ts'

const MAX_NAME = 253
const MAX_OWNER = 128
const MAX_ANNOTATIONS = 32_000
const IN_NAMES = new RegExp(`[${HIDDEN}]+`, 'gu')
const IN_LINES = new RegExp(`(?:(?![\\u200c\\u200d\\ufe0f])[${HIDDEN}])+`, 'gu')

/**
 * The item within the catalog's bounds: names in one line, labels in their letters, texts that can be stored. The ledger
 * names each change, and an annotation keeps the whole text. Throws a SourceError if the item still does not fit.
 */
export const fitted = (item: ImportItem, kind: string, ledger: Ledger): ImportItem => {
  const { external_id, labels, annotations, desired_state, observed_state } = item
  const whole: Fields = {}
  const changed = (field: string, before: string, after: string): string => {
    if (before !== after) whole[field.replaceAll('/', '.')] = before
    return after
  }
  const line = (field: 'display_name' | 'owner', most: number) => {
    const text = item[field]
    return text === undefined ? undefined : changed(field, text, lineOf(text, IN_LINES, most)) || undefined
  }
  const name = changed('name', item.name, lineOf(item.name, IN_NAMES, MAX_NAME)) || external_id.slice(-MAX_NAME)
  const shown = name === item.name ? undefined : lineOf(item.name, IN_LINES, MAX_NAME)
  const clean = (value: unknown, path: string): unknown => {
    if (typeof value === 'string') return isStorable(value) ? value : changed(path, value, storable(value))
    if (Array.isArray(value)) return value.map((one) => clean(one, path))
    return isFields(value) ? mapped(value, (inner, key) => clean(inner, `${path}.${key}`)) : value
  }
  const made = {
    ...item,
    ...some({ display_name: line('display_name', MAX_NAME) ?? (shown !== name ? shown || undefined : undefined) }),
    name,
    owner: line('owner', MAX_OWNER),
    labels: labels && mapped(labels, (text, key) => changed(`labels.${key}`, text, labelOf(text))),
    annotations: annotations && annotationsOf(item, kind, ledger),
    desired_state: clean(desired_state, 'desired_state'),
    observed_state: clean(observed_state, 'observed_state'),
  }
  for (const field of Object.keys(whole))
    ledger.field('changed', kind, field, 'made to fit; an annotation has the whole text', external_id)
  const fit = withRest(some(made) as ImportItem, whole, { ledger, kind, prefix: 'import/', open: false })
  if (Value.Check(ImportItem, fit)) return fit
  const [fault] = Value.Errors(ImportItem, fit)
  throw new SourceError(`${external_id.slice(0, 80)} is not valid at ${fault?.instancePath}: it ${fault?.message}`)
}

const mapped = <T>(of: Record<string, T>, change: (value: T, key: string) => unknown): Fields =>
  Object.fromEntries(Object.entries(of).map(([key, value]) => [key, change(value, key)]))

/** The text in one line of this length; empty if nothing of it shows. */
const lineOf = (text: string, hidden: RegExp, most: number): string => {
  const line = text.toWellFormed().replaceAll(hidden, ' ')
  return line.trim() === '' ? '' : line.length <= most ? line : [...line].slice(0, most).join('')
}

const storable = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd')

/** The annotations that a resource has room for, the smallest first. */
const annotationsOf = ({ annotations = {}, external_id }: ImportItem, kind: string, ledger: Ledger): Fields => {
  const sizeOf = ([key, text]: [string, string]) => Buffer.byteLength(key) + Buffer.byteLength(text)
  let room = MAX_ANNOTATIONS
  const kept = new Set<string>()
  for (const note of Object.entries(annotations).sort((a, b) => sizeOf(a) - sizeOf(b))) {
    room -= sizeOf(note)
    if (room >= 0) kept.add(note[0])
    else ledger.field('lost', kind, note[0], 'annotations have no room for it', external_id)
  }
  return Object.fromEntries(
    Object.entries(annotations)
      .filter(([key]) => kept.has(key))
      .map(([key, text]) => [key, isStorable(text) ? text : JSON.stringify(text)]),
  )
}
