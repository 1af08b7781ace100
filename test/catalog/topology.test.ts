import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Access } from '../../apps/catalog/read/access.ts'
import { countBelowEach } from '../../apps/catalog/topology/read.ts'
import { countBelow } from '../../db/catalog/resources/lists.ts'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 3)
  await seedRegion(c, 'us1', 2)
})
afterAll(() => c.stop())

const places = () =>
  c.rows<{ rid: string; resource_id: string }>(
    `select r.rid, r.resource_id from catalog.resource r join catalog.type t on t.id = r.type_id
     where t.type_key like 'topology.%' group by 1, 2 order by 2`,
  )
type Item = { resource_id: string; counts: { resources: number; by_health: object; by_lifecycle: object } }
const regions = async (who: 'vic' | 'far' | 'hosts', more = '') =>
  (await c.as(who).get(`/v1/topology/regions?sort=resource_id${more}`)).body

describe('counts of the resources below a place', () => {
  it('are read from the tables until the graph is in memory, then from memory with its age', async () => {
    const hosts = { resources: 6, by_health: { unknown: 6 }, by_lifecycle: { active: 6 } }
    const cold = await regions('vic')
    expect(cold.items[0]).toMatchObject({ resource_id: 'eu1', counts: hosts })
    c.deps.graph.start()
    await c.followed()
    const warm = await regions('vic')
    expect(warm.items).toEqual(cold.items)
    const { change_token } = await c.as('ada').record(hostOf('eu1-web-09', 'eu1-a-web'))
    // Counted once the log has delivered it: until then the answer is older, and says so.
    const before = await regions('vic')
    expect(before.items[0].counts.resources).toBe(6)
    expect(before.as_of.watermark).toBe(warm.as_of.watermark)
    const asked = regions('vic', `&min_change=${change_token}`)
    await c.sequence()
    const after = await asked
    expect(after.items[0].counts.resources).toBe(7)
    expect(BigInt(after.as_of.watermark)).toBeGreaterThan(BigInt(before.as_of.watermark))
  })

  it('include only resources that the reader may see', async () => {
    const ids = async (who: 'vic' | 'far' | 'hosts') => (await regions(who)).items.map((item: Item) => item.resource_id)
    expect(await ids('vic')).toEqual(['eu1', 'us1'])
    expect(await ids('far')).toEqual(['us1'])
    expect(await ids('hosts')).toEqual([])
  })

  it('are the same in lists and in the graph of places', async () => {
    const { nodes } = (await c.as('vic').get('/v1/topology/graph')).body as { nodes: Item[] }
    for (const level of ['regions', 'datacenters', 'layers', 'segments']) {
      for (const item of (await c.as('vic').get(`/v1/topology/${level}`)).body.items as Item[])
        expect(nodes.find(({ resource_id }) => resource_id === item.resource_id)?.counts).toEqual(item.counts)
    }
  })

  it('equal a count by SQL for any reader, after any additions, moves, changes and ends', async () => {
    const { types } = c.deps.registry
    const segments = ['eu1-a-web', 'us1-a-web']
    const version = async (id: string) => (await c.as('vic').get(`/v1/resources/${id}`)).body.version
    const command = async (id: string, changes: Record<string, unknown>) =>
      c.result(id, { expected_version: await version(id), changes })
    const move = async (id: string, to: string) => {
      const { parent_id } = (await c.as('vic').get(`/v1/resources/${id}`)).body
      const edge = (op: string, target_id: string) => ({ op, type_key: 'contained_in', target_id })
      const reply = await command(id, { relationship_changes: [edge('remove', parent_id), edge('add', to)] })
      expect(reply.status, reply.text).toBe(200)
    }
    let made = 0
    const hosts: string[] = ['eu1-web-01', 'eu1-web-02', 'us1-web-01']
    const host = (n: number) => hosts[n % hosts.length] as string
    const segment = (n: number) => segments[n % segments.length] as string
    const act = {
      create: async (n: number) => {
        const id = `made-${made++}`
        await c.as('ada').record(hostOf(id, segment(n)))
        hosts.push(id)
      },
      service: (n: number) =>
        c.as('ada').record({ type_key: 'infra.service', name: `s-${made++}`, parent_id: segment(n) }),
      segment: async (n: number) => {
        const [id, parent_id] = [`segment-${made++}`, n % 2 ? 'eu1-a-edge' : 'us1-a-edge']
        await c.as('ada').record({ resource_id: id, type_key: 'topology.segment', name: id, parent_id })
        segments.push(id)
      },
      move: (n: number) => move(host(n), segment(n >> 3)),
      /** The first two share a name, so they stay apart. */
      move_place: (n: number) =>
        move(segments[2 + (n % (segments.length - 2))] as string, n & 8 ? 'eu1-a-edge' : 'us1-a-edge'),
      observe: (n: number) => c.observe(host(n), { status: n % 2 ? 'healthy' : 'degraded' }),
      maintain: (n: number) => command(host(n), { lifecycle_status: n % 2 ? 'maintenance' : 'active' }),
      retire: async (n: number) => {
        if (hosts.length < 3) return
        const [id] = hosts.splice(n % hosts.length, 1)
        for (const lifecycle_status of ['active', 'deprovisioning', 'retired'])
          await command(id as string, { lifecycle_status })
      },
    }
    const hostTypes = types.idsOf(['infra.host'])
    const readers: Access[] = [
      'all',
      [],
      [{ place_ids: ['eu1'], type_ids: null }],
      [{ place_ids: ['eu1'], type_ids: hostTypes }],
      [{ place_ids: ['eu1', 'eu1-a-web'], type_ids: null }],
      [{ place_ids: ['eu1', 'us1'], type_ids: null }],
      [{ place_ids: ['nowhere'], type_ids: null }],
      [{ place_ids: [], type_ids: hostTypes }],
      [
        { place_ids: ['us1'], type_ids: null },
        { place_ids: ['eu1'], type_ids: types.topologyIds },
        { place_ids: ['eu1-a'], type_ids: hostTypes },
      ],
    ]
    const compare = async () => {
      const all = await places()
      const rids = all.map(({ rid }) => rid)
      for (const access of readers) {
        const { countOf } = await countBelowEach(c.deps, rids, access)
        const wanted = Map.groupBy(
          await countBelow(c.deps.db, rids, access, types.topologyIds, c.deps.clock.now()),
          ({ rid }) => rid,
        )
        for (const { rid, resource_id } of all) {
          const rows = wanted.get(rid) ?? []
          const sum = (key: 'health_status' | 'lifecycle_status') =>
            Object.fromEntries(
              [...Map.groupBy(rows, (row) => row[key])].map(([name, some]) => [
                name,
                some.reduce((n, one) => n + one.n, 0),
              ]),
            )
          const expected = { by_health: sum('health_status'), by_lifecycle: sum('lifecycle_status') }
          expect(countOf(rid), `${resource_id} for ${JSON.stringify(access)}`).toMatchObject(expected)
          expect(countOf(rid).resources).toBe(rows.reduce((n, row) => n + row.n, 0))
        }
      }
    }
    // A place that moves with its subtree.
    await act.segment(1)
    await c.followed()
    await move('eu1-web-01', segments[2] as string)
    await c.followed()
    await act.move_place(0)
    await c.followed()
    await compare()
    const step = fc.record({ name: fc.constantFrom(...(Object.keys(act) as (keyof typeof act)[])), n: fc.nat(1000) })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 12 }), async (steps) => {
        for (const { name, n } of steps) await act[name](n)
        await c.followed()
        await compare()
      }),
      { numRuns: 8, endOnFailure: true },
    )
    // The counts at loading equal the ones maintained since.
    const proof = await c.deps.graph.compare(true)
    expect(proof).toMatchObject({ differ: 0, different: [] })
    await compare()
  }, 90_000)
})
