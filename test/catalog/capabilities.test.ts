import { randomUUID } from 'node:crypto'
import { type SQL, sql } from 'drizzle-orm'
import fc from 'fast-check'
import semver from 'semver'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sweepHealth, sweepProviders, sweepReservations } from '../../apps/catalog/expiry.ts'
import { type Asker, mismatchOf, type Offer, type Wanted } from '../../apps/catalog/rules/matching.ts'
import { heldOffersOf } from '../../db/catalog/providers.ts'
import { addMany } from './support/many.ts'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

describe('matching', () => {
  const scope = fc.record({
    region_id: fc.constantFrom('r1', 'r2', null),
    datacenter_id: fc.constantFrom('d1', 'd2', null),
    layer_id: fc.constant(null),
    segment_id: fc.constantFrom('s1', null),
  })
  const offer: fc.Arbitrary<Offer> = fc.record({
    resource_id: fc.constantFrom('a', 'b'),
    version: fc.constantFrom('1.0.0', '1.2.0', '2.0.0'),
    attributes: fc.record(
      {
        n: fc.integer({ min: 0, max: 3 }),
        tags: fc.subarray(['x', 'y', 'z']),
        engine: fc.constantFrom('sql', 'kv'),
        release: fc.constantFrom('1.4', '2.1.0', 'odd'),
      },
      { requiredKeys: [] },
    ),
    status: fc.constantFrom('available', 'degraded', 'stale', 'withdrawn'),
    scope,
    free: fc.option(fc.integer({ min: 0, max: 3 })),
    match_rules: fc.constantFrom({ n: 'gte', tags: 'superset', engine: 'eq', release: 'semver' }, { n: 'lte' }),
  })
  const wanted: fc.Arbitrary<Wanted> = fc.record({
    version_range: fc.constantFrom('*', '^1.0.0', '>=1.1.0'),
    // Half of all ask for no attribute, or the rules that come after would seldom be reached.
    where: fc.oneof(
      fc.constant({}),
      fc.record(
        {
          n: fc.integer({ min: 0, max: 3 }),
          tags: fc.subarray(['x', 'y']),
          engine: fc.constant('sql'),
          release: fc.constant('^1.0.0'),
        },
        { requiredKeys: [] },
      ),
    ),
    amount: fc.option(fc.integer({ min: 1, max: 3 })),
    scope: fc.constantFrom('any', 'same_region', 'same_datacenter', 'same_segment'),
    statuses: fc.constantFrom(['available'], ['available', 'degraded']),
  })
  const asker: fc.Arbitrary<Asker> = fc.record({ resource_id: fc.constant('a'), scope })

  /** The same rules, written a second time as one list of named conditions. */
  const model = (w: Wanted, o: Offer, a: Asker): string | undefined => {
    const level = w.scope.replace('same_', '') as 'region'
    const near =
      w.scope === 'any' || (a.scope[`${level}_id`] !== null && a.scope[`${level}_id`] === o.scope[`${level}_id`])
    const rules: [string, boolean][] = [
      ['status', w.statuses.includes(o.status)],
      ['version', semver.satisfies(o.version, w.version_range)],
      ['scope', near],
    ]
    for (const [name, value] of Object.entries(w.where)) {
      const has = (o.attributes as Record<string, never>)[name] as unknown
      const rule = o.match_rules[name] ?? 'eq'
      const tags = (has ?? []) as string[]
      const holds =
        rule === 'gte'
          ? (has as number) >= (value as number)
          : rule === 'lte'
            ? (has as number) <= (value as number)
            : rule === 'superset'
              ? has !== undefined && (value as string[]).every((tag) => tags.includes(tag))
              : rule === 'semver'
                ? has === '1.4'
                : JSON.stringify(has) === JSON.stringify(value)
      rules.push([`attribute ${name}`, has !== undefined && holds])
    }
    rules.push(
      ['capacity', o.free === null || w.amount === null || w.amount <= o.free],
      ['self', o.resource_id !== a.resource_id],
    )
    return rules.find(([, holds]) => !holds)?.[0]
  }

  it('names the first rule that fails, as the model does, and every rule occurs', () => {
    const seen = new Set<string | undefined>()
    fc.assert(
      fc.property(wanted, offer, asker, (w, o, a) => {
        const found = mismatchOf(w, o, a)
        const named = found?.rule === 'attribute' ? `attribute ${found.attribute}` : found?.rule
        seen.add(found?.rule)
        expect(named).toBe(model(w, o, a))
      }),
      { numRuns: 5000 },
    )
    expect([...seen].sort()).toEqual(['attribute', 'capacity', 'scope', 'self', 'status', 'version', undefined].sort())
  })

  it('knows no rule for an attribute named like a member of every object', () => {
    const none = { region_id: null, datacenter_id: null, layer_id: null, segment_id: null }
    const offer = { resource_id: 'a', version: '1.0.0', attributes: {}, status: 'available', scope: none, free: null }
    const wanted: Wanted = {
      version_range: '*',
      where: { constructor: 'x' },
      amount: null,
      scope: 'any',
      statuses: ['available'],
    }
    const mismatch = mismatchOf(wanted, { ...offer, match_rules: {} } as Offer, undefined)
    expect(mismatch).toEqual({
      rule: 'attribute',
      attribute: 'constructor',
      match_rule: 'eq',
      wanted: 'x',
      offered: null,
    })
  })
})

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 3)
  await seedRegion(c, 'us1', 1)
})
afterAll(() => c.stop())

const provide = async (resource_id: string, over: Record<string, unknown> = {}, mode = 'merge') => {
  const { version } = (await c.as('vic').get(`/v1/resources/${resource_id}`)).body
  return c.internally('POST', `/resources/${resource_id}/provided-capabilities`, {
    command_id: randomUUID(),
    idempotency_key: randomUUID(),
    resource_id,
    expected_version: version,
    mode,
    provided_capability_changes: [{ op: 'add', capability_key: 'compute.slots', version: '1.0.0', ...over }],
  })
}
/** A report that lists no capability, which withdraws all. */
const replaced = async (resource_id: string) => ({
  command_id: randomUUID(),
  idempotency_key: randomUUID(),
  resource_id,
  expected_version: (await c.as('vic').get(`/v1/resources/${resource_id}`)).body.version,
  mode: 'replace',
  provided_capability_changes: [],
})
const machine = (parent_id = 'eu1-a-web') =>
  c
    .as('ada')
    .record({
      type_key: 'infra.virtual_machine',
      name: `vm-${randomUUID()}`,
      parent_id,
      lifecycle_status: 'active',
      desired_state: { hostname: 'vm' },
    })
