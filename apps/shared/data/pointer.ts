/** JSON pointers (RFC 6901) over plain JSON. */
type Members = Record<string, unknown>

export const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Parses a text as a JSON object; `undefined` if it is none. */
export const objectIn = (text: string, parse: (text: string) => unknown = JSON.parse): Members | undefined => {
  try {
    const value = parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

export const pointerOf = (...tokens: (string | number)[]): string =>
  tokens.map((token) => `/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

export const tokensOf = (pointer: string): string[] =>
  pointer === ''
    ? []
    : pointer
        .slice(1)
        .split('/')
        .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))

/** Returns the value at the pointer, or `undefined`. Only own members count. */
export const readPointer = (document: unknown, pointer: string): unknown => {
  let at: unknown = document
  for (const token of tokensOf(pointer)) {
    if (Array.isArray(at)) at = /^(0|[1-9]\d*)$/.test(token) ? at[Number(token)] : undefined
    else if (isObject(at) && Object.hasOwn(at, token)) at = at[token]
    else return undefined
  }
  return at
}

type Lines = { linePos: (offset: number) => { line: number; col: number } }
/** Returns line and column of a member in its YAML source; for a missing member, those of the object that lacks it. */
export const placeIn = (
  document: { getIn: (path: unknown[], keep: true) => unknown },
  lines: Lines,
  path: readonly (string | number)[],
): { line: number; column: number } => {
  for (let length = path.length; length >= 0; length--) {
    const node = document.getIn(path.slice(0, length), true) as { range?: [number, number, number] } | undefined
    if (!node?.range) continue
    const { line, col } = lines.linePos(node.range[0])
    return { line, column: col }
  }
  return { line: 1, column: 1 }
}

/** Deep equality of JSON values; member order does not matter. */
export const equalJson = (a: unknown, b: unknown): boolean => {
  if (a === b) return true
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) &&
      Array.isArray(b) &&
      a.length === b.length &&
      a.every((item, index) => equalJson(item, b[index]))
    )
  }
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && equalJson(a[key], b[key]))
  )
}
