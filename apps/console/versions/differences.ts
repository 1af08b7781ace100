import type { FieldChange, Resource } from '../api/types.ts'

/** What counts the versions themselves, or is derived from others: two versions always differ in it, or never. */
const COUNTERS = [
  ...['resource_id', 'type_key', 'version', 'generation', 'observed_generation', 'change_token', 'historical'],
  ...['created_at', 'created_by', 'updated_at', 'updated_by', 'last_operation', 'drift', 'scope', 'conditions'],
  ...['health_status', 'health_revision', 'health_reason'],
]

/** Field by field what differs between two states of a resource; without an earlier one, all of it is new. Pure. */
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

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
