import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sweepHealth } from '../../apps/catalog/expiry.ts'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 2)
})
afterAll(() => c.stop())

const fresh = async (): Promise<string> => {
  const id = `h-${randomUUID()}`
  await c.as('ada').record(hostOf(id, 'eu1-a-web'))
  return id
}
const view = async (id: string) => (await c.as('vic').get(`/v1/resources/${id}`)).body
type Event = {
  pub_seq: string
  type: string
  agg_type: string
  agg_id: string
  agg_version: number
  [member: string]: unknown
}
const log = async (query: string): Promise<{ items: Event[]; last_pub_seq: string }> =>
  (await c.internally('GET', `/events?${query}`)).body
const whole = async (): Promise<Event[]> => {
  const events: Event[] = []
  while (await c.sequence());
  for (;;) {
    const { items } = await log(`after=${events.at(-1)?.pub_seq ?? 0}&limit=7`)
    if (items.length === 0) return events
    events.push(...items)
  }
}

describe('the log', () => {
  it('holds each version of each aggregate once and in order, with the whole document', async () => {
    const id = await fresh()
    await c.result(id, { expected_version: 1, changes: { observed_state_patch: { release: '2.0.0' } } })
    await c.observe(id)
    const events = await whole()
    expect(events.map(({ pub_seq }) => Number(pub_seq))).toEqual(events.map((_, i) => i + 1))
    const last = new Map<string, number>()
    for (const { agg_type, agg_id, agg_version } of events) {
      expect(agg_version).toBe((last.get(`${agg_type} ${agg_id}`) ?? 0) + 1)
      last.set(`${agg_type} ${agg_id}`, agg_version)
    }
    const { scope, conditions, health_status, health_revision, change_token, ...facts } = await view(id)
    expect(events.findLast((event) => event.agg_type === 'resource' && event.agg_id === id)?.document).toEqual(facts)
    expect(last.get(`health ${id}`)).toBe(health_revision)
    expect(
      events
        .filter(({ type }) => type === 'type.pack_loaded')
        .map(({ agg_id }) => agg_id)
        .sort(),
    ).toEqual(['cloud', 'core', 'dcim', 'delivery', 'fleet', 'infra', 'ipam', 'k8s', 'org'])
  })

  it('gives the events of one aggregate after a version', async () => {
    const id = await fresh()
    for (let v = 1; v < 4; v++)
      await c.result(id, { expected_version: v, changes: { observed_state_patch: { release: `3.${v}.0` } } })
    const { items } = await log(`agg_type=resource&agg_id=${id}&after_version=2`)
    expect(items.map(({ agg_version }) => agg_version)).toEqual([3, 4])
    expect((await c.internally('GET', `/events?agg_type=resource&after=1`)).status).toBe(400)
  })

  it('may lag: versions are current, whether or not they are numbered', async () => {
    const [one, two] = [await fresh(), await fresh()]
    await whole()
    const { last_pub_seq } = await log('after=0&limit=1')
    await c.result(one, { expected_version: 1, changes: { observed_state_patch: { release: '4.0.0' } } })
    const asked = await c.internally('POST', '/resources:versions', { resource_ids: [two, one, one, 'nowhere'] })
    const byId = (a: { resource_id: string }, b: { resource_id: string }) => (a.resource_id < b.resource_id ? -1 : 1)
    expect(asked.body.items.toSorted(byId)).toEqual(
      [
        { resource_id: one, version: 2 },
        { resource_id: two, version: 1 },
      ].sort(byId),
    )
    expect((await log('after=0&limit=1')).last_pub_seq).toBe(last_pub_seq)
    const wrong = (body: unknown) => c.internally('POST', '/resources:versions', body)
    for (const body of [
      { resource_ids: [] },
      { resource_ids: ['a'.repeat(129)] },
      {},
      { resource_ids: [one], more: 1 },
    ])
      expect((await wrong(body)).status).toBe(400)
    expect(
      (await c.internally('POST', '/resources:versions', { resource_ids: [one] }, { service: 'fleet' })).status,
    ).toBe(403)
  })

  it('and the snapshot agree: folding the log gives the documents and the open edges', async () => {
    const [one, two] = [await fresh(), await fresh()]
    const edge = (op: string) => [{ op, type_key: 'depends_on', target_id: two }]
    await c.result(one, { expected_version: 1, changes: { relationship_changes: edge('add') } })
    await c.result(one, { expected_version: 2, changes: { relationship_changes: edge('remove') } })
    await c.result(one, { expected_version: 3, changes: { relationship_changes: edge('add') } })
    const documents = new Map<string, unknown>()
    const edges = new Map<string, unknown>()
    for (const event of await whole()) {
      if (event.agg_type !== 'resource') continue
      documents.set(event.agg_id, event.document)
      for (const { op, ...change } of event.relationship_changes as { op: string; relationship_id: string }[]) {
        if (op === 'removed') edges.delete(change.relationship_id)
        else edges.set(change.relationship_id, change)
      }
    }
    const snapshot: { document: { resource_id: string }; relationships_out: { relationship_id: string }[] }[] = []
    for (let after: string | null = null; ; ) {
      const page: { items: typeof snapshot; next: string | null } = (
        await c.internally('GET', `/snapshot?limit=3${after ? `&after=${after}` : ''}`)
      ).body
      snapshot.push(...page.items)
      if (page.next === null) break
      after = page.next
    }
    expect(snapshot.map(({ document }) => document.resource_id)).toEqual([...documents.keys()].sort())
    for (const { document } of snapshot) {
      const { health_status, health_revision, ...facts } = document as Record<string, unknown>
      expect(facts).toEqual(documents.get(document.resource_id))
    }
    const open = snapshot.flatMap(({ relationships_out }) => relationships_out)
    expect(new Map(open.map((relationship) => [relationship.relationship_id, relationship]))).toEqual(edges)
  })
})

