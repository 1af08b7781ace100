import { readChecks, saveObservation } from '../../../db/catalog/health.ts'
import { updateState } from '../../../db/catalog/resources/rows.ts'
import type { ObservationRow, ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import type { OutboxEvent } from '../../../db/outbox.ts'
import type { HealthStatus } from '../../shared/contracts/catalog/resources.ts'
import type { HealthMetric } from '../../shared/contracts/catalog/types.ts'
import { pick } from '../../shared/data/pick.ts'
import { type Cause, eventOf, tell } from '../command/outbox.ts'
import type { CatalogDeps } from '../deps.ts'
import { type OwnHealth, ownHealth } from '../rules/health.ts'

export type Observation = {
  source: string
  check_key: string
  status: HealthStatus
  observed_at: string
  ttl_s: number | undefined
  summary?: string | undefined
  attributes?: Record<string, unknown> | undefined
}
type CheckChange = { source: string; check_key: string; status: HealthStatus; previous_status: HealthStatus | null }

/** A row's own current health, computed from its checks even before the sweeper has stored it. */
export const healthNow = (row: ResourceRow, checks: readonly ObservationRow[], now: Date): OwnHealth =>
  ownHealth(
    checks.map((check) => ({ ...check, expires_at: new Date(check.expires_at) })),
    row.lifecycle_status,
    now,
  )

/**
 * Applies one observation under the row's lock. The version never changes; health_revision moves when a check appears
 * or changes its status, or own health changes. Returns the row afterwards, or `undefined` if a newer observation
 * exists (`superseded`).
 */
export const observe = async (
  tx: Tx,
  deps: CatalogDeps,
  row: ResourceRow,
  observation: Observation,
  cause: Cause,
): Promise<ResourceRow | undefined> => {
  const { types } = deps.registry
  const { default_ttl_s, metrics = [] } = types.byId(row.type_id)?.health ?? {}
  const ttl_s = observation.ttl_s ?? default_ttl_s ?? deps.config.health_ttl_s
  const checks = await readChecks(tx, row.rid)
  const isThis = (check: ObservationRow) =>
    check.source === observation.source && check.check_key === observation.check_key
  const known = checks.find(isThis)
  const { source, check_key, status, observed_at, summary, attributes } = observation
  const expires_at = new Date(new Date(observed_at).getTime() + ttl_s * 1000).toISOString()
  const now = saveObservation(tx, {
    rid: row.rid,
    source,
    check_key,
    status,
    observed_at,
    expires_at,
    summary: summary ?? null,
    attributes: attributes ?? {},
    metrics: numbersOf(attributes ?? {}, metrics),
    ...pick(cause, 'evidence_refs', 'command_id', 'operation_id'),
  })
  if (!now) return undefined
  const changes: CheckChange[] =
    known?.status === status ? [] : [{ source, check_key, status, previous_status: known?.status ?? null }]
  return settleHealth(tx, deps, row, cause, 'observed', { checks: now, checks_changed: changes })
}

/** The numbers among these attributes that are declared metrics; null if there are none. */
const numbersOf = (attributes: Record<string, unknown>, metrics: readonly HealthMetric[]) => {
  const numbers = metrics.flatMap(({ key }) => {
    const value = Object.hasOwn(attributes, key) ? attributes[key] : undefined
    return typeof value === 'number' ? [[key, value] as const] : []
  })
  return numbers.length === 0 ? null : Object.fromEntries(numbers)
}

type Settled = {
  /** The current checks, if already known. */
  checks?: readonly ObservationRow[] | undefined
  checks_changed?: CheckChange[]
}

/** Updates stored health from the checks and the lifecycle, and emits an event if it moved. Returns the new row. */
export const settleHealth = async (
  tx: Tx,
  deps: CatalogDeps,
  row: ResourceRow,
  cause: Cause,
  reason: 'observed' | 'expired' | 'lifecycle',
  { checks, checks_changed = [] }: Settled = {},
): Promise<ResourceRow> => {
  const own = healthNow(row, checks ?? (await readChecks(tx, row.rid)), new Date(cause.at))
  const moved = own.status !== row.health_status
  const state = {
    health_status: own.status,
    health_reason: own.reason,
    health_expires_at: own.expires_at?.toISOString() ?? null,
    // An expired status ended when its check did, however late the sweep comes.
    health_at: moved ? (reason === 'expired' && row.health_expires_at) || cause.at : row.health_at,
    // The reason is displayed, so the ETag must change too.
    health_revision:
      row.health_revision + (moved || own.reason !== row.health_reason || checks_changed.length > 0 ? 1 : 0),
  }
  const after: ResourceRow = { ...row, ...state }
  const told: OutboxEvent[] = []
  if (after.health_revision !== row.health_revision) {
    const payload = { status: own.status, previous_status: row.health_status, reason, checks_changed }
    const event = eventOf(cause, { ...after, type_key: deps.registry.types.keyOf(row.type_id) }, row.version, {
      type: 'health.changed',
      agg_type: 'health',
      agg_id: row.resource_id,
      agg_version: after.health_revision,
      payload,
    })
    told.push(event)
  }
  await Promise.all([updateState(tx, row.rid, state), tell(tx, ...told)])
  return after
}
