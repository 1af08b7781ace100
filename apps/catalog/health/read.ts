import { checksAt, listObservations, readChecks } from '../../../db/catalog/health.ts'
import { lifecycleAt } from '../../../db/catalog/resources/history.ts'
import type { ObservationRow, ResourceRow } from '../../../db/catalog/rows.ts'
import type { EvidenceRef } from '../../shared/contracts/catalog/common.ts'
import type { HealthQuery } from '../../shared/contracts/catalog/health.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import type { CatalogDeps } from '../deps.ts'
import { timeOrNull, timeText } from '../read/documents.ts'
import { awaitChange } from '../read/freshness.ts'
import { asOf, openPage, type Reader } from '../read/lists.ts'
import { pastTime, refuseBefore } from '../read/past.ts'
import { findVisible } from '../read/visible.ts'
import { readRollUp } from './causes.ts'
import { healthNow } from './observe.ts'

/** Own health and the checks behind it, now or at a given time, with the roll-up and, if requested, the history. */
export const readHealth = async (deps: CatalogDeps, resource_id: string, query: HealthQuery, reader: Reader) => {
  await awaitChange(deps, query, reader)
  const { row } = await findVisible(deps, resource_id, reader)
  const at = await pastTime(deps, query.at, deps.config.observations_d)
  refuseBefore(row, at)
  if (query.history_since === undefined && query.page_token !== undefined) throw noHistory()
  return {
    ...(at === undefined ? await healthOfNow(deps, row, reader) : await healthThen(deps, row, at)),
    ...(query.history_since !== undefined && { history: await historyOf(deps, row, query, reader) }),
    // As in every past document, because it is not kept over time.
    health_revision: at === undefined ? row.health_revision : 0,
    as_of: await asOf(deps.db, deps),
  }
}

const noHistory = () =>
  new AppError('validation_error', 'page_token_mismatch', 'Only the history of health has pages.', {
    hint: 'Send history_since with page_token.',
  })

const healthOfNow = async (deps: CatalogDeps, row: ResourceRow, reader: Reader) => {
  const now = deps.clock.now()
  const checks = await readChecks(deps.db, row.rid)
  const own = healthNow(row, checks, now)
  const since = own.status === row.health_status ? row.health_at : (row.health_expires_at ?? row.health_at)
  return { ...viewOf(own, since, checks, now), rollup: await readRollUp(deps, row, reader) }
}

const healthThen = async (deps: CatalogDeps, row: ResourceRow, at: string) => {
  const then = new Date(at)
  const checks = await checksAt(deps.db, row.rid, at)
  const lifecycle_status = (await lifecycleAt(deps.db, row.rid, at)) ?? row.lifecycle_status
  const own = healthNow({ ...row, lifecycle_status }, checks, then)
  // The start of a status is known only for the present; for the past, this is the newest observation behind it.
  const newest = checks.map(({ observed_at }) => observed_at).sort((a, b) => (new Date(a) < new Date(b) ? 1 : -1))[0]
  return viewOf(own, newest ?? row.created_at, checks, then)
}

const viewOf = (own: ReturnType<typeof healthNow>, since: string, checks: readonly ObservationRow[], now: Date) => ({
  own: {
    status: own.status,
    reason: own.reason,
    since: timeText(since),
    expires_at: timeOrNull(own.expires_at?.toISOString() ?? null),
  },
  checks: checks.map((check) => ({
    ...pick(check, 'source', 'check_key', 'status', 'summary'),
    observed_at: timeText(check.observed_at),
    expires_at: timeText(check.expires_at),
    expired: new Date(check.expires_at) <= now,
  })),
})

const historyOf = async (deps: CatalogDeps, row: ResourceRow, query: HealthQuery, reader: Reader) => {
  const { history_since = '' } = query
  const list = { route: 'health', resource_id: row.resource_id, history_since }
  const { place, size, turn } = openPage(deps, query, list, reader)
  const rows = await listObservations(deps.db, row.rid, { since: history_since, ...place, limit: size + 1 })
  const { items, ...tokens } = turn(rows, ({ observed_at, id }) => [observed_at, id])
  return {
    items: items.map(({ id, ...item }) => ({
      ...item,
      evidence_refs: item.evidence_refs as EvidenceRef[],
      observed_at: timeText(item.observed_at),
      expires_at: timeText(item.expires_at),
    })),
    ...tokens,
  }
}
