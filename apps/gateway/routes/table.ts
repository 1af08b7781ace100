import type { RoutePermission } from '../../shared/auth/http.ts'
import type { Priority } from '../../shared/process/priority.ts'

/** Where a request goes. The gateway answers `gateway` itself. */
export type Upstream = 'session' | 'identity' | 'token' | 'catalog' | 'operations' | 'gateway'
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
/** R read, W write, A arming, S stopping: decides what is still served while a dependency is away (auth.md 6). */
export type Kind = 'R' | 'W' | 'A' | 'S'
/**
 * Which limits a request is charged to. `token` is login or refresh, depending on the body; `page`: a page reads it
 * before a sign-in or a refresh; `none` is not charged.
 * `work` is for agents: they wait for work, and for as long as an artifact takes, so they hold nobody's seat.
 */
export type LimitClass =
  | 'api'
  | 'stream'
  | 'token'
  | 'login'
  | 'page'
  | 'sso'
  | 'jwks'
  | 'enrol'
  | 'machine'
  | 'logout'
  | 'device'
  | 'work'
  | 'none'

/** One endpoint of the public API. The service checks `permission`; the gateway only tells `none` from the rest. */
export type Route = {
  method: Method
  path: string
  upstream: Upstream
  kind: Kind
  class: LimitClass
  /** Which requests go first when not all can (platform.md 7.1). */
  priority: Priority
  permission: RoutePermission | readonly RoutePermission[]
  /** Whether the upstream may redirect the browser: to an identity provider, and back to the console. */
  redirects: boolean
  /** Whether a session that may only set up a second factor may use this endpoint. */
  enrols: boolean
}

type Row = [methods: string, path: string, kind: Kind, permission: Route['permission'], limit?: LimitClass]

const table = (upstream: Upstream, prefix: string, rows: Row[]): Route[] =>
  rows.map(([method, path, kind, permission, limit = 'api']) => ({
    method: method as Method,
    path: `${prefix}${path}`,
    upstream,
    kind,
    class: limit,
    priority: priorityOfRow(`${method} ${prefix}${path}`, kind, limit),
    permission,
    redirects: REDIRECTS.has(path),
    enrols: ENROLS.has(`${method} ${prefix}${path}`),
  }))

const REDIRECTS = new Set(['/v1/sso/{provider}/start', '/v1/sso/{provider}/callback'])
const ENROLS = new Set([
  'POST /v1/token/reauth',
  'GET /api/v1/users/me/passkeys',
  'POST /api/v1/users/me/passkeys',
  'GET /api/v1/users/me/totp',
  'POST /api/v1/users/me/totp/setup',
  'PUT /api/v1/users/me/totp',
  'POST /auth/logout',
])
const OPEN = new Set<LimitClass>(['token', 'login', 'page', 'sso', 'device'])
/** Requests of people who are signing in, and those that a person needs before anything else. */
const ENTER = new Set(['GET /api/v1/me', 'GET /api/v1/users/me', 'POST /v1/token/reauth', 'POST /api/v1/users/enrol'])
/** Reads of a person who is about to decide. */
const DECIDE = new Set([
  'GET /api/v1/gates',
  'GET /api/v1/waiting',
  'GET /api/v1/operations/{operation_id}',
  'GET /api/v1/operations/{operation_id}/gates/{gate_id}',
  'GET /api/v1/operations/{operation_id}/patches/{patch_id}',
])
/** Requests that are large by nature. */
const BATCH = new Set([
  'POST /api/v1/resources:import',
  'POST /api/v1/resources:bulk',
  'POST /api/v1/imports',
  'GET /api/v1/operations/{operation_id}/evidence',
])

const priorityOfRow = (name: string, kind: Kind, limit: LimitClass): Priority => {
  if (limit === 'none' || limit === 'jwks' || limit === 'work') return 'exempt'
  if (OPEN.has(limit) || ENTER.has(name)) return 'enter'
  if (BATCH.has(name)) return 'batch'
  if (DECIDE.has(name)) return 'decide'
  return { S: 'stop', A: 'decide', W: 'write', R: 'read' }[kind] as Priority
}

