import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Priority } from './priority.ts'

/** A commit that was sent before the deadline gets this long to say what became of it. */
const SETTLE_MS = 1000

/** Lets go of a database connection in the middle of its work. */
type LetGo = () => void

/**
 * The time of one request, shared by all that works on it. When it is over, every transaction and statement of the
 * request ends, so that it cannot commit after its caller was told 503.
 */
export class Deadline {
  readonly ends_at: number
  /** What the caller is told. */
  readonly refusal: () => Error
  /** Who goes first: its share of the connections to the database (shares.ts). */
  readonly priority: Priority
  /** Connections of its share that it holds for transactions. */
  transactions = 0
  private state: 'running' | 'over' | 'answered' = 'running'
  private readonly held = new Set<LetGo>()
  private settled: (() => void) | undefined

  constructor(ends_at: number, refusal: () => Error, priority: Priority = 'exempt') {
    this.ends_at = ends_at
    this.refusal = refusal
    this.priority = priority
  }

  /** Whether no further statement may be sent. The clock counts, too: a timer may be late on a busy process. */
  get over(): boolean {
    return this.state === 'over' || (this.state === 'running' && performance.now() >= this.ends_at)
  }

  /** Milliseconds until the end; unbounded once the request was answered. */
  get left_ms(): number {
    return this.state === 'answered' ? Number.POSITIVE_INFINITY : Math.max(0, this.ends_at - performance.now())
  }

  /** Work that holds a connection. `release` it at its end. */
  hold(letGo: LetGo): void {
    this.held.add(letGo)
  }

  release(letGo: LetGo): void {
    this.held.delete(letGo)
    if (this.held.size === 0) this.settled?.()
  }

  /** The request was answered: what it still does for itself, such as an audit row, is not bounded by it any more. */
  answered(): void {
    if (this.state === 'running') this.state = 'answered'
  }

  /** Ends all work; returns when it has ended, or after a second. */
  async end(): Promise<void> {
    if (this.state !== 'running') return
    this.state = 'over'
    if (this.held.size === 0) return
    for (const letGo of [...this.held]) letGo()
    const settled = new Promise<void>((resolve) => {
      this.settled = resolve
    })
    await Promise.race([settled, delay(SETTLE_MS, undefined, { ref: false })])
    // The handler learns of it first: it may answer by itself.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const current = new AsyncLocalStorage<Deadline | undefined>()

/** Runs the rest of a request within its deadline. */
export const withinDeadline = <T>(deadline: Deadline | undefined, run: () => T): T =>
  deadline === undefined ? run() : current.run(deadline, run)

/** The deadline of the request that is being worked on; undefined in the background. */
export const deadlineNow = (): Deadline | undefined => current.getStore()

/** Runs work that a request begins but that others wait for too: it does not end with that request. */
export const apart = <T>(run: () => T): T => current.run(undefined, run)
