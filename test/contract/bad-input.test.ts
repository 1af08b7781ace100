import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { entryOf } from '../../apps/shared/contracts/categories.ts'
import { newJti, signToken } from '../../apps/shared/jwt/sign.ts'
import { until } from '../support/until.ts'
import { CASES, EXCEPTED, type Side } from './cases.ts'
import { type Api, bodyLimitOf, type Endpoint, gatewayEndpoints, readApis } from './documents.ts'
import { type Answer, type Call, exampleCall, send, sendCall } from './requests.ts'
import { brokenCalls, METHODS, rpcFault } from './rpc.ts'
import { ROLES, registerHost, startOperation, startWorld, type World } from './world.ts'

/** What bad input gets, on every route of every listener: the right refusal, in our words, and no change. */
const apis = readApis()
const APPS = ['token', 'credential', 'identity', 'session', 'catalog', 'operations', 'relay', 'gateway']

let world: World
let ids: Record<string, string>
let zoe: { access_token: string; refresh_token: string }
let nobody: { access_token: string }
let before: Record<string, string>
/** Good for one attempt of one node. */
const execution_token = `exe_${randomUUID()}`

beforeAll(async () => {
  world = await startWorld({ apps: APPS })
  await registerHost(world)
  await world.addUser('zoe', ROLES)
  const victim = await world.addUser('nobody', [])
  zoe = await world.login('zoe')
  nobody = await world.login('nobody')
  const operation = await startOperation(world, zoe.access_token)
  const grants = await world.ada.get<{ items: { id: string }[] }>('/v1/admin/grants')
  const sessions = await world.call(zoe.access_token, 'GET', '/api/v1/sessions')
  ids = {
    ...operation,
    resource_id: 'eu1-web-01',
    type_key: 'fleet.host',
    node_id: 'before',
    gate_id: 'go',
    group_key: 'netops',
    user_id: victim.id,
    grant_id: grants.items[0]?.id ?? '',
    session_id: sessions.body.items[0].id,
  }
  await world.rows(
    `with attempt as (insert into operations.node_attempts (operation_id, node_id, attempt, generation, fence, phase, executor, key)
       values ($1, 'behind', 9, 1, 7, 'running', 'external', 'x'))
     insert into operations.executions (token_sha256, operation_id, node_id, attempt, generation, fence, pool, heartbeat_s, start_before, deadline_at)
     values ($2, $1, 'behind', 9, 1, 7, 'default', 30, now() + interval '1 h', now() + interval '1 h')`,
    [ids.operation_id, createHash('sha256').update(execution_token).digest('hex')],
  )
  before = await settled(world)
}, 120_000)
afterAll(() => world?.stop(), 60_000)

