import type { SQL } from 'drizzle-orm'
import { conditions } from '../../../db/catalog/resources/lists.ts'
import { getResource } from '../../../db/catalog/resources/rows.ts'
import type { Uses } from '../deps.ts'
import { type Access, visibleOf } from './access.ts'

/** What a team or person owns, as a condition over r; it matches no rows for an owner that the reader may not see. */
export const ownedWhere = async (
  { db, registry: { types } }: Uses<'db' | 'registry'>,
  owner_id: string | undefined,
  access: Access,
): Promise<SQL[]> => {
  if (owner_id === undefined) return []
  const owner = await getResource(db, owner_id)
  const [rid] = owner ? await visibleOf(db, types, access, [owner]) : []
  return [conditions.pointsAt(rid, types.relationship('owned_by')?.id)]
}
