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
