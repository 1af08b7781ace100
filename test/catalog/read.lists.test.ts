import { sql } from 'drizzle-orm'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { affordable } from '../../apps/catalog/read/lists.ts'
import { until } from '../support/until.ts'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
const total = 60
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 0)
  await seedRegion(c, 'us1', 0)
  for (let i = 0; i < total; i++) {
    const region = i % 2 === 0 ? 'eu1' : 'us1'
    const host = hostOf(`host-${String(i).padStart(2, '0')}`, `${region}-a-web`)
    await c
      .as('ada')
      .record({
        ...host,
        labels: { n: String(i % 5), tier: i % 3 === 0 ? 'gold' : 'tin', ...(i % 4 === 0 && { 'team/a.b': 'x' }) },
        lifecycle_status: i % 7 === 0 ? 'maintenance' : 'active',
        desired_state: { ...host.desired_state, cpu_cores: (i % 8) + 1, release: `1.${i % 4}.0` },
      })
  }
})
afterAll(() => c.stop())

type Item = { resource_id: string; name: string; version: number }
const walk = async (query: string, between: () => Promise<unknown> = async () => {}): Promise<Item[]> => {
  const items: Item[] = []
  let token = ''
  for (;;) {
    const reply = await c.as('vic').get(`/v1/resources?${query}${token && `&page_token=${token}`}`)
    expect(reply.status).toBe(200)
    items.push(...reply.body.items)
    if (reply.body.next_page_token === null) return items
    token = reply.body.next_page_token
    await between()
  }
}
const idsOf = (items: Item[]) => items.map(({ resource_id }) => resource_id)

