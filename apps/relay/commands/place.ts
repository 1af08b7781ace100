import type pg from 'pg'
import type { Logger } from '../../shared/telemetry.ts'
import { type Engine, HIDDEN } from './temporal.ts'

/** How long an answer counts: a relay that is set to another engine is started anew. */
const TRUSTED_MS = 5000

const KEEP = `insert into operations.relay_state (name, stream_created) values ('engine', $1)
  on conflict (name) do update set stream_created = excluded.stream_created`

/** Makes the engine that the relay is set to the one in which this database's operations run. */
export const adoptEngine = async (pool: pg.Pool, engine: Engine): Promise<void> => {
  const id = await engine.identity()
  if (id !== undefined) await pool.query(KEEP, [`${id} ${engine.place}`])
}

/**
 * Throws if the relay is set to another engine than the one in which this database's operations run: that one does not
 * know them, so no command may reach it. The same namespace has the same id at every address. A new id at the known
 * address means that the engine has lost its data; a new id at another address, that the relay asks at the wrong place.
 * If an engine hides the id, only the known address is trusted.
 */
export const refuseOther = async (pool: pg.Pool, engine: Engine, log?: Logger): Promise<void> => {
  const id = await engine.identity()
  if (id === undefined) return
  const { rows } = await pool.query<{ known: string }>(
    `select stream_created as known from operations.relay_state where name = 'engine'`,
  )
  const [known, place] = rows[0]?.known.split(' ') ?? []
  if (place === engine.place && (known === id || id === HIDDEN)) return
  if (known !== undefined && place !== engine.place && (known === HIDDEN || id === HIDDEN))
    throw new Error(
      `${engine.place} may be another engine than ${place}, where the operations run: let the relay's account describe the namespace, or compare them by npm run ops -- reconcile --apply`,
    )
  if (known !== undefined && known !== id && place !== engine.place)
    throw new Error(
      `${engine.place} is another engine than ${place}, where the operations run: set the relay to that one, or give them up by npm run ops -- reconcile --apply`,
    )
  if (known !== undefined && known !== id && known !== HIDDEN)
    log?.error({ place }, 'the engine at the known address has lost its data')
  await pool.query(KEEP, [`${id} ${engine.place}`])
}

/** `refuseOther` for frequent callers: only the first answer is waited for, and later ones are asked for beside the work. */
export const createPlaceGuard = (pool: pg.Pool, engine: Engine, log: Logger) => {
  let asked_at = Number.NEGATIVE_INFINITY
  let first: Promise<void> | undefined
  let refused: unknown
  const ask = async (): Promise<void> => {
    asked_at = performance.now()
    refused = await refuseOther(pool, engine, log).then(
      () => undefined,
      (error: unknown) => error,
    )
  }
  return async (): Promise<void> => {
    first ??= ask()
    await first
    if (refused) await ask()
    else if (performance.now() - asked_at > TRUSTED_MS) void ask()
    if (refused) throw refused
  }
}
