import { overloaded } from '../../shared/errors.ts'

/** How many requests may rest at once, and how many of them one person's: the others stay for others. */
export const MOST_RESTING = 64
const MOST_OF_ONE = 16

/**
 * The requests whose upstream has done its work and only waits: for news, or for a client that reads slowly. They hold
 * no seat, but each keeps a connection, so there are few.
 */
export const createResting = () => {
  const own = new Map<string, number>()
  let all = 0
  return {
    /** Takes a place; throws 503 if there is none. */
    enter: (flow: string): void => {
      const others = own.get(flow) ?? 0
      if (all >= MOST_RESTING || others >= MOST_OF_ONE) throw overloaded()
      own.set(flow, others + 1)
      all += 1
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
export type Resting = ReturnType<typeof createResting>