describe('lists', () => {
  it.each([
    'name',
    'resource_id',
    '-created_at',
    'type_key,-name',
    '-health_status,name',
    'lifecycle_status,created_at',
  ])('shows each row once in the order %s', async (sort) => {
    const items = await walk(`type_key=infra.host&page_size=7&sort=${sort}`)
    expect(items).toHaveLength(total)
    expect(new Set(idsOf(items)).size).toBe(total)
  })

  it.each(['name', '-created_at', 'type_key,-name', '-health_status,name'])(
    'gives the same rows on the way back, sorted by %s',
    async (sort) => {
      const page = async (token: string | null) =>
        (
          await c
            .as('vic')
            .get(`/v1/resources?type_key=infra.host&page_size=7&sort=${sort}${token ? `&page_token=${token}` : ''}`)
        ).body
      const forth: string[] = []
      let last = await page(null)
      expect(last.prev_page_token).toBe(null)
      for (;;) {
        forth.push(...idsOf(last.items))
        if (last.next_page_token === null) break
        last = await page(last.next_page_token)
      }
      const back: string[] = []
      for (;;) {
        back.unshift(...idsOf(last.items))
        if (last.prev_page_token === null) break
        last = await page(last.prev_page_token)
      }
      expect(back).toEqual(forth)
      // The first page, reached backward, also leads forward again.
      expect(idsOf((await page(last.next_page_token)).items)).toEqual(forth.slice(last.items.length).slice(0, 7))
    },
  )

  it.each(['name', '-resource_id', 'created_at'])(
    'shows each row that lasts exactly once under writes, sorted by %s',
    async (sort) => {
      let n = 0
      const write = async () => {
        const id = `extra-${sort.replace('-', '')}-${n++}`
        await c.as('ada').record({ ...hostOf(id, 'eu1-a-web'), labels: { extra: 'yes' } })
        const some = `host-${String(Math.floor(Math.random() * total)).padStart(2, '0')}`
        const { version } = (await c.as('vic').get(`/v1/resources/${some}`)).body
        await c
          .as('olga')
          .patch(`/v1/resources/${some}`, { annotations: { at: String(Math.random()) }, expected_version: version })
      }
      const lasting = idsOf(await walk(`type_key=fleet.host&page_size=9&sort=${sort}`, write)).filter((id) =>
        id.startsWith('host-'),
      )
      expect(lasting).toHaveLength(total)
      expect(new Set(lasting).size).toBe(total)
    },
  )

  it('show the places as one graph with counts, report cuts, and hide what the reader may not see', async () => {
    const { body } = await c.as('vic').get('/v1/topology/graph')
    const at = (region: string) => [region, `${region}-a`, `${region}-a-edge`, `${region}-a-web`]
    expect(body.nodes.map(({ resource_id }: Item) => resource_id)).toEqual(
      at('eu1').flatMap((id, level) => [id, at('us1')[level]]),
    )
    for (const [path, level] of [
      ['regions', 0],
      ['segments', 3],
    ] as const) {
      const { items } = (await c.as('vic').get(`/v1/topology/${path}`)).body
      for (const { resource_id, counts } of items)
        expect(body.nodes.find((node: Item) => node.resource_id === resource_id).counts).toEqual(counts)
      expect(items[0].resource_id).toBe(at('eu1')[level])
    }
    const links = (list: { type_key: string; from: string; to: string }[]) =>
      list.map(({ type_key, from, to }) => `${from} ${type_key} ${to}`).sort()
    const inside = (region: string) => [3, 2, 1].map((i) => `${at(region)[i]} contained_in ${at(region)[i - 1]}`)
    expect(links(body.edges)).toEqual([...inside('eu1'), ...inside('us1')].sort())
    expect(body.truncated).toEqual({ nodes: false, edges: false })
    const cut = (await c.as('vic').get('/v1/topology/graph?max_nodes=3')).body
    expect([cut.nodes.length, cut.truncated.nodes]).toEqual([3, true])
    for (const seen of [
      await c.as('far').get('/v1/topology/graph'),
      await c.as('vic').get('/v1/topology/graph?region_id=us1'),
    ])
      expect(seen.body.nodes.map(({ resource_id }: Item) => resource_id)).toEqual(at('us1'))
    expect((await c.as('vic').get('/v1/topology/graph?max_nodes=0')).status).toBe(400)
  })

  it('select places as the list of resources does, at the present time only', async () => {
    const segments = async (query: string) => {
      const { status, body } = await c.as('vic').get(`/v1/topology/segments?${query}`)
      return status === 200 ? idsOf(body.items) : status
    }
    const [all, eu] = [['eu1-a-web', 'us1-a-web'], ['eu1-a-web']]
    expect(await segments('parent_id=eu1-a-edge')).toEqual(eu)
    expect(await segments('ids=eu1-a-web,eu1-a')).toEqual(eu)
    expect(await segments('lifecycle_status=active')).toEqual(all)
    expect(await segments('lifecycle_status=retired')).toEqual([])
    expect(await segments('owned_by=not-there')).toEqual([])
    expect(await segments('drift=drifted')).toEqual([])
    expect(await segments('stale_since=2000-01-01T00:00:00Z')).toEqual([])
    expect(await segments('at=2020-01-01T00:00:00Z')).toBe(400)
  })

  it('is refused as too expensive if the database gives up', async () => {
    const slow = c.deps.db.transaction(async (tx) => {
      await tx.execute(sql`set local statement_timeout = 20`)
      await tx.execute(sql`select pg_sleep(5)`)
    })
    await expect(affordable(slow)).rejects.toMatchObject({ status: 422, code: 'query_too_expensive' })
  })

  it('reads a page and its count together, so that both fit into the time of a request', async () => {
    const client = await c.deps.pool.connect()
    await client.query('begin')
    await client.query('lock table catalog.resource_state in access exclusive mode')
    try {
      const reply = c.as('vic').get('/v1/resources?count=exact&health_status=healthy&page_size=1')
      const waits = () =>
        c.rows(
          'select distinct pid from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())',
        )
      await until(async () => (await waits()).length > 1, { what: 'two statements that wait' })
      await client.query('rollback')
      expect((await reply).status).toBe(200)
    } finally {
      await client.query('rollback')
      client.release()
    }
  })

  it('does not lose rows whose keys differ in microseconds only', async () => {
    await c.rows(
      `update catalog.resource set created_at = timestamptz '2026-01-01 00:00:00.000001' + rid * interval '1 microsecond' where resource_id like 'host-%'`,
    )
    expect(await walk('type_key=fleet.host&page_size=3&sort=created_at&label=tier')).toHaveLength(total)
    await c.rows(
      `update catalog.resource r set created_at = v.at from catalog.revision v where v.rid = r.rid and v.version = 1`,
    )
  })

  it('show resources as they were at a time, whatever became of them', async () => {
    const places = 'ids=past-a,past-b,past-c,past-d&sort=name'
    for (const id of ['past-a', 'past-b', 'past-c'])
      await c.as('ada').record({ ...hostOf(id, 'eu1-a-web'), labels: { era: 'old' } })
    const seen = async (query: string) => {
      const { items } = (await c.as('vic').get(`/v1/resources?${query}`)).body
      return items.map(({ health_revision, conditions, historical, ...item }: Record<string, unknown>) => item)
    }
    const now = await seen(`${places}&include=state`)
    const at = c.deps.clock.now().toISOString()
    c.wait(1000)
    await c.as('olga').patch('/v1/resources/past-a', { labels: { era: 'new' }, expected_version: 1 })
    const move = ['remove', 'add'].map((op, i) => ({
      op,
      type_key: 'contained_in',
      target_id: i === 0 ? 'eu1-a-web' : 'us1-a-web',
    }))
    expect((await c.result('past-b', { expected_version: 1, changes: { relationship_changes: move } })).status).toBe(
      200,
    )
    for (const [i, lifecycle_status] of ['deprovisioning', 'retired'].entries())
      expect((await c.result('past-c', { expected_version: 1 + i, changes: { lifecycle_status } })).status).toBe(200)
    await c.as('ada').record({ ...hostOf('past-d', 'eu1-a-web'), labels: { era: 'old' } })

    expect(await seen(`${places}&include=state&at=${at}`)).toEqual(now)
    const names = async (query: string) => idsOf(await walk(`label=era&at=${at}&${query}`))
    const all = ['past-a', 'past-b', 'past-c']
    expect(await names('label=era=old&region_id=eu1&type_key=infra.host')).toEqual(all)
    expect(await names(`filter=${encodeURIComponent('scope.region_id=eu1 AND labels.era=old')}&page_size=1`)).toEqual(
      all,
    )
    expect(await names('region_id=us1')).toEqual([])
    expect(await names('sort=-created_at&page_size=2')).toHaveLength(3)
    expect(await names('lifecycle_status=retired')).toEqual([])
    expect(idsOf(await walk(`label=era=old&page_size=500`))).toEqual(['past-b', 'past-d'])

    const refused = async (query: string) => (await c.as('vic').get(`/v1/resources?${query}`)).body
    expect(await refused('at=2999-01-01T00:00:00Z')).toMatchObject({ status: 400, code: 'time_in_future' })
    expect(await refused('at=2001-01-01T00:00:00Z')).toMatchObject({ status: 410, code: 'history_pruned' })
    for (const query of ['count=exact', 'health_status=healthy', 'sort=updated_at', 'include=health', 'max_lag_ms=1'])
      expect(await refused(`at=${at}&${query}`)).toMatchObject({ status: 400, code: 'schema_violation' })
    expect(await refused(`at=${at}&filter=provides=compute.slots`)).toMatchObject({ code: 'filter_invalid' })
  })

  it('binds a page token to the list and to the caller', async () => {
    const page = await c.as('vic').get('/v1/resources?page_size=2')
    const token = page.body.next_page_token
    expect((await c.as('vic').get(`/v1/resources?page_size=4&page_token=${token}`)).status).toBe(200)
    expect((await c.as('vic').get(`/v1/resources?sort=-name&page_token=${token}`)).body.code).toBe(
      'page_token_mismatch',
    )
    expect((await c.as('vic').get(`/v1/resources?type_key=infra.host&page_token=${token}`)).body.code).toBe(
      'page_token_mismatch',
    )
    expect((await c.as('olga').get(`/v1/resources?page_token=${token}`)).body.code).toBe('page_token_invalid')
    const forged = `${Buffer.from('{"list":"x","user":"y","keys":[]}').toString('base64url')}.${token.split('.')[1]}`
    // The last of 22 characters has four bits that 16 bytes do not use: A, Q, g or w.
    const twin = `${token.slice(0, -1)}${String.fromCharCode(token.charCodeAt(token.length - 1) + 1)}`
    for (const altered of [forged, twin, `${token}%3D`, `${token}.`, `${token}.AA`])
      expect((await c.as('vic').get(`/v1/resources?page_token=${altered}`)).body.code).toBe('page_token_invalid')
  })

  it('narrows by the structural parameters', async () => {
    const count = async (query: string) => (await walk(`page_size=500&label=tier&${query}`)).length
    expect(await count('region_id=eu1')).toBe(30)
    expect(await count('datacenter_id=us1-a')).toBe(30)
    expect(await count('layer_id=eu1-a-edge&layer_kind=edge')).toBe(30)
    expect(await count('segment_id=eu1-a-web')).toBe(30)
    expect(await count('segment_id=eu1')).toBe(0)
    expect(await count('parent_id=us1-a-web')).toBe(30)
    expect(await count('type_key=infra.managed')).toBe(60)
    expect(await count('type_key=topology.region,infra.host')).toBe(60)
    expect(await count('lifecycle_status=maintenance')).toBe(9)
    expect(await count('lifecycle_status=maintenance&lifecycle_status=active')).toBe(60)
    expect(await count('label=tier=gold&label=n=0')).toBe(4)
    expect(await count('label=team/a.b')).toBe(15)
    expect(await count('ids=host-01,host-02&ids=host-03')).toBe(3)
    for (const name of ['ids', 'type_key', 'lifecycle_status', 'health_status', 'label', 'include', 'fields'])
      expect(await c.as('vic').get(`/v1/resources?${name}=`), name).toMatchObject({
        status: 400,
        body: { violations: [{ pointer: `/querystring/${name}` }] },
      })
    expect(await count('drift=drifted')).toBe(45)
    expect(await count('health_status=unknown')).toBe(60)
    const capped = await c.as('vic').get('/v1/resources?page_size=1&count=capped&label=tier')
    expect(capped.body.count).toEqual({ value: 60, relation: 'eq' })
  })

  it('give states only on request', async () => {
    const [plain] = (await c.as('vic').get('/v1/resources?ids=host-01')).body.items
    expect(Object.keys(plain)).not.toEqual(expect.arrayContaining(['desired_state']))
    const [full] = (await c.as('vic').get('/v1/resources?ids=host-01&include=state')).body.items
    expect(full).toMatchObject({
      desired_state: { hostname: 'host-01' },
      conditions: [{ type: 'active' }, { type: 'in_sync' }, { type: 'healthy' }],
    })
  })
})

