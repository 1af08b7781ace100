import pg from 'pg'
import { sessionLock } from '../../db/locks.ts'
import { wakeChannel } from '../../db/outbox.ts'
import { createSleeper } from '../shared/sleep.ts'
import type { Logger } from '../shared/telemetry.ts'

/** Starts one schema's work when this process leads it; returns how to stop it, and how to wake it after a commit. */
export type Lead = (epoch: number) => Promise<{ stop: () => Promise<void>; wake: () => void }>

const RETRY_MS = 2000
const LOOK_MS = 5000
const SILENT_MS = 5000
/** The server ends the connection, and with it the lock, of a leader that no longer looks or whose host is gone. */
const RELEASED =
  '-c idle_session_timeout=12000 -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3'

/**
 * One active relay per schema: an advisory lock on a separate connection. Taking over raises the schema's epoch, so
 * that a relay which was paused and comes back can no longer number events (reliability.md 4.3). The same connection
 * listens for wake-ups from apps without NATS.
 */
export const startLeadership = (url: string, schema: string, log: Logger, lead: Lead) => {
  let stopped = false
  let leading = false
  let release: (() => void) | undefined
  const { sleep, wake } = createSleeper()

  const holdOnce = async () => {
    const client = new pg.Client({
      connectionString: url,
      application_name: `relay:${schema}`,
      keepAlive: true,
      connectionTimeoutMillis: SILENT_MS,
      query_timeout: SILENT_MS,
      options: RELEASED,
    })
    // A leader whose connection has gone silent no longer leads.
    const look = setInterval(() => client.query('select 1').catch(() => release?.()), LOOK_MS)
    const lost = new Promise<void>((resolve) => {
      client.on('error', () => resolve())
      client.on('end', () => resolve())
      release = resolve
    })
    try {
      await client.connect()
      const { rows } = await client.query<{ held: boolean }>(sessionLock.tryKeyed('leader'), [schema])
      if (!rows[0]?.held || stopped) return
      const epoch = await client.query<{ epoch: string }>(
        `insert into ${schema}.relay_state as r (name, epoch, next) values ('relay', 1, 1)
         on conflict (name) do update set epoch = r.epoch + 1 returning epoch`,
      )
      const work = await lead(Number(epoch.rows[0]?.epoch))
      client.on('notification', () => work.wake())
      await client.query(`listen ${pg.escapeIdentifier(wakeChannel(schema))}`).catch(() => release?.())
      leading = true
      log.info({ schema, epoch: epoch.rows[0]?.epoch }, 'leading')
      await lost
      leading = false
      await work.stop()
    } finally {
      leading = false
      clearInterval(look)
      await client.end().catch(() => {})
    }
  }

  const run = async () => {
    while (!stopped) {
      await holdOnce().catch((error: Error) => log.warn({ schema, err: error }, 'cannot lead'))
      if (!stopped) await sleep(RETRY_MS)
    }
  }
  const done = run()
  return {
    leading: () => leading,
    stop: async () => {
      stopped = true
      release?.()
      wake()
      await done
    },
  }
}
