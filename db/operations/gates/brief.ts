import { sql } from 'drizzle-orm'
import type { HealthStatus } from '../../../apps/shared/contracts/catalog/resources.ts'
import type { Actor } from '../../../apps/shared/contracts/operations/graph.ts'
import type { Queryable } from '../../client.ts'
import {
  catalog_resources,
  gates,
  intents,
  nodes,
  operation_timeline_view,
  operations,
  plans,
  votes,
} from '../tables/index.ts'

/** A target that the gate holds back, or one that ended before the gate asked; `ended_at` is then its end. */
export type BriefTarget = {
  resource_id: string
  name: string
  type_key: string | null
  region_id: string | null
  health: HealthStatus
  group_id: string | null
  ended_at: string | null
  started_at: string | null
  retries: number
}
export type Brief = {
  requester: Actor
  title: string
  reason: string
  ticket: string | null
  plan_id: string
  plan_hash: string
  risk: unknown
  estimates: unknown
  targets: BriefTarget[]
  /** Tasks without a compensation, in plan order. */
  lasting: { node_id: string; name: string; executor: string; with: unknown }[]
  compensable: number
  /** The released nodes that the subject lists. */
  order: string[]
  /** Those that still say why the gate asks: of this round or the one before, of people who have not voted again. */
  void_votes: { name: string; why: string; round: number }[]
}

/** Everything that a voter weighs besides the subject and its history, in one statement (console.md 5.2). */
export const getBrief = async (db: Queryable, operation_id: string, gate_id: string): Promise<Brief | undefined> => {
  const n = sql`${nodes} n where n.operation_id = ${operation_id} and not n.removed`
  const { rows } = await db.execute<Brief>(sql`
    with aimed as (
      select c ->> 'resource_id' as id from ${gates} g, jsonb_array_elements(g.subject -> 'changes') c
      where g.operation_id = ${operation_id} and g.gate_id = ${gate_id}
      union select r ->> 'target_id' from ${gates} g, jsonb_array_elements(g.subject -> 'releases') r
      where g.operation_id = ${operation_id} and g.gate_id = ${gate_id}),
    target as (
      select n.target_id as id, min(n.ordinal) as ordinal, min(n.group_id) as group_id,
        case when bool_and(n.ended_at is not null) then max(n.ended_at) end as ended_at,
        min(n.started_at) as started_at, sum(greatest(n.attempt - 1, 0))::int as retries
      from ${n} and n.target_id is not null group by n.target_id),
    -- By parent, each looked up once: the planner expects few targets.
    region as materialized (
      select jsonb_object_agg(parent.id, (select p.region_id from operations.place_of(parent.id) p)) as of
      from (select distinct c.parent_id as id from ${catalog_resources} c join target on target.id = c.resource_id where c.parent_id is not null) parent)
    select o.requester, o.title, i.reason, o.ticket, o.plan_id, p.plan_hash, p.report -> 'risk' as risk, p.report -> 'estimates' as estimates,
      (select coalesce(jsonb_agg(jsonb_build_object('resource_id', t.id, 'name', coalesce(c.name, t.id), 'type_key', c.type_key,
          'region_id', (select of from region) -> c.parent_id, 'health', coalesce(c.health_status, 'unknown'), 'group_id', t.group_id,
          'ended_at', case when aimed.id is null then operations.iso(t.ended_at) end,
          'started_at', operations.iso(t.started_at), 'retries', t.retries) order by t.ordinal), '[]')
        from target t left join aimed using (id) left join ${catalog_resources} c on c.resource_id = t.id
        where aimed.id is not null or t.ended_at <= coalesce(g.waiting_since, clock_timestamp())) as targets,
      (select coalesce(jsonb_agg(jsonb_build_object('node_id', n.node_id, 'name', n.name, 'executor', n.executor, 'with', n.spec -> 'with') order by n.ordinal), '[]')
        from ${n} and n.kind = 'task' and n.spec -> 'compensate' is null) as lasting,
      (select count(*)::int from ${n} and n.spec -> 'compensate' is not null) as compensable,
      (select coalesce(jsonb_agg(n.node_id order by n.ordinal), '[]') from ${n}
        and n.node_id in (select r ->> 'node_id' from jsonb_array_elements(g.subject -> 'releases') r)) as "order",
      (select coalesce(jsonb_agg(jsonb_build_object('name', v.data #>> '{voter,name}', 'why', v.data ->> 'why', 'round', v.data -> 'round') order by v.seq), '[]')
        from ${operation_timeline_view} v where v.operation_id = ${operation_id} and v.gate_id = ${gate_id} and v.type = 'gate.vote_voided'
          and (v.data ->> 'round')::int >= g.round - 1 and not exists (select 1 from ${votes} w where w.operation_id = g.operation_id
            and w.gate_id = g.gate_id and w.round = g.round and w.user_id = v.data #>> '{voter,id}' and not w.voided)) as void_votes
    from ${gates} g join ${operations} o using (operation_id) join ${intents} i using (intent_id) join ${plans} p on p.plan_id = o.plan_id
    where g.operation_id = ${operation_id} and g.gate_id = ${gate_id}`)
  return rows[0]
}
