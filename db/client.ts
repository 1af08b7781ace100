import type { Writable } from 'node:stream'
import { and, eq } from 'drizzle-orm'
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { PgColumn, PgTable, PgUpdateSetSource } from 'drizzle-orm/pg-core'
import pg from 'pg'
import { type Deadline, deadlineNow } from '../apps/shared/process/deadline.ts'
import { PATIENT } from '../apps/shared/process/priority.ts'
import { shareConnections } from '../apps/shared/process/shares.ts'

/** A connection pool; reads take it or a transaction, writes take a transaction only. */
export type Db = NodePgDatabase<Record<string, never>> & { $client: pg.Pool }
export type Tx = Parameters<Parameters<Db['transaction']>[0]>[0]
export type Queryable = Db | Tx

export type DbOptions = {
  /** Shown in pg_stat_activity. */
  app: string
  max?: number
  statement_timeout_ms?: number
  lock_timeout_ms?: number
  connect_timeout_ms?: number
}

/**
 * In a transaction rows are found by their keys: a plan without the values is as good, and is made once a connection
 * instead of five times. Lists are read outside of transactions, where the values decide how.
 */
const PLAN_ONCE = 'set local plan_cache_mode = force_generic_plan'

/** For what a person runs once: on a busy machine a connection may take longer than a request may wait. */
export const ONE_ACT = { connect_timeout_ms: 30_000, statement_timeout_ms: 30_000 } as const

/** How much later than the server itself a client gives a statement up. */
const SILENT_MS = 1000

/** Opens a pool with its time-outs: a connection 2 s, a lock 1.8 s, a statement 2 s unless the app says otherwise. */
export const createDb = (
  url: string,
  { app, max = 16, statement_timeout_ms = 2000, lock_timeout_ms = 2000, connect_timeout_ms = 2000 }: DbOptions,
) => {
  const pool = new pg.Pool({
    Client: PreparingClient,
    connectionString: url,
    // Statements that do not need one another's answer go out together (`together`): one round trip.
    pipeline: true,
    max,
    application_name: app,
    connectionTimeoutMillis: connect_timeout_ms,
    idleTimeoutMillis: 60_000,
    statement_timeout: statement_timeout_ms,
    // Of this side: a server that is gone without a word ends no statement. The connection is given up with it.
    query_timeout: statement_timeout_ms + SILENT_MS,
    // Earlier than the statement's own time-out: who waits for a lock hears 409 in_progress, not an outage.
    lock_timeout: Math.min(lock_timeout_ms, statement_timeout_ms - 200),
    idle_in_transaction_session_timeout: 10_000,
    // A statement whose client went away, killed or cut off at its deadline, ends and gives its locks back.
    // Compiling a statement costs far more than any of ours takes.
    options: '-c timezone=UTC -c client_connection_check_interval=250 -c jit=off',
  })
  shareConnections(pool, max)
  // A server that goes away breaks idle connections; the pool opens new ones, so this needs no handling.
  pool.on('error', () => {})
  // The same for one that is in use but idle, such as a transaction that waits for another app: its next query fails.
  pool.on('connect', (client) => client.on('error', () => {}))
  const db = drizzle(pool) as unknown as Db
  return { db, pool, close: () => pool.end() }
}

/** Statements that one process prepares: those made of parts that vary without end must not fill the server's memory. */
const MAX_PREPARED = 400
const prepared = new Map<string, string>()
const seenOnce = new Set<string>()

/** The name under which each connection prepares a statement: from its second use on, until there are too many. */
const nameOf = (text: string): string | undefined => {
  const name = prepared.get(text)
  if (name !== undefined || prepared.size >= MAX_PREPARED) return name
  if (!seenOnce.has(text)) {
    if (seenOnce.size >= MAX_PREPARED) seenOnce.clear()
    seenOnce.add(text)
    return undefined
  }
  seenOnce.delete(text)
  const next = `s${prepared.size}`
  prepared.set(text, next)
  return next
}

