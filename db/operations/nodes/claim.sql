-- The claim of an attempt (claim.ts), read once; `:name` is a parameter.
-- role: run or undo. locked: a statement before this one has locked the control row, and for an external pool its places.
-- calendar: the digest of the calendar that was found to let the node start. places: those of each external pool.
-- asked_at: when the catalog was asked about the target; it counts for 5 s, the wait for locks included.
-- afresh: an agent has the work, none began it, and none will, so its next handover is asked like any first start.
-- freed: such an attempt, closed by a claim. Its number is free, also for a later generation.
-- barred: the calendar was found to bar the start, or the target is not as planned.
-- standing_s: how many seconds ago voters may have been proved. unproved: no one can prove them now.
-- Gates are read, not locked: a command that opens one again holds the control row. So a node with gates needs the lock
-- first, else the snapshot of this statement may be older than the lock; so does one whose pool is counted. Without the
-- lock it says only whose voters are to be proved before the lock is worth taking.
-- Fences of a future that a restore lost stay below those of the epoch after it: no host that knows them refuses ours.
with control as materialized (
  select control, cancel_mode, calendar, lease_state from operations.operation_control where operation_id = :operation_id for share),
node as materialized (
  select n.* from control, operations.nodes n where n.operation_id = :operation_id and n.node_id = :node_id for no key update of n),
gate as materialized (
  select g.gate_id, g.status, g.round, g.digest, g.status = 'bypassed' or (g.status = 'approved' and g.digest = g.approved_digest) as passed,
    {standing_due} as stale, operations.iso(g.standing_at) as standing_at, operations.iso(clock.now) as at
  from node n join operations.gates g on g.operation_id = :operation_id and g.gate_id = any(n.gate_ids), lateral (select clock_timestamp() as now) clock),
known as materialized (
  select a.* from node, operations.node_attempts a
  where a.operation_id = :operation_id and a.node_id = :node_id and a.role = :role and a.attempt = :attempt for no key update of a),
handed as materialized (
  select {afresh} as afresh
  from known k join operations.executions e on e.operation_id = :operation_id and e.node_id = :node_id and e.role = :role and e.attempt = :attempt),
outside as materialized (
  select coalesce(n.spec ->> 'pool', 'default') as pool, (:places::jsonb ->> coalesce(n.spec ->> 'pool', 'default'))::int as places
  from node n left join known k on true
  where coalesce(k.phase, 'cancelled') not in ('dispatched', 'running')
    and case :role when 'run' then n.spec ->> 'executor' else n.spec -> 'compensate' ->> 'executor' end = 'external'),
verdict as materialized (
  select n.spec, n.input_overrides, n.target_id, c.calendar, c.control = 'run' and n.hold_patch_id is null and not n.removed as wanted, n.generation, k.phase, k.error, k.resume, k.started_at, k.ended_at, k.log_lines, k.log_bytes, h.afresh,
    h.afresh and k.phase = 'cancelled' as freed,
    k.phase in ('dispatched', 'running', 'cancelled') as repeated,
    case
      when k.phase is not null and k.phase not in ('dispatched', 'running', 'cancelled') then 'ended'
      when k.phase in ('dispatched', 'running') and k.resume is not null and not h.afresh then 'granted'
      when not :locked and (n.gate_ids <> '{}' or h.afresh or exists (select from outside where places is not null)) then 'unlocked'
      when k.phase in ('dispatched', 'running') and not h.afresh and not case :role when 'run' then (n.spec ->> 'idempotent')::boolean
        else coalesce((n.spec -> 'compensate' ->> 'idempotent')::boolean, false) end then 'unknown'
      when case when :role = 'run' then c.control <> 'run' when c.control = 'cancel' then c.cancel_mode <> 'compensate'
        else n.state <> 'compensating' end then 'stopped'
      when n.removed or n.generation <> :generation or (k.generation <> :generation and not (h.afresh and k.phase = 'cancelled'))
        or (k.phase is null and exists (select from operations.node_attempts o
            where o.operation_id = :operation_id and o.node_id = :node_id and o.role = :role and o.attempt > :attempt)) then 'superseded'
      when n.hold_patch_id is not null then 'held'
      when :role = 'run' and exists (select from gate where not passed) then 'gate_open'
      when c.lease_state <> 'held' then 'lease_lost'
      when :barred then 'barred'
      when c.calendar is not null and :role = 'run' and (h.afresh or coalesce(k.phase, 'cancelled') = 'cancelled')
        and md5(c.calendar::text) is distinct from :calendar::text then 'calendar'
      when (select places from outside) <= (select count(*) from operations.node_attempts o
        where o.executor = 'external' and coalesce(o.pool, 'default') = (select pool from outside)
          and o.phase in ('dispatched', 'running')) then 'executor_busy'
      when exists (select from operations.relay_state where name = 'restored' and stream_created is not null) then 'restored'
      when clock_timestamp() > :asked_at::timestamptz + interval '5 s' then 'recheck'
      when :role = 'run' and exists (select from gate where stale) then case when :unproved then 'unproved' else 'recheck' end
      else 'granted' end as verdict
  from handed h, control c, node n left join known k on true),