const USER = '/api/v1/admin/users/{user_id}'
const OP = '/api/v1/operations/{operation_id}'
const NOTIFY = '/api/v1/notifications'
const DESTINATIONS = `${NOTIFY}/destinations`

const session = table('session', '', [
  ['POST', '/v1/token', 'R', 'none', 'token'],
  ['POST', '/auth/login', 'R', 'none', 'login'],
  ['POST', '/auth/refresh', 'R', 'none', 'token'],
  ['POST', '/auth/logout', 'S', 'bearer'],
  ['POST', '/oauth/token', 'W', 'none', 'machine'],
  ['GET', '/v1/token/csrf', 'R', 'none', 'page'],
  ['POST', '/v1/token/reauth', 'W', 'self'],
  ['POST', '/v1/token/passkey-options', 'R', 'none', 'page'],
  ['POST', '/v1/device', 'R', 'none', 'device'],
  ...['find', 'approve', 'deny'].map((act): Row => ['POST', `/v1/device/${act}`, 'W', 'self']),
  ['GET', '/v1/providers', 'R', 'none', 'page'],
  ['GET', '/v1/sso/{provider}/start', 'R', 'none', 'sso'],
  ['POST', '/v1/sso/{provider}/start', 'W', 'self'],
  ['GET', '/v1/sso/{provider}/callback', 'R', 'none', 'sso'],
  ['POST', '/v1/sso/{provider}/backchannel-logout', 'S', 'none', 'logout'],
  ['GET', '/api/v1/sessions', 'R', 'self'],
  ['POST', '/api/v1/sessions/revoke-others', 'S', 'self'],
  ['DELETE', '/api/v1/sessions/{session_id}', 'S', 'self'],
  ['POST', '/api/v1/sessions/sign-out', 'S', 'none', 'logout'],
  ['POST', '/api/v1/users/me/password', 'W', 'self'],
  ['GET', '/api/v1/users/me/passkeys', 'R', 'self'],
  ['POST', '/api/v1/users/me/passkeys', 'W', 'self'],
  ['DELETE', '/api/v1/users/me/passkeys/{passkey_id}', 'W', 'self'],
  ['GET', '/api/v1/users/me/totp', 'R', 'self'],
  ['POST', '/api/v1/users/me/totp/setup', 'R', 'self'],
  ['PUT', '/api/v1/users/me/totp', 'W', 'self'],
  ['DELETE', '/api/v1/users/me/totp', 'W', 'self'],
  ['GET', '/api/v1/users/me/identities', 'R', 'self'],
  ['DELETE', '/api/v1/users/me/identities/{provider}', 'W', 'self'],
  ['GET', `${USER}/identities`, 'R', 'identity:read'],
  ['DELETE', `${USER}/identities/{provider}`, 'S', 'identity:admin'],
  ['POST', `${USER}/unlock`, 'A', 'session:admin'],
  ['GET', `${USER}/sessions`, 'R', 'session:admin'],
  ['DELETE', `${USER}/sessions`, 'S', 'session:admin'],
  ['DELETE', `${USER}/sessions/{session_id}`, 'S', 'session:admin'],
  ['GET', '/api/v1/users/me/machines/{machine_id}/refusals', 'R', 'self'],
  ['GET', '/api/v1/admin/machines/{machine_id}/refusals', 'R', 'audit:read'],
  ['GET', '/api/v1/admin/auth-events', 'R', 'audit:read'],
  ['GET', '/api/v1/admin/provider-trials/{trial}', 'R', 'identity:admin'],
])

