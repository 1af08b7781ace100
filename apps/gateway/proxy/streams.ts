import { AppError } from '../../shared/errors.ts'

const PER_SESSION = 10
/** How long the server of a stream has to end it itself. */
const GRACE_MS = 1000
const MAX_TIMER_MS = 2 ** 31 - 1

/** The open event streams by session: at most ten each, cut a second after the token or the session ends. */
export const createStreams = () => {
  const open = new Map<string, Set<() => void>>()
  let count = 0
  return {
    /** Takes a place; `cut` ends the stream. Returns a function that gives the place back. */
    enter: (session_id: string, exp: number, cut: () => void): (() => void) => {
      const streams = open.get(session_id) ?? new Set()
      if (streams.size >= PER_SESSION) {
        throw new AppError('rate_limited', 'rate_limited', `A session has at most ${PER_SESSION} event streams.`, {
          retryable: true,
          retry_after_ms: 5000,
          hint: 'Close a tab, or share one stream between them.',
        })
      }
      open.set(session_id, streams.add(cut))
      count += 1
      const left = exp * 1000 - Date.now() + GRACE_MS
      const timer = setTimeout(cut, Math.min(Math.max(left, 0), MAX_TIMER_MS)).unref()
      return () => {
        clearTimeout(timer)
        if (!streams.delete(cut)) return
        count -= 1
        if (streams.size === 0) open.delete(session_id)
      }
    },
    /** The session was revoked. */
    end: (session_id: string): void => {
      for (const cut of open.get(session_id) ?? []) setTimeout(cut, GRACE_MS).unref()
    },
    /** The gateway stops: every stream ends, and its client reconnects elsewhere. */
    endAll: (): void => {
      for (const streams of open.values()) for (const cut of streams) setTimeout(cut, GRACE_MS).unref()
    },
    size: () => count,
  }
}
export type Streams = ReturnType<typeof createStreams>
