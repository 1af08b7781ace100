import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ownersAfter, refuseOwned, unstated } from '../../apps/catalog/rules/field-owners.ts'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 0)
})
afterAll(() => c.stop())

type Item = Record<string, unknown> & { external_id: string; name: string }
const service = (over: Record<string, unknown> = {}): Item => ({
  external_id: 'svc',
  type_key: 'infra.service',
  name: `svc-${randomUUID().slice(0, 8)}`,
  desired_state: { port: 80 },
  labels: { env: 'prod' },
  ...over,
})
const sourceOf = () => ({ kind: 'test', name: `s-${randomUUID()}` })
const take = async (source: object, item: object, options = {}, query = '') =>
  (
    await c
      .as('ada')
      .post(`/v1/resources:import${query}`, { source, items: [item], options }, query ? { key: null } : {})
  ).body.results[0]
const read = async (id: string) => (await c.as('vic').get(`/v1/resources/${id}?include=owners`)).body
const patch = async (id: string, body: object, query = '') => {
  const { version } = await read(id)
  return c.as('olga').patch(`/v1/resources/${id}?expected_version=${version}${query}`, body)
}
const actor = async (id: string) => (await read(id)).updated_by as string

describe('owners of fields', () => {
  it('show who set which field on request, and in no other read', async () => {
    const source = sourceOf()
    const { resource_id: id } = await take(source, service())
    expect((await read(id)).field_owners).toEqual({ '': `import:${source.name}` })
    await patch(id, { labels: { env: 'lab', team: 'a' } })
    const by = await actor(id)
    expect((await read(id)).field_owners).toEqual({
      '': `import:${source.name}`,
      '/labels/env': by,
      '/labels/team': by,
    })
    expect((await c.as('vic').get(`/v1/resources/${id}`)).body).not.toHaveProperty('field_owners')
    const list = await c.as('vic').get(`/v1/resources?ids=${id}&include=owners`)
    expect(list.body.items[0].field_owners).toEqual((await read(id)).field_owners)
  })

  it("refuse an import that would overwrite a person's field, name the fields and their owner, and yield to force", async () => {
    const source = sourceOf()
    const item = service()
    const { resource_id: id } = await take(source, item)
    await patch(id, { labels: { env: 'lab' }, desired_state: { port: 8080 } })
    const by = await actor(id)
    const before = await read(id)
    const wanted = { ...item, desired_state: { port: 81, protocol: 'http' } }
    for (const query of ['?validate_only=true', ''])
      expect(await take(source, wanted, {}, query)).toMatchObject({
        outcome: 'conflict',
        resource_id: id,
        problem: {
          category: 'version_conflict',
          code: 'field_owned',
          conflicts: [
            { path: '/desired_state/port', owner: by },
            { path: '/labels/env', owner: by },
          ],
          conflict_count: 2,
        },
      })
    expect(await read(id)).toEqual(before)
    expect(await take(source, wanted, { force: true })).toMatchObject({ outcome: 'updated' })
    expect(await read(id)).toMatchObject({
      desired_state: { port: 81, protocol: 'http' },
      labels: { env: 'prod' },
      field_owners: { '': `import:${source.name}` },
    })
    expect(await take(source, wanted)).toMatchObject({ outcome: 'unchanged' })
  })

  it('let a person keep their additions, and an import its unchanged fields', async () => {
    const source = sourceOf()
    const item = service()
    const { resource_id: id } = await take(source, item)
    await patch(id, { labels: { team: 'a' }, annotations: { note: 'n' } })
    const changed = { ...item, desired_state: { port: 81 } }
    expect(await take(source, changed, { complete_fields: true })).toMatchObject({ outcome: 'updated' })
    expect(await read(id)).toMatchObject({ labels: { env: 'prod', team: 'a' }, annotations: { note: 'n' } })
    expect(await take(source, changed, { complete_fields: true })).toMatchObject({ outcome: 'unchanged' })
  })

  it('do not restore what a person removed', async () => {
    const source = sourceOf()
    const item = service()
    const { resource_id: id } = await take(source, item)
    await patch(id, { labels: { env: null } })
    expect(await take(source, item)).toMatchObject({ outcome: 'conflict', problem: { code: 'field_owned' } })
    expect((await read(id)).labels).toEqual({})
  })

  it('remove what a source no longer states, unless someone else has set it since', async () => {
    const source = sourceOf()
    const attributes = { a: 1, b: 2, deep: { x: 1, y: 2 } }
    const item = {
      ...service({ type_key: 'infra.generic', labels: { env: 'prod', tier: 'gold' } }),
      desired_state: { provider: 'p', kind: 'k', attributes },
    }
    const { resource_id: id } = await take(source, item)
    await patch(id, { desired_state: { attributes: { b: 3, own: 1, deep: { y: 5 } } } })
    const less = { ...item, labels: { env: 'prod' }, desired_state: { provider: 'p', kind: 'k', attributes: {} } }
    expect(await take(source, less)).toMatchObject({ outcome: 'unchanged' })
    expect(await take(source, less, { complete_fields: true })).toMatchObject({ outcome: 'updated' })
    expect(await read(id)).toMatchObject({
      labels: { env: 'prod' },
      desired_state: { provider: 'p', kind: 'k', attributes: { b: 3, own: 1, deep: { y: 5 } } },
    })
    expect(Object.keys((await read(id)).labels)).toEqual(['env'])
    expect(Object.keys((await read(id)).desired_state.attributes).sort()).toEqual(['b', 'deep', 'own'])
  })

  it('follow a name back and an owner away, unless someone else has set them since', async () => {
    const source = sourceOf()
    const [whole, item] = [{ complete_fields: true }, service({ owner: 'team-a' })]
    const { owner: _, ...bare } = item
    const { resource_id: id } = await take(source, item)
    const other = `other-${item.name}`
    for (const [stated, seen] of [
      [
        { ...item, name: other },
        { display_name: other, owner: 'team-a' },
      ],
      [item, { display_name: item.name }],
      [{ ...item, display_name: 'Shown' }, { display_name: 'Shown' }],
      [bare, { display_name: item.name, owner: null }],
    ] as const) {
      expect(await take(source, stated, whole)).toMatchObject({ outcome: 'updated' })
      expect(await take(source, stated, whole)).toMatchObject({ outcome: 'unchanged' })
      const { display_name, owner = null } = await read(id)
      expect({ display_name, owner }).toMatchObject(seen)
    }
    await take(source, { ...item, display_name: 'Shown' }, whole)
    expect(await take(source, bare)).toMatchObject({ outcome: 'unchanged' })
    await patch(id, { owner: 'team-b', display_name: 'Mine' })
    expect(await take(source, bare, whole)).toMatchObject({ outcome: 'unchanged' })
    expect(await read(id)).toMatchObject({ owner: 'team-b', display_name: 'Mine' })
  })

  it('protect the values of an operation from an outdated import', async () => {
    const source = sourceOf()
    const item = { ...hostOf(`h-${randomUUID()}`, 'eu1-a-web'), external_id: 'host' } as Record<string, unknown>
    const { resource_id: _, observed_state: __, ...stated } = item
    const { resource_id: id, problem } = await take(source, stated)
    expect(problem).toBeUndefined()
    const operation_id = randomUUID()
    const done = await c.result(id, {
      operation_id,
      expected_version: 1,
      changes: { desired_state_patch: { release: '7.0.0' }, observed_state_patch: { release: '7.0.0' } },
    })
    expect(done.status).toBe(200)
    const behind = { ...stated, desired_state: { ...(stated.desired_state as object), release: '6.0.0' } }
    expect(await take(source, behind)).toMatchObject({
      outcome: 'conflict',
      problem: { conflicts: [{ path: '/desired_state/release', owner: `operation:${operation_id}` }] },
    })
    const caught_up = { ...stated, desired_state: { ...(stated.desired_state as object), release: '7.0.0' } }
    expect(await take(source, caught_up)).toMatchObject({ outcome: 'unchanged' })
  })

  it('assign the fields of a resource that an import adopts to the import', async () => {
    const source = sourceOf()
    const item = service()
    const { external_id: _, ...body } = item
    const { resource_id: id } = await c.as('ada').record(body)
    expect(await take(source, { ...item, desired_state: { port: 90 } }, { adopt: true })).toMatchObject({
      outcome: 'updated',
      resource_id: id,
    })
    expect((await read(id)).field_owners).toMatchObject({ '/desired_state/port': `import:${source.name}` })
  })

  it('apply to any manager by PATCH and bulk: 409 with the owners, unless forced', async () => {
    const { external_id: _, ...body } = service()
    const { resource_id: id } = await c.as('ada').record(body)
    const by = await actor(id)
    const refused = await patch(id, { labels: { env: 'lab', tool: 'x' } }, '&manager=site-config')
    expect(refused).toMatchObject({
      status: 409,
      body: { code: 'field_owned', conflicts: [{ path: '/labels/env', owner: by }], conflict_count: 1 },
    })
    const bulk = (query: string) => {
      const change = { resource_id: id, expected_version: 1, patch: { labels: { env: 'lab' } } }
      return c.as('olga').post(`/v1/resources:bulk${query}`, { items: [{ op: 'update', change }] })
    }
    expect((await bulk('?manager=site-config')).body.results[0]).toMatchObject({
      status: 409,
      body: { code: 'field_owned' },
    })
    expect(await patch(id, { labels: { tool: 'x' } }, '&manager=site-config')).toMatchObject({ status: 200 })
    expect(await patch(id, { labels: { tool: 'y' } }, '&manager=other')).toMatchObject({ status: 409 })
    expect(await patch(id, { labels: { tool: 'y' } }, '&manager=other&force=true')).toMatchObject({ status: 200 })
    expect((await read(id)).field_owners).toEqual({ '': by, '/labels/tool': 'other' })
    for (const name of ['import:netbox', 'user:x', 'A', '', 'user', 'operation', 'import'])
      expect(await patch(id, {}, `&manager=${name}`)).toMatchObject({ status: 400 })
  })

  it('name who manages a field and since when, and protect it unless forced', async () => {
    const { external_id: _, ...body } = service()
    const { resource_id: id, created_at } = await c.as('ada').record(body)
    const set = await patch(id, { labels: { env: 'lab', team: 'a' } })
    const since = set.body.updated_at as string
    const [ada, olga] = ['ada', 'olga'].map((name) => ({ owner: `user:${c.people[name as 'ada'].id}`, name }))
    expect((await read(id)).managed_fields).toEqual([
      { path: '', ...ada, since: created_at },
      { path: '/labels/env', ...olga, since },
      { path: '/labels/team', ...olga, since },
    ])
    const wish = { labels: { env: 'prod' } }
    const decided = (query: string) =>
      c.as('ada').patch(`/v1/resources/${id}?expected_version=2&reason=moved${query}`, wish)
    const before = await read(id)
    for (const query of ['&force=false', '&force=false&validate_only=true'])
      expect(await decided(query)).toMatchObject({
        status: 409,
        body: {
          code: 'field_owned',
          detail: expect.stringContaining(`/labels/env (olga, since ${since.slice(0, 19)}Z)`),
          conflicts: [{ path: '/labels/env', ...olga, since }],
        },
      })
    expect(await read(id)).toEqual(before)
    // Another manager's field does not block a patch that leaves it untouched.
    expect(await patch(id, { labels: { team: 'b' } }, '&force=false')).toMatchObject({ status: 200 })
    const taken = `/v1/resources/${id}?expected_version=3&force=true&reason=moved`
    expect((await c.as('ada').patch(taken, wish)).status).toBe(200)
    expect((await read(id)).field_owners).toEqual({ '': ada?.owner, '/labels/team': olga?.owner })
  })

  it('refuse a change by intent to fields of another manager', async () => {
    const host = hostOf(`h-${randomUUID()}`, 'eu1-a-web') as Record<string, unknown> & { resource_id: string }
    await c.as('ada').record(host)
    const asked = await patch(host.resource_id, { desired_state: { release: '9.9.9' } }, '&manager=site-config')
    expect(asked).toMatchObject({ status: 409, body: { conflicts: [{ path: '/desired_state/release' }] } })
    const forced = await patch(
      host.resource_id,
      { desired_state: { release: '9.9.9' } },
      '&manager=site-config&force=true',
    )
    expect(forced.status).toBe(202)
  })
})

