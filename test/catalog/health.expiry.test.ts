import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sweepHealth } from '../../apps/catalog/expiry.ts'
import { followSearchOnce } from '../../apps/catalog/search/follow.ts'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  c.deps.graph.start()
  await seedRegion(c, 'eu1', 0)
})
afterAll(() => c.stop())

const STATES = ['healthy', 'degraded', 'unhealthy', 'unknown', 'maintenance']
const get = async (path: string) => (await c.as('vic').get(path)).body
const hosts = ['exp-never', 'exp-short', 'exp-two', 'exp-kept', 'exp-lifecycle', 'exp-unknown']

describe('a check that expired since the last sweep', () => {
  beforeAll(async () => {
    for (const id of hosts) await c.as('ada').record({ ...hostOf(id, 'eu1-a-web'), labels: { exp: 'x' } })
    await c.observe('exp-short', { ttl_s: 10 })
    // The worse of two ends first.
    await c.observe('exp-two', { ttl_s: 10, status: 'unhealthy', check_key: 'a' })
    await c.observe('exp-two', { ttl_s: 600, status: 'degraded', check_key: 'b' })
    await c.observe('exp-kept', { ttl_s: 600 })
    await c.observe('exp-unknown', { ttl_s: 10, status: 'unknown' })
    await c.observe('exp-lifecycle', { ttl_s: 10 })
    await c.result('exp-lifecycle', { expected_version: 1, changes: { lifecycle_status: 'maintenance' } })
    await c.followed()
    while (await followSearchOnce(c.deps));
    c.wait(11_000)
  })

  it('counts no longer in any list, filter, count, sort, graph, search, impact or answer to a write', async () => {
    const now = {
      'exp-never': 'unknown',
      'exp-short': 'unknown',
      'exp-two': 'degraded',
      'exp-kept': 'healthy',
      'exp-lifecycle': 'maintenance',
      'exp-unknown': 'unknown',
    }
    const told = Object.fromEntries(
      await Promise.all(hosts.map(async (id) => [id, (await get(`/v1/resources/${id}`)).health_status] as const)),
    )
    expect(told).toEqual(now)
    const listed = await get('/v1/resources?label=exp%3Dx&include=health&sort=health_status')
    const shown = listed.items.map((item: Record<string, string>) => [item.resource_id, item.health_status])
    expect(Object.fromEntries(shown)).toEqual(now)
    expect(shown.map(([id]: string[]) => id)).toEqual([
      'exp-kept',
      'exp-lifecycle',
      'exp-never',
      'exp-short',
      'exp-unknown',
      'exp-two',
    ])
    const part = (id: string) => listed.items.find((item: { resource_id: string }) => item.resource_id === id).health
    expect(part('exp-short')).toMatchObject({ status: 'unknown', reason: 'expired', expires_at: null })
    expect((await get('/v1/resources/exp-short?include=health')).health).toEqual(part('exp-short'))
    expect(new Date(part('exp-two').expires_at).getTime()).toBeGreaterThan(c.deps.clock.now().getTime())
    for (const status of STATES) {
      const wanted = hosts.filter((id) => now[id as keyof typeof now] === status).sort()
      for (const query of [
        `health_status=${status}`,
        `filter=health_status%3D${status}`,
        `filter=health_status:"${status}"`,
      ]) {
        const page = await get(`/v1/resources?label=exp%3Dx&count=exact&${query}`)
        expect(
          page.items.map((item: { resource_id: string }) => item.resource_id),
          query,
        ).toEqual(wanted)
        expect(page.count.value, query).toBe(wanted.length)
      }
    }
    const nodes = (await get('/v1/graphs/resources?root_id=eu1-a-web&depth=1&direction=in')).nodes
    expect(nodes).toEqual(
      expect.arrayContaining([expect.objectContaining({ resource_id: 'exp-short', health_status: 'unknown' })]),
    )
    const peers = (await get('/v1/resources/eu1-a-web/relationships?direction=in&page_size=200')).items
    const peerOf = (id: string) =>
      peers.find(({ peer }: { peer: { resource_id: string } }) => peer.resource_id === id).peer
    expect(peerOf('exp-short').health_status).toBe('unknown')
    const layer = (await get('/v1/topology/segments')).items.find(
      (item: { resource_id: string }) => item.resource_id === 'eu1-a-web',
    )
    expect(layer.counts.by_health).toEqual({ unknown: 3, degraded: 1, healthy: 1, maintenance: 1 })
    const found = await get('/v1/search?q=exp-short')
    expect(found.items[0]).toMatchObject({ resource_id: 'exp-short', health_status: 'unknown' })
    const healthy = (await get('/v1/search?q=exp-short&health_status=healthy')).items
    expect(healthy.map((item: { resource_id: string }) => item.resource_id)).not.toContain('exp-short')
    const patched = await c
      .as('olga')
      .patch('/v1/resources/exp-short?expected_version=1', { labels: { exp: 'x', a: 'b' } })
    expect(patched.body).toMatchObject({ health_status: 'unknown', version: 2 })
    expect(patched.headers.get('etag')).toBe((await c.as('vic').get('/v1/resources/exp-short')).headers.get('etag'))
  })

  it('changes the ETag, even if the status was unknown before', async () => {
    const { body, headers } = await c.as('vic').get('/v1/resources/exp-unknown')
    expect(body.conditions).toContainEqual(expect.objectContaining({ type: 'healthy', reason: 'expired' }))
    expect(headers.get('etag')).toMatch(/x"$/)
  })

  it('is swept with up to 200 others in one transaction, and each emits its own event', async () => {
    const since = async () => (await get('/v1/resources/exp-short/health')).own.since
    c.wait(300_000)
    const before = await since()
    await sweepHealth(c.deps)
    // Its status began when the check expired, not when the sweep noticed it.
    expect(await since()).toBe(before)
    const events = await c.rows<{ agg_id: string; xmin: string }>(
      `select agg_id, xmin::text from catalog.outbox where agg_type = 'health' and payload->>'reason' = 'expired' order by 1`,
    )
    expect(events.map(({ agg_id }) => agg_id)).toEqual(['exp-short', 'exp-two', 'exp-unknown'])
    expect(new Set(events.map(({ xmin }) => xmin)).size).toBe(1)
    expect(await get('/v1/resources/exp-two')).toMatchObject({ health_status: 'degraded' })
  })
})
