import { setTimeout as delay } from 'node:timers/promises'
import { readChecks } from '../../../db/catalog/health.ts'
import { listVersions, type RevisionRow, revisionsUpTo, versionAt } from '../../../db/catalog/resources/history.ts'
import { getResource, type ResourceRow } from '../../../db/catalog/resources/rows.ts'
import { oldestStamp } from '../../../db/catalog/resources/stamps.ts'
import type { EvidenceRef } from '../../shared/contracts/catalog/common.ts'
import type { ResourceDocument, ResourceView, Scope } from '../../shared/contracts/catalog/resources.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { pageSizeOf } from '../../shared/http/pages.ts'
import type { CatalogDeps } from '../deps.ts'
import { healthNow } from '../health/observe.ts'
import { type Placed, placedThen, reaches, scopesOf } from '../read/access.ts'
import { changeToken, etagOf, timeText, viewOf } from '../read/documents.ts'
import { asOf, includedOf, partsOf, type Reader } from '../read/lists.ts'
import { scopeOfRow } from './lock.ts'

/** A resource that the reader may see, with its scope; else 404, as if it were not there. */
export const findVisible = async (
  deps: CatalogDeps,
  resource_id: string,
  { access }: Reader,
): Promise<{ row: ResourceRow; scope: Scope }> => {
  const { types } = deps.registry
  const row = await getResource(deps.db, resource_id)
  if (!row) throw notFound('resource', resource_id)
  const scope = await scopeOfRow(deps.db, types, row)
  if (!reaches(access, row.type_id, scope, 'read')) throw notFound('resource', resource_id)
  return { row, scope }
}

type Asked = { include?: string[]; fields?: string[]; at?: string; at_version?: number }

/**
 * One resource from truth with its tag, or as it was at a version or time (catalog.md 9, "History"). History has no tag,
 * and neither has what holds more than the resource: its version does not count that.
 */
export const readResource = async (
  deps: CatalogDeps,
  resource_id: string,
  { include, at, at_version }: Asked,
  reader: Reader,
): Promise<{ view: ResourceView; etag?: string }> => {
  const included = includedOf(include)
  const { row, scope } = await findVisible(deps, resource_id, reader)
  if (at !== undefined && at_version !== undefined) throw twoTimes()
  if (at_version !== undefined) return { view: await readVersion(deps, row, at_version) }
  if (at !== undefined) return { view: await readAt(deps, row, at) }
  const now = await currentView(deps, row, scope)
  const parts = (await partsOf(deps, [row], included, reader)).get(row.rid)
  const view = { ...now.view, ...parts }
  return included.size > (included.has('state') ? 1 : 0) ? { view } : { view, etag: now.etag }
}

const twoTimes = () =>
  new AppError('validation_error', 'malformed', 'at and at_version name two times.', {
    violations: [{ pointer: '/querystring/at', code: 'malformed', message: 'does not go with at_version' }],
    hint: 'Send one of them.',
  })

/**
 * The resource now. A check that ran out since the last sweep already counts; the tag then ends in x, since
 * health_revision has not moved yet.
 */
