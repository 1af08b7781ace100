import { asc, gt, sql } from 'drizzle-orm'
import type { Redis } from 'ioredis'
import type { Db } from '../../../db/client.ts'
import { pruneRows } from '../../../db/prune.ts'
import { type Revocation, revocations } from '../../../db/session/tables.ts'
import { ConfigError } from '../../shared/config.ts'
import { unavailable } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import type { Telemetry } from '../../shared/telemetry.ts'
import type { Audit } from './audit.ts'
import type { Store } from './store.ts'

const INSERT_MS = 300
const BATCH = 500
const RETRY_MS = 1000

type RevocationDeps = { db: Db; redis: Redis; store: Store; audit: Audit; telemetry: Telemetry }

/**
 * Stores revocations in Postgres as well as Redis, and reapplies them if Redis is not the instance that session knew.
 * After a reconnect to another run, or without `auth:epoch`, no request is served until all unexpired rows are applied.
 */
export const createRevocations = (deps: RevocationDeps) => {
  const { db, telemetry } = deps
  const failures = telemetry.counter(
    'signalbox_revocation_inserts_failed_total',
    'Revocations that only the relay has stored.',
  )
  const revoked = telemetry.counter('signalbox_sessions_revoked_total', 'Sessions revoked.', ['reason'])
  return {
    ...applyAgain(deps),
    /** Stores the revocations of a script, within 300 ms; the relay repeats this from the stream. */
    record: async (rows: readonly Revocation[]): Promise<void> => {
      if (rows.length === 0) return
      for (const { reason } of rows) revoked.inc({ reason })
      const insert = db
        .insert(revocations)
        .values([...rows])
        .onConflictDoNothing()
      const late = new Promise<never>((_, reject) => {
        setTimeout(() => reject(new Error(`no answer in ${INSERT_MS} ms`)), INSERT_MS).unref()
      })
      await Promise.race([insert, late]).catch((error: Error) => {
        failures.inc()
        telemetry.log.warn({ err: error }, 'a revocation is left to the relay')
      })
    },
  }
}
export type Revocations = ReturnType<typeof createRevocations>

/**
 * Reapplies the stored revocations to each Redis that session does not know yet. A lost connection alone changes no data:
 * one to the Redis known before needs no Postgres.
 */
const applyAgain = ({ db, redis, store, audit, telemetry: { log } }: RevocationDeps) => {
  let known: string | undefined
  let served = false
  let applied = false
  let stopped = false
  let running: Promise<void> | undefined

  /** Applies the stored revocations if this Redis is not the known one. */
  const check = async (): Promise<void> => {
    const found = identityOf(await redis.info())
    const lost = !(await store.hasEpoch())
    if (found !== undefined && found === known && !lost) {
      applied = true
      return
    }
    applied = false
    // Whatever happens on this one, the Redis known before may miss it.
    known = undefined
    const { rows, revived } = await applyAll(db, store)
    const expected = served || rows > 0
    known = found
    served = true
    applied = true
    if (revived > 0) log.error({ revived }, 'Redis had sessions that were revoked: they are revoked again')
    if (lost && expected) {
      log.error('Redis has lost its data: everyone must sign in again')
      await audit({ action: 'data_loss', outcome: 'noted', actor: 'system', request_id: uuidv7(), reason: 'no_epoch' })
    }
  }
  const checkUntilDone = async () => {
    while (!stopped && redis.status === 'ready') {
      try {
        return await check()
      } catch (error) {
        log.warn({ err: error }, 'revocations cannot be applied again yet')
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref())
      }
    }
  }
  const start = () => {
    running ??= checkUntilDone().finally(() => {
      running = undefined
    })
    return running
  }
  redis.on('close', () => {
    applied = false
  })
  redis.on('ready', () => void start())

  return {
    check,
    stop: () => {
      stopped = true
    },
    /** Refuses to work on a Redis that may still hold revoked sessions. */
    assertApplied: () => {
      if (!applied) throw unavailable('The session store is recovering.', undefined, 'unavailable')
    },
  }
}

/** Deletes revocations whose session no copy of Redis can still hold. */
export const pruneRevocations = (db: Db): Promise<number> => pruneRows(db, revocations, 'expires_at', sql`now()`)

/** Which process holds which history of data: a primary that was a replica meanwhile has another history. */
const identityOf = (info: string): string | undefined => {
  const [run, history] = ['run_id', 'master_replid'].map((name) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1])
  return run && history && `${run} ${history}`
}

/** Ends every stored session again, in batches by session id. Returns the numbers of rows and of revived sessions. */
const applyAll = async (db: Db, store: Store): Promise<{ rows: number; revived: number }> => {
  let revived = 0
  let count = 0
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const rows = await db
      .select({
        session_id: revocations.session_id,
        user_id: revocations.user_id,
        deny: sql<boolean>`${revocations.access_valid_until} > clock_timestamp()`,
      })
      .from(revocations)
      .where(sql`${gt(revocations.session_id, after)} and ${revocations.expires_at} > clock_timestamp()`)
      .orderBy(asc(revocations.session_id))
      .limit(BATCH)
    const done = rows.length < BATCH
    revived += await store.reapply(rows, done ? uuidv7() : undefined)
    count += rows.length
    if (done) return { rows: count, revived }
    after = rows.at(-1)?.session_id ?? after
  }
}

const WANTED = { appendonly: 'yes', appendfsync: 'always', 'maxmemory-policy': 'noeviction' } as const

/**
 * Checks the settings without which Redis loses or evicts sessions (reliability.md 4.11). Production refuses to start;
 * development logs one warning. A server that hides its settings passes.
 */
export const checkRedisSettings = async (
  redis: Redis,
  production: boolean,
  log: Telemetry['log'],
): Promise<string | undefined> => {
  const weak: string[] = []
  for (const [name, wanted] of Object.entries(WANTED)) {
    const reply = (await redis.config('GET', name).catch(() => [])) as string[]
    if (reply[1] !== undefined && reply[1] !== wanted) weak.push(`${name} is ${reply[1]} instead of ${wanted}`)
  }
  if (weak.length === 0) return undefined
  const message = `SESSION__REDIS__URL names a Redis that may lose sessions: ${weak.join(', ')}.`
  if (production) throw new ConfigError(message)
  log.warn(message)
  return message
}
