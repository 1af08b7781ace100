import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { typeForCreate } from '../../apps/catalog/rules/change.ts'
import { type Ask, type Catalog, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  // Graphs by SQL alone: graphs.test.ts tests those from memory.
  c = await startCatalog({ env: { CATALOG__GRAPH__ENABLED: 'false' } })
  await seedRegion(c, 'eu1', 1)
})
afterAll(() => c.stop())

const service = { type_key: 'infra.service', name: 'good', desired_state: { tier: 1 } }
const host = '/v1/resources/eu1-web-01'
const merge = 'application/merge-patch+json'
const deep = (n: number): unknown => (n === 0 ? 1 : { a: deep(n - 1) })
const result = {
  command_id: randomUUID(),
  idempotency_key: 'k',
  operation_id: randomUUID(),
  resource_id: 'eu1-web-01',
  expected_version: 1,
  changes: { observed_state_patch: { release: '2' } },
}
const observation = {
  command_id: randomUUID(),
  idempotency_key: 'k',
  resource_id: 'eu1-web-01',
  source: 's',
  check_key: 'c',
  status: 'healthy',
  observed_at: '2026-01-01T00:00:00Z',
}

type Case = [
  name: string,
  status: number,
  code: string,
  method: 'POST' | 'PATCH' | 'GET',
  path: string,
  body?: unknown,
  ask?: Ask,
]

