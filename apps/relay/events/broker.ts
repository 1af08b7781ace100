import type { NatsConnection } from 'nats'
import type pg from 'pg'
import { ensureStreams, type StreamName, streamName } from '../../shared/events/events.ts'
import type { Logger } from '../../shared/telemetry.ts'

/**
 * Checks whether the broker still has the published events (reliability.md 4.8). A recreated or rolled-back stream gets
 * the missing part of the hot outbox again. Runs at each connect and each minute. Returns whether messages were lost.
 */
export const checkBroker = async (
  pool: pg.Pool,
  nc: NatsConnection,
  prefix: string,
  schema: string,
  stream: StreamName,
  log: Logger,
): Promise<boolean> => {
  const jsm = await ensureStreams(nc, prefix, [stream])
  // In this order: anything already marked as published must be in the stream a moment later.
  const { rows } = await pool.query<{ stream_created: string | null; js_last_seq: string | null }>(
    `select stream_created, (select js_seq from ${schema}.outbox where js_seq is not null order by pub_seq desc limit 1) as js_last_seq
     from ${schema}.relay_state where name = 'relay'`,
  )
  const info = await jsm.streams.info(streamName(prefix, stream))
  const created = String(info.created)
  const last = info.state.last_seq
  const known = rows[0]
  let lost = true
  if (known?.stream_created && known.stream_created !== created) {
    log.error({ schema, stream }, 'the stream was recreated; publishing the outbox again')
    await pool.query(`update ${schema}.outbox set published_at = null where published_at is not null`)
  } else if (known?.js_last_seq && last < Number(known.js_last_seq)) {
    log.error(
      { schema, stream, last, known: known.js_last_seq },
      'the stream was rolled back; publishing the lost part again',
    )
    await pool.query(`update ${schema}.outbox set published_at = null where js_seq > $1`, [last])
  } else lost = false
  await pool.query(`update ${schema}.relay_state set stream_created = $1, js_last_seq = $2 where name = 'relay'`, [
    created,
    last,
  ])
  return lost
}
