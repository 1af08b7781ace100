import { equalJson, isObject, pointerOf } from '../../../shared/data/pointer.ts'
import { parseExact } from '../../../shared/run/exact.ts'

/** One place in which an object differs. Items of a list are identified by name if they have one. */
export type Difference = { path: string; before?: unknown; after?: unknown }
export type Leaves = Map<string, unknown>
type Members = Record<string, unknown>
export type KubeObject = Members & {
  apiVersion: string
  kind: string
  metadata: Members & { name: string; namespace?: string }
}

const SERVER = ['managedFields', 'resourceVersion', 'generation', 'uid', 'creationTimestamp', 'selfLink']

/** An object without the members that only the server writes. */
export const bare = <T extends Members>({ status: _, ...object }: T): T => {
  const metadata = isObject(object.metadata) ? object.metadata : {}
  const kept = Object.entries(metadata).filter(([key]) => !SERVER.includes(key))
  return { ...object, metadata: Object.fromEntries(kept) } as unknown as T
}

/** The path segment for the order of named items. */
const ORDER = '*'

/** Every value of an object, by its path. */
export const leavesOf = (value: unknown): Leaves => {
  const leaves: Leaves = new Map()
  const walk = (path: string, at: unknown) => {
    if (at === null || at === undefined) return
    if (Array.isArray(at) && at.length > 0) {
      const names = namesOf(at)
      for (const [i, item] of at.entries()) walk(path + pointerOf(names?.[i] ?? i), item)
      if (names && names.length > 1) leaves.set(path + pointerOf(ORDER), names)
    } else if (isObject(at) && Object.keys(at).length > 0) {
      for (const [key, item] of Object.entries(at)) walk(path + pointerOf(key), item)
    } else leaves.set(path, at)
  }
  walk('', value)
  return leaves
}

const namesOf = (list: unknown[]): string[] | undefined => {
  const names = list.map((item) => (isObject(item) && typeof item.name === 'string' ? item.name : undefined))
  const all = names.filter((name) => name !== undefined && name !== ORDER)
  return all.length === list.length && new Set(all).size === list.length ? (all as string[]) : undefined
}

/** The differences between two objects. */
export const differences = (before: Leaves, after: Leaves): Difference[] => {
  const found: Difference[] = []
  for (const [path, value] of after)
    if (!before.has(path)) {
      if (!path.endsWith(pointerOf(ORDER))) found.push({ path, after: value })
    } else if (!same(path, before.get(path), value)) found.push({ path, before: before.get(path), after: value })
  for (const [path, value] of before)
    if (!after.has(path) && !path.endsWith(pointerOf(ORDER))) found.push({ path, before: value })
  return found.sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** An added or removed item is a separate difference, not one of the order. */
const same = (path: string, before: unknown, after: unknown): boolean => {
  if (!path.endsWith(pointerOf(ORDER)) || !Array.isArray(before) || !Array.isArray(after))
    return equalJson(before, after)
  const common = (a: unknown[], b: unknown[]) => a.filter((name) => b.includes(name))
  return equalJson(common(before, after), common(after, before))
}

type Owned = { [key: string]: Owned }

/** The fields that a manager has applied, as the server keeps them. */
export const ownedBy = (object: Members, manager: string): Owned | undefined => {
  const { managedFields } = object.metadata as Members
  const entries = (Array.isArray(managedFields) ? managedFields : []) as Members[]
  const own = entries.find((e) => e.manager === manager && e.operation === 'Apply' && e.subresource === undefined)
  return own?.fieldsV1 as Owned | undefined
}

export const eitherOf = (a: Owned = {}, b: Owned = {}): Owned =>
  Object.fromEntries([...new Set([...Object.keys(a), ...Object.keys(b)])].map((key) => [key, eitherOf(a[key], b[key])]))

/** The part of an object that these fields name, as a manifest that applies it. */
export const partOf = (object: KubeObject, owned: Owned): KubeObject => {
  const { apiVersion, kind, metadata } = object
  const part = project(bare(object), owned) as Members
  const { name, namespace } = metadata
  const own = { name, ...(namespace !== undefined && { namespace }) }
  return { ...part, apiVersion, kind, metadata: { ...(part.metadata as Members), ...own } }
}

const project = (value: unknown, owned: Owned): unknown => {
  const inner = Object.entries(owned).filter(([key]) => key !== '.')
  if (inner.length === 0) return Object.hasOwn(owned, '.') ? (Array.isArray(value) ? [] : {}) : value
  if (Array.isArray(value)) {
    return value.flatMap((item, i) => {
      for (const [key, more] of inner) {
        const what: unknown = parseExact(key.slice(2))
        if (key.startsWith('v:') && equalJson(what, item)) return [item]
        if (key.startsWith('i:') && what === i) return [project(item, more)]
        if (key.startsWith('k:') && isObject(what) && isObject(item) && fits(item, what))
          return [{ ...what, ...(project(item, more) as Members) }]
      }
      return []
    })
  }
  if (!isObject(value)) return value
  const members = inner.flatMap(([key, more]) => {
    const name = key.slice(2)
    return Object.hasOwn(value, name) ? [[name, project(value[name], more)] as const] : []
  })
  return Object.fromEntries(members)
}

const fits = (item: Members, keys: Members) => Object.entries(keys).every(([key, value]) => equalJson(item[key], value))