const BEGIN = /^begin\b/i
const ROLLBACK = /^rollback$/i
const COMMIT = /^commit$/i

/** What pg keeps of a connection; not in its types. */
type Wire = {
  connection?: { stream?: Pick<Writable, 'cork' | 'uncork' | 'destroy'> }
  connectionParameters?: { statement_timeout?: number | string | false }
}
type Callback = (error: Error | null, result?: unknown) => void
/** A transaction of a request: no statement is sent after its deadline, and a commit least of all. */
type Bounded = { deadline: Deadline; letGo: () => void; committing: boolean; query_timeout?: number }

/**
 * Prepares what it runs again and again: parsing and planning cost more than most of our statements themselves. What is
 * asked in one turn of the event loop goes out as one write: system calls cost more than their content. A `begin` is
 * not waited for, so that it goes out with the first statement of its transaction. What a request asks for ends with the
 * deadline of that request: its connection is cut, and the server rolls back.
 */
export class PreparingClient extends pg.Client {
  private corked = false
  private bounded: Bounded | undefined

  // biome-ignore lint/suspicious/noExplicitAny: pg's own overloads, passed through as they are
  override query(config: any, values?: any, callback?: any): any {
    const given = typeof config === 'string' ? { text: config } : config
    const bare = given.submit !== undefined || given.name !== undefined || !Array.isArray(given.values ?? values)
    const name = bare ? undefined : nameOf(given.text)
    this.writeTogether()
    if (callback === undefined) {
      if (BEGIN.test(given.text)) return this.begin(given)
      if (ROLLBACK.test(given.text)) return this.rollback(config)
      if (COMMIT.test(given.text)) return this.commit({ ...given, name })
    }
    const named = name === undefined ? config : { ...given, name }
    if (this.bounded) {
      const { deadline, query_timeout } = this.bounded
      if (deadline.over) return refused(deadline, callback)
      const patient = query_timeout !== undefined && given.submit === undefined
      return super.query(patient ? { ...given, name, query_timeout } : named, values, callback)
    }
    const deadline = typeof callback === 'function' ? deadlineNow() : undefined
    return deadline ? this.queryWithin(deadline, named, values, callback) : super.query(named, values, callback)
  }

  /** A statement outside a transaction, as a pool sends it. */
  private queryWithin(deadline: Deadline, config: pg.QueryConfig, values: unknown[], callback: Callback): void {
    if (deadline.over) {
      refused(deadline, callback)
      return
    }
    const letGo = () => this.giveUp(deadline.refusal())
    deadline.hold(letGo)
    super.query(config as never, values, (error: Error, result: unknown) => {
      deadline.release(letGo)
      callback(error, result)
    })
  }

  /**
   * Its answer is of no use. Should it ever fail, no statement may follow it on this connection. A statement near the
   * deadline gets no more time than is left, though the cut connection ends it too.
   */
  private begin(config: pg.QueryConfig): Promise<object> {
    const deadline = deadlineNow()
    if (deadline?.over) return refused(deadline) as Promise<object>
    // Only a bare `begin` writes; one with an isolation level reads.
    let text = config.text === 'begin' ? `begin; ${PLAN_ONCE}` : config.text
    if (deadline) {
      const bounded: Bounded = {
        deadline,
        committing: false,
        letGo: () => bounded.committing || this.giveUp(deadline.refusal()),
      }
      this.bounded = bounded
      deadline.hold(bounded.letGo)
      const left_ms = Math.ceil(deadline.left_ms)
      const own_ms = Number((this as unknown as Wire).connectionParameters?.statement_timeout || 0)
      const patient = PATIENT.has(deadline.priority) && left_ms > own_ms && Number.isFinite(left_ms)
      if (patient) bounded.query_timeout = left_ms + SILENT_MS
      if (patient || left_ms < own_ms) text = `${text}; set local statement_timeout = ${left_ms}`
    }
    super.query({ ...config, text }).catch((error: Error) => this.giveUp(error))
    return Promise.resolve({ rows: [], rowCount: 0 })
  }

