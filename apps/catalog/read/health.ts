import { readChecksOf } from '../../../db/catalog/health.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Queryable } from '../../../db/client.ts'
import type { HealthStatus, ResourceView, Scope } from '../../shared/contracts/catalog/resources.ts'
import type { Uses } from '../deps.ts'
import { type OwnHealth, ownHealth } from '../rules/health.ts'
import { etagOf, viewOf } from './documents.ts'

type Own = { status: HealthStatus; reason: string }
type Expiring = Pick<ResourceRow, 'rid' | 'lifecycle_status' | 'health_status' | 'health_reason' | 'health_expires_at'>

/** Own health of those rows of which a check has expired since it was stored. */
const expiredOf = async (db: Queryable, rows: readonly Expiring[], now: Date): Promise<Map<string, OwnHealth>> => {
  const expired = rows.filter(
    ({ health_expires_at }) => health_expires_at !== null && new Date(health_expires_at) <= now,
  )
  const checks = Map.groupBy(await readChecksOf(db, [...new Set(expired.map(({ rid }) => rid))]), ({ rid }) => rid)
  return new Map(
    expired.map(({ rid, lifecycle_status }) => {
      const known = (checks.get(rid) ?? []).map((check) => ({ ...check, expires_at: new Date(check.expires_at) }))
      return [rid, ownHealth(known, lifecycle_status, now)]
    }),
  )
}

/** The rows' own health now, by row number: as stored, except where checks expired since the last sweep. */
export const healthOf = async (db: Queryable, rows: readonly Expiring[], now: Date): Promise<Map<string, Own>> => {
  const stored = rows.map((row): [string, Own] => [row.rid, { status: row.health_status, reason: row.health_reason }])
  return new Map([...stored, ...(await expiredOf(db, rows, now))])
}

/** Rows with their own health now; the same rule in SQL: db/catalog/resources/health-now.ts. */
export const withHealth = async <R extends ResourceRow>(db: Queryable, rows: readonly R[], now: Date): Promise<R[]> => {
  const expired = await expiredOf(db, rows, now)
  return rows.map((row) => {
    const own = expired.get(row.rid)
    if (!own) return row
    const health_at = own.status === row.health_status ? row.health_at : (row.health_expires_at ?? row.health_at)
    const health_expires_at = own.expires_at?.toISOString() ?? null
    return { ...row, health_status: own.status, health_reason: own.reason, health_at, health_expires_at }
  })
}

/** The resource now. If a check has expired since the last sweep, the ETag ends in x: health_revision lags. */
export const currentView = async (
  db: Queryable,
  { registry, clock }: Uses<'registry' | 'clock'>,
  row: ResourceRow,
  scope: Scope,
): Promise<{ view: ResourceView; etag: string; current: ResourceRow }> => {
  const [current = row] = await withHealth(db, [row], clock.now())
  const etag = etagOf(row)
  const late = current.health_status !== row.health_status || current.health_reason !== row.health_reason
  return { current, view: viewOf(current, scope, registry.types), etag: late ? etag.replace(/"$/, 'x"') : etag }
}
