import { parse } from 'csv-parse/sync'
import type { ImportItem } from '../../../shared/contracts/imports/imports.ts'
import { equalJson, readPointer, tokensOf } from '../../../shared/data/pointer.ts'
import { collect } from '../collect.ts'
import { type Fields, type Found, isEmpty, isFields, type Options } from '../items.ts'
import { withRest } from '../rest.ts'
import { SourceError } from '../source.ts'
import type { FieldRule, ItemRule, Mapping } from './mapping.ts'

/** A row with its line number or place, for messages. */
type Row = { at: string; fields: Fields }

/** The rows of a CSV text, whose first line names the columns. */
export const csvRows = (text: string, { delimiter = ',' }: Mapping): Row[] => {
  try {
    const parsed = parse(text, {
      bom: true,
      columns: namesOf,
      delimiter,
      info: true,
      skip_empty_lines: true,
      skip_records_with_empty_values: true,
      trim: true,
      max_record_size: 1_048_576,
    }) as unknown as { record: Record<string, string>; info: { lines: number } }[]
    return parsed.map(({ record, info }) => ({ at: `line ${info.lines}`, fields: record }))
  } catch (error) {
    throw new SourceError(`it is not valid CSV: ${(error as Error).message}`)
  }
}

/** The names of the columns; of two columns with one name, only the last would be read. */
const namesOf = (given: readonly string[]): string[] => {
  // A mapping is written with composed accents; some systems export decomposed ones.
  const header = given.map((name) => name.normalize('NFC'))
  return header.map((name, at) => {
    if (name !== '' && header.indexOf(name) !== at) throw new Error(`the header names the column ${name} twice`)
    return name === '' ? `column ${at + 1}` : name
  })
}

/** The rows of a JSON or YAML document: the list that `rows` points to. */
export const jsonRows = (documents: readonly unknown[], { rows = '' }: Mapping): Row[] => {
  const lists = documents.map((document) => (rows === '' ? document : readPointer(document, rows)))
  const [only] = lists
  const list = lists.length === 1 && Array.isArray(only) ? only : lists
  return list.map((row, index) => {
    if (!isFields(row)) throw new SourceError(`row ${index + 1} is not an object: set rows to the list of objects`)
    const fields = flat(row)
    const seen = new Set<string>()
    const [twice] = fields.find(([name]) => seen.size === seen.add(name).size) ?? []
    if (twice !== undefined) throw new SourceError(`row ${index + 1} has two values for ${twice}`)
    return { at: `row ${index + 1}`, fields: Object.fromEntries(fields) }
  })
}

/** Flattens nested members to dotted names, up to 8 levels deep. Empty members stay as they are. */
const flat = (row: Fields, prefix = '', depth = 0): [string, unknown][] =>
  Object.entries(row).flatMap(([name, value]): [string, unknown][] =>
    isFields(value) && depth < 8 && !isEmpty(value)
      ? flat(value, `${prefix}${name}.`, depth + 1)
      : [[`${prefix}${name}`, value]],
  )

/** Makes items of rows. Columns that no rule names are kept where `rest` says, or recorded as lost. */
export const readRows = (rows: readonly Row[], mapping: Mapping, { into }: Pick<Options, 'into'>): Found => {
  const found = collect()
  const made = new Map<string, ImportItem>()
  checkColumns(rows, mapping)
  const faults: string[] = []
  const read = (row: Row): void => {
    const used = new Set(mapping.ignore ?? [])
    const keeper = mapping.items.find(({ rest, when }) => rest !== undefined && applies(when, row))
    const items = mapping.items
      .filter(({ when }) => applies(when, row))
      .map((rule) => [rule, itemOf(rule, row, used, into)] as const)
    const left = Object.fromEntries(Object.entries(row.fields).filter(([column]) => !used.has(column)))
    for (const column of mapping.ignore ?? [])
      if (!isEmpty(row.fields[column])) found.ledger.field('computed', 'row', column, 'the mapping ignores it', row.at)
    if (keeper === undefined)
      for (const [column, value] of Object.entries(left))
        if (!isEmpty(value)) found.ledger.field('lost', 'row', column, 'no rule of the mapping names it', row.at)
    for (const [rule, item] of items) {
      const open = rule.rest === 'attributes'
      const rest = { ledger: found.ledger, kind: item.type_key, prefix: 'import/', open }
      const whole = rule === keeper ? withRest(item, left, rest) : item
      const known = made.get(item.external_id)
      if (known === undefined) {
        made.set(item.external_id, whole)
        found.from(item.type_key, row.fields)
        found.add(whole)
      } else if (!equalJson(known as never, whole as never))
        throw new SourceError(`${row.at} contradicts an earlier row about ${item.external_id}`)
    }
  }
  for (const row of rows) {
    try {
      read(row)
    } catch (error) {
      if (!(error instanceof SourceError)) throw error
      faults.push(error.message)
    }
  }
  if (faults.length > 0) throw new SourceError(`${faults.slice(0, MAX_FAULTS).join('; ')}${more(faults.length)}`)
  return found.done()
}

const MAX_FAULTS = 10
const more = (faults: number): string => (faults > MAX_FAULTS ? `; and ${faults - MAX_FAULTS} more rows` : '')

const applies = (when: string | undefined, row: Row): boolean => when === undefined || !isEmpty(row.fields[when])

const columnsIn = (template: string): string[] =>
  [...template.matchAll(/\{([^{}]+)\}/g)].map(([, column = '']) => column)