const currentView = async (
  deps: CatalogDeps,
  row: ResourceRow,
  scope: Scope,
): Promise<{ view: ResourceView; etag: string }> => {
  const { types } = deps.registry
  const now = deps.clock.now()
  if (row.health_expires_at !== null && new Date(row.health_expires_at) <= now) {
    const own = healthNow(row, await readChecks(deps.db, row.rid), now)
    if (own.status !== row.health_status) {
      const expired = { ...row, health_status: own.status, health_reason: own.reason, health_at: row.health_expires_at }
      return { view: viewOf(expired, scope, types), etag: etagOf(row).replace(/"$/, 'x"') }
    }
  }
  return { view: viewOf(row, scope, types), etag: etagOf(row) }
}

/**
 * A time that was asked about, which must not lie ahead (400) or before what is kept, in days (410). Returns when no open
 * command can stamp that time any more, so that the answer never changes; 503 `projection_lag` when that does not come.
 */
export const pastTime = async (
  { db, clock, config }: Pick<CatalogDeps, 'db' | 'clock' | 'config'>,
  at: string | undefined,
  kept_d?: number,
): Promise<string | undefined> => {
  if (at === undefined) return at
  const time = new Date(at).getTime()
  const asked = clock.now().getTime()
  if (kept_d !== undefined && time < asked - kept_d * DAY_MS) throw pruned(`What was at ${at}`)
  if (time > asked) throw inFuture()
  const until = performance.now() + config.stale_wait_ms
  for (;;) {
    // The clock is read before the locks: who takes one later stamps a later time.
    const now = clock.now().getTime()
    const settled = Math.min(now - CLOCKS_DIFFER_MS, (await oldestStamp(db)) ?? Number.POSITIVE_INFINITY)
    if (time < settled) return at
    if (performance.now() >= until) throw unsettled(new Date(settled).toISOString(), at)
    await delay(SETTLE_POLL_MS)
  }
}

/** The clocks of our processes are at most so far from one another. */
const CLOCKS_DIFFER_MS = 50
const SETTLE_POLL_MS = 20

const inFuture = () =>
  new AppError('validation_error', 'time_in_future', 'at lies in the future.', {
    violations: [{ pointer: '/querystring/at', code: 'time_in_future', message: 'lies in the future' }],
    hint: 'Leave at out to read what is now.',
  })

const unsettled = (observed: string, required: string) =>
  new AppError('stale_projection', 'projection_lag', 'A command that may belong to that time is still open.', {
    retryable: true,
    retry_after_ms: 1000,
    extra: { watermark: { observed, required } },
    hint: 'Send the same request again, or ask for a time before watermark.observed.',
  })

const DAY_MS = 86_400_000

const noVersion = (resource_id: string, version: string) =>
  new AppError('not_found', 'version', `${resource_id} has no version ${version}.`, {
    hint: 'GET /v1/resources/{resource_id}/versions lists them.',
  })

const pruned = (what: string) =>
  new AppError('not_found', 'history_pruned', `${what} is no longer kept.`, {
    status: 410,
    hint: 'GET /v1/resources/{resource_id}/versions lists what is kept.',
  })

/** A resource as it was at a time; 404 before it was there, 410 when that is no longer kept. */
export const readAt = async (deps: CatalogDeps, row: ResourceRow, time: string): Promise<ResourceView> => {
  const at = (await pastTime(deps, time)) as string
  const version = await versionAt(deps.db, row.rid, at)
  if (version !== undefined) return readVersion(deps, row, version, at)
  if (new Date(at) < new Date(row.created_at)) throw noVersion(row.resource_id, `at ${at}`)
  throw pruned(`What ${row.resource_id} was at ${at}`)
}

/** One resource as it was at a version: the nearest snapshot and the patches after it, in the place of that time. */
const readVersion = async (
  deps: CatalogDeps,
  row: ResourceRow,
  version: number,
  at?: string,
): Promise<ResourceView> => {
  const { types } = deps.registry
  if (version > row.version || version < 1) throw noVersion(row.resource_id, String(version))
  const revisions = await revisionsUpTo(deps.db, row.rid, version)
  const last = revisions.at(-1)
  if (last?.version !== version) throw pruned(`Version ${version} of ${row.resource_id}`)
  const placed = await placedThen(deps.db, types, [row], at ?? last.at)
  return viewThen(documentThen(revisions), (await scopesOf(deps.db, types, placed))(placed[0] as Placed))
}

/** A document from its nearest snapshot and the patches after it. */
export const documentThen = (revisions: readonly RevisionRow[]): ResourceDocument =>
  revisions.reduce<unknown>(
    (before, { kind, doc }) => (kind === 'snapshot' ? doc : mergePatch(before, doc)),
    {},
  ) as ResourceDocument

/** A resource as it was: what is not kept over time is unknown. */
export const viewThen = (document: ResourceDocument, scope: Scope): ResourceView => ({
  ...document,
  owner: document.owner ?? null,
  parent_id: document.parent_id ?? null,
  last_operation: document.last_operation ?? null,
  scope,
  health_status: 'unknown',
  health_revision: 0,
  conditions: [],
  change_token: changeToken(document.resource_id, document.version),
  historical: true,
})

/** The versions of a resource, the newest first. */
export const readVersions = async (
  deps: CatalogDeps,
  resource_id: string,
  query: { page_size?: number; page_token?: string },
  reader: Reader,
) => {
  const { row } = await findVisible(deps, resource_id, reader)
  const list = { route: 'versions', resource_id }
  const place = deps.pages.place(query.page_token, list, reader.name)
  const size = pageSizeOf(query.page_size, deps.config)
  const from = place.key && Number(place.key[0])
  const rows = await listVersions(deps.db, row.rid, { from, back: place.back, limit: size + 1 })
  const keyOf = ({ version }: { version: number }) => [String(version)]
  const { items, ...tokens } = deps.pages.turn(rows, { size, place, list, caller: reader.name, keyOf })
  return {
    items: items.map(({ evidence_refs, ...revision }) => ({
      ...revision,
      at: timeText(revision.at),
      evidence_refs: evidence_refs as EvidenceRef[],
    })),
    ...tokens,
    as_of: await asOf(deps.db, deps),
  }
}
