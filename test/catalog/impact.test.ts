import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Store } from '../../apps/catalog/graph/store.ts'
import { readAffected } from '../../apps/catalog/impact/affected.ts'
import { readImpact } from '../../apps/catalog/impact/read.ts'
import { walkImpact } from '../../apps/catalog/impact/walk.ts'
import type { Impact } from '../../apps/shared/contracts/topology/impact.ts'
import { addMany } from './support/many.ts'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog

type Edge = { type_key: string; target_id: string }
const record = (resource_id: string, relationships: Edge[] = [], parent_id?: string) =>
  c
    .as('ada')
    .record({
      resource_id,
      type_key: 'infra.generic',
      name: resource_id,
      desired_state: { provider: 'test', kind: 'thing' },
      relationships,
      ...(parent_id !== undefined && { parent_id }),
    })
const edge = (type_key: string) => (target_id: string) => ({ type_key, target_id })
const [needs, on, member] = [edge('depends_on'), edge('hosted_on'), edge('member_of')]

beforeAll(async () => {
  c = await startCatalog()
  c.deps.graph.start()
  await seedRegion(c, 'eu1', 0)
  await seedRegion(c, 'us1', 0)
  await record('power')
  await record('rack', [needs('power')], 'eu1-a-web')
  await record('host', [], 'rack')
  await record('vm', [on('host')], 'eu1-a-web')
  await record('site', [needs('vm')], 'us1-a-web')
  await record('pool')
  await record('m1', [on('host'), member('pool')])
  await record('m2', [member('pool')])
  await record('m3', [member('pool')])
  await record('front', [needs('pool'), needs('site')], 'eu1-a-web')
  await record('apart')
  await c.followed()
})
afterAll(() => c.stop())

const ask = async (id: string, query = '', as: 'vic' | 'far' = 'vic'): Promise<Impact> => {
  const reply = await c.as(as).get(`/v1/resources/${id}/impact?${query}`)
  expect(reply.status, reply.text).toBe(200)
  return reply.body
}
const effects = ({ items }: Impact) => items.map(({ resource_id, effect, distance }) => [resource_id, effect, distance])
const ways = ({ items }: Impact) =>
  Object.fromEntries(
    items.map(({ resource_id, path }) => [
      resource_id,
      path.map((step) => `${step.relationship_type} ${step.resource_id ?? 'hidden'}`),
    ]),
  )