const identity = table('identity', '/api/v1', [
  ['GET', '/users/me', 'R', 'self'],
  ['GET', '/users/me/preferences', 'R', 'self'],
  ['PUT', '/users/me/preferences', 'W', 'self'],
  ['GET', '/users/me/machines', 'R', 'self'],
  ['GET', '/users/me/views', 'R', 'self'],
  ['POST', '/users/me/views', 'W', 'self'],
  ['PATCH', '/users/me/views/{view_id}', 'W', 'self'],
  ['DELETE', '/users/me/views/{view_id}', 'W', 'self'],
  ['POST', '/users/enrol', 'W', 'none', 'enrol'],
  ['GET', '/admin/users', 'R', 'identity:read'],
  ['POST', '/admin/users', 'A', 'identity:admin'],
  ['GET', '/admin/users/{user_id}', 'R', 'identity:read'],
  ['POST', '/admin/users/{user_id}/disable', 'S', 'identity:admin'],
  ['POST', '/admin/users/{user_id}/delete', 'S', 'identity:admin'],
  ['POST', '/admin/users/{user_id}/enable', 'A', 'identity:admin'],
  ['POST', '/admin/users/{user_id}/enrolment-token', 'A', 'identity:admin'],
  ['POST', '/admin/users/{user_id}/recovery', 'A', 'identity:admin'],
  ['GET', '/admin/groups', 'R', 'identity:read'],
  ['POST', '/admin/groups', 'A', 'identity:admin'],
  ['PATCH', '/admin/groups/{group_key}', 'A', 'identity:admin'],
  ['DELETE', '/admin/groups/{group_key}', 'S', 'identity:admin'],
  ['PUT', '/admin/groups/{group_key}/members/{user_id}', 'A', 'identity:admin'],
  ['DELETE', '/admin/groups/{group_key}/members/{user_id}', 'S', 'identity:admin'],
  ['GET', '/admin/grants', 'R', 'identity:read'],
  ['POST', '/admin/grants', 'A', 'identity:admin'],
  ['DELETE', '/admin/grants/{grant_id}', 'S', 'identity:admin'],
  ['GET', '/admin/roles', 'R', 'identity:read'],
  ['GET', '/admin/providers', 'R', 'identity:read'],
  ['GET', '/admin/unlinked-users', 'R', 'identity:read'],
  ['GET', '/admin/changes', 'R', 'identity:read'],
  ['POST', '/admin/changes/{change_id}/confirm', 'A', 'identity:admin'],
  ['POST', '/admin/changes/{change_id}/half', 'A', 'identity:admin'],
  ['POST', '/admin/changes/{change_id}/reject', 'S', 'identity:admin'],
  ['POST', '/admin/changes/{change_id}/withdraw', 'S', 'identity:admin'],
  ['GET', '/admin/machines', 'R', 'identity:read'],
  ['POST', '/admin/machines', 'A', 'identity:admin'],
  ['PUT', '/admin/machines/{machine_id}/owners/{user_id}', 'A', 'identity:admin'],
  ['POST', '/admin/machines/{machine_id}/credentials', 'A', 'identity:admin'],
  ['POST', '/admin/machines/{machine_id}/credentials/{credential_id}/rotate', 'A', 'identity:admin'],
  ['DELETE', '/admin/machines/{machine_id}/credentials/{credential_id}', 'S', 'identity:admin'],
  ['GET', '/admin/user-events', 'R', 'audit:read'],
  ['GET', '/admin/passkeys', 'R', 'audit:read'],
])

const token = table('token', '', [['GET', '/.well-known/jwks.json', 'R', 'none', 'jwks']])

const gateway = table('gateway', '', [
  ['GET', '/health/live', 'R', 'none', 'none'],
  ['GET', '/health/ready', 'R', 'none', 'none'],
  ['GET', '/api/v1/platform/health', 'R', 'platform:read'],
])

const reads = (permission: RoutePermission, paths: string[]): Row[] =>
  paths.map((path) => ['GET', path, 'R', permission])

