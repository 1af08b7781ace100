import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { type Catalog, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 2)
})
afterAll(() => c.stop())

type Act = { op: 'create' | 'update' | 'relate' | 'retire' | 'move'; a: number; b: number; second: boolean }
const act: fc.Arbitrary<Act> = fc.record({
  op: fc.constantFrom('create', 'create', 'update', 'relate', 'retire', 'move'),
  a: fc.nat(30),
  b: fc.nat(30),
  second: fc.boolean(),
})
const idOf = (n: number) => `p-${n}`

/** One write through one of the processes; the catalog may refuse it. */
const write = async ({ op, a, b }: Act, at: string) => {
  const resource_id = idOf(a)
  const { body: row } = await c.as('ada').get(`/v1/resources/${resource_id}`, { at })
  const base = { resource_id, expected_version: row.version ?? 1 }
  const edge = (type_key: string) => ({ op: 'add', type_key, target_id: op === 'move' ? 'eu1-a-web' : idOf(b) })
  const change = {
    create: { resource_id, type_key: 'infra.service', name: resource_id, desired_state: { port: b } },
    update: { ...base, patch: { labels: { b: `${b}` } } },
    relate: { ...base, relationship_changes: [edge('depends_on')] },
    move: { ...base, relationship_changes: [edge('contained_in')] },
    retire: base,
  }[op]
  const items = [{ op: op === 'move' ? 'relate' : op, change }]
  const reply = await c.as('ada').post('/v1/resources:bulk?mode=record_only', { items }, { at })
  expect(reply.status, reply.text).toBe(200)
  expect(reply.body.results[0].status).toBeLessThan(500)
}

/** The graph around a resource, as one process answers it. */
const seenAt = async (resource_id: string, at: string) => {
  const { body } = await c
    .as('vic')
    .get(`/v1/graphs/resources?root_id=${resource_id}&depth=3&include_retired=true`, { at })
  const { nodes = [], edges = [], status } = body
  const text = (list: object[]) => list.map((one) => JSON.stringify(one)).sort()
  return { status, nodes: text(nodes), edges: text(edges) }
}
const proven = async (at: string) => {
  const graph = async () => {
    const { body } = await c.internally('GET', '/projections', undefined, { at })
    return body.items.find(({ name }: { name: string }) => name === 'graph')
  }
  await c.internally('POST', '/projections/graph/verify', undefined, { at })
  return until(
    async () => {
      await c.sequence()
      const { running, proof } = await graph()
      return running === null && proof?.kind === 'verify' ? proof : undefined
    },
    { what: 'the proof of a graph' },
  )
}

describe('several processes on one database', () => {
  it('agree after random writes through each, as does one that starts late', async () => {
    const [one, two] = [await c.startProcess(), await c.startProcess()]
    const acts = fc.sample(act, { numRuns: 150, seed: 7 })
    const half = (second: boolean) => acts.filter((each) => each.second === second)
    await Promise.all(
      [one, two].map(async ({ public_at }, at) => {
        for (const each of half(at === 1)) await write(each, public_at)
      }),
    )
    while (await c.sequence());
    const late = await c.startProcess()
    const all = [one, two, late]
    for (const { at } of all) expect(await proven(at)).toMatchObject({ result: 'equal' })
    for (const root of ['eu1', 'eu1-a-web', ...Array.from({ length: 12 }, (_, n) => idOf(n))]) {
      const [first, ...others] = await Promise.all(all.map(({ public_at }) => seenAt(root, public_at)))
      for (const other of others) expect(other).toEqual(first)
    }
  }, 300_000)
})