describe('the content of a reply', () => {
  const read = async (path: string) => (await c.as('vic').get(path)).body

  it('is limited to the requested fields, with id and version', async () => {
    const [item] = (
      await read('/v1/resources?ids=host-01&fields=name,labels.tier,desired_state.release,scope.region_id')
    ).items
    expect(item).toEqual({
      resource_id: 'host-01',
      version: expect.any(Number),
      name: 'host-01',
      labels: { tier: 'tin' },
      desired_state: { release: '1.1.0' },
      scope: { region_id: 'us1' },
    })
    expect(await read('/v1/resources/host-00?fields=labels.team/a.b,observed_state,observed_state.release')).toEqual({
      resource_id: 'host-00',
      version: expect.any(Number),
      labels: { 'team/a.b': 'x' },
      observed_state: expect.objectContaining({ hostname: 'host-00', release: '1.0.0' }),
    })
    expect(await read('/v1/resources/host-00?fields=last_operation.operation_id,desired_state.release.x')).toEqual({
      resource_id: 'host-00',
      version: expect.any(Number),
      last_operation: null,
      desired_state: {},
    })
    const places = await read('/v1/topology/regions?fields=name&include=health')
    expect(places.items[0]).toMatchObject({ name: 'eu1', health: { status: 'unknown' }, counts: expect.anything() })
    expect(places.items[0]).not.toHaveProperty('labels')
  })

  it.each(['colour', 'name.x', 'scope.planet', 'labels.', 'drift.status.x', '__proto__', '__proto__.x'])(
    'refuses the field %j',
    async (field) => {
      for (const path of ['/v1/resources', '/v1/resources/host-01', '/v1/topology/layers'])
        expect(await c.as('vic').get(`${path}?fields=name,${field}`)).toMatchObject({
          status: 400,
          body: { code: 'unknown_field', violations: [{ pointer: '/querystring/fields' }] },
        })
    },
  )

  it('has the counts that include asks for, of what the reader sees', async () => {
    const query = 'ids=eu1-a-web,host-01&include=health,relationships,capabilities&sort=resource_id'
    const [segment, host] = (await read(`/v1/resources?${query}`)).items
    expect(segment.relationships).toMatchObject({ out: 1 })
    expect(segment.relationships.in).toBeGreaterThanOrEqual(30)
    expect(host).toMatchObject({
      health: { status: 'unknown', reason: 'never_observed' },
      capabilities: { provided: 0, required: 0 },
    })
    const [alone] = (await c.as('hosts').get(`/v1/resources?ids=host-01&include=relationships`)).body.items
    expect(alone.relationships).toEqual({ out: 0, in: 0 })
    const single = await c.as('vic').get('/v1/resources/host-01?include=relationships')
    expect(single.body.relationships).toEqual({ out: 1, in: 0 })
    expect(single.headers.get('etag')).toBe(null)
    expect((await c.as('vic').get('/v1/resources?include=colour')).status).toBe(400)
  })

  it('includes the write that min_change names, and refuses an invalid token', async () => {
    const written = await c.as('ada').record(hostOf('fresh-1', 'eu1-a-web'))
    const token = written.change_token
    expect((await read(`/v1/resources?ids=fresh-1&min_change=${token}&max_lag_ms=0`)).items).toHaveLength(1)
    const never = Buffer.from('resource fresh-1 9').toString('base64url')
    expect(await c.as('vic').get(`/v1/resources?min_change=${never}`, { once: true })).toMatchObject({
      status: 503,
      body: { category: 'stale_projection', code: 'projection_lag', watermark: { observed: '1', required: '9' } },
    })
    for (const broken of ['x', Buffer.from('resource nothing-there 1').toString('base64url')])
      expect((await c.as('vic').get(`/v1/resources?min_change=${broken}`)).body.code).toBe('change_token_invalid')
    // A hidden resource answers like one that does not exist.
    expect((await c.as('far').get(`/v1/resources?min_change=${token}`)).body.code).toBe('change_token_invalid')
  })

  it('answers 304 if nothing changed since a time', async () => {
    const before = encodeURIComponent('2020-01-01T00:00:00Z')
    expect((await read(`/v1/resources?stale_since=${before}`)).items).toEqual([])
    const after = encodeURIComponent(new Date(Date.now() + 60_000).toISOString())
    expect((await read(`/v1/resources?ids=host-01&stale_since=${after}`)).items).toHaveLength(1)
  })
})

