export type BreakerSettings = {
  /** Opens if at least this share of at least `calls` calls in ten seconds failed. */
  share?: number
  calls?: number
  /** Milliseconds of a monotonic clock. */
  monotonic?: () => number
  /** Called when it opens and closes. */
  onChange?: (open: boolean) => void
}

const BUCKETS = 10
const BUCKET_MS = 1000
/** While open, one call in this time is let through to see whether the other side is back. */
const PROBE_MS = 5000

/**
 * The circuit breaker of one dependency in one process (reliability.md 2.4). Once a dependency fails, callers no longer
 * wait for it: they are answered at once, and one probe at a time finds out when it is back.
 */
export const createBreaker = (settings: BreakerSettings = {}) => {
  const { share = 0.5, calls = 20, monotonic = () => performance.now() } = settings
  const done = new Array<number>(BUCKETS).fill(0)
  const failed = new Array<number>(BUCKETS).fill(0)
  let latest = Math.floor(monotonic() / BUCKET_MS)
  let open = false
  let probe_at = 0

  const clear = (from: number, to: number) => {
    for (let at = from; at <= to && at < from + BUCKETS; at++) done[at % BUCKETS] = failed[at % BUCKETS] = 0
  }
  const set = (now_open: boolean) => {
    open = now_open
    settings.onChange?.(open)
  }
  const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0)

  const count = (ok: boolean) => {
    const bucket = Math.floor(monotonic() / BUCKET_MS)
    if (bucket > latest) {
      clear(Math.max(latest + 1, bucket - BUCKETS + 1), bucket)
      latest = bucket
    }
    done[bucket % BUCKETS] = (done[bucket % BUCKETS] ?? 0) + 1
    if (!ok) failed[bucket % BUCKETS] = (failed[bucket % BUCKETS] ?? 0) + 1
  }

  return {
    /** Whether a call may be made now. With `insist`, for a stopping act, it always may. */
    allows: (insist = false): boolean => {
      if (!open || insist) return true
      if (monotonic() < probe_at) return false
      probe_at = monotonic() + PROBE_MS
      return true
    },
    /** Reports the result of a call; a call that the caller gave up is not reported. */
    report: (ok: boolean): void => {
      if (open) {
        if (!ok) return
        done.fill(0)
        failed.fill(0)
        set(false)
        return
      }
      count(ok)
      if (ok || sum(done) < calls || sum(failed) < share * sum(done)) return
      probe_at = monotonic() + PROBE_MS
      set(true)
    },
  }
}
export type Breaker = ReturnType<typeof createBreaker>
