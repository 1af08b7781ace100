import Type from 'typebox'
import { deriveKey, hmacSha256 } from '../data/digest.ts'
import { AppError } from '../errors.ts'

/** A limit `count/seconds/burst`: this many per period, and this many at once. */
export type Rate = { count: number; seconds: number; burst: number }

/** A setting of the form `count/seconds/burst`, such as `10/60/20`. */
export const rateSetting = (what: string, fallback: string) =>
  Type.String({
    default: fallback,
    pattern: '^[1-9][0-9]{0,6}/[1-9][0-9]{0,6}/[1-9][0-9]{0,6}$',
    description: `${what}: a limit as count/seconds/burst, such as 10/60/20.`,
  })

export const parseRate = (text: string): Rate => {
  const [count = 1, seconds = 1, burst = 1] = text.split('/').map(Number)
  return { count, seconds, burst }
}

/** Returns the arguments of a rate for the limits' Lua script: microseconds between two, and how many at once. */
export const rateArguments = ({ count, seconds, burst }: Rate): [number, number] => [
  Math.max(1, Math.round((seconds * 1_000_000) / count)),
  burst,
]

/** How many names are cached: most requests come from few addresses. */
const MAX_KNOWN = 1000

/** Returns names and addresses as used in Redis keys: HMACs, so that the store does not reveal who tried what. */
export const createKeyNames = (secrets: readonly [Buffer, ...Buffer[]]) => {
  const key = deriveKey(secrets[0], 'name')
  const known = new Map<string, string>()
  return (text: string): string => {
    let name = known.get(text)
    if (name === undefined) {
      name = hmacSha256(key, text).subarray(0, 16).toString('base64url')
      if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value as string)
      known.set(text, name)
    }
    return name
  }
}
export type KeyNames = ReturnType<typeof createKeyNames>

export const rateLimited = (retry_after_ms: number): AppError =>
  new AppError('rate_limited', 'rate_limited', 'Too many requests of this kind.', {
    retryable: true,
    retry_after_ms: Math.max(1, Math.ceil(retry_after_ms)),
  })