  /** Fails only on a connection that is broken: why it broke is what its transaction has said, and is not hidden by this. */
  private async rollback(config: pg.QueryConfig): Promise<object> {
    try {
      return await super.query(config as pg.QueryConfig)
    } catch (error) {
      this.giveUp(error as Error)
      return { rows: [], rowCount: 0 }
    } finally {
      this.unbind()
    }
  }

  /** A transaction in which a statement failed ends by its commit, too, but is rolled back: that is a failure. */
  private async commit(config: pg.QueryConfig): Promise<object> {
    const { bounded } = this
    // Its caller then rolls back.
    if (bounded?.deadline.over) throw bounded.deadline.refusal()
    if (bounded) bounded.committing = true
    try {
      const result = await super.query(config)
      if (result.command === 'ROLLBACK') throw new Error('the transaction had failed before its commit')
      return result
    } finally {
      this.unbind()
    }
  }

  private unbind(): void {
    const { bounded } = this
    this.bounded = undefined
    bounded?.deadline.release(bounded.letGo)
  }

  /** Gives the connection up. */
  private giveUp(error: Error): void {
    ;(this as unknown as Wire).connection?.stream?.destroy(error)
  }

  private writeTogether() {
    const stream = (this as unknown as Wire).connection?.stream
    if (this.corked || !stream) return
    this.corked = true
    stream.cork()
    process.nextTick(() => {
      this.corked = false
      stream.uncork()
    })
  }
}

/** What a statement after its deadline gets, in the way in which it was asked. */
const refused = ({ refusal }: Deadline, callback?: Callback): Promise<never> | undefined => {
  if (callback === undefined) return Promise.reject(refusal())
  process.nextTick(callback, refusal())
  return undefined
}

/** Takes what was sent last in a transaction and need not be waited for before its commit. */
export type Last = (sent: Promise<unknown>) => void

/**
 * A transaction whose last statements go out together with its commit, in one round trip: `run` sends them and hands them
 * to `last`. Fails as they fail, and is then rolled back.
 */
export const transact = async <T>(db: Db, run: (tx: Tx, last: Last) => Promise<T>): Promise<T> => {
  const all: Promise<unknown>[] = []
  const last: Last = (sent) => {
    sent.catch(() => {})
    all.push(sent)
  }
  try {
    return await db.transaction((tx) => run(tx, last))
  } catch (error) {
    // Why the commit kept nothing: the first that failed, for those behind it only follow.
    await together(...all)
    throw error
  }
}

/** The first row; undefined if there is none. */
export const first = <T>(rows: T[]): T | undefined => rows[0]

/**
 * The results of steps of one transaction that do not depend on one another: their statements go out together. Waits for
 * all of them before it throws the first failure, so that none sends anything after the rollback.
 */
export const together = async <T extends readonly unknown[]>(
  ...steps: { [K in keyof T]: PromiseLike<T[K]> }
): Promise<T> => {
  const settled = await Promise.allSettled(steps)
  for (const step of settled) if (step.status === 'rejected') throw step.reason
  return settled.map((step) => (step as PromiseFulfilledResult<unknown>).value) as unknown as T
}

/** The values of some columns; null is not among them, because no value equals it in SQL. */
type Values<T extends PgTable> = {
  [K in keyof T['$inferSelect']]?: NonNullable<T['$inferSelect'][K]>
}

/** Where each of these columns of a table has this value. */
export const equals = <T extends PgTable>(table: T, values: Values<T>) =>
  and(...Object.entries(values).map(([name, value]) => eq(table[name as keyof T] as PgColumn, value)))

/** Changes the rows with these values of a table. */
export const updateRows = <T extends PgTable>(
  tx: Tx,
  values: NoInfer<Values<T>>,
  table: T,
  set: PgUpdateSetSource<T>,
) => tx.update(table).set(set).where(equals(table, values))
