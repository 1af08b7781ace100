import { AppError } from '../shared/errors.ts'

export type SlotSettings = { concurrency: number; queue_max: number; wait_ms: number; per_key: number }

type Waiting = { start: () => void; leave: () => void }

/** Refused: too many hashes run and wait. Answered as `resource_exhausted`. */
export const hashQueueFull = () =>
  new AppError('rate_limited', 'login_busy', 'Too many passwords are being checked just now.', {
    retryable: true,
    retry_after_ms: 2000,
  })

/**
 * Bounds how many hashes run and wait at once, and how many of them one key (an address) may hold, so that a flood of
 * logins costs a bounded amount of memory and processor time and one source cannot take all of it.
 */
export const createSlots = ({ concurrency, queue_max, wait_ms, per_key }: SlotSettings) => {
  const queue: Waiting[] = []
  const held = new Map<string, number>()
  let running = 0

  const hold = (key: string) => {
    const count = held.get(key) ?? 0
    if (key !== '' && count >= per_key) throw hashQueueFull()
    held.set(key, count + 1)
  }
  const release = (key: string) => {
    const count = (held.get(key) ?? 1) - 1
    if (count === 0) held.delete(key)
    else held.set(key, count)
  }

  const turn = (signal: AbortSignal | undefined): Promise<void> => {
    if (signal?.aborted) return Promise.reject(hashQueueFull())
    if (running < concurrency) {
      running += 1
      return Promise.resolve()
    }
    if (queue.length >= queue_max) return Promise.reject(hashQueueFull())
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', giveUp)
        queue.splice(queue.indexOf(waiting), 1)
      }
      const giveUp = () => {
        leave()
        reject(hashQueueFull())
      }
      const waiting: Waiting = { start: resolve, leave }
      const timer = setTimeout(giveUp, wait_ms)
      signal?.addEventListener('abort', giveUp)
      queue.push(waiting)
    })
  }

  return {
    /** Runs the task when a slot is free; throws `hashQueueFull` when none will be in time, or the caller has gone. */
    run: async <T>(key: string, task: () => Promise<T>, signal?: AbortSignal): Promise<T> => {
      hold(key)
      try {
        await turn(signal)
        try {
          return await task()
        } finally {
          const [next] = queue
          if (next) {
            next.leave()
            next.start() // the slot goes to the next one without being free in between
          } else running -= 1
        }
      } finally {
        release(key)
      }
    },
    running: () => running,
    waiting: () => queue.length,
  }
}
export type Slots = ReturnType<typeof createSlots>
