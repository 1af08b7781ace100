import type { NatsConnection } from 'nats'
import type pg from 'pg'
import { ensureStreams, KEPT_DAYS, type StreamName, streamName } from '../../shared/events/events.ts'
import type { Logger } from '../../shared/telemetry.ts'

const KEPT = `occurred_at > now() - interval '${KEPT_DAYS} days'`
const BATCH = 1000
const LAST = 2n ** 63n - 1n

/**
 * Lets the events that the stream had under a number above `last` be published again, the oldest first, as far back as a
 * stream would still hold them; consumers read older ones from their owner. Their number becomes 0.
 */
export const sendAgain = async (pool: pg.Pool, schema: string, last = 0): Promise<void> => {
  const parts: [string, string][] = []
  for (let end = String(LAST); ; ) {
    const { rows } = await pool.query<{ begin: string | null; kept: boolean | null }>(
      `select min(pub_seq) as begin, bool_or(${KEPT}) as kept from
       (select pub_seq, occurred_at from ${schema}.outbox where pub_seq < $1 order by pub_seq desc limit ${BATCH}) part`,
      [end],
    )
    const { begin, kept } = rows[0] ?? {}
    if (!begin || !kept) break
    parts.push([begin, end])
    end = begin
  }
  for (const part of parts.reverse())
    await pool.query(
      `update ${schema}.outbox set published_at = null, js_seq = 0
       where pub_seq >= $1 and pub_seq < $2 and js_seq > $3 and ${KEPT}`,
      [...part, last],
    )
}

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
  const jsm = await ensureStreams(nc, prefix, [stream], { raise: false })
  // In this order: anything already marked as published must be in the stream a moment later.
  const { rows } = await pool.query<{ stream_created: string | null; js_last_seq: string | null; seen: string | null }>(
    `select stream_created, js_last_seq as seen, (select js_seq from (select js_seq, occurred_at from ${schema}.outbox
       where js_seq > 0 order by pub_seq desc limit 1) newest where ${KEPT}) as js_last_seq
     from ${schema}.relay_state where name = 'relay'`,
  )
  const info = await jsm.streams.info(streamName(prefix, stream))
  const created = String(info.created)
  const last = info.state.last_seq
  const known = rows[0]
  let lost = true
  if (known?.stream_created && known.stream_created !== created) {
    log.error({ schema, stream }, 'the stream was recreated; publishing the outbox again')
    await sendAgain(pool, schema)
  } else if (known?.js_last_seq && last < Number(known.js_last_seq)) {
    log.error(
      { schema, stream, last, known: known.js_last_seq },
      'the stream was rolled back; publishing the lost part again',
    )
    await sendAgain(pool, schema, last)
  } else if (known?.stream_created && known.seen && last < Number(known.seen)) {
    log.error({ schema, stream, last, known: known.seen }, 'the stream was rolled back; the outbox has lost no event')
  } else lost = false
  await pool.query(`update ${schema}.relay_state set stream_created = $1, js_last_seq = $2 where name = 'relay'`, [
    created,
    last,
  ])
  // A server without that room still carries the events that there are.
  await ensureStreams(nc, prefix, [stream]).catch((err: unknown) =>
    log.error({ err, stream }, 'the stream cannot have the configured replicas or bytes'),
  )
  return lost
}
