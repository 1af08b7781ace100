import { sql } from 'drizzle-orm'
import type { FastifyInstance } from 'fastify'
import type { Db } from '../../db/client.ts'
import { type Measured, type MeasuredGauge, measure } from '../shared/process/measured.ts'
import { lagGauge, type Telemetry } from '../shared/telemetry.ts'
import type { CatalogProjection } from './catalog/projection.ts'

const GAUGES: readonly MeasuredGauge[] = [
  ['signalbox_operations_open', 'Operations that have not ended.', 'status'],
  ['signalbox_gates_waiting', 'Gates that wait for a decision.'],
  ['signalbox_gate_oldest_seconds', 'How long the longest waiting gate has waited.'],
  ['signalbox_notifications_queued', 'Messages that are not sent yet.'],
  ['signalbox_notifications_oldest_seconds', 'Age of the oldest message that is due or being retried.'],
]

/** Uses the indices on state and on gates, because both tables keep ended rows. */
const readOpen = async (db: Db): Promise<Measured[]> => {
  const { rows } = await db.execute<Measured>(sql`
    select 'signalbox_operations_open' as name, array[operations.status_of(c.control, o.engine_status)] as labels, count(*)::float8 as value
    from operations.operations o join operations.operation_control c using (operation_id)
    where o.engine_status in ('queued', 'running', 'blocked', 'paused', 'cancelling') group by 2
    union all select v.name, '{}', v.value from (
      select count(*)::float8 as waiting, coalesce(extract(epoch from clock_timestamp() - min(waiting_since)), 0)::float8 as oldest
      from operations.gates where status = 'waiting') g,
      lateral (values ('signalbox_gates_waiting', waiting), ('signalbox_gate_oldest_seconds', oldest)) v(name, value)
    union all select v.name, '{}', v.value from (
      select count(*)::float8 as queued, greatest(0, coalesce(extract(epoch from clock_timestamp() - min(
        case when attempts > 0 then created_at else next_at end)), 0))::float8 as oldest
      from operations.notify_deliveries where state = 'queued') n,
      lateral (values ('signalbox_notifications_queued', queued), ('signalbox_notifications_oldest_seconds', oldest)) v(name, value)`)
  return rows
}

/** Reports open work as metrics. */
export const measureOpen = (db: Db, telemetry: Telemetry): void => measure(telemetry, GAUGES, () => readOpen(db))

const REFUSED: Record<string, string> = { idempotency_key_reused: 'reused', in_progress: 'in_progress' }

/** Counts mutations by the state of their key; `refused` is called on refusals. */
export const countKeys = (telemetry: Telemetry) => {
  const keys = telemetry.counter('signalbox_idempotency_total', 'Mutations by the state of their key.', ['result'])
  return {
    refused: (code: string): void => {
      const result = REFUSED[code]
      if (result) keys.inc({ result })
    },
    watch: (app: Pick<FastifyInstance, 'addHook'>): void => {
      app.addHook('onResponse', (req, reply, done) => {
        if (req.headers['idempotency-key'] === undefined) return done()
        const replayed = reply.getHeader('idempotency-replayed') === 'true'
        if (replayed || reply.statusCode < 400) keys.inc({ result: replayed ? 'replayed' : 'first' })
        done()
      })
    },
  }
}

/** Reports how far this app is behind, as a metric and in GET /v1/platform/health. */
export const createLags = (projection: CatalogProjection, telemetry: Telemetry) => {
  const gauge = lagGauge(telemetry)
  return async (): Promise<Record<string, number>> => {
    const lag_ms = await projection.lag()
    if (lag_ms === undefined) return {}
    gauge.set({ consumer: 'catalog' }, lag_ms / 1000)
    return { catalog_projection_s: lag_ms / 1000 }
  }
}
