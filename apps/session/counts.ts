import type { Telemetry } from '../shared/telemetry.ts'

/** The counters that the specification names, and additional ones (auth.md 12). */
export const createCounts = (telemetry: Telemetry) => ({
  logins: telemetry.counter('user_login_total', 'Successful logins.'),
  login_failures: telemetry.counter('signalbox_user_login_failures_total', 'Refused logins.', ['cause']),
  refresh_attempts: telemetry.counter('token_refresh_attempts_total', 'Refresh requests that passed the schema.'),
  refreshed: telemetry.counter('token_refreshed_total', 'Rotations won.'),
  refresh_outcomes: telemetry.counter('signalbox_token_refresh_outcomes_total', 'Refresh requests by outcome.', [
    'outcome',
  ]),
  binding_changed: telemetry.counter(
    'signalbox_session_binding_changed_total',
    'Refreshes from a different browser or network than the login.',
    ['action'],
  ),
  csrf_errors: telemetry.counter('csrf_errors_total', 'Requests refused by the CSRF rule.'),
  rejected: telemetry.counter('signalbox_token_rejected_total', 'Tokens refused.', ['cause']),
  denied: telemetry.counter('signalbox_policy_denied_total', 'Requests refused by policy.', ['policy_id']),
  rate_limited: telemetry.counter('signalbox_rate_limited_total', 'Requests over a limit.', ['class']),
})
export type Counts = ReturnType<typeof createCounts>
