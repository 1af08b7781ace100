import { and, asc, desc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm'
import type { BlockedOn, CancelMode, Control } from '../../../apps/shared/contracts/operations/graph.ts'
import type { OperationListQuery } from '../../../apps/shared/contracts/operations/operations.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { isUuid } from '../../../apps/shared/ids.ts'
import { equals, first, type Queryable } from '../../client.ts'
import { anyCase, idEnding, like } from '../../columns.ts'
import { NOW } from '../../rows.ts'
import { UNANSWERED, UNDELIVERED } from '../commands/undelivered.ts'
import { iso, operation_summary_view as summary } from '../expressions.ts'
import { WAITING_FOR_PEOPLE } from '../gates/inbox.ts'
import {
  gates,
  lease_waits,
  leases,
  nodes,
  operation_control,
  operations,
  outbox,
  resource_operation_index,
} from '../tables/index.ts'
import { CLOCK_RUNS } from './expiring.ts'

/** The age of what is read: Postgres' time, and the last numbered position of the own log. */
export const readAsOf = async (db: Queryable): Promise<{ time: string; seq: string }> => {
  const { rows } = await db.execute<{ time: string; seq: string }>(
    sql`select ${iso(NOW)} as time, coalesce((select max(pub_seq) from ${outbox}), 0)::text as seq`,
  )
  return rows[0] ?? { time: '', seq: '0' }
}

/** How long a command may be in transit before its operation is reported as waiting for the engine. */
const ENGINE_LATE = sql`interval '5 s'`
/** How long handed-over work may wait before its operation is reported as waiting for an agent. */
const AGENT_LATE = sql`interval '30 s'`
/** As the worker states them to agents (executors/agents/external.ts). */
const labelsAsked = sql`(case jsonb_typeof(a.inputs -> 'labels') when 'object' then jsonb_strip_nulls(a.inputs -> 'labels') else '{}' end
  || case when a.inputs #>> '{inputs,preview,plan,key}' ~ '^[0-9a-f]{8}$'
    then jsonb_build_object('seal_key', a.inputs #> '{inputs,preview,plan,key}') else '{}' end)`
/** Work that no agent has begun, with the last sign of life of an agent that could. */
const untaken = sql`coalesce((
  select jsonb_agg(jsonb_build_object('kind', 'executor', 'id', w.pool, 'since', operations.iso(w.since), 'message',
    format('No agent of the pool "%s"%s has begun %s; last seen: %s.', w.pool,
      (select ' with ' || string_agg(key || '=' || value, ', ') from jsonb_each_text(w.labels)),
      case when w.works = 1 then w.node_id else w.works || ' steps' end,
      coalesce((select operations.iso(date_trunc('second', max(seen_at))) from operations.agents where w.pool = any(pools) and labels @> w.labels), 'never')))
    order by w.since)
  from (select e.pool, ${labelsAsked} as labels, min(e.created_at) as since, count(*) as works, min(e.node_id) as node_id
    from operations.executions e join operations.node_attempts a using (operation_id, node_id, role, attempt)
    where ${summary.ended_at} is null and e.operation_id = ${summary.operation_id} and e.closed_at is null and e.started_at is null
      and e.created_at < clock_timestamp() - ${AGENT_LATE}
    group by 1, 2 order by 3 limit 10) w), '[]'::jsonb)`
/** Who holds what an operation waits for, or has waited for it longer, as the rows are now; paused, it waits for its resume. */
const waitsFor = sql`coalesce((
  select case when ${summary.status} <> 'paused' then (
      select jsonb_agg(jsonb_build_object('kind', 'lease', 'id', other.resource_id, 'href', '/v1/operations/' || other.operation_id,
          'since', operations.iso(mine.since), 'message', format('"%s" holds or waits for %s.', o.title, other.resource_id))
        order by holds desc, other.resource_id, other.operation_id)
      from (select l.resource_id, l.operation_id, true as holds from jsonb_to_recordset(mine.wanted) as m(resource_id text, mode text) join ${leases} l using (resource_id)
          where l.operation_id <> mine.operation_id and 'exclusive' in (l.mode, m.mode)
        union all select e.resource_id, w.operation_id, false from (
            -- A list reads this for each waiter, so each is compared only with those that wait longest.
            select v.* from ${lease_waits} v where (v.since, v.operation_id) < (mine.since, mine.operation_id)
            order by v.since, v.operation_id limit 100) w cross join lateral (
            select resource_id from jsonb_to_recordset(w.wanted) as e(resource_id text, mode text)
              join jsonb_to_recordset(mine.wanted) as m(resource_id text, mode text) using (resource_id)
            where 'exclusive' in (e.mode, m.mode) limit 1) e
          where not exists (select from ${operation_control} c where c.operation_id = w.operation_id and c.control = 'pause')
        limit 20) other join ${operations} o using (operation_id))
    when ${summary.pause_reason} = 'operator' and not ${summary.blocked_on} @> '[{"kind": "paused"}]' then
      jsonb_build_array(jsonb_build_object('kind', 'paused', 'id', mine.operation_id, 'message', 'Paused by an operator.')) end
  from ${lease_waits} mine where mine.operation_id = ${summary.operation_id}), '[]'::jsonb)`
/** The engine's last report, as far as the rows do not know better: it learns of pauses, resumes and votes later. */
const reported = sql`case when ${summary.blocked_on} = '[]' then '[]' else (
  select coalesce(jsonb_agg(b order by n), '[]') from jsonb_array_elements(${summary.blocked_on}) with ordinality as reported(b, n)
  where case b ->> 'kind' when 'paused' then ${summary.control} = 'pause'
    when 'gate' then exists (select from ${gates} g where g.operation_id = ${summary.operation_id} and g.gate_id = b ->> 'id'
      and case when b ->> 'message' like '%waits for a decision.' then g.status = 'waiting' else g.status in ('rejected', 'expired') end)
    else b ->> 'kind' <> 'lease' end) end`
/** Leases, the engine's last report, and the engine and the agents that have not carried out later decisions. */
const blockedOn = sql<BlockedOn[]>`${waitsFor} || ${reported} || ${untaken} || coalesce((
  select jsonb_build_array(jsonb_build_object('kind', 'engine', 'id', ${summary.operation_id}, 'since', operations.iso(min(k.since)),
    'message', 'The workflow engine has not carried out every decision yet: it is away or busy.'))
  from (select operation_id, since from ${sql.raw(UNDELIVERED)} u
    union all select operation_id, since from ${sql.raw(UNANSWERED)} a where ${summary.ended_at} is null) k
  where k.operation_id = ${summary.operation_id}
    and k.since < clock_timestamp() - ${ENGINE_LATE} having count(*) > 0), '[]'::jsonb)`

/** The members of a list row; visibility and commands read more from the same row. */
const summaryColumns = {
  ...pick(summary, 'operation_id', 'intent_id', 'plan_id', 'title', 'kind', 'status', 'pause_reason', 'end_reason'),
  blocked_on: blockedOn,
  ...pick(summary, 'progress', 'requester', 'risk_level', 'environment', 'labels', 'ticket', 'open_gates'),
  ...pick(summary, 'created_at', 'started_at', 'ended_at', 'updated_at', 'eta_at', 'revision', 'change_seq'),
}

export type OperationFilter = Omit<OperationListQuery, 'page_size' | 'page_token' | 'requester' | 'gate_for'> & {
  /** Their id, or their name in any case. */
  requester?: string | undefined
  /** Only operations with a gate that waits for people and meets this condition. */
  gate_for?: SQL | undefined
  visible: SQL | undefined
  after: (string | null)[] | undefined
  limit: number
}

/** A page of operations in the requested order, by default newest first. */
export const listOperations = (db: Queryable, filter: OperationFilter) => {
  const { column, direction } = ORDER[filter.sort ?? '-created_at']
  const order = direction === 'desc' ? desc : asc
  const compare = direction === 'desc' ? sql`<` : sql`>`
  const cast = column === operations.title ? sql`text` : sql`timestamptz`
  const [key, id] = filter.after ?? []
  return db
    .select(summaryColumns)
    .from(operations)
    .innerJoin(summary, eq(summary.operation_id, operations.operation_id))
    .where(
      and(
        filter.visible,
        ...conditionsOf(filter),
        filter.after && sql`(${column}, ${operations.operation_id}) ${compare} (${key}::${cast}, ${id}::uuid)`,
      ),
    )
    .orderBy(order(column), order(operations.operation_id))
    .limit(filter.limit)
}

const ORDER = {
  '-created_at': { column: operations.created_at, direction: 'desc' },
  '-updated_at': { column: operations.updated_at, direction: 'desc' },
  title: { column: operations.title, direction: 'asc' },
} as const

/** A row's sort key as text, for the page token. */
export const sortKeyOf = (
  row: { title: string; created_at: string; updated_at: string; operation_id: string },
  sort: OperationListQuery['sort'],
): [string, string] => [
  sort === 'title' ? row.title : sort === '-updated_at' ? row.updated_at : row.created_at,
  row.operation_id,
]

const conditionsOf = (filter: OperationFilter): (SQL | undefined)[] => {
  const { status, status_group, kind, requester, environment, resource_id, label = [], gate_for, q } = filter
  return [
    status && inArray(summary.status, status),
    status_group && GROUPS[status_group],
    kind === undefined ? undefined : eq(operations.kind, kind),
    requester === undefined
      ? undefined
      : // One or the other: no index serves both, and "my operations" is read all day.
        isUuid(requester)
        ? eq(operations.requester_id, requester)
        : sql`lower(${operations.requester} ->> 'name') = lower(${requester})`,
    environment === undefined ? undefined : eq(operations.environment, environment),
    resource_id === undefined ? undefined : concerns(resource_id),
    ...label.map(labelled),
    gate_for &&
      sql`exists (select 1 from ${gates} where ${gates.operation_id} = ${operations.operation_id} and ${WAITING_FOR_PEOPLE} and ${gate_for})`,
    q === undefined
      ? undefined
      : sql`(${operations.title}${anyCase(q)} ilike ${like(q)} or ${operations.ticket}${anyCase(q)} ilike ${like(q)}
          or ${operations.operation_id}::text like ${idEnding(q)})`,
    filter.created_after === undefined ? undefined : sql`${operations.created_at} >= ${filter.created_after}`,
    filter.created_before === undefined ? undefined : sql`${operations.created_at} < ${filter.created_before}`,
    filter.ended_after === undefined ? undefined : sql`${operations.ended_at} >= ${filter.ended_after}`,
    filter.ended_before === undefined ? undefined : sql`${operations.ended_at} < ${filter.ended_before}`,
  ]
}

/** The meaning of the status groups, in lists and counts alike. */
export const GROUPS = {
  open: isNull(operations.ended_at),
  ended: sql`${operations.ended_at} is not null`,
  needs_attention: sql`${operations.ended_at} is null and (${operations.engine_status} = 'blocked' or ${operations.failed} > 0
    or ${operations.open_gates} > 0 or exists (select 1 from ${nodes} n where n.operation_id = ${operations.operation_id} and n.state = 'outcome_unknown'))`,
}

const concerns = (resource_id: string): SQL =>
  sql`(${operations.resource_ids} @> array[${resource_id}]::text[] or exists (select 1 from ${resource_operation_index} r
    where r.resource_id = ${resource_id} and r.operation_id = ${operations.operation_id}))`

const labelled = (label: string): SQL => {
  const at = label.indexOf('=')
  if (at < 0) return sql`${operations.labels} ? ${label}`
  return sql`${operations.labels} @> ${JSON.stringify({ [label.slice(0, at)]: label.slice(at + 1) })}::jsonb`
}

/** The rows of operations as lists show them, with the members needed to decide visibility. */
export const listSummaries = async (db: Queryable, operation_ids: string[]) => {
  if (operation_ids.length === 0) return []
  return db
    .select({
      ...pick(summary, 'requester_id', 'resource_ids'),
      fields: {
        ...pick(summary, 'operation_id', 'title', 'status', 'pause_reason', 'end_reason', 'progress'),
        // As a reload shows it: a frame replaces what is on the screen.
        blocked_on: blockedOn,
        ...pick(summary, 'open_gates', 'started_at', 'ended_at', 'updated_at', 'eta_at', 'revision', 'change_seq'),
      },
    })
    .from(operations)
    .innerJoin(summary, eq(summary.operation_id, operations.operation_id))
    .where(inArray(operations.operation_id, operation_ids))
}
export type LiveSummary = Awaited<ReturnType<typeof listSummaries>>[number]

/** One operation with everything that its page and its `allowed_actions` need. */
export const getOperation = (db: Queryable, operation_id: string) =>
  db
    .select({
      summary: summaryColumns,
      governed: {
        ...pick(summary, 'operation_id', 'requester_id', 'involved', 'risk_level', 'environment', 'labels'),
        resource_ids: summary.resource_ids,
        control: sql<Control>`${summary.control}`,
        cancel_mode: sql<CancelMode | null>`${summary.cancel_mode}`,
        ...pick(summary, 'cancelled_at', 'pause_reason'),
        engine_status: operations.engine_status,
        unknown_nodes: sql<number>`(select count(*)::int from ${nodes} n where n.operation_id = ${operations.operation_id} and n.state = 'outcome_unknown')`,
      },
      detail: {
        ...pick(operations, 'plan_revision', 'plan_hash', 'constraints'),
        control: sql<Control>`${summary.control}`,
        ...pick(summary, 'cancel_mode', 'resource_ids'),
        deadline_at: iso(
          sql`case when ${operations.ended_at} is not null or (${CLOCK_RUNS}) then ${operations.deadline_at} end`,
        ),
        ...pick(operations, 'max_parallel', 'exceptions', 'retry_of'),
      },
      ...pick(operations, 'evidence_seq', 'evidence_hash', 'engine_ref'),
    })
    .from(operations)
    .innerJoin(summary, eq(summary.operation_id, operations.operation_id))
    .where(eq(operations.operation_id, operation_id))
    .then(first)

/** The columns that decide whether a person may see an operation. */
export const getOwned = (db: Queryable, operation_id: string) =>
  db
    .select({ ...pick(operations, 'requester_id', 'resource_ids', 'change_seq'), revision: operation_control.revision })
    .from(operations)
    .innerJoin(operation_control, eq(operation_control.operation_id, operations.operation_id))
    .where(eq(operations.operation_id, operation_id))
    .then(first)

/** The leases that one operation holds, by resource, at most this many: a bulk holds thousands. */
const MOST_LEASES = 100
export const listLeases = (db: Queryable, operation_id: string) =>
  db
    .select({ resource_id: leases.resource_id, mode: leases.mode, since: iso(leases.since) })
    .from(leases)
    .where(eq(leases.operation_id, operation_id))
    .orderBy(leases.resource_id)
    .limit(MOST_LEASES)

export const listWaitingGates = (db: Queryable, operation_id: string) =>
  db
    .select({
      ...pick(gates, 'gate_id', 'question', 'round'),
      status: sql<'waiting'>`${gates.status}`,
      waiting_since: iso(gates.waiting_since),
      deadline_at: iso(gates.deadline_at),
    })
    .from(gates)
    .where(equals(gates, { operation_id, status: 'waiting' }))
    .orderBy(gates.gate_id)
