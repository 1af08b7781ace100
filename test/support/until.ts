import { setTimeout as delay } from 'node:timers/promises'

/** Retries `probe` until it returns a truthy value, and returns that; fails with the last reason after the timeout. */
export const until = async <T>(
  probe: () => Promise<T> | T,
  {
    timeout_ms = 10_000,
    every_ms = 25,
    what = 'the condition',
  }: { timeout_ms?: number; every_ms?: number; what?: string } = {},
): Promise<NonNullable<T>> => {
  const end = performance.now() + timeout_ms
  let last: unknown
  for (;;) {
    try {
      const value = await probe()
      if (value) return value as NonNullable<T>
      last = value
    } catch (error) {
      last = error
    }
    if (performance.now() > end) {
      const why = last instanceof Error ? `: ${last.message}` : ''
      throw new Error(`${what} did not hold within ${timeout_ms} ms${why}`, { cause: last })
    }
    await delay(every_ms)
  }
}
