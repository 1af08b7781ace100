import type { NatsConnection } from 'nats'
import type pg from 'pg'
import { FENCED, type Fenced, runOf } from '../../../db/restore.ts'
import { ensureStreams, streamName } from '../../shared/events/events.ts'
import type { Logger } from '../../shared/telemetry.ts'
import { sendAgain } from './broker.ts'
import { findLost, type LostEvent, type Teller, TOLD } from './lost.ts'

type Place = { pool: pg.Pool; prefix: string }

/** Returns which of the two fenced schemas this database holds. */
const fencedOf = async (pool: pg.Pool): Promise<Fenced[]> => {
  const { rows } = await pool.query<{ schema: Fenced }>(
    `select s as schema from unnest($1::text[]) s where to_regclass(s || '.relay_state') is not null`,
    [FENCED],
  )
  return rows.map(({ schema }) => schema)
}

type State = { held: boolean; checked: boolean; epoch: number }

const readState = async (pool: pg.Pool, schema: Teller, fenced: readonly Fenced[]): Promise<State> => {
  if (fenced.length === 0) return { held: false, checked: true, epoch: 0 }
  const parts = fenced.map(
    (at) => `select coalesce(bool_or(name = 'restored' and stream_created is not null), false) as held,
        coalesce(bool_or(name = 'checked ${schema}' and stream_created = ${runOf(at)}), false) as checked,
        coalesce(max(epoch) filter (where name = 'restored'), 0)::int as epoch
      from ${at}.relay_state`,
  )
  const { rows } = await pool.query<State>(
    `select bool_or(held) as held, bool_and(checked) as checked, max(epoch) as epoch from (${parts.join(' union all ')}) s`,
  )
  return rows[0] as State
}

/** How old the guard's knowledge may be; a restore makes the database unavailable for longer. */
const TRUSTED_MS = 1000

/**
 * Notices that the database was restored to an earlier state: the broker then holds events that the database lacks
 * (reliability.md 4.13). Each leader asks before its first event goes out, and again for each run of the database. The
 * finding is stored in a row of each schema, for everyone who must not continue.
 */
export const createRestoreGuard = async (
  place: Place & { schema: Teller; log: Logger; found: (held: boolean) => void },
) => {
  const { pool, schema, prefix, log, found } = place
  const fenced = await fencedOf(pool)
  let state = await readState(pool, schema, fenced)
  let read_at = performance.now()
  let asked = false
  found(state.held)

  const ask = async (nc: NatsConnection) => {
    const lost = await findLost(pool, nc, prefix, schema, true)
    asked = true
    if (lost.length > 0) {
      log.error(
        { schema, lost: lost.length, newest: lost.at(-1)?.event_id },
        'NATS knows events that the database does not, as after a restore: no event goes out until `npm run ops -- accept-restore`',
      )
      await hold(pool, fenced, schema, lost)
    }
    for (const at of fenced)
      await pool.query(
        `insert into ${at}.relay_state (name, stream_created) values ('checked ${schema}', ${runOf(at)})
         on conflict (name) do update set stream_created = excluded.stream_created`,
      )
  }

  const look = async (nc: NatsConnection | undefined): Promise<boolean> => {
    const before = state.held
    state = await readState(pool, schema, fenced)
    if (!(asked && state.checked) && nc) {
      await ask(nc)
      state = await readState(pool, schema, fenced)
    }
    read_at = performance.now()
    if (state.held !== before) found(state.held)
    return !state.held
  }
  let looking: Promise<boolean> | undefined

  return {
    /** Events get no numbers and are not sent until a person accepts the restore. */
    isHeld: () => state.held,
    /** How many restores were accepted; each event sent carries this number. */
    epoch: () => state.epoch,
    /**
     * Asks the broker, or whether a person has accepted in the meantime; concurrent callers share one look. Returns
     * whether events may go out. Without a connection, only the database's own knowledge counts.
     */
    clear: async (nc: NatsConnection | undefined): Promise<boolean> => {
      const known = nc === undefined || (asked && state.checked)
      if (known && !state.held && performance.now() - read_at < TRUSTED_MS) return true
      looking ??= look(nc).finally(() => {
        looking = undefined
      })
      return looking
    },
  }
}
export type RestoreGuard = Awaited<ReturnType<typeof createRestoreGuard>>

