import { readLogState } from '../../../db/catalog/relationships/graph-events.ts'
import { accessSql } from '../../../db/catalog/resources/lists.ts'
import { type Searched, type SearchRow, searchResources, setSpelling } from '../../../db/catalog/search/find.ts'
import { readSearchPosition } from '../../../db/catalog/search/fold.ts'
import type { SearchItem, SearchQuery, SearchResult } from '../../shared/contracts/topology/search.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import type { Uses } from '../deps.ts'
import { scopesOf } from '../read/access.ts'
import { affordable, type Reader, whereOf } from '../read/lists.ts'
import { ownedWhere } from '../read/owned.ts'

const LIMIT = 20

type Deps = Uses<'db' | 'registry' | 'clock' | 'config'>

/**
 * Finds resources by words (catalog.md 7.1): all that contain every word, ranked by where they match; if there are
 * none, those with similarly spelled names. Search follows the log: `as_of` states how far. An id or name is found at
 * once, folded or not.
 */
export const readSearch = async (
  deps: Deps,
  { q, limit = LIMIT, ...query }: SearchQuery,
  { access }: Reader,
): Promise<SearchResult> => {
  const { types } = deps.registry
  const position = await readSearchPosition(deps.db)
  if (!position || position.filling_after !== null) throw filling(deps)
  const owned = await ownedWhere(deps, query.owned_by, access)
  const now = deps.clock.now()
  const where = [accessSql(access, types.topologyIds), ...owned, ...whereOf(types, query, now)]
  const sees = access === 'all' ? undefined : accessSql(access, types.topologyIds, 'n')
  const asked = { q: q.trim().normalize('NFC'), where, sees, now, limit: limit + 1 }
  const exact = await affordable(searchResources(deps.db, { ...asked, by: 'words' }))
  const spelled = exact.length === 0
  const rows = spelled ? await affordable(spelledAlike(deps, asked)) : exact
  const scopeOf = await scopesOf(deps.db, types, rows)
  const { unnumbered_ms, unfolded_ms } = await readLogState(deps.db, 'search', position.pub_seq)
  return {
    items: rows
      .slice(0, limit)
      .map((row) => ({
        ...pick(row, 'resource_id', 'name', 'display_name', 'owner', 'lifecycle_status'),
        type_key: types.keyOf(row.type_id),
        scope: scopeOf(row),
        health_status: row.health_status,
        matched: spelled ? ['spelling'] : matchedOf(row),
        score: Math.round(row.score * 1000) / 1000,
      })),
    more: rows.length > limit,
    as_of: {
      watermark: position.pub_seq,
      time: deps.clock.now().toISOString().replace('Z', '000Z'),
      lag_ms: Math.round(Math.max(unnumbered_ms, unfolded_ms)),
    },
  }
}

const spelledAlike = ({ db }: Deps, asked: Searched) =>
  db.transaction(async (tx) => {
    await setSpelling(tx)
    return searchResources(tx, { ...asked, by: 'spelling' })
  })

const filling = ({ config }: Deps): AppError =>
  new AppError('stale_projection', 'projection_lag', 'The search index is being built for the first time.', {
    retryable: true,
    retry_after_ms: config.stale_wait_ms,
    hint: 'Send the same request again in a few seconds.',
  })

const matchedOf = (row: SearchRow): SearchItem['matched'] => {
  const matched: SearchItem['matched'] = []
  if (row.in_name) matched.push('name')
  if (row.in_label) matched.push('label')
  if (row.in_relation) matched.push('relation')
  if (row.in_attribute) matched.push('attribute')
  return matched
}
