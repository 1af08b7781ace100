import { getResource } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Scope } from '../../shared/contracts/catalog/resources.ts'
import { notFound } from '../../shared/errors.ts'
import type { CatalogDeps } from '../deps.ts'
import { reaches, scopeOfRow } from './access.ts'
import type { Reader } from './lists.ts'

/** A resource that the reader may see, with its scope; else 404, as if it did not exist. */
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
