import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Priority } from './priority.ts'

/** How long a commit that was sent before the deadline may take to report its result. */
const SETTLE_MS = 1000

/** Releases a database connection in the middle of its work. */
type LetGo = () => void

/** One request's time. Once over, its transactions and statements end: no commit after its caller was told 503. */
export class Deadline {
  readonly ends_at: number
  /** The refusal that the caller gets. */
  readonly refusal: () => Error
  /** Its priority: decides its share of the connections to the database (shares.ts). */
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

  /** Whether no further statement may be sent. The clock counts too, because a timer may be late in a busy process. */
  get over(): boolean {
    return this.state === 'over' || (this.state === 'running' && performance.now() >= this.ends_at)
  }

  /** Milliseconds until the end; unbounded once the request was answered. */
  get left_ms(): number {
    return this.state === 'answered' ? Number.POSITIVE_INFINITY : Math.max(0, this.ends_at - performance.now())
  }

  /** Registers work that holds a connection. Call `release` at its end. */
  hold(letGo: LetGo): void {
    this.held.add(letGo)
  }

  release(letGo: LetGo): void {
    this.held.delete(letGo)
    if (this.held.size === 0) this.settled?.()
  }

  /** The request was answered: it no longer bounds its remaining own work, such as an audit row. */
  answered(): void {
    if (this.state === 'running') this.state = 'answered'
  }

  /** Ends all work; resolves when it has ended, or after a second. */
  async end(): Promise<void> {
    if (this.state !== 'running') return
    this.state = 'over'
    if (this.held.size === 0) return
    for (const letGo of [...this.held]) letGo()
    const settled = new Promise<void>((resolve) => {
      this.settled = resolve
    })
    await Promise.race([settled, delay(SETTLE_MS, undefined, { ref: false })])
    // The handler learns of it first, and may answer itself.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const current = new AsyncLocalStorage<Deadline | undefined>()

/** Runs the rest of a request within its deadline. */
export const withinDeadline = <T>(deadline: Deadline | undefined, run: () => T): T =>
  deadline === undefined ? run() : current.run(deadline, run)

export const deadlineNow = (): Deadline | undefined => current.getStore()

/** Refuses a step whose effect stays and could no longer be answered: less than this is left to the request. */
export const refuseLate = (needs_ms: number): void => {
  const deadline = deadlineNow()
  if (deadline && (deadline.over || deadline.left_ms < needs_ms)) throw deadline.refusal()
}

/** Runs work that a request begins but others also wait for: it does not end with that request. */
export const apart = <T>(run: () => T): T => current.run(undefined, run)
