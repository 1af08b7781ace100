import pg from 'pg'
import type { Logger } from '../shared/telemetry.ts'

/** How one schema's work is started when this process leads it; returns how it is stopped. */
export type Lead = (epoch: number) => Promise<() => Promise<void>>

const RETRY_MS = 2000

/**
 * One active relay per schema: an advisory lock on a connection of its own. Taking over raises the schema's epoch, so
 * that a relay which was paused and comes back cannot number events any more (reliability.md 4.3).
 */
export const startLeadership = (url: string, schema: string, log: Logger, lead: Lead) => {
  let stopped = false
  let leading = false
  let release: (() => void) | undefined

  const holdOnce = async () => {
    const client = new pg.Client({ connectionString: url, application_name: `relay:${schema}`, keepAlive: true })
    const lost = new Promise<void>((resolve) => {
      client.on('error', () => resolve())
      client.on('end', () => resolve())
      release = resolve
    })
    try {
      await client.connect()
      const { rows } = await client.query<{ held: boolean }>(
        'select pg_try_advisory_lock(hashtextextended($1, 7273)) as held',
        [`relay:${schema}`],
      )
      if (!rows[0]?.held || stopped) return
      const epoch = await client.query<{ epoch: string }>(
        `insert into ${schema}.relay_state as r (name, epoch, next) values ('relay', 1, 1)
         on conflict (name) do update set epoch = r.epoch + 1 returning epoch`,
      )
      const stop = await lead(Number(epoch.rows[0]?.epoch))
      leading = true
      log.info({ schema, epoch: epoch.rows[0]?.epoch }, 'leading')
      await lost
      leading = false
      await stop()
    } finally {
      leading = false
      await client.end().catch(() => {})
    }
  }

  const run = async () => {
    while (!stopped) {
      await holdOnce().catch((error: Error) => log.warn({ schema, err: error }, 'cannot lead'))
      if (!stopped) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, RETRY_MS)
          release = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
    }
  }
  const done = run()
  return {
    leading: () => leading,
    stop: async () => {
      stopped = true
      release?.()
      await done
    },
  }
}
