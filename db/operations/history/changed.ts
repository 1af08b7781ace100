import { sql } from 'drizzle-orm'
import type { Queryable } from '../../client.ts'
import { eachText } from '../expressions.ts'

/** Jobs of agents that change a target by its source. */
const ACTING = eachText(['opentofu.apply', 'kubernetes.apply', 'ansible.run'])
/** A failure of another class ended before the first change. */
const HALFWAY = eachText(['partial', 'hosts_failed', 'not_ready', 'timeout', 'cancelled'])

/**
 * The changes of targets by nodes that did not undo them. `wrote`: the desired state. `acted`: an agent applied a source,
 * wholly or in part; `commit`: from a repository.
 */
const changes = sql`
  select n.operation_id, n.target_id, n.catalog ->> 'status' = 'applied' and n.spec -> 'catalog' ? 'desired_state_patch' as wrote,
    a.whole is not null as acted, coalesce(a.whole, false) as whole, a.commit, coalesce(a.started_at, n.ended_at) as at
  from operations.nodes n
  left join lateral (
    select t.phase = 'succeeded' as whole, t.executed ->> 'commit' as commit, t.started_at
    from operations.node_attempts t
    where t.operation_id = n.operation_id and t.node_id = n.node_id and t.role = 'run'
      and n.spec #>> '{with,job}' in ${ACTING}
      and (t.phase in ('succeeded', 'outcome_unknown') or t.phase = 'failed' and t.error ->> 'class' in ${HALFWAY})
    order by t.attempt desc limit 1) a on true
  where n.state <> 'compensated'
    and (a.whole is not null or n.catalog ->> 'status' = 'applied' and n.spec -> 'catalog' ? 'desired_state_patch')`

export type TargetChanged = {
  target_id: string
  wrote: boolean
  /** The commit in force before, if it is known. */
  commit_before: string | null
  /** The newest operation that changed the target later; applying the same commit again is no change. */
  changed_by: string | null
  /** The commit that a later operation applied last, if it is known and was applied wholly. */
  commit_since: string | null
}

/** The targets that an operation changed, with the commit before and the next change. */
export const listChanged = async (db: Queryable, operation_id: string): Promise<TargetChanged[]> => {
  const { rows } = await db.execute<TargetChanged>(sql`
    with own as (
      select c.target_id, coalesce(bool_or(c.wrote), false) as wrote, bool_or(c.acted) as acted, min(c.at) as begun, max(c.at) as done,
        (array_agg(c.commit order by c.at desc) filter (where c.whole))[1] as commit
      from (${changes}) c where c.operation_id = ${operation_id} and c.target_id is not null group by c.target_id)
    select own.target_id, own.wrote, own.acted, earlier.commit as commit_before, later.changed_by, later.commit_since
    from own
    left join lateral (
      select c.commit from operations.resource_operation_index r
      join lateral (${changes} and n.operation_id = r.operation_id and n.target_id = own.target_id) c on true
      where r.resource_id = own.target_id and r.operation_id <> ${operation_id} and c.whole and c.at < own.begun
      order by c.at desc limit 1) earlier on own.acted
    left join lateral (
      select
        (array_agg(c.operation_id order by c.at desc) filter (where c.wrote or coalesce(c.commit <> own.commit, true)))[1] as changed_by,
        (array_agg(case when c.whole then c.commit end order by c.at desc) filter (where c.acted))[1] as commit_since
      from operations.resource_operation_index r
      join lateral (${changes} and n.operation_id = r.operation_id and n.target_id = own.target_id) c on true
      where r.resource_id = own.target_id and r.operation_id <> ${operation_id} and c.at > own.done) later on true
    order by own.target_id`)
  return rows
}
