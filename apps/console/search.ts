/** Readers of search parameters: an unknown value is left out or replaced by its default. */
export const text = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : ''
export const oneOf = <T extends string>(value: unknown, words: readonly T[], otherwise: T): T =>
  words.includes(value as T) ? (value as T) : otherwise
export const whole = (value: unknown): number | undefined => {
  const number = Number(value)
  return Number.isSafeInteger(number) && number > 0 ? number : undefined
}

/** How a graph is shown, and what is selected in it. */
export type DrawnSearch = { view?: 'list' | 'drawing' | 'matrix'; node?: string; gate?: string }
export const drawnSearch = (search: Record<string, unknown>): DrawnSearch => ({
  ...(search.view === 'list' || search.view === 'drawing' || search.view === 'matrix' ? { view: search.view } : {}),
  ...(text(search.node) === '' ? {} : { node: text(search.node) }),
  ...(text(search.gate) === '' ? {} : { gate: text(search.gate) }),
})

/** Which events and rows of a timeline are shown, and which node is explained. */
export type TimelineSearch = {
  kinds?: 'people' | 'problems' | undefined
  rows?: 'path' | undefined
  why?: string | undefined
}
export const timelineSearch = (search: Record<string, unknown>): TimelineSearch => ({
  ...(search.kinds === 'people' || search.kinds === 'problems' ? { kinds: search.kinds } : {}),
  ...(search.rows === 'path' ? { rows: search.rows } : {}),
  ...(text(search.why) === '' ? {} : { why: text(search.why) }),
})
