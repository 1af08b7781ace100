-- The claim of most nodes, at half the cost of claim.sql, which knows every case: a run that was never tried before, in an
-- operation without a calendar. It grants only where claim.sql would: a node without gates. For one with gates it says whose
-- voters are to be proved before the lock is worth taking. Else it has no row and no effect; then claim.sql is asked. The
-- conditions stand at the rows that are locked, so they hold for the rows that the lock found.
with control as materialized (
  select from operations.operation_control
  where operation_id = :operation_id and control = 'run' and lease_state = 'held' and calendar is null for share),
node as materialized (
  select n.spec, n.input_overrides, n.gate_ids from control, operations.nodes n
  where n.operation_id = :operation_id and n.node_id = :node_id and n.generation = :generation and not n.removed
    and n.hold_patch_id is null and n.spec ->> 'executor' <> 'external' for no key update of n),
granted as (
  insert into operations.node_attempts as a (operation_id, node_id, role, attempt, generation, fence, fences, phase, executor, pool, key, deadline_at)
  select :operation_id, :node_id, 'run', :attempt::int, :generation, f.fence, array[f.fence::text], 'running', spec ->> 'executor', spec ->> 'pool',
    :operation_id || ':' || :node_id || ':' || :attempt::int,
    clock_timestamp() + make_interval(secs => (spec -> 'timeouts' ->> 'run_s')::double precision)
  from node, lateral (select nextval('operations.fence_seq') + coalesce((select epoch from operations.relay_state where name = 'restored'), 0) * (2 ^ 40)::bigint as fence) f
  where gate_ids = '{}' and not exists (select from operations.relay_state where name = 'restored' and stream_created is not null)
    and (clock_timestamp() > :asked_at::timestamptz + interval '5 s') is not true
    and not exists (select from operations.node_attempts o
      where o.operation_id = :operation_id and o.node_id = :node_id and o.role = 'run' and o.attempt >= :attempt::int)
  on conflict (operation_id, node_id, role, attempt) do nothing
  returning a.fence, a.started_at),
begun as (
  update operations.nodes n set state = 'running', attempt = greatest(n.attempt, :attempt::int), started_at = clock_timestamp(),
    ended_at = null, error = null, due_at = null, updated_at = clock_timestamp()
  from granted where n.operation_id = :operation_id and n.node_id = :node_id)
select 'granted' as verdict, false as repeated, null as resume, 0 as log_lines, 0 as log_bytes, n.spec, n.input_overrides, g.fence,
  extract(epoch from g.started_at) * 1000 as started_at, extract(epoch from clock_timestamp()) * 1000 as now, null::text[] as stale
from granted g, node n
union all
select 'unlocked', false, null, 0, 0, null, null, null, null, null,
  (select case when bool_and(coalesce(g.status = 'bypassed' or (g.status = 'approved' and g.digest = g.approved_digest), false))
      then array_agg(g.gate_id order by g.gate_id) filter (where {standing_due}) end
    from operations.gates g where g.operation_id = :operation_id and g.gate_id = any(n.gate_ids))
from node n where n.gate_ids <> '{}' and not exists (select from operations.node_attempts o
  where o.operation_id = :operation_id and o.node_id = :node_id and o.role = 'run' and o.attempt >= :attempt::int)
