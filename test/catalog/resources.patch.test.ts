import { randomUUID } from 'node:crypto'
import suite from 'json-patch-test-suite/tests.json' with { type: 'json' }
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { jsonPatch } from '../../apps/catalog/document/json-patch.ts'
import { type Catalog, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog({ env: { CATALOG__GRAPH__ENABLED: 'false' } })
})
afterAll(() => c.stop())

const make = async (doc: unknown): Promise<string> => {
  const desired_state = { provider: 'p', kind: 'k', attributes: { doc } }
  return (await c.as('ada').record({ type_key: 'infra.generic', name: `n-${randomUUID()}`, desired_state })).resource_id
}
const type = 'application/json-patch+json'
const patch = (id: string, operations: unknown, query = '?expected_version=1') =>
  c.as('olga').patch(`/v1/resources/${id}${query}`, operations, { type })

describe('JSON Patch over HTTP, to the letter of RFC 6902', () => {
  type Operation = { op: string; path: unknown; from?: unknown; value?: unknown }
  type Case = {
    comment?: string
    doc: unknown
    patch: Operation[]
    expected?: unknown
    error?: string
    disabled?: boolean
  }
  const holdsNull = (value: unknown): boolean =>
    value === null || (typeof value === 'object' && Object.values(value as object).some(holdsNull))
  // A state holds no null (catalog.md 1).
  const cases = (suite as Case[]).filter(
    (one) => one.disabled !== true && ![one.doc, one.expected ?? 0, one.patch].some(holdsNull),
  )
  const at = (pointer: unknown) => (typeof pointer === 'string' ? `/desired_state/attributes/doc${pointer}` : pointer)

  it.each(cases.map((one, index) => [`${index} ${one.comment ?? one.error ?? ''}`, one] as const))(
    '%s',
    async (_, { doc, patch: operations, expected, error }) => {
      const moved = operations.map(({ path, from, ...rest }) => ({
        ...rest,
        ...(path !== undefined && { path: at(path) }),
        ...(from !== undefined && { from: at(from) }),
      }))
      const reply = await patch(await make(doc), moved)
      if (error !== undefined) expect([400, 409, 422], reply.text).toContain(reply.status)
      else expect(reply.status, reply.text).toBe(200)
      if (error === undefined && expected !== undefined)
        expect(reply.body.desired_state.attributes.doc).toEqual(expected)
    },
  )
  it('covers almost the whole suite', () => expect(cases.length).toBeGreaterThan(60))

  it('takes 1,000 operations, each within the bounds of a document', async () => {
    const add = { op: 'add', path: '/labels/a', value: '1', note: 'why' }
    const many = (count: number) => Array.from({ length: count }, () => add)
    const id = await make(1)
    expect(await patch(id, many(1001))).toMatchObject({ status: 400, body: { code: 'schema_violation' } })
    const members = Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`m${at}`, 1]))
    expect(await patch(id, [add, { ...add, ...members }])).toMatchObject({ status: 400 })
    expect(await patch(id, many(1000))).toMatchObject({ status: 200, body: { version: 2, labels: { a: '1' } } })
  })

  it('counts a merge patch as one document', async () => {
    const labels = [1, 2].map((part) =>
      Object.fromEntries(Array.from({ length: 600 }, (_, at) => [`m${part}${at}`, 1])),
    )
    const reply = await c.as('olga').patch('/v1/resources/any?expected_version=1', { labels })
    expect(reply).toMatchObject({ status: 400, body: { detail: 'The document has more than 1000 members.' } })
  })

  it('changes a large document in place, and the given one never', () => {
    const members = () => Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`m${at}`, { at }]))
    const document = { a: members(), constructor: 1 }
    const began = performance.now()
    const moves = Array.from({ length: 1000 }, (_, at) => ({
      ...{ op: 'move', from: at % 2 === 0 ? '/a' : '/b', path: at % 2 === 0 ? '/b' : '/a' },
    }))
    const adds = Array.from({ length: 1000 }, (_, at) => ({ op: 'add', path: `/a/n${at}`, value: { at } }))
    const result = jsonPatch(document, [...moves, ...adds, { op: 'move', from: '/a/m1', path: '/constructor' }])
    expect(performance.now() - began).toBeLessThan(2000)
    const { m1: _, ...rest } = members()
    const added = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`n${at}`, { at }]))
    expect(result).toEqual({ a: { ...rest, ...added }, constructor: { at: 1 } })
    expect(() => jsonPatch(document, [...adds, { op: 'remove', path: '/a/none' }])).toThrow('no value')
    expect(document).toEqual({ a: members(), constructor: 1 })
  })

  it('ignores members that an operation does not define', async () => {
    const add = { op: 'add', path: '/labels/a', value: '1', from: 7, note: 'why', __meta: { deep: [1] } }
    expect(await patch(await make(1), [add])).toMatchObject({ status: 200, body: { version: 2, labels: { a: '1' } } })
  })

  it('tests everything that the document shows', async () => {
    const id = await make(1)
    const { scope, health_status, conditions } = (await c.as('olga').get(`/v1/resources/${id}`)).body
    const tests = Object.entries({ scope, health_status, conditions }).map(([name, value]) => ({
      op: 'test',
      path: `/${name}`,
      value,
    }))
    expect((await patch(id, tests)).status).toBe(200)
    expect((await patch(id, [{ op: 'test', path: '/health_status', value: 'healthy' }])).status).toBe(409)
  })

  it('ends a resource as any other request does, wherever the state comes from', async () => {
    const id = await make(1)
    const needs = { type_key: 'depends_on', target_id: id }
    const user = await c
      .as('ada')
      .record({
        ...{ type_key: 'infra.generic', name: `n-${randomUUID()}`, desired_state: { provider: 'p', kind: 'k' } },
        relationships: [needs],
      })
    const operations = [
      { op: 'add', path: '/labels/x', value: 'retired' },
      { op: 'copy', from: '/labels/x', path: '/lifecycle_status' },
    ]
    const end = (expected_version = 1) =>
      c
        .as('ada')
        .patch(`/v1/resources/${id}?mode=record_only&expected_version=${expected_version}`, operations, { type })
    expect(await end()).toMatchObject({ status: 422, body: { code: 'blocked_by_dependents' } })
    await c
      .as('ada')
      .patch(`/v1/resources/${user.resource_id}?mode=record_only`, {
        ...{ lifecycle_status: 'retired', expected_version: 1 },
      })
    expect(await end()).toMatchObject({ status: 200, body: { lifecycle_status: 'retired' } })
    // A resource that ends excludes a child that is created at the same moment.
    for (let round = 0; round < 15; round++) {
      const parent_id = await make(1)
      const path = `/v1/resources/${parent_id}?mode=record_only&expected_version=1`
      const child = { type_key: 'infra.generic', name: 'child', desired_state: { provider: 'p', kind: 'k' }, parent_id }
      const both = await Promise.all([
        c.as('ada').patch(path, operations, { type }),
        c.as('ada').post('/v1/resources?mode=record_only', child),
      ])
      expect(
        both.filter(({ status }) => status < 300),
        both.map(({ text }) => text).join(),
      ).toHaveLength(1)
    }
  })

  it('refuses to remove the state of a lifecycle, by either form of patch', async () => {
    const path = `/v1/resources/${await make(1)}?mode=record_only&expected_version=1`
    for (const reply of [
      await c.as('ada').patch(path, { lifecycle_status: null }),
      await c.as('ada').patch(path, [{ op: 'remove', path: '/lifecycle_status' }], { type }),
    ])
      expect(reply).toMatchObject({ status: 422, body: { violations: [{ pointer: '/lifecycle_status' }] } })
  })

  it('accepts an empty patch as a change of nothing', async () => {
    const id = await make(1)
    expect(await patch(id, [])).toMatchObject({ status: 200, body: { version: 1 } })
    expect(await patch(id, [], '?expected_version=7')).toMatchObject({ status: 409 })
  })

  it.each([
    [[{ op: 'burn', path: '/owner' }], '/0/op', 400],
    [[{ op: 'add', value: 1 }], '/0/path', 400],
    [[7], '/0', 400],
    [[{ op: 'test', path: '/owner' }], '/0', 422],
    [[{ op: 'move', path: '/owner', from: 7 }], '/0', 422],
    [[{ op: 'replace', path: '', value: {} }], '', 422],
    [[{ op: 'add', path: 'owner', value: 'x' }], 'owner', 400],
  ])('names the place of the fault in %j', async (operations, pointer, status) => {
    const reply = await patch(await make(1), operations)
    expect(reply).toMatchObject({ status, body: { violations: [{ pointer }] } })
    expect(reply.body.violations).toHaveLength(1)
    expect(reply.body.detail).not.toMatch(/^body|anyOf/)
  })
})

