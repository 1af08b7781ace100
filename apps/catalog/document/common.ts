import { equalJson } from '../../shared/data/pointer.ts'
import { isObject, type JsonObject, valueAt } from './pointers.ts'

export type Drift = { status: 'in_sync' | 'drifted' | 'unknown'; paths: string[] }

const MAX_PATHS = 50

/** Compares desired and observed state at the type's paths; `unknown` while none of them was observed. */
export const driftOf = (paths: readonly string[], desired: JsonObject, observed: JsonObject): Drift => {
  if (paths.every((path) => valueAt(observed, path) === undefined)) return { status: 'unknown', paths: [] }
  const differing = paths.filter((path) => !equalJson(valueAt(desired, path), valueAt(observed, path)))
  return { status: differing.length === 0 ? 'in_sync' : 'drifted', paths: differing.slice(0, MAX_PATHS) }
}

type Schema = { properties?: Record<string, Schema> }

/** Leaf pointers that both schemas name; drift compares these if the type names no paths. */
export const commonLeaves = (desired: Schema, observed: Schema, at = ''): string[] => {
  const names = Object.keys(desired.properties ?? {}).filter((name) => Object.hasOwn(observed.properties ?? {}, name))
  return names.sort().flatMap((name) => {
    const [a, b] = [desired.properties?.[name], observed.properties?.[name]]
    if (!isObject(a) || !isObject(b)) return []
    const pointer = `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    return a.properties || b.properties ? commonLeaves(a as Schema, b as Schema, pointer) : [pointer]
  })
}
