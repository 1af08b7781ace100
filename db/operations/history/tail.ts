import { and, asc, eq, gt, inArray, lte, sql } from 'drizzle-orm'
import type { GateStatus, NodeState } from '../../../apps/shared/contracts/operations/graph.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import type { Queryable } from '../../client.ts'
import { iso, operation_node_run_summary as run } from '../expressions.ts'
import type { TimelineRow } from '../facts/state.ts'
import { catalog_resources, gates, operation_commands, outbox, patches } from '../tables/index.ts'

/** The live stream's data (console.md 4): own events by `pub_seq`, and the rows shown in its frames. */
export type LoggedChange = {
  pub_seq: number
  operation_id: string
  change_seq: number
  events: TimelineRow[]
  /** It was too large for a message: only the operation's own events are here. */
  partial: boolean
}

/** The newest numbered position, and the oldest that still exists. */
export const readLogEnds = async (db: Queryable): Promise<{ first: number; last: number; catalog: number }> => {
  const { rows } = await db.execute<{ first: string; last: string; catalog: string }>(sql`
    select coalesce(min(pub_seq), 0)::text as first, coalesce(max(pub_seq), 0)::text as last,
           (select coalesce(max(change_seq), 0)::text from ${catalog_resources}) as catalog from ${outbox}`)
  const ends = rows[0]
  return { first: Number(ends?.first ?? 0), last: Number(ends?.last ?? 0), catalog: Number(ends?.catalog ?? 0) }
}

/** Changes of operations after a position, in the only order that may be tailed. */
export const listChanges = async (
  db: Queryable,
  after: number,
  { until, limit }: { until?: number; limit: number },
): Promise<{ changes: LoggedChange[]; last: number; more: boolean }> => {
  const rows = await db
    .select({ pub_seq: outbox.pub_seq, agg_type: outbox.agg_type, agg_id: outbox.agg_id, payload: outbox.payload })
    .from(outbox)
    .where(and(gt(outbox.pub_seq, BigInt(after)), until === undefined ? undefined : lte(outbox.pub_seq, BigInt(until))))
    .orderBy(asc(outbox.pub_seq))
    .limit(limit)
  const changes = rows.flatMap(({ pub_seq, agg_type, agg_id, payload }): LoggedChange[] => {
    if (agg_type !== 'operation') return []
    const { change_seq = 0, events = [], fetch_href } = payload as Partial<LoggedChange> & { fetch_href?: string }
    return [{ pub_seq: Number(pub_seq), operation_id: agg_id, change_seq, events, partial: fetch_href !== undefined }]
  })
  const last = rows.at(-1)?.pub_seq
  return { changes, last: last == null ? after : Number(last), more: rows.length === limit }
}

export type Keyed = { operation_id: string; id: string }
const among = (operation_id: unknown, id: unknown, keys: Keyed[]) =>
  sql`(${operation_id}, ${id}) in (select k.operation_id, k.id from jsonb_to_recordset(${JSON.stringify(keys)}::jsonb) as k(operation_id uuid, id text))`

/** Live fields of these nodes. */
export const listLiveNodes = async (db: Queryable, keys: Keyed[]) => {
  if (keys.length === 0) return []
  return db
    .select({
      ...pick(run, 'operation_id', 'node_id'),
      state: sql<NodeState>`${run.state}`,
      ...pick(run, 'generation', 'attempt', 'error_class', 'error_message', 'ready_at', 'gated_at', 'started_at'),
      ...pick(run, 'ended_at', 'exception', 'log_lines'),
    })
    .from(run)
    .where(among(run.operation_id, run.node_id, keys))
}
export type LiveNode = Awaited<ReturnType<typeof listLiveNodes>>[number]

/** Live fields of these gates. */
export const listLiveGates = async (db: Queryable, keys: Keyed[]) => {
  if (keys.length === 0) return []
  return db
    .select({
      ...pick(gates, 'operation_id', 'gate_id', 'decided_by'),
      status: sql<GateStatus>`${gates.status}`,
      ...pick(gates, 'round', 'digest'),
      waiting_since: iso(gates.waiting_since),
      deadline_at: iso(gates.deadline_at),
      consumed_at: iso(gates.consumed_at),
      decided_at: iso(gates.decided_at),
    })
    .from(gates)
    .where(among(gates.operation_id, gates.gate_id, keys))
}
export type LiveGate = Awaited<ReturnType<typeof listLiveGates>>[number]

/** Live fields of these patches. */
export const listLivePatches = async (db: Queryable, keys: Keyed[]) => {
  if (keys.length === 0) return []
  return db
    .select({
      ...pick(patches, 'operation_id', 'patch_id', 'status', 'status_reason', 'base_revision', 'applied_revision'),
      decided_at: iso(patches.decided_at),
      decided_by: patches.decided_by,
    })
    .from(patches)
    .where(among(patches.operation_id, sql`${patches.patch_id}::text`, keys))
}
export type LivePatch = Awaited<ReturnType<typeof listLivePatches>>[number]

/** The authors of these commands: user ids by command. */
export const listCommandOwners = async (db: Queryable, command_ids: string[]): Promise<Map<string, string>> => {
  if (command_ids.length === 0) return new Map()
  const rows = await db
    .select({ command_id: operation_commands.command_id, owner: sql<string>`${operation_commands.actor} ->> 'id'` })
    .from(operation_commands)
    .where(inArray(operation_commands.command_id, command_ids))
  return new Map(rows.map(({ command_id, owner }) => [command_id, owner]))
}

/** The catalog's counter is drawn before the commit, so a late commit can appear this far behind the newest number. */
export const RESOURCE_WINDOW = 500

/** Another number after each commit of the projection, also after a late one. The sum of the window fits in 17 bits. */
export const readChangeMark = async (db: Queryable): Promise<number> => {
  const { rows } = await db.execute<{ mark: string }>(sql`
    with newest as (select max(change_seq) as last from ${catalog_resources})
    select coalesce(last * 131072 + (select sum(change_seq - last + ${RESOURCE_WINDOW}::bigint) from ${catalog_resources}
      where change_seq > last - ${RESOURCE_WINDOW}::bigint), 0)::text as mark from newest`)
  return Number(rows[0]?.mark)
}

/** Resources whose projection changed after a position of its counter. */
export const listChangedResources = (db: Queryable, after: number, limit: number) =>
  db
    .select({
      change_seq: catalog_resources.change_seq,
      fields: {
        ...pick(catalog_resources, 'resource_id', 'version', 'type_key', 'name', 'lifecycle_status', 'health_status'),
      },
    })
    .from(catalog_resources)
    .where(gt(catalog_resources.change_seq, after))
    .orderBy(asc(catalog_resources.change_seq))
    .limit(limit)
export type ChangedResource = Awaited<ReturnType<typeof listChangedResources>>[number]

export const getResource = (db: Queryable, resource_id: string) =>
  db
    .select({ resource_id: catalog_resources.resource_id })
    .from(catalog_resources)
    .where(eq(catalog_resources.resource_id, resource_id))
    .then((rows) => rows[0])
