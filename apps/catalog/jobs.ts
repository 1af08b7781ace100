import { setTimeout as delay } from 'node:timers/promises'
import { pruneCommands, pruneObservations } from '../../db/catalog/commands.ts'
import type { CatalogDeps } from './deps.ts'
import { sweepHealth } from './health.service.ts'

const LOCK = 727330
const PRUNE_MS = 60_000
const DAY_MS = 86_400_000

/** One turn of tidying up (catalog.md 9, "Jobs"): answers of commands and observations whose time is over. */
export const prune = async ({ db, clock, config }: CatalogDeps, stopped: () => boolean = () => false) => {
  const now = clock.now()
  const before = new Date(now.getTime() - config.observations_d * DAY_MS).toISOString()
  while (!stopped() && (await pruneCommands(db, now.toISOString()))) {
    // goes on while there are full batches
  }
  while (!stopped() && (await pruneObservations(db, before))) {
    // the same
  }
}

/** Sweeps health, and tidies up now and then, in one process of all; `stop` waits for the turn that is running. */
export const startSweeper = (deps: CatalogDeps) => {
  const stopping = new AbortController()
  const stopped = () => stopping.signal.aborted
  let pruned_at = Number.NEGATIVE_INFINITY
  const work = async () => {
    while (!stopped() && (await sweepHealth(deps))) {
      // goes on while there are full batches
    }
    if (performance.now() - pruned_at < PRUNE_MS) return
    pruned_at = performance.now()
    await prune(deps, stopped)
  }
  const sweepOnce = async () => {
    // Taken for one turn only, on a connection that is not held between turns.
    const client = await deps.pool.connect()
    try {
      const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [LOCK])
      if (!rows[0]?.taken) return
      try {
        await work()
      } finally {
        await client.query('select pg_advisory_unlock($1)', [LOCK])
      }
    } finally {
      client.release()
    }
  }
  const loop = (async () => {
    while (!stopped()) {
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
