import { setImmediate as endOfTurn } from 'node:timers/promises'
import { objectBusy } from '../errors.ts'
import { deadlineNow } from './deadline.ts'
import { patienceOf } from './shares.ts'

/** So many wait in the database itself, so that the object is never idle. */
const MOST = 4
type Line = { busy: number; waiting: (() => void)[] }
const lines = new WeakMap<object, Map<string, Line>>()

/**
 * Runs work on an object that only one transaction at a time can lock. A few are at the database; other requests wait
 * here, without a connection: otherwise a crowd at one object would hold all connections of its class and of those
 * below. Work that is no request, or that already holds a connection, never waits here.
 */
export const inLine = async <T>(pool: object, key: string, work: () => Promise<T>): Promise<T> => {
  const deadline = deadlineNow()
  if (!deadline || deadline.transactions > 0) return work()
  const all = lines.get(pool) ?? new Map<string, Line>()
  lines.set(pool, all)
  const line = all.get(key) ?? { busy: 0, waiting: [] }
  all.set(key, line)
  if (line.busy >= MOST) await turnIn(line, patienceOf(deadline))
  else line.busy += 1
  try {
    return await work()
  } finally {
    const next = line.waiting.shift()
    // The place passes to the next one, so that no newcomer is faster.
    if (next) next()
    else line.busy -= 1
    if (line.busy === 0) all.delete(key)
  }
}

const turnIn = ({ waiting }: Line, patience_ms: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const begin = () => {
      clearTimeout(timer)
      resolve()
    }
    const timer = setTimeout(() => {
      waiting.splice(waiting.indexOf(begin), 1)
      reject(objectBusy())
    }, patience_ms)
    waiting.push(begin)
  })

type Waiting<I, O> = { item: I; settle: PromiseWithResolvers<O> }

/** So many answers at most come from one call. */
const MOST_JOINED = 500

/**
 * Joins calls about one object into few. One made while another runs waits and goes out with others in the next,
 * so no answer is older than its question. `run` answers all items in their order; if it fails, all fail.
 */
export const createJoiner = <I, O>(run: (key: string, items: readonly I[]) => Promise<readonly O[]>) => {
  const objects = new Map<string, Waiting<I, O>[]>()
  const work = async (key: string, waiting: Waiting<I, O>[]) => {
    while (waiting.length > 0) {
      // Calls of one turn of the event loop go out together.
      await endOfTurn()
      const now = waiting.splice(0, MOST_JOINED)
      try {
        const items = now.map(({ item }) => item)
        const answers = await run(key, items)
        for (const [i, { settle }] of now.entries()) settle.resolve(answers[i] as O)
      } catch (error) {
        for (const { settle } of now) settle.reject(error)
      }
    }
    objects.delete(key)
  }
  return (key: string, item: I): Promise<O> => {
    const settle = Promise.withResolvers<O>()
    const waiting = objects.get(key)
    if (waiting) waiting.push({ item, settle })
    else {
      const begun = [{ item, settle }]
      objects.set(key, begun)
      void work(key, begun)
    }
    return settle.promise
  }
}
