import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addMany } from './support/many.ts'
import { type Catalog, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  c.deps.graph.start()
  await seedRegion(c, 'eu1', 0)
})
afterAll(() => c.stop())

const service = async () =>
  (await c.as('ada').record({ type_key: 'infra.service', name: `s-${randomUUID()}`, desired_state: { tier: 1 } }))
    .resource_id as string
const retire = (id: string, expected_version = 1) =>
  c.result(id, { expected_version, changes: { lifecycle_status: 'retired' } }, { once: true })

describe('the end of a resource with very many relationships', () => {
  const MEMBERS = 10_000
  const LIMIT_MS = 2000

  it(`closes ${MEMBERS} members in under two seconds, and the log lists each of them in parts of at most 256 KiB`, async () => {
    const timed = async () => {
      const target = { type_key: 'infra.pool', name: `pool-${randomUUID()}`, parent_id: 'eu1-a-web' }
      const pool = (await c.as('ada').record(target)).resource_id as string
      const members = await addMany(c, await service(), 'member', MEMBERS, () => ({ type_key: 'member_of', to: pool }))
      await c.rows('analyze catalog.relationship, catalog.resource, catalog.outbox')
      await c.followed()
      const started = performance.now()
      const reply = await retire(pool)
      const took = performance.now() - started
      expect(reply.status, reply.text).toBe(200)
      process.stdout.write(`retire of ${MEMBERS} members: ${Math.round(took)} ms\n`)
      return { pool, members, took }
    }
    // What else the machine does may slow down one, not three.
    let { pool, members, took } = await timed()
    for (let again = 2; took >= LIMIT_MS && again > 0; again -= 1) ({ pool, members, took } = await timed())
    expect(took).toBeLessThan(LIMIT_MS)
    const left = await c.rows(
      `select from catalog.relationship e join catalog.resource r on r.rid in (e.src, e.dst) where r.resource_id = $1`,
      [pool],
    )
    expect(left).toHaveLength(0)
    const [size] = await c.rows<{ bytes: number; parts: number }>(
      `select max(octet_length(payload::text))::int as bytes, count(*) filter (where agg_type = 'relationships')::int as parts
       from catalog.outbox where payload->>'resource_id' = $1`,
      [pool],
    )
    expect(size?.bytes).toBeLessThanOrEqual(262_144)
    expect(size?.parts).toBeGreaterThan(1)
    // The graph in memory is updated only from the log.
    await c.followed()
    const store = c.deps.graph.store()
    let arcs = 0
    store?.eachArc(store.ridOf(pool) as number, () => arcs++)
    store?.eachArc(store.ridOf(members[0] as string) as number, () => arcs++)
    expect(arcs).toBe(0)
  }, 120_000)
})
