import { number } from './plural.ts'

/** Texts for the audit logs and the health page. */
export const audit = {
  title: 'Audit',
  intro: 'Who did what and with which outcome, newest first. The log is append-only.',
  sources_label: 'Log',
  sources: { operations: 'Operations', catalog: 'Catalog', users: 'Users', 'sign-ins': 'Sign-ins' },
  columns: {
    at: 'When',
    who: 'Who',
    roles: 'Roles at the time',
    action: 'Action',
    object: 'Object',
    outcome: 'Outcome',
    reason: 'Reason',
    request: 'Request',
  },
  /** Any other action is said by its code: `gate_decided` is "Gate decided". */
  actions: {
    start: 'Operation started',
    login: 'Signed in',
    refresh: 'Session renewed',
    reauth: 'Sign-in confirmed',
    unlock: 'Account unlocked',
    forbidden: 'Sign-in refused',
    machine_token: 'Machine signed in',
    device_grant: 'Device signed in',
    provider_trial: 'Sign-in tested',
    revoke_user: 'Sessions ended',
    revoke_session: 'Session ended',
    single_control: 'Changed by one administrator alone',
    'request.denied': 'Request refused',
    'POST /v1/resources': 'Resource created',
    'PATCH /v1/resources/:resource_id': 'Resource changed',
    'POST /v1/resources:bulk': 'Resource changed in bulk',
    'POST /v1/resources:import': 'Resource imported',
    'POST /v1/imports': 'Resource imported by a job',
    'POST /internal/v1/resources/:resource_id/apply-operation-result': 'Result of an operation applied',
    'POST /internal/v1/resources/:resource_id/health-observations': 'Health reported',
    'POST /internal/v1/resources/:resource_id/provided-capabilities': 'Capabilities reported',
  } as Record<string, string>,
  outcomes: { done: 'Done', applied: 'Applied', noted: 'Noted', denied: 'Denied' } as Record<string, string>,
  caption: 'Entries in this log',
  empty: 'No entries yet.',
  no_match: 'No entries match.',
  clear: 'Clear filters',
  actor: 'Actor, such as olga or svc:worker',
  action: 'Action, such as Gate decided',
  object: 'Object, such as user:olga or resource:eu1-web-01',
  from: 'From day (UTC)',
  to: 'Before day (UTC)',
  cut: (rows: number, source: string) =>
    `Saved the newest ${number(rows)} rows. To export all, run: signalbox audit export --source ${source}`,
}

export const health = {
  title: 'Health',
  resources: 'Resources that are not healthy',
  all_well: 'Every resource is healthy or has not reported its health.',
  caption: 'Resources, worst first',
  see_all: 'See all',
  place: 'Place',
  since: 'Changed',
  parts: 'Platform processes',
  parts_note: 'The last report of each process.',
  parts_caption: 'Processes and their status',
  columns: {
    part: 'Process',
    instance: 'Instance',
    status: 'Status',
    since: 'Since',
    not_ready: 'Not ready',
    lags: 'Lag',
  },
  status: { ready: 'Ready', degraded: 'Degraded', unready: 'Not ready', silent: 'Silent' } as Record<string, string>,
  as_of: 'As of',
  /** Lags are named with their unit: `catalog_projection_s`. */
  lag: (name: string, value: number) => {
    const [, words = name, unit = ''] = /^(.*)_(s|ms)$/.exec(name) ?? []
    return `${words.replaceAll('_', ' ')} ${Number(value.toFixed(1))}${unit && ` ${unit}`}`
  },
}
