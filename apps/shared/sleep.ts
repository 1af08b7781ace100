import { setTimeout as delay } from 'node:timers/promises'

/** A sleep that another caller may end early. No signal: to abort one costs more than the rest of a short turn. */
export const createSleeper = () => {
  let end = () => {}
  return {
    sleep: (ms: number): Promise<void> =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, ms)
        end = () => {
          clearTimeout(timer)
          resolve()
        }
      }),
    wake: (): void => end(),
  }
}

/** Returns the result of the work, or throws `late` if the time is over first. */
export const within = async <T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> => {
  const over = new AbortController()
  const end = delay(ms, undefined, { signal: over.signal }).then(() => Promise.reject(late()))
  return Promise.race([work, end]).finally(() => over.abort())
}
