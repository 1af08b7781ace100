import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { ensureAccounts } from '../../apps/platform/demo/accounts.ts'
import { signIn } from '../../apps/platform/demo/client.ts'
import { startProvider } from '../../apps/platform/demo/provider.ts'
import { audienceOf, SERVICE_SCOPES } from '../../apps/shared/service/scopes.ts'
import { createServiceSigner } from '../../apps/shared/service/tokens.ts'
import { PEOPLE } from '../session/support/sso.ts'
import { startStack } from '../support/stack.ts'
import { until } from '../support/until.ts'
import { type Answer, send } from './requests.ts'

const PASSWORD = 'Tr0mbone-Glacier-Napkin'
export const ROLES = ['viewer', 'planner', 'operator', 'approver', 'engineer', 'admin', 'auditor']

/** A graph with one node before a gate and one behind it; it has no target, so it needs no host. */
export const GRAPH = {
  nodes: [
    { node_id: 'before', executor: 'noop', with: {} },
    { node_id: 'behind', executor: 'noop', with: {}, depends_on: ['before'] },
  ],
  gates: [{ gate_id: 'go', policy: { approvals: { quorum: 1, four_eyes: false } }, guards: ['behind'] }],
}

/** The started platform with people of every right and of none, and one object of each kind. */
export const startWorld = async (options: Parameters<typeof startStack>[0] = {}) => {
  const stack = await startStack(options)
  const pool = new pg.Pool({ connectionString: stack.database_url, max: 4 })
  const rows = async <T>(text: string, values: unknown[] = []): Promise<T[]> =>
    (await pool.query(text, values)).rows as T[]
  const { users } = await ensureAccounts(stack.gateway_url, stack.dir)
  const account = users.find(({ username }) => username === 'ada')
  if (!account) throw new Error('ada was not made')
  const ada = await signIn(stack.gateway_url, account)

  const call = (
    token: string,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> =>
    send(`${stack.gateway_url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(method !== 'GET' && { 'idempotency-key': randomUUID() }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })

  /** A new user who has set a password, which ended their sessions. */
  const addUser = async (username: string, roles: string[], groups: string[] = []) => {
    const made = await ada.post<{ user: { id: string }; enrolment: { token: string } }>('/v1/admin/users', {
      username,
      grants: roles.map((role) => ({ role })),
    })
    const { id } = made.body.user
    for (const group of groups) await ada.put(`/v1/admin/groups/${group}/members/${id}`, undefined)
    await call('', 'POST', '/api/v1/users/enrol', {
      enrolment_token: made.body.enrolment.token,
      new_password: PASSWORD,
    })
    await until(
      async () =>
        (
          await rows<{ n: number }>(
            'select count(*)::int n from credential.outbox where agg_id = $1 and published_at is null',
            [id],
          )
        )[0]?.n === 0,
      { what: 'the end of the old sessions' },
    )
    return { id, username }
  }

  const login = async (username: string) => {
    const answer = await call('', 'POST', '/v1/token', { username, password: PASSWORD })
    if (answer.status !== 200) throw new Error(`${username} cannot sign in: ${answer.text}`)
    return answer.body as { access_token: string; refresh_token: string }
  }

  const service = (name: string, target: string, scopes?: string[]): string =>
    createServiceSigner({ name, key_file: stack.context.keys.serviceKeyFile(name), ...(scopes && { scopes }) })(
      audienceOf(target),
    )

  return {
    stack,
    ada,
    call,
    rows,
    addUser,
    login,
    password: PASSWORD,
    /** A token of a control plane with every scope of this app's internal listener. */
    controlPlane: (target: string, scopes?: string[]) => service('demo-control-plane', target, scopes),
    /** A token of any service that is registered for this app. */
    anyService: (target: string, scopes?: string[]) => {
      const name = Object.keys(SERVICE_SCOPES).find((caller) => SERVICE_SCOPES[caller]?.[target])
      if (!name) throw new Error(`no service may call ${target}`)
      return service(name, target, scopes)
    },
    stop: async () => {
      await pool.end()
      await stack.stop()
    },
  }
}
export type World = Awaited<ReturnType<typeof startWorld>>

/** The identity provider of the examples, and the file that tells the apps about it. */
export const startCorp = async () => {
  const provider = await startProvider({ port: 0, people: PEOPLE })
  const dir = mkdtempSync(join(tmpdir(), 'signalbox-contract-'))
  mkdirSync(join(dir, 'secrets'))
  writeFileSync(join(dir, 'secrets/corp'), provider.client_secret)
  const entry = {
    id: 'corp',
    title: 'Example Corp',
    issuer: provider.issuer,
    client_id: provider.client_id,
    client_secret: 'secret://file/corp',
    groups: { map: { staff: { roles: ['viewer'] } } },
    jit: { enabled: true, require_group: ['staff'] },
  }
  const file = join(dir, 'providers.yaml')
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ format: 'signalbox/providers@1', providers: [entry] }))
  return {
    provider,
    env: { AUTH__PROVIDERS__FILE: file, NOTIFY__ENABLED: 'true' },
    stop: async () => {
      await provider.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
export type Corp = Awaited<ReturnType<typeof startCorp>>

/** Registers a host and the places that contain it. */
export const registerHost = async ({ ada }: World, resource_id = 'eu1-web-01', region = 'eu1'): Promise<void> => {
  const record = (resource: Record<string, unknown>) =>
    ada.post('/v1/resources?mode=record_only', resource, `${resource.resource_id}`)
  const layer = { layer_kind: 'edge' }
  await record({ resource_id: region, type_key: 'topology.region', name: region, desired_state: { code: region } })
  const center = `${region}-a`
  await record({ resource_id: center, type_key: 'topology.datacenter', name: center, parent_id: region })
  await record({
    resource_id: `${center}-edge`,
    type_key: 'topology.layer',
    name: 'edge',
    parent_id: center,
    desired_state: layer,
  })
  await record({ resource_id: `${center}-web`, type_key: 'topology.segment', name: 'web', parent_id: `${center}-edge` })
  const state = { hostname: resource_id, release: '2.3.9', traffic: 'in' }
  await record({
    resource_id,
    type_key: 'fleet.host',
    name: resource_id,
    parent_id: `${center}-web`,
    lifecycle_status: 'active',
    desired_state: state,
    observed_state: { ...state, base_url: 'http://127.0.0.1:9' },
  })
}

/** States, plans and starts a graph; returns the operation's ids. */
export const startOperation = async ({ call }: World, token: string, graph: object = GRAPH) => {
  const must = (answer: Answer) => {
    if (answer.status > 202) throw new Error(`${answer.status} ${answer.text}`)
    return answer.body as Record<string, string>
  }
  const intent = { kind: 'graph', title: 'a contract', reason: 'to see', graph }
  const { intent_id = '' } = must(await call(token, 'POST', '/api/v1/intents', intent))
  const plan = must(await call(token, 'POST', `/api/v1/intents/${intent_id}/plan-preview`, {}))
  const { plan_id = '', plan_hash = '' } = plan
  const started = must(
    await call(token, 'POST', `/api/v1/plans/${plan_id}/start`, { reviewed_plan_hash: plan_hash }),
  ) as { operation_id?: string; command?: { command_id: string } }
  return {
    intent_id,
    plan_id,
    plan_hash,
    operation_id: started.operation_id ?? '',
    command_id: started.command?.command_id ?? '',
  }
}
