const HALF = /^h([12])\.([0-9a-f-]{36})\.([0-9a-f-]{36})\.([A-Za-z0-9_-]{43})$/

/** Whether this is half of an enrolment token, which is useless alone. */
export const isHalf = (text: string): boolean => HALF.test(text)

/** Joins the two halves of an enrolment token, in either order; `undefined` unless they belong together. */
export const joinHalves = (one: string, other: string): string | undefined => {
  const [a, b] = [HALF.exec(one), HALF.exec(other)]
  if (!a || !b || a[1] === b[1] || a[2] !== b[2] || a[3] !== b[3]) return undefined
  const [left, right] = [bytesOf(a[4] ?? ''), bytesOf(b[4] ?? '')]
  return `e1.${a[2]}.${a[3]}.${textOf(left.map((byte, at) => byte ^ (right[at] ?? 0)))}`
}

const bytesOf = (text: string): number[] =>
  [...atob(text.replaceAll('-', '+').replaceAll('_', '/'))].map((character) => character.charCodeAt(0))
const textOf = (bytes: readonly number[]): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
