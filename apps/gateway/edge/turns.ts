/** How many reads begin in one turn of the event loop. */
const MOST = 8

/**
 * Bounds the reads that begin in one turn of the event loop; the others wait for the next turns, in order. Someone who
 * stops or decides then gets an answer after a few reads, not after hundreds that came at once.
 */
export const createTurns = (most = MOST) => {
  const waiting: (() => void)[] = []
  let begun = 0
  let isNext = false
  const later = () => {
    isNext = true
    setImmediate(turn)
  }
  const turn = () => {
    isNext = false
    const starting = waiting.splice(0, most)
    begun = starting.length
    if (begun > 0) later()
    for (const start of starting) start()
  }
  /** Undefined if the read may begin now; resolves when it may. */
  return (): Promise<void> | undefined => {
    if (!isNext) later()
    if (begun >= most || waiting.length > 0) return new Promise((resolve) => waiting.push(resolve))
    begun += 1
    return undefined
  }
}
export type Turns = ReturnType<typeof createTurns>
