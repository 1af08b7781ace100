/** Waits without blocking; used only between retries. */
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Backoff of 1, 2, 4 … 30 s with jitter, by the number of failures so far. */
export const nextDelay = (failures: number): number => {
  const base = Math.min(30_000, 1000 * 2 ** Math.max(0, failures - 1))
  return base * (0.75 + Math.random() * 0.5)
}