const catalog = table('catalog', '/api/v1', [
  ...reads('catalog:read', [
    '/resources',
    '/resources/{resource_id}',
    '/resources/{resource_id}/relationships',
    '/resources/{resource_id}/capabilities',
    '/resources/{resource_id}/health',
    '/resources/{resource_id}/difference',
    '/resources/{resource_id}/impact',
    '/resources/{resource_id}/operations-summary',
    '/resources/{resource_id}/versions',
    '/search',
    '/resource-types',
    '/resource-types/{type_key}',
    '/topology/regions',
    '/topology/datacenters',
    '/topology/layers',
    '/topology/segments',
    '/topology/graph',
    '/graphs/resources',
    '/graphs/topology',
    '/graphs/capabilities',
    '/capabilities/definitions',
    '/capabilities/definitions/{capability_key}',
    '/capabilities/providers',
    '/capabilities/graph',
  ]),
  ['POST', '/resources', 'W', ['catalog:write', 'catalog:record']],
  ['PATCH', '/resources/{resource_id}', 'W', ['catalog:write', 'catalog:record']],
  ['POST', '/resources:bulk', 'W', ['catalog:write', 'catalog:record']],
  ['POST', '/resources:import', 'W', 'catalog:record'],
  ['POST', '/imports', 'W', 'catalog:record'],
  ...reads('catalog:record', ['/imports/{job_id}', '/imports/{job_id}/results']),
  ['POST', '/imports/{job_id}/cancel', 'W', 'catalog:record'],
  ['GET', '/audit/catalog', 'R', 'audit:read'],
])

