import { type SQL, sql } from 'drizzle-orm'
import type { AgentView } from '../../../apps/shared/contracts/engine/agents.ts'
import type { Db, Queryable } from '../../client.ts'
import { operations } from '../tables/index.ts'

export type SeenAgent = {
  agent: string
  machine: string
  /** Without `complete`, pools that it has asked for earlier remain. */
  pools: readonly string[]
  complete: boolean
  labels: Record<string, string>
  version: string | null
  concurrency: number | null
  draining: boolean
}

/** An agent that does not ask for this long counts as silent; a waiting one asks every few seconds. */
export const SILENT_S = 60
/** How long a silent agent stays listed. */
const KEPT_DAYS = 7
/** How many names one machine may give its agents: no loop of restarts fills the table. */
const MAX_NAMES = 200

/** Records that an agent asks for work. */
export const noteAgent = async (db: Queryable, seen: SeenAgent): Promise<void> => {
  const pools = sql`${sql.param(seen.pools)}::text[]`
  await db.execute(sql`
    insert into operations.agents as a (agent, machine, pools, labels, version, concurrency, draining)
    select ${seen.agent}, ${seen.machine}, ${pools}, ${JSON.stringify(seen.labels)}::jsonb, ${seen.version}, ${seen.concurrency}::int, ${seen.draining}
    where (select count(*) from operations.agents where machine = ${seen.machine} and agent <> ${seen.agent}) < ${MAX_NAMES}
    on conflict (agent) do update set labels = excluded.labels, version = excluded.version, concurrency = excluded.concurrency,
      draining = excluded.draining, seen_at = clock_timestamp(),
      pools = ${seen.complete ? sql`excluded.pools` : sql`array(select distinct unnest(a.pools || excluded.pools) order by 1)`}`)
}

/** Records which agent is given a piece of work, and when: it must begin soon. */
export const noteTaken = async (db: Queryable, token_sha256: string, agent: string): Promise<void> => {
  await db.execute(sql`
    update operations.executions set agent = ${agent}, heartbeat_at = clock_timestamp()
    where token_sha256 = ${token_sha256} and started_at is null`)
}

/** Records the work that an agent has begun which asks for none, and so proves itself by its pool. */
export const noteBegun = async (db: Queryable, token_sha256: string, pool: string, name: string): Promise<void> => {
  const [machine, agent] = [`pool:${pool}`, `pool:${pool}/${name}`]
  await db.execute(sql`
    with begun as (update operations.executions set agent = ${agent} where token_sha256 = ${token_sha256} and agent is null)
    insert into operations.agents (agent, machine, pools, labels, draining) select ${agent}, ${machine}, array[${pool}], '{}', false
    where (select count(*) from operations.agents where machine = ${machine} and agent <> ${agent}) < ${MAX_NAMES}
    on conflict (agent) do update set seen_at = clock_timestamp()`)
}

/**
 * All agents by name, with the work that each has now. `visible` limits the operations that are named; work of others
 * is only counted. The last sign of life is a request for work or a report on it. One that drains begins no work: if
 * some has begun since it said so, a successor has its name.
 */
export const listAgents = async (db: Queryable, visible: SQL | undefined): Promise<AgentView[]> => {
  const { rows } = await db.execute<AgentView>(sql`
    select a.agent, a.machine, a.pools, a.labels, a.version, a.concurrency, operations.iso(a.since) as since, operations.iso(s.seen_at) as seen_at,
      w.works, w.work,
      case when s.seen_at < clock_timestamp() - make_interval(secs => ${SILENT_S}) then 'silent'
        when a.draining and coalesce(w.begun_at <= a.seen_at, true) then 'draining' when w.works > 0 then 'working' else 'idle' end as status
    from operations.agents a
    cross join lateral (
      select count(*)::int as works, max(e.heartbeat_at) as heard_at, max(e.started_at) as begun_at,
        coalesce(jsonb_agg(jsonb_build_object('operation_id', e.operation_id, 'node_id', e.node_id, 'pool', e.pool, 'attempt', e.attempt,
          'started_at', operations.iso(e.started_at)) order by e.created_at) filter (where v.visible), '[]') as work
      from operations.executions e
      cross join lateral (select exists (select from ${operations}
        where ${operations.operation_id} = e.operation_id and ${visible ?? sql`true`}) as visible) v
      where e.agent = a.agent and e.closed_at is null) w
    cross join lateral (select greatest(a.seen_at, w.heard_at) as seen_at) s
    order by a.agent`)
  return rows
}

/** Those of the pools and labels for which no agent has shown a sign of life lately, with the last one. */
export const listUnserved = async <T extends { pool: string; labels: Record<string, string> }>(
  db: Queryable,
  asked: T[],
): Promise<(T & { seen_at: string | null })[]> => {
  if (asked.length === 0) return []
  const { rows } = await db.execute<{ i: number; seen_at: string | null }>(sql`
    select q.i::int as i, operations.iso(date_trunc('second', max(s.seen_at))) as seen_at
    from jsonb_array_elements(${JSON.stringify(asked)}::jsonb) with ordinality as q(one, i)
    left join operations.agents a on q.one ->> 'pool' = any(a.pools) and a.labels @> (q.one -> 'labels')
    left join lateral (select greatest(a.seen_at, max(e.heartbeat_at)) as seen_at
      from operations.executions e where e.agent = a.agent and e.closed_at is null) s on true
    group by 1 having coalesce(max(s.seen_at), '-infinity') < clock_timestamp() - make_interval(secs => ${SILENT_S}) order by 1`)
  return rows.map(({ i, seen_at }) => ({ ...(asked[i - 1] as T), seen_at }))
}

const hasWork = sql.raw('exists (select from operations.executions e where e.agent = a.agent and e.closed_at is null)')

/** Removes an agent that has ended in order. If work is left, its successor has the name, and asks for none while busy. */
export const removeAgent = async (db: Queryable, agent: string): Promise<void> => {
  await db.execute(sql`
    with gone as (delete from operations.agents a where agent = ${agent} and not ${hasWork})
    update operations.agents a set draining = false where agent = ${agent} and ${hasWork}`)
}

/** Removes agents that have been silent for long. */
export const pruneAgents = async (db: Db): Promise<void> => {
  await db.execute(sql`
    delete from operations.agents a where seen_at < clock_timestamp() - make_interval(days => ${KEPT_DAYS})
      and not ${hasWork}`)
}
