import type pg from 'pg'
import type { Telemetry } from '../telemetry.ts'

/** Seconds; a wait of half a second means that the pool is too small. */
const WAITS = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2]

/** Reports connections of an app's pool, and how long a statement or transaction waits for one (reliability.md 7). */
export const measurePool = (telemetry: Telemetry, pool: pg.Pool): void => {
  const connections = telemetry.gauge('signalbox_pg_pool_connections', 'Connections to Postgres.', ['state'])
  const collect = () => {
    connections.set({ state: 'busy' }, pool.totalCount - pool.idleCount)
    connections.set({ state: 'idle' }, pool.idleCount)
    connections.set({ state: 'waiting' }, pool.waitingCount)
  }
  Object.assign(connections, { collect })
  const waited = telemetry.histogram('signalbox_pg_pool_wait_seconds', 'Time until a connection was free.', [], WAITS)
  const connect = pool.connect.bind(pool)
  type Done = Parameters<Parameters<pg.Pool['connect']>[0]>
  // All connections are taken here: by the pool's `query` with a callback, by transactions with a promise.
  const measured = (then?: (...done: Done) => void): unknown => {
    const started = performance.now()
    const observe = () => waited.observe((performance.now() - started) / 1000)
    if (!then) return connect().finally(observe)
    return connect((...done: Done) => {
      observe()
      then(...done)
    })
  }
  pool.connect = measured as pg.Pool['connect']
}
