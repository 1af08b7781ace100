import { equalJson, isObject } from './pointer.ts'

/** Merge patches (RFC 7396) over plain JSON. A member named `__proto__` stays an ordinary member. */
/** Returns a copy of the target with the patch: null removes a member, an object is merged, anything else replaces. */
export const mergePatch = (target: unknown, patch: unknown): unknown => {
  if (!isObject(patch)) return patch
  const result = new Map<string, unknown>(isObject(target) ? Object.entries(target) : [])
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key)
    else result.set(key, mergePatch(result.get(key), value))
  }
  return Object.fromEntries(result)
}

/** Returns the smallest merge patch from `before` to `after`. A patch cannot express a null in `after`: it removes. */
export const mergeDiff = <T>(before: Record<string, T>, after: Record<string, T>): Record<string, T | null> => {
  const patch = new Map<string, T | null>()
  for (const key of Object.keys(before)) if (!Object.hasOwn(after, key)) patch.set(key, null)
  for (const [key, value] of Object.entries(after)) {
    const old = Object.hasOwn(before, key) ? before[key] : undefined
    if (equalJson(old, value)) continue
    patch.set(key, isObject(old) && isObject(value) ? (mergeDiff(old, value) as T) : value)
  }
  return Object.fromEntries(patch)
}
