import { randomUUID } from 'node:crypto'
import type { JsonSchema } from '../../apps/shared/http/example.ts'
import type { Operation } from '../../apps/shared/http/openapi.ts'
import type { Endpoint } from './documents.ts'
import type { Call } from './requests.ts'

/** What is broken about a request, and the acceptable statuses for it. */
export type Broken = { what: string; call: Call; status: readonly number[] }
/** What a case needs to know about the listener that it is sent to. */
export type Side = {
  endpoints: readonly Endpoint[]
  body_limit: (endpoint: Endpoint) => number
  /** 405 at the gateway, which knows its table; 404 behind it. */
  method_status: number
  tokens: { refused: Record<string, string>; powerless: string }
}
export type Case = {
  name: string
  /** Only behind the gateway, which passes the body and the query through unread. */
  behind?: true
  breaks: (endpoint: Endpoint, call: () => Call, side: Side) => Broken[]
}

const WRITES = ['POST', 'PUT', 'PATCH', 'DELETE']
const isOpen = ({ security = [] }: Operation) => security.length === 0
/** Called by load balancers, which may add anything. */
const isProbe = (operation: Operation) => isOpen(operation) && (operation.tags?.includes('health') ?? false)
const isServed = ({ description }: Operation) => description !== undefined
const permissionsOf = (operation: Operation) => operation['x-permissions'] ?? []
const parametersOf = ({ operation }: Endpoint, place: string) =>
  (operation.parameters ?? []).filter((parameter) => parameter.in === place)
const bodyOf = ({ operation }: Endpoint): JsonSchema | undefined =>
  Object.values(operation.requestBody?.content ?? {})[0]?.schema
const takesKey = (endpoint: Endpoint) => parametersOf(endpoint, 'header').some(({ name }) => name === 'idempotency-key')

const withHeaders = (call: Call, headers: Record<string, string | undefined>): Call => ({
  ...call,
  headers: Object.fromEntries(
    Object.entries({ ...call.headers, ...headers }).filter((pair): pair is [string, string] => pair[1] !== undefined),
  ),
})
const asJson = (call: Call, raw: string | Buffer): Call => ({
  ...withHeaders(call, { 'content-type': call.headers['content-type'] ?? 'application/json' }),
  raw,
})
const statedLength = (call: Call, bytes: number) => withHeaders(call, { 'content-length': String(bytes) })
const withMember = (call: Call, name: string, value: unknown): Call => ({
  ...call,
  body: { ...(call.body as object), [name]: value },
})

/** A value of another type than the schema allows; `undefined` if any value is valid. */
const wrongValue = ({ type, anyOf, enum: names, const: only }: JsonSchema): unknown => {
  const types = [type ?? anyOf?.flatMap((one) => one.type ?? []) ?? []].flat()
  if (names || only !== undefined) return 'no-such-value'
  if (types.includes('string')) return { a: 1 }
  return types.length > 0 ? 'neither of it' : undefined
}

const hasDefault = (schema: JsonSchema) => 'default' in schema

const matches = (template: string, path: string) =>
  new RegExp(`^${template.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`).test(path)

/** Spellings that no id has: a NUL, broken UTF-8, a path traversal, a space, SQL, a very long one, one beyond ASCII. */
const MALFORMED = ['%00', '%F0%28%8C%28', '%2e%2e%2fadmin', 'a%20b', "'%20or%201=1--", 'x'.repeat(700), '%F0%9F%92%A5']
/** RFC 3339 times that Postgres or this runtime does not accept. */
const ODD_TIMES = ['0000-01-01T00:00:00Z', '2026-12-31T23:59:60Z', '2026-01-01T00:00:00+23:59']
/** Well-formed ids of objects that do not exist, by the name of the parameter. */
const unknownId = (name: string) =>
  ({
    resource_id: 'not-there',
    type_key: 'no.such',
    group_key: 'nobody',
    node_id: 'not-there',
    gate_id: 'not-there',
    provider: 'not-there',
    sha256: '0'.repeat(64),
  })[name] ?? randomUUID()
/** Providers send their own members here; RFC 6749 (4.1.2) requires ignoring them. */
const OPEN_QUERY = new Set(['GET /v1/sso/{provider}/callback'])
/** OpenID Connect Back-Channel Logout (2.5) and RFC 6749 (3.2) require ignoring unknown members. */
const OPEN_BODY = new Set(['POST /v1/sso/{provider}/backchannel-logout', 'POST /oauth/token'])
/** Its signature is checked before all else, and covers any bytes: `test/operations/schedules.test.ts`. */
const HOOK = 'POST /api/v1/hooks/{schedule_id}'
const SIGNED = new Set([HOOK, HOOK.replace('/api', '')])
/** The routes that a case skips. */
export const EXCEPTED = [...OPEN_QUERY, ...OPEN_BODY, HOOK]
/** For a role that only machines hold: the person of these cases is refused whatever the id. */
const OF_MACHINES = /^POST (\/api)?\/v1\/operations\/\{operation_id\}\/signals$/
/**
 * Chosen by the caller: a PUT creates it, and a DELETE of a missing one is already done. A pool has a name and no id.
 */
