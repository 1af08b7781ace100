import { timingSafeEqual } from 'node:crypto'
import { canonicalJson, hmacSha256, sha256Hex } from '../data/digest.ts'
import { AppError, type CodeOf } from '../errors.ts'

type Key = (string | null)[]
type Content = { l: string; k: Key; u?: string; b?: 1 }
/** Where a page starts: after the row with this key, or before it (`back`); without a key, at an end of the list. */
export type Place = { key: Key | undefined; back: boolean }

const SIGNATURE_BYTES = 16
const invalid = (code: CodeOf<'validation_error'>, detail: string) =>
  new AppError('validation_error', code, detail, { hint: 'Start again at the first page, without page_token.' })

/**
 * Page tokens: the last key, signed, and bound to their list (its route, filters and order) and to the caller, if one
 * is given. No one can forge one, and none continues another list. The first key signs, all verify. They never expire.
 */
export const createPages = (keys: readonly [Buffer, ...Buffer[]]) => {
  const signed = (key: Buffer, text: string) =>
    `${text}.${hmacSha256(key, text).subarray(0, SIGNATURE_BYTES).toString('base64url')}`
  const nameOf = (list: unknown) => sha256Hex(canonicalJson(list)).slice(0, 16)
  const write = (content: Content) => signed(keys[0], Buffer.from(JSON.stringify(content)).toString('base64url'))

  /** Returns where the page of a token starts; without a token, the first page. */
  const place = (token: string | undefined, list: unknown, caller?: string): Place => {
    if (token === undefined) return { key: undefined, back: false }
    const [text = ''] = token.split('.', 1)
    // Compared as text: several texts decode to the same bytes.
    const given = Buffer.from(token)
    const genuine = keys.some((key) => {
      const made = Buffer.from(signed(key, text))
      return made.length === given.length && timingSafeEqual(made, given)
    })
    if (!genuine) throw invalid('page_token_invalid', 'The page_token is invalid.')
    const content = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Content
    if (content.u !== caller) throw invalid('page_token_invalid', 'The page_token belongs to another caller.')
    if (content.l !== nameOf(list))
      throw invalid('page_token_mismatch', 'The page_token belongs to another list, filter or order.')
    return { key: content.k, back: content.b === 1 }
  }

  return {
    place,
    /** Creates many tokens for one list and caller; their common part is computed once. */
    writer: (list: unknown, caller: string): ((key: Key) => string) => {
      const name = nameOf(list)
      return (key) => write({ l: name, k: key, u: caller })
    },
    /** Returns the key after which a page starts, for a list that only goes forward; `undefined` for the first page. */
    after: (token: string | undefined, list: unknown): Key | undefined => place(token, list).key,
    /** Cuts a result of `page_size + 1` rows to the page and creates the token of the next one. */
    cut: <R>(rows: R[], page_size: number, list: unknown, keyOf: (row: R) => Key) => {
      const items = rows.slice(0, page_size)
      const last = items.at(-1)
      if (rows.length <= page_size || last === undefined) return { items, next_page_token: null }
      return { items, next_page_token: write({ l: nameOf(list), k: keyOf(last) }) }
    },
    /**
     * Cuts a result of `page_size + 1` rows, read from a place in its direction (nearest first), to a page in the
     * list's order, with tokens both ways. `stopped`: where reading ended before the page was full, to continue there.
     */
    turn: <R>(
      rows: readonly R[],
      page: { size: number; place: Place; list: unknown; caller: string; keyOf: (row: R) => Key; stopped?: Key },
    ) => {
      const { size, place, list, caller, keyOf, stopped } = page
      const items = rows.slice(0, size)
      if (place.back) items.reverse()
      const more = rows.length > size
      const token = (row: R | undefined, back: boolean, key = row && keyOf(row)) =>
        key === undefined ? null : write({ l: nameOf(list), k: key, u: caller, ...(back && { b: 1 as const }) })
      const came = place.key !== undefined
      const [first, last] = [items[0], items.at(-1)]
      const onward = (row: R | undefined) =>
        more ? token(row, place.back) : stopped ? token(undefined, place.back, stopped) : null
      const backward = (row: R | undefined) =>
        came ? token(row, !place.back, row === undefined ? stopped : keyOf(row)) : null
      return {
        items,
        next_page_token: place.back ? backward(last) : onward(last),
        prev_page_token: place.back ? onward(first) : backward(first),
      }
    },
  }
}
export type Pages = ReturnType<typeof createPages>

/** Returns the rows of a sorted list from which a page is cut, at most `size + 1`, nearest to its place first. */
export const rowsFrom = <R>(
  sorted: readonly R[],
  { key, back }: Place,
  size: number,
  compare: (row: R, key: Key) => number,
): R[] => {
  const rows = back ? [...sorted].reverse() : sorted
  return rows
    .filter((row) => key === undefined || (back ? compare(row, key) < 0 : compare(row, key) > 0))
    .slice(0, size + 1)
}
