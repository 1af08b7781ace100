import { readChecks } from '../../db/catalog/health.ts'
import { listVersions, revisionsUpTo } from '../../db/catalog/history.ts'
import { getPathSteps, getResource, type ResourceRow } from '../../db/catalog/resources.ts'
import type { ResourceDocument, ResourceView, Scope } from '../shared/contracts/catalog/resources.ts'
import { AppError, notFound } from '../shared/errors.ts'
import { mergePatch } from '../shared/pointer.ts'
import { reaches, scopeOf } from './access.ts'
import type { CatalogDeps } from './deps.ts'
import { changeToken, etagOf, timeOrNull, timeText, viewOf } from './documents.ts'
import { healthNow } from './health.service.ts'
import { asOf, type Reader } from './lists.service.ts'
import { pageSizeOf } from './pages.ts'

/** A resource that the reader may see, with its scope; else 404, as if it were not there. */
export const findVisible = async (
  deps: CatalogDeps,
  resource_id: string,
  { access }: Reader,
): Promise<{ row: ResourceRow; scope: Scope }> => {
  const { types } = deps.registry
  const row = await getResource(deps.db, resource_id)
  if (!row) throw notFound('resource', resource_id)
  const scope = scopeOf(row.path, await getPathSteps(deps.db, [row.path]), types)
  if (!reaches(access, row.type_id, scope, 'read')) throw notFound('resource', resource_id)
  return { row, scope }
}

/**
 * One resource from truth, with its tag. A check that ran out since the last sweep already counts; the tag then ends in
 * x, since health_revision has not moved yet.
 */
export const readResource = async (
  deps: CatalogDeps,
  resource_id: string,
  reader: Reader,
): Promise<{ view: ResourceView; etag: string }> => {
  const { types } = deps.registry
  const { row, scope } = await findVisible(deps, resource_id, reader)
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

const noVersion = (resource_id: string, version: number) =>
  new AppError('not_found', 'version', `${resource_id} has no version ${version}.`, {
    hint: 'GET /v1/resources/{resource_id}/versions lists them.',
  })

/** One resource as it was at a version: the nearest snapshot and the patches after it. */
export const readVersion = async (
  deps: CatalogDeps,
  resource_id: string,
  version: number,
  reader: Reader,
): Promise<ResourceView> => {
  const { row, scope } = await findVisible(deps, resource_id, reader)
  if (version > row.version || version < 1) throw noVersion(resource_id, version)
  const revisions = await revisionsUpTo(deps.db, row.rid, version)
  if (revisions.at(-1)?.version !== version) {
    throw new AppError('not_found', 'history_pruned', `Version ${version} of ${resource_id} is no longer kept.`, {
      status: 410,
    })
  }
  const document = revisions.reduce<unknown>(
    (before, { kind, doc }) => (kind === 'snapshot' ? doc : mergePatch(before, doc)),
    {},
  ) as ResourceDocument
  return {
    ...document,
    owner: document.owner ?? null,
    parent_id: document.parent_id ?? null,
    last_operation: document.last_operation ?? null,
    scope,
    health_status: 'unknown',
    health_revision: 0,
    conditions: [],
    change_token: changeToken(resource_id, version),
    historical: true,
  }
}

/** The versions of a resource, the newest first. */
export const readVersions = async (
  deps: CatalogDeps,
  resource_id: string,
  query: { page_size?: number; page_token?: string },
  reader: Reader,
) => {
  const { row } = await findVisible(deps, resource_id, reader)
  const list = { route: 'versions', resource_id }
  const after = deps.pages.read(query.page_token, list, reader.name)
  const size = pageSizeOf(query.page_size, deps.config)
  const rows = await listVersions(deps.db, row.rid, after && Number(after[0]), size + 1)
  const shown = rows.slice(0, size)
  const last = shown.at(-1)
  return {
    items: shown.map((revision) => ({ ...revision, at: timeText(revision.at) })),
    next_page_token: rows.length > size && last ? deps.pages.write([String(last.version)], list, reader.name) : null,
    prev_page_token: null,
    as_of: await asOf(deps.db, deps),
  }
}

/** Own health and the checks behind it, evaluated now. */
export const readHealth = async (deps: CatalogDeps, resource_id: string, reader: Reader) => {
  const { row } = await findVisible(deps, resource_id, reader)
  const now = deps.clock.now()
  const checks = await readChecks(deps.db, row.rid)
  const own = healthNow(row, checks, now)
  const since = own.status === row.health_status ? row.health_at : (row.health_expires_at ?? row.health_at)
  return {
    own: {
      status: own.status,
      reason: own.reason,
      since: timeText(since),
      expires_at: timeOrNull(isoText(own.expires_at)),
    },
    checks: checks.map((check) => ({
      source: check.source,
      check_key: check.check_key,
      status: check.status,
      observed_at: timeText(check.observed_at),
      expires_at: timeText(check.expires_at),
      expired: new Date(check.expires_at) <= now,
      summary: check.summary,
    })),
    health_revision: row.health_revision,
    as_of: await asOf(deps.db, deps),
  }
}

const isoText = (date: Date | null): string | null => date?.toISOString() ?? null
