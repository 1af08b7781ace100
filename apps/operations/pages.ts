import { timingSafeEqual } from 'node:crypto'
import { canonicalJson, hmacSha256, sha256Hex } from '../shared/digest.ts'
import { AppError } from '../shared/errors.ts'

/** The last key of a page as text, and how many rows the page may have. */
export type PageRequest = { page_size?: number; page_token?: string }
type Content = { l: string; k: (string | null)[] }

const SIGNATURE_BYTES = 16
const invalid = (code: string, detail: string) =>
  new AppError('validation_error', code, detail, { hint: 'Start again at the first page, without page_token.' })

/**
 * Page tokens: the last key, signed, and bound to the list they were made for (its route, filters and order), so that
 * nobody can build one and none continues another list. The first key signs, all verify.
 */
export const createPages = (keys: readonly [Buffer, ...Buffer[]]) => {
  const sign = (key: Buffer, text: string) => hmacSha256(key, text).subarray(0, SIGNATURE_BYTES)
  const nameOf = (list: unknown) => sha256Hex(canonicalJson(list)).slice(0, 16)

  return {
    /** The key after which the page starts; undefined for the first page. */
    after: (token: string | undefined, list: unknown): (string | null)[] | undefined => {
      if (token === undefined) return undefined
      const [text = '', signature = ''] = token.split('.')
      const given = Buffer.from(signature, 'base64url')
      const genuine = given.length === SIGNATURE_BYTES && keys.some((key) => timingSafeEqual(sign(key, text), given))
      if (!genuine) throw invalid('page_token_invalid', 'The page_token is not one of ours.')
      const content = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Content
      if (content.l !== nameOf(list))
        throw invalid('page_token_mismatch', 'The page_token belongs to another list, filter or order.')
      return content.k
    },
    /**
     * Cuts a result of `page_size + 1` rows to the page and makes the token of the next one.
     */
    cut: <R>(rows: R[], page_size: number, list: unknown, keyOf: (row: R) => (string | null)[]) => {
      const items = rows.slice(0, page_size)
      const last = items.at(-1)
      if (rows.length <= page_size || last === undefined) return { items, next_page_token: null }
      const content: Content = { l: nameOf(list), k: keyOf(last) }
      const text = Buffer.from(JSON.stringify(content)).toString('base64url')
      return { items, next_page_token: `${text}.${sign(keys[0], text).toString('base64url')}` }
    },
  }
}
export type Pages = ReturnType<typeof createPages>
