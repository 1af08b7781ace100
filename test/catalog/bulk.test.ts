import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Ask, type Catalog, hostOf, type Reply, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 0)
  await seedRegion(c, 'us1', 0)
})
afterAll(() => c.stop())

type Item = { op: 'create' | 'update' | 'relate' | 'retire'; change: Record<string, unknown> }
type Result = { index: number; status: number; replayed?: boolean; body: Record<string, unknown> & { code?: string } }
const FACTS = 'mode=record_only'
const bulk = (
  items: Item[],
  { query = FACTS, who = 'ada', ...ask }: Ask & { query?: string; who?: 'ada' | 'far' | 'nobody' } = {},
  atomic?: boolean,
) => c.as(who).post(`/v1/resources:bulk?${query}`, { items, ...(atomic !== undefined && { atomic }) }, ask)
const results = (reply: Reply): Result[] => {
  if (reply.status !== 200) throw new Error(`${reply.status} ${reply.text}`)
  return reply.body.results
}
const service = (resource_id: string, over: Record<string, unknown> = {}) => ({
  resource_id,
  type_key: 'infra.service',
  name: resource_id,
  lifecycle_status: 'active',
  desired_state: { port: 80 },
  ...over,
})
const thing = (resource_id: string, over: Record<string, unknown>) =>
  service(resource_id, { type_key: 'infra.generic', desired_state: { provider: 'p', kind: 'k' }, ...over })
const create = (change: Record<string, unknown>): Item => ({ op: 'create', change })

/** The same change by the route for a single one; for a relation, that of the control plane. */
const alone = async ({ op, change }: Item, who: 'ada' | 'far' = 'ada'): Promise<{ status: number; code?: string }> => {
  const { resource_id, expected_version, patch } = change
  if (op === 'relate') {
    const { relationship_changes } = change
    const command = { expected_version, changes: { relationship_changes } }
    const { status, body } = await c.result(String(resource_id), command)
    return { status, ...(status !== 200 && { code: body.code }) }
  }
  const reply =
    op === 'create'
      ? await c.as(who).post(`/v1/resources?${FACTS}`, change)
      : await c
          .as(who)
          .patch(`/v1/resources/${resource_id}?${FACTS}`, {
            ...(op === 'retire' ? { lifecycle_status: 'retired' } : (patch as object)),
            expected_version,
          })
  return { status: reply.status, ...(reply.status >= 400 && { code: reply.body.code }) }
}

const UNEQUAL = new Set([
  'rid',
  'rel_no',
  'relationship_id',
  'src',
  'dst',
  'path',
  'parent_rid',
  'id',
  'event_id',
  'body',
  'mac',
  // A service writes a relation in one case, a person in the other.
  'actor',
  'roles',
  'updated_by',
  'operation_id',
  'last_operation',
  'last_operation_id',
  'last_command_id',
  'last_operation_at',
  'stated_by',
])
const isTime = (value: unknown) => typeof value === 'string' && /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/.test(value)
/** Everything stored for the resources whose ids have this prefix, except ids, times and numbers. */
const left = async (prefix: string) => {
  const [row] = await c.rows<{ all: object }>(
    `with mine as (select * from catalog.resource where resource_id like $1 || '%'),
       ends as (select e.*, a.resource_id as from_id, b.resource_id as to_id, null::timestamptz as valid_to
                from catalog.relationship e join catalog.resource a on a.rid = e.src join catalog.resource b on b.rid = e.dst
                union all select e.src, e.reltype_id, e.dst, e.rev, e.properties, e.valid_from, e.command_id, e.operation_id,
                  e.rel_no, e.stated_by, a.resource_id, b.resource_id, e.valid_to
                from catalog.relationship_history e join catalog.resource a on a.rid = e.src join catalog.resource b on b.rid = e.dst)
     select jsonb_build_object(
       'resources', (select jsonb_agg(to_jsonb(r) || jsonb_build_object('hash', encode(r.identity_hash, 'hex') is not null,
                       'parent', p.resource_id, 'depth', nlevel(r.path)) - 'identity_hash' order by r.resource_id)
                     from mine r left join catalog.resource p on p.rid = r.parent_rid),
       'states', (select jsonb_agg(to_jsonb(s) order by r.resource_id) from mine r join catalog.resource_state s using (rid)),
       'edges', (select jsonb_agg(to_jsonb(e) || jsonb_build_object('open', valid_to is null) order by from_id, to_id, reltype_id, rel_no, rev)
                 from ends e where from_id like $1 || '%' or to_id like $1 || '%'),
       'revisions', (select jsonb_agg(to_jsonb(v) order by r.resource_id, v.version) from mine r join catalog.revision v using (rid)),
       'events', (select jsonb_agg(to_jsonb(o) - 'pub_seq' order by o.agg_type, o.agg_id, o.agg_version)
                  from catalog.outbox o where o.agg_id like $1 || '%'),
       'audits', (select jsonb_agg(jsonb_build_object('object', object, 'outcome', outcome, 'actor', actor, 'of',
                    regexp_replace(body, '.*"details":', ''), 'hashed', before_hash is not null) order by object, id)
                  from catalog.audit where object like 'resource:' || $1 || '%')) as all`,
    [prefix],
  )
  const text = JSON.stringify(row?.all).replaceAll(prefix, 'X-')
  return JSON.parse(text.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID'), (name, value) =>
    UNEQUAL.has(name) || isTime(value) ? undefined : name === 'of' ? String(value).replace(/,"log":.*/, '') : value,
  )
}