granted as (
  insert into operations.node_attempts as a (operation_id, node_id, role, attempt, generation, fence, fences, phase, executor, pool, key, deadline_at, gates)
  select :operation_id, :node_id, :role, :attempt, :generation, f.fence, array[f.fence::text], 'running',
    case :role when 'run' then spec ->> 'executor' else spec -> 'compensate' ->> 'executor' end, spec ->> 'pool',
    :operation_id || ':' || :node_id || case :role when 'run' then ':' else ':c' end || :attempt,
    clock_timestamp() + make_interval(secs => (spec -> 'timeouts' ->> 'run_s')::double precision),
    case :role when 'run' then (select jsonb_agg(jsonb_build_object('gate_id', gate_id, 'round', round, 'digest', digest, 'at', at, 'standing_at', standing_at) order by gate_id) from gate) end
  from verdict, lateral (select nextval('operations.fence_seq') + coalesce((select epoch from operations.relay_state where name = 'restored'), 0) * (2 ^ 40)::bigint as fence) f where verdict = 'granted'
  on conflict (operation_id, node_id, role, attempt) do update
    set fence = excluded.fence, fences = a.fences || excluded.fences, phase = 'running', error = null, ended_at = null, heartbeat_at = clock_timestamp(),
      generation = excluded.generation,
      started_at = case when (select freed from verdict) then excluded.started_at else a.started_at end,
      deadline_at = case when (select freed from verdict) then excluded.deadline_at else a.deadline_at end,
      gates = case when a.resume is null or (select afresh from verdict) then excluded.gates else a.gates end
  returning a.fence, a.started_at),
begun as (
  update operations.nodes n set state = 'running', attempt = greatest(n.attempt, :attempt), started_at = g.started_at,
    ended_at = null, error = null, due_at = null, updated_at = clock_timestamp()
  from verdict v, granted g where v.verdict = 'granted' and :role = 'run' and v.resume is null and n.operation_id = :operation_id and n.node_id = :node_id),
consumed as (
  update operations.gates g set consumed_at = clock_timestamp(), updated_at = clock_timestamp()
  from verdict v where v.verdict = 'granted' and :role = 'run' and g.operation_id = :operation_id and g.gate_id in (select gate_id from gate) and g.consumed_at is null),
waits as (
  insert into operations.pool_waits (operation_id, node_id, pool, places)
  select :operation_id, :node_id, o.pool, o.places from verdict v, outside o where v.verdict = 'executor_busy'
  on conflict (operation_id, node_id) do update set pool = excluded.pool, places = excluded.places),
served as (
  delete from operations.pool_waits w using verdict v, outside
  where v.verdict = 'granted' and w.operation_id = :operation_id and w.node_id = :node_id),
closed as (
  update operations.node_attempts a set ended_at = clock_timestamp(), resume = null,
    phase = case v.verdict when 'unknown' then 'outcome_unknown' else 'cancelled' end,
    error = jsonb_build_object('class', 'cancelled', 'retryable', false, 'message',
      case when v.afresh then 'No agent began it. It starts when the operation lets it.'
        when v.verdict = 'unknown' then 'The worker was lost while it ran; whether it took effect is not known.'
        else 'The worker was lost while it ran; it goes on when the operation does.' end)
  from verdict v where v.repeated and v.verdict not in ('granted', 'unlocked', 'recheck', 'calendar', 'ended')
    and a.operation_id = :operation_id and a.node_id = :node_id and a.role = :role and a.attempt = :attempt
  returning v.afresh),
-- The number of an attempt that no agent began is free again.
given_back as (
  update operations.nodes n set attempt = :attempt - 1 from closed
  where closed.afresh and :role = 'run' and n.operation_id = :operation_id and n.node_id = :node_id and n.attempt = :attempt),
withdrawn as (
  update operations.executions e set closed_at = clock_timestamp() from closed
  where closed.afresh and e.operation_id = :operation_id and e.node_id = :node_id and e.role = :role and e.attempt = :attempt and e.closed_at is null)
select v.verdict, v.repeated and not v.afresh as repeated, v.generation, v.phase, v.error, v.resume, coalesce(v.log_lines, 0) as log_lines, coalesce(v.log_bytes, 0) as log_bytes,
  extract(epoch from coalesce(g.started_at, v.started_at)) * 1000 as started_at, extract(epoch from v.ended_at) * 1000 as ended_at,
  extract(epoch from clock_timestamp()) * 1000 as now, g.fence,
  case when v.verdict = 'granted' then v.spec end as spec, case when v.verdict = 'granted' then v.input_overrides end as input_overrides,
  case when v.verdict in ('stopped', 'superseded', 'held', 'gate_open', 'lease_lost', 'calendar', 'executor_busy', 'barred', 'restored', 'unproved') then (select coalesce(max(seq), 0) from operations.operation_commands
    where operation_id = :operation_id and status not in ('awaiting', 'withdrawn', 'superseded')) end as seq,
  case when v.verdict = 'executor_busy' then (select pool from outside) end as pool,
  case when v.verdict = 'gate_open' then (select jsonb_agg(jsonb_build_object('gate_id', gate_id, 'status', status, 'round', round)) from gate) end as gates,
  case when v.verdict = 'recheck' or (v.verdict = 'unlocked' and v.wanted and :role = 'run' and not :barred and not :unproved and not exists (select from gate where not passed))
    then (select array_agg(gate_id order by gate_id) from gate where stale) end as stale,
  case when v.verdict = 'calendar' then jsonb_build_object('target_id', v.target_id, 'document', v.calendar, 'digest', md5(v.calendar::text),
    'passed', (select coalesce(jsonb_agg(policy ->> 'key'), '[]') from operations.gates
      where operation_id = :operation_id and kind = 'freeze' and status in ('approved', 'bypassed'))) end as calendar
from verdict v left join granted g on true
