import { timingSafeEqual } from 'node:crypto'
import { canonicalJson, hmacSha256, sha256Hex } from '../shared/digest.ts'
import { AppError } from '../shared/errors.ts'

type Content = { list: string; user: string; keys: string[] }

const SIGNATURE_BYTES = 16

const invalid = (code: string, detail: string) =>
  new AppError('validation_error', code, detail, { hint: 'Start again at the first page, without page_token.' })

/**
 * Page tokens (catalog.md 7.1): the last row's keys as text, signed, bound to the list they were made for (its route,
 * filters and order) and to the caller. They never run out; page_size and include may change under way.
 */
export const createPages = (keys: readonly [Buffer, ...Buffer[]]) => {
  const sign = (key: Buffer, text: string) => hmacSha256(key, text).subarray(0, SIGNATURE_BYTES)
  const nameOf = (list: unknown) => sha256Hex(canonicalJson(list)).slice(0, 16)

  return {
    /** The keys after which a page starts; nothing on the first page. */
    read: (token: string | undefined, list: unknown, user: string): string[] | undefined => {
      if (token === undefined) return undefined
      const [text = '', signature = ''] = token.split('.')
      const given = Buffer.from(signature, 'base64url')
      const genuine = given.length === SIGNATURE_BYTES && keys.some((key) => timingSafeEqual(sign(key, text), given))
      if (!genuine) throw invalid('page_token_invalid', 'The page_token is not one of ours.')
      const content = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Content
      if (content.user !== user) throw invalid('page_token_invalid', 'The page_token was made for somebody else.')
      if (content.list !== nameOf(list))
        throw invalid('page_token_mismatch', 'The page_token belongs to another list, filter or order.')
      return content.keys
    },
    write: (row_keys: string[], list: unknown, user: string): string => {
      const content: Content = { list: nameOf(list), user, keys: row_keys }
      const text = Buffer.from(JSON.stringify(content)).toString('base64url')
      return `${text}.${sign(keys[0], text).toString('base64url')}`
    },
  }
}
export type Pages = ReturnType<typeof createPages>

/** The size of a page: what was asked for within the deployment's bounds. */
export const pageSizeOf = (asked: number | undefined, config: { page_default: number; page_max: number }): number =>
  !asked ? config.page_default : Math.min(asked, config.page_max)
