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
  const have = await lockVersions(tx, ids)
  await tx.execute(sql`
    select ${sql.raw(keyedLock('catalog', 'id'))}
    from (select id from unnest(${sql.param(ids)}::text[]) id order by id) x`)
  const healths = items
    .filter(({ document, health_revision }) => (have.get(`health ${document.resource_id}`) ?? 0) < health_revision)
    .map(({ document, health_revision }) => {
      const { resource_id, health_status: status = 'unknown' } = document
      return { resource_id, status, agg_type: 'health', ver: health_revision }
    })
  const newer = items.filter(({ document, version }) => (have.get(`resource ${document.resource_id}`) ?? 0) < version)
  if (healths.length > 0) await saveHealths(tx, healths)
  if (newer.length > 0) await saveResources(tx, pluck(newer, 'document'))
  const edges = items.flatMap(({ relationships_out }) => relationships_out)
  if (edges.length > 0) await openRelationships(tx, edges)
  const versions = newer.map(({ document, version }) => {
    const { resource_id } = document
    return { resource_id, agg_type: 'resource', ver: version }
  })
  await tx.execute(sql`
    update operations.projection_version v set ver = x.ver
    from ${recordset([...healths, ...versions], sql`resource_id text, agg_type text, ver bigint`)}
    where v.consumer = ${CATALOG_CONSUMER} and v.agg_type = x.agg_type and v.agg_id = x.resource_id`)
}

/** Versions of resources and their healths, locked; by `<agg_type> <id>`. */
const lockVersions = async (tx: Tx, ids: readonly string[]): Promise<Map<string, number>> => {
  await tx.execute(sql`
    insert into operations.projection_version (consumer, agg_type, agg_id, ver)
    select ${CATALOG_CONSUMER}, agg_type, agg_id, 0
    from unnest(array['resource', 'health']) agg_type, unnest(${sql.param([...ids])}::text[]) agg_id
    order by agg_type, agg_id on conflict do nothing`)
  const { rows } = await tx.execute<{ agg_type: string; agg_id: string; ver: string }>(sql`
    select agg_type, agg_id, ver from operations.projection_version
    where consumer = ${CATALOG_CONSUMER} and agg_type in ('resource', 'health')
      and agg_id = any(${sql.param([...ids])}::text[])
    order by agg_type, agg_id for update`)
  return new Map(rows.map(({ agg_type, agg_id, ver }) => [`${agg_type} ${agg_id}`, Number(ver)]))
}

const saveHealths = async (tx: Tx, healths: readonly { resource_id: string; status: string }[]): Promise<void> => {
  const x = recordset(healths, sql`resource_id text, status text`)
  await tx.execute(sql`
    insert into operations.catalog_health (resource_id, status) select resource_id, status from ${x}
    on conflict (resource_id) do update set status = excluded.status`)
  await tx.execute(sql`
    update operations.catalog_resources r
    set health_status = x.status, change_seq = ${NEXT_CHANGE}, updated_at = ${NOW}
    from ${x} where r.resource_id = x.resource_id`)
}

const saveResources = (tx: Tx, documents: readonly ResourceDocument[]) =>
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
