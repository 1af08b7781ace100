import { sql } from 'drizzle-orm'
import type { Relationship } from '../../../apps/shared/contracts/catalog/relationships.ts'
import type { ResourceDocument } from '../../../apps/shared/contracts/catalog/resources.ts'
import { pluck } from '../../../apps/shared/data/pick.ts'
import type { Tx } from '../../client.ts'
import { lockResources, lockVersions, nameOf, recordset, saveHealths, saveResources, setVersions } from './many.ts'

export type SnapshotItem = {
  document: ResourceDocument & { health_status?: string }
  version: number
  health_revision: number
  relationships_out: Relationship[]
}

/**
 * Folds a page of a snapshot, one statement per table: an initial load is a million resources. Newer versions that are
 * already known stay. Takes locks in the same order as single events.
 */
export const foldSnapshot = async (tx: Tx, items: readonly SnapshotItem[]): Promise<void> => {
  const ids = items.map(({ document }) => document.resource_id)
  const aggregates = ids.flatMap((agg_id) => [
    { agg_type: 'resource', agg_id },
    { agg_type: 'health', agg_id },
  ])
  const known = await lockVersions(tx, aggregates)
  const have = (agg_type: string, agg_id: string) => known.get(nameOf({ agg_type, agg_id }))?.ver ?? 0
  await lockResources(tx, ids)
  const healths = items
    .filter(({ document, health_revision }) => have('health', document.resource_id) < health_revision)
    .map(({ document, health_revision }) => {
      const { resource_id, health_status: status = 'unknown' } = document
      return { resource_id, status, agg_type: 'health', agg_id: resource_id, ver: health_revision }
    })
  const newer = items.filter(({ document, version }) => have('resource', document.resource_id) < version)
  if (healths.length > 0) await saveHealths(tx, healths)
  if (newer.length > 0) await saveResources(tx, pluck(newer, 'document'))
  const edges = items.flatMap(({ relationships_out }) => relationships_out)
  if (edges.length > 0) await openRelationships(tx, edges)
  const versions = newer.map(({ document, version }) => ({
    agg_type: 'resource',
    agg_id: document.resource_id,
    ver: version,
  }))
  await setVersions(tx, [...healths, ...versions])
}

const openRelationships = (tx: Tx, edges: readonly Relationship[]) =>
  tx.execute(sql`
    insert into operations.catalog_relationships as r (relationship_id, rev, type_key, from_id, to_id, properties, open)
    select relationship_id, rev, type_key, from_id, to_id, properties, true
    from ${recordset(edges, sql`relationship_id text, rev int, type_key text, from_id text, to_id text, properties jsonb`)}
    order by relationship_id
    on conflict (relationship_id) do update set rev = excluded.rev, type_key = excluded.type_key,
      from_id = excluded.from_id, to_id = excluded.to_id, properties = excluded.properties
    where r.open and r.rev < excluded.rev`)
