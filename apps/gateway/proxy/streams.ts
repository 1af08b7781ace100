import { AppError } from '../../shared/errors.ts'
import type { AccessClaims } from '../../shared/jwt/claims.ts'

const PER_SESSION = 10
/** How long the server of a stream has to end it itself. */
const GRACE_MS = 1000
const MAX_TIMER_MS = 2 ** 31 - 1

/** `kid` is the key that signed its token. */
type Stream = Pick<AccessClaims, 'sub' | 'session_id' | 'iat' | 'auth_time' | 'jti'> & { kid: string; cut: () => void }

/** The open event streams by session: at most ten each, cut a second after the token or the session ends. */
export const createStreams = () => {
  const open = new Map<string, Set<Stream>>()
  let count = 0
  const endEach = (streams: Iterable<Stream>) => {
    for (const { cut } of streams) setTimeout(cut, GRACE_MS).unref()
  }
  return {
    /** Takes a place; `cut` ends the stream. Returns a function that gives the place back. */
    enter: (
      { sub, session_id, iat, auth_time, jti, exp }: AccessClaims,
      kid: string,
      cut: () => void,
    ): (() => void) => {
      const streams = open.get(session_id) ?? new Set()
      if (streams.size >= PER_SESSION) {
        throw new AppError('rate_limited', 'rate_limited', `A session has at most ${PER_SESSION} event streams.`, {
          retryable: true,
          retry_after_ms: 5000,
          hint: 'Close a tab, or share one stream between them.',
        })
      }
      const stream = { sub, session_id, iat, auth_time, jti, kid, cut }
      open.set(session_id, streams.add(stream))
      count += 1
      const left = exp * 1000 - Date.now() + GRACE_MS
      const timer = setTimeout(cut, Math.min(Math.max(left, 0), MAX_TIMER_MS)).unref()
      return () => {
        clearTimeout(timer)
        if (!streams.delete(stream)) return
        count -= 1
        if (streams.size === 0) open.delete(session_id)
      }
    },
    /** The session was revoked. */
    end: (session_id: string): void => endEach(open.get(session_id) ?? []),
    /** Every open stream, with the token that opened it. */
    all: (): Stream[] => [...open.values()].flatMap((streams) => [...streams]),
    /** The gateway stops: every stream ends, and its client reconnects elsewhere. */
    endAll: (): void => {
      for (const streams of open.values()) endEach(streams)
    },
    size: () => count,
  }
}
export type Streams = ReturnType<typeof createStreams>