const hold = async (pool: pg.Pool, fenced: readonly Fenced[], schema: Teller, lost: readonly LostEvent[]) => {
  for (const at of fenced)
    await pool.query(
      `insert into ${at}.relay_state (name, next, js_last_seq, stream_created)
       values ('restored', (select coalesce(max(next), 1) from ${at}.relay_state where name = 'relay'), $1, $2)
       on conflict (name) do update set stream_created = coalesce(relay_state.stream_created, excluded.stream_created),
         next = case when relay_state.stream_created is null then excluded.next else relay_state.next end,
         js_last_seq = case when relay_state.stream_created is null then excluded.js_last_seq
           else greatest(relay_state.js_last_seq, excluded.js_last_seq) end`,
      [at === schema ? newestNumber(lost) : null, new Date().toISOString()],
    )
}

const newestNumber = (lost: readonly LostEvent[]): number => Math.max(0, ...lost.map(({ pub_seq }) => Number(pub_seq)))

/** Whether a restore waits to be accepted. */
export const isRestoreHeld = async ({ pool }: Pick<Place, 'pool'>): Promise<boolean> =>
  (await readState(pool, 'catalog', await fencedOf(pool))).held

/**
 * Recreates the streams of the events that a restore lost, and with them their consumers. Lost events about accounts
 * are deleted from their stream. An emptied stream would still drop as repeats the events of the last minutes.
 */
export const renewStreams = async ({ pool, prefix }: Place, nc: NatsConnection, lost: readonly LostEvent[]) => {
  const jsm = await nc.jetstreamManager()
  for (const schema of await fencedOf(pool)) {
    const name = streamName(prefix, TOLD[schema].stream)
    await jsm.streams.delete(name).catch((error: { api_error?: { err_code?: number } }) => {
      if (error.api_error?.err_code !== NO_STREAM) throw error
    })
    await ensureStreams(nc, prefix, [TOLD[schema].stream])
  }
  for (const { schema, seq } of lost)
    if (TOLD[schema].stream === 'AUTH') await jsm.streams.deleteMessage(streamName(prefix, 'AUTH'), seq)
}
const NO_STREAM = 10_059

/** Has events sent again and resumes all apps under the next epoch, in one transaction. Lost numbers are never reused. */
export const raiseEpoch = async ({ pool }: Pick<Place, 'pool'>, epoch: number, lost: readonly LostEvent[]) => {
  const fenced = await fencedOf(pool)
  for (const at of fenced) {
    const theirs = lost.filter(({ schema }) => schema === at)
    await hold(pool, [at], at, theirs)
    await sendAgain(pool, at)
  }
  const client = await pool.connect()
  try {
    await client.query('begin')
    for (const at of fenced) {
      const newest = newestNumber(lost.filter(({ schema }) => schema === at))
      await client.query(
        `insert into ${at}.relay_state as r (name, epoch, next, js_last_seq)
         values ('restored', $1, (select coalesce(max(next), 1) from ${at}.relay_state where name = 'relay'), nullif($2::bigint, 0))
         on conflict (name) do update set epoch = excluded.epoch, stream_created = null,
           js_last_seq = nullif(greatest(r.js_last_seq, $2::bigint), 0)`,
        [epoch, newest],
      )
      await client.query(
        `update ${at}.relay_state set stream_created = null,
           next = greatest(next, (select coalesce(js_last_seq, 0) + 1 from ${at}.relay_state where name = 'restored'))
         where name = 'relay'`,
      )
    }
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  } finally {
    client.release()
  }
}