const HOSTILE_GRAPHS: [string, number, string, string][] = [
  ['a graph past the bound of depth', 400, 'schema_violation', 'root_id=eu1&depth=11'],
  ['a depth that is no number', 400, 'schema_violation', 'root_id=eu1&depth=1e9'],
  ['a negative fanout', 400, 'schema_violation', 'root_id=eu1&fanout=-1'],
  ['more nodes than may be', 400, 'schema_violation', 'root_id=eu1&max_nodes=5001'],
  ['more edges than may be', 400, 'schema_violation', 'root_id=eu1&max_edges=99999999999999999999'],
  ['an unknown direction', 400, 'schema_violation', 'root_id=eu1&direction=up'],
  ['an unknown format', 400, 'schema_violation', 'root_id=eu1&format=svg'],
  ['an unknown parameter of a graph', 400, 'unknown_field', 'root_id=eu1&colour=red'],
  ['an unknown relationship', 400, 'schema_violation', 'root_id=eu1&relationship_types=likes'],
  ['an unknown type in a graph', 400, 'schema_violation', 'root_id=eu1&node_types=toaster'],
  ['a time that is none', 400, 'schema_violation', 'root_id=eu1&at=yesterday'],
  ['a time that does not exist', 400, 'schema_violation', 'root_id=eu1&at=2020-19-40T00:00:00Z'],
  ['a time to come', 400, 'time_in_future', 'root_id=eu1&at=2999-01-01T00:00:00Z'],
  ['the past with a bound on age', 400, 'schema_violation', 'root_id=eu1&at=2020-01-01T00:00:00Z&max_lag_ms=1'],
  ['roots and a filter', 400, 'schema_violation', 'root_id=eu1&filter=name=x'],
  ['a graph with a broken filter', 400, 'filter_invalid', 'filter=name=x%20OR'],
  ['more roots than may be', 422, 'too_many_roots', Array.from({ length: 21 }, (_, i) => `root_id=x${i}`).join('&')],
  ['more roots than nodes', 422, 'too_many_roots', 'root_id=eu1&root_id=eu1-a&max_nodes=1'],
  ['a root with a NUL', 422, 'invalid_text', 'root_id=eu1%00'],
  ['a root of 10 kB', 400, 'schema_violation', `root_id=${'x'.repeat(10_000)}`],
]
const publicly: Case[] = [
  ...['relationship_types', 'peer_types'].map(
    (name): Case => [
      `an unknown type in ${name}`,
      400,
      'schema_violation',
      'GET',
      `/v1/resources/eu1/relationships?${name}=nope`,
    ],
  ),
  ['an unknown field', 400, 'unknown_field', 'POST', '/v1/resources', { ...service, color: 'red' }],
  ['a wrong type', 400, 'schema_violation', 'POST', '/v1/resources', { ...service, name: 7 }],
  ['a missing field', 400, 'schema_violation', 'POST', '/v1/resources', { name: 'x' }],
  ['no body', 400, 'schema_violation', 'POST', '/v1/resources', undefined, { raw: '' }],
  ['broken JSON', 400, 'malformed', 'POST', '/v1/resources', undefined, { raw: '{"a":' }],
  ['a doubled member', 400, 'schema_violation', 'POST', '/v1/resources', undefined, { raw: '{"name":"a","name":"b"}' }],
  ['a prototype', 400, 'malformed', 'POST', '/v1/resources', undefined, { raw: '{"__proto__":{"x":1},"name":"a"}' }],
  ['another content type', 415, 'media_type', 'POST', '/v1/resources', service, { type: 'text/plain' }],
  ['a patch type on POST', 415, 'media_type', 'POST', '/v1/resources', service, { type: merge }],
  [
    'no content type',
    415,
    'media_type',
    'POST',
    '/v1/resources',
    undefined,
    { raw: '{}', type: null, headers: { 'content-type': '' } },
  ],
  [
    'plain JSON on PATCH',
    415,
    'media_type',
    'PATCH',
    host,
    { labels: {} },
    { type: 'application/json', headers: { 'if-match': '"1"' } },
  ],
  [
    'an oversized body',
    413,
    'too_large',
    'POST',
    '/v1/resources',
    undefined,
    { raw: JSON.stringify({ ...service, x: 'y'.repeat(1_100_000) }) },
  ],
  ['a deep body', 400, 'schema_violation', 'POST', '/v1/resources', { ...service, desired_state: deep(40) }],
  [
    'a deep state',
    422,
    'too_deep',
    'POST',
    '/v1/resources',
    { type_key: 'infra.generic', name: 'g', desired_state: { provider: 'p', kind: 'k', attributes: deep(25) } },
  ],
  ['null in a state', 422, 'null_in_state', 'POST', '/v1/resources', { ...service, desired_state: { tier: null } }],
  [
    'an unsafe integer',
    422,
    'unsafe_integer',
    'POST',
    '/v1/resources',
    undefined,
    { raw: '{"type_key":"infra.service","name":"u","desired_state":{"port":9007199254740993}}' },
  ],
  ...['1E-400', '-2.5e-0400', `0.${'0'.repeat(240)}1e-99`, `1${'0'.repeat(240)}e99`].map(
    (number): Case => [
      `a number beyond double precision, ${number.slice(0, 12)},`,
      422,
      'invalid_text',
      'POST',
      '/v1/resources',
      undefined,
      { raw: `{"type_key":"infra.service","name":"u","desired_state":{"port":${number}}}` },
    ],
  ),
  [
    'U+0000 in a state',
    422,
    'invalid_text',
    'POST',
    '/v1/resources',
    { ...service, desired_state: { url: 'https://a\u0000' } },
  ],
  [
    'U+0000 in an annotation',
    422,
    'invalid_text',
    'POST',
    '/v1/resources',
    { ...service, annotations: { a: 'x\u0000y' } },
  ],
  [
    'half a surrogate pair',
    422,
    'invalid_text',
    'POST',
    '/v1/resources',
    undefined,
    { raw: '{"type_key":"infra.service","name":"s","annotations":{"a":"\\ud800"}}' },
  ],
  ['a control character in a name', 400, 'schema_violation', 'POST', '/v1/resources', { ...service, name: 'a\nb' }],
  ['a wrong label', 400, 'schema_violation', 'POST', '/v1/resources', { ...service, labels: { 'a b': 'c' } }],
  [
    'a state of another shape',
    422,
    'schema_violation',
    'POST',
    '/v1/resources',
    { ...service, desired_state: { tier: 9 } },
  ],
  ['an unknown type', 422, 'unknown', 'POST', '/v1/resources', { ...service, type_key: 'infra.teapot' }],
  ['an abstract type', 422, 'abstract', 'POST', '/v1/resources', { ...service, type_key: 'infra.managed' }],
  ['no key', 400, 'idempotency_key_required', 'POST', '/v1/resources', service, { key: null }],
  ['a key that is too long', 400, 'schema_violation', 'POST', '/v1/resources', service, { key: 'k'.repeat(256) }],
  ['facts without record_only', 422, 'read_only_field', 'POST', '/v1/resources', { ...service, observed_state: {} }],
  ['an unknown mode', 400, 'schema_violation', 'POST', '/v1/resources?mode=magic', service],
  ['an unknown id', 404, 'resource', 'GET', '/v1/resources/not-there'],
  [
    'an unknown id to patch',
    404,
    'resource',
    'PATCH',
    '/v1/resources/not-there?expected_version=1',
    { labels: {} },
    { type: merge },
  ],
  ['an unknown id’s relationships', 404, 'resource', 'GET', '/v1/resources/not-there/relationships'],
  ['an unknown id’s health', 404, 'resource', 'GET', '/v1/resources/not-there/health'],
  ['an unknown id’s operations', 404, 'resource', 'GET', '/v1/resources/not-there/operations-summary'],
  ['an unknown type to read', 404, 'type', 'GET', '/v1/resource-types/infra.teapot'],
  ['an unknown version of a type', 404, 'version', 'GET', '/v1/resource-types/infra.host?version=99'],
  ['an unknown route', 404, 'route', 'GET', '/v1/teapots'],
  ['an unknown parameter', 400, 'unknown_field', 'GET', '/v1/resources?colour=red'],
  ['a negative page size', 400, 'schema_violation', 'GET', '/v1/resources?page_size=-1'],
  ['a page size that is no number', 400, 'schema_violation', 'GET', '/v1/resources?page_size=many'],
  ['a page size in hexadecimal', 400, 'schema_violation', 'GET', '/v1/resources?page_size=0x10'],
  ['a page size with an exponent', 400, 'schema_violation', 'GET', '/v1/resources?page_size=1e1'],
  ['a filter that is not percent-encoded', 400, 'malformed', 'GET', '/v1/resources?label=env=%zz'],
  ['a filter that is not UTF-8', 400, 'malformed', 'GET', '/v1/resources?filter=name:%ff'],
  ['a forged page token', 400, 'page_token_invalid', 'GET', '/v1/resources?page_token=abc.def'],
  ['a broken filter', 400, 'filter_invalid', 'GET', `/v1/resources?filter=${encodeURIComponent('name:web drift=x')}`],
  ['a filter on nothing', 400, 'filter_invalid', 'GET', '/v1/resources?filter=teapot=1'],
  ['a health that is none', 400, 'schema_violation', 'GET', '/v1/resources?health_status=healthy,fine'],
  ['a health of places that is none', 400, 'schema_violation', 'GET', '/v1/topology/regions?health_status=fine'],
  ['a health to search for that is none', 400, 'schema_violation', 'GET', '/v1/search?q=web&health_status=fine'],
  ['an unknown sort key', 400, 'schema_violation', 'GET', '/v1/resources?sort=color'],
  ['a graph without root', 400, 'root_required', 'GET', '/v1/graphs/resources'],
  ['a graph from an unknown root', 404, 'resource', 'GET', '/v1/graphs/resources?root_id=not-there'],
  ['a graph too deep for SQL', 422, 'query_too_expensive', 'GET', '/v1/graphs/resources?root_id=eu1&depth=4'],
  ...HOSTILE_GRAPHS.map(
    ([what, status, code, query]): Case => [what, status, code, 'GET', `/v1/graphs/resources?${query}`],
  ),
  [
    'an If-Match that is none of ours',
    412,
    'version_mismatch',
    'PATCH',
    host,
    { labels: {} },
    { type: merge, headers: { 'if-match': 'W/"x"' } },
  ],
  [
    'a list as merge patch',
    400,
    'schema_violation',
    'PATCH',
    `${host}?expected_version=1`,
    [{ op: 'remove', path: '/owner' }],
    { type: merge },
  ],
  [
    'an unknown patch operation',
    400,
    'schema_violation',
    'PATCH',
    `${host}?expected_version=1`,
    [{ op: 'burn', path: '/owner' }],
    { type: 'application/json-patch+json' },
  ],
  [
    'a patch into nothing',
    422,
    'schema_violation',
    'PATCH',
    `${host}?expected_version=1`,
    [{ op: 'replace', path: '/labels/nothing/here', value: 'x' }],
    { type: 'application/json-patch+json' },
  ],
]

