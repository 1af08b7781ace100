/** JSON pointers (RFC 6901) and merge patches (RFC 7396) over plain JSON. */
type Members = Record<string, unknown>

export const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const pointerOf = (...tokens: (string | number)[]): string =>
  tokens.map((token) => `/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

export const tokensOf = (pointer: string): string[] =>
  pointer === ''
    ? []
    : pointer
        .slice(1)
        .split('/')
        .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))

/** What stands at the pointer; `undefined` when nothing does. Only own members count. */
export const readPointer = (document: unknown, pointer: string): unknown => {
  let at: unknown = document
  for (const token of tokensOf(pointer)) {
    if (Array.isArray(at)) at = /^(0|[1-9]\d*)$/.test(token) ? at[Number(token)] : undefined
    else if (isObject(at) && Object.hasOwn(at, token)) at = at[token]
    else return undefined
  }
  return at
}

/** The target after the patch: null removes a member, an object is merged, anything else replaces. Changes nothing in place. */
export const mergePatch = (target: unknown, patch: unknown): unknown => {
  if (!isObject(patch)) return patch
  const result: Members = isObject(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else Object.defineProperty(result, key, { ...OWN, value: mergePatch(own(result, key), value) })
  }
  return result
}

/** The merge patch that makes one document of another. A null in the second cannot be told by a patch and is left out. */
export const mergePatchOf = (before: unknown, after: unknown): unknown => {
  if (!isObject(before) || !isObject(after)) return after
  const patch: Members = {}
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, now] = [own(before, key), own(after, key)]
    if (JSON.stringify(old) === JSON.stringify(now)) continue
    Object.defineProperty(patch, key, { ...OWN, value: now === undefined ? null : mergePatchOf(old, now) })
  }
  return patch
}

const OWN = { enumerable: true, configurable: true, writable: true }
const own = (members: Members, key: string): unknown => (Object.hasOwn(members, key) ? members[key] : undefined)
