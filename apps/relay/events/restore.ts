import type { NatsConnection } from 'nats'
import type pg from 'pg'
import { ensureStreams, type StreamName, streamName } from '../../shared/events/events.ts'
import type { Logger } from '../../shared/telemetry.ts'

/** Streams of dense events, by their schema. Those of accounts tell nothing that an older state would contradict. */
export const DENSE = { catalog: 'CATALOG', operations: 'OPERATIONS' } as const satisfies Record<string, StreamName>
export type Dense = keyof typeof DENSE

type Place = { pool: pg.Pool; schema: Dense; prefix: string }

/** The number that the newest event of the stream bears; 0 when there is none. */
const newestOf = async (nc: NatsConnection, prefix: string, schema: Dense): Promise<number> => {
  const jsm = await ensureStreams(nc, prefix, [DENSE[schema]])
  const name = streamName(prefix, DENSE[schema])
  const { state } = await jsm.streams.info(name)
  if (state.messages === 0) return 0
  const message = await jsm.streams.getMessage(name, { seq: state.last_seq })
  return Number(message.header.get('Sb-Pub-Seq') || 0)
}

const isHeld = async ({ pool, schema }: Place): Promise<boolean> => {
  const { rowCount } = await pool.query(
    `select 1 from ${schema}.relay_state where name = 'restored' and stream_created is not null`,
  )
  return rowCount === 1
}

/**
 * Notices that the database was restored to an earlier state: the broker then holds events under numbers that are about
 * to be given again (reliability.md 4.8). It asks once, before the first event of this leadership goes out, with the
 * numbers as they were when it began; what it found is kept in a row, for the numbers go on.
 */
export const createRestoreGuard = async (place: Place & { log: Logger; found: (held: boolean) => void }) => {
  const { pool, schema, prefix, log, found } = place
  const { rows } = await pool.query<{ next: string }>(`select next from ${schema}.relay_state where name = 'relay'`)
  const next = Number(rows[0]?.next ?? 1)
  let held = await isHeld(place)
  let asked = held
  found(held)

  const ask = async (nc: NatsConnection) => {
    const newest = await newestOf(nc, prefix, schema)
    asked = true
    if (newest < next) return
    held = true
    found(true)
    log.error(
      { schema, newest, next },
      'NATS knows later events than the database, as after a restore: nothing goes out until `npm run ops -- accept-restore`',
    )
    await pool.query(
      `insert into ${schema}.relay_state (name, stream_created, js_last_seq) values ('restored', $1, $2)
       on conflict (name) do update set stream_created = excluded.stream_created, js_last_seq = excluded.js_last_seq`,
      [new Date().toISOString(), newest],
    )
  }

  return {
    /** Events get no numbers and do not go out until a person accepts. */
    isHeld: () => held,
    /** Asks the broker, or whether a person has accepted meanwhile. Answers whether events may go out. */
    clear: async (nc: NatsConnection | undefined): Promise<boolean> => {
      if (!asked && nc) await ask(nc)
      if (held) {
        held = await isHeld(place)
        if (!held) found(false)
      }
      return !held
    },
  }
}

/**
 * What a person decides after a restore: the stream with what no longer happened is made anew, and with it its consumers;
 * the events of the database go out again, and inboxes know those that they had. Answers whether there was one to accept.
 */
export const acceptRestore = async (place: Place, nc: NatsConnection): Promise<boolean> => {
  const { pool, schema, prefix } = place
  if (!(await isHeld(place))) return false
  const jsm = await nc.jetstreamManager()
  // Emptied it would still drop as repeated what it has heard of in the last minutes.
  await jsm.streams.delete(streamName(prefix, DENSE[schema]))
  await ensureStreams(nc, prefix, [DENSE[schema]])
  await pool.query(`update ${schema}.outbox set published_at = null, js_seq = null where published_at is not null`)
  await pool.query(`update ${schema}.relay_state set stream_created = null where name = 'restored'`)
  return true
}
