import { sql } from 'drizzle-orm'
import { pruneJobs } from '../../db/catalog/imports/jobs.ts'
import { pruneOld, pruneRevisions } from '../../db/catalog/resources/commands.ts'
import { inboxOf } from '../../db/catalog/tables.ts'
import { pruneInbox } from '../../db/inbox.ts'
import { tryLockOf } from '../../db/locks.ts'
import { type Loop, startLoop } from '../shared/process/repeat.ts'
import { noteTurn } from '../shared/turns.ts'
import type { CatalogDeps, Uses } from './deps.ts'
import { sweepHealth, sweepProviders, sweepReservations } from './expiry.ts'

const SWEEP = 'sweep'
const HISTORY = 'history'
const PRUNE_MS = 60_000
const DAY_MS = 86_400_000

/** Continues while batches are full. A long turn is not a stuck one. */
const drain = async (loop: string, stopped: () => boolean, turn: () => Promise<boolean>): Promise<void> => {
  for (let more = true; more && !stopped(); noteTurn(loop)) more = await turn()
}

/** One turn of cleanup (catalog.md 9, "Jobs"): expired command answers and observations. */
export const prune = async ({ db, clock, config }: CatalogDeps, stopped: () => boolean = () => false) => {
  const now = clock.now()
  const before = new Date(now.getTime() - config.observations_d * DAY_MS).toISOString()
  const jobs_before = new Date(now.getTime() - config.retain_public_d * DAY_MS).toISOString()
  await drain(SWEEP, stopped, () => pruneOld(db, 'command_log', now.toISOString()))
  await drain(SWEEP, stopped, () => pruneOld(db, 'observation_history', before))
  await drain(SWEEP, stopped, () => pruneJobs(db, jobs_before))
}

/** Deletes expired history: closed relationships, and revisions that no retained time needs. Walks all resources. */
export const pruneHistory = async ({ db, clock, config }: CatalogDeps, stopped: () => boolean = () => false) => {
  const before = new Date(clock.now().getTime() - config.history_d * DAY_MS).toISOString()
  await pruneInbox(db, inboxOf)
  await drain(HISTORY, stopped, () => pruneOld(db, 'relationship_history', before))
  await drain(HISTORY, stopped, () => pruneOld(db, 'provider_history', before))
  let after: string | undefined = '0'
  await drain(HISTORY, stopped, async () => {
    after = await pruneRevisions(db, before, after ?? '0')
    return after !== undefined
  })
}

/**
 * Sweeps health and providers, and cleans up at intervals, in one process of all; `stop` waits for these turns. History
 * has a loop of its own, because its walk may take long: health must expire meanwhile.
 */
export const startSweeper = (deps: CatalogDeps): Pick<Loop, 'stop'> => {
  let stopping = false
  const stopped = () => stopping
  let pruned_at = Number.NEGATIVE_INFINITY
  let history_at = Number.NEGATIVE_INFINITY
  const sweep = async () => {
    // Together: a region that goes silent must not keep capacity reserved.
    await Promise.all([sweepHealth, sweepProviders, sweepReservations].map((one) => one(deps, { stopped })))
    if (performance.now() - pruned_at < PRUNE_MS) return
    pruned_at = performance.now()
    await prune(deps, stopped)
  }
  const history = async () => {
    if (performance.now() - history_at < DAY_MS) return
    await pruneHistory(deps, stopped)
    history_at = performance.now()
  }
  const loops = [
    startLoop(SWEEP, alone(deps, 'catalogJobs', sweep), {
      every_ms: deps.config.sweep_ms,
      failed: (err) => deps.telemetry.log.warn({ err }, 'expired rows could not be swept'),
    }),
    startLoop(HISTORY, alone(deps, 'catalogHistory', history), {
      every_ms: PRUNE_MS,
      failed: (err) => deps.telemetry.log.warn({ err }, 'expired history could not be deleted'),
    }),
  ]
  return {
    stop: async () => {
      stopping = true
      await Promise.all(loops.map((loop) => loop.stop()))
    },
  }
}

/**
 * Works unless another process does. The lock ends with a transaction: behind PgBouncer, one of a session stays with a
 * connection that others get.
 */
const alone =
  ({ db }: Uses<'db'>, lock: Parameters<typeof tryLockOf>[0], work: () => Promise<void>) =>
  (): Promise<void> =>
    db.transaction(async (tx) => {
      await tx.execute(sql`set local idle_in_transaction_session_timeout = '1h'`)
      const { rows } = await tx.execute<{ held: boolean }>(sql`select ${tryLockOf(lock)} as held`)
      if (rows[0]?.held) await work()
    })
