/** How well a text matches the typed one: by id, beginning, a word or a part of it; otherwise `undefined`. Pure. */
export const rankOf = (typed: string, text: string, id = ''): number | undefined => {
  const [q, inside] = [typed.toLowerCase(), text.toLowerCase()]
  if (q.length > 3 && id.toLowerCase().endsWith(q)) return 0
  if (inside.startsWith(q)) return 1
  if (inside.split(/[^\p{L}\p{N}]+/u).some((word) => word.startsWith(q))) return 2
  return inside.includes(q) ? 3 : undefined
}

/** The matching items, best first; equal ones keep their order. Pure. */
export const ranked = <T>(
  typed: string,
  all: readonly T[],
  textOf: (one: T) => [text: string, id: string | undefined],
): T[] =>
  all
    .flatMap((one) => {
      const rank = rankOf(typed, ...textOf(one))
      return rank === undefined ? [] : [{ one, rank }]
    })
    .sort((a, b) => a.rank - b.rank)
    .map(({ one }) => one)

const SIGNS = { '>': 'actions', '#': 'nodes', ':': 'line' } as const
type Only = (typeof SIGNS)[keyof typeof SIGNS]

/** The scope of the search: everything; or, by the first character, only actions, nodes or a line of the log. Pure. */
export const askedFor = (typed: string): { only?: Only; q: string } => {
  const only = SIGNS[typed.charAt(0) as keyof typeof SIGNS]
  return only === undefined ? { q: typed } : { only, q: typed.slice(1).trim() }
}
