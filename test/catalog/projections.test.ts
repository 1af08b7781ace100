import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Projections, Proof } from '../../apps/shared/contracts/catalog/projections.ts'
import { until } from '../support/until.ts'
import { type Catalog, seedRegion, startCatalog } from './support/platform.ts'

type Projection = Projections['items'][number]

let c: Catalog
beforeAll(async () => {
  c = await startCatalog({ env: { CATALOG__STALE__WAIT_MS: '300', CATALOG__PROJECTOR__BATCH: '3' } })
  await seedRegion(c, 'eu1', 3)
  c.deps.graph.start()
  await c.followed()
})
afterAll(() => c.stop())

const door = (name: string, verb: string, at?: string) =>
  c.internally('POST', `/projections/${name}/${verb}`, undefined, at === undefined ? {} : { at })
const read = async (name: string, at?: string): Promise<Projection> => {
  const { body } = await c.internally('GET', '/projections', undefined, at === undefined ? {} : { at })
  return body.items.find((item: Projection) => item.name === name)
}
/** The result of a proof once it has ended. */
const proven = async (name: string, kind: 'verify' | 'rebuild'): Promise<Proof> => {
  expect(await door(name, kind)).toMatchObject({ status: 202, body: { name, running: kind } })
  return until(async () => {
    await c.sequence()
    const { running, proof } = await read(name)
    return running === null && proof?.kind === kind ? proof : undefined
  })
}
const graphOf = async (root_id: string, more = '') =>
  c.as('vic').get(`/v1/graphs/resources?root_id=${root_id}&depth=1${more}`, { once: true })

describe('the doors of the read models', () => {
  it('report how far each one is, to those who may maintain them', async () => {
    const { status, body } = await c.internally('GET', '/projections')
    expect(status).toBe(200)
    expect(BigInt(body.last_pub_seq)).toBeGreaterThan(0n)
    expect(body.items).toMatchObject([
      { name: 'graph', state: 'live', pub_seq: body.last_pub_seq, lag_ms: 0, running: null },
      { name: 'operations_index', state: 'live', figures: { held: 0, dead_letters: 0 } },
    ])
  })

  it.each([
    ['GET', '/projections'],
    ['POST', '/projections/graph/pause'],
    ['POST', '/projections/graph/resume'],
    ['POST', '/projections/graph/verify'],
    ['POST', '/projections/graph/rebuild'],
  ])('are closed to other services: %s %s', async (method, path) => {
    const reply = await c.internally(method, path, undefined, { service: 'operations' })
    expect(reply).toMatchObject({ status: 403, body: { code: 'permission_missing' } })
  })

  it('accept only existing names', async () => {
    expect(await door('lists', 'pause')).toMatchObject({ status: 404, body: { code: 'route' } })
    expect(await door('graph', 'drop')).toMatchObject({ status: 404, body: { code: 'route' } })
  })

  it('leave an audit row', async () => {
    await door('graph', 'pause')
    await door('graph', 'resume')
    const rows = await c.rows<{ actor: string; action: string; object: string }>(
      `select actor, action, object from catalog.audit where object = 'projection:graph' order by id desc limit 2`,
    )
    expect(rows.map(({ action }) => action.split('/').at(-1))).toEqual(['resume', 'pause'])
    expect(rows[0]).toMatchObject({ actor: 'svc:demo-control-plane' })
  })
})

