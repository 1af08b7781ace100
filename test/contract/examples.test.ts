import { randomUUID } from 'node:crypto'
import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROUTES } from '../../apps/gateway/routes/table.ts'
import { until } from '../support/until.ts'
import { type Api, type Endpoint, readApis } from './documents.ts'
import { faultsOf } from './faults.ts'
import { linksIn } from './links.ts'
import { PREPARED } from './prepared.ts'
import { type Answer, type Call, exampleCall, send, sendCall } from './requests.ts'
import { type Corp, ROLES, registerHost, startCorp, startOperation, startWorld, type World } from './world.ts'

/** The documents describe the apps: every example is sent, and every reply matches its document. */
const apis = readApis()
const endpoints = apis.flatMap((api) => api.endpoints.map((endpoint) => ({ api, endpoint, name: endpoint.name })))

const REDIRECTS = new Set(ROUTES.filter(({ redirects }) => redirects).map(({ method, path }) => `${method} ${path}`))
/** Only an agent with work in flight may call these: `test/agent` runs them. */
const AT_WORK = [
  'POST /v1/pools/{pool}/work',
  ...['PUT', 'GET'].map((act) => `${act} /v1/artifacts/{sha256}`),
  'GET /internal/v1/artifacts/{sha256}',
]
/** These need an authenticator: `test/session/passkeys.test.ts` and `test/session/totp.test.ts` have one. */
const WITH_PASSKEY = ['POST /v1/users/me/passkeys', 'DELETE /v1/users/me/passkeys/{passkey_id}']
const WITH_APP = ['PUT /v1/users/me/totp', 'DELETE /v1/users/me/totp']
/** Signed by its sender: `test/operations/schedules.test.ts`. */
const SIGNED = ['POST /v1/hooks/{schedule_id}']
/** These need a person whom a provider signed in (test/session/sso). */
const OF_PROVIDER = ['/v1/users/me', '/v1/admin/users/{user_id}'].map((of) => `DELETE ${of}/identities/{provider}`)
const ELSEWHERE = new Set([...AT_WORK, ...WITH_PASSKEY, ...WITH_APP, ...SIGNED, ...OF_PROVIDER])
/** The success statuses of an operation: 303 for browsers, on the few routes that the gateway lets redirect. */
const successOf = ({ name }: Endpoint) => (REDIRECTS.has(name) ? /^(2\d\d|303)$/ : /^2\d\d$/)

describe('the committed documents', () => {
  it.each(endpoints)('describe $name, with examples that fit their schemas', ({ endpoint }) => {
    const { operation } = endpoint
    expect(operation.description).toMatch(/\w{3,}/)
    expect(operation.tags?.length).toBeGreaterThan(0)
    const bodies = Object.entries(operation.requestBody?.content ?? {})
    const replies = Object.values(operation.responses).flatMap((reply) =>
      'content' in reply ? Object.entries(reply.content ?? {}) : [],
    )
    for (const [type, { schema, example }] of [...bodies, ...replies]) {
      expect(example, type).not.toBe(undefined)
      expect(faultsOf(schema ?? {}, example)).toEqual([])
    }
    for (const parameter of operation.parameters ?? [])
      if (parameter.required) expect(parameter.example, parameter.name).not.toBe(undefined)
    expect(Object.keys(operation.responses).some((status) => successOf(endpoint).test(status))).toBe(true)
  })
})

let world: World
let corp: Corp
let token: string
let ids: Record<string, string>

beforeAll(async () => {
  corp = await startCorp()
  world = await startWorld({
    env_overrides: corp.env,
    apps: ['token', 'credential', 'identity', 'session', 'catalog', 'operations', 'worker', 'relay', 'gateway'],
  })
  for (const name of ['eu1-web-01', 'eu1-web-02', 'eu1-web-03', 'eu1-web-04']) await registerHost(world, name)
  await world.addUser('zoe', ROLES)
  const { id: user_id } = await world.addUser('rae', ['viewer'])
  await world.addUser('pam', [])
  await world.addUser('pru', ['planner'])
  await world.addUser('otto', ['operator'])
  await world.addUser('sol', [])
  token = (await world.login('zoe')).access_token
  const operation = await startOperation(world, token)
  const artifact_id = randomUUID()
  await world.rows(
    `insert into operations.operation_artifact_index
       (artifact_id, operation_id, node_id, attempt, name, kind, media_type, size, sha256, status, content)
     values ($1, $2, 'before', 1, 'report.txt', 'report', 'text/plain', 2, 'x', 'stored', $3)`,
    [artifact_id, operation.operation_id, Buffer.from('ok')],
  )
  ids = { ...operation, artifact_id, user_id, node_id: 'before', gate_id: 'go', resource_id: 'eu1-web-01' }
  await until(
    async () => (await world.rows(`select 1 from operations.catalog_resources where resource_id like 'eu1-web-%'`))[1],
    { what: 'the hosts in the projection' },
  )
}, 180_000)
afterAll(async () => {
  await world?.stop()
  await corp?.stop()
}, 60_000)

