import { sql } from 'drizzle-orm'
import { UNDELIVERED } from '../../../db/operations/commands/undelivered.ts'
import { refuseHeld } from '../../../db/restore.ts'
import type { Checks } from '../../shared/http/health.ts'
import type { Uses } from '../deps.ts'

const UNDELIVERED_S = 10

/** This app's dependencies and their state; only its own Postgres makes it unready (reliability.md 2.3). */
export const checksOf = ({
  pool,
  nats,
  db,
  fence,
  library,
}: Uses<'db' | 'fence' | 'library' | 'nats' | 'pool'>): Checks => ({
  restore: { critical: false, run: () => refuseHeld(fence) },
  postgres: { critical: true, run: () => pool.query('select 1').then(() => undefined) },
  nats: {
    critical: false,
    run: async () => {
      const nc = nats.get()
      if (!nc) throw new Error('not connected')
      await nc.flush()
    },
  },
  packs: {
    critical: false,
    run: async () => {
      const [reason] = library.away ?? []
      if (reason !== undefined) throw new Error(reason)
    },
  },
  workflows: {
    critical: false,
    run: async () => {
      const { rows } = await db.execute<{ waiting: number }>(sql`
        select count(*)::int as waiting from (select 1 from ${sql.raw(UNDELIVERED)} k
          where since < clock_timestamp() - make_interval(secs => ${UNDELIVERED_S})
            and (class <> 'start' or not_after > clock_timestamp()) limit 100) w`)
      if ((rows[0]?.waiting ?? 0) > 0) throw new Error('accepted commands wait for the workflow service')
    },
  },
})