/** The state of every table: its rows and their hash, without what refusals write on purpose (audit) and heartbeats. */
const BEATS = /\.(relay_state|projection|user_events|auth_events|audit|inbox|heartbeat)$/
const everything = async ({ rows }: World): Promise<Record<string, string>> => {
  const tables = await rows<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname in ('identity','session','credential','token','catalog','operations') order by 1`,
  )
  const watched = tables.map(({ name }) => name).filter((name) => !BEATS.test(name))
  const found = await Promise.all(
    watched.map(async (name) => {
      const [row] = await rows<{ is: string }>(
        `select count(*) || ' rows, ' || coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) as is from ${name} t`,
      )
      return [name, row?.is ?? ''] as const
    }),
  )
  return Object.fromEntries(found)
}
/** The state once it has stopped changing, for longer than the polls of the apps are apart. */
const settled = async (w: World) => {
  let last = ''
  return until(
    async () => {
      const now = await everything(w)
      const same = JSON.stringify(now) === last
      last = JSON.stringify(now)
      return same ? now : undefined
    },
    { what: 'quiet tables', every_ms: 3500 },
  )
}

const foreign_key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const foreignToken = (): string => {
  const iat = Math.floor(Date.now() / 1000)
  const claims = {
    iss: 'signalbox',
    aud: 'signalbox-api',
    sub: ids.user_id ?? '',
    iat,
    exp: iat + 900,
    jti: newJti(),
    type: 'access' as const,
    username: 'zoe',
    session_id: randomUUID(),
    auth_time: iat,
    amr: ['pwd'],
    cm: 'json' as const,
  }
  return signToken('access', claims, { kid: 'foreign', private_key: foreign_key })
}

/** Where requests of an API go, and with which credentials. */
type Place = Side & { base: string; authorization: string; categories: readonly string[] }
const bearer = (token: string) => `Bearer ${token}`

const publicTokens = (): Side['tokens'] => ({
  refused: {
    garbage: 'Bearer garbage',
    'another scheme': 'Basic em9lOnpvZQ==',
    'a refresh token': bearer(zoe.refresh_token),
    'a foreign signature': bearer(foreignToken()),
    'a service token': bearer(world.controlPlane('catalog')),
  },
  powerless: bearer(nobody.access_token),
})

const placeOf = (api: Api): Place => {
  const body_limit = ({ name }: Endpoint) => bodyLimitOf(api.name, name)
  const common = { endpoints: api.endpoints, body_limit, method_status: 404, categories: api.categories }
  const app = api.name.replace('-internal', '')
  if (app === api.name)
    return { ...common, base: world.stack.url(app), authorization: bearer(zoe.access_token), tokens: publicTokens() }
  return {
    ...common,
    base: world.stack.internal(app),
    authorization: bearer(world.controlPlane(app)),
    tokens: {
      refused: {
        garbage: 'Bearer garbage',
        'a user token': bearer(zoe.access_token),
        'another audience': bearer(world.controlPlane(app === 'catalog' ? 'operations' : 'catalog')),
      },
      powerless: bearer(world.controlPlane(app, [])),
    },
  }
}

/** Agents send logs and files. */
const OF_AGENTS: Record<string, number> = {
  'POST /api/v1/execution-results': 8_388_608,
  'PUT /api/v1/artifacts/{sha256}': 268_435_456,
}
const gatewayPlace = (): Place => {
  const endpoints = gatewayEndpoints(apis)
  const own = apis.find(({ name }) => name === 'gateway')?.categories ?? []
  const large: Record<string, number> = { catalog: 1_048_576, operations: 4_194_304 }
  const limits = new Map(endpoints.map(({ name, app }) => [name, large[app?.name ?? ''] ?? 16_384]))
  return {
    endpoints,
    base: world.stack.gateway_url,
    authorization: bearer(zoe.access_token),
    categories: [...new Set([...own, ...apis.flatMap(({ categories }) => categories)])],
    body_limit: ({ name }) => OF_AGENTS[name] ?? limits.get(name) ?? 0,
    method_status: 405,
    tokens: publicTokens(),
  }
}

const CATEGORY: Record<number, RegExp> = {
  400: /^(validation_error)$/,
  401: /^(invalid_token|policy_denied|invalid_credentials)$/,
  403: /^policy_denied$/,
  404: /^not_found$/,
  405: /^not_found$/,
  413: /^validation_error$/,
  414: /^validation_error$/,
  415: /^validation_error$/,
}
const LEAK = /node_modules|\bat \S+ \(|\.ts:\d+|\bFST_|select .* from|insert into|violates|syntax error at|undefined/i

/** Returns what is wrong with an answer, or `undefined` if it is the expected refusal. */
const faultOf = (
  answer: Answer,
  status: readonly number[],
  { categories }: Place,
  endpoint: Endpoint,
): string | undefined => {
  const { body, headers, text } = answer
  if (!status.includes(answer.status)) return `${answer.status} instead of ${status}: ${text.slice(0, 300)}`
  if (answer.status === 200) return undefined
  if (headers['content-type'] !== 'application/problem+json; charset=utf-8') return `sent ${headers['content-type']}`
  if (!entryOf(body.category, body.code).statuses.includes(answer.status))
    return `${answer.status} is not of ${body.code}`
  if (!categories.includes(body.category)) return `${body.category} is not a category of this API`
  if (!(CATEGORY[answer.status] ?? /./).test(body.category)) return `${answer.status} with ${body.category}`
  for (const member of ['type', 'title', 'detail', 'instance', 'code', 'request_id', 'hint'])
    if (typeof body[member] !== 'string' || body[member] === '') return `${member} is empty: ${text}`
  if (body.status !== answer.status || typeof body.retryable !== 'boolean') return `status or retryable: ${text}`
  if (body.request_id !== headers['x-request-id']) return `request_id ${body.request_id} is not the header's`
  if (!/^[A-Z].{10,}\.$/s.test(body.hint)) return `the hint says nothing: ${body.hint}`
  if (LEAK.test(text)) return `shows what is inside: ${text}`
  if (body.category === 'invalid_token' && !headers['www-authenticate']) return 'has no WWW-Authenticate'
  const { responses, description } = endpoint.operation
  const by_gateway =
    [405, 414].includes(answer.status) || ['route', 'not_found', 'method_not_allowed'].includes(body.code)
  if (description !== undefined && !by_gateway && !responses[answer.status])
    return `${answer.status} is not in the document: ${text.slice(0, 200)}`
  return undefined
}

