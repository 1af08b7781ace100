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

const OWN = { enumerable: true, configurable: true, writable: true }
const own = (members: Members, key: string): unknown => (Object.hasOwn(members, key) ? members[key] : undefined)
