import { sql } from 'drizzle-orm'
import { operation_commands } from '../../db/operations/tables/index.ts'
import { refuseHeld } from '../../db/restore.ts'
import type { Checks } from '../shared/http/health.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import type { CatalogProjection } from './catalog/projection.ts'
import type { OperationsDeps } from './deps.ts'

const UNDELIVERED_S = 10

/** What this app needs and how it stands; only its own Postgres makes it unready (reliability.md 2.3). */
export const checksOf = ({
  pool,
  nats,
  db,
  fence,
}: Pick<OperationsDeps, 'db' | 'fence' | 'nats' | 'pool'>): Checks => ({
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
  workflows: {
    critical: false,
    run: async () => {
      const { rows } = await db.execute<{ waiting: number }>(sql`
        select count(*)::int as waiting from (select 1 from ${operation_commands}
          where status in ('pending', 'sending') and created_at < clock_timestamp() - make_interval(secs => ${UNDELIVERED_S})
            and (class <> 'start' or not_after > clock_timestamp()) limit 100) w`)
      if ((rows[0]?.waiting ?? 0) > 0) throw new Error('accepted commands wait for the workflow service')
    },
  },
})

/** How far this app is behind, told as a metric and in GET /v1/platform/health. */
export const createLags = (projection: CatalogProjection, telemetry: Telemetry) => {
  const gauge = telemetry.gauge('projection_lag_seconds', 'Age of the oldest event that is not folded.', ['consumer'])
  return async (): Promise<Record<string, number>> => {
    const lag_ms = await projection.lag()
    if (lag_ms === undefined) return {}
    gauge.set({ consumer: 'catalog' }, lag_ms / 1000)
    return { catalog_projection_s: lag_ms / 1000 }
  }
}
