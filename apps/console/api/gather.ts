const GATHER_MS = 400

/**
 * Batches repeated reads of a thing: at once for the first reason, and once more at the end of each 400 ms in which
 * others came. A reason that may wait names its own delay in milliseconds; until then further ones add no read.
 */
export const createGather = <T extends object>(now: () => number) => {
  const pending = new WeakSet<T>()
  const begun = new WeakMap<T, number>()
  return (thing: T, read: () => void, after_ms?: number): void => {
    if (pending.has(thing)) return
    pending.add(thing)
    const wait_ms = after_ms ?? (begun.get(thing) ?? Number.NEGATIVE_INFINITY) + GATHER_MS - now()
    setTimeout(
      () => {
        pending.delete(thing)
        begun.set(thing, now())
        read()
      },
      Math.max(0, wait_ms),
    )
  }
}
