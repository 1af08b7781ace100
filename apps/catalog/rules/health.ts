import type { HealthStatus } from '../../shared/contracts/catalog/resources.ts'

export type Check = { source: string; check_key: string; status: HealthStatus; expires_at: Date }
export type OwnHealth = {
  status: HealthStatus
  reason: 'never_observed' | 'expired' | 'observed' | 'lifecycle'
  /** When it may change by time alone: the first expiry of an unexpired check. */
  expires_at: Date | null
}

const BADNESS: Record<Exclude<HealthStatus, 'maintenance'>, number> = {
  healthy: 0,
  unknown: 1,
  degraded: 2,
  unhealthy: 3,
}

/** Own health now (catalog.md 6): maintenance first, else the worst unexpired check. */
export const ownHealth = (checks: readonly Check[], lifecycle_status: string, now: Date): OwnHealth => {
  const valid = checks.filter((check) => check.expires_at > now)
  const ends = valid.map((check) => check.expires_at.getTime())
  const expires_at = ends.length > 0 ? new Date(Math.min(...ends)) : null
  if (lifecycle_status === 'maintenance') return { status: 'maintenance', reason: 'lifecycle', expires_at }
  if (valid.some((check) => check.status === 'maintenance'))
    return { status: 'maintenance', reason: 'observed', expires_at }
  const worst = valid.reduce<HealthStatus | undefined>(
    (status, check) => (status === undefined || badness(check.status) > badness(status) ? check.status : status),
    undefined,
  )
  if (worst !== undefined) return { status: worst, reason: 'observed', expires_at }
  return { status: 'unknown', reason: checks.length > 0 ? 'expired' : 'never_observed', expires_at }
}

const badness = (status: HealthStatus): number => (status === 'maintenance' ? -1 : BADNESS[status])
