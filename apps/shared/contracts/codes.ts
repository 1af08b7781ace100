/**
 * Every refusal of the API: by category, then by code. `means` says what happened, `remedy` what the caller does next,
 * `status` the HTTP status, or each, where it is another than the category's. /docs/errors is rendered from this table; adding a
 * code is one line here, and `npm run check` asks for a source and a test of it.
 */
export type Entry = { means: string; remedy: string; status?: number | readonly number[] }

const WAIT = 'Repeat the same request with the same Idempotency-Key after the time in Retry-After.'
const READ = 'Read the object again and decide on its current version.'
const FIX = 'Correct the fields named in violations.'
const PASSWORD = 'Choose a password that meets every rule in violations.'

export const CODES = {
  validation_error: {
    // Any API
    schema_violation: {
      means: 'A field, parameter or header does not fit its description.',
      remedy: FIX,
      status: [400, 413, 415, 416, 422],
    },
    idempotency_key_required: {
      means: 'The header Idempotency-Key is missing.',
      remedy: 'Send a new random key with each new command.',
    },
    idempotency_key_reused: {
      means: 'The key belongs to another request.',
      remedy: 'Send a new key with the changed request.',
      status: 422,
    },
    page_token_invalid: { means: 'The page_token is invalid.', remedy: 'Start again at the first page.' },
    page_token_mismatch: {
      means: 'The page_token belongs to other filters.',
      remedy: 'Repeat the filters of the first page, or start again.',
    },
    id_mismatch: { means: 'Path and body name different objects.', remedy: 'Send the same id in both.' },
    target_not_found: {
      means: 'A named resource does not exist.',
      remedy: 'Check the ids in violations.',
      status: 422,
    },
    cycle: { means: 'The request would close a cycle.', remedy: 'Remove one of the dependencies named.', status: 422 },
    too_large: { means: 'The request holds more than one request may.', remedy: 'Split it.', status: [413, 422] },
    // The edge and the authentication API
    bad_path: { means: 'The request target cannot be read.', remedy: 'Send the path as the API reference spells it.' },
    uri_too_long: { means: 'Path or query is too long.', remedy: 'Send fewer or shorter parameters.', status: 414 },
    headers_too_large: { means: 'The headers are too large.', remedy: 'Send fewer or shorter headers.', status: 431 },
    duplicate_header: { means: 'A header that must be single is there twice.', remedy: 'Send it once.' },
    forbidden_header: { means: 'The request carries a header it may not.', remedy: 'Send the request without it.' },
    duplicate_cookie: { means: 'The refresh cookie is there twice.', remedy: 'Delete the cookies of this site.' },
    body_too_large: { means: 'The body is too large.', remedy: 'Send less in one request.', status: 413 },
    unsupported_media_type: {
      means: 'The content type is not accepted here.',
      remedy: 'Send application/json in UTF-8.',
      status: 415,
    },
    malformed_json: { means: 'The body is not valid JSON.', remedy: 'Send one JSON document in UTF-8.' },
    ambiguous_grant: { means: 'The request holds a password and a refresh token.', remedy: 'Send one of them.' },
    missing_grant: { means: 'The request holds no password and no refresh token.', remedy: 'Send one of them.' },
    unknown_response_mode: { means: 'There is no such response mode.', remedy: 'Use json or cookie.' },
    session_mode_mismatch: {
      means: 'The session was started in the other response mode.',
      remedy: 'Use the mode in which you signed in.',
    },
    retry_key_too_short: {
      means: 'The Idempotency-Key of a refresh is too short to be random.',
      remedy: 'Use at least 22 random characters.',
    },
    current_password_wrong: { means: 'The current password is wrong.', remedy: 'Enter it again.', status: 422 },
    enrolment_token_invalid: {
      means: 'The enrolment token is unknown, used or expired.',
      remedy: 'Ask an administrator for a new link.',
      status: 422,
    },
    scope_not_allowed: {
      means: 'The role holds everywhere and takes no scope.',
      remedy: 'Grant it without a scope.',
      status: 422,
    },
    machine_role_refused: {
      means: 'A machine cannot hold this role.',
      remedy: 'Grant it a role that decides and administers nothing.',
      status: 422,
    },
    not_for_machines: { means: 'A machine has no password.', remedy: 'Give it a credential.', status: 422 },
    machine_owner_invalid: { means: 'An owner is not an active person.', remedy: 'Name active people.', status: 422 },
    issuer_not_trusted: {
      means: 'This installation does not trust the issuer of CI tokens.',
      remedy: 'The deployer adds it to AUTH__MACHINES__ISSUERS.',
      status: 422,
    },
    unsupported_grant_type: { means: 'The grant is unknown.', remedy: 'Use one that the API reference names.' },
    invalid_scope: { means: 'The credential does not permit this scope.', remedy: 'Ask for less, or leave scope out.' },
    PasswordTooWeakError: { means: 'The password is too short or too easy to guess.', remedy: PASSWORD, status: 422 },
    PasswordMissingUppercaseError: { means: 'The password has no uppercase letter.', remedy: PASSWORD, status: 422 },
    PasswordMissingLowercaseError: { means: 'The password has no lowercase letter.', remedy: PASSWORD, status: 422 },
    PasswordMissingDigitError: { means: 'The password has no digit.', remedy: PASSWORD, status: 422 },
    PasswordMissingSpecialCharError: { means: 'The password has no special character.', remedy: PASSWORD, status: 422 },
    logout_token_invalid: {
      means: 'The logout token of the provider is refused.',
      remedy: 'Check client id, issuer and clock of the provider.',
    },
    logout_token_replayed: { means: 'The logout token was used before.', remedy: 'Send a new one.' },
    // The catalog
    malformed: { means: 'The request cannot be read.', remedy: 'Send one JSON document in UTF-8.' },
    media_type: {
      means: 'The content type is not accepted here.',
      remedy: 'Send the type that the hint names.',
      status: 415,
    },
    unknown_field: { means: 'A field or parameter is unknown.', remedy: 'Remove it, or correct its name.' },
    invalid_text: {
      means: 'A text cannot be stored.',
      remedy: 'Leave out NUL and halves of surrogate pairs.',
      status: 422,
    },
    filter_invalid: { means: 'The filter cannot be read.', remedy: 'Correct it at the offset in violations.' },
    query_too_expensive: {
      means: 'The query would read too much.',
      remedy: 'Narrow it as the hint says.',
      status: 422,
    },
    change_token_invalid: { means: 'The change_token is invalid.', remedy: 'Send one from a reply, unchanged.' },
    time_in_future: { means: 'The time is in the future.', remedy: 'Ask for a time in the past.' },
    observed_in_future: {
      means: 'The observation is more than 60 s ahead.',
      remedy: 'Correct the clock of the sender.',
    },
    root_required: { means: 'The graph needs a root.', remedy: 'Name root_id, or a filter.' },
    too_many_roots: { means: 'The filter selects too many roots.', remedy: 'Narrow the filter.', status: 422 },
    secret_reference_required: {
      means: 'A secret field holds a value.',
      remedy: 'Send a reference to the secret.',
      status: 422,
    },
    null_in_state: { means: 'A stored state cannot hold null.', remedy: 'Leave the member out.', status: 422 },
    unsafe_integer: { means: 'An integer is too large.', remedy: 'Send it as text.', status: 422 },
    too_deep: { means: 'The document is nested too deeply.', remedy: 'Flatten it.', status: 422 },
    read_only_field: { means: 'The field cannot be written.', remedy: 'Leave it out.', status: 422 },
    immutable_field: { means: 'The field is fixed for life.', remedy: 'Create another resource.', status: 422 },
    lifecycle_transition: {
      means: 'The lifecycle allows no such transition.',
      remedy: 'Choose one of allowed.',
      status: 422,
    },
    resource_terminal: {
      means: 'The lifecycle of the resource has ended.',
      remedy: 'Change only names, labels, annotations and owner.',
      status: 422,
    },
    cardinality: { means: 'There are too many or too few relationships.', remedy: FIX, status: 422 },
    target_type_not_allowed: {
      means: 'The relationship cannot lead to this type.',
      remedy: 'Read the rules of the relationship type.',
      status: 422,
    },
    blocked_by_dependents: {
      means: 'Other resources depend on this one.',
      remedy: 'Retire or move the blockers first.',
      status: 422,
    },
    cascade_too_large: { means: 'Too many resources would follow.', remedy: 'Retire them in parts.', status: 422 },
    subtree_too_large: { means: 'Too many resources would move.', remedy: 'Move them in parts.', status: 422 },
    too_many_relationships: {
      means: 'The resource has too many relationships of this type.',
      remedy: 'Put a group between them, such as a pool or a service.',
      status: 422,
    },
    command_id_reused: {
      means: 'The command_id belongs to another command.',
      remedy: 'Send a new id with a new command.',
      status: 422,
    },
    // Operations
    no_targets: { means: 'The intent selects no targets.', remedy: 'Correct targets or selectors.', status: 422 },
    too_many_targets: { means: 'The intent selects too many targets.', remedy: 'Split the intent.', status: 422 },
    unknown_procedure: {
      means: 'There is no such procedure.',
      remedy: 'List the procedures at /api/v1/procedures.',
      status: 422,
    },
    unsupported_change: {
      means: 'No procedure makes this change.',
      remedy: 'Request a change that a pack supports, or add a procedure.',
      status: 422,
    },
    parameters_invalid: { means: 'The parameters do not fit their schema.', remedy: FIX, status: 422 },
    unknown_reference: { means: 'The request names something unknown.', remedy: FIX, status: 422 },
    unknown_executor: { means: 'There is no such executor.', remedy: 'Name an executor of the hint.', status: 422 },
    expression_error: { means: 'An expression cannot be evaluated.', remedy: FIX, status: 422 },
    reconciliation_required: {
      means: 'The outcome of the last attempt is unknown.',
      remedy: 'Send what you found at the target as reconciliation.',
      status: 422,
    },
  },
  invalid_credentials: {
    invalid_credentials: { means: 'The username or password is wrong.', remedy: 'Check both and try again.' },
  },
  invalid_token: {
    token_missing: { means: 'The request needs an access token.', remedy: 'Sign in and send it as a bearer token.' },
    invalid_token: { means: 'The access token is refused.', remedy: 'Refresh it, or sign in again.' },
    invalid_client: {
      means: 'The credential of the machine is refused.',
      remedy: 'Its owners find the cause in the audit log.',
    },
    invalid_grant: { means: 'The refresh token is refused.', remedy: 'Sign in again.' },
    certificate_required: { means: 'The listener takes our own apps only.', remedy: 'Call with a client certificate.' },
    // Sign-in through a provider
    sign_in_expired: {
      means: 'This sign-in expired, was opened twice or began in another browser.',
      remedy: 'Start again.',
    },
    sign_in_cancelled: { means: 'The sign-in was canceled at the provider.', remedy: 'Start again.' },
    id_token_issuer: { means: 'The ID token is of another issuer.', remedy: 'Tell an administrator.' },
    id_token_audience: { means: 'The ID token is for another client.', remedy: 'Tell an administrator.' },
    id_token_nonce: { means: 'The ID token belongs to another sign-in.', remedy: 'Start again.' },
    id_token_time: { means: 'The ID token is expired or not valid yet.', remedy: 'Check both clocks; start again.' },
    id_token_invalid: { means: 'The answer of the provider is refused.', remedy: 'Tell an administrator.' },
  },
  policy_denied: {
    no_account: {
      means: 'You have no account here, and this provider makes none for you.',
      remedy: 'Ask an administrator.',
    },
    account_disabled: { means: 'The account is disabled.', remedy: 'Ask an administrator.' },
    email_unverified: {
      means: 'The provider has not verified your e-mail address.',
      remedy: 'Verify it at the provider, then start again.',
    },
    domain_not_allowed: {
      means: 'Your e-mail domain may not sign in here.',
      remedy: 'Use your address of an allowed domain.',
    },
    subject_changed: {
      means: 'The provider names another person than before.',
      remedy: 'Sign in as the same person, or ask an administrator.',
    },
    reauth_failed: { means: 'The provider did not ask for your credentials again.', remedy: 'Start again.' },
    permission_missing: { means: 'You lack a permission.', remedy: 'Ask an administrator for a role that has it.' },
    out_of_scope: { means: 'Your roles do not cover this object.', remedy: 'Ask for a role that covers it.' },
    reauth_required: {
      means: 'Your sign-in is too long ago.',
      remedy: 'Confirm your password and repeat the request.',
    },
    invalid_token: { means: 'The token is refused.', remedy: 'Send a valid token for this listener.', status: 401 },
    certificate_required: {
      means: 'The listener takes our own apps only.',
      remedy: 'Call with a client certificate.',
      status: 401,
    },
    csrf_failed: { means: 'The CSRF token is missing or wrong.', remedy: 'Send the X-CSRF-Token of your session.' },
    origin_not_allowed: { means: 'Requests from this origin are not allowed.', remedy: 'Use an allowed origin.' },
    machine_vote: { means: 'Machines do not decide.', remedy: 'Use a gate of the kind external_check.' },
    person_required: { means: 'Only a person can do this.', remedy: 'Sign in as a person.' },
    self_action: { means: 'You cannot do this to yourself.', remedy: 'Ask another administrator.' },
    self_grant: { means: 'You cannot give rights to yourself.', remedy: 'Ask another administrator.' },
    second_admin: {
      means: 'You requested this change, or it concerns you.',
      remedy: 'Another administrator must confirm it.',
    },
    not_your_change: { means: 'You have no part in this change.', remedy: 'Ask whoever requested it, or reject it.' },
    renewal_required: {
      means: 'An administrator saw the whole enrolment link of the account.',
      remedy: 'Request a new enrolment link.',
    },
    self_approval: { means: 'You requested this operation.', remedy: 'Another person must approve it.' },
    self_patch_approval: { means: 'You proposed this patch.', remedy: 'Another person must approve it.' },
    second_person_needed: {
      means: 'A second person has to see this first.',
      remedy: 'Do it by an intervention, to which another person agrees.',
    },
    second_person: { means: 'You have already approved this.', remedy: 'Another person must approve it.' },
    not_eligible: { means: 'You are in none of the groups that decide.', remedy: 'Ask one of the eligible people.' },
    tainted_right: {
      means: 'Someone who takes part in the operation gave you the right to decide.',
      remedy: 'Another person must decide.',
    },
    hard_policy: { means: 'A policy forbids this.', remedy: 'Read the policy named in the detail.' },
    risk_ceiling: {
      means: 'The plan is riskier than its intent allows.',
      remedy: 'Raise the ceiling, or change less.',
    },
    secret_not_allowed: {
      means: 'The executor pool may not read this secret.',
      remedy: 'Use another pool, or extend the executor policy.',
    },
    force_not_allowed: { means: 'You may not force this.', remedy: 'Ask for the permission, or do not force it.' },
    break_glass_not_allowed: { means: 'Break-glass is not allowed here.', remedy: 'Wait for the regular approvals.' },
  },
  rate_limited: {
    rate_limited: { means: 'A request limit is used up.', remedy: 'Wait for the time in Retry-After.' },
    login_locked: { means: 'Too many sign-ins failed.', remedy: 'Wait for the time in Retry-After.' },
    login_busy: { means: 'Sign-in is busy.', remedy: 'Wait for the time in Retry-After.' },
  },
  unavailable: {
    dependency_down: { means: 'A database or service does not answer.', remedy: WAIT },
    overloaded: { means: 'The service is overloaded.', remedy: WAIT },
    login_busy: { means: 'Sign-in is busy.', remedy: 'Wait for the time in Retry-After.' },
    provider_unavailable: {
      means: 'The identity provider cannot be reached.',
      remedy: 'Sign in with a password, or try again later.',
    },
    revocation_unknown: { means: 'Revocation status is unknown.', remedy: WAIT },
    upstream_failed: { means: 'A part of the service could not be reached.', remedy: WAIT, status: 502 },
    upstream_timeout: { means: 'A part of the service did not answer in time.', remedy: WAIT, status: 504 },
  },
  not_found: {
    not_found: { means: 'There is no such object or path.', remedy: 'Check the path and the id.' },
    method_not_allowed: { means: 'The path has no such method.', remedy: 'Use a method of Allow.', status: 405 },
    route: { means: 'There is no such path.', remedy: 'Check the path against the API reference.' },
    gone: { means: 'This data is past its retention period.', remedy: 'Use what you exported.', status: 410 },
    history_pruned: {
      means: 'That version is past its retention period.',
      remedy: 'Ask for a newer one.',
      status: 410,
    },
    resource: { means: 'No such resource, or you may not see it.', remedy: 'Check the id and your roles.' },
    type: { means: 'No such resource type.', remedy: 'List them at /api/v1/resource-types.' },
    capability: { means: 'No such capability.', remedy: 'List them at /api/v1/capabilities/definitions.' },
    version: { means: 'There is no such version.', remedy: 'List the versions.' },
    intent: { means: 'No such intent, or you may not see it.', remedy: 'Check the id and your roles.' },
    plan: { means: 'No such plan, or you may not see it.', remedy: 'Check the id and your roles.' },
    operation: { means: 'No such operation, or you may not see it.', remedy: 'Check the id and your roles.' },
    node: { means: 'The operation has no such node.', remedy: 'List its nodes.' },
    gate: { means: 'The operation has no such gate.', remedy: 'List its gates.' },
    patch: { means: 'The operation has no such patch.', remedy: 'List its patches.' },
    artifact: { means: 'The operation has no such artifact.', remedy: 'List its artifacts.' },
    command: { means: 'The operation has no such command.', remedy: 'Use the id of the reply.' },
    attempt: { means: 'The node has no such attempt.', remedy: 'Read the node.' },
    freeze: { means: 'There is no such freeze.', remedy: 'Read the calendar.' },
    import: { means: 'You have no such import.', remedy: 'Check the id; imports are shown to who started them.' },
    host: { means: 'The fleet has no such host.', remedy: 'Check the name.' },
  },
  version_conflict: {
    in_progress: { means: 'The same request, or one on the same object, is in flight.', remedy: WAIT },
    version_mismatch: { means: 'The object has another version.', remedy: READ, status: [409, 412] },
    revision_moved: { means: 'The operation has changed since you read it.', remedy: READ, status: 412 },
    digest_moved: { means: 'What you reviewed has changed.', remedy: READ, status: 412 },
    plan_hash_moved: { means: 'The plan is not the one you reviewed.', remedy: READ, status: 412 },
    generation_moved: { means: 'The node has run again since you read it.', remedy: READ, status: 412 },
    precondition_required: {
      means: 'The change needs the version it was decided on.',
      remedy: 'Send If-Match or expected_version.',
      status: 428,
    },
    already_exists: { means: 'The object exists already.', remedy: 'Choose another id, or change the object.' },
    test_failed: { means: 'A test of the JSON patch failed.', remedy: READ },
    type_changed: { means: 'The resource has another type.', remedy: 'Import it under another id.' },
    too_many_credentials: { means: 'The machine has as many credentials as it may.', remedy: 'Revoke one.' },
    last_admin: {
      means: 'No active administrator would be left.',
      remedy: 'Make someone else an administrator first.',
    },
    change_closed: { means: 'The change is no longer open.', remedy: 'Request it again if it is still needed.' },
    user_deleted: { means: 'The user is deleted for good.', remedy: 'Create a new user with another name.' },
    username_taken: { means: 'The username is taken.', remedy: 'Choose another name.' },
    group_exists: { means: 'The group exists already.', remedy: 'Choose another key.' },
    identity_linked: {
      means: 'This identity belongs to another account.',
      remedy: 'Sign in with it, or link another.',
    },
    provider_account: {
      means: 'The account signs in through a provider and has no password.',
      remedy: 'Sign in through the provider.',
    },
    grant_exists: { means: 'The grant exists already.', remedy: 'List the grants.' },
  },
  invalid_state_transition: {
    intent_closed: { means: 'The intent is closed.', remedy: 'Create a new intent.' },
    plan_not_ready: { means: 'The plan cannot be started.', remedy: 'Preview the intent again.' },
    operation_terminal: { means: 'The operation has ended.', remedy: 'Start a new one.' },
    already_paused: { means: 'The operation is paused already.', remedy: 'Resume it when it should continue.' },
    not_paused: { means: 'The operation is not paused.', remedy: 'Read its status.' },
    already_cancelling: { means: 'The operation was canceled first.', remedy: 'Read its status.' },
    mode_not_allowed: { means: 'This cancel mode is not possible now.', remedy: 'Choose another mode.' },
    force_needs_cancel_first: { means: 'Only a canceled operation can be forced.', remedy: 'Cancel it first.' },
    cooloff_not_elapsed: { means: 'It is too early to force it.', remedy: 'Wait until available_at.' },
    outcome_unknown_open: { means: 'The outcome of a node is unknown.', remedy: 'Settle that node first.' },
    engine_lost: { means: 'The engine has lost the operation.', remedy: 'Ask an engineer to close it.' },
    node_not_retryable: { means: 'The node cannot run again.', remedy: 'Read its state and allowed_actions.' },
    cone_in_flight: { means: 'A downstream node is already running.', remedy: 'Wait until it ends.' },
    intervention_not_applicable: {
      means: 'The intervention does not fit the current state.',
      remedy: 'Read allowed_actions.',
    },
    patch_closed: { means: 'The patch is decided already.', remedy: 'Propose a new patch.' },
  },
  plan_locked: {
    already_started: { means: 'This plan has already started.', remedy: 'Read its operation.' },
    resource_lease_held: { means: 'Another operation holds a target.', remedy: 'Queue the plan, or wait.' },
  },
  gate_not_waiting: {
    not_reached: { means: 'The operation has not reached the gate.', remedy: 'Wait until the gate is waiting.' },
    already_decided: { means: 'The gate is decided already.', remedy: 'Read the gate.' },
    already_consumed: { means: 'The decision has taken effect already.', remedy: 'Read the operation.' },
    expired: { means: 'The deadline of the gate has passed.', remedy: 'Read the operation.' },
    cancelled: { means: 'The operation is canceled.', remedy: 'Read the operation.' },
    round_superseded: { means: 'The gate has a new round.', remedy: 'Review the gate again.' },
  },
  patch_not_applicable: {
    base_revision_moved: { means: 'The graph has changed since the patch was made.', remedy: 'Propose the rebase.' },
    node_already_dispatched: { means: 'A node to change has begun.', remedy: 'Leave that node out.' },
    patch_overlap: { means: 'Another open patch holds a node to change.', remedy: 'Wait for its decision.' },
    unsound: { means: 'The resulting graph is not sound.', remedy: FIX, status: 422 },
  },
  stale_catalog_projection: {
    resource_version_moved: { means: 'A target has changed since the plan was made.', remedy: 'Preview again.' },
    drift_unacknowledged: { means: 'Targets have drifted.', remedy: 'Review the drift and acknowledge it.' },
    projection_lag: { means: 'The copy of the catalog is behind.', remedy: WAIT, status: 503 },
    projection_gap: { means: 'The copy of the catalog has a gap.', remedy: WAIT, status: 503 },
  },
  execution_result_rejected: {
    stale_attempt: { means: 'Another attempt has taken over.', remedy: 'Stop working on this one.' },
    stale_fence: { means: 'The lease belongs to someone else.', remedy: 'Stop working on this one.' },
    attempt_closed: { means: 'The attempt has ended.', remedy: 'Stop working on it.' },
    result_conflict: { means: 'Another result was reported first.', remedy: 'Stop working on it.' },
    not_dispatched: { means: 'The attempt was not handed over.', remedy: 'Wait for the hand-over.' },
    outputs_invalid: { means: 'The outputs do not fit their schema.', remedy: FIX, status: 422 },
    artifact_digest_mismatch: { means: 'The bytes have another digest.', remedy: 'Send the bytes again.', status: 422 },
    log_conflict: {
      means: 'The log lines differ from those stored.',
      remedy: 'Continue from the stored line.',
      status: 422,
    },
  },
  unsupported_resource_type: {
    unknown: { means: 'There is no such resource type.', remedy: 'List them at /api/v1/resource-types.' },
    abstract: { means: 'The type is only a base of others.', remedy: 'Use a type derived from it.' },
    deprecated_for_create: { means: 'The type takes no new resources.', remedy: 'Use its successor.' },
  },
  invalid_capability: {
    unknown: { means: 'There is no such capability or provider.', remedy: 'List the definitions and providers.' },
    version: { means: 'There is no such version of the capability.', remedy: 'List the definitions.' },
    attributes: { means: 'The attributes do not fit their schema.', remedy: FIX },
    not_allowed_for_type: { means: 'The type may not provide it.', remedy: 'Read the resource type.' },
    no_capacity: { means: 'The provider has no capacity left.', remedy: 'Choose a provider that is free.' },
  },
  stale_projection: {
    projection_lag: { means: 'The read model is behind.', remedy: WAIT },
    graph_warming: { means: 'The graph is loading.', remedy: WAIT },
  },
  internal_error: {
    unexpected: { means: 'The service failed.', remedy: 'Repeat the request; then report the request id.' },
    unavailable: { means: 'A database or service does not answer.', remedy: WAIT, status: 503 },
    overloaded: { means: 'The service is overloaded.', remedy: WAIT, status: 503 },
    restored: {
      means: 'The database was restored, and nobody has accepted it yet.',
      remedy: 'Whoever runs this installation accepts it: npm run ops -- accept-restore.',
      status: 503,
    },
  },
} as const satisfies Record<string, Record<string, Entry>>

/** What kind of refusal it is: the closed set of categories. */
export type Category = keyof typeof CODES
/** Which refusal it is exactly: the codes of a category, or of any. */
export type CodeOf<C extends Category> = C extends Category ? keyof (typeof CODES)[C] & string : never
export type Code = CodeOf<Category>