describe('health', () => {
  it('is the worst unexpired check, whatever the order of arrival', async () => {
    const now = Date.now()
    const at = (s: number) => new Date(now - s * 1000).toISOString()
    const words = [
      { check_key: 'a', status: 'healthy', observed_at: at(30) },
      { check_key: 'a', status: 'unhealthy', observed_at: at(20) },
      { check_key: 'a', status: 'degraded', observed_at: at(10) },
      { check_key: 'b', status: 'healthy', observed_at: at(5) },
    ]
    for (const order of [words, [...words].reverse(), [words[2], words[0], words[3], words[1]]]) {
      const id = await fresh()
      for (const word of order) await c.observe(id, word)
      expect(await view(id)).toMatchObject({ health_status: 'degraded', version: 1 })
    }
  })

  it('answers superseded for an older observation, and changes nothing for a refresh', async () => {
    const id = await fresh()
    expect((await c.observe(id)).body).toMatchObject({ applied: true, health_revision: 1, version: 1 })
    const old = new Date(Date.now() - 60_000).toISOString()
    expect((await c.observe(id, { observed_at: old, status: 'unhealthy' })).body).toMatchObject({
      applied: false,
      code: 'superseded',
      health_revision: 1,
    })
    expect((await c.observe(id)).body).toMatchObject({ applied: true, health_revision: 1 })
    expect((await c.observe(id, { status: 'unhealthy' })).body).toMatchObject({ applied: true, health_revision: 2 })
    expect((await c.observe(id, { expected_version: 9 })).status).toBe(409)
  })

  it('expires to the second: at once for readers, stored and published by the sweeper', async () => {
    const id = await fresh()
    await c.observe(id, { ttl_s: 10 })
    const tag = (await c.as('vic').get(`/v1/resources/${id}`)).headers.get('etag')
    c.wait(10_000)
    const read = await c.as('vic').get(`/v1/resources/${id}`)
    expect(read.body).toMatchObject({ health_status: 'unknown', health_revision: 1 })
    const late = tag?.replace(/"$/, 'x"') ?? ''
    expect(read.headers.get('etag')).toBe(late)
    // Another check may have expired since.
    expect((await c.as('vic').get(`/v1/resources/${id}`, { headers: { 'if-none-match': late } })).status).toBe(200)
    expect((await c.as('vic').get(`/v1/resources/${id}/health`)).body).toMatchObject({
      own: { status: 'unknown', reason: 'expired' },
      checks: [{ expired: true }],
    })
    await sweepHealth(c.deps)
    expect(await view(id)).toMatchObject({ health_status: 'unknown', health_revision: 2, version: 1 })
    const events = await c.rows<{ payload: Record<string, unknown> }>(
      `select payload from catalog.outbox where agg_type = 'health' and agg_id = $1 order by agg_version`,
      [id],
    )
    expect(events.map(({ payload }) => [payload.status, payload.reason])).toEqual([
      ['healthy', 'observed'],
      ['unknown', 'expired'],
    ])
    await sweepHealth(c.deps)
    expect((await view(id)).health_revision).toBe(2)
  })

  it('never refuses an honest writer', async () => {
    const id = await fresh()
    const { headers } = await c.as('vic').get(`/v1/resources/${id}`)
    await c.observe(id, { status: 'unhealthy' })
    const patch = await c
      .as('olga')
      .patch(`/v1/resources/${id}`, { labels: { a: 'b' } }, { headers: { 'if-match': headers.get('etag') ?? '' } })
    expect(patch.status).toBe(200)
  })
})

describe('types', () => {
  it('serves flattened types with their checksum as tag', async () => {
    const reply = await c.as('vic').get('/v1/resource-types/fleet.host')
    expect(reply.body).toMatchObject({
      type_key: 'fleet.host',
      derived_from: 'infra.host',
      lifecycle: { initial: 'planned' },
    })
    const etag = reply.headers.get('etag') ?? ''
    for (const known of [etag, `"other", W/${etag}`, '*']) {
      const same = await c.as('vic').get('/v1/resource-types/fleet.host', { headers: { 'if-none-match': known } })
      expect([same.status, same.headers.get('content-length')]).toEqual([304, null])
    }
    const other = await c.as('vic').get('/v1/resource-types/fleet.host', { headers: { 'if-none-match': '"other"' } })
    expect(other.status).toBe(200)
    const managed = (await c.as('vic').get('/v1/resource-types?derived_from=infra.managed&page_size=3')).body
    expect(managed.items).toHaveLength(3)
    expect((await c.internally('GET', '/resource-types?page_size=500')).body.items).toHaveLength(114)
    expect((await c.internally('GET', '/relationship-types')).body.items).toHaveLength(9)
  })
})
