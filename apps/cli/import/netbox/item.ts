import type { ImportItem } from '../../../shared/contracts/imports/imports.ts'
import { sha256Hex } from '../../../shared/data/digest.ts'
import type { Collected } from '../collect.ts'
import { type Container, type Fields, fieldsOf, isEmpty, isLabelKey, labelOf, listOf, textOf } from '../items.ts'
import { withRest } from '../rest.ts'
import type { Cables } from './cables.ts'
import { MODELS, REFS } from './mapping.ts'
import { type Index, idOf, nameOf, type Row } from './rows.ts'

/** Everything that rules consult besides their row. */
export type Place = {
  found: Collected
  index: Index
  cables: Cables
  /** Edges between the real ends of cables, by the end that reports them. */
  links: ReadonlyMap<string, string[]>
  /** Addresses by their assignment, prefixes by their VLAN. */
  addresses: ReadonlyMap<string, string[]>
  /** Power ports by their device. */
  powered: ReadonlyMap<string, Row[]>
  cidrs: ReadonlyMap<string, string[]>
  source: string
  into: Container | undefined
}
export type Edge = NonNullable<ImportItem['relationships']>[number]

/** An item as far as its rule builds it, and the fields that the rule has read. */
export type Draft = Pick<ImportItem, 'type_key'> &
  Partial<Omit<ImportItem, 'external_id'>> & { read: readonly string[]; refs?: Record<string, string> | undefined }

export const PREFIX = 'netbox.dev/'
const MAX_EDGES = 90
const MAX_TAGS = 40

/** Fields that NetBox computes from others. */
const COMPUTED =
  /^(_.*|url|display|display_url|display_name_full|lft|rght|tree_id|level|family|.*_count|.*connected_endpoints.*|link_peers.*|cable_peer.*|connection_status|assigned_object|scope|primary_ip|occupied|owner_type)$/
/** Models that only describe other rows and become no items. */
const PARTS: Record<string, string> = {
  'dcim.cabletermination': 'the ends of cables are edges of the cable',
  'dcim.cablepath': 'NetBox computes it from cables',
  'extras.taggeditem': 'tags become labels of the tagged objects',
  'contenttypes.contenttype': 'it names models',
}
export const partOf = (model: string): string | undefined => PARTS[model]
const hasAttributes = (type_key: string) => !/^(infra|topology)\./.test(type_key) || type_key === 'infra.generic'
const COMMON = ['slug', 'status', 'description', 'comments']

/** Completes an item: labels, references, custom fields, and every field that its rule has not read. */
export const finish = (row: Row, { read, refs = {}, ...draft }: Draft, place: Place): ImportItem => {
  const { ledger } = place.found
  const open = hasAttributes(draft.type_key)
  const external_id = idOf(row)
  const { custom_field_data, custom_fields, tags: _, ...fields } = row.fields
  for (const field of read) delete fields[field]
  if (toldByCable(row, place)) for (const field of ['cable', 'cable_end']) delete fields[field]
  for (const [field, value] of Object.entries(fields)) {
    if (!COMPUTED.test(field)) continue
    if (!isEmpty(value)) ledger.field('computed', row.model, field, 'NetBox computes it from other fields', external_id)
    delete fields[field]
  }
  const common: Fields = {}
  if (open && draft.type_key !== 'infra.generic')
    for (const field of COMMON) {
      const text = textOf(fields[field])
      if (text === undefined) continue
      common[field] = text
      delete fields[field]
    }
  const edges = referencesIn(fields, row, { ...REFS, ...refs }, place)
  const { labels, annotations } = marksOfRow(row, place)
  if (!open && textOf(fields.status) === labels[`${PREFIX}status`]) delete fields.status
  const { relationships = [], desired_state = {}, ...made } = draft
  const item: ImportItem = {
    ...made,
    external_id,
    name: draft.name ?? nameOf(row),
    labels: { ...labels, ...draft.labels },
    ...(Object.keys(annotations).length > 0 && { annotations }),
    desired_state: { ...desired_state, ...common },
    relationships: [...relationships, ...edges],
  }
  const custom = fieldsOf(custom_field_data ?? custom_fields)
  const custom_rest = open
    ? { custom_fields: Object.fromEntries(Object.entries(custom).filter(([, value]) => !isEmpty(value))) }
    : Object.fromEntries(Object.entries(custom).map(([name, value]) => [`cf-${name}`, value]))
  return withRest(item, { ...fields, ...custom_rest }, { ledger, kind: row.model, prefix: PREFIX, open })
}

/** Whether the record of a port's cable names the port as one of its ends. */
const toldByCable = (row: Row, { index, cables }: Place): boolean => {
  const cable = String(row.fields.cable)
  const { a, b } = cables.endIds(cable)
  return index.byId.has(`dcim.cable/${cable}`) && [...a, ...b].includes(idOf(row))
}

/** Model, status and tags as labels; a tag that is too long for a label key keeps its full text in an annotation. */
const marksOfRow = (row: Row, { index }: Place) => {
  const labels: Record<string, string> = { [`${PREFIX}model`]: labelOf(row.model) }
  const annotations: Record<string, string> = {}
  const status = textOf(row.fields.status)
  if (status !== undefined) labels[`${PREFIX}status`] = labelOf(status)
  const tags = [...new Set(index.tagsOf(row))].sort()
  for (const tag of tags.slice(0, MAX_TAGS)) {
    const key = `${PREFIX}tag-${tag}`
    if (isLabelKey(key)) labels[key] = ''
    else {
      const short = `${PREFIX}tag-${labelOf(tag).slice(0, 48)}-${sha256Hex(tag).slice(0, 8)}`
      labels[short] = ''
      annotations[short] = tag
    }
  }
  if (tags.length > MAX_TAGS) annotations[`${PREFIX}more-tags`] = JSON.stringify(tags.slice(MAX_TAGS))
  return { labels, annotations }
}

