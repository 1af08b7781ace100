import { createHash, randomUUID } from 'node:crypto'
import { makeKey } from '../../apps/identity/machines/key-format.ts'
import { EXAMPLE_RESULT } from '../../apps/shared/contracts/catalog/commands.ts'
import type { Projections } from '../../apps/shared/contracts/catalog/projections.ts'
import { uuidv7 } from '../../apps/shared/ids.ts'
import { createBrowser } from '../session/support/sso.ts'
import { signOutTokenFor } from '../support/sign-out.ts'
import { until } from '../support/until.ts'
import type { Call } from './requests.ts'
import { type Corp, GRAPH, startOperation, type World } from './world.ts'

/** An example's needs besides the shared ids: its own objects, which it may use up. */
export type Prepared = {
  ids?: Record<string, string>
  body?: Record<string, unknown>
  headers?: Record<string, string>
  query?: Call['query']
}
type Prepare = (world: World, token: string, corp: Corp) => Promise<Prepared>

const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { session_id: string; sub: string }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

let users = 0
/** A user who has not enrolled, with the token to do so. */
const newcomer = async ({ ada }: World) => {
  users += 1
  const made = await ada.post<{ user: { id: string }; enrolment: { token: string } }>('/v1/admin/users', {
    username: `newcomer-${users}`,
    grants: [],
  })
  return { user_id: made.body.user.id, token: made.body.enrolment.token }
}
const forNewcomer: Prepare = async (world) => ({ ids: { user_id: (await newcomer(world)).user_id } })

/** A device that waits to be signed in. */
const forDevice: Prepare = async ({ call }, token) => {
  const { body } = await call(token, 'POST', '/v1/device', { client_id: 'signalbox-cli', host: 'ci-7' })
  return { body: { user_code: body.user_code } }
}

let jobs = 0
/** An import that its own account has started. */
const forJob: Prepare = async ({ call }, token) => {
  jobs += 1
  const item = { external_id: 'site/1', type_key: 'infra.generic', name: `job-${jobs}` }
  const items = [{ ...item, desired_state: { provider: 'test', kind: 'thing' } }]
  const { body } = await call(token, 'POST', '/api/v1/imports', {
    source: { kind: 'test', name: `job-${jobs}` },
    items,
  })
  return { ids: { job_id: body.job_id } }
}

/** A reset that waits, or was confirmed; the account that runs the examples requests it unless another one is named. */
const forChange = async (
  world: World,
  { requested_by, status = 'pending' }: { requested_by?: string; status?: string },
) => {
  const { user_id } = await newcomer(world)
  const change_id = uuidv7()
  await world.rows(
    `insert into identity.changes (id, kind, request, status, subject, digest, requested_by, expires_at, user_id)
     select $1, 'user.reset', jsonb_build_object('user_id', $2::text), $3, jsonb_build_object('type', 'user', 'id', $2::text,
       'name', 'newcomer', 'status', 'ACTIVE', 'version', 1, 'roles', '[]'::jsonb, 'groups', '[]'::jsonb, 'members', '[]'::jsonb, 'gives', '[]'::jsonb), 'x', 'user:' || id, now() + interval '1 h',
       case $3 when 'confirmed' then $2::uuid end
     from identity.users where username = $4`,
    [change_id, user_id, status, requested_by ?? 'zoe'],
  )
  if (status === 'confirmed') {
    await world.rows('update identity.users set reset_link = $1 where id = $2', [change_id, user_id])
    return { ids: { change_id } }
  }
  const list = await world.ada.get<{ items: { id: string; digest: string }[] }>('/v1/admin/changes')
  return { ids: { change_id }, body: { digest: list.items.find(({ id }) => id === change_id)?.digest } }
}