const inside: Case[] = [
  ['an unknown field', 400, 'unknown_field', 'POST', 'apply-operation-result', { ...result, history: [] }],
  ['an unknown change', 400, 'unknown_field', 'POST', 'apply-operation-result', { ...result, changes: { log: 'x' } }],
  ['a wrong type', 400, 'schema_violation', 'POST', 'apply-operation-result', { ...result, expected_version: '1' }],
  [
    'a command_id that is no UUID',
    400,
    'schema_violation',
    'POST',
    'apply-operation-result',
    { ...result, command_id: 'x' },
  ],
  ['an empty command', 400, 'schema_violation', 'POST', 'apply-operation-result', { ...result, changes: {} }],
  ['another content type', 415, 'media_type', 'POST', 'apply-operation-result', result, { type: 'application/xml' }],
  [
    'an oversized body',
    413,
    'too_large',
    'POST',
    'apply-operation-result',
    undefined,
    { raw: JSON.stringify({ x: 'y'.repeat(1_100_000) }) },
  ],
  [
    'a future observation',
    400,
    'observed_in_future',
    'POST',
    'health-observations',
    { ...observation, observed_at: '2999-01-01T00:00:00Z' },
  ],
  [
    'a time that is none',
    400,
    'schema_violation',
    'POST',
    'health-observations',
    { ...observation, observed_at: 'soon' },
  ],
  ['a status that is none', 400, 'schema_violation', 'POST', 'health-observations', { ...observation, status: 'fine' }],
  ['U+0000 in a summary', 422, 'invalid_text', 'POST', 'health-observations', { ...observation, summary: 'a\u0000' }],
  [
    'an unknown capability',
    422,
    'unknown',
    'POST',
    'provided-capabilities',
    {
      command_id: randomUUID(),
      idempotency_key: 'k',
      resource_id: 'eu1-web-01',
      expected_version: 1,
      provided_capability_changes: [{ op: 'add', capability_key: 'x.y', version: '1.0.0' }],
    },
  ],
]

