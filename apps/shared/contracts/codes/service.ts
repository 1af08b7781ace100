import { type Codes, WAIT } from './entry.ts'

/** The service is at its limit, away, behind or at fault; the same request may succeed later. */
export const SERVICE = {
  rate_limited: {
    rate_limited: ['A request limit is exhausted.', 'Wait for the time in Retry-After.'],
    login_locked: ['Too many sign-ins failed.', 'Wait for the time in Retry-After.'],
    totp_locked: ['Too many codes were wrong.', 'Use a passkey, or wait for the time in Retry-After.'],
    login_busy: ['Sign-in is busy.', 'Wait for the time in Retry-After.'],
  },
  unavailable: {
    dependency_down: ['A database or service does not answer.', WAIT],
    overloaded: ['The service is overloaded.', WAIT],
    login_busy: ['Sign-in is busy.', 'Wait for the time in Retry-After.'],
    provider_unavailable: ['The identity provider cannot be reached.', 'Try again later, or sign in another way.'],
    provider_refuses_client: [
      'The identity provider does not accept this installation.',
      'Tell the operator: its client secret there may have expired.',
    ],
    revocation_unknown: ['Revocation status is unknown.', WAIT],
    upstream_failed: ['A part of the service could not be reached.', WAIT, 502],
    upstream_timeout: ['A part of the service did not answer in time.', WAIT, 504],
  },
  stale_projection: {
    projection_lag: ['The read model is behind.', WAIT],
    graph_warming: ['The graph is loading.', WAIT],
  },
  internal_error: {
    unexpected: ['The service failed.', 'Repeat the request; if it fails again, report the request id.'],
    unavailable: ['A database or service does not answer.', WAIT, 503],
    overloaded: ['The service is overloaded.', WAIT, 503],
    restored: [
      'The database was restored, and no one has accepted the restore yet.',
      'The operator of this installation accepts it: npm run ops -- accept-restore.',
      503,
    ],
  },
} as const satisfies Codes