describe('the impact of a resource', () => {
  it('lists all dependents, the worst and nearest first, each with its effect and a shortest path', async () => {
    const impact = await ask('host')
    expect(effects(impact)).toEqual([
      ['m1', 'unhealthy', 1],
      ['vm', 'unhealthy', 1],
      ['pool', 'degraded', 2],
      ['site', 'degraded', 2],
      ['front', 'degraded', 3],
    ])
    expect(ways(impact)).toMatchObject({
      pool: ['hosted_on m1', 'member_of pool'],
      site: ['hosted_on vm', 'depends_on site'],
    })
    expect(impact.counts).toEqual({
      total: 5,
      hidden: 0,
      by_effect: { unhealthy: 2, degraded: 3 },
      by_type: { 'infra.generic': 5 },
      by_health: { unknown: 5 },
    })
    expect(impact.truncated).toEqual({ items: false, visited: false })
  })

  it('passes from a place to its contents, and never to its container', async () => {
    expect(effects(await ask('rack')).slice(0, 3)).toEqual([
      ['host', 'unhealthy', 1],
      ['m1', 'unhealthy', 2],
      ['vm', 'unhealthy', 2],
    ])
    const ids = (await ask('power')).items.map(({ resource_id }) => resource_id)
    expect(ids).toEqual(['rack', 'host', 'm1', 'vm', 'pool', 'site', 'front'])
    expect((await ask('eu1')).items.map(({ resource_id }) => resource_id)).not.toContain('eu1')
  })

  it('makes a group unhealthy when its quorum is gone', async () => {
    await record('node')
    await record('group')
    for (const id of ['g1', 'g2']) await record(id, [on('node'), member('group')])
    await record('g3', [member('group')])
    await c.followed()
    expect(effects(await ask('node')).find(([id]) => id === 'group')).toEqual(['group', 'unhealthy', 2])
    expect(effects(await ask('g1'))).toEqual([['group', 'degraded', 1]])
  })

  it('of several resources together counts each once, without the resources themselves', async () => {
    const { affected } = await readAffected(c.deps, { resource_ids: ['host', 'vm', 'm2', 'unknown'] })
    expect(affected).toMatchObject({
      total: 4,
      at_least: false,
      unhealthy: 2,
      groups: [{ type_key: 'infra.generic', health_status: 'unknown', count: 4, unhealthy: 2 }],
    })
    expect(affected?.groups[0]?.nearest.map(({ resource_id }) => resource_id).sort()).toEqual([
      'front',
      'm1',
      'pool',
      'site',
    ])
  })

  it('is empty for a resource without dependents', async () => {
    expect(await ask('apart')).toMatchObject({ items: [], counts: { total: 0, hidden: 0 } })
  })

  it('is cut by limit and max_distance, with counts of all that was reached', async () => {
    const first = await ask('host', 'limit=1')
    expect([first.items.length, first.counts.total, first.truncated.items]).toEqual([1, 5, true])
    const near = await ask('host', 'max_distance=1')
    expect([near.truncated, (await ask('host', 'max_distance=3')).truncated]).toEqual([
      { items: false, visited: true },
      { items: false, visited: false },
    ])
    expect(effects(near)).toEqual([
      ['m1', 'unhealthy', 1],
      ['vm', 'unhealthy', 1],
    ])
    expect((await c.as('vic').get('/v1/resources/host/impact?limit=0')).status).toBe(400)
  })

  it('counts resources that the reader may not see, but never names them', async () => {
    await record('core', [], 'us1-a-web')
    await record('edge-eu', [needs('core')], 'eu1-a-web')
    await record('back-us', [needs('edge-eu')], 'us1-a-web')
    await c.followed()
    const impact = await ask('core', '', 'far')
    expect(impact.counts).toMatchObject({ total: 2, hidden: 1 })
    expect(ways(impact)).toEqual({ 'back-us': ['depends_on hidden', 'depends_on back-us'] })
    expect(JSON.stringify(impact)).not.toContain('edge-eu')
    expect((await c.as('far').get('/v1/resources/rack/impact')).status).toBe(404)
  })

  it('goes around a ring once, and leaves out where it began', async () => {
    await record('ring-0')
    await record('ring-1', [needs('ring-0')])
    await record('ring-2', [needs('ring-1')])
    await record('beside', [needs('ring-1')])
    const { version } = (await c.as('vic').get('/v1/resources/ring-0')).body
    const close = { relationship_changes: [{ op: 'add', ...needs('ring-2') }] }
    expect((await c.result('ring-0', { expected_version: version, changes: close })).status).toBe(200)
    await c.followed()
    const impact = await ask('ring-0')
    expect(impact.counts.total).toBe(3)
    expect(effects(impact)).toEqual([
      ['ring-1', 'degraded', 1],
      ['beside', 'degraded', 2],
      ['ring-2', 'degraded', 2],
    ])
    expect(ways(impact)['ring-2']).toEqual(['depends_on ring-1', 'depends_on ring-2'])
  })

  it('is read by services too', async () => {
    const reply = await c.internally('GET', '/resources/host/impact')
    expect([reply.status, reply.body.counts?.total]).toEqual([200, 5])
  })

  /** A host with this many slots; returns the id of its provider. */
  const slotsOf = async (id: string, total: number): Promise<string> => {
    await c.as('ada').record(hostOf(id, 'eu1-a-web'))
    const { version } = (await c.as('vic').get(`/v1/resources/${id}`)).body
    const add = { op: 'add', capability_key: 'compute.slots', version: '1.0.0', capacity: { total } }
    const reply = await c.internally('POST', `/resources/${id}/provided-capabilities`, {
      ...{ command_id: randomUUID(), idempotency_key: randomUUID(), resource_id: id, mode: 'merge' },
      ...{ expected_version: version, provided_capability_changes: [add] },
    })
    expect(reply.status, reply.text).toBe(200)
    const { body } = await c.as('vic').get(`/v1/capabilities/providers?capability_key=compute.slots`)
    return body.items.find(({ resource_id }: { resource_id: string }) => resource_id === id).provider_id
  }
  const claims = async (id: string, target_id: string, requirement_key = 'slot') => {
    const { version } = (await c.as('vic').get(`/v1/resources/${id}`)).body
    const properties = { requirement_key, capability_key: 'compute.slots', amount: 1 }
    const changes = { relationship_changes: [{ op: 'add', type_key: 'uses_capability', target_id, properties }] }
    const done = await c.result(id, { expected_version: version, changes })
    expect(done.status, done.text).toBe(200)
  }
  const machine = (id: string) =>
    c
      .as('ada')
      .record({
        ...{ resource_id: id, name: id, parent_id: 'eu1-a-web', lifecycle_status: 'active' },
        ...{ type_key: 'infra.virtual_machine', desired_state: { hostname: id } },
      })

  it('of one that is gone or in maintenance names the needs that it meets, and what is left for each', async () => {
    const versionOf = async (id: string) => (await c.as('vic').get(`/v1/resources/${id}`)).body.version
    await slotsOf('slots-1', 2)
    for (const id of ['vm-a', 'vm-b']) {
      await machine(id)
      await claims(id, 'slots-1')
    }
    await c.followed()
    expect((await ask('slots-1')).without).toBeNull()
    const gone = await ask('slots-1', 'assume=gone')
    const need = (resource_id: string, left: number) => ({
      ...{ resource_id, name: resource_id, requirement_key: 'slot', capability_key: 'compute.slots', needed: 1, left },
    })
    expect(gone.without).toEqual({
      ...{ needs: [need('vm-a', 0), need('vm-b', 0)], unmet: 2, hidden: 0, cut: false, prevent_retiring: 2 },
    })
    expect(gone.items).toEqual((await ask('slots-1')).items)
    await slotsOf('slots-2', 1)
    await c.followed()
    const away = await ask('slots-1', 'assume=maintenance')
    expect([away.items, away.counts.total]).toEqual([[], 0])
    expect(away.without).toMatchObject({ needs: [need('vm-a', 1), need('vm-b', 1)], unmet: 0 })
    expect((await c.as('vic').get('/v1/resources/slots-1/impact?assume=broken')).status).toBe(400)
    // The catalog refuses its retirement for the same two.
    const move = async (lifecycle_status: string) => {
      const body = { lifecycle_status, expected_version: await versionOf('slots-1') }
      return c.as('ada').patch('/v1/resources/slots-1?mode=record_only', body)
    }
    expect((await move('deprovisioning')).status).toBe(200)
    expect((await move('retired')).body).toMatchObject({ code: 'blocked_by_dependents', blockers_count: 2 })
  })

  it('counts no provider as left that a need is bound to, if it is not available', async () => {
    for (const id of ['pair-1', 'pair-2']) await slotsOf(id, 1)
    await machine('vm-pair')
    for (const id of ['pair-1', 'pair-2']) await claims('vm-pair', id)
    await c.followed()
    const left = async () => (await ask('pair-1', 'assume=gone')).without?.needs.map((need) => need.left)
    const before = (await left())?.[0] ?? 0
    await c.observe('pair-2', { status: 'unhealthy' })
    await c.followed()
    expect(await left()).toEqual([before - 1])
  })

  it('weighs only the needs that the resource meets, and says how to ask if that is too much', async () => {
    await slotsOf('much', 2)
    await machine('vm-much')
    await claims('vm-much', 'much')
    const service = { type_key: 'infra.service', desired_state: { port: 80 } }
    await c.as('ada').record({ resource_id: 'svc-much', name: 'svc-much', parent_id: 'eu1-a-web', ...service })
    await claims('svc-much', 'much', 'room')
    await c.followed()
    const crowd = async (capability_key: string) => {
      await c.rows(
        `insert into catalog.capability_def select (jsonb_populate_record(d, jsonb_build_object('version', '1.1.' || n))).*
         from catalog.capability_def d, generate_series(0, 20000) n where d.capability_key = $1 and d.version = '1.0.0'`,
        [capability_key],
      )
      await c.rows(
        `insert into catalog.provider (provider_id, rid, capability_id, version, attributes)
         select 'prv_much_' || d.id || d.version, r.rid, d.id, d.version, '{}' from catalog.capability_def d, catalog.resource r
         where d.capability_key = $1 and d.version like '1.1.%' and r.resource_id = 'apart'`,
        [capability_key],
      )
    }
    const gone = () => c.as('vic').get('/v1/resources/much/impact?assume=gone')
    try {
      await crowd('runtime.container')
      const reply = await gone()
      expect(reply.status, reply.text).toBe(200)
      expect(reply.body.without.needs).toMatchObject([{ resource_id: 'vm-much' }])
      await crowd('compute.slots')
      const hint = expect.stringContaining('Leave assume out')
      expect(await gone()).toMatchObject({ status: 422, body: { code: 'query_too_expensive', hint } })
      expect((await c.as('vic').get('/v1/resources/much/impact')).status).toBe(200)
    } finally {
      await c.rows(`delete from catalog.provider where provider_id like 'prv_much_%'`)
      await c.rows(`delete from catalog.capability_def where version like '1.1.%'`)
    }
  })

  it('has the dependents of its watermark, also of changes that come while the needs are read', async () => {
    await slotsOf('moving', 1)
    await machine('vm-moving')
    await claims('vm-moving', 'moving')
    await c.followed()
    let [asked, comes]: [number, Promise<void> | undefined] = [0, undefined]
    const change = async () => {
      await record('comes-late', [needs('moving')])
      await c.followed()
    }
    const db = new Proxy(c.deps.db, {
      get: (on, name) => {
        if (name !== 'execute') return Reflect.get(on, name)
        return async (query: Parameters<typeof on.execute>[0]) => {
          const found = await on.execute(query)
          // The first asks about late health.
          asked += 1
          if (asked > 1) comes ??= change()
          await comes
          return found
        }
      },
    })
    const { items } = await readImpact({ ...c.deps, db }, 'moving', { assume: 'gone' }, { access: 'all' } as never)
    expect(items.map(({ resource_id }) => resource_id)).toContain('comes-late')
  })

  it('reads each edge a few times, however many members of a large group are affected', async () => {
    const COUNT = 1000
    for (const id of ['crowd', 'crowd-pool', 'crowd-apart']) await record(id)
    await record('crowd-member', [], 'crowd')
    const leads = () => ({ type_key: 'member_of', to: 'crowd-pool' })
    await addMany(c, 'crowd-member', 'crowd', COUNT, leads)
    await addMany(c, 'crowd-apart', 'crowd-apart', 2 * COUNT, leads)
    await c.followed()
    const store = c.deps.graph.store() as Store
    let read = 0
    const counted: Store = {
      ...store,
      eachArc: (rid, visit) =>
        store.eachArc(rid, (...arc) => {
          read += 1
          visit(...arc)
        }),
    }
    const limits = { max_distance: 64, max_visited: 20_000 }
    const { affected } = walkImpact(counted, c.deps.registry.types, [store.ridOf('crowd') as number], limits)
    expect(affected).toHaveLength(COUNT + 2)
    expect(affected.at(-1)).toMatchObject({ rid: store.ridOf('crowd-pool'), distance: 2, effect: 'degraded' })
    expect(read).toBeLessThan(20 * COUNT)
  })

  it('agrees with the roll-up once the resource really fails', { timeout: 120_000 }, async () => {
    let run = 0
    const relation = fc.constantFrom('depends_on', 'hosted_on', 'member_of')
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(7), relation, fc.nat(7)), { minLength: 6, maxLength: 14 }),
        async (drawn) => {
          run += 1
          const id = (i: number) => `w${run}-${i}`
          const edges = new Map<number, Map<string, Edge>>()
          for (const [from, type, to] of drawn) {
            // Later ones point at earlier ones, so that hosting has no cycle, and each has at most one host.
            const [src, dst] = from > to ? [from, to] : [to, from]
            if (src === dst) continue
            const own = edges.get(src) ?? new Map<string, Edge>()
            own.set(type === 'hosted_on' ? type : `${type} ${dst}`, { type_key: type, target_id: id(dst) })
            edges.set(src, own)
          }
          for (let i = 0; i < 8; i++) {
            await record(id(i), [...(edges.get(i)?.values() ?? [])])
            await c.observe(id(i))
          }
          await c.followed()
          const impact = await ask(id(0))
          await c.observe(id(0), { status: 'unhealthy' })
          const expected = new Map(impact.items.map(({ resource_id, effect }) => [resource_id, effect as string]))
          for (let i = 1; i < 8; i++) {
            const health = await c.as('vic').get(`/v1/resources/${id(i)}/health`)
            expect(health.body.rollup.status, `${id(i)} of ${JSON.stringify(drawn)}`).toBe(
              expected.get(id(i)) ?? 'healthy',
            )
          }
        },
      ),
      { numRuns: 8, seed: 11 },
    )
  })
})
