import type { ImportItem } from '../../shared/contracts/catalog/imports.ts'
import { SourceError } from './source.ts'

/** What a reader makes of a file: items for the catalog, how many of which kinds no rule knows, and what it left out. */
export type Found = {
  items: ImportItem[]
  generic: Map<string, number>
  /** Of each item, what stands for it in the file: its kind there and its fields. */
  origins: Map<string, { kind: string; fields: Fields }>
  skipped: Map<string, number>
  notes: string[]
}
export type Container = { resource_id: string; type_key: string }
export type Options = {
  /** Names the source; ids are unique in it. */
  source: string
  /** The resource into which goes what has no container of its own. */
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

/** Only the members that have a value: what a source does not say stays as it is. */
export const some = (members: Fields): Fields =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== null))

const LABEL = /^[A-Za-z0-9._-]{0,63}$/
const LABEL_KEY = /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9._-]{1,63}$/

/** Marks of a source as labels; what does not fit a label becomes an annotation, and what fits neither is left out. */
export const marksOf = (marks: unknown): Pick<ImportItem, 'labels' | 'annotations'> => {
  const pairs = Object.entries(fieldsOf(marks)).filter(
    (pair): pair is [string, string] => LABEL_KEY.test(pair[0]) && typeof pair[1] === 'string',
  )
  const labels = pairs.filter(([, value]) => LABEL.test(value)).slice(0, 50)
  const annotations = pairs.filter(([, value]) => !LABEL.test(value) && value.length <= 1024).slice(0, 16)
  return {
    ...(labels.length > 0 && { labels: Object.fromEntries(labels) }),
    ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }),
  }
}

/** Any name as a label value. */
export const labelOf = (text: string): string => text.replaceAll(/[^A-Za-z0-9._-]+/g, '-').slice(0, 63)

export const collect = () => {
  const items = new Map<string, ImportItem>()
  const skipped = new Map<string, number>()
  const generic = new Map<string, number>()
  const notes: string[] = []
  const origins: Found['origins'] = new Map()
  let origin: { kind: string; fields: Fields } | undefined
  const count = (kinds: Map<string, number>, kind: string) => void kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  return {
    /** What is added from here on stands for this. */
    from: (kind: string, fields: Fields): void => {
      origin = { kind, fields }
    },
    /** Twice the same id is a mistake in the file, and no guess which of them is meant. */
    add: (item: ImportItem): void => {
      if (items.has(item.external_id)) throw new SourceError(`${item.external_id} is in it twice`)
      if (item.external_id.length > 512) throw new SourceError(`an id is too long: ${item.external_id.slice(0, 80)}…`)
      items.set(item.external_id, item)
      if (origin) origins.set(item.external_id, origin)
    },
    /** For containers that many name: the first makes it. */
    ensure: (item: ImportItem): string => {
      if (!items.has(item.external_id)) items.set(item.external_id, item)
      return item.external_id
    },
    skip: (kind: string): void => count(skipped, kind),
    /** For what no rule knows: that it exists, under its own name. Nothing else of it is read. */
    generic: (provider: string, kind: string): Pick<ImportItem, 'type_key' | 'desired_state'> => {
      count(generic, kind)
      return {
        type_key: 'infra.generic',
        desired_state: { provider: provider.slice(0, 63), kind: kind.slice(0, 128) },
      }
    },
    note: (text: string): void => void notes.push(text),
    done: (): Found => ({ items: [...items.values()], generic, origins, skipped, notes }),
  }
}
export type Collected = ReturnType<typeof collect>

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Items with containers before what they contain, those of one container side by side. A circle is a mistake in the file. */
export const containersFirst = (items: readonly ImportItem[]): ImportItem[] => {
  const byId = new Map(items.map((item) => [item.external_id, item]))
  const depths = new Map<string, number>()
  const depthOf = (item: ImportItem): number => {
    let depth = 0
    for (let at: ImportItem | undefined = item; at; at = byId.get(at.parent_external_id ?? '')) {
      const known = depths.get(at.external_id)
      if (known !== undefined) return depth + known
      if (++depth > items.length) throw new SourceError(`${item.external_id} contains itself`)
    }
    return depth
  }
  for (const item of items) depths.set(item.external_id, depthOf(item))
  return [...items].sort(
    (a, b) =>
      (depths.get(a.external_id) ?? 0) - (depths.get(b.external_id) ?? 0) ||
      compare(a.parent_external_id ?? '', b.parent_external_id ?? ''),
  )
}
