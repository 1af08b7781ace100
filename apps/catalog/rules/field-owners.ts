import { AppError } from '../../shared/errors.ts'
import { changedPaths, escapeToken, fewPaths, isObject, type JsonObject, valueAt } from '../document/pointers.ts'

/** Who last set which field (catalog.md 7.4, "Owners of fields"): managers by pointer; "" covers all other fields. */
export type Owners = Record<string, string>
type Owned = Record<(typeof FIELDS)[number], unknown>

const FIELDS = ['display_name', 'owner', 'labels', 'annotations', 'desired_state'] as const
/** Importers' marks on their resources, which nobody owns. */
const MARK = /^\/(labels|annotations)\/signalbox~1/
const MAX_ENTRIES = 500
const MAX_CONFLICTS = 100

/** The manager of a field; `undefined` if it was set before owners were recorded. */
const ownerOf = (owners: Owners, path: string): string | undefined => {
  for (let at = path; ; at = at.slice(0, at.lastIndexOf('/'))) {
    if (Object.hasOwn(owners, at)) return owners[at]
    if (at === '') return undefined
  }
}
export const owns = (owners: Owners, path: string, manager: string): boolean => ownerOf(owners, path) === manager
const below = (owners: Owners, path: string): string[] => Object.keys(owners).filter((at) => at.startsWith(`${path}/`))
const fieldsOf = (row: Owned): JsonObject =>
  Object.fromEntries(FIELDS.flatMap((name) => (row[name] === null ? [] : [[name, row[name]]]))) as JsonObject

/** The owners after a change: each changed field belongs to the manager who changed it. */
export const ownersAfter = (row: Owned & { field_owners: Owners }, change: Partial<Owned>, manager: string): Owners => {
  const after = fieldsOf({ ...row, ...change })
  const next = { ...row.field_owners }
  for (const path of fewPaths(changedPaths(fieldsOf(row), after))) {
    for (const at of [path, ...below(next, path)]) delete next[at]
    if (!MARK.test(path) && ownerOf(next, path) !== manager) next[path] = manager
  }
  // Removed fields are dropped first.
  if (Object.keys(next).length > MAX_ENTRIES)
    for (const path of Object.keys(next)) if (valueAt(after, path) === undefined) delete next[path]
  return next
}

/** Refuses a change to fields that other managers set to other values: 409, with the fields and their owners. */
export const refuseOwned = (
  row: Owned & { field_owners: Owners; resource_id: string },
  change: Partial<Owned>,
  manager: string,
): void => {
  const { field_owners: owners } = row
  const before = fieldsOf(row)
  const conflicts = changedPaths(before, fieldsOf({ ...row, ...change })).flatMap((path) => {
    if (MARK.test(path)) return []
    const there = valueAt(before, path) !== undefined
    const own = there ? ownerOf(owners, path) : Object.hasOwn(owners, path) ? owners[path] : undefined
    const inside = there ? below(owners, path).map((at) => ({ path: at, owner: owners[at] })) : []
    return [{ path, owner: own }, ...inside].filter(({ owner }) => owner !== undefined && owner !== manager)
  })
  ownedByOthers(row.resource_id, conflicts)
}

/** Throws a 409 with the fields that others own, if there are any. */
export const ownedByOthers = (
  existing_resource_id: string,
  conflicts: readonly { path: string; owner: string | undefined }[],
): void => {
  if (conflicts.length === 0) return
  const named = conflicts.slice(0, 3).map(({ path, owner }) => `${path} (${owner})`)
  const more = conflicts.length > named.length ? ` and ${conflicts.length - named.length} more` : ''
  throw new AppError(
    'version_conflict',
    'field_owned',
    `Other managers set different values: ${named.join(', ')}${more}.`,
    { extra: { existing_resource_id, conflicts: conflicts.slice(0, MAX_CONFLICTS), conflict_count: conflicts.length } },
  )
}

/** A merge patch that removes values that this manager stated before and no longer states. */
export const unstated = (
  owners: Owners,
  manager: string,
  before: JsonObject,
  stated: JsonObject,
  at = '',
): JsonObject => {
  const patch: JsonObject = {}
  for (const [key, value] of Object.entries(before)) {
    const path = `${at}/${escapeToken(key)}`
    const now = Object.hasOwn(stated, key) ? stated[key] : undefined
    const own = ownerOf(owners, path) === manager && !MARK.test(path)
    const whole = own && below(owners, path).every((other) => owners[other] === manager)
    if (now === undefined && whole && at !== '') patch[key] = null
    else if (isObject(value) && (now === undefined || isObject(now))) {
      const inner = unstated(owners, manager, value, now ?? {}, path)
      if (Object.keys(inner).length > 0) patch[key] = inner
    }
  }
  return patch
}
