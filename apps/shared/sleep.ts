import { setTimeout as delay } from 'node:timers/promises'

/** A sleep that another caller may end early. */
export const createSleeper = () => {
  let asleep = new AbortController()
  return {
    sleep: (ms: number): Promise<void> => {
      asleep = new AbortController()
      return delay(ms, undefined, { signal: asleep.signal }).catch(() => {})
    },
    wake: (): void => asleep.abort(),
  }
}

/** Returns the result of the work, or throws `late` if the time is over first. */
export const within = async <T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> => {
  const over = new AbortController()
  const end = delay(ms, undefined, { signal: over.signal }).then(() => Promise.reject(late()))
  return Promise.race([work, end]).finally(() => over.abort())
}
