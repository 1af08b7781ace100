import { type AccessClaims, TOKEN_KINDS } from '../../shared/jwt/claims.ts'

const CAP = 100_000
const SWEEP_MS = 30_000
/** How long a denial must be remembered: the life of an access token plus the spread of clocks. */
export const DENY_MS = 960_000

type DenylistDeps = { onDenied?: (session_id: string) => void; onDropped?: () => void }

/**
 * The revoked sessions that this process knows, for the time that Redis is away. Revocation is final, so order and
 * repeats do not matter. Bounded: above the cap the oldest entry is dropped.
 */
export const createDenylist = ({ onDenied, onDropped }: DenylistDeps = {}) => {
  const until = new Map<string, number>()
  const sweep = setInterval(() => {
    const now = Date.now()
    for (const [session_id, end] of until) if (end < now) until.delete(session_id)
  }, SWEEP_MS).unref()
  return {
    add: (session_id: string, access_valid_until: string | undefined): void => {
      const end = Date.parse(access_valid_until ?? '')
      const last = Number.isFinite(end) ? end + DENY_MS - 1000 * TOKEN_KINDS.access.lifetime_s : Date.now() + DENY_MS
      if (last < Date.now()) return
      until.delete(session_id)
      if (until.size >= CAP) {
        until.delete(until.keys().next().value as string)
        onDropped?.()
      }
      until.set(session_id, last)
      onDenied?.(session_id)
    },
    /** Whether its tokens are denied. A machine's credential may count again: then those issued since are not. */
    has: ({ session_id, cm, iat }: Pick<AccessClaims, 'session_id' | 'cm' | 'iat'>): boolean => {
      const last = until.get(session_id)
      return last !== undefined && (cm !== 'machine' || iat * 1000 <= last - DENY_MS)
    },
    size: () => until.size,
    close: () => clearInterval(sweep),
  }
}
export type Denylist = ReturnType<typeof createDenylist>
