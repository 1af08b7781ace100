import type { Writable } from 'node:stream'
import { and, eq } from 'drizzle-orm'
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { PgColumn, PgTable, PgUpdateSetSource } from 'drizzle-orm/pg-core'
import pg from 'pg'
import { type Deadline, deadlineNow } from '../apps/shared/process/deadline.ts'
import { PATIENT } from '../apps/shared/process/priority.ts'
import { shareConnections } from '../apps/shared/process/shares.ts'

/** The database behind a connection pool; reads take it or a transaction, writes only a transaction. */
export type Db = NodePgDatabase<Record<string, never>> & { $client: pg.Pool }
export type Tx = Parameters<Parameters<Db['transaction']>[0]>[0]
/** The options of a transaction whose reads all see one state. */
export const SNAPSHOT = { isolationLevel: 'repeatable read', accessMode: 'read only' } as const

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
 * In a transaction rows are found by their keys: a plan without the values is equally good, and is made once per
 * connection instead of five times. It must then hold for a table that was small and grows before its next analysis,
 * also in checks of foreign keys: so it uses an index even where reading all rows is cheaper now. Lists are read
 * outside transactions, where the values determine the plan.
 */
const PLAN_ONCE = 'set local plan_cache_mode = force_generic_plan; set local enable_seqscan = off'

/** For commands that a person runs once: on a busy machine a connection may take longer than a request may wait. */
export const ONE_ACT = { connect_timeout_ms: 30_000, statement_timeout_ms: 30_000 } as const

/** How much later than the server a client aborts a statement. */
const SILENT_MS = 1000
/** The code of a change that a server refuses because it only reads. */
const READ_ONLY = '25006'

/**
 * A URL with `?pooler=transaction` leads to PgBouncer in transaction mode. Each transaction may use another server
 * connection, so statements have no names, and the client sends no settings at startup: those of the role apply.
 */
const poolerOf = (url: string): { pooler: boolean; url: string } => {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const pooler = parsed?.searchParams.get('pooler') === 'transaction'
  if (!parsed || !pooler) return { pooler, url }
  parsed.searchParams.delete('pooler')
  return { pooler, url: parsed.href }
}

/**
 * Opens a pool with its timeouts: a connection 5 s, a lock 1.8 s, a statement 2 s unless the app sets others. To open a
 * connection, a busy server starts a process and checks a password: cut short, that work is lost and begins again.
 */
export const createDb = (
  given_url: string,
  { app, max = 16, statement_timeout_ms = 2000, lock_timeout_ms = 2000, connect_timeout_ms = 5000 }: DbOptions,
) => {
  const { pooler, url } = poolerOf(given_url)
  const settings = {
    statement_timeout: statement_timeout_ms,
    // Shorter than the statement timeout: a caller that waits for a lock gets 409 in_progress, not an outage.
    lock_timeout: Math.min(lock_timeout_ms, statement_timeout_ms - 200),
    idle_in_transaction_session_timeout: 10_000,
    // A statement whose client is gone, killed or cut off at its deadline, ends and releases its locks. JIT compilation
    // costs far more than any of our statements.
    options: '-c timezone=UTC -c client_connection_check_interval=250 -c jit=off',
  }
  const pool = new pg.Pool({
    Client: pooler ? PooledClient : PreparingClient,
    connectionString: url,
    // Statements that do not need each other's results go out together (`together`): one round trip.
    pipeline: true,
    max,
    application_name: app,
    connectionTimeoutMillis: connect_timeout_ms,
    idleTimeoutMillis: 60_000,
    // The client's own timeout: a server that vanishes silently ends no statement. The connection is dropped with it.
    query_timeout: statement_timeout_ms + SILENT_MS,
    ...(!pooler && settings),
  })
  shareConnections(pool, max)
  // When the server goes away, idle connections break; the pool opens new ones, so this needs no handling.
  pool.on('error', () => {})
  // The same for one that is checked out but idle, such as a transaction waiting for another app: its next query fails.
  pool.on('connect', (client) => {
    client.on('error', () => {})
    const { connection } = client as unknown as Wire
    // The server has become a standby: the address leads to the new primary, but only for a new connection.
    connection?.on('errorMessage', (error) => error.code === READ_ONLY && connection.stream?.destroy(error))
  })
  const db = drizzle(pool) as unknown as Db
  return { db, pool, pooler, close: () => pool.end() }
}

/** How many statements one process prepares: endlessly varying statements must not fill the server's memory. */
const MAX_PREPARED = 400
const prepared = new Map<string, string>()
const seenOnce = new Set<string>()

/** The name under which each connection prepares a statement: from its second use on, until the limit is reached. */
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

/** Without values, a text may also hold several statements, or one that the server cannot prepare. */
const ONE = /^\s*(?:select|with|insert|update|delete)\b[^;]*$/
const isPreparable = (text: string, values: unknown): boolean =>
  Array.isArray(values) || prepared.has(text) || ONE.test(text)

