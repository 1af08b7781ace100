import type { ImportItem } from '../../shared/contracts/imports/imports.ts'
import type { Ledger } from './loss.ts'
import { SourceError } from './source.ts'

/** The items that a reader makes of a file, and the ledger of everything that is not in them. */
export type Found = {
  items: ImportItem[]
  /** How many items there are of each kind without a rule. */
  generic: Map<string, number>
  /** The row or object that each item comes from: its kind in the file and its fields. */
  origins: Map<string, { kind: string; fields: Fields }>
  ledger: Ledger
  notes: string[]
}
export type Container = { resource_id: string; type_key: string }
export type Options = {
  /** Names the source; ids are unique in it. */
  source: string
  /** The container for items that have none. */
  into: Container | undefined
}
export type Reader = (documents: readonly unknown[], options: Options) => Found

export type Fields = Record<string, unknown>
export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {})
export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined
/** A count that the source writes as a number or as text. */
export const wholeOf = (value: unknown): number | undefined => {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined
}
export const positiveOf = (value: unknown): number | undefined => wholeOf(value) || undefined

/** Only the members that have a value, so that members absent from the source stay as they are. */
export const some = (members: Fields): Fields =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== null))

const LABEL = /^[A-Za-z0-9._-]{0,63}$/
const LABEL_KEY = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*\/)?[A-Za-z0-9._-]{1,63}$/

/** Whether a field holds no value, which equals a missing field. */
export const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  (Array.isArray(value) && value.length === 0) ||
  (isFields(value) && Object.keys(value).length === 0)
export const isLabelKey = (key: string): boolean => LABEL_KEY.test(key)

/** Tags as labels. A value that fits none becomes an annotation; tags whose key fits none share one, as JSON. */
export const marksOf = (marks: unknown, others = 'signalbox/marks'): Pick<ImportItem, 'labels' | 'annotations'> => {
  const pairs = Object.entries(fieldsOf(marks)).filter(([, value]) => value !== undefined && value !== null)
  const isLabel = ([key, value]: [string, unknown]) =>
    LABEL_KEY.test(key) && typeof value === 'string' && LABEL.test(value)
  const labels = pairs.filter(isLabel).slice(0, MAX_LABELS)
  const there = new Set(labels.map(([key]) => key))
  const rest = pairs.filter(([key]) => !there.has(key))
  const isNote = ([key, value]: [string, unknown]) => LABEL_KEY.test(key) && typeof value === 'string'
  const notes = rest.filter(isNote)
  const strange = rest.filter((pair) => !isNote(pair))
  if (strange.length > 0) notes.push([others, JSON.stringify(Object.fromEntries(strange))])
  return {
    ...(labels.length > 0 && { labels: Object.fromEntries(labels) as Record<string, string> }),
    ...(notes.length > 0 && { annotations: Object.fromEntries(notes) as Record<string, string> }),
  }
}
/** A resource has at most 64 labels; importers add some themselves. */
const MAX_LABELS = 50

export const labelOf = (text: string): string => text.replaceAll(/[^A-Za-z0-9._-]+/g, '-').slice(0, 63)

/**
 * Orders items with containers before their contents, and targets of edges before the items that name them unless a
 * cycle forbids it. A cycle of containers is a mistake in the file.
 */
export const containersFirst = (items: readonly ImportItem[]): ImportItem[] => {
  const byId = new Map(items.map((item) => [item.external_id, item]))
  refuseCircles(items, byId)
  const sorted = new Set<ImportItem>()
  const open = new Set<ImportItem>()
  const parentOf = ({ parent_external_id = '' }: ImportItem) => byId.get(parent_external_id)
  const isFree = (item: ImportItem): boolean => {
    for (let at: ImportItem | undefined = item; at; at = parentOf(at)) if (open.has(at)) return false
    return true
  }
  for (const first of items) {
    const stack = [first]
    for (let item = stack.at(-1); item; item = stack.at(-1)) {
      if (sorted.has(item)) stack.pop()
      else if (open.has(item)) {
        open.delete(item)
        sorted.add(item)
        stack.pop()
      } else {
        const parent = parentOf(item)
        if (parent && !sorted.has(parent)) {
          stack.push(parent)
          continue
        }
        open.add(item)
        for (const { target_external_id: id = '' } of item.relationships ?? []) {
          const target = byId.get(id)
          if (target && !sorted.has(target) && isFree(target)) stack.push(target)
        }
      }
    }
  }
  return [...sorted]
}

const refuseCircles = (items: readonly ImportItem[], byId: ReadonlyMap<string, ImportItem>): void => {
  const fine = new Set<string>()
  for (const item of items) {
    const way: string[] = []
    for (let at: ImportItem | undefined = item; at && !fine.has(at.external_id); ) {
      way.push(at.external_id)
      if (way.length > items.length) throw new SourceError(`${item.external_id} contains itself`)
      at = byId.get(at.parent_external_id ?? '')
    }
    for (const id of way) fine.add(id)
  }
}