/** A column that no row has is a mistake in the mapping. */
const checkColumns = (rows: readonly Row[], { items }: Mapping): void => {
  const there = new Set(rows.flatMap(({ fields }) => Object.keys(fields)))
  const named = items.flatMap(({ fields = {}, relations = [], when, rest: _, ...texts }) => [
    ...Object.values(texts).flatMap(columnsIn),
    ...Object.values(fields).flatMap((rule) => (typeof rule === 'string' ? columnsIn(rule) : [rule.column])),
    ...relations.flatMap(({ to = '', to_id = '' }) => [...columnsIn(to), ...columnsIn(to_id)]),
    ...(when === undefined ? [] : [when]),
  ])
  const unknown = named.find((column) => !there.has(column))
  const some = [...there].slice(0, 8).join(', ')
  if (unknown !== undefined && rows.length > 0)
    throw new SourceError(
      `the mapping names the column ${unknown}, which no row has; columns are ${some}${there.size === 1 && /[;\t]/.test(some) ? ': set delimiter in the mapping' : ''}`,
    )
}

const itemOf = (rule: ItemRule, row: Row, used: Set<string>, into: Options['into']): ImportItem => {
  const text = (template: string): string | undefined => fill(template, row, used)
  const needed = (member: 'id' | 'type' | 'name'): string => {
    const value = text(rule[member])
    if (value === undefined) throw new SourceError(`${row.at} has no value for ${member}: ${rule[member]}`)
    return value
  }
  if (rule.when !== undefined) used.add(rule.when)
  const optional = (template: string | undefined) => (template === undefined ? undefined : text(template))
  const [parent, parent_id] = [optional(rule.parent), optional(rule.parent_id)]
  const [display_name, owner, lifecycle_status] = [rule.display_name, rule.owner, rule.lifecycle_status].map(optional)
  const item: ImportItem = {
    external_id: needed('id'),
    type_key: needed('type'),
    name: needed('name'),
    ...(parent !== undefined && { parent_external_id: parent }),
    ...(parent === undefined &&
      (parent_id ?? into?.resource_id) !== undefined && { parent_id: parent_id ?? into?.resource_id ?? '' }),
    ...(display_name !== undefined && { display_name }),
    ...(owner !== undefined && { owner }),
    ...(lifecycle_status !== undefined && { lifecycle_status }),
    desired_state: {},
    relationships: edgesOf(rule, row, used),
  }
  for (const [pointer, field] of Object.entries(rule.fields ?? {})) {
    const [part = '', ...path] = tokensOf(pointer)
    const value = cellOf(field, row, used)
    if (value === undefined) continue
    put(item as unknown as Fields, [part, ...path], part === 'labels' || part === 'annotations' ? textIn(value) : value)
  }
  return item
}

/** Fills the template with its columns; `undefined` if one of them is empty. */
const fill = (template: string, { fields }: Row, used: Set<string>): string | undefined => {
  const columns = columnsIn(template)
  for (const column of columns) used.add(column)
  if (columns.some((column) => isEmpty(fields[column]))) return undefined
  return template.replaceAll(/\{([^{}]+)\}/g, (_, column: string) => String(fields[column]))
}

const edgesOf = ({ relations = [] }: ItemRule, row: Row, used: Set<string>) =>
  relations.flatMap(({ type, to, to_id, separator }) =>
    targetsOf(to ?? to_id ?? '', separator, row, used).map((target) => ({
      type_key: type,
      ...(to === undefined ? { target_id: target } : { target_external_id: target }),
    })),
  )

/** The ids that a template yields: with a separator, one for each part of its first column. */
const targetsOf = (template: string, separator: string | undefined, row: Row, used: Set<string>): string[] => {
  const [column = ''] = columnsIn(template)
  const cell = row.fields[column]
  const parts = separator === undefined || isEmpty(cell) ? [cell] : String(cell).split(separator)
  return parts.flatMap((part) => {
    const value = typeof part === 'string' ? part.trim() : part
    return fill(template, { ...row, fields: { ...row.fields, [column]: value } }, used) || []
  })
}

const cellOf = (rule: FieldRule, row: Row, used: Set<string>): unknown => {
  if (typeof rule === 'string') return fill(rule, row, used)
  const { column, as = 'text', separator = ',', values } = rule
  used.add(column)
  const given = row.fields[column]
  if (isEmpty(given)) return undefined
  const known = values && Object.hasOwn(values, String(given)) ? values[String(given)] : undefined
  if (known !== undefined) return known
  const value = asKind(given, as, separator)
  if (value === undefined)
    throw new SourceError(`${row.at}, column ${column}: ${JSON.stringify(given).slice(0, 80)} cannot be read as ${as}`)
  return value
}

const asKind = (given: unknown, as: string, separator: string): unknown => {
  const text = String(given).trim()
  switch (as) {
    case 'integer':
      return /^-?\d{1,15}$/.test(text) ? Number(text) : undefined
    case 'number':
      return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : undefined
    case 'boolean':
      return /^(true|yes|1)$/i.test(text) ? true : /^(false|no|0)$/i.test(text) ? false : undefined
    case 'list':
      return Array.isArray(given)
        ? given
        : text
            .split(separator)
            .map((one) => one.trim())
            .filter((one) => one !== '')
    case 'json':
      if (typeof given !== 'string') return given
      try {
        return JSON.parse(given)
      } catch {
        return undefined
      }
    default:
      return typeof given === 'object' ? textIn(given) : text
  }
}

const textIn = (value: unknown): string => (typeof value === 'object' ? JSON.stringify(value) : String(value))

const put = (into: Fields, [name = '', ...rest]: readonly string[], value: unknown): void => {
  const set = (part: unknown) =>
    Object.defineProperty(into, name, { value: part, enumerable: true, configurable: true, writable: true })
  if (rest.length === 0) return void set(value)
  const inner = Object.hasOwn(into, name) && isFields(into[name]) ? into[name] : {}
  put(inner, rest, value)
  set(inner)
}