describe('the graph', () => {
  it('stands still in every process while it is paused, reports the lag, and continues from there', async () => {
    const other = await c.startProcess()
    await until(async () => (await read('graph', other.at)).state === 'live')
    expect((await door('graph', 'pause')).body).toEqual({ name: 'graph', state: 'paused' })
    for (const at of [undefined, other.at]) await until(async () => (await read('graph', at)).state === 'paused')
    const { change_token } = await c
      .as('ada')
      .record({ resource_id: 'after', type_key: 'infra.service', name: 'after' })
    await c.sequence()
    const behind = await until(async () => {
      const { lag_ms } = await read('graph')
      return lag_ms !== null && lag_ms > 0 ? lag_ms : undefined
    })
    await until(async () => ((await read('graph')).lag_ms ?? 0) > behind)
    expect((await graphOf('eu1')).body.as_of.lag_ms).toBeGreaterThan(0)
    expect(await graphOf('eu1', `&min_change=${change_token}`)).toMatchObject({
      status: 503,
      body: { category: 'stale_projection', code: 'projection_lag' },
    })
    expect(await door('graph', 'verify')).toMatchObject({
      status: 422,
      body: { code: 'lifecycle_transition', allowed: ['resume'] },
    })
    await door('graph', 'resume')
    await c.followed()
    expect((await graphOf('after', `&min_change=${change_token}`)).status).toBe(200)
    expect(await read('graph')).toMatchObject({ state: 'live', lag_ms: 0 })
  }, 90_000)

  it('equals a graph built from the tables, under writes, and no read fails meanwhile', async () => {
    let writing = true
    const statuses = new Set<number>()
    const writes = (async () => {
      for (let i = 0; writing; i++) {
        await c.as('ada').record({ type_key: 'infra.service', name: `w-${i}`, parent_id: 'eu1-a-web' })
        await c.observe('eu1-web-01', { status: i % 2 ? 'healthy' : 'degraded' })
        statuses.add((await graphOf('eu1-a-web')).status)
      }
    })()
    try {
      for (const kind of ['verify', 'rebuild', 'verify'] as const) {
        const proof = await proven('graph', kind)
        expect(proof).toMatchObject({ result: 'equal', differ: 0, different: [] })
        expect(proof.digests.live).toBe(proof.digests.truth)
        expect(proof.compared).toBeGreaterThan(7)
      }
    } finally {
      writing = false
      await writes
    }
    expect([...statuses]).toEqual([200])
  })

  it('is compared with the tables; a difference is found and repaired by a rebuild', async () => {
    const edit = (status: string) =>
      c.rows(`update catalog.resource_state s set health_status = '${status}' from catalog.resource r
        where r.rid = s.rid and r.resource_id = 'eu1-web-02'`)
    const shown = async () =>
      (await graphOf('eu1-web-02')).body.nodes.find((node: { depth: number }) => node.depth === 0).health_status
    const was = await shown()
    await edit('unhealthy')
    // The places above it count it by its health.
    const different = ['eu1', 'eu1-a', 'eu1-a-edge', 'eu1-a-web', 'eu1-web-02']
    const wrong = { result: 'different', differ: 5, different }
    expect(await proven('graph', 'verify')).toMatchObject(wrong)
    expect(await shown()).toBe(was)
    expect(await proven('graph', 'rebuild')).toMatchObject(wrong)
    expect(await shown()).toBe('unhealthy')
    expect(await proven('graph', 'verify')).toMatchObject({ result: 'equal' })
    await edit(was)
    expect(await proven('graph', 'rebuild')).toMatchObject(wrong)
    expect(await shown()).toBe(was)
  })

  it('is compared once the log has numbers for all that was read, one proof at a time', async () => {
    await c.followed()
    await c.as('ada').record({ type_key: 'infra.service', name: 'unnumbered' })
    const { loads } = (await read('graph')).figures
    await door('graph', 'verify')
    await until(async () => ((await read('graph')).figures.loads ?? 0) > (loads ?? 0))
    expect(await read('graph')).toMatchObject({ running: 'verify' })
    const second = await c.internally('POST', '/projections/graph/rebuild', undefined, { once: true })
    expect(second).toMatchObject({ status: 409, body: { code: 'in_progress' } })
    await until(async () => {
      await c.sequence()
      return (await read('graph')).proof?.result === 'equal' && (await read('graph')).running === null
    })
  })

  it('reads the log in parts of the configured size', async () => {
    const limits = new Set<unknown>()
    const queries = vi.spyOn(c.deps.pool, 'query')
    for (let i = 0; i < 5; i++) await c.as('ada').record({ type_key: 'infra.service', name: `part-${i}` })
    await c.followed()
    for (const [query, values] of queries.mock.calls as unknown as [{ text?: string }, unknown[]][])
      if (query.text?.includes('jsonb_to_record(o.payload)')) limits.add(values.at(-1))
    queries.mockRestore()
    expect([...limits]).toEqual([3])
  })
})
