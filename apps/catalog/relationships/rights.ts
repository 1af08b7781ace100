import { getResourcesByRid } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Queryable } from '../../../db/client.ts'
import type { StoredRelationshipType, Types } from '../packs/registry.ts'
import { type MayWrite, outOfScope, type Placed, scopesOf } from '../read/access.ts'

/** Edge changes with their other ends, and what the caller may write. */
type Changes = {
  resolved: readonly {
    change: { direction?: 'in' | 'out' }
    relation: StoredRelationshipType | undefined
    peer: Pick<ResourceRow, 'rid'> | undefined
  }[]
  mayWrite: MayWrite | undefined
}

/** Refuses a caller who may not write all of these in their places; `nameOf` gives the name of each in the refusal. */
export const refuseForeign = async <R extends Placed>(
  db: Queryable,
  types: Types,
  rows: readonly R[],
  mayWrite: MayWrite,
  nameOf: (row: R) => string,
): Promise<void> => {
  const scopeOf = await scopesOf(db, types, rows)
  for (const row of rows) {
    const permission = mayWrite(row.type_id, scopeOf(row))
    if (permission !== undefined) throw outOfScope(nameOf(row), permission)
  }
}

/**
 * Writing an edge requires the right to write the resource that it leaves (catalog.md 12); an incoming edge requires
 * the right to the other resource. A symmetric edge leaves both ends, so the right to the commanded resource is enough.
 */
export const refuseForeignEdges = async (
  db: Queryable,
  types: Types,
  { resolved, mayWrite }: Changes,
  sees: (rows: readonly ResourceRow[]) => Promise<ReadonlySet<string>>,
): Promise<void> => {
  const sources = resolved.flatMap(({ change, relation, peer }) =>
    peer && relation && !relation.symmetric && change.direction === 'in' ? [peer.rid] : [],
  )
  if (!mayWrite || sources.length === 0) return
  const rows = await getResourcesByRid(db, [...new Set(sources)])
  const visible = await sees(rows)
  const seen = rows.filter(({ rid }) => visible.has(rid))
  await refuseForeign(db, types, seen, mayWrite, ({ resource_id }) => resource_id)
}

/** Resources that end together with another are written too. They are not named, because they may be hidden. */
export const refuseForeignEnds = async (
  db: Queryable,
  types: Types,
  resource_id: string,
  rids: readonly string[],
  mayWrite: MayWrite | undefined,
): Promise<void> => {
  if (!mayWrite || rids.length === 0) return
  const rows = await getResourcesByRid(db, rids)
  await refuseForeign(db, types, rows, mayWrite, () => `everything that ends with ${resource_id}`)
}