let machines = 0
/** A machine that the account of the examples owns. */
const machine = async ({ ada }: World, token: string): Promise<string> => {
  machines += 1
  const wanted = { name: `example-${machines}`, owners: [claimsOf(token).sub] }
  return (await ada.post<{ id: string }>('/v1/admin/machines', wanted)).body.id
}
const forMachine: Prepare = async (world, token) => ({ ids: { machine_id: await machine(world, token) } })
/** A machine with a key that two administrators gave it. */
const withKey = async (world: World, token: string, permissions = ['operation:read']) => {
  const machine_id = await machine(world, token)
  const credential_id = uuidv7()
  const { key, secret_hash } = makeKey(credential_id)
  await world.rows(
    `insert into identity.machine_credentials
       (id, machine_id, kind, name, secret_hash, permissions, created_by, confirmed_by, expires_at)
     values ($1, $2, 'key', 'deploy', $3, $4, 'user:ada', 'user:olga', now() + interval '90 d')`,
    [credential_id, machine_id, secret_hash, permissions],
  )
  return { ids: { machine_id, credential_id }, key }
}
const forKey: Prepare = async (world, token) => ({ ids: (await withKey(world, token)).ids })

/** Two operations of one user never wait for each other here, so each example has its own, at its gate. */
const atGate = async (world: World, token: string, graph: object = GRAPH) => {
  const started = await startOperation(world, token, graph)
  const path = `/api/v1/operations/${started.operation_id}`
  const gate = await until(
    async () => {
      const { body } = await world.call(token, 'GET', `${path}/gates/go`)
      return body?.status === 'waiting' ? (body as { digest: string; round: number }) : undefined
    },
    { what: 'the gate of an operation', every_ms: 100 },
  )
  return { ids: { ...started, node_id: 'behind' } as Record<string, string>, gate, path }
}
/** A control plane at the gate that waits for its check. */
const forSignal: Prepare = async (world, token) => {
  const { ids: made, key } = await withKey(world, token, ['operation:read', 'signal:send'])
  const grant = { subject_type: 'user', subject_id: made.machine_id, role: 'controller' }
  await world.ada.post('/v1/admin/grants', grant)
  const policy = { check: { service: `machine:example-${machines}`, timeout_s: 600 } }
  const { ids, gate } = await atGate(world, token, { ...GRAPH, gates: [{ gate_id: 'go', policy, guards: ['behind'] }] })
  const asked = { grant_type: 'client_credentials', client_secret: key }
  const { body } = await world.call('', 'POST', '/oauth/token', asked)
  const check = { gate_id: 'go', round: gate.round, verdict: 'passed' }
  return { ids, body: { body: check }, headers: bearer(body.access_token) }
}
/** An ended operation that set a value of a target. */
const forRollback: Prepare = async (world, token) => {
  const patch = { desired_state_patch: { release: '9.9.9' } }
  const node = { node_id: 'set', executor: 'noop', with: {}, target_id: 'eu1-web-04', catalog: patch }
  const ids = await startOperation(world, token, { nodes: [node] })
  await until(
    async () => (await world.call(token, 'GET', `/api/v1/operations/${ids.operation_id}`)).body?.status === 'succeeded',
    { what: 'the end of an operation', every_ms: 100 },
  )
  // Only the plan of a change states values before.
  const fields = [{ path: '/release', before: '1.0.0', after: '9.9.9' }]
  await world.rows(
    `update operations.plans set report = report || jsonb_build_object('diff', $2::jsonb) where operation_id = $1`,
    [ids.operation_id, JSON.stringify([{ resource_id: 'eu1-web-04', name: 'eu1-web-04', change: 'update', fields }])],
  )
  return { ids: { ...ids } as Record<string, string>, query: [['anyway', 'true']] }
}
/** A patch that another person has proposed. */
const forPatch: Prepare = async (world, token) => {
  const { ids, path } = await atGate(world, token)
  const body = { base_revision: 1, changes: [{ op: 'set_limits', max_parallel: 2 }], reason: 'an example' }
  const { access_token } = await world.login('pru')
  const proposed = await world.call(access_token, 'POST', `${path}/patches`, body)
  return { ids: { ...ids, patch_id: proposed.body.patch_id }, body: { reviewed_digest: proposed.body.digest } }
}
const scheduledBy =
  (when: object): Prepare =>
  async ({ call }, token) => {
    const graph = { nodes: [{ node_id: 'only', executor: 'noop', with: {} }] }
    const intent = { kind: 'graph', title: 'an example', reason: 'to see', graph }
    const { body } = await call(token, 'POST', '/api/v1/schedules', { when, intent })
    return { ids: { schedule_id: body.schedule_id } }
  }
