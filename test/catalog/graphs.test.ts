import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Catalog, seedRegion, startCatalog } from './platform.ts'

let c: Catalog
/** Services s0 … s29 of a seeded random graph, and hub that 40 others depend on. */
const calls = new Map<string, string[]>()
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 2)
  let seed = 7
  const random = (n: number) => {
    seed = (seed * 16_807) % 2_147_483_647
    return seed % n
  }
  const service = async (id: string, targets: string[], parent_id?: string) => {
    calls.set(id, targets)
    await c.as('ada').record({
      resource_id: id,
      type_key: 'infra.service',
      name: id,
      ...(parent_id && { parent_id }),
      relationships: targets.map((target_id) => ({ type_key: 'depends_on', target_id })),
    })
  }
  for (let i = 0; i < 30; i++) {
    const targets = new Set(Array.from({ length: Math.min(i, 3) }, () => `s${random(i)}`))
    await service(`s${i}`, [...targets])
  }
  await service('hub', [])
  for (let i = 0; i < 40; i++) await service(`u${i}`, ['hub'])
})
afterAll(() => c.stop())

type Graph = {
  nodes: { resource_id: string; depth: number; degree: number }[]
  edges: { from: string; to: string; type_key: string }[]
  truncated: Record<string, boolean>
  frontier: { resource_id: string; omitted: number }[]
}
const graph = async (query: string, as: 'vic' | 'far' = 'vic'): Promise<Graph> => {
  const reply = await c.as(as).get(`/v1/graphs/resources?${query}`)
  expect(reply.status).toBe(200)
  return reply.body
}

/** The same by hand. */
const reachable = (root: string, depth: number, direction: string): Map<string, number> => {
  const found = new Map([[root, 0]])
  for (let level = 1; level <= depth; level++) {
    for (const [id, at] of [...found]) {
      if (at !== level - 1) continue
      const outgoing = direction === 'in' ? [] : (calls.get(id) ?? [])
      const incoming =
        direction === 'out' ? [] : [...calls].filter(([, targets]) => targets.includes(id)).map(([from]) => from)
      for (const next of [...outgoing, ...incoming]) if (!found.has(next)) found.set(next, level)
    }
  }
  return found
}

describe('graphs around resources', () => {
  it.each(['out', 'in', 'both'])('hold exactly what can be reached %s, at its shortest distance', async (direction) => {
    for (const root of ['s0', 's9', 's17', 's29']) {
      for (const depth of [0, 1, 2, 3]) {
        const expected = reachable(root, depth, direction)
        const { nodes, edges, frontier, truncated } = await graph(
          `root_id=${root}&depth=${depth}&direction=${direction}&relationship_types=depends_on`,
        )
        expect(new Map(nodes.map(({ resource_id, depth: at }) => [resource_id, at]))).toEqual(expected)
        const inside = [...expected.keys()].flatMap((from) =>
          (calls.get(from) ?? []).filter((to) => expected.has(to)).map((to) => `${from} ${to}`),
        )
        expect(edges.map(({ from, to }) => `${from} ${to}`).sort()).toEqual(inside.sort())
        const further = reachable(root, depth + 1, direction).size > expected.size
        expect({ depth: truncated.depth, cut: frontier.length > 0 }).toEqual({ depth: further, cut: further })
      }
    }
  })

  it('say what was cut, and by which bound', async () => {
    const fanout = await graph('root_id=hub&depth=1&fanout=10')
    expect(fanout).toMatchObject({
      truncated: { fanout: true, nodes: false },
      frontier: [{ resource_id: 'hub', omitted: 30 }],
    })
    expect(fanout.nodes).toHaveLength(11)
    expect(fanout.nodes[0]).toMatchObject({ resource_id: 'hub', degree: 40 })
    const nodes = await graph('root_id=hub&depth=1&max_nodes=5')
    expect(nodes).toMatchObject({ truncated: { nodes: true }, frontier: [{ resource_id: 'hub', omitted: 36 }] })
    const edges = await graph('root_id=hub&depth=1&max_edges=3')
    expect(edges.edges).toHaveLength(3)
    expect(edges).toMatchObject({ truncated: { edges: true, nodes: false }, frontier: [] })
  })

  it('give equal bytes for equal data but for the time they were read', async () => {
    const query = '/v1/graphs/resources?root_id=s29&root_id=eu1&depth=3'
    const [a, b] = [await c.as('vic').get(query), await c.as('vic').get(query)]
    const untimed = (text: string) => text.replace(/"as_of":.*$/, '')
    expect(untimed(a.text)).toBe(untimed(b.text))
  })

  it('start from what a filter selects, pass only through asked types, and hide what is out of scope', async () => {
    const filtered = await graph(`filter=${encodeURIComponent('name=s1 OR name=s2')}&depth=0`)
    expect(filtered.nodes.map(({ resource_id }) => resource_id)).toEqual(['s1', 's2'])
    const places = await graph('root_id=eu1&depth=3&node_types=topology.datacenter,topology.layer')
    expect(places.nodes.map(({ resource_id }) => resource_id)).toEqual(['eu1', 'eu1-a', 'eu1-a-edge'])
    expect((await c.as('far').get('/v1/graphs/resources?root_id=eu1')).status).toBe(404)
  })
})
