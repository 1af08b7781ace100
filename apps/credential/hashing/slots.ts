import { AppError } from '../../shared/errors.ts'
import { within } from '../../shared/sleep.ts'

export type SlotSettings = {
  concurrency: number
  /** Slots reserved for urgent hashes: those of people known here. */
  urgent: number
  queue_max: number
  wait_ms: number
  per_key: number
  /** The maximum time to an answer, including the hash itself; a hash that has started runs to its end. */
  answer_ms: number
  monotonic?: () => number
}

export type Lane = 'general' | 'urgent'
/** The requester: `key` bounds how many hashes it may hold, `signal` ends its wait in the queue. */
export type Asking = { key: string; urgent?: boolean; signal?: AbortSignal | undefined }
type Waiting = { start: (lane: Lane) => void; leave: () => void }

/** The refusal when too many hashes run and wait: answered as `resource_exhausted`, with the estimated wait. */
export const hashQueueFull = (wait_ms: number) =>
  new AppError('rate_limited', 'login_busy', 'Too many passwords are being checked.', {
    retryable: true,
    retry_after_ms: Math.max(1000, Math.ceil(wait_ms)),
  })

/** The weight of the latest hash in the average. */
const LATEST = 0.2

/**
 * Bounds how many hashes run and wait at once, and how many of them one key (an address, a device) may hold. So a flood
 * of logins costs a bounded amount of memory and time, and one source cannot take all of it. Urgent hashes have their
 * own slot, may take any other free one, and go first. A request that would wait too long, judged by the current
 * duration of a hash, is refused at once.
 */
export const createSlots = (settings: SlotSettings) => {
  const { concurrency, queue_max, wait_ms, per_key, answer_ms, monotonic = () => performance.now() } = settings
  const queues: Record<Lane, Waiting[]> = { general: [], urgent: [] }
  const free: Record<Lane, number> = { general: concurrency, urgent: settings.urgent }
  let average_ms = 0

  const waiting = () => queues.general.length + queues.urgent.length
  /** Milliseconds until one more hash of this kind would start. */
  const expectedMs = (urgent: boolean): number => {
    const before = urgent ? queues.urgent.length : waiting()
    return ((before + 1) * average_ms) / (concurrency + (urgent ? settings.urgent : 0))
  }
  const full = (urgent = false) => hashQueueFull(expectedMs(urgent))

  const { hold, release } = createHolds(per_key, () => full())

  const freeLane = (urgent: boolean): Lane | undefined =>
    urgent && free.urgent > 0 ? 'urgent' : free.general > 0 ? 'general' : undefined

  const turn = ({ urgent = false, signal }: Asking): Promise<Lane> => {
    if (signal?.aborted) return Promise.reject(full(urgent))
    const lane = freeLane(urgent)
    if (lane) {
      free[lane] -= 1
      return Promise.resolve(lane)
    }
    if (waiting() >= queue_max || expectedMs(urgent) > wait_ms) return Promise.reject(full(urgent))
    const queue = queues[urgent ? 'urgent' : 'general']
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', giveUp)
        queue.splice(queue.indexOf(place), 1)
      }
      const giveUp = () => {
        leave()
        reject(full(urgent))
      }
      const place: Waiting = { start: resolve, leave }
      const timer = setTimeout(giveUp, wait_ms)
      signal?.addEventListener('abort', giveUp)
      queue.push(place)
    })
  }

  /** Runs the task in an already taken slot, then passes the slot directly to the next in the queue. */
  const occupy = async <T>(lane: Lane, task: (lane: Lane) => Promise<T>): Promise<T> => {
    const begun = monotonic()
    try {
      return await task(lane)
    } finally {
      const took = monotonic() - begun
      average_ms = average_ms === 0 ? took : average_ms + LATEST * (took - average_ms)
      const next = queues.urgent[0] ?? (lane === 'general' ? queues.general[0] : undefined)
      if (next) {
        next.leave()
        next.start(lane)
      } else free[lane] += 1
    }
  }

  /** Runs the task once a slot is free; throws `hashQueueFull` if none becomes free in time or the caller has gone. */
  const begin = async <T>(asking: Asking, task: (lane: Lane) => Promise<T>): Promise<T> => {
    hold(asking.key)
    return turn(asking)
      .then((lane) => occupy(lane, task))
      .finally(() => release(asking.key))
  }
  /** The outcome, or `hashQueueFull` after the time limit: on an overloaded machine one hash takes seconds. */
  const answer = <T>(outcome: Promise<T>): Promise<T> => within(outcome, answer_ms, () => full())

  return { begin, answer, waiting }
}
export type Slots = ReturnType<typeof createSlots>

/** How many hashes each key holds; more than `most` are refused. */
const createHolds = (most: number, full: () => AppError) => {
  const held = new Map<string, number>()
  return {
    hold: (key: string): void => {
      const count = held.get(key) ?? 0
      if (key !== '' && count >= most) throw full()
      held.set(key, count + 1)
    },
    release: (key: string): void => {
      const count = (held.get(key) ?? 1) - 1
      if (count === 0) held.delete(key)
      else held.set(key, count)
    },
  }
}
