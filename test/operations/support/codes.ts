/** The closed list of refusals of the operations API (operations.md 5.1): every category with every code. */
export const CODES: Record<string, readonly string[]> = {
  not_found: [
    ...['intent', 'plan', 'operation', 'node', 'gate', 'patch', 'artifact', 'command', 'attempt', 'gone'],
    // Beyond the table: parts that stand in the path, and a path that leads nowhere.
    ...['resource', 'freeze', 'route'],
  ],
  invalid_state_transition: [
    ...['intent_closed', 'plan_not_ready', 'operation_terminal', 'already_paused', 'not_paused', 'already_cancelling'],
    ...['mode_not_allowed', 'force_needs_cancel_first', 'cooloff_not_elapsed', 'outcome_unknown_open', 'engine_lost'],
    ...['node_not_retryable', 'cone_in_flight', 'intervention_not_applicable', 'patch_closed'],
  ],
  plan_locked: ['already_started', 'resource_lease_held'],
  gate_not_waiting: ['not_reached', 'already_decided', 'already_consumed', 'expired', 'cancelled', 'round_superseded'],
  patch_not_applicable: ['base_revision_moved', 'node_already_dispatched', 'patch_overlap', 'unsound'],
  policy_denied: [
    ...['permission_missing', 'out_of_scope', 'self_approval', 'self_patch_approval', 'second_person', 'not_eligible'],
    ...['reauth_required', 'hard_policy', 'risk_ceiling', 'secret_not_allowed', 'force_not_allowed'],
    ...['break_glass_not_allowed', 'invalid_token'],
  ],
  stale_catalog_projection: ['resource_version_moved', 'drift_unacknowledged', 'projection_lag', 'projection_gap'],
  execution_result_rejected: [
    ...['stale_attempt', 'stale_fence', 'attempt_closed', 'result_conflict', 'not_dispatched', 'outputs_invalid'],
    ...['artifact_digest_mismatch', 'log_conflict'],
  ],
  validation_error: [
    ...['schema_violation', 'idempotency_key_required', 'page_token_mismatch', 'page_token_invalid', 'id_mismatch'],
    ...['idempotency_key_reused', 'target_not_found', 'no_targets', 'too_many_targets', 'too_large'],
    ...['unknown_procedure', 'unsupported_change', 'parameters_invalid', 'cycle', 'unknown_reference'],
    ...['unknown_executor', 'expression_error', 'reconciliation_required'],
    // Beyond the table: what only an internal listener refuses.
    'forbidden_header',
  ],
  version_conflict: ['in_progress', 'revision_moved', 'digest_moved', 'plan_hash_moved', 'generation_moved'],
  internal_error: ['unexpected', 'unavailable', 'overloaded'],
}

/** Every refusal that any test gets is one of the list. */
export const requireListed = (body: unknown): void => {
  const { category = '', code = '' } = (body ?? {}) as { category?: string; code?: string }
  if (!CODES[category]?.includes(code)) throw new Error(`${category}/${code} is no refusal of the closed list`)
}