describe('filters', () => {
  const found = async (filter: string) =>
    (await walk(`page_size=500&label=tier&filter=${encodeURIComponent(filter)}`)).length

  it.each([
    ['name:OST-0', 10],
    ['name="host-00"', 1],
    ['labels.tier=gold AND labels.n=0', 4],
    ['labels.n=0 OR labels.n=1 AND labels.tier=gold', 8],
    ['(labels.n=0 AND labels.tier=gold) OR name:host-59', 5],
    ['NOT labels.tier=gold', 40],
    ['-labels.tier=gold', 40],
    ['labels.none!=x', 60],
    ['labels."team/a.b":*', 15],
    ['type_key:infra.host', 60],
    ['type_key=infra.host', 0],
    ['scope.region_id=eu1', 30],
    ['layer_kind=edge', 60],
    ['lifecycle_status!=active', 9],
    ['desired_state.cpu_cores>6', 14],
    ['desired_state.cpu_cores=1', 8],
    ['desired_state.release=1.0.0', 15],
    ['desired_state.release:"1.3"', 15],
    ['desired_state.nothing:*', 0],
    ['observed_state.release="1.0.0"', 60],
    ['drift=in_sync', 15],
    ['version>=1 AND created_at<2099-01-01T00:00:00Z', 60],
    ['owner:*', 0],
  ])('%s', async (filter, expected) => {
    expect(await found(filter)).toBe(expected)
  })

  it.each([
    '',
    'name',
    'name=',
    '=x',
    'name=a name=b',
    'name=a AND',
    '(name=a',
    'name=a)',
    'name="a',
    'version>x',
    'created_at>2026-02-30T00:00:00Z',
    'created_at>0000-01-01',
    'updated_at<2026-06-31',
    'updated_at<2026-06-30T00:00:00+23:59',
    'created_at>2026-01-01T25:00:00Z',
    'scope.planet=1',
    'scope.constructor=x',
    'scope.toString:*',
    'constructor=x',
    'constructor:*',
    'NOT constructor=x',
    '__proto__=x',
    'hasOwnProperty>1',
    'name=a;drop',
    `${'('.repeat(12)}name=a${')'.repeat(12)}`,
    '--name=a',
    'NOT -name=a',
    `${'-'.repeat(2040)}name=a`,
  ])('refuses %j with the place of the fault', async (filter) => {
    const reply = await c.as('vic').get(`/v1/resources?filter=${encodeURIComponent(filter)}`)
    expect(reply).toMatchObject({
      status: 400,
      body: { code: 'filter_invalid', violations: [{ pointer: '/filter', offset: expect.any(Number) }] },
    })
  })

  it('ignores case in any script, and reads the largest integer', async () => {
    const attributes = { place: 'Örtlich in МОСКВА', most: Number.MAX_SAFE_INTEGER }
    const body = { type_key: 'infra.generic', name: 'scripts', display_name: 'ÜBER' }
    const { resource_id } = await c
      .as('ada')
      .record({ ...body, desired_state: { provider: 'p', kind: 'k', attributes } })
    for (const filter of [
      'display_name:"über"',
      'desired_state.attributes.place:"ÖRTLICH in москва"',
      `desired_state.attributes.most=${Number.MAX_SAFE_INTEGER}`,
    ]) {
      const reply = await c.as('vic').get(`/v1/resources?filter=${encodeURIComponent(filter)}`)
      expect([filter, reply.body.items?.map((one: { resource_id: string }) => one.resource_id)]).toEqual([
        filter,
        [resource_id],
      ])
    }
  })

  it('equals an evaluation in memory on random expressions', async () => {
    const items = (await walk('page_size=500&label=tier&include=state')) as (Item & {
      labels: Record<string, string>
      lifecycle_status: string
      desired_state: { cpu_cores: number }
    })[]
    type Tree = { text: string; holds: (item: (typeof items)[0]) => boolean }
    type Holds = Tree['holds']
    const leaf: fc.Arbitrary<Tree> = fc.oneof(
      fc
        .integer({ min: 0, max: 6 })
        .map((n) => ({ text: `labels.n=${n}`, holds: ((item) => item.labels.n === String(n)) satisfies Holds })),
      fc
        .integer({ min: 0, max: 9 })
        .map((n) => ({
          text: `desired_state.cpu_cores<=${n}`,
          holds: ((item) => item.desired_state.cpu_cores <= n) satisfies Holds,
        })),
      fc
        .constantFrom('gold', 'tin')
        .map((tier) => ({
          text: `labels.tier!=${tier}`,
          holds: ((item) => item.labels.tier !== tier) satisfies Holds,
        })),
      fc
        .integer({ min: 0, max: 9 })
        .map((n) => ({ text: `name:"t-${n}"`, holds: ((item) => item.name.includes(`t-${n}`)) satisfies Holds })),
      fc.constant({
        text: 'lifecycle_status=maintenance',
        holds: ((item) => item.lifecycle_status === 'maintenance') satisfies Holds,
      }),
    )
    const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        leaf,
        fc
          .tuple(tie('tree'), tie('tree'), fc.constantFrom('AND', 'OR'))
          .map(([a, b, op]) => ({
            text: `(${a.text}) ${op} (${b.text})`,
            holds: (item: (typeof items)[0]) =>
              op === 'AND' ? a.holds(item) && b.holds(item) : a.holds(item) || b.holds(item),
          })),
        tie('tree').map((inner) => ({
          text: `NOT (${inner.text})`,
          holds: (item: (typeof items)[0]) => !inner.holds(item),
        })),
      ),
    }))
    await fc.assert(
      fc.asyncProperty(
        tree.filter(
          ({ text }) => text.length < 500 && (text.match(/=|:/g)?.length ?? 0) < 15 && !text.includes('(((((('),
        ),
        async ({ text, holds }) => {
          const ids = idsOf(await walk(`page_size=500&label=tier&sort=resource_id&filter=${encodeURIComponent(text)}`))
          expect(ids).toEqual(idsOf(items.filter(holds)).sort())
        },
      ),
      { numRuns: 60 },
    )
  })
})
