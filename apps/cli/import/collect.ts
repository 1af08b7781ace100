import type { ImportItem } from '../../shared/contracts/imports/imports.ts'
import { fitted } from './fit.ts'
import type { Fields, Found } from './items.ts'
import { createLedger } from './loss.ts'
import { SourceError } from './source.ts'

/** How many relations the catalog accepts per item. */
const MAX_EDGES = 100

/** Gathers items and the ledger of the rest while a reader goes through its file. */
export const collect = () => {
  const items = new Map<string, ImportItem>()
  const ledger = createLedger()
  const generic = new Map<string, number>()
  const notes = new Set<string>()
  const origins: Found['origins'] = new Map()
  let origin: { kind: string; fields: Fields } | undefined
  return {
    ledger,
    /** Names the row or object that the next items come from. */
    from: (kind: string, fields: Fields): void => {
      origin = { kind, fields }
    },
    /** Throws if the id already exists, because the file does not say which item is meant. */
    add: (item: ImportItem): void => {
      if (items.has(item.external_id)) throw new SourceError(`it contains ${item.external_id} twice`)
      const { relationships = [], external_id } = item
      for (const { type_key, target_external_id: to } of relationships.slice(MAX_EDGES)) {
        const reason = `an item has at most ${MAX_EDGES} relations`
        ledger.field('lost', origin?.kind ?? item.type_key, type_key, reason, `${external_id} > ${to}`)
      }
      const fits = relationships.length <= MAX_EDGES
      const bounded = fits ? item : { ...item, relationships: relationships.slice(0, MAX_EDGES) }
      items.set(external_id, fitted(bounded, origin?.kind ?? item.type_key, ledger))
      if (origin) origins.set(item.external_id, origin)
    },
    /** Adds a container that many items name; only the first call adds it. */
    ensure: (item: ImportItem): string => {
      if (!items.has(item.external_id)) items.set(item.external_id, fitted(item, item.type_key, ledger))
      return item.external_id
    },
    skip: (kind: string, reason: string): void => ledger.leaveOut(kind, reason),
    /** Records a whole row that becomes no item although it should. */
    lose: (kind: string, reason: string): void => ledger.leaveOut(kind, reason, { lost: true }),
    /** The type and kind of an item whose kind has no rule; its fields are kept in attributes. */
    generic: (provider: string, kind: string): Pick<ImportItem, 'type_key' | 'desired_state'> => {
      generic.set(kind, (generic.get(kind) ?? 0) + 1)
      return { type_key: 'infra.generic', desired_state: { provider: provider.slice(0, 63), kind: kind.slice(0, 128) } }
    },
    note: (text: string): void => void notes.add(text),
    done: (): Found => ({ items: unique([...items.values()]), generic, origins, ledger, notes: [...notes] }),
  }
}
export type Collected = ReturnType<typeof collect>

/** Names are unique in a container and type: a later namesake gets its id appended and keeps its name for display. */
const unique = (items: ImportItem[]): ImportItem[] => {
  const taken = new Set<string>()
  return items.map((item) => {
    const at = [item.type_key, item.parent_external_id, item.parent_id]
    const key = JSON.stringify([...at, item.name.normalize('NFC')])
    if (!taken.has(key)) {
      taken.add(key)
      return item
    }
    const other = renamed(item)
    taken.add(JSON.stringify([...at, other.name]))
    return other
  })
}

/** The item under a name that its id makes its own; the given one is displayed. */
export const renamed = (item: ImportItem): ImportItem => ({
  ...item,
  name: `${item.name.slice(0, 120)} (${item.external_id})`.slice(0, 253),
  display_name: item.display_name ?? item.name,
})
