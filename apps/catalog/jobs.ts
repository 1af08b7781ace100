import { setTimeout as delay } from 'node:timers/promises'
import type { CatalogDeps } from './deps.ts'
import { sweepHealth } from './health.service.ts'

const LOCK = 727330

/** Runs the sweeper in one process of all; `stop` waits for the turn that is running. */
export const startSweeper = (deps: CatalogDeps) => {
  const stopping = new AbortController()
  const sweepOnce = async () => {
    // Taken for one turn only, on a connection that is not held between turns.
    const client = await deps.pool.connect()
    try {
      const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [LOCK])
      if (!rows[0]?.taken) return
      try {
        while (!stopping.signal.aborted && (await sweepHealth(deps))) {
          // goes on while there are full batches
        }
      } finally {
        await client.query('select pg_advisory_unlock($1)', [LOCK])
      }
    } finally {
      client.release()
    }
  }
  const loop = (async () => {
    while (!stopping.signal.aborted) {
      await sweepOnce().catch((error) => deps.telemetry.log.warn({ err: error }, 'health could not be swept'))
      await delay(deps.config.sweep_ms, undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  return {
    stop: async () => {
      stopping.abort()
      await loop
    },
  }
}
