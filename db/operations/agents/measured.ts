import { sql } from 'drizzle-orm'
import type { Db } from '../../client.ts'
import { SILENT_S } from './rows.ts'

type Measured = { name: string; labels: string[]; value: number }

/** The agents of each pool, and its work, as values of gauges. */
export const readAgents = async (db: Db): Promise<Measured[]> => {
  const { rows } = await db.execute<Measured>(sql`
    with a as (
      select unnest(a.pools) as pool, a.draining, w.works, greatest(a.seen_at, w.heard_at) as seen_at
      from operations.agents a cross join lateral (select count(*) as works, max(e.heartbeat_at) as heard_at
        from operations.executions e where e.agent = a.agent and e.closed_at is null) w),
    e as (
      select pool, started_at is null as waits, count(*) as works, min(created_at) as since
      from operations.executions where closed_at is null group by 1, 2)
    select 'signalbox_agents' as name, array[pool, case when seen_at < clock_timestamp() - make_interval(secs => ${SILENT_S}) then 'silent'
      when works > 0 then 'working' when draining then 'draining' else 'idle' end] as labels, count(*)::float8 as value from a group by 2
    union all select 'signalbox_agent_seen_seconds', array[pool], greatest(0, extract(epoch from clock_timestamp() - max(seen_at)))::float8
      from a group by pool
    union all select 'signalbox_agent_work', array[pool, case when waits then 'waiting' else 'running' end], works::float8 from e
    union all select 'signalbox_agent_work', array[pool, 'queued'], count(*)::float8 from operations.pool_waits group by pool
    union all select 'signalbox_agent_wait_oldest_seconds', array[pool], extract(epoch from clock_timestamp() - since)::float8 from e where waits`)
  return rows
}
