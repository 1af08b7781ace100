/** How many requests may rest at once for one reason, and how many of them one person's: the others stay for others. */
export const MOST_RESTING = 64
const MOST_OF_ONE = 16

/**
 * The requests whose upstream has done its work and only waits: for news, or for a client that reads slowly. They hold
 * no seat, but each keeps a connection, so there are few. Each reason has its own places: who waits must not make who
 * reads slowly keep a seat.
 */
export const createResting = () => ({ news: createPlaces(), slow: createPlaces() })
export type Resting = ReturnType<typeof createResting>

const createPlaces = () => {
  const own = new Map<string, number>()
  let all = 0
  return {
    /** Takes a place; returns whether there was one. */
    enter: (flow: string): boolean => {
      const others = own.get(flow) ?? 0
      if (all >= MOST_RESTING || others >= MOST_OF_ONE) return false
      own.set(flow, others + 1)
      all += 1
      return true
    },
    leave: (flow: string): void => {
      const left = (own.get(flow) ?? 0) - 1
      if (left > 0) own.set(flow, left)
      else own.delete(flow)
      all -= 1
    },
    count: () => all,
  }
}
