import { equalJson, isObject, type Json, type JsonObject } from './pointers.ts'

/** RFC 7396. The target is never changed; members named `__proto__` stay ordinary members. */
export const mergePatch = (target: Json | undefined, patch: Json): Json => {
  if (!isObject(patch)) return patch
  const result = new Map<string, Json>(isObject(target) ? Object.entries(target) : [])
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key)
    else result.set(key, mergePatch(result.get(key), value))
  }
  return Object.fromEntries(result)
}

/** The smallest merge patch that turns `before` into `after`. Lossless, as stored documents hold no null. */
export const mergeDiff = (before: JsonObject, after: JsonObject): JsonObject => {
  const patch = new Map<string, Json>()
  for (const key of Object.keys(before)) if (!Object.hasOwn(after, key)) patch.set(key, null)
  for (const [key, value] of Object.entries(after)) {
    const old = Object.hasOwn(before, key) ? before[key] : undefined
    if (equalJson(old, value)) continue
    patch.set(key, isObject(old) && isObject(value) ? mergeDiff(old, value) : value)
  }
  return Object.fromEntries(patch)
}
