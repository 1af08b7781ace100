/** The nouns of the reads that a topic's news changes, besides the topic's own name. */
const MORE: Record<string, readonly string[]> = {
  inbox: ['me'],
  resources: ['places', 'gaps', 'definitions', 'providers'],
}

/** Whether the read of this key changes with the news of a topic. */
export const isAbout =
  (topic: string | undefined) =>
  ([noun]: readonly unknown[]): boolean =>
    noun === topic || MORE[topic ?? '']?.includes(String(noun)) === true

const GATHER_MS = 400
/** A list is read again page by page: it takes as long for each, so that a long one uses up no one's limit of reads. */
const PAGE_MS = 2000

/**
 * Reads a thing again for many reasons: at once for the first, and once more at the end of each 400 ms in which others
 * came. A reason that may wait names its own delay in milliseconds; until then further ones add no read. Both are longer
 * for a thing of several pages. A thing that is busy is read once it no longer is.
 */
export const createGather = <T extends object>(now: () => number, isBusy: (thing: T) => boolean = () => false) => {
  const pending = new WeakSet<T>()
  const begun = new WeakMap<T, number>()
  const readAfter = (thing: T, read: () => void, wait_ms: number): void =>
    void setTimeout(
      () => {
        if (isBusy(thing)) return readAfter(thing, read, GATHER_MS)
        pending.delete(thing)
        begun.set(thing, now())
        read()
      },
      Math.max(0, wait_ms),
    )
  return (thing: T, read: () => void, after_ms?: number, pages = 1): void => {
    if (pending.has(thing)) return
    pending.add(thing)
    const pause_ms = pages > 1 ? PAGE_MS * pages : GATHER_MS
    const next = (begun.get(thing) ?? Number.NEGATIVE_INFINITY) + pause_ms
    readAfter(thing, read, after_ms === undefined ? next - now() : Math.max(after_ms, pages > 1 ? pause_ms : 0))
  }
}