/** A resource at the beginning of a story, related to some of those before it. */
const born = (at: number) => {
  const before = fc.integer({ min: 0, max: Math.max(0, at - 1) })
  const edge = fc.record({
    type_key: fc.constantFrom('depends_on', 'hosted_on', 'connects_to', 'member_of'),
    direction: fc.constantFrom('out' as const, 'out' as const, 'in' as const),
    to: before,
  })
  return fc.record({
    op: fc.constant('create' as const),
    at: fc.constant(at),
    under: at === 0 ? fc.constant(null) : fc.option(before),
    edges: fc.array(edge, { maxLength: at === 0 ? 0 : 1 }),
    host: fc.constant(false),
  })
}

/** A random story of a few resources: there are few names, so that items collide and some are refused. */
const stories = (length: number) => {
  const n = fc.integer({ min: 0, max: 7 })
  const type = fc.constantFrom('depends_on', 'hosted_on', 'connects_to', 'backs_up', 'member_of', 'contained_in')
  const edge = fc.record({ type_key: type, direction: fc.constantFrom('out' as const, 'in' as const), to: n })
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constant('create' as const),
        at: n,
        under: fc.option(n),
        edges: fc.array(edge, { maxLength: 2 }),
        host: fc.boolean(),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        op: fc.constant('update' as const),
        at: n,
        patch: fc.constantFrom(
          { labels: { a: 'b' } },
          { desired_state: { kind: 'l' } },
          { desired_state: { kind: 7 } },
          { display_name: 'D' },
          { lifecycle_status: 'maintenance' },
          { lifecycle_status: 'active' },
          { observed_state: { attributes: { seen: 1 } } },
        ),
        stale: fc.constantFrom(0, 0, 0, 1),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constant('relate' as const),
        at: n,
        edges: fc.array(
          fc.record({
            op: fc.constantFrom('add' as const, 'add' as const, 'remove' as const, 'update' as const),
            edge,
            note: fc.constantFrom('p', 'q'),
          }),
          { minLength: 1, maxLength: 3 },
        ),
      }),
    },
    { weight: 2, arbitrary: fc.record({ op: fc.constant('retire' as const), at: n }) },
  )
  const base = fc.tuple(...[0, 1, 2, 3, 4, 5].map((at) => born(at)))
  return fc
    .tuple(base, fc.array(step, { minLength: length / 2, maxLength: length }))
    .map(([first, then]) => [...first, ...then])
}
type Step = ReturnType<typeof stories> extends fc.Arbitrary<(infer S)[]> ? S : never

/** An item of the story; versions are those that its resource has at that point. */
const itemOf = (step: Step, prefix: string, versions: Map<number, number>): Item => {
  const id = (i: number) => `${prefix}${i}`
  const expected_version = versions.get(step.at) ?? 1
  const ends = (edges: { type_key: string; direction: 'in' | 'out'; to: number }[]) =>
    edges.map(({ to, ...edge }) => ({ ...edge, target_id: id(to) }))
  const resource_id = id(step.at)
  if (step.op === 'create') {
    const parent = step.under === null ? {} : { parent_id: id(step.under) }
    return create(thing(resource_id, { ...parent, name: `n-${resource_id}`, relationships: ends(step.edges) }))
  }
  if (step.op === 'update')
    return { op: 'update', change: { resource_id, expected_version: expected_version + step.stale, patch: step.patch } }
  if (step.op === 'retire') return { op: 'retire', change: { resource_id, expected_version } }
  const relationship_changes = step.edges.map(({ op, edge, note }) => ({
    op,
    ...(ends([edge])[0] as object),
    ...(op !== 'remove' && edge.type_key === 'depends_on' && { properties: { reason: note } }),
  }))
  return { op: 'relate', change: { resource_id, expected_version, relationship_changes } }
}

