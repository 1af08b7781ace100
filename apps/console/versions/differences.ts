import type { FieldChange, Resource } from '../api/types.ts'
import { tCatalog } from '../words/catalog.ts'

/** Fields that count versions or are derived from other fields: two versions always differ in them, or never. */
const COUNTERS = [
  ...['resource_id', 'type_key', 'version', 'generation', 'observed_generation', 'change_token', 'historical'],
  ...['created_at', 'created_by', 'updated_at', 'updated_by', 'last_operation', 'drift', 'scope', 'conditions'],
  ...['health_status', 'health_revision', 'health_reason'],
]

/** The differing fields of two states of a resource; without an earlier state, all fields are new. Pure. */
export const differencesOf = (before: Partial<Resource> | undefined, after: Partial<Resource>): FieldChange[] => {
  const told = (state: Partial<Resource> = {}) =>
    Object.fromEntries(Object.entries(state).filter(([member]) => !COUNTERS.includes(member)))
  return differ('', told(before), told(after))
}

const differ = (path: string, before: unknown, after: unknown): FieldChange[] => {
  if (isObject(before) || isObject(after)) {
    const [a, b] = [isObject(before) ? before : {}, isObject(after) ? after : {}]
    return [...new Set([...Object.keys(a), ...Object.keys(b)])]
      .sort()
      .flatMap((name) => differ(`${path}/${name}`, a[name], b[name]))
  }
  const [was, is] = [before ?? null, after ?? null]
  return JSON.stringify(was) === JSON.stringify(is) ? [] : [{ path, before: was, after: is }]
}

const WORDS = tCatalog.resource.versions.fields

/** The pointer with its first member in words. Deeper members are keys of a type's schema, or of the resource. */
export const worded = (path: string): string =>
  path.replace(/^\/([^/]+)/, (whole, member: string) => (Object.hasOwn(WORDS, member) ? `/${WORDS[member]}` : whole))

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