describe('the rules of owners', () => {
  const row = (labels: object, field_owners: Record<string, string> = { '': 'a' }) => ({
    resource_id: 'r',
    display_name: 'r',
    owner: null,
    labels,
    annotations: {},
    desired_state: {},
    field_owners,
  })
  it('keep no more entries than there are fields, however often they come and go', () => {
    let owned = row({})
    for (let turn = 0; turn < 2000; turn++) {
      const labels = { [`l${turn}`]: 'x' }
      owned = { ...owned, labels, field_owners: ownersAfter(owned, { labels }, 'b') }
    }
    expect(Object.keys(owned.field_owners).length).toBeLessThan(510)
  })
  it('see owners inside replaced objects, and read marks as no one’s', () => {
    const nested = { ...row({}, { '': 'a', '/desired_state/x/y': 'b' }), desired_state: { x: { y: 1, z: 2 } } }
    expect(() => refuseOwned(nested, { desired_state: { x: 'text' } }, 'a')).toThrow('/desired_state/x/y (b)')
    expect(ownersAfter(nested, { desired_state: { x: 'text' } }, 'a')).toEqual({ '': 'a' })
    const marked = row({ 'signalbox/import-missing': 'true' })
    expect(() => refuseOwned(marked, { labels: {} }, 'b')).not.toThrow()
    expect(unstated({ '': 'a' }, 'a', { labels: { 'signalbox/import-source': 's', env: 'x' } }, {})).toEqual({
      labels: { env: null },
    })
  })
})