it('names a string that is too long, with its limit', async () => {
  const large = await patch('any', [{ op: 'add', path: '/labels/a', value: 'b' }], '?expected_version=9007199254740993')
  expect(large).toMatchObject({ status: 400, body: { violations: [{ pointer: '/querystring/expected_version' }] } })
  const named = await c
    .as('olga')
    .post('/v1/resources', { type_key: 'infra.generic', name: 'n', labels: { 'a b': 'c' } })
  const [fault, ...others] = named.body.violations as { pointer: string; message: string }[]
  expect(fault).toMatchObject({ pointer: '/labels/a b', message: expect.stringContaining('is not a valid name here') })
  expect(others).toEqual([])
  const most = { provider: 'p', kind: 'k', attributes: { a: 'x'.repeat(65_536) } }
  const fits = { type_key: 'infra.generic', name: 'longest', desired_state: most }
  expect((await c.as('olga').post('/v1/resources', fits)).status).toBeLessThan(300)
  const desired_state = { provider: 'p', kind: 'k', attributes: { 'a/b': ['short', 'x'.repeat(70_000)] } }
  const reply = await c.as('olga').post('/v1/resources', { type_key: 'infra.generic', name: 'long', desired_state })
  expect(reply).toMatchObject({
    status: 400,
    body: {
      code: 'schema_violation',
      detail: '/desired_state/attributes/a~1b/1 is longer than 65536 characters in its JSON form.',
      violations: [{ pointer: '/desired_state/attributes/a~1b/1', code: 'maxLength' }],
    },
  })
})
