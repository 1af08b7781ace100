import { AsyncResource } from 'node:async_hooks'
import type pg from 'pg'
import { type Deadline, deadlineNow } from './deadline.ts'
import { POOL_FULL } from './outage.ts'
import { PATIENT, type Priority } from './priority.ts'

/** Of 20 connections, those that each class reserves for itself and the classes above it, highest first. */
const SHARES = { stop: 4, enter: 2, decide: 4, write: 4, read: 4, batch: 2 } satisfies Partial<Record<Priority, number>>
const CLASSES = Object.keys(SHARES) as (keyof typeof SHARES)[]
const ROWS = Object.values(SHARES)
/** Who waits longer than this for others is refused, unless its class is patient. */
const PATIENCE_MS = 2000
export const patienceOf = ({ priority, left_ms }: Deadline): number =>
  PATIENT.has(priority) && Number.isFinite(left_ms) ? Math.max(left_ms, PATIENCE_MS) : PATIENCE_MS

type Done = Parameters<Parameters<pg.Pool['connect']>[0]>
/** `whole`: for a transaction, not for one statement. */
type Share = { place: number; deadline: Deadline; whole: boolean }
type Waiter = { begin: () => void }

const sumFrom = (counts: readonly number[], place: number): number =>
  counts.slice(place).reduce((sum, count) => sum + count, 0)

/**
 * Gives each class of requests its share of a pool (platform.md 7.1). A class takes its own connections and those of
 * lower classes, never those of higher ones: no flood of reads holds the connections that stopping and deciding need.
 * The highest waiting class goes first. Background work is no request and is not bounded. A request within a
 * transaction never waits for another connection here, because it would wait for itself. A waiter resumes in its own
 * request's context, not in that of the request that made room.
 */
export const shareConnections = (pool: pg.Pool, max: number): void => {
  const most = ROWS.map((_, place) => Math.ceil((max * sumFrom(ROWS, place)) / sumFrom(ROWS, 0)))
  const held = ROWS.map(() => 0)
  const waiting = ROWS.map((): Waiter[] => [])
  const holders = new WeakMap<object, Share>()
  const connect = pool.connect.bind(pool)

  const isFree = (place: number): boolean =>
    most.slice(0, place + 1).every((bound, above) => sumFrom(held, above) < bound)
  const move = ({ place, deadline, whole }: Share, by: 1 | -1) => {
    held[place] = (held[place] as number) + by
    if (whole) deadline.transactions += by
  }
  const leave = (share: Share) => {
    move(share, -1)
    for (const [place, line] of waiting.entries()) while (line.length > 0 && isFree(place)) line.shift()?.begin()
  }
  pool.on('release', (_error, client) => {
    const share = holders.get(client)
    if (!share || !holders.delete(client)) return
    leave(share)
  })

  const begin = (share: Share, done: (...done: Done) => void) => {
    move(share, 1)
    connect((error, client, release) => {
      if (client) holders.set(client, share)
      else leave(share)
      done(error, client, release)
    })
  }

  const take = (share: Share, done: (...done: Done) => void) => {
    if (isFree(share.place)) return begin(share, done)
    const line = waiting[share.place] as Waiter[]
    const waiter = {
      begin: () => {
        clearTimeout(timer)
        begin(share, done)
      },
    }
    const timer = setTimeout(() => {
      line.splice(line.indexOf(waiter), 1)
      done(new Error(POOL_FULL), undefined, () => {})
    }, patienceOf(share.deadline))
    line.push(waiter)
  }

  const connectFor = (whole: boolean, then: (...done: Done) => void): void => {
    const deadline = deadlineNow()
    const place = CLASSES.indexOf(deadline?.priority as keyof typeof SHARES)
    const done = AsyncResource.bind(then)
    if (!deadline || place < 0 || deadline.transactions > 0) connect(done)
    else take({ place, deadline, whole }, done)
  }
  // A statement of the pool passes a callback, a transaction expects a promise.
  const shared = (then?: (...done: Done) => void): unknown =>
    then
      ? connectFor(false, then)
      : new Promise((resolve, reject) => connectFor(true, (error, client) => (error ? reject(error) : resolve(client))))
  pool.connect = shared as pg.Pool['connect']
}
