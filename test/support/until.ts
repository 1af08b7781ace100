import { setTimeout as delay } from 'node:timers/promises'

const FIRST_MS = 25
const LAST_MS = 250
/** A machine that is busy with other tests is slow: this long is a fault. */
const PATIENCE_MS = 60_000

/**
 * Retries `probe` until it returns a truthy value, and returns that; fails with the last reason after the timeout. Without
 * `every_ms` it asks less often the longer it waits, because each probe takes time from the awaited work.
 */
export const until = async <T>(
  probe: () => Promise<T> | T,
  {
    timeout_ms = PATIENCE_MS,
    every_ms,
    what = 'the condition',
  }: { timeout_ms?: number; every_ms?: number; what?: string } = {},
): Promise<NonNullable<T>> => {
  const began = performance.now()
  let last: unknown
  for (;;) {
    try {
      const value = await probe()
      if (value) return value as NonNullable<T>
      last = value
    } catch (error) {
      last = error
    }
    const waited = performance.now() - began
    if (waited > timeout_ms) {
      const why = last instanceof Error ? `: ${last.message}` : ''
      throw new Error(`${what} did not hold within ${timeout_ms} ms${why}`, { cause: last })
    }
    await delay(every_ms ?? Math.min(Math.max(waited / 10, FIRST_MS), LAST_MS))
  }
}