describe('bulk', () => {
  it('has the same effect as its items one by one: rows, history, edges, events and audit', async () => {
    await fc.assert(
      fc.asyncProperty(stories(24), async (steps) => {
        const [one, two] = [`a${randomUUID().slice(0, 8)}-`, `b${randomUUID().slice(0, 8)}-`]
        const versions = new Map<number, number>()
        const singly: { status: number; code?: string }[] = []
        const items: Item[] = []
        for (const step of steps) {
          singly.push(await alone(itemOf(step, one, versions)))
          items.push(itemOf(step, two, versions))
          const rows = await c.rows<{ resource_id: string; version: number }>(
            `select resource_id, version from catalog.resource join catalog.resource_state using (rid) where resource_id like $1 || '%'`,
            [one],
          )
          for (const { resource_id, version } of rows) versions.set(Number(resource_id.slice(one.length)), version)
        }
        const together = results(await bulk(items))
        const said = together.map(({ status, body }) => ({ status, ...(status >= 400 && { code: body.code }) }))
        expect(said).toEqual(singly)
        expect(await left(two)).toEqual(await left(one))
      }),
      { numRuns: 12, endOnFailure: true },
    )
  }, 240_000)

  it('refuses each item by the rights of the single route, and audits the denials', async () => {
    const [mine, theirs] = [`us-${randomUUID()}`, `eu-${randomUUID()}`]
    for (const [id, parent] of [
      [mine, 'us1-a-web'],
      [theirs, 'eu1-a-web'],
    ] as const)
      await c.as('ada').record(hostOf(id, parent))
    const items = (tag: string): Item[] => [
      create(hostOf(`${tag}-1`, 'us1-a-web')),
      create(hostOf(`${tag}-2`, 'eu1-a-web')),
      { op: 'update', change: { resource_id: theirs, expected_version: 1, patch: { labels: { a: tag } } } },
      { op: 'retire', change: { resource_id: theirs, expected_version: 1 } },
      create(hostOf(`${tag}-3`, 'nowhere')),
    ]
    const person = c.people.far
    person.roles = ['admin']
    const singly = []
    for (const item of items(`s-${randomUUID()}`)) singly.push(await alone(item, 'far'))
    const before = (
      await c.rows<{ n: number }>(`select count(*)::int as n from catalog.audit where outcome = 'denied'`)
    )[0]
    const reply = results(await bulk(items(`t-${randomUUID()}`), { who: 'far' }))
    expect(reply.map(({ status, body }) => ({ status, ...(status >= 400 && { code: body.code }) }))).toEqual(singly)
    expect(singly.map(({ status }) => status)).toContain(403)
    const denied = reply.filter(({ status }) => status === 403).length
    const after = (
      await c.rows<{ n: number }>(`select count(*)::int as n from catalog.audit where outcome = 'denied'`)
    )[0]
    expect((after?.n ?? 0) - (before?.n ?? 0)).toBe(denied)
    // In one transaction: the answer waits for them, and there may be a thousand.
    const commits = await c.rows(
      `select distinct xmin::text from catalog.audit where outcome = 'denied' and action like '%:bulk'`,
    )
    expect([denied > 1, commits.length]).toEqual([true, 1])
    const into = { op: 'add', type_key: 'depends_on', direction: 'in', target_id: theirs }
    const [related] = results(
      await bulk([{ op: 'relate', change: { resource_id: mine, expected_version: 1, relationship_changes: [into] } }], {
        who: 'far',
      }),
    )
    expect(related?.status).not.toBe(200)
    expect(await bulk([], { who: 'nobody' })).toMatchObject({ status: 403 })
    person.roles = ['operator', 'viewer']
  })

  it('applies the other items if one fails, and none of an atomic request', async () => {
    const ids = Array.from({ length: 6 }, () => `p-${randomUUID()}`)
    const items: Item[] = ids.map((id) => create(service(id)))
    items.splice(
      3,
      0,
      create(service('Not An Id')),
      { op: 'update', change: { surprise: 1 } },
      create(service(ids[0] as string)),
    )
    const before = await c.traces()
    const whole = await bulk(items, {}, true)
    expect(whole).toMatchObject({ status: 400, body: { category: 'validation_error', index: 3 } })
    const clash = await bulk([items[0] as Item, items[0] as Item], {}, true)
    expect(clash).toMatchObject({ status: 409, body: { code: 'already_exists', index: 1 } })
    const dry = results(await bulk(items, { query: `${FACTS}&validate_only=true`, key: null }))
    expect(await c.traces()).toEqual(before)
    const done = results(await bulk(items))
    expect(done.map(({ status }) => status)).toEqual([201, 201, 201, 400, 400, 409, 201, 201, 201])
    expect(dry.map(({ status }) => status)).toEqual(done.map(({ status }) => status))
  })

  it('retires resources that need one another together or not at all', async () => {
    const [a, b, d] = ['a', 'b', 'd'].map((id) => `ring-${id}-${randomUUID()}`) as [string, string, string]
    const needs = (resource_id: string, target_id: string): Item => ({
      op: 'relate',
      change: {
        ...{ resource_id, expected_version: 1 },
        relationship_changes: [{ op: 'add', type_key: 'depends_on', target_id }],
      },
    })
    const ring = [needs(a, b), needs(b, d), needs(d, a)]
    expect(results(await bulk([...[a, b, d].map((id) => create(service(id))), ...ring]))).toHaveLength(6)
    const end = (...ids: string[]): Item[] =>
      ids.map((resource_id) => ({ op: 'retire', change: { resource_id, expected_version: 2 } }))
    const before = await c.traces()
    const blocked = { code: 'blocked_by_dependents' }
    expect(results(await bulk(end(a, b, d))).map(({ body }) => body)).toMatchObject([blocked, blocked, blocked])
    expect(await bulk(end(a, b), {}, true)).toMatchObject({ status: 422, body: { ...blocked, index: 0 } })
    expect(await c.traces()).toEqual(before)
    const done = results(await bulk(end(a, b, d), {}, true))
    expect(done.map(({ status, body }) => [status, body.version])).toEqual([
      [200, 3],
      [200, 3],
      [200, 3],
    ])
    expect((await c.as('vic').get(`/v1/resources/${a}/relationships`)).body.items).toEqual([])
  })

  it('refuses an item whose patch names another version', async () => {
    const id = `v-${randomUUID()}`
    await c.as('ada').record(service(id))
    const patch = { expected_version: 2, labels: { a: 'b' } }
    const [result] = results(await bulk([{ op: 'update', change: { resource_id: id, expected_version: 1, patch } }]))
    expect(result).toMatchObject({ status: 400, body: { code: 'malformed' } })
  })

  it('repeats its first answers and retries what was refused', async () => {
    const [one, two] = [`r-${randomUUID()}`, `r-${randomUUID()}`]
    const key = randomUUID()
    const items: Item[] = [
      create(service(one)),
      { op: 'update', change: { resource_id: two, expected_version: 1, patch: { labels: { a: 'b' } } } },
    ]
    expect(results(await bulk(items, { key })).map(({ status }) => status)).toEqual([201, 404])
    await c.as('ada').record(service(two))
    const again = results(await bulk(items, { key }))
    expect(again.map(({ status, replayed }) => [status, replayed === true])).toEqual([
      [201, true],
      [200, false],
    ])
  })

  it('refuses other items under a used key', async () => {
    const [one, two, three] = ['1', '2', '3'].map((n) => create(service(`k${n}-${randomUUID()}`))) as [Item, Item, Item]
    const key = randomUUID()
    expect(results(await bulk([one, two], { key })).map(({ status }) => status)).toEqual([201, 201])
    const before = await c.traces()
    const reused = { status: 422, body: { code: 'idempotency_key_reused' } }
    expect(await bulk([one], { key })).toMatchObject(reused)
    expect(await bulk([one, two, three], { key })).toMatchObject(reused)
    expect(await bulk([one, three], { key }, true)).toMatchObject(reused)
    expect(await bulk([one, two], { key }, true)).toMatchObject(reused)
    expect(await bulk([{ op: 'update', change: { surprise: 1 } }], { key })).toMatchObject(reused)
    expect(await bulk([one, two], { key, query: `${FACTS}&manager=ci` })).toMatchObject(reused)
    expect(await c.traces()).toEqual(before)
    expect(results(await bulk([one, two], { key })).map(({ replayed }) => replayed)).toEqual([true, true])
  })

  it('frees the key of a request of which no item was made', async () => {
    const key = randomUUID()
    const id = `k-${randomUUID()}`
    const update = (expected_version: number): Item => ({
      op: 'update',
      change: { resource_id: id, expected_version, patch: { labels: { a: 'b' } } },
    })
    await c.as('ada').record(service(id))
    const before = await c.traces()
    expect(results(await bulk([update(8), update(9)], { key })).map(({ status }) => status)).toEqual([409, 409])
    expect(results(await bulk([{ op: 'update', change: {} }], { key })).map(({ status }) => status)).toEqual([400])
    expect(await c.traces()).toEqual(before)
    expect(results(await bulk([update(1), update(9)], { key })).map(({ status }) => status)).toEqual([200, 409])
    expect(await bulk([update(1)], { key })).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } })
  })

  it('counts its items as commands, not the request itself', async () => {
    const counted = async () => {
      const metric = await c.deps.telemetry.metrics.getSingleMetric('signalbox_catalog_commands_total')?.get()
      return metric?.values.find(({ labels }) => labels.result === 'answered')?.value ?? 0
    }
    const before = await counted()
    expect(results(await bulk([1, 2].map((n) => create(service(`n${n}-${randomUUID()}`)))))).toHaveLength(2)
    expect(await counted()).toBe(before + 2)
  })

  it.each([false, true])('keeps the change of a single item, atomic: %s', async (atomic) => {
    const id = `s-${randomUUID()}`
    await c.as('ada').record(service(id))
    const change = { resource_id: id, expected_version: 1, patch: { labels: { a: 'b' } } }
    expect(results(await bulk([{ op: 'update', change }], {}, atomic))).toMatchObject([{ status: 200 }])
    const { version, labels } = (await c.as('vic').get(`/v1/resources/${id}`)).body
    expect({ version, labels }).toEqual({ version: 2, labels: { a: 'b' } })
  })

  it('leaves the key of a refused atomic request free', async () => {
    const key = randomUUID()
    const id = `f-${randomUUID()}`
    expect(await bulk([create(service(id, { owner: 7 }))], { key }, true)).toMatchObject({ status: 400 })
    expect(await bulk([create(service(id, { type_key: 'no.type' }))], { key }, true)).toMatchObject({ status: 422 })
    expect(results(await bulk([create(service(id))], { key }, true))).toMatchObject([{ status: 201 }])
  })

  it('has one winner of each version when bulk and single writes race', async () => {
    const ids = Array.from({ length: 8 }, () => `w-${randomUUID()}`)
    await Promise.all(ids.map((id) => c.as('ada').record(service(id))))
    const patch = (who: string) => ({ labels: { who } })
    const update = (resource_id: string, who: string): Item => ({
      op: 'update',
      change: { resource_id, expected_version: 1, patch: patch(who) },
    })
    const [a, b, ...singly] = await Promise.all([
      bulk(ids.map((id) => update(id, 'a'))),
      bulk([...ids].reverse().map((id) => update(id, 'b'))),
      ...ids.map((id) => alone(update(id, 'c'))),
    ])
    const [first, second] = [results(a as Reply), results(b as Reply).reverse()]
    for (const [i, id] of ids.entries()) {
      const statuses = [first[i]?.status, second[i]?.status, singly[i]?.status]
      expect(statuses.sort()).toEqual([200, 409, 409])
      expect((await c.as('vic').get(`/v1/resources/${id}`)).body.version).toBe(2)
    }
    const name = `n-${randomUUID()}`
    const named = Array.from({ length: 6 }, (_, i) => create(service(`${name}-${i}`, { name })))
    const made = await Promise.all([bulk(named), bulk([...named].reverse()), ...named.map((item) => alone(item))])
    const all = made
      .flatMap((reply): { status: number }[] => ('body' in reply ? results(reply as Reply) : [reply]))
      .map((one) => one.status)
    expect(all.filter((status) => status === 201)).toHaveLength(1)
    expect(all.every((status) => status === 201 || status === 409)).toBe(true)
  })
})