describe('those who state a relation', () => {
  const whole = { complete_relationships: true }
  const needs = (target_id: string, hard?: string) => ({
    type_key: 'refers_to',
    target_id,
    ...(hard && { properties: { fields: [hard] } }),
  })
  const edgesOf = async (id: string) =>
    (await c.as('vic').get(`/v1/resources/${id}/relationships?relationship_types=refers_to`)).body.items.map(
      ({ relationship }: { relationship: { relationship_id: string; properties: object } }) => relationship,
    )
  const relate = async (id: string, change: object, query = '') => {
    const { version } = await read(id)
    const items = [
      { op: 'relate', change: { resource_id: id, expected_version: version, relationship_changes: [change] } },
    ]
    return (await c.as('ada').post(`/v1/resources:bulk?mode=record_only${query}`, { items })).body.results[0]
  }
  /** A resource that two sources know, and another that it refers to. */
  const shared = async () => {
    const [one, two] = [sourceOf(), sourceOf()]
    const to = service({ external_id: 'to' })
    const { resource_id: target } = await take(one, to)
    await take(two, to, { adopt: true })
    const item = service()
    const { resource_id: id } = await take(one, { ...item, relationships: [needs(target)] }, whole)
    return { one, two, item, to, id, target }
  }

  it('keep it until the last of them drops it, at whichever end they state it', async () => {
    const { one, two, item, to, id, target } = await shared()
    const listing = { ...item, relationships: [needs(target)] }
    const [first] = await edgesOf(id)
    const { version } = await read(id)
    const outcomes: string[] = []
    const taking = async (source: object, given: object, options = {}) =>
      outcomes.push((await take(source, given, { ...whole, ...options })).outcome)
    await taking(two, listing, { adopt: true })
    await taking(one, item)
    await taking(one, listing)
    await taking(two, item)
    // The other end lists it too, and a person confirms it.
    await taking(two, { ...to, relationships: [{ ...needs(id), direction: 'in' }] })
    await taking(one, item)
    expect(await relate(id, { op: 'add', ...needs(target) })).toMatchObject({ body: { applied: false } })
    await taking(two, to)
    expect(outcomes).toEqual(outcomes.map(() => 'unchanged'))
    expect([await edgesOf(id), (await read(id)).version]).toEqual([[first], version])
    await taking(one, listing)
    expect((await relate(id, { op: 'remove', ...needs(target) })).body).toMatchObject({ applied: true })
    expect(await edgesOf(id)).toEqual([])
    expect([await take(one, listing, whole), await take(one, item, whole)].map(({ outcome }) => outcome)).toEqual([
      'updated',
      'updated',
    ])
    expect(await edgesOf(id)).toEqual([])
  })

  it('keep it exactly as long as one of them lists it, after any imports', async () => {
    const { one, two, item, to, id, target } = await shared()
    const three = sourceOf()
    for (const source of [two, three]) for (const given of [item, to]) await take(source, given, { adopt: true })
    const stating = new Set([`${one.name} out`])
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(one, two, three),
        fc.constantFrom('out', 'in'),
        fc.boolean(),
        async (source, end, lists) => {
          const [given, other] = end === 'out' ? [item, target] : [to, id]
          const [before] = await edgesOf(id)
          const relationships = lists ? [{ ...needs(other), direction: end }] : []
          expect((await take(source, { ...given, relationships }, whole)).outcome).not.toBe('conflict')
          stating[lists ? 'add' : 'delete'](`${source.name} ${end}`)
          const [after] = await edgesOf(id)
          expect(after !== undefined).toBe(stating.size > 0)
          if (before && after) expect(after).toEqual(before)
        },
      ),
      { numRuns: 60 },
    )
  })

  it('do not overwrite its properties in turn: a conflict with its owners, unless forced', async () => {
    const { one, two, item, id, target } = await shared()
    const listing = (hard: string) => ({ ...item, relationships: [needs(target, hard)] })
    await take(one, listing('a'), whole)
    // Without properties, a source states only the relation.
    expect((await take(two, { ...item, relationships: [needs(target)] }, { ...whole, adopt: true })).outcome).toBe(
      'unchanged',
    )
    const refused = await take(two, listing('b'), whole)
    const conflicts = [{ path: `/relationships/refers_to/${target}`, owner: `import:${one.name}` }]
    expect(refused).toMatchObject({ outcome: 'conflict', problem: { code: 'field_owned', conflicts } })
    expect(await relate(id, { op: 'add', ...needs(target, 'c') }, '&manager=ci')).toMatchObject({
      status: 409,
      body: { code: 'field_owned', conflict_count: 2 },
    })
    expect((await edgesOf(id))[0].properties).toEqual({ fields: ['a'] })
    expect((await take(two, listing('b'), { ...whole, force: true })).outcome).toBe('updated')
    expect((await take(one, listing('a'), whole)).problem).toMatchObject({
      conflicts: [{ owner: `import:${two.name}` }],
    })
    // A person takes over, as with fields.
    expect((await relate(id, { op: 'add', ...needs(target, 'c') })).body).toMatchObject({ applied: true })
    expect((await take(two, listing('b'), whole)).problem).toMatchObject({ conflicts: [{ owner: 'user' }] })
    expect((await edgesOf(id))[0].properties).toEqual({ fields: ['c'] })
  })

  it('may state it from both ends at the same moment', async () => {
    const { one, to, id, target } = await shared()
    for (let round = 0; round < 10; round++) {
      const from_both = [
        take(one, { ...to, relationships: [{ ...needs(id), direction: 'in' }] }, whole),
        relate(id, { op: 'add', ...needs(target) }),
        relate(target, { op: 'add', ...needs(id), direction: 'in' }),
      ]
      expect((await Promise.all(from_both)).map(({ outcome, status }) => outcome ?? status)).toEqual([
        'unchanged',
        200,
        200,
      ])
      const [{ stated_by } = { stated_by: '' }] = await c.rows<{ stated_by: string }>(
        `select stated_by from catalog.relationship e join catalog.resource r on r.rid = e.src where r.resource_id = $1
         and e.reltype_id = (select id from catalog.relationship_type where type_key = 'refers_to' limit 1)`,
        [id],
      )
      expect(stated_by.split('\n')).toEqual([`import:${one.name}`, `import:${one.name}:in`, 'user', 'user:in'])
      await c.rows(`update catalog.relationship set stated_by = $1 where stated_by = $2`, [
        `import:${one.name}`,
        stated_by,
      ])
    }
  })
})
