import { type SQL, sql } from 'drizzle-orm'
import type { Relationship } from '../../../apps/shared/contracts/catalog/relationships.ts'
import type { ResourceDocument } from '../../../apps/shared/contracts/catalog/resources.ts'
import { pluck } from '../../../apps/shared/data/pick.ts'
import type { Tx } from '../../client.ts'
import { keyedLock } from '../../locks.ts'
import { CATALOG_CONSUMER } from './rows.ts'

const NEXT_CHANGE = sql`nextval('operations.catalog_change_seq')`
const NOW = sql`clock_timestamp()`

export type SnapshotItem = {
  document: ResourceDocument & { health_status?: string }
  version: number
  health_revision: number
  relationships_out: Relationship[]
}

/** Many rows as one parameter. */
const recordset = (rows: readonly object[], columns: SQL): SQL =>
  sql`jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x(${columns})`

const WHOLE = sql`resource_id text, type_key text, type_version int, name text, parent_id text, version bigint,
  lifecycle_status text, labels jsonb, annotations jsonb, desired_state jsonb, observed_state jsonb`

/**
 * A page of a snapshot, one statement a table: a first fill is a million resources. What is known already in a newer
 * version stays. Locks are taken in the order that single events take them.
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

export type Aggregate = { agg_type: string; agg_id: string }
export const nameOf = ({ agg_type, agg_id }: Aggregate): string => `${agg_type} ${agg_id}`

/** Versions of aggregates, locked; by name. Locks are taken in the order that single events take them. */
export const lockVersions = async (
  tx: Tx,
  aggregates: readonly Aggregate[],
): Promise<Map<string, { ver: number; held: boolean }>> => {
  const x = recordset(aggregates.map(pickName), sql`agg_type text, agg_id text`)
  await tx.execute(sql`
    insert into operations.projection_version (consumer, agg_type, agg_id, ver)
    select distinct ${CATALOG_CONSUMER}, agg_type, agg_id, 0 from ${x} order by agg_type, agg_id on conflict do nothing`)
  const { rows } = await tx.execute<Aggregate & { ver: string; held: boolean }>(sql`
    select agg_type, agg_id, ver, held from operations.projection_version
    where consumer = ${CATALOG_CONSUMER} and (agg_type, agg_id) in (select agg_type, agg_id from ${x})
    order by agg_type, agg_id for update`)
  return new Map(rows.map((row) => [nameOf(row), { ver: Number(row.ver), held: row.held }]))
}
const pickName = ({ agg_type, agg_id }: Aggregate): Aggregate => ({ agg_type, agg_id })

/** Events of a resource and of its health come one after the other, in whatever order. */
export const lockResources = (tx: Tx, ids: readonly string[]) =>
  tx.execute(sql`
    select ${sql.raw(keyedLock('catalog', 'id'))}
    from (select distinct id from unnest(${sql.param([...ids])}::text[]) id order by id) x`)

export const setVersions = (tx: Tx, versions: readonly (Aggregate & { ver: number })[]) =>
  tx.execute(sql`
    update operations.projection_version v set ver = x.ver
    from ${recordset(
      versions.map(({ agg_type, agg_id, ver }) => ({ agg_type, agg_id, ver })),
      sql`agg_type text, agg_id text, ver bigint`,
    )}
    where v.consumer = ${CATALOG_CONSUMER} and v.agg_type = x.agg_type and v.agg_id = x.agg_id`)

export const saveHealths = async (
  tx: Tx,
  healths: readonly { resource_id: string; status: string }[],
): Promise<void> => {
  const x = recordset(healths, sql`resource_id text, status text`)
  await tx.execute(sql`
    insert into operations.catalog_health (resource_id, status) select resource_id, status from ${x}
    on conflict (resource_id) do update set status = excluded.status`)
  await tx.execute(sql`
    update operations.catalog_resources r
    set health_status = x.status, change_seq = ${NEXT_CHANGE}, updated_at = ${NOW}
    from ${x} where r.resource_id = x.resource_id`)
}

export const saveResources = (tx: Tx, documents: readonly ResourceDocument[]) =>
  tx.execute(sql`
    insert into operations.catalog_resources
      (resource_id, type_key, type_version, name, parent_id, version, lifecycle_status, labels, annotations, desired_state,
       observed_state, change_seq, health_status, updated_at)
    select x.*, ${NEXT_CHANGE}, coalesce(h.status, 'unknown'), ${NOW}
    from ${recordset(documents, WHOLE)} left join operations.catalog_health h on h.resource_id = x.resource_id
    on conflict (resource_id) do update set
      type_key = excluded.type_key, type_version = excluded.type_version, name = excluded.name,
      parent_id = excluded.parent_id, version = excluded.version, lifecycle_status = excluded.lifecycle_status,
      labels = excluded.labels, annotations = excluded.annotations, desired_state = excluded.desired_state,
      observed_state = excluded.observed_state, change_seq = excluded.change_seq,
      health_status = excluded.health_status, updated_at = excluded.updated_at`)

const openRelationships = (tx: Tx, edges: readonly Relationship[]) =>
  tx.execute(sql`
    insert into operations.catalog_relationships as r (relationship_id, rev, type_key, from_id, to_id, properties, open)
    select relationship_id, rev, type_key, from_id, to_id, properties, true
    from ${recordset(edges, sql`relationship_id text, rev int, type_key text, from_id text, to_id text, properties jsonb`)}
    order by relationship_id
    on conflict (relationship_id) do update set rev = excluded.rev, type_key = excluded.type_key,
      from_id = excluded.from_id, to_id = excluded.to_id, properties = excluded.properties
    where r.open and r.rev < excluded.rev`)