const forSchedule = scheduledBy({ every_s: 86_400 })
const schedules = {
  'GET /v1/schedules/{schedule_id}': forSchedule,
  ...Object.fromEntries(
    ['pause', 'resume', 'run', 'end'].map((act) => [`POST /v1/schedules/{schedule_id}/${act}`, forSchedule]),
  ),
  'POST /v1/schedules/{schedule_id}/secret': scheduledBy({ webhook: { signature: 'standard' } }),
}
const FREEZE = {
  ...{ title: 'an example', applies: 'false', from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' },
}
let freezes = 0
/** Takes the caller into a new group, which a freeze can name. */
const joinFreezers = async ({ ada, call }: Pick<Parameters<Prepare>[0], 'ada' | 'call'>, token: string) => {
  freezes += 1
  const group_key = `freezers-${freezes}`
  await ada.post('/v1/admin/groups', { group_key, name: 'Freezers' })
  await ada.put(`/v1/admin/groups/${group_key}/members/${claimsOf(token).sub}`, undefined)
  const isMember = async () => (await call(token, 'GET', '/api/v1/me')).body.groups.includes(group_key)
  await until(isMember, { what: 'the membership' })
  return group_key
}
/** A freeze that another person made, for a group that the caller is in. */
const forFreeze: Prepare = async (world, token) => {
  const group_key = await joinFreezers(world, token)
  const freeze = { ...FREEZE, freeze_id: `of-${group_key}`, approvers: [group_key] }
  await world.call((await world.login('otto')).access_token, 'POST', '/api/v1/freezes', freeze)
  return { ids: { freeze_id: freeze.freeze_id } }
}
/** The name has no address, so all its messages fail. */
const CHAT = { kind: 'webhook', name: 'chat', address: 'https://hooks.invalid/in' }
/** One address is one destination, and each example needs its own. */
let destinations = 0
const forDestination: Prepare = async ({ call }, token) => {
  destinations += 1
  const body = { ...CHAT, name: `chat ${destinations}`, address: `${CHAT.address}/${destinations}` }
  const made = await call(token, 'POST', '/api/v1/notifications/destinations', body)
  return { ids: { destination_id: made.body.destination_id }, query: [] }
}
/** It has just been given up. */
const forDeadMessage: Prepare = async (world, token, endpoint) => {
  const { ids } = await forDestination(world, token, endpoint)
  const delivery_id = ids?.destination_id ?? ''
  await world.rows(
    `insert into operations.notify_deliveries (delivery_id, destination_id, owner, purpose, state, next_at)
     select destination_id, destination_id, owner, 'test', 'dead', clock_timestamp()
     from operations.notify_destinations where destination_id = $1`,
    [delivery_id],
  )
  return { ids: { delivery_id }, query: [] }
}
const notifications = {
  'POST /v1/notifications/deliveries/{delivery_id}/redeliver': forDeadMessage,
  'POST /v1/notifications/destinations': async () => ({ body: CHAT }),
  'PUT /v1/notifications/push': async () => ({
    body: {
      name: 'browser',
      endpoint: 'https://fcm.googleapis.com/fcm/send/d1x',
      keys: {
        p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
        auth: 'BTBZMqHH6r4Tts7J_aSIgg',
      },
    },
  }),
  'PUT /v1/notifications/rules': async () => ({ body: { steps: [] } }),
  ...Object.fromEntries(
    ['GET %/secret', 'POST %/secret', 'DELETE %', 'POST %/confirm', 'POST %/test'].map((name) => [
      name.replace('%', '/v1/notifications/destinations/{destination_id}'),
      forDestination,
    ]),
  ),
}
let views = 0
const forView: Prepare = async ({ call }, token) => {
  views += 1
  const body = { list: 'operations', name: `view ${views}`, filters: { tab: 'failed' } }
  const made = await call(token, 'POST', '/api/v1/users/me/views', body)
  return { ids: { view_id: made.body.view_id } }
}
const forOperation: Prepare = async (world, token) => ({ ids: (await atGate(world, token)).ids })

/** Each command has its own host, still at its first version. */
const forCommand =
  (resource_id: string): Prepare =>
  async () => ({ ids: { resource_id }, body: { command_id: randomUUID(), idempotency_key: randomUUID() } })

/** The first report of an attempt that was handed over. */
const reporting: Prepare = async (world, token) => {
  const { ids } = await atGate(world, token)
  const secret = `exe_${randomUUID()}`
  await world.rows(
    `with node as (update operations.nodes set state = 'running', attempt = 1 where operation_id = $1 and node_id = 'behind'),
     attempt as (insert into operations.node_attempts (operation_id, node_id, attempt, generation, fence, phase, executor, key)
       values ($1, 'behind', 1, 1, 7, 'running', 'external', 'x'))
     insert into operations.executions (token_sha256, operation_id, node_id, attempt, generation, fence, pool, heartbeat_s, start_before, deadline_at)
     values ($2, $1, 'behind', 1, 1, 7, 'default', 30, now() + interval '1 h', now() + interval '1 h')`,
    [ids.operation_id, createHash('sha256').update(secret).digest('hex')],
  )
  return { body: { operation_id: ids.operation_id, node_id: 'behind' }, headers: bearer(secret) }
}

/** By the name of the endpoint in its app's document. */
export const PREPARED: Readonly<Record<string, Prepare>> = {
  'POST /v1/token': async () => ({ body: { username: 'zoe' } }),
  'POST /auth/login': async () => ({ body: { username: 'zoe' } }),
  'POST /auth/refresh': async ({ login }) => ({ body: { refresh_token: (await login('rae')).refresh_token } }),
  'POST /auth/logout': async ({ login }) => ({ headers: bearer((await login('rae')).access_token) }),
  'GET /v1/token/csrf': async ({ call }) => {
    const password = 'Tr0mbone-Glacier-Napkin'
    const answer = await call('', 'POST', '/v1/token?response_mode=cookie', { username: 'rae', password })
    const cookie = [answer.headers['set-cookie'] ?? []].flat().map((line) => line.split(';')[0])
    return { headers: { cookie: cookie.join('; '), 'sec-fetch-site': 'same-origin' } }
  },
  'DELETE /v1/sessions/{session_id}': async ({ login }) => {
    const { access_token } = await login('rae')
    return { ids: { session_id: claimsOf(access_token).session_id }, headers: bearer(access_token) }
  },
  // It ends every other session of its user, so only this example signs in as sol.
  'POST /v1/sessions/revoke-others': async ({ login }) => ({ headers: bearer((await login('sol')).access_token) }),
  'POST /v1/sessions/sign-out': async ({ stack, login }) => {
    const { sub } = claimsOf((await login('rae')).access_token)
    return { body: { token: await signOutTokenFor(stack, sub) } }
  },
  // The requesting token ends.
  'POST /v1/token/reauth': async ({ login }) => ({ headers: bearer((await login('zoe')).access_token) }),
  'POST /v1/users/me/password': async ({ login }) => ({ headers: bearer((await login('pam')).access_token) }),
  'DELETE /v1/admin/users/{user_id}/sessions/{session_id}': async ({ login }) => {
    const { sub, session_id } = claimsOf((await login('rae')).access_token)
    return { ids: { user_id: sub, session_id } }
  },
  'DELETE /v1/admin/users/{user_id}/sessions': forNewcomer,

  'PATCH /v1/users/me/views/{view_id}': forView,
  'DELETE /v1/users/me/views/{view_id}': forView,
  'POST /v1/users/enrol': async (world) => ({ body: { enrolment_token: (await newcomer(world)).token } }),
  'POST /v1/admin/users/{user_id}/enrolment-token': forNewcomer,
  'POST /v1/admin/users/{user_id}/recovery': forNewcomer,
  'POST /v1/admin/users/{user_id}/disable': forNewcomer,
  'POST /v1/admin/users/{user_id}/delete': forNewcomer,
  'POST /v1/admin/users/{user_id}/enable': forNewcomer,
  'DELETE /v1/admin/groups/{group_key}': async ({ ada }) => {
    await ada.post('/v1/admin/groups', { group_key: 'to-be-removed', name: 'To be removed' })
    return { ids: { group_key: 'to-be-removed' } }
  },
  'POST /v1/admin/changes/{change_id}/confirm': (world) => forChange(world, { requested_by: 'ada' }),
  'POST /v1/admin/changes/{change_id}/reject': (world) => forChange(world, { requested_by: 'ada' }),
  'POST /v1/admin/changes/{change_id}/withdraw': (world) => forChange(world, {}),
  'POST /v1/admin/changes/{change_id}/half': (world) => forChange(world, { status: 'confirmed' }),
  'GET /v1/imports/{job_id}': forJob,
  'GET /v1/imports/{job_id}/results': forJob,
  'POST /v1/imports/{job_id}/cancel': forJob,
  'DELETE /v1/admin/grants/{grant_id}': async (world) => {
    const { user_id } = await newcomer(world)
    const grant = { subject_type: 'user', subject_id: user_id, role: 'viewer' }
    const made = await world.ada.post<{ id: string }>('/v1/admin/grants', grant)
    return { ids: { grant_id: made.body.id } }
  },

  'POST /v1/admin/machines': async (_world, token) => ({ body: { owners: [claimsOf(token).sub] } }),
  'GET /v1/admin/machines/{machine_id}/refusals': forMachine,
  'GET /v1/users/me/machines/{machine_id}/refusals': forMachine,
  'PUT /v1/admin/machines/{machine_id}/owners/{user_id}': forMachine,
  'POST /v1/admin/machines/{machine_id}/credentials': forMachine,
  'POST /v1/admin/machines/{machine_id}/credentials/{credential_id}/rotate': forKey,
  'DELETE /v1/admin/machines/{machine_id}/credentials/{credential_id}': forKey,
  'POST /oauth/token': async (world, token) => ({ body: { client_secret: (await withKey(world, token)).key } }),

  'POST /v1/device/find': forDevice,
  'POST /v1/device/approve': forDevice,
  'POST /v1/device/deny': forDevice,

  // What the provider sends back, in the browser that started the sign-in.
  'GET /v1/sso/{provider}/callback': async ({ stack }) => {
    const browser = createBrowser(stack.gateway_url, stack.gateway_url)
    const back = new URL(await browser.choose('s-mia'))
    const cookie = [...browser.cookies].map((pair) => pair.join('=')).join('; ')
    return { query: [...back.searchParams], headers: { cookie } }
  },
  'GET /v1/admin/provider-trials/{trial}': async ({ stack }) => {
    const { location } = await createBrowser(stack.gateway_url, stack.gateway_url).signIn('s-mia', '?purpose=trial')
    return { ids: { trial: new URL(location, stack.gateway_url).searchParams.get('trial') ?? '' } }
  },
  'POST /v1/sso/{provider}/backchannel-logout': async (_world, _token, { provider }) => {
    const logout_token = await provider.sign(
      {
        iss: provider.issuer,
        aud: provider.client_id,
        sub: 's-tom',
        iat: Math.floor(Date.now() / 1000),
        jti: randomUUID(),
        events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
      },
      { typ: 'logout+jwt' },
    )
    return { body: { logout_token } }
  },

  'POST /internal/v1/resources/{resource_id}/apply-operation-result': forCommand('eu1-web-02'),
  'POST /internal/v1/resources/{resource_id}/provided-capabilities': forCommand('eu1-web-03'),
  'POST /internal/v1/resources/{resource_id}/health-observations': forCommand('eu1-web-03'),

  'POST /internal/v1/resources:batch-apply': async () => {
    const ids = { command_id: randomUUID(), idempotency_key: randomUUID(), resource_id: 'eu1-web-02' }
    return { body: { items: [{ kind: 'apply', command: { ...EXAMPLE_RESULT, ...ids } }] } }
  },

  'POST /internal/v1/projections/{name}/pause': async () => ({ ids: { name: 'operations_index' } }),
  'POST /internal/v1/projections/{name}/resume': async () => ({ ids: { name: 'operations_index' } }),
  // One proof at a time: this one comes after the proof that the verify example has started.
  'POST /internal/v1/projections/{name}/rebuild': async ({ stack, controlPlane }) => {
    const verified = async () => {
      const headers = { authorization: `Bearer ${controlPlane('catalog')}` }
      const reply = await fetch(`${stack.internal('catalog')}/internal/v1/projections`, { headers })
      const { items } = (await reply.json()) as Projections
      return items.some(({ name, running, proof }) => name === 'graph' && running === null && proof)
    }
    await until(verified, { what: 'the end of the proof before' })
    return {}
  },

  'POST /v1/intents/{intent_id}/plan-preview': async ({ call }, token) => {
    const graph = { nodes: [{ node_id: 'only', executor: 'noop', with: {} }] }
    const intent = { kind: 'graph', title: 'an example', reason: 'to see', graph }
    const { body } = await call(token, 'POST', '/api/v1/intents', intent)
    return { ids: { intent_id: body.intent_id } }
  },
  ...schedules,
  'POST /v1/freezes': async (world, token) => ({
    body: { ...FREEZE, freeze_id: 'example', approvers: [await joinFreezers(world, token)] },
  }),
  'POST /v1/freezes/{freeze_id}/end': forFreeze,
  ...notifications,
  'POST /v1/plans/{plan_id}/start': async ({ call }, token) => {
    const graph = { nodes: [{ node_id: 'only', executor: 'noop', with: {} }] }
    const intent = { kind: 'graph', title: 'an example', reason: 'to see', graph }
    const { body } = await call(token, 'POST', '/api/v1/intents', intent)
    const plan = await call(token, 'POST', `/api/v1/intents/${body.intent_id}/plan-preview`, {})
    return { ids: { plan_id: plan.body.plan_id }, body: { reviewed_plan_hash: plan.body.plan_hash } }
  },
  'POST /v1/operations/{operation_id}/pause': forOperation,
  'POST /v1/operations/{operation_id}/cancel': forOperation,
  'POST /v1/operations/{operation_id}/resume': async (world, token) => {
    const { ids, path } = await atGate(world, token)
    await world.call(token, 'POST', `${path}/pause`, { reason: 'to resume' })
    return { ids }
  },
  'POST /v1/operations/{operation_id}/nodes/{node_id}/retry': async (world, token) => {
    const { ids } = await atGate(world, token)
    return { ids: { ...ids, node_id: 'before' } }
  },
  'POST /v1/operations/{operation_id}/signals': forSignal,
  'POST /v1/operations/{operation_id}/interventions': forOperation,
  'POST /v1/operations/{operation_id}/gates/{gate_id}/approve': async (world, token) => {
    const { ids, gate } = await atGate(world, token)
    return { ids, body: { reviewed_digest: gate.digest, round: gate.round } }
  },
  'POST /v1/operations/{operation_id}/gates/{gate_id}/reject': forOperation,
  'POST /v1/operations/{operation_id}/patches': forOperation,
  'POST /v1/operations/{operation_id}/patches/{patch_id}/approve': forPatch,
  'POST /v1/operations/{operation_id}/patches/{patch_id}/reject': async (...given) => ({
    ids: (await forPatch(...given)).ids ?? {},
  }),
  'GET /v1/operations/{operation_id}/patches/{patch_id}': forPatch,
  'GET /v1/operations/{operation_id}/rollback': forRollback,
  'POST /v1/execution-results': reporting,
  'POST /internal/v1/execution-results': reporting,
  'PUT /internal/v1/artifacts/{sha256}': async (world, token) => {
    const { ids } = await atGate(world, token)
    const sha256 = createHash('sha256').update('').digest('hex')
    await world.rows(
      `insert into operations.operation_artifact_index (artifact_id, operation_id, node_id, attempt, name, kind, media_type, size, sha256, status)
       values ($1, $2, 'behind', 1, 'empty.txt', 'report', 'text/plain', 0, $3, 'pending')`,
      [randomUUID(), ids.operation_id, sha256],
    )
    return { ids: { sha256 } }
  },
  'POST /internal/v1/workflow-signals/{operation_id}': async (...given) => ({
    ...(await forOperation(...given)),
    body: { signal_id: randomUUID() },
  }),
}
