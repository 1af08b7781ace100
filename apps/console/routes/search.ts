/** Parsers of search parameters: an unknown value is left out or replaced by its default. */
export const text = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : ''
export const oneOf = <T extends string>(value: unknown, words: readonly T[], otherwise: T): T =>
  words.includes(value as T) ? (value as T) : otherwise
/** The texts among these parameters; an empty one is left out. */
export const texts = <K extends string>(search: Record<string, unknown>, ...names: K[]) =>
  Object.fromEntries(names.map((name) => [name, text(search[name])]).filter(([, value]) => value !== '')) as {
    [name in K]?: string
  }
export const whole = (value: unknown): number | undefined => {
  const number = Number(value)
  return Number.isSafeInteger(number) && number > 0 ? number : undefined
}

const instant = (value: unknown): string | undefined => {
  const at = Date.parse(text(value))
  return Number.isNaN(at) ? undefined : new Date(at).toISOString()
}
/** The start and end of a time span; invalid times are left out. */
export const spanSearch = (search: Record<string, unknown>): { from?: string; to?: string } => {
  const [from, to] = [instant(search.from), instant(search.to)]
  return { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }
}

/** How a graph is shown, and the selection in it. */
export type DrawnSearch = { view?: 'list' | 'drawing' | 'matrix'; node?: string; gate?: string }
export const drawnSearch = (search: Record<string, unknown>): DrawnSearch => ({
  ...(search.view === 'list' || search.view === 'drawing' || search.view === 'matrix' ? { view: search.view } : {}),
  ...texts(search, 'node', 'gate'),
})

/** Which events and rows of a timeline are shown, and which node is explained. */
export type TimelineSearch = {
  kinds?: 'people' | 'problems' | undefined
  rows?: 'path' | undefined
  why?: string | undefined
  /** The visible time span. */
  from?: string | undefined
  to?: string | undefined
}
export const timelineSearch = (search: Record<string, unknown>): TimelineSearch => ({
  ...(search.kinds === 'people' || search.kinds === 'problems' ? { kinds: search.kinds } : {}),
  ...(search.rows === 'path' ? { rows: search.rows } : {}),
  ...texts(search, 'why'),
  ...spanSearch(search),
})
