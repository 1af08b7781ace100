import type { Telemetry } from '../shared/telemetry.ts'
import type { CatalogProjection } from './catalog/projection.ts'

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