const CHOSEN = new Set(['freeze_id', 'pool'])
const DOCUMENTED_4XX = [400, 401, 403, 404, 405, 409, 412, 413, 414, 415, 422, 428]

/** The caller is checked before any of the request is judged: a stranger's broken body also gets 401. */
const strangers = (endpoint: Endpoint, call: Call, tokens: Record<string, string | undefined>): Broken[] =>
  isOpen(endpoint.operation)
    ? []
    : Object.entries(tokens).flatMap(([what, authorization]) => {
        const stranger = withHeaders(call, { authorization })
        const broken = { what: `${what}, a broken body`, call: asJson(stranger, '{"no_such_member":1}'), status: [401] }
        return [{ what, call: stranger, status: [401] }, ...(bodyOf(endpoint) ? [broken] : [])]
      })

export const CASES: readonly Case[] = [
  {
    name: 'what no app serves yet',
    breaks: ({ operation }, call) => (isServed(operation) ? [] : [{ what: 'asked', call: call(), status: [404] }]),
  },
  {
    name: 'an unknown query parameter',
    breaks: ({ name, operation }, call) =>
      !isServed(operation) || isProbe(operation) || OPEN_QUERY.has(name)
        ? []
        : [{ what: '?colour=red', call: { ...call(), query: [...call().query, ['colour', 'red']] }, status: [400] }],
  },
  {
    name: 'a method that the path does not have',
    breaks: ({ path }, call, { endpoints, method_status }) => {
      const here = endpoints.filter((other) => matches(other.path, path)).map(({ method }) => String(method))
      const method = ['DELETE', 'PATCH', 'PUT', 'POST'].find((one) => !here.includes(one))
      if (!method) return []
      return [{ what: method, call: { ...call(), method }, status: [method_status] }]
    },
  },
  { name: 'no token', breaks: (endpoint, call) => strangers(endpoint, call(), { 'no Authorization': undefined }) },
  {
    name: 'a garbage or foreign token',
    breaks: (endpoint, call, { tokens }) => strangers(endpoint, call(), tokens.refused),
  },
  {
    name: 'a token without the permission',
    breaks: ({ operation }, call, { tokens }) =>
      !isServed(operation) ||
      isOpen(operation) ||
      permissionsOf(operation).includes('none') ||
      permissionsOf(operation).some((asked) => asked === 'self' || asked === 'bearer')
        ? []
        : [{ what: 'nobody', call: withHeaders(call(), { authorization: tokens.powerless }), status: [403] }],
  },
  {
    name: 'a malformed id',
    breaks: (endpoint, call) =>
      parametersOf(endpoint, 'path').flatMap(({ name }) =>
        MALFORMED.map((value) => ({
          what: `${name}=${value.slice(0, 20)}`,
          call: { ...call(), params: { ...call().params, [name]: value } },
          status: [400, 404, 414, 422],
        })),
      ),
  },
  {
    name: 'an id in capitals',
    breaks: (endpoint, call) =>
      parametersOf(endpoint, 'path')
        .filter(({ schema }) => schema.format === 'uuid')
        .map(({ name }) => ({
          what: name,
          call: { ...call(), params: { ...call().params, [name]: `${call().params[name]}`.toUpperCase() } },
          status: [400],
        })),
  },
  {
    name: 'a time that not every part of us reads',
    behind: true,
    breaks: (endpoint, call) => {
      const isTime = ({ format }: JsonSchema) => format === 'date-time'
      const queried = parametersOf(endpoint, 'query').filter(({ schema }) => isTime(schema))
      const members = Object.entries(bodyOf(endpoint)?.properties ?? {}).filter(([, schema]) => isTime(schema))
      return ODD_TIMES.flatMap((time) => [
        ...queried.map(({ name }) => ({
          what: `${name}=${time}`,
          call: { ...call(), query: [...call().query, [name, encodeURIComponent(time)]] as Call['query'] },
          status: [400],
        })),
        ...members.map(([name]) => ({
          what: `${name} ${time}`,
          call: withMember(call(), name, time),
          status: [400, 422],
        })),
      ])
    },
  },
  {
    name: 'an unknown id',
    breaks: (endpoint, call) =>
      parametersOf(endpoint, 'path').flatMap(({ name }) => {
        if (CHOSEN.has(name) || SIGNED.has(endpoint.name)) return []
        const before = call()
        const value = unknownId(name)
        const text = JSON.stringify(before.body ?? null).replaceAll(
          JSON.stringify(before.params[name]),
          JSON.stringify(value),
        )
        const body = before.body === undefined ? {} : { body: JSON.parse(text) }
        return {
          what: `${name}=${value}`,
          call: { ...before, ...body, params: { ...before.params, [name]: value } },
          status: [OF_MACHINES.test(endpoint.name) ? 403 : 404],
        }
      }),
  },
  {
    name: 'a query parameter of another type',
    behind: true,
    breaks: (endpoint, call) =>
      parametersOf(endpoint, 'query').flatMap(({ name, schema }) => {
        const type = [schema.type ?? []].flat()[0]
        const strict = type !== 'string' || schema.format !== undefined || schema.enum !== undefined
        const value = type === 'array' && !schema.items?.enum ? undefined : strict ? 'neither-of-it' : undefined
        const bad = { ...call(), query: call().query.filter(([given]) => given !== name) }
        const nul: Broken = {
          what: `${name}=NUL`,
          call: { ...bad, query: [...bad.query, [name, 'a%00b']] },
          status: DOCUMENTED_4XX,
        }
        if (name === 'page_token' || value === undefined) return strict ? [] : takesNul(schema) ? [nul] : []
        return [
          { what: `${name}=${value}`, call: { ...bad, query: [...bad.query, [name, value]] }, status: [400] },
        ] as Broken[]
      }),
  },
  {
    name: 'or takes a number that no column holds',
    behind: true,
    breaks: (endpoint, call) =>
      parametersOf(endpoint, 'query')
        .filter(({ schema }) => [schema.type ?? []].flat().some((type) => type === 'integer' || type === 'number'))
        .flatMap(({ name }) =>
          ['2147483648', '9223372036854775808', '1e308', '1e999'].map((value) => ({
            what: `${name}=${value}`,
            call: { ...call(), query: [...call().query, [name, value]] as Call['query'] },
            status: [200, 400, 404, 422],
          })),
        ),
  },
  {
    name: 'a number that is not written in decimal digits',
    behind: true,
    breaks: (endpoint, call) =>
      parametersOf(endpoint, 'query')
        .filter(({ schema }) => [schema.type ?? []].flat().some((type) => type === 'integer' || type === 'number'))
        .flatMap(({ name }) =>
          ['0x10', '1e1', '%2B5', '5.', '%205', '0b1'].map((value) => ({
            what: `${name}=${value}`,
            call: { ...call(), query: [...call().query, [name, value]] as Call['query'] },
            status: [400],
          })),
        ),
  },
  {
    name: 'a page that cannot be',
    behind: true,
    breaks: (endpoint, call) =>
      parametersOf(endpoint, 'query').flatMap(({ name, schema }) => {
        const { maximum } = schema as JsonSchema & { maximum?: number }
        const values =
          name === 'page_size' || name === 'limit'
            ? ['-1', 'many', '1.5', ...(maximum ? [String(maximum + 1), '9'.repeat(20)] : [])]
            : name === 'page_token'
              ? ['abc', 'abc.def', 'eyJsIjoiYSIsImsiOltdfQ.AAAAAAAAAAAAAAAAAAAAAA', '%00', 'x'.repeat(5000)]
              : []
        return values.map((value) => ({
          what: `${name}=${value.slice(0, 30)}`,
          call: { ...call(), query: [...call().query, [name, value]] as Call['query'] },
          status: value === '%00' ? [400, 422] : [400],
        }))
      }),
  },
  {
    name: 'an unknown member of the body',
    breaks: (endpoint, call) =>
      WRITES.includes(endpoint.method) &&
      isServed(endpoint.operation) &&
      !OPEN_BODY.has(endpoint.name) &&
      !SIGNED.has(endpoint.name)
        ? [
            {
              what: 'colour',
              call: asJson(call(), JSON.stringify({ ...(call().body as object), colour: 'red' })),
              // A merge patch may name any member; members that cannot be written are refused separately.
              status: endpoint.method === 'PATCH' ? [400, 422] : [400],
            },
          ]
        : [],
  },
  {
    name: 'a member of another type, or none',
    behind: true,
    breaks: (endpoint, call) => {
      const schema = bodyOf(endpoint)
      if (!schema || SIGNED.has(endpoint.name)) return []
      const { body } = call()
      const members = schema.properties ?? Object.fromEntries(Object.keys(body as object).map((name) => [name, {}]))
      const status = [400, 422]
      return Object.entries(members).flatMap(([name, member]) => {
        const wrong = schema.properties ? wrongValue(member as JsonSchema) : [[]]
        const { [name]: _left, ...rest } = body as Record<string, unknown>
        return [
          ...(wrong === undefined ? [] : [{ what: `${name} wrong`, call: withMember(call(), name, wrong), status }]),
          ...(schema.required?.includes(name)
            ? [
                { what: `${name} null`, call: withMember(call(), name, null), status },
                // A member with a default may be left out: the app fills it in.
                ...(hasDefault(member as JsonSchema)
                  ? []
                  : [{ what: `${name} missing`, call: { ...call(), body: rest }, status }]),
              ]
            : []),
        ]
      })
    },
  },
  {
    name: 'text that cannot be stored',
    behind: true,
    breaks: (_endpoint, call) =>
      Object.entries((call().body ?? {}) as object)
        .filter(([, value]) => typeof value === 'string')
        .flatMap(([name, value]) =>
          ['\u0000', '\ud800'].map((char) => ({
            what: `${name} with ${JSON.stringify(char)}`,
            call: withMember(call(), name, `${value}${char}`),
            status: DOCUMENTED_4XX,
          })),
        ),
  },
  {
    name: 'what is no JSON object',
    behind: true,
    breaks: (endpoint, call) => {
      if (!WRITES.includes(endpoint.method) || !isServed(endpoint.operation) || SIGNED.has(endpoint.name)) return []
      const taken = bodyOf(endpoint) ? ['null', '7'] : []
      // A body whose members are all optional may be left out.
      if (endpoint.operation.requestBody?.required) taken.push('')
      const deep = `${'{"a":'.repeat(60)}1${'}'.repeat(60)}`
      const texts = ['{', '[]', '"x"', '{"a":1}}', '{"a":1e999}', '{"a":1,"a":2}', '{"__proto__":{"a":1}}', deep]
      return [...texts, ...taken, Buffer.from([0x7b, 0xff, 0x7d])].map((raw) => ({
        what: String(raw).slice(0, 20),
        call: asJson(call(), raw),
        status: endpoint.method === 'PATCH' || String(raw).includes('1e999') ? [400, 422] : [400],
      }))
    },
  },
  {
    name: 'another content type',
    breaks: (endpoint, call) => {
      if (!WRITES.includes(endpoint.method) || !isServed(endpoint.operation) || SIGNED.has(endpoint.name)) return []
      const taken = Object.keys(endpoint.operation.requestBody?.content ?? { 'application/json': 1 })
      const types = ['text/plain', 'application/xml', 'multipart/form-data; boundary=x', 'application/json; charset=x']
      const patches = ['application/merge-patch+json', 'application/json-patch+json', 'application/json']
      return [...types, ...patches.filter((type) => !taken.includes(type))].map((type) => ({
        what: type,
        call: { ...withHeaders(call(), { 'content-type': type }), raw: JSON.stringify(call().body ?? { a: 1 }) },
        status: [415],
      }))
    },
  },
  {
    name: 'a body that is too large',
    breaks: (endpoint, call, { body_limit }) =>
      WRITES.includes(endpoint.method) && isServed(endpoint.operation)
        ? [{ what: 'stated', call: asJson(statedLength(call(), body_limit(endpoint) + 1), '{'), status: [413] }]
        : [],
  },
  {
    name: 'no Idempotency-Key, or one that is none',
    behind: true,
    breaks: (endpoint, call) =>
      takesKey(endpoint)
        ? [undefined, '', 'k'.repeat(256), 'ü', 'a\tb'].map((key) => ({
            what: String(key).slice(0, 8),
            call: withHeaders(call(), { 'idempotency-key': key }),
            status: [400],
          }))
        : [],
  },
  {
    name: 'an If-Match that is none of ours',
    behind: true,
    breaks: (endpoint, call) =>
      parametersOf(endpoint, 'header').some(({ name }) => name === 'if-match')
        ? ['x', '""', '"1', 'W/"99999999999999999999"', 'x'.repeat(300)].map((tag) => ({
            what: tag.slice(0, 20),
            call: withHeaders(call(), { 'if-match': tag }),
            // No patch and no view is prepared here: a missing one is reported before its version is checked.
            status: [400, 409, 412, ...(/{(patch|view)_id}/.test(endpoint.path) ? [404] : [])],
          }))
        : [],
  },
]

/** Text parameters that are compared with stored text, which cannot hold a NUL. */
const takesNul = ({ type }: JsonSchema) => [type ?? []].flat().includes('string')
