/** Returns the seconds to wait before the next try, after `tries` tries. */
export const backoffOf = (retry: { initial_s: number; factor: number; max_s: number }, tries: number): number =>
  Math.min(retry.initial_s * retry.factor ** Math.max(tries - 1, 0), retry.max_s)
