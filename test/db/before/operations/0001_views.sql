CREATE FUNCTION operations.iso(at timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;
--> statement-breakpoint
-- What readers see of wanted control and reported status; the same rule as statusOf in workflows/operation/state/rules.ts.
CREATE FUNCTION operations.status_of(control text, engine_status text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE
     WHEN engine_status IN ('succeeded', 'succeeded_with_exceptions', 'failed', 'cancelled', 'timed_out') THEN engine_status
     WHEN control = 'cancel' THEN 'cancelling'
     WHEN control = 'pause' THEN CASE engine_status WHEN 'paused' THEN 'paused' ELSE 'pausing' END
     WHEN engine_status IN ('queued', 'blocked') THEN engine_status
     ELSE 'running' END $$;
--> statement-breakpoint
-- The place of a resource for the scope of grants: itself and what it stands in, as the catalog's projection knows it.
CREATE FUNCTION operations.place_of(id text)
RETURNS TABLE (type_key text, region_id text, datacenter_id text, layer_id text, segment_id text) LANGUAGE sql STABLE AS
$$ WITH RECURSIVE up AS (
     SELECT r.resource_id, r.type_key, r.parent_id, 0 AS depth FROM operations.catalog_resources r WHERE r.resource_id = id
     UNION ALL
     SELECT r.resource_id, r.type_key, r.parent_id, up.depth + 1
     FROM up JOIN operations.catalog_resources r ON r.resource_id = up.parent_id WHERE up.depth < 16)
   SELECT max(up.type_key) FILTER (WHERE up.depth = 0),
          max(up.resource_id) FILTER (WHERE up.type_key = 'topology.region'),
          max(up.resource_id) FILTER (WHERE up.type_key = 'topology.datacenter'),
          max(up.resource_id) FILTER (WHERE up.type_key = 'topology.layer'),
          max(up.resource_id) FILTER (WHERE up.type_key = 'topology.segment') FROM up $$;
--> statement-breakpoint
CREATE VIEW operations.operation_summary_view AS
SELECT o.operation_id, o.intent_id, o.plan_id, o.title, o.kind, operations.status_of(c.control, o.engine_status) AS status,
       c.control, c.cancel_mode, operations.iso(c.cancelled_at) AS cancelled_at, c.pause_reason, o.end_reason, o.blocked_on,
       jsonb_build_object('total', o.total, 'done', o.done, 'running', o.running, 'failed', o.failed, 'waiting', o.waiting) AS progress,
       o.requester, o.requester_id, o.starter_id, o.involved, o.resource_ids, o.risk_level, o.environment, o.labels, o.ticket, o.open_gates,
       operations.iso(o.created_at) AS created_at, operations.iso(o.started_at) AS started_at, operations.iso(o.ended_at) AS ended_at,
       operations.iso(o.updated_at) AS updated_at, operations.iso(o.eta_at) AS eta_at, c.revision, o.change_seq
FROM operations.operations o JOIN operations.operation_control c USING (operation_id);
--> statement-breakpoint
CREATE VIEW operations.operation_node_run_summary AS
SELECT n.operation_id, n.node_id, n.ordinal, n.name, n.kind, n.executor, n.target_id, n.group_id, n.state, n.generation, n.attempt,
       coalesce(n.error, a.error) ->> 'class' AS error_class, coalesce(n.error, a.error) ->> 'message' AS error_message,
       coalesce(n.error, a.error) AS error,
       operations.iso(n.ready_at) AS ready_at, operations.iso(n.gated_at) AS gated_at,
       operations.iso(coalesce(n.started_at, a.started_at)) AS started_at, operations.iso(coalesce(n.ended_at, a.ended_at)) AS ended_at,
       (extract(epoch FROM coalesce(n.started_at, a.started_at) - coalesce(n.gated_at, n.ready_at)) * 1000)::bigint AS waited_ms,
       (extract(epoch FROM coalesce(n.ended_at, a.ended_at, clock_timestamp()) - coalesce(n.started_at, a.started_at)) * 1000)::bigint AS ran_ms,
       a.progress,
       (SELECT count(*)::int FROM operations.operation_artifact_index f WHERE f.operation_id = n.operation_id AND f.node_id = n.node_id) AS artifacts,
       coalesce(a.log_lines, 0) AS log_lines, n.exception, n.hold_patch_id IS NOT NULL AS held_by_patch
FROM operations.nodes n
LEFT JOIN LATERAL (
  SELECT t.error, t.started_at, t.ended_at, t.progress, t.log_lines FROM operations.node_attempts t
  WHERE t.operation_id = n.operation_id AND t.node_id = n.node_id AND t.generation = n.generation
  ORDER BY t.started_at DESC LIMIT 1) a ON true
WHERE NOT n.removed;