const operations = table('operations', '', [
  ...reads('operation:read', [
    '/api/v1/intents',
    '/api/v1/intents/{intent_id}',
    '/api/v1/plans/{plan_id}',
    '/api/v1/plans/{plan_id}/graph',
    '/api/v1/procedures',
    '/api/v1/packs',
    '/api/v1/agents',
    '/api/v1/calendar',
    '/api/v1/evidence/keys',
    '/api/v1/schedules',
    '/api/v1/schedules/{schedule_id}',
    '/api/v1/gates',
  ]),
  ['GET', '/api/v1/gates/losing', 'R', 'identity:admin'],
  ...reads('operation:read', [
    '/api/v1/waiting',
    '/api/v1/overview',
    '/api/v1/operations',
    OP,
    `${OP}/graph`,
    `${OP}/rollback`,
    `${OP}/timeline`,
    `${OP}/nodes`,
    `${OP}/nodes/{node_id}`,
    `${OP}/artifacts`,
    `${OP}/artifacts/{artifact_id}/content`,
    `${OP}/evidence`,
    `${OP}/gates`,
    `${OP}/gates/{gate_id}`,
    `${OP}/patches`,
    `${OP}/patches/{patch_id}`,
    `${OP}/commands/{command_id}`,
    '/api/v1/resources/{resource_id}/operations',
  ]),
  ['POST', '/api/v1/intents', 'W', 'intent:create'],
  ['POST', '/api/v1/intents/{intent_id}/plan-preview', 'W', 'intent:create'],
  ['POST', '/api/v1/plans/{plan_id}/start', 'A', 'plan:start'],
  ['POST', '/api/v1/freezes', 'S', 'operation:control'],
  ['POST', '/api/v1/freezes/{freeze_id}/end', 'A', 'gate:decide'],
  ['POST', '/api/v1/schedules', 'W', 'intent:create'],
  ...['resume', 'run'].map((act): Row => ['POST', `/api/v1/schedules/{schedule_id}/${act}`, 'W', 'intent:create']),
  ...['pause', 'end'].map(
    (act): Row => ['POST', `/api/v1/schedules/{schedule_id}/${act}`, 'S', ['intent:create', 'operation:control']],
  ),
  ['POST', '/api/v1/schedules/{schedule_id}/secret', 'W', 'intent:create'],
  ['POST', '/api/v1/hooks/{schedule_id}', 'W', 'none', 'machine'],
  ['GET', `${OP}/nodes/{node_id}/logs`, 'R', 'log:read'],
  ['GET', `${OP}/nodes/{node_id}/logs/raw`, 'R', 'log:read'],
  ['GET', '/api/v1/events', 'R', 'operation:read', 'stream'],
  ['GET', '/api/v1/audit', 'R', 'audit:read'],
  ['POST', '/api/v1/pools/{pool}/work', 'W', 'operation:read', 'work'],
  ['POST', '/api/v1/execution-results', 'S', 'none', 'work'],
  ['PUT', '/api/v1/artifacts/{sha256}', 'S', 'none', 'work'],
  ['GET', '/api/v1/artifacts/{sha256}', 'S', 'none', 'work'],
  ['POST', '/api/v1/engine/codec/decode', 'R', 'engine:inspect'],
  ['GET', '/api/v1/me', 'R', 'self'],
  ...reads('self', [
    `${NOTIFY}/rules`,
    `${NOTIFY}/deliveries`,
    DESTINATIONS,
    `${DESTINATIONS}/{destination_id}/secret`,
    `${NOTIFY}/push`,
  ]),
  ['PUT', `${NOTIFY}/rules`, 'W', 'self'],
  ['DELETE', `${NOTIFY}/rules`, 'W', 'self'],
  ['PUT', `${NOTIFY}/push`, 'W', 'self'],
  ['DELETE', `${NOTIFY}/push`, 'W', 'self'],
  ['POST', DESTINATIONS, 'W', 'self'],
  ['DELETE', `${DESTINATIONS}/{destination_id}`, 'W', 'self'],
  ['POST', `${DESTINATIONS}/{destination_id}/confirm`, 'W', 'self'],
  ['POST', `${DESTINATIONS}/{destination_id}/secret`, 'W', 'self'],
  ['POST', `${DESTINATIONS}/{destination_id}/test`, 'W', 'self'],
  ['POST', `${NOTIFY}/deliveries/{delivery_id}/redeliver`, 'W', 'self'],
  ['POST', `${OP}/pause`, 'S', 'operation:control'],
  ['POST', `${OP}/cancel`, 'S', 'operation:control'],
  ['POST', `${OP}/resume`, 'A', 'operation:control'],
  ['POST', `${OP}/nodes/{node_id}/retry`, 'A', 'operation:control'],
  ['POST', `${OP}/interventions`, 'A', ['operation:intervene', 'gate:decide']],
  ['POST', `${OP}/signals`, 'A', 'signal:send'],
  ['POST', `${OP}/gates/{gate_id}/approve`, 'A', 'gate:decide'],
  ['POST', `${OP}/gates/{gate_id}/reject`, 'S', 'gate:decide'],
  ['POST', `${OP}/patches`, 'W', 'patch:propose'],
  ['POST', `${OP}/ballots`, 'W', ['gate:decide', 'patch:decide']],
  ['POST', `${OP}/patches/{patch_id}/approve`, 'A', 'patch:decide'],
  ['POST', `${OP}/patches/{patch_id}/reject`, 'S', ['patch:decide', 'patch:propose']],
])

/** For directories, with a machine's key that identity checks. SCIM describes itself, so these are in no document. */
export const SCIM_ROUTES: readonly Route[] = table('identity', '/scim/v2', [
  ...['/ServiceProviderConfig', '/ResourceTypes', '/ResourceTypes/{id}', '/Schemas', '/Schemas/{id}', '/{unknown}'].map(
    (path): Row => ['GET', path, 'R', 'none', 'machine'],
  ),
  ['POST', '/.search', 'R', 'none', 'machine'],
  ...['/Users', '/Groups'].flatMap((path): Row[] => [
    ['GET', path, 'R', 'none', 'machine'],
    ['POST', path, 'W', 'none', 'machine'],
    ['GET', `${path}/{id}`, 'R', 'none', 'machine'],
    ...['PUT', 'PATCH'].map((method): Row => [method, `${path}/{id}`, 'W', 'none', 'machine']),
    ['DELETE', `${path}/{id}`, 'S', 'none', 'machine'],
  ]),
])

/** Every endpoint of the public API, one row each. One without a row does not exist for outside callers (auth.md 6). */
export const ROUTES: readonly Route[] = [...session, ...identity, ...token, ...gateway, ...catalog, ...operations]
