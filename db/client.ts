import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import pg from 'pg'

/** A connection pool; reads take it or a transaction, writes take a transaction only. */
export type Db = NodePgDatabase<Record<string, never>> & { $client: pg.Pool }
export type Tx = Parameters<Parameters<Db['transaction']>[0]>[0]
export type Queryable = Db | Tx

export type DbOptions = {
  /** Shown in pg_stat_activity. */
  app: string
  max?: number
  statement_timeout_ms?: number
}

/** Opens a pool with the time-outs of reliability.md 2.4: waiting for a connection 0.5 s, a lock 2 s, a statement 2 s. */
export const createDb = (url: string, { app, max = 16, statement_timeout_ms = 2000 }: DbOptions) => {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    application_name: app,
    connectionTimeoutMillis: 2000,
    idleTimeoutMillis: 60_000,
    statement_timeout: statement_timeout_ms,
    // Earlier than the statement's own time-out: who waits for a lock hears 409 in_progress, not an outage.
    lock_timeout: Math.min(2000, statement_timeout_ms - 200),
    idle_in_transaction_session_timeout: 10_000,
    options: '-c timezone=UTC',
  })
  // A server that goes away breaks idle connections; the pool opens new ones, so there is nothing to do here.
  pool.on('error', () => {})
  const db = drizzle(pool) as unknown as Db
  return { db, pool, close: () => pool.end() }
}

/** The first row, or nothing. */
export const first = <T>(rows: T[]): T | undefined => rows[0]
