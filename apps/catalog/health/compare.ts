import { listMedians } from '../../../db/catalog/health.ts'
import { getFixed, getRids } from '../../../db/catalog/resources/rows.ts'
import type { HealthCompared, HealthCompareQuery } from '../../shared/contracts/catalog/health.ts'
import type { CatalogDeps } from '../deps.ts'

/** The longest time that one median covers: 200 resources that report every 20 s have 36,000 observations in it. */
const SPAN_MS = 3_600_000

/** Compares the metrics of changed resources with the rest, and with their own before. Unknown ones do not count. */
export const compareHealth = async (
  { db, clock, registry }: Pick<CatalogDeps, 'db' | 'clock' | 'registry'>,
  { resource_ids, rest_ids, started_at, ended_at, until: asked }: HealthCompareQuery,
): Promise<HealthCompared> => {
  const rids = await getRids(db, [...resource_ids, ...rest_ids])
  const rows = await getFixed(db, [...rids.values()])
  const changed = new Set(resource_ids)
  const own = rows.filter(({ resource_id }) => changed.has(resource_id))
  const types = new Set(own.map(({ type_id }) => type_id))
  const metrics = new Map(
    [...types].flatMap((id) => registry.types.byId(id)?.health.metrics ?? []).map((metric) => [metric.key, metric]),
  )
  if (metrics.size === 0) return { metrics: [] }
  const rest = rows.filter((row) => types.has(row.type_id) && !changed.has(row.resource_id))
  const until = asked === undefined ? clock.now() : new Date(asked)
  const start = new Date(started_at)
  const since = new Date(Math.max(Date.parse(ended_at), until.getTime() - SPAN_MS))
  const ridsOf = (some: typeof rows) => some.map(({ rid }) => rid)
  const medians = await listMedians(db, [
    { part: 'own', rids: ridsOf(own), since, until },
    { part: 'rest', rids: ridsOf(rest), since, until },
    { part: 'before', rids: ridsOf(own), since: new Date(start.getTime() - SPAN_MS), until: start },
  ])
  const medianOf = (part: string, key: string) => {
    const { median = null, samples = 0 } = medians.find((row) => row.part === part && row.key === key) ?? {}
    return { median, samples }
  }
  return {
    metrics: [...metrics.values()].map((metric) => ({
      ...metric,
      own: medianOf('own', metric.key),
      rest: medianOf('rest', metric.key),
      before: medianOf('before', metric.key),
    })),
  }
}
