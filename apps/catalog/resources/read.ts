import { listVersions } from '../../../db/catalog/resources/history.ts'
import type { EvidenceRef } from '../../shared/contracts/catalog/common.ts'
import type { ResourceView } from '../../shared/contracts/catalog/resources.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import type { CatalogDeps } from '../deps.ts'
import { timeText } from '../read/documents.ts'
import { currentView } from '../read/health.ts'
import { asOf, includedOf, openPage, partsOf, type Reader } from '../read/lists.ts'
import { readAt, readVersion } from '../read/past.ts'
import { findVisible } from '../read/visible.ts'
import { managedFields, namesOf } from './managers.ts'

type Asked = { include?: string[]; fields?: string[]; at?: string; at_version?: number }

/**
 * One resource from truth with its ETag, or as it was at a version or time (catalog.md 9, "History"). History has no
 * ETag. Neither has a view that contains more than the resource, because its version does not cover the rest.
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
  const now = await currentView(deps.db, deps, row, scope)
  const parts = (await partsOf(deps, [now.current], included, reader)).get(row.rid)
  const owned = Object.entries(parts?.field_owners ?? {}).map(([path, owner]) => ({ path, owner }))
  const managed_fields = owned.length > 0 && (await managedFields(deps, resource_id, owned))
  const view = { ...now.view, ...parts, ...(managed_fields && { managed_fields }) }
  return included.size > (included.has('state') ? 1 : 0) ? { view } : { view, etag: now.etag }
}

const twoTimes = () =>
  new AppError('validation_error', 'malformed', 'at and at_version name two different times.', {
    violations: [{ pointer: '/querystring/at', code: 'malformed', message: 'cannot be combined with at_version' }],
    hint: 'Send one of them.',
  })

/** The versions of a resource, newest first. */
export const readVersions = async (
  deps: CatalogDeps,
  resource_id: string,
  query: { page_size?: number; page_token?: string },
  reader: Reader,
) => {
  const { row } = await findVisible(deps, resource_id, reader)
  const list = { route: 'versions', resource_id }
  const { place, size, turn } = openPage(deps, query, list, reader)
  const from = place.key && Number(place.key[0])
  const rows = await listVersions(deps.db, row.rid, { from, back: place.back, limit: size + 1 })
  const { items, ...tokens } = turn(rows, ({ version }) => [String(version)])
  const names = await namesOf(deps.trust, pluck(items, 'actor'))
  return {
    items: items.map(({ evidence_refs, ...revision }) => ({
      ...revision,
      actor_name: names.get(revision.actor) ?? revision.actor,
      at: timeText(revision.at),
      evidence_refs: evidence_refs as EvidenceRef[],
    })),
    ...tokens,
    as_of: await asOf(deps.db, deps),
  }
}
