import { and, asc, eq, gt, inArray, ne, sql } from 'drizzle-orm'
import { pick } from '../../../apps/shared/data/pick.ts'
import type { Db, Queryable, Tx } from '../../client.ts'
import {
  catalog_resources,
  nodes,
  operation_control,
  operations,
  patches,
  plans,
  resource_operation_index,
} from '../tables/index.ts'

export type MovedTarget = { resource_id: string; version: number; node_ids: string[] }

/**
 * Targets that have moved since they were pinned, with the nodes of each that have not started. A projection that is
 * behind a pin is not drift; neither are the operation's own writes. `only`: restricts the targets.
 */
export const listMovedTargets = async (
  db: Queryable,
  operation_id: string,
  pins: Record<string, number>,
  only?: readonly string[],
): Promise<MovedTarget[]> => {
  const asked = only === undefined ? sql`` : sql`and p.key = any(${sql.param(only)}::text[])`
  const { rows } = await db.execute<{ resource_id: string; version: string; node_ids: string[] }>(sql`
    select r.resource_id, r.version::text as version,
           coalesce((select array_agg(n.node_id order by n.ordinal) from ${nodes} n where n.operation_id = ${operation_id}
             and n.target_id = r.resource_id and n.state in ('pending', 'gated', 'ready', 'backoff')), '{}') as node_ids
    from jsonb_each_text(${JSON.stringify(pins)}::jsonb) p join ${catalog_resources} r on r.resource_id = p.key
    left join ${resource_operation_index} i on i.resource_id = p.key and i.operation_id = ${operation_id}
    where r.version > greatest(p.value::bigint, coalesce(i.version_to, 0)) ${asked}
    order by r.resource_id`)
  return rows.map((row) => ({ ...row, version: Number(row.version) }))
}

/** Resources that an operation pins; empty if the operation does not exist. */
export const listTargets = async (db: Queryable, operation_id: string): Promise<string[]> => {
  const [row] = await db
    .select({ resource_ids: operations.resource_ids })
    .from(operations)
    .where(eq(operations.operation_id, operation_id))
  return row?.resource_ids ?? []
}

/** Nodes added or changed by an approved patch. */
export const listPatchedNodes = async (db: Queryable, operation_id: string): Promise<Set<string>> => {
  const rows = await db
    .select({ held: patches.held_nodes, diff: patches.diff_graph })
    .from(patches)
    .where(and(eq(patches.operation_id, operation_id), inArray(patches.status, ['approved', 'applied'])))
  return new Set(rows.flatMap(({ held, diff }) => [...held, ...((diff.added as string[] | undefined) ?? [])]))
}

/** Resources whose rows changed after `since`, and the newest position. */
export const listChangedSince = async (db: Queryable, since: number) => {
  const { rows } = await db.execute<{ last: string }>(
    sql`select coalesce(max(change_seq), 0)::text as last from ${catalog_resources}`,
  )
  const last = Number(rows[0]?.last ?? 0)
  if (since === 0 || last <= since) return { last, resource_ids: [] }
  const changed = await db
    .select({ resource_id: catalog_resources.resource_id })
    .from(catalog_resources)
    .where(gt(catalog_resources.change_seq, since))
  return { last, resource_ids: changed.map(({ resource_id }) => resource_id) }
}

/** Running operations on these resources; without `resource_ids`, all running operations. */
export const listFollowing = (db: Queryable, resource_ids?: readonly string[]) =>
  db
    .select({
      ...pick(operations, 'operation_id', 'intent_id', 'plan_id', 'pins', 'resource_ids', 'constraints'),
      looked: operations.drift_looked,
      control: operation_control.control,
    })
    .from(operation_control)
    .innerJoin(operations, eq(operations.operation_id, operation_control.operation_id))
    .where(
      and(
        eq(operation_control.ended, false),
        ne(operation_control.control, 'cancel'),
        resource_ids && sql`${operations.resource_ids} && ${sql.param(resource_ids)}::text[]`,
      ),
    )
    .orderBy(asc(operations.operation_id))
export type Drifting = Awaited<ReturnType<typeof listFollowing>>[number]

/** Pins versions again if they moved without a change of values; a pin changed otherwise meanwhile stays. */
export const repin = async (
  db: Db | Tx,
  operation_id: string,
  before: Record<string, number>,
  fresh: Record<string, number>,
): Promise<void> => {
  for (const [resource_id, version] of Object.entries(fresh))
    await db.execute(sql`
      update ${operations} set pins = pins || jsonb_build_object(${resource_id}::text, ${version}::bigint)
      where operation_id = ${operation_id} and (pins ->> ${resource_id})::bigint = ${before[resource_id] ?? 0}`)
}

/**
 * Pins the targets of these nodes as the plan did, and returns all pins. Started nodes were not checked while their
 * versions moved, so their values may be older than a pin that other nodes adopted. A target that the operation has
 * written itself keeps its pin.
 */
export const lowerPins = async (
  tx: Tx,
  { operation_id, plan_id, pins }: { operation_id: string; plan_id: string; pins: Record<string, number> },
  node_ids: readonly string[],
): Promise<Record<string, number>> => {
  const { rows } = await tx.execute<{ lowered: Record<string, number> }>(sql`
    with lowered as (
      select coalesce(jsonb_object_agg(p.resource_id, p.version), '{}') as pins
      from ${plans}, jsonb_to_recordset(${plans.document} -> 'catalog_pins') p(resource_id text, version bigint)
      where ${plans.plan_id} = ${plan_id} and p.version < (${JSON.stringify(pins)}::jsonb ->> p.resource_id)::bigint
        and exists (select from ${nodes} n where n.operation_id = ${operation_id} and n.target_id = p.resource_id
          and n.node_id = any(${sql.param(node_ids)}::text[]))
        and not exists (select from ${resource_operation_index} i where i.operation_id = ${operation_id}
          and i.resource_id = p.resource_id and i.version_to is not null))
    update ${operations} set pins = ${operations.pins} || lowered.pins from lowered
    where operation_id = ${operation_id} returning lowered.pins as lowered`)
  return { ...pins, ...rows[0]?.lowered }
}

/** Records that these versions need no further check. */
export const markLooked = (db: Queryable, operation_id: string, versions: Record<string, number>) =>
  db
    .update(operations)
    .set({ drift_looked: sql`${operations.drift_looked} || ${JSON.stringify(versions)}::jsonb` })
    .where(eq(operations.operation_id, operation_id))