describe('bad input gets the right refusal as problem+json, and changes nothing', () => {
  const check = async (
    reply: { status: number; body: Record<string, unknown>; headers: Headers; text: string },
    status: number,
    code: string,
  ) => {
    expect({ status: reply.status, code: reply.body?.code }).toEqual({ status, code })
    expect(reply.headers.get('content-type')).toContain('application/problem+json')
    expect(reply.body).toMatchObject({
      status,
      type: expect.any(String),
      title: expect.any(String),
      detail: expect.any(String),
      hint: expect.any(String),
      request_id: expect.any(String),
      retryable: expect.any(Boolean),
    })
    expect(reply.text).not.toMatch(/select |at Object\.|node_modules/)
  }

  it.each(publicly)('%s: %d %s', async (_name, status, code, method, path, body, ask) => {
    const before = await c.traces()
    const olga = c.as('olga')
    const reply =
      method === 'GET'
        ? await olga.get(path, ask)
        : method === 'POST'
          ? await olga.post(path, body, ask)
          : await olga.patch(path, body, ask)
    await check(reply, status, code)
    expect(await c.traces()).toEqual(before)
  })

  it.each(inside)('inside, %s: %d %s', async (_name, status, code, method, route, body, ask) => {
    const before = await c.traces()
    await check(await c.internally(method, `/resources/eu1-web-01/${route}`, body, ask), status, code)
    expect(await c.traces()).toEqual(before)
  })

  it('refuses a missing, broken and foreign token on every route', async () => {
    for (const path of [
      '/v1/resources',
      '/v1/resource-types',
      '/v1/topology/regions',
      '/v1/graphs/resources?root_id=eu1',
      host,
    ]) {
      for (const authorization of ['', 'Bearer x', `Basic ${c.tokenOf(c.people.vic)}`]) {
        const reply = await c.as('vic').get(path, { headers: { authorization } })
        expect(reply).toMatchObject({ status: 401, body: { category: 'policy_denied', code: 'invalid_token' } })
      }
    }
  })
})

describe('a type that is deprecated', () => {
  it('accepts no new resources', () => {
    const newest = c.deps.registry.types.newest('infra.service')
    if (!newest) throw new Error('infra.service is not loaded')
    const types = Object.assign(Object.create(c.deps.registry.types), {
      newest: () => ({ ...newest, status: 'deprecated' }),
    })
    expect(() => typeForCreate(types, 'infra.service')).toThrow(
      expect.objectContaining({ category: 'unsupported_resource_type', code: 'deprecated_for_create', status: 422 }),
    )
  })
})