type Offered = { capacity?: object; provider_id: string; resource_id: string; free: number; status: string }
const providers = async (query: string, name: 'vic' | 'far' = 'vic'): Promise<Offered[]> =>
  (await c.as(name).get(`/v1/capabilities/providers?capability_key=compute.slots&${query}`)).body.items
const idsOf = (items: Offered[]) => items.map(({ resource_id }) => resource_id)
const claim = async (resource_id: string, { provider_id, resource_id: target_id }: Offered, amount = 1) =>
  c.result(resource_id, {
    expected_version: (await c.as('vic').get(`/v1/resources/${resource_id}`)).body.version,
    changes: {
      relationship_changes: [
        {
          op: 'add',
          type_key: 'uses_capability',
          target_id,
          properties: { requirement_key: 'slot', capability_key: 'compute.slots', provider_id, amount },
        },
      ],
    },
  })

describe('capabilities', () => {
  beforeAll(async () => {
    await provide('eu1-web-01', { attributes: { cpu_cores: 8, arch: 'arm64' }, capacity: { total: 4, used: 1 } })
    await provide('eu1-web-02', { attributes: { cpu_cores: 16 }, capacity: { total: 9 }, priority: 200 })
    await provide('us1-web-01', { attributes: { cpu_cores: 4 }, capacity: { total: 2 } })
  })

  it('are defined once, with counts of the providers that the reader may see', async () => {
    const { body } = await c.as('vic').get('/v1/capabilities/definitions?page_size=2')
    expect(body.items.map((item: { capability_key: string }) => item.capability_key)).toEqual([
      'compute.slots',
      'runtime.container',
    ])
    expect(body.items[0]).toMatchObject({
      versions: ['1.0.0'],
      sharing: 'counted',
      providers: { total: 3, by_status: { available: 3 }, by_region: { eu1: 2, us1: 1 } },
    })
    const next = await c.as('vic').get(`/v1/capabilities/definitions?page_size=2&page_token=${body.next_page_token}`)
    expect(next.body.items[0].capability_key).toBe('storage.block')
    const one = await c.as('far').get('/v1/capabilities/definitions/compute.slots')
    expect(one.body.providers).toEqual({ total: 1, by_status: { available: 1 }, by_region: { us1: 1 } })
    expect((await c.as('vic').get('/v1/capabilities/definitions?category=storage')).body.items).toHaveLength(2)
    const keysOf = async (query: string) =>
      (await c.as('vic').get(`/v1/capabilities/definitions?page_size=200${query}`)).body.items.map(
        (item: { capability_key: string }) => item.capability_key,
      )
    expect(await keysOf('&version=1.0.0')).toEqual(await keysOf(''))
    expect(await keysOf('&version=9.9.9')).toEqual([])
    expect(await c.as('vic').get('/v1/capabilities/definitions/no.such')).toMatchObject({
      status: 404,
      body: { code: 'capability' },
    })
    expect(await c.as('vic').get('/v1/capabilities/definitions/compute.slots?version=9.9.9')).toMatchObject({
      status: 404,
      body: { code: 'version' },
    })
  })

  it('list their providers, ranked and filtered, in pages both ways', async () => {
    expect(idsOf(await providers(''))).toEqual(['eu1-web-01', 'us1-web-01', 'eu1-web-02'])
    expect(idsOf(await providers('sort=-free'))).toEqual(['eu1-web-02', 'eu1-web-01', 'us1-web-01'])
    expect(idsOf(await providers('region_id=eu1&attr.cpu_cores=gte:8&attr.cpu_cores=lte:8'))).toEqual(['eu1-web-01'])
    expect(idsOf(await providers('attr.arch=arm64'))).toEqual(['eu1-web-01'])
    expect(idsOf(await providers('min_free=3'))).toEqual(['eu1-web-01', 'eu1-web-02'])
    expect(idsOf(await providers('version_range=^2.0.0'))).toEqual([])
    expect(idsOf(await providers('', 'far'))).toEqual(['us1-web-01'])
    expect(idsOf(await providers('near=us1-web-01&sort=distance'))).toEqual(['us1-web-01', 'eu1-web-01', 'eu1-web-02'])
    const page = async (token = '') =>
      (await c.as('vic').get(`/v1/capabilities/providers?capability_key=compute.slots&page_size=1${token}`)).body
    const first = await page()
    const second = await page(`&page_token=${first.next_page_token}`)
    expect(idsOf(second.items)).toEqual(['us1-web-01'])
    expect((await page(`&page_token=${second.prev_page_token}`)).items).toEqual(first.items)
  })

  it('say why a provider does not match', async () => {
    const vm = (await machine()).resource_id
    const { body } = await c.as('vic').get(`/v1/resources/${vm}/capabilities`)
    expect(body.required).toMatchObject([
      {
        requirement: { requirement_key: 'slot', scope: 'same_datacenter' },
        state: 'satisfiable',
        providers: [{ resource_id: 'eu1-web-01' }, { resource_id: 'eu1-web-02' }],
        why_not: [{ resource_id: 'us1-web-01', rule: 'scope', wanted: { datacenter_id: 'eu1-a' } }],
        rejected_count: { scope: 1 },
      },
    ])
    const query = `/v1/capabilities/providers?requirement_of=${vm}/slot&attr.cpu_cores=gte:9&explain=true`
    expect((await c.as('vic').get(query)).body).toMatchObject({
      items: [{ resource_id: 'eu1-web-02', distance: 0 }],
      rejected: [
        {
          resource_id: 'eu1-web-01',
          rule: 'attribute',
          attribute: 'cpu_cores',
          match_rule: 'gte',
          wanted: 9,
          offered: 8,
        },
        { resource_id: 'us1-web-01', rule: 'scope' },
      ],
      rejected_count: { attribute: 1, scope: 1 },
    })
    // A provider that is out of sight is not given as a reason either.
    const far = await c
      .as('far')
      .get(`/v1/capabilities/providers?capability_key=compute.slots&version_range=^2.0.0&explain=true`)
    expect(far.body.rejected).toMatchObject([{ resource_id: 'us1-web-01', rule: 'version' }])
  })

  it('degrade with the health and lifecycle of their resource, and become stale and unavailable', async () => {
    const status = async (id: string, query = 'status=available,degraded,stale,withdrawn') =>
      (await providers(query)).filter(({ resource_id }) => resource_id === id).map((one) => one.status)
    await provide('eu1-web-03', { expires_at: new Date(Date.now() + 3_600_000).toISOString() })
    expect(await status('eu1-web-03')).toEqual(['available'])
    await c.observe('eu1-web-03', { status: 'unhealthy' })
    expect(await status('eu1-web-03')).toEqual(['degraded'])
    expect(await status('eu1-web-03', 'status=available')).toEqual([])
    c.wait(61_000)
    // Its check has expired: its health is unknown.
    expect(await status('eu1-web-03')).toEqual(['degraded'])
    await c.observe('eu1-web-03')
    expect(await status('eu1-web-03')).toEqual(['available'])
    c.wait(3_600_000)
    expect(await status('eu1-web-03')).toEqual(['stale'])
    await provide('eu1-web-03', { op: 'remove' })
    expect(await status('eu1-web-03')).toEqual(['withdrawn'])
    expect(await status('eu1-web-03', '')).toEqual([])
    const { body } = await c.as('vic').get('/v1/resources/eu1-web-03/capabilities?status=withdrawn')
    expect(body.provided).toMatchObject([{ status: 'withdrawn', status_reason: 'removed' }])
  })

  it('never give more capacity than exists, however many claim at once', async () => {
    const offered = (await providers('attr.arch=arm64'))[0] as Offered
    // Capacity in use is part of the claimed capacity: the greater of the two counts.
    expect(offered).toMatchObject({ free: 3, capacity: { total: 4, used: 1, reserved: 0 } })
    const machines = await Promise.all(Array.from({ length: 8 }, () => machine()))
    const replies = await Promise.all(machines.map(({ resource_id }) => claim(resource_id, offered)))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(4)
    expect(replies.filter(({ body }) => body.code === 'no_capacity')).toHaveLength(4)
    expect(await providers('attr.arch=arm64')).toMatchObject([
      { free: 0, overcommitted: false, capacity: { reserved: 4 } },
    ])
    const bound = machines[replies.findIndex(({ status }) => status === 200)]?.resource_id as string
    const [requirement] = (await c.as('vic').get(`/v1/resources/${bound}/capabilities`)).body.required
    expect(requirement).toMatchObject({
      state: 'bound',
      bound_to: [{ resource_id: 'eu1-web-01', provider_id: offered.provider_id, amount: 1 }],
    })
    // A total below the claims is a reported fact, not refused.
    expect((await provide('eu1-web-01', { op: 'update', capacity: { total: 2 } })).status).toBe(200)
    expect(await providers('attr.arch=arm64')).toMatchObject([{ overcommitted: true }])
  })

  it('give no capacity twice when an offer is withdrawn and made again', async () => {
    const id = 'again-01'
    await c.as('ada').record(hostOf(id, 'eu1-a-web'))
    const offered = async () => (await providers('')).find(({ resource_id }) => resource_id === id) as Offered
    const make = () => provide(id, { capacity: { total: 1 }, attributes: { cpu_cores: 2 } })
    await make()
    const first = await offered()
    const vm = (await machine()).resource_id
    expect((await claim(vm, first)).status).toBe(200)
    for (const flap of [
      async () => [await provide(id, { op: 'remove' }), await make()],
      async () => [
        await c.internally('POST', `/resources/${id}/provided-capabilities`, await replaced(id)),
        await make(),
      ],
    ]) {
      for (const { status, text } of await flap()) expect(status, text).toBe(200)
      const again = await offered()
      expect(again).toMatchObject({ provider_id: first.provider_id, free: 0, capacity: { reserved: 1 } })
      expect((await claim((await machine()).resource_id, again)).body.code).toBe('no_capacity')
    }
    const release = { relationship_changes: [{ op: 'remove', type_key: 'uses_capability', target_id: id }] }
    expect((await c.result(vm, { expected_version: 2, changes: release })).status).toBe(200)
    await provide(id, { op: 'remove' })
    await make()
    const fresh = await offered()
    expect(fresh).toMatchObject({ free: 1 })
    expect(fresh.provider_id).not.toBe(first.provider_id)
    // An offer that is made again says what is already claimed.
    const { items } = (await c.internally('GET', `/events?agg_type=capability&agg_id=${id}&after_version=0`)).body
    type Told = { change: string; provider: { reserved?: number } }
    const told: Told[] = items.flatMap(({ providers }: { providers: Told[] }) => providers)
    const added = told.filter(({ change }) => change === 'added').map(({ provider }) => provider.reserved)
    expect(added).toEqual([undefined, 1, 1, undefined])
  })

  it('are read before a change by indexes, however many were withdrawn', async () => {
    const undo = new Error('undone')
    const looked = c.deps.db.transaction(async (tx) => {
      await tx.execute(sql`insert into catalog.provider
          (provider_id, rid, capability_id, version, attributes, withdrawn_at)
        select 'prv_gone' || n, n % 100, 1, '1.0.0', '{}', now() from generate_series(1, 20000) n`)
      await tx.execute(sql`analyze catalog.provider`)
      const explained = { execute: (query: SQL) => tx.execute(sql`explain (analyze, format json) ${query}`) }
      const plan = JSON.stringify(await heldOffersOf(explained as unknown as typeof tx, ['1', '2']))
      expect(plan).toContain('provider_open')
      expect(plan).not.toMatch(/"Rows Removed by Filter":[1-9]\d{2}/)
      throw undo
    })
    await expect(looked).rejects.toBe(undo)
  })

  it('are a graph of resources: what each provides and needs, by whom it is met, and what is missing', async () => {
    const walked = async (query: string, who: 'vic' | 'far' = 'vic') => {
      const whole = { nodes: [] as Node[], edges: [] as Edge[] }
      for (let token: string | null = ''; token !== null; ) {
        const path = `/v1/graphs/capabilities?page_size=3${query}${token && `&page_token=${token}`}`
        const { body, status, text } = await c.as(who).get(path)
        expect(status, text).toBe(200)
        whole.nodes.push(...body.nodes)
        whole.edges.push(...body.edges)
        token = body.next_page_token
      }
      return whole
    }
    type Node = { id: string; kind: string; resource_id?: string; state?: string; why_not?: unknown[] }
    type Edge = { type: string; from: string; to: string; bound?: boolean }
    const { nodes, edges } = await walked('')
    // The graph reports of every resource exactly what the resource itself reports.
    const needy = [...new Set(nodes.filter(({ kind }) => kind === 'requirement').map(({ resource_id }) => resource_id))]
    expect(needy.length).toBeGreaterThan(5)
    for (const id of needy) {
      const { required } = (await c.as('vic').get(`/v1/resources/${id}/capabilities`)).body
      for (const { requirement, state, why_not, bound_to, providers: fit } of required) {
        const node = `requirement:${id}/${requirement.requirement_key}`
        expect(nodes.find((one) => one.id === node)).toMatchObject({ requirement, state, why_not })
        const met = edges.filter(({ type, from }) => type === 'satisfied_by' && from === node)
        const peers = (state === 'bound' ? bound_to : fit) as { resource_id: string }[]
        expect(met.map(({ to, bound }) => [to, bound])).toEqual(
          peers.map(({ resource_id }) => [`resource:${resource_id}`, state === 'bound']),
        )
      }
    }
    const ids = new Set(nodes.map(({ id }) => id))
    for (const { from, to } of edges) expect([from, to].filter((id) => !ids.has(id))).toEqual([])
    expect(edges.filter(({ type }) => type === 'provides').map(({ from }) => from)).toContain('resource:us1-web-01')

    const missing = await walked('&unsatisfied_only=true&capability_key=compute.slots')
    expect(missing.nodes.filter(({ kind }) => kind === 'requirement').map(({ state }) => state)).toEqual(
      nodes.filter(({ state }) => state === 'unsatisfied').map(() => 'unsatisfied'),
    )
    const far = await walked('', 'far')
    expect(far.nodes.filter(({ id }) => id.includes('eu1'))).toEqual([])
    const root = await walked('&root_id=us1-web-01')
    expect(root.nodes.map(({ id }) => id)).toEqual(['resource:us1-web-01', 'capability:compute.slots'])
  })

  it('are a graph of definitions: counts of providers and needs match the single reads', async () => {
    const { body } = await c.as('vic').get('/v1/capabilities/graph')
    const states = { total: 0, bound: 0, satisfiable: 0, unsatisfied: 0 } as Record<string, number>
    const machines = (await c.as('vic').get('/v1/resources?type_key=infra.virtual_machine&page_size=500')).body.items
    for (const { resource_id } of machines)
      for (const { state } of (await c.as('vic').get(`/v1/resources/${resource_id}/capabilities`)).body.required) {
        states.total = (states.total ?? 0) + 1
        states[state] = (states[state] ?? 0) + 1
      }
    const slots = body.nodes.find(({ id }: { id: string }) => id === 'capability:compute.slots')
    const { providers: counted } = (await c.as('vic').get('/v1/capabilities/definitions/compute.slots')).body
    expect(slots).toMatchObject({
      requirements: states,
      providers: { total: counted.total, by_status: counted.by_status },
    })
    expect(body.edges).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          type: 'requires',
          from: 'type:infra.virtual_machine',
          to: 'capability:compute.slots',
          requirements: states,
        }),
        expect.objectContaining({ type: 'provides', from: 'type:fleet.host', providers: counted.total }),
      ]),
    )
    const far = (await c.as('far').get('/v1/capabilities/graph?capability_key=compute.slots')).body
    expect(far.nodes[0]).toMatchObject({ providers: { total: 1 }, requirements: { total: 0 } })
    for (const path of ['/v1/capabilities/graph', '/v1/graphs/capabilities']) {
      expect((await c.as('vic').get(`${path}?capability_key=no.such`)).status).toBe(404)
      expect((await c.as('vic').get(`${path}?colour=red`)).status).toBe(400)
      const { nodes, edges } = (await c.as('vic').get(path)).body
      for (const [format, node, edge] of [
        ['graphml', /<node /g, /<edge /g],
        ['dot', /" \[label=/g, / -> /g],
      ] as const) {
        const { text, status } = await c.as('vic').get(`${path}?format=${format}`)
        expect(status).toBe(200)
        expect((text.match(node) ?? []).length - (format === 'dot' ? edges.length : 0)).toBe(nodes.length)
        expect(text.match(edge)).toHaveLength(edges.length)
      }
    }
  })

  it('can be read as of a time: offers, claims and missing needs', async () => {
    const id = 'then-01'
    await c.as('ada').record(hostOf(id, 'eu1-a-web'))
    const vm = (await machine()).resource_id
    const read = async (who: string, at?: string) => {
      const { status, body, text } = await c.as('vic').get(`/v1/resources/${who}/capabilities${at ? `?at=${at}` : ''}`)
      expect(status, text).toBe(200)
      type Need = { state: string; bound_to: unknown[]; providers: { resource_id: string }[] }
      const of = ({ state, bound_to, providers: fit }: Need) => [
        state,
        bound_to,
        fit.map((one) => one.resource_id).sort(),
      ]
      return { provided: body.provided, required: body.required.map(of) }
    }
    type Seen = Awaited<ReturnType<typeof read>>
    const moments: [string, Seen, Seen][] = []
    const step = async (act: () => Promise<{ status: number; text: string }>) => {
      const done = await act()
      expect(done.status, done.text).toBe(200)
      moments.push([c.deps.clock.now().toISOString(), await read(id), await read(vm)])
      c.wait(1000)
    }
    const offered = async () => (await providers('')).find(({ resource_id }) => resource_id === id) as Offered
    await step(() => provide(id, { capacity: { total: 4 }, attributes: { cpu_cores: 2 } }))
    await step(async () => claim(vm, await offered(), 2))
    await step(() => provide(id, { op: 'update', attributes: { cpu_cores: 4 } }))
    await step(() => c.observe(id, { status: 'unhealthy' }))
    await step(() => c.observe(id, { ttl_s: 10 }))
    c.wait(10_000)
    await step(() => c.observe(vm))
    expect(moments.map(([, { provided }]) => provided[0]?.status_reason)).toEqual([
      ...['ok', 'ok', 'ok'],
      ...['health_unhealthy', 'ok', 'health_expired'],
    ])
    const release = { relationship_changes: [{ op: 'remove', type_key: 'uses_capability', target_id: id }] }
    await step(() => c.result(vm, { expected_version: 2, changes: release }))
    await step(() => provide(id, { op: 'remove' }))
    for (const [i, lifecycle_status] of ['deprovisioning', 'retired'].entries())
      await step(() => c.result(id, { expected_version: 4 + i, changes: { lifecycle_status } }))
    for (const [at, own, needs] of moments)
      expect([at, await read(id, at), await read(vm, at)]).toEqual([at, own, needs])
    const refused = async (query: string) => (await c.as('vic').get(`/v1/resources/${id}/capabilities?${query}`)).status
    expect(await Promise.all(['at=2999-01-01T00:00:00Z', 'at=2001-01-01T00:00:00Z'].map(refused))).toEqual([400, 410])
    expect(await refused(`at=${moments[0]?.[0]}&max_lag_ms=5`)).toBe(400)
  })

  it('do not change by an equal report, with an expiry in any spelling', async () => {
    const owner = 'equal-01'
    await c.as('ada').record(hostOf(owner, 'eu1-a-web'))
    const at = Math.floor(c.deps.clock.now().getTime() / 1000) * 1000 + 60_000
    const report = (ms: number, zone = '.000Z') =>
      provide(owner, { expires_at: new Date(ms).toISOString().replace('.000Z', zone) })
    expect((await report(at)).body).toMatchObject({ applied: true, version: 2 })
    const before = await c.traces()
    for (const zone of ['.000Z', 'Z', '+00:00'])
      expect((await report(at, zone)).body).toMatchObject({ applied: false, code: 'no_change', version: 2 })
    expect((await c.traces()).outbox).toBe(before.outbox)
    expect((await report(at + 1000)).body).toMatchObject({ applied: true, version: 3 })
  })

  it('emit each change of their offers and claims, by the owner and in order', async () => {
    const owner = 'told-01'
    await c.as('ada').record(hostOf(owner, 'eu1-a-web'))
    await provide(owner, {
      capacity: { total: 4 },
      expires_at: new Date(c.deps.clock.now().getTime() + 60_000).toISOString(),
    })
    const offered = (await providers('')).find(({ resource_id }) => resource_id === owner) as Offered
    const [one, two] = [await machine(), await machine()]
    expect((await claim(one.resource_id, offered, 2)).status).toBe(200)
    expect((await claim(two.resource_id, offered)).status).toBe(200)
    const release = { relationship_changes: [{ op: 'remove', type_key: 'uses_capability', target_id: owner }] }
    expect((await c.result(one.resource_id, { expected_version: 2, changes: release })).status).toBe(200)
    // A resource that ends releases its claims.
    for (const [i, lifecycle_status] of ['deprovisioning', 'retired'].entries())
      expect((await c.result(two.resource_id, { expected_version: 2 + i, changes: { lifecycle_status } })).status).toBe(
        200,
      )
    c.wait(61_000)
    await sweepProviders(c.deps)
    await sweepProviders(c.deps)
    for (const [i, lifecycle_status] of ['deprovisioning', 'retired'].entries())
      expect((await c.result(owner, { expected_version: 2 + i, changes: { lifecycle_status } })).status).toBe(200)

    const { items } = (await c.internally('GET', `/events?agg_type=capability&agg_id=${owner}&after_version=0`)).body
    type Told = {
      agg_version: number
      version: number
      providers: { change: string; provider: { reserved?: number } }[]
    }
    expect(items.map(({ agg_version }: Told) => agg_version)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(items.map(({ providers: [told] }: Told) => [told?.change, told?.provider.reserved])).toEqual([
      ['added', undefined],
      ['claimed', 2],
      ['claimed', 3],
      ['released', 1],
      ['released', 0],
      ['expired', undefined],
      ['withdrawn', undefined],
    ])
    expect(items.map(({ version }: Told) => version)).toEqual([2, 2, 2, 2, 2, 2, 4])
  })

  it('refuse claims on resources that provide nothing', async () => {
    const offered = (await providers('attr.arch=arm64'))[0] as Offered
    const vm = (await machine()).resource_id
    expect(await claim(vm, { ...offered, provider_id: 'prv_none' })).toMatchObject({
      status: 422,
      body: {
        category: 'invalid_capability',
        code: 'unknown',
        violations: [{ pointer: '/changes/relationship_changes/0/properties/provider_id' }],
      },
    })
    expect((await claim(vm, { ...offered, resource_id: 'us1-web-01' })).body.code).toBe('unknown')
  })

  describe('cannot be invented', () => {
    const uses = (target_id: string, properties: Record<string, unknown>, op = 'add') => ({
      op,
      type_key: 'uses_capability',
      target_id,
      properties: { requirement_key: 'slot', capability_key: 'compute.slots', ...properties },
    })
    const send = async (id: string, ...relationship_changes: object[]) =>
      c.result(id, {
        expected_version: (await c.as('vic').get(`/v1/resources/${id}`)).body.version,
        changes: { relationship_changes },
      })
    const needOf = async (id: string) => (await c.as('vic').get(`/v1/resources/${id}/capabilities`)).body.required[0]
    const offerOf = async (id: string) =>
      (await providers('')).find(({ resource_id }) => resource_id === id) as Offered & {
        capacity: { reserved: number }
      }
    /** What the edges of the truth claim of a resource. */
    const claimedOf = async (id: string) =>
      (
        await c.rows<{ sum: number }>(
          `select coalesce(sum(coalesce((e.properties->>'amount')::float8, 1)), 0) as sum from catalog.relationship e
             join catalog.resource r on r.rid = e.dst join catalog.relationship_type t on t.id = e.reltype_id
           where t.type_key = 'uses_capability' and r.resource_id = $1`,
          [id],
        )
      )[0]?.sum
    const provider = async (over: Record<string, unknown> = {}) => {
      const id = `room-${randomUUID()}`
      await c.as('ada').record(hostOf(id, 'eu1-a-web'))
      expect((await provide(id, { capacity: { total: 3 }, ...over })).status).toBe(200)
      return id
    }

    it('by a resource that provides nothing, a capability that does not exist, or one that the requirement does not want', async () => {
      const vm = (await machine()).resource_id
      const refused = async (...change: Parameters<typeof uses>) => {
        const { status, body } = await send(vm, uses(...change))
        return [status, body.category, body.code, body.violations?.[0].pointer.replace(/^.*properties/, '')]
      }
      await c.as('ada').record(hostOf('room-none', 'eu1-a-web'))
      expect(await refused('room-none', {})).toEqual([422, 'invalid_capability', 'unknown', '/provider_id'])
      expect(await refused('room-none', { capability_key: 'no.such.capability', amount: 1_000_000 })).toEqual([
        ...[422, 'invalid_capability', 'unknown', '/capability_key'],
      ])
      const id = await provider()
      expect(await refused(id, { requirement_key: 'slto' })).toEqual([
        422,
        'invalid_capability',
        'unknown',
        '/requirement_key',
      ])
      expect(await refused(id, { capability_key: 'traffic.http' })).toEqual([
        ...[422, 'invalid_capability', 'unknown', '/requirement_key'],
      ])
      expect(await needOf(vm)).toMatchObject({ state: 'satisfiable', bound_to: [] })
      expect(await claimedOf(id)).toBe(0)
    })

    it('by an offer without the attributes that its definition requires', async () => {
      const id = `room-${randomUUID()}`
      await c.as('ada').record(hostOf(id, 'eu1-a-web'))
      const capability_key = 'runtime.container'
      expect(await provide(id, { capability_key })).toMatchObject({ status: 422, body: { code: 'attributes' } })
      expect((await provide(id, { capability_key, attributes: { orchestrator: 'k8s' } })).status).toBe(200)
      expect((await provide(id, { op: 'update', capability_key, priority: 8 })).status).toBe(200)
    })

    it('beyond the available capacity, with or without the name of a provider, in one command or several', async () => {
      const [id, vm] = [await provider(), (await machine()).resource_id]
      const refusal = await send(vm, uses(id, { amount: 5 }))
      expect(refusal).toMatchObject({
        status: 422,
        body: { code: 'no_capacity', why_not: [{ resource_id: id, rule: 'capacity', wanted: 5, offered: 3 }] },
      })
      expect((await send(vm, uses(id, { amount: 2 }))).status).toBe(200)
      const { provider_id } = await offerOf(id)
      expect(await needOf(vm)).toMatchObject({
        state: 'bound',
        bound_to: [{ resource_id: id, provider_id, amount: 2 }],
      })
      // It may grow into the free capacity, and shrink at any time.
      expect((await send(vm, uses(id, { amount: 4 }, 'update'))).body.code).toBe('no_capacity')
      expect((await send(vm, uses(id, { amount: 3 }, 'update'))).status).toBe(200)
      expect((await provide(id, { op: 'update', capacity: { total: 1 } })).status).toBe(200)
      expect((await send(vm, uses(id, { amount: 2 }, 'update'))).status).toBe(200)
      expect((await provide(id, { op: 'update', capacity: { total: 3 } })).status).toBe(200)
      const two = [(await machine()).resource_id, (await machine()).resource_id]
      const taken = two.map((target_id) => ({ ...uses(target_id, {}), direction: 'in' }))
      expect((await send(id, ...taken)).body.code).toBe('no_capacity')
      expect((await send(id, taken[0] as object)).status).toBe(200)
      expect([await claimedOf(id), (await offerOf(id)).capacity.reserved]).toEqual([3, 3])
    })

    it('for longer than they are reserved: an expiry ends the claim, a confirmation keeps it', async () => {
      const [id, one, two] = [await provider(), (await machine()).resource_id, (await machine()).resource_id]
      const wrong = async (expires_at: string) => (await send(one, uses(id, { expires_at }))).body.violations?.[0]
      const inMs = (ms: number) => new Date(c.deps.clock.now().getTime() + ms).toISOString()
      for (const expires_at of ['2020-01-01T00:00:00Z', inMs(8 * 86_400_000)])
        expect(await wrong(expires_at)).toMatchObject({
          pointer: '/changes/relationship_changes/0/properties/expires_at',
          code: 'out_of_range',
        })
      expect((await wrong('soon'))?.pointer).toContain('expires_at')
      const local = inMs(2000 + 5 * 3_600_000).replace('Z', '+05:00')
      for (const vm of [one, two]) expect((await send(vm, uses(id, { expires_at: local }))).status).toBe(200)
      expect((await offerOf(id)).capacity.reserved).toBe(2)
      // The change with the confirmation names no expiry.
      expect((await send(two, uses(id, {}, 'update'))).status).toBe(200)
      const { version } = (await c.as('vic').get(`/v1/resources/${one}`)).body
      const swept = async () => {
        await sweepReservations(c.deps)
        return claimedOf(id)
      }
      await expect.poll(swept, { timeout: 20_000 }).toBe(1)
      expect([(await needOf(one)).state, (await needOf(two)).state]).toEqual(['satisfiable', 'bound'])
      const { body } = await c.as('vic').get(`/v1/resources/${one}`)
      expect([body.version, body.updated_by]).toEqual([version + 1, 'svc:catalog'])
      expect(await swept()).toBe(1)
    })

    it('nor what expired before it, if that cannot be ended: the others of every sweep still are', async () => {
      const id = await provider({ capacity: { total: 9 } })
      const inMs = (ms: number) => new Date(c.deps.clock.now().getTime() + ms).toISOString()
      const [stuck, free]: [string[], string[]] = [[], []]
      for (let i = 0; i < 4; i += 1) {
        const vm = (await machine()).resource_id
        expect((await send(vm, uses(id, { expires_at: inMs(10_000 + i) }))).status).toBe(200)
        await c.observe(vm, { ttl_s: 10 + i })
        ;(i < 2 ? stuck : free).push(vm, await provider({ expires_at: inMs(10_000 + i) }))
      }
      await c.rows(`create function refuse() returns trigger language plpgsql as $$ begin
          if new.rid in (select rid from catalog.resource where resource_id in ('${stuck.join("','")}'))
            then raise 'cannot be written'; end if; return new; end $$`)
      for (const table of ['resource_state', 'provider', 'observation_latest'])
        await c.rows(`create trigger refuse before update on catalog.${table} for each row execute function refuse()`)
      c.wait(20_000)
      for (const sweep of [sweepReservations, sweepHealth, sweepProviders]) await sweep(c.deps, { most: 2 })
      await c.rows('drop function refuse cascade')
      const left = async (ids: string[]) =>
        (
          await c.rows<{ n: number }>(
            `select count(*)::int as n from catalog.resource r where resource_id = any($1) and (
               exists (select from catalog.relationship e where e.src = r.rid and e.properties ? 'expires_at')
               or exists (select from catalog.provider p where p.rid = r.rid and not swept))
               and not exists (select from catalog.observation_latest o where o.rid = r.rid and swept)`,
            [ids],
          )
        )[0]?.n
      expect([await left(stuck), await left(free)]).toEqual([4, 0])
      expect(await claimedOf(id)).toBe(2)
    })

    it('beyond the capacity when an expiry, its confirmation and another claim meet', async () => {
      const id = await provider({ capacity: { total: 1 } })
      const holders = async () =>
        (await c.as('vic').get(`/v1/resources/${id}/relationships?direction=in`)).body.items.flatMap(
          ({ relationship, peer }: { relationship: { type_key: string }; peer: { resource_id: string } }) =>
            relationship.type_key === 'uses_capability' ? [peer.resource_id] : [],
        )
      for (let round = 0; round < 8; round += 1) {
        const [one, two] = [(await machine()).resource_id, (await machine()).resource_id]
        const expires_at = new Date(c.deps.clock.now().getTime() + 5000).toISOString()
        expect((await send(one, uses(id, { expires_at }))).status).toBe(200)
        c.wait(5000)
        const [, confirmed, claimed] = await Promise.all([
          sweepReservations(c.deps),
          send(one, uses(id, {}, 'update')),
          send(two, uses(id, {})),
        ])
        await sweepReservations(c.deps)
        const held = await holders()
        expect(held).toEqual([...(confirmed.status === 200 ? [one] : []), ...(claimed.status === 200 ? [two] : [])])
        expect([held.length <= 1, await claimedOf(id)]).toEqual([true, held.length])
        for (const vm of held) {
          const release = { op: 'remove', type_key: 'uses_capability', target_id: id }
          expect((await send(vm, release)).status).toBe(200)
        }
      }
    })

    it("by a planner: a reservation before the approval keeps the capacity, and the operation's write confirms it", async () => {
      const [id, planned, other] = [await provider({ capacity: { total: 1 } }), await machine(), await machine()]
      const reserve = async ({ resource_id }: { resource_id: string }) => {
        const expires_at = new Date(c.deps.clock.now().getTime() + 3_600_000).toISOString()
        const { version } = (await c.as('ada').get(`/v1/resources/${resource_id}`)).body
        const change = { resource_id, expected_version: version, relationship_changes: [uses(id, { expires_at })] }
        const items = [{ op: 'relate', change }]
        const { body } = await c.as('ada').post('/v1/resources:bulk?mode=record_only', { items })
        return body.results[0]
      }
      expect(await reserve(planned)).toMatchObject({ status: 200, body: { version: 2 } })
      expect(await reserve(other)).toMatchObject({
        status: 422,
        body: { category: 'invalid_capability', code: 'no_capacity', why_not: [{ resource_id: id, rule: 'capacity' }] },
      })
      expect((await offerOf(id)).capacity.reserved).toBe(1)
      expect((await send(planned.resource_id, uses(id, {}, 'update'))).status).toBe(200)
      c.wait(3_601_000)
      await sweepReservations(c.deps)
      expect((await needOf(planned.resource_id)).state).toBe('bound')
      expect([await claimedOf(id), (await reserve(other)).body.code]).toEqual([1, 'no_capacity'])
    })

    it('outside the version, the attributes and the place that the requirement asks for', async () => {
      const [near, far] = [await provider(), 'us1-web-01']
      const vm = (await machine()).resource_id
      expect(await send(vm, uses(far, {}))).toMatchObject({
        status: 422,
        body: { code: 'unknown', why_not: [{ rule: 'scope', wanted: { datacenter_id: 'eu1-a' } }] },
      })
      await c.rows(
        `update catalog.type set document = jsonb_set(document, '{requires,0,where}', '{"cpu_cores":{"$from":"target/desired_state/cpu_cores"}}')
         where type_key = 'infra.virtual_machine'`,
      )
      await c.rows(`update catalog.pack set load_no = load_no + 1 where pack = 'infra'`)
      await c.deps.registry.reload()
      expect((await provide(near, { op: 'update', attributes: { cpu_cores: 8 } })).status).toBe(200)
      // A command that changes its own requirement must meet the new one.
      const { version } = (await c.as('vic').get(`/v1/resources/${vm}`)).body
      const grown = { desired_state_patch: { cpu_cores: 32 }, relationship_changes: [uses(near, {})] }
      expect(await c.result(vm, { expected_version: version, changes: grown })).toMatchObject({
        status: 422,
        body: { code: 'attributes', why_not: [{ rule: 'attribute', attribute: 'cpu_cores', wanted: 32, offered: 8 }] },
      })
      await c.rows(
        `update catalog.type set document = document #- '{requires,0,where}' where type_key = 'infra.virtual_machine'`,
      )
      await c.rows(`update catalog.pack set load_no = load_no + 1 where pack = 'infra'`)
      await c.deps.registry.reload()
      expect((await send(vm, uses(near, {}))).status).toBe(200)
      // A repeat changes nothing: the server keeps its choice.
      expect((await send(vm, uses(near, {}))).body).toMatchObject({ applied: false })
    })

    it('by a claim that outlived its offer', async () => {
      const [id, vm] = [await provider(), (await machine()).resource_id]
      expect((await send(vm, uses(id, {}))).status).toBe(200)
      expect((await needOf(vm)).state).toBe('bound')
      expect((await provide(id, { op: 'remove' })).status).toBe(200)
      expect(await needOf(vm)).toMatchObject({ state: 'satisfiable', bound_to: [] })
    })

    it('by a new resource', async () => {
      const make = (target_id: string) =>
        c
          .as('ada')
          .post('/v1/resources?mode=record_only', {
            type_key: 'infra.virtual_machine',
            name: `vm-${randomUUID()}`,
            parent_id: 'eu1-a-web',
            desired_state: { hostname: 'vm' },
            relationships: [uses(target_id, { amount: 1 })].map(({ op: _, ...edge }) => edge),
          })
      expect((await make('room-none')).body.code).toBe('unknown')
      const made = await make(await provider())
      expect(made.status, made.text).toBe(201)
      expect((await needOf(made.body.resource_id)).state).toBe('bound')
    })
  })

  it('are compared with 1,000 needs in short turns: other requests need not wait', async () => {
    const region = 'many1'
    await seedRegion(c, region, 1)
    const { resource_id } = await machine(`${region}-a-web`)
    await addMany(c, resource_id, 'need', 1000, () => undefined)
    const hosts = await addMany(c, `${region}-web-01`, 'offer', 1900, () => undefined)
    await provide(`${region}-web-01`, { attributes: { cpu_cores: 8 }, capacity: { total: 4 } })
    await c.rows(
      `insert into catalog.provider select (jsonb_populate_record(v, jsonb_build_object('provider_id', 'prv-' || r.rid,
         'rid', r.rid, 'priority', r.rid % 100))).*
       from catalog.provider v join catalog.resource o using (rid), catalog.resource r
       where o.resource_id = $1 and v.withdrawn_at is null and r.resource_id = any($2)`,
      [`${region}-web-01`, hosts],
    )
    const cpu_ms = () => process.threadCpuUsage().user / 1000
    let last = cpu_ms()
    const turns: number[] = []
    let over = false
    const tick = () => {
      turns.push(cpu_ms() - last)
      last = cpu_ms()
      if (!over) setTimeout(tick, 2)
    }
    setTimeout(tick, 2)
    const reply = await c
      .as('vic')
      .get(`/v1/capabilities/graph?region_id=${region}`)
      .finally(() => {
        over = true
      })
    await c.rows(`delete from catalog.provider where provider_id like 'prv-%'`)
    expect(reply.status, reply.text).toBe(200)
    expect(Math.max(...turns)).toBeLessThan(400)
  }, 120_000)

  it('are claimed and released in the order of a command', async () => {
    const id = 'swap-01'
    await c.as('ada').record(hostOf(id, 'eu1-a-web'))
    await provide(id, { capacity: { total: 1 } })
    const [{ resource_id: one }, { resource_id: two }] = [await machine(), await machine()]
    const offered = async () => (await providers('')).find(({ resource_id }) => resource_id === id) as Offered
    const { provider_id } = await offered()
    const properties = { requirement_key: 'slot', capability_key: 'compute.slots', provider_id, amount: 1 }
    const at = (target_id: string) => ({ type_key: 'uses_capability', direction: 'in', target_id })
    const add = (target_id: string) => ({ op: 'add', ...at(target_id), properties })
    const remove = (target_id: string) => ({ op: 'remove', ...at(target_id) })
    const command = async (...relationship_changes: object[]) => {
      const { version } = (await c.as('vic').get(`/v1/resources/${id}`)).body
      return c.result(id, { expected_version: version, changes: { relationship_changes } })
    }
    const full = { status: 422, body: { code: 'no_capacity' } }
    expect(await command(add(one), add(two))).toMatchObject(full)
    expect(await command(add(one))).toMatchObject({ status: 200 })
    expect(await command(add(two), remove(one))).toMatchObject(full)
    expect(await command(remove(one), add(two))).toMatchObject({ status: 200 })
    expect(await offered()).toMatchObject({ free: 0, capacity: { reserved: 1 } })
    expect(await command(remove(two), add(two))).toMatchObject({ status: 200 })
  })

  it('are counted in a region whose id is a name that every object inherits', async () => {
    await seedRegion(c, 'constructor', 1)
    expect((await provide('constructor-web-01')).status).toBe(200)
    const { body } = await c.as('vic').get('/v1/capabilities/definitions/compute.slots')
    expect(body.providers.by_region.constructor).toBe(1)
  })

  it.each([
    ['sort=colour', 400],
    ['sort=distance', 400],
    ['status=odd', 400],
    ['version_range=nope', 400],
    ['attr.cpu_cores=gte:many', 400],
    ['attr..%20=1', 400],
    ['requirement_of=eu1-web-01/none', 400],
    ['min_free=-1', 400],
    ['near=not-there', 404],
    ['colour=red', 400],
    ['page_token=abc', 400],
  ])('refuse the question %s', async (query, status) => {
    const key = query.startsWith('requirement_of') ? '' : 'capability_key=compute.slots&'
    expect((await c.as('vic').get(`/v1/capabilities/providers?${key}${query}`)).status).toBe(status)
  })
})