const AT_ROOT = /^\/(auth\/|oauth\/|v1\/token|v1\/device|v1\/providers|v1\/sso\/|\.well-known\/|health\/|api\/)/
/** Clients come through the gateway; services to the internal listener; verifiers to token itself. */
const baseOf = (api: Api, { path }: Endpoint): string => {
  if (api.name.endsWith('-internal')) return world.stack.internal(api.name.replace('-internal', ''))
  if (path === '/jwks') return world.stack.url('token')
  return AT_ROOT.test(path) ? world.stack.gateway_url : `${world.stack.gateway_url}/api`
}

/** The first frame of an endless reply. */
const firstFrame = async (base: string, call: Call): Promise<Answer> => {
  const query = call.query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')
  const ended = new AbortController()
  const { statusCode, headers, body } = await request(`${base}${call.path}?${query}`, {
    headers: call.headers,
    signal: ended.signal,
  })
  for await (const chunk of body) {
    ended.abort()
    return { status: statusCode, headers, text: String(chunk), body: undefined }
  }
  throw new Error('the stream ended without a frame')
}

const replay = async (api: Api, endpoint: Endpoint): Promise<Answer> => {
  const prepared = (await PREPARED[endpoint.name]?.(world, token, corp)) ?? {}
  const call = exampleCall(endpoint, { ...ids, ...prepared.ids })
  const guarded = (endpoint.operation.security ?? []).length > 0
  const bearer = api.name.endsWith('-internal') ? world.controlPlane(api.name.replace('-internal', '')) : token
  const complete: Call = {
    ...call,
    ...(prepared.query && { query: prepared.query }),
    ...(call.body !== undefined && { body: { ...(call.body as object), ...prepared.body } }),
    headers: { ...call.headers, ...(guarded && { authorization: `Bearer ${bearer}` }), ...prepared.headers },
  }
  const base = baseOf(api, endpoint)
  return endpoint.operation.tags?.includes('events') ? firstFrame(base, complete) : sendCall(base, complete)
}

const followed = new Map<string, Promise<void>>()
/** A link resolves at the gateway unchanged; its target may not have arrived yet. */
const leadsOn = (link: string): Promise<void> => {
  const follow = async () => {
    const get = () =>
      send(`${world.stack.gateway_url}${link}`, { method: 'GET', headers: { authorization: `Bearer ${token}` } })
    const { status, headers } = await until(
      async () => {
        const answer = await get()
        return answer.status === 404 ? undefined : answer
      },
      { what: `what ${link} leads to`, timeout_ms: 20_000 },
    )
    expect(status === 405 ? headers.allow : status, link).toBe(status === 405 ? 'POST' : 200)
  }
  const known = followed.get(link) ?? follow()
  followed.set(link, known)
  return known
}

describe('every example', () => {
  it.concurrent.each(endpoints.filter(({ name }) => !ELSEWHERE.has(name)))(
    'of $name gets the documented answer',
    async ({ api, endpoint }) => {
      const { status, headers, text, body } = await replay(api, endpoint)
      const reply = endpoint.operation.responses[status]
      expect(String(status), text).toMatch(successOf(endpoint))
      expect(reply, `${status} is documented: ${text}`).toBeDefined()
      if (!reply || '$ref' in reply) return
      const [type, media] = Object.entries(reply.content ?? {})[0] ?? []
      if (type) expect(String(headers['content-type']).split(';')[0]).toBe(type)
      else expect(text).toBe('')
      if (type === 'application/json') expect(faultsOf(media?.schema ?? {}, body)).toEqual([])
      // A redirect leads to the provider or into the console.
      if (!api.name.endsWith('-internal') && status < 300)
        for (const link of linksIn({ headers, body })) await leadsOn(link)
      const documented = Object.keys(reply.headers ?? {})
      expect(documented).toContain('x-request-id')
      for (const name of ['etag', 'location'])
        if (headers[name] !== undefined) expect(documented, `${name} is sent`).toContain(name)
      const promised = documented.filter((name) => name === 'etag' || (name === 'location' && status > 200))
      for (const name of promised) expect(headers[name], `${name} is documented`).toBeDefined()
    },
  )

  it('contains links of both apps, which were followed', () => {
    for (const part of ['resources', 'intents', 'plans', 'operations'])
      expect([...followed.keys()].filter((link) => link.startsWith(`/v1/${part}/`)).length, part).toBeGreaterThan(0)
  })

  it('names its objects by prepared ids', () => {
    const known = new Set(endpoints.map(({ name }) => name))
    expect(Object.keys(PREPARED).filter((name) => !known.has(name))).toEqual([])
  })
})