const BEGIN = /^begin\b/i
const ROLLBACK = /^rollback$/i
const COMMIT = /^commit$/i

/** pg's internal connection members, missing from its types. */
type Wire = {
  connection?: {
    stream?: Pick<Writable, 'cork' | 'uncork' | 'destroy'>
    on: (event: 'errorMessage', listener: (error: pg.DatabaseError) => unknown) => void
  }
  connectionParameters?: { statement_timeout?: number | string | false }
}
type Callback = (error: Error | null, result?: unknown) => void
/** A transaction of a request: after its deadline no statement is sent, above all no commit. */
type Bounded = { deadline: Deadline; letGo: () => void; committing: boolean; query_timeout?: number }

/**
 * Prepares repeated statements: parsing and planning cost more than most of our statements. Statements of one turn of
 * the event loop go out as one write: system calls cost more than their content. It does not wait for a `begin`, so
 * that it goes out with the transaction's first statement. A request's statements end at its deadline: the connection
 * is cut, and the server rolls back.
 */
class PreparingClient extends pg.Client {
  protected readonly names: boolean = true
  private corked = false
  private bounded: Bounded | undefined

  // biome-ignore lint/suspicious/noExplicitAny: pg's own overloads, passed through as they are
  override query(config: any, values?: any, callback?: any): any {
    const given = typeof config === 'string' ? { text: config } : config
    if (!this.names && given.name !== undefined) return this.query({ ...given, name: undefined }, values, callback)
    const bare =
      given.submit !== undefined || given.name !== undefined || !isPreparable(given.text, given.values ?? values)
    const name = bare || !this.names ? undefined : nameOf(given.text)
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
   * The result is not needed. If it fails, no statement may follow on this connection. A statement near the deadline
   * gets only the remaining time, although cutting the connection would end it too.
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

  /** Fails only on a broken connection. The transaction already reported why; a failed rollback must not hide that. */
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

  /** Commits. After a failed statement, a commit ends the transaction by rolling it back, which counts as a failure. */
  private async commit(config: pg.QueryConfig): Promise<object> {
    const { bounded } = this
    // The caller then rolls back.
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

/** For a pooler: one server connection does not know the statements prepared on another. */
class PooledClient extends PreparingClient {
  protected override readonly names = false
}

/** Refuses a statement after its deadline, by callback or promise as it was called. */
const refused = ({ refusal }: Deadline, callback?: Callback): Promise<never> | undefined => {
  if (callback === undefined) return Promise.reject(refusal())
  process.nextTick(callback, refusal())
  return undefined
}

/** Receives the last statements sent in a transaction, which need not be awaited before its commit. */
export type Last = (sent: Promise<unknown>) => void

/**
 * Runs a transaction whose last statements go out together with its commit, in one round trip: `run` sends them and
 * passes them to `last`. If they fail, it fails with their error and is rolled back.
 */
export const transact = async <T>(db: Db, run: (tx: Tx, last: Last) => Promise<T>): Promise<T> => {
  const all: Promise<unknown>[] = []
  const last: Last = (sent) => {
    sent.catch(() => {})
    all.push(sent)
  }
  try {
    return await db.transaction((tx) => run(tx, last))
  } finally {
    // The reason for a failed commit: later failures only follow from the first. One that no server saw is told too.
    await together(...all)
  }
}

export const first = <T>(rows: T[]): T | undefined => rows[0]

/** The code of a statement that was refused because one before it, in the same transaction, had failed. */
const AFTER_FAILURE = '25P02'
const isCause = (reason: unknown) => {
  const { code, cause } = reason as { code?: string; cause?: { code?: string } }
  return (cause?.code ?? code) !== AFTER_FAILURE
}

/**
 * The results of independent steps of one transaction, whose statements go out together. Waits for all of them before
 * it throws, so that none sends anything after the rollback: the failure that made the server refuse the others.
 */
export const together = async <T extends readonly unknown[]>(
  ...steps: { [K in keyof T]: PromiseLike<T[K]> }
): Promise<T> => {
  const settled = await Promise.allSettled(steps)
  const failures = settled.flatMap((step) => (step.status === 'rejected' ? [step.reason] : []))
  if (failures.length > 0) throw failures.find(isCause) ?? failures[0]
  return settled.map((step) => (step as PromiseFulfilledResult<unknown>).value) as unknown as T
}

/** Values of some columns; not null, because no value equals null in SQL. */
type Values<T extends PgTable> = {
  [K in keyof T['$inferSelect']]?: NonNullable<T['$inferSelect'][K]>
}

/** The condition that each of these columns of a table has this value. */
export const equals = <T extends PgTable>(table: T, values: Values<T>) =>
  and(...Object.entries(values).map(([name, value]) => eq(table[name as keyof T] as PgColumn, value)))

/** Updates the rows of a table that have these values. */
export const updateRows = <T extends PgTable>(
  tx: Tx,
  values: NoInfer<Values<T>>,
  table: T,
  set: PgUpdateSetSource<T>,
) => tx.update(table).set(set).where(equals(table, values))