/** Moves fields that name other rows of the file out of `fields`, as edges that say which fields they represent. */
const referencesIn = (fields: Fields, row: Row, refs: Record<string, string>, place: Place): Edge[] => {
  const targets = new Map<string, string[]>()
  const add = (id: string, field: string) => targets.set(id, [...(targets.get(id) ?? []), field])
  for (const [field, value] of Object.entries(fields)) {
    const model = refs[field] ?? sameModel(row, field)
    if (model === undefined || isEmpty(value)) continue
    const ids = listOf([value].flat()).map((key) => `${model}/${String(key)}`)
    const fits = targets.size + ids.length <= MAX_EDGES && ids.every((id) => isItem(id, place) && id !== idOf(row))
    if (!fits) continue
    for (const id of ids) add(id, field)
    delete fields[field]
  }
  for (const field of Object.keys(fields).filter((name) => name.endsWith('_type'))) {
    const name = field.slice(0, -'_type'.length)
    const id = pairOf(fields, name, place)
    if (id === undefined) continue
    add(id, name)
    for (const part of ['_type', '_id']) delete fields[`${name}${part}`]
    if (name === 'content') delete fields.object_id
  }
  return [...targets].map(([target_external_id, names]) => ({
    type_key: 'refers_to',
    target_external_id,
    properties: { fields: names },
  }))
}

/** `lag`, `bridge`, `parent` and `group` name rows of the same model or its groups. */
const sameModel = ({ model }: Row, field: string): string | undefined =>
  ['lag', 'bridge', 'parent'].includes(field)
    ? model
    : field === 'group'
      ? `${model}group`
      : field === 'role'
        ? `${model}role`
        : undefined

/** The row that a pair of fields names: `assigned_object_type` with `assigned_object_id`, `content_type` with `object_id`. */
export const pairOf = (fields: Fields, name: string, place: Place): string | undefined => {
  const kind = place.index.kindOf(fields[`${name}_type`])
  const key = fields[`${name}_id`] ?? (name === 'content' ? fields.object_id : undefined)
  const id = `${kind}/${String(key)}`
  return kind !== undefined && !isEmpty(key) && isItem(id, place) ? id : undefined
}

const isItem = (id: string, { index }: Place): boolean => {
  const row = index.byId.get(id)
  return row !== undefined && partOf(row.model) === undefined && !/^(auth|users|core)\./.test(row.model)
}

/** The container of records without one: --into, or an inventory named after the source. */
const inventory = ({ found, source, into }: Place): Pick<ImportItem, 'parent_external_id'> => ({
  parent_external_id: found.ensure({
    external_id: `inventory/${source}`,
    type_key: 'dcim.inventory',
    name: source,
    ...(into !== undefined && { parent_id: into.resource_id }),
  }),
})

/** The draft of a row by its model's entry in MODELS; a row without an entry is generic and keeps all its fields. */
export const plain = (row: Row, place: Place, taken: readonly string[] = []): Draft => {
  const model = MODELS[row.model]
  const links = (place.links.get(idOf(row)) ?? []).map((id) => ({ type_key: 'connects_to', target_external_id: id }))
  if (model === undefined)
    return {
      ...place.found.generic('netbox', row.model),
      ...inventory(place),
      read: textOf(row.fields.name) === undefined ? [] : ['name'],
      relationships: links,
    }
  const refs = { ...REFS, ...model.refs }
  const read = [...taken]
  const parent = (model.in ?? []).map((field) => [field, containerIn(row, field, refs, place)] as const)
  const [field, parent_external_id] = parent.find(([, id]) => id !== undefined) ?? []
  if (field !== undefined) read.push(...(field in refs ? [field] : [`${field}_type`, `${field}_id`, field]))
  const desired_state: Fields = { ...model.state }
  for (const [from, to] of Object.entries(model.members ?? {})) {
    const value = row.fields[from]
    if (isEmpty(value)) continue
    desired_state[to] = numberIn(to, value)
    read.push(from)
  }
  const shown = (model.name ?? ['name']).flatMap((name) => row.fields[name] ?? []).filter((part) => part !== '')
  const name = shown.length > 0 ? shown.join(' - ') : nameOf(row)
  const named = model.name === undefined || (model.name.length === 1 && name === row.fields[model.name[0] ?? ''])
  if (named) read.push(model.name?.[0] ?? 'name')
  return {
    type_key: model.type,
    name,
    ...(model.type === 'topology.region' ? {} : parent_external_id ? { parent_external_id } : inventory(place)),
    desired_state,
    read,
    refs: model.refs,
    relationships: links,
  }
}

const containerIn = (row: Row, field: string, refs: Record<string, string>, place: Place): string | undefined => {
  const model = refs[field]
  const value = row.fields[field]
  const id = model === undefined ? pairOf(row.fields, field, place) : `${model}/${String(value)}`
  return id !== undefined && id !== idOf(row) && isItem(id, place) ? id : undefined
}

/** Decimals are texts in dumps. */
const NUMBERS = /^(height_u|weight|length|maximum_draw|allocated_draw|available_power|voltage|amperage)$/
const numberIn = (member: string, value: unknown): unknown =>
  NUMBERS.test(member) && typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value