const AT_ONCE = 12

/** Runs all of this, at most a dozen at a time. */
const inTurns = async <T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> => {
  const queue = [...items]
  const work = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await run(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}

const callOf = (endpoint: Endpoint, { authorization }: Place): Call => {
  const call = exampleCall(endpoint, ids)
  const [security] = (endpoint.operation.security ?? []) as Record<string, string[]>[]
  const by_work = security?.execution_token ?? security?.service_token?.includes('the execution token')
  const own = by_work ? bearer(execution_token) : authorization
  return { ...call, headers: { ...call.headers, ...(security && { authorization: own }) } }
}

const exercised = new Map<string, number>()

const suite = (name: string, place: () => Place, cases = CASES) => {
  describe(name, () => {
    it.each(cases)('refuses $name', async ({ breaks }) => {
      const here = place()
      const requests = here.endpoints.flatMap((endpoint) =>
        breaks(endpoint, () => callOf(endpoint, here), here).map((broken) => ({ endpoint, broken })),
      )
      const faults: string[] = []
      await inTurns(requests, async ({ endpoint, broken: { what, call, status } }) => {
        const key = `${name} ${endpoint.name}`
        exercised.set(key, (exercised.get(key) ?? 0) + 1)
        try {
          // All parts run in this process: a moment without a free core may look like an outage, but it ends.
          const answered = async () => {
            const reply = await sendCall(here.base, call)
            return reply.status === 503 ? undefined : reply
          }
          const answer = await until(answered, { timeout_ms: 20_000, every_ms: 200, what: 'an answer other than 503' })
          const fault = faultOf(answer, status, here, endpoint)
          if (fault) faults.push(`${endpoint.name}, ${what}: ${fault}`)
        } catch (error) {
          faults.push(`${endpoint.name}, ${what}: no answer: ${(error as Error).message}`)
        }
      })
      expect(faults).toEqual([])
    })

    it('were sent to every route', () => {
      const asked = place().endpoints.filter((endpoint) => (exercised.get(`${name} ${endpoint.name}`) ?? 0) === 0)
      expect(asked.map((endpoint) => endpoint.name)).toEqual([])
    })
  })
}

for (const api of apis.filter(({ name }) => name !== 'gateway')) suite(api.name, () => placeOf(api))
suite(
  'gateway',
  gatewayPlace,
  CASES.filter(({ behind }) => !behind),
)

it('leave out only cases of known routes', () => {
  const known = new Set(gatewayEndpoints(apis).map(({ name }) => name))
  expect(EXCEPTED.filter((name) => !known.has(name))).toEqual([])
})

describe('RPC', () => {
  it.each(METHODS)('refuses bad calls of $name', async ({ app, path }) => {
    const tokens = {
      good: world.anyService(app),
      powerless: world.anyService(app, []),
      user: zoe.access_token,
      foreign: world.controlPlane('catalog'),
    }
    for (const broken of brokenCalls(tokens)) {
      const answer = await send(`${world.stack.internal(app)}${path}`, broken.sent)
      expect(rpcFault(answer, broken), broken.what).toBeUndefined()
    }
  })
})

describe('all of that', () => {
  it('changed nothing', async () => {
    expect(await settled(world)).toEqual(before)
    const alive = await world.call(zoe.access_token, 'GET', '/api/v1/sessions')
    expect(alive.body.items.map(({ id }: { id: string }) => id)).toContain(ids.session_id)
  }, 60_000)
})
