import { type SQL, sql } from 'drizzle-orm'
import type { ResourceDocument } from '../../../apps/shared/contracts/catalog/resources.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import type { Tx } from '../../client.ts'
import { keyedLock } from '../../locks.ts'
import { NOW } from '../../rows.ts'

/** Inbox name of the catalog projection: the same for NATS and for HTTP (operations.md 9.2). */
export const CATALOG_CONSUMER = 'catalog'

const NEXT_CHANGE = sql`nextval('operations.catalog_change_seq')`

/** Many rows as one parameter. */
export const recordset = (rows: readonly object[], columns: SQL): SQL =>
  sql`jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x(${columns})`

const WHOLE = sql`resource_id text, type_key text, type_version int, name text, parent_id text, version bigint,
  lifecycle_status text, labels jsonb, annotations jsonb, desired_state jsonb, observed_state jsonb`

export type Aggregate = { agg_type: string; agg_id: string }
export const nameOf = ({ agg_type, agg_id }: Aggregate): string => `${agg_type} ${agg_id}`

/** Versions of aggregates, locked, by name. Takes locks in the same order as single events. */
export const lockVersions = async (
  tx: Tx,
  aggregates: readonly Aggregate[],
): Promise<Map<string, { ver: number; held: boolean }>> => {
  const x = recordset(
    aggregates.map((one) => pick(one, 'agg_type', 'agg_id')),
    sql`agg_type text, agg_id text`,
  )
  await tx.execute(sql`
    insert into operations.projection_version (consumer, agg_type, agg_id, ver)
    select distinct ${CATALOG_CONSUMER}, agg_type, agg_id, 0 from ${x} order by agg_type, agg_id on conflict do nothing`)
  const { rows } = await tx.execute<Aggregate & { ver: string; held: boolean }>(sql`
    select agg_type, agg_id, ver, held from operations.projection_version
    where consumer = ${CATALOG_CONSUMER} and (agg_type, agg_id) in (select agg_type, agg_id from ${x})
    order by agg_type, agg_id for update`)
  return new Map(rows.map((row) => [nameOf(row), { ver: Number(row.ver), held: row.held }]))
}

/** Serializes the events of a resource and of its health, in whatever order they arrive. */
export const lockResources = (tx: Tx, ids: readonly string[]) =>
  tx.execute(sql`
    select ${sql.raw(keyedLock('catalog', 'id'))}
    from (select distinct id from unnest(${sql.param([...ids])}::text[]) id order by id) x`)

export const setVersions = (tx: Tx, versions: readonly (Aggregate & { ver: number })[]) =>
  tx.execute(sql`
    update operations.projection_version v set ver = x.ver
    from ${recordset(
      versions.map((one) => pick(one, 'agg_type', 'agg_id', 'ver')),
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
