import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'drizzle-orm'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FORMATS } from '../../apps/catalog/drawing/formats.ts'
import { createGraph } from '../../apps/catalog/graph/follow.ts'
import { traverse } from '../../apps/catalog/topology/graphs.ts'
import { readTopologyGraph } from '../../apps/catalog/topology/read.ts'
import type { Graph, GraphQuery } from '../../apps/shared/contracts/topology/graphs.ts'
import { until } from '../support/until.ts'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
/** Services s0 … s29 of a seeded random graph, and a hub that 40 others depend on. */
const calls = new Map<string, string[]>()
beforeAll(async () => {
  c = await startCatalog()
  c.deps.graph.start()
  await seedRegion(c, 'eu1', 2)
  let seed = 7
  const random = (n: number) => {
    seed = (seed * 16_807) % 2_147_483_647
    return seed % n
  }
  const service = async (id: string, targets: string[], parent_id?: string) => {
    calls.set(id, targets)
    await c
      .as('ada')
      .record({
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
  await c.followed()
})
afterAll(() => c.stop())

const ask = async (query: string, as: 'vic' | 'far' = 'vic', path = 'resources'): Promise<Graph> => {
  const reply = await c.as(as).get(`/v1/graphs/${path}?${query}`)
  expect(reply.status, reply.text).toBe(200)
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
      for (const depth of [0, 1, 2, 3, 10]) {
        const expected = reachable(root, depth, direction)
        const { nodes, edges, frontier, truncated } = await ask(
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

  it('report cuts, and the limit that caused them', async () => {
    const fanout = await ask('root_id=hub&depth=1&fanout=10')
    expect(fanout).toMatchObject({
      truncated: { fanout: true, nodes: false },
      frontier: [{ resource_id: 'hub', omitted: 30 }],
    })
    expect(fanout.nodes).toHaveLength(11)
    expect(fanout.nodes[0]).toMatchObject({ resource_id: 'hub', degree: 40 })
    const nodes = await ask('root_id=hub&depth=1&max_nodes=5')
    expect(nodes).toMatchObject({
      truncated: { nodes: true, fanout: false },
      frontier: [{ resource_id: 'hub', omitted: 36 }],
    })
    const edges = await ask('root_id=hub&depth=1&max_edges=3')
    expect(edges.edges).toHaveLength(3)
    expect(edges).toMatchObject({ truncated: { edges: true, nodes: false }, frontier: [] })
    const whole = await ask('root_id=hub&depth=1&fanout=5000')
    expect(whole.truncated).toEqual({ nodes: false, edges: false, fanout: false, depth: false })
  })

  it('give equal bytes for equal data except for the read time', async () => {
    const query = '/v1/graphs/resources?root_id=s29&root_id=eu1&depth=3'
    const [a, b] = [await c.as('vic').get(query), await c.as('vic').get(query)]
    const untimed = (text: string) => text.replace(/"as_of":.*$/, '')
    expect(untimed(a.text)).toBe(untimed(b.text))
  })

  it("start from a filter's resources, follow only requested types, and hide resources out of scope", async () => {
    const filtered = await ask(`filter=${encodeURIComponent('name=s1 OR name=s2')}&depth=0`)
    expect(filtered.nodes.map(({ resource_id }) => resource_id)).toEqual(['s1', 's2'])
    const places = await ask('root_id=eu1&depth=3&node_types=topology.datacenter,topology.layer')
    expect(places.nodes.map(({ resource_id }) => resource_id)).toEqual(['eu1', 'eu1-a', 'eu1-a-edge'])
    expect((await c.as('far').get('/v1/graphs/resources?root_id=eu1')).status).toBe(404)
  })

  it('are exported as GraphML and as DOT, with every name escaped and every cut reported', async () => {
    const name = 'a <b> & "c" \\ d'
    await c.as('ada').record({ resource_id: 'odd', type_key: 'infra.service', name })
    await c.followed()
    const query = '/v1/graphs/resources?root_id=odd&root_id=hub&depth=1&fanout=3'
    const json = (await c.as('vic').get(query)).body as Graph
    const xml = await c.as('vic').get(`${query}&format=graphml`)
    expect(xml.headers.get('content-type')).toBe('application/graphml+xml; charset=utf-8')
    expect(xml.text).toContain('<data key="n_name">a &lt;b&gt; &amp; &quot;c&quot; \\ d</data>')
    expect(xml.text).toContain('<data key="g_truncated_fanout">true</data>')
    expect(xml.text.match(/<node /g)).toHaveLength(json.nodes.length)
    expect(xml.text.match(/<edge /g)).toHaveLength(json.edges.length)
    const dot = await c.as('vic').get(`${query}&format=dot`)
    expect(dot.headers.get('content-type')).toBe('text/vnd.graphviz; charset=utf-8')
    expect(dot.text).toContain('label="a <b> & \\"c\\" \\\\ d"')
    expect(dot.text).toContain('"hub" [label="hub (+37)"')
    expect(dot.text).toContain('truncated_fanout="true"')
  })

  it('are well-formed GraphML, also with older names whose characters XML does not have', () => {
    const name = 'a\ufffeb\uffffc\u0001d\ud800e \u{1f980}\n'
    const node = { id: 'odd', label: name, data: { name } }
    expect(FORMATS.graphml.write({ facts: [], nodes: [node], edges: [] })).toContain(
      '<data key="n_name">a\ufffdb\ufffdc\ufffdd\ufffde \u{1f980}\n</data>',
    )
  })

  it('include the roll-up of each node on request', async () => {
    await c.observe('s0', { status: 'unhealthy' })
    const { nodes, rollup } = await ask('root_id=s1&root_id=hub&depth=1&include=health&fanout=2')
    expect(rollup).toMatchObject({ truncated: false })
    for (const { resource_id, rollup_status } of nodes) {
      const { body } = await c.as('vic').get(`/v1/resources/${resource_id}/health`)
      expect({ resource_id, rollup_status }).toEqual({ resource_id, rollup_status: body.rollup.status })
    }
    expect((await ask('root_id=s1&depth=0')).nodes[0]).not.toHaveProperty('rollup_status')
    const at = new Date(Date.now() - 1000).toISOString()
    for (const query of ['include=colour', `include=health&at=${at}`])
      expect((await c.as('vic').get(`/v1/graphs/resources?root_id=s1&${query}`)).status).toBe(400)
  })

  it('of the past hold the edges that were open then, without health', async () => {
    const past = `t-${randomUUID()}`
    for (const id of [past, `${past}-b`])
      await c.as('ada').record({ resource_id: id, type_key: 'infra.service', name: id })
    const edge = (op: string) => ({ relationship_changes: [{ op, type_key: 'depends_on', target_id: `${past}-b` }] })
    const moment = async () => new Date((await until(() => Date.now() + 2)) as number).toISOString()
    const times = [await moment()]
    for (const [i, changes] of [edge('add'), edge('remove'), edge('add'), { lifecycle_status: 'retired' }].entries()) {
      await until(() => Date.now() > Date.parse(times.at(-1) as string))
      expect((await c.result(past, { expected_version: i + 1, changes })).status).toBe(200)
      times.push(await moment())
    }
    await until(() => Date.now() > Date.parse(times.at(-1) as string))
    const seen: unknown[] = []
    for (const at of times.slice(0, 4)) {
      const { nodes, edges, as_of } = await ask(`root_id=${past}&depth=5&at=${at}`)
      expect(as_of.lag_ms).toBe(0)
      const words = nodes.map(({ lifecycle_status, health_status }) => `${lifecycle_status} ${health_status}`)
      seen.push([words, edges.length])
    }
    const one = ['active unknown']
    const two = ['active unknown', 'active unknown']
    expect(seen).toEqual([
      [one, 0],
      [two, 1],
      [one, 0],
      [two, 1],
    ])
    for (const [at, status] of [
      [times[4], 404],
      ['2001-01-01T00:00:00Z', 410],
      ['2026-02-30T00:00:00Z', 400],
      ['2026-02-28T00:00:00%2B23:59', 400],
    ])
      expect((await c.as('vic').get(`/v1/graphs/resources?root_id=${past}&at=${at}`)).status).toBe(status)
  })

  it('of topology start from all regions and hold places with their contents', async () => {
    const { roots, nodes, edges } = await ask('depth=4', 'vic', 'topology')
    expect(roots).toEqual(['eu1'])
    expect(nodes.map(({ resource_id }) => resource_id)).toEqual(
      expect.arrayContaining(['eu1', 'eu1-a', 'eu1-a-edge', 'eu1-a-web', 'eu1-web-01', 'eu1-web-02']),
    )
    expect(new Set(edges.map(({ type_key }) => type_key))).toEqual(new Set(['contained_in']))
    expect(await ask('depth=4', 'far', 'topology')).toMatchObject({ roots: [], nodes: [], edges: [] })
  })
})

describe('a frontier', () => {
  /** Follows one entry to its end; every page adds neighbors that no earlier page has shown. */
  const follow = async (query: string, { resource_id, omitted, page_token }: Graph['frontier'][number]) => {
    const found: string[] = []
    for (let token: string | null | undefined = page_token; token; ) {
      const page: Graph = await ask(`${query}&page_token=${token}`)
      expect(page.nodes[0]?.resource_id).toBe(resource_id)
      found.push(...page.nodes.slice(1).map((node) => node.resource_id))
      token = page.frontier.find((entry) => entry.resource_id === resource_id)?.page_token
    }
    expect(new Set(found).size).toBe(found.length)
    expect(found).toHaveLength(omitted)
    return found
  }

  it('shows each remaining neighbor once', async () => {
    for (const query of ['root_id=hub&depth=1&fanout=7', 'root_id=hub&depth=2&max_nodes=6', 'root_id=s0&depth=1']) {
      const first = await ask(query)
      expect(first.frontier.length).toBeGreaterThan(0)
      const shown = new Set(first.nodes.map(({ resource_id }) => resource_id))
      for (const entry of first.frontier) for (const id of await follow(query, entry)) expect(shown).not.toContain(id)
    }
  })

  it('leads to the whole graph, however small each answer is', async () => {
    const types = 'relationship_types=depends_on'
    const whole = new Set((await ask(`root_id=s29&depth=10&${types}`)).nodes.map(({ resource_id }) => resource_id))
    const query = `root_id=s29&depth=1&fanout=2&max_nodes=4&${types}`
    const seen = new Set<string>()
    const open = [undefined] as (string | null | undefined)[]
    for (let steps = 0; open.length > 0; steps++) {
      expect(steps).toBeLessThan(500)
      const token = open.pop()
      const page = await ask(token ? `${query}&page_token=${token}` : query)
      const fresh = new Set(page.nodes.map(({ resource_id }) => resource_id).filter((id) => !seen.has(id)))
      for (const id of fresh) seen.add(id)
      const root = page.nodes[0]?.resource_id
      for (const entry of page.frontier)
        if (fresh.has(entry.resource_id) || entry.resource_id === root) open.push(entry.page_token)
    }
    expect([...seen].sort()).toEqual([...whole].sort())
  })

  it('is bound to its query and its reader', async () => {
    const { frontier } = await ask('root_id=hub&depth=1&fanout=7')
    const token = frontier[0]?.page_token ?? ''
    const other = await c.as('vic').get(`/v1/graphs/resources?root_id=hub&depth=1&fanout=8&page_token=${token}`)
    expect([other.status, other.body.code]).toEqual([400, 'page_token_mismatch'])
    for (const [as, text] of [
      ['ada', token],
      ['vic', `${token.slice(0, -2)}${token.endsWith('AA') ? 'BB' : 'AA'}`],
    ] as const) {
      const refused = await c.as(as).get(`/v1/graphs/resources?root_id=hub&depth=1&fanout=7&page_token=${text}`)
      expect([refused.status, refused.body.code]).toEqual([400, 'page_token_invalid'])
    }
  })
})

describe('the graph in memory', () => {
  const route = 'graphs/resources'
  const by_all = { name: 'a', access: 'all' as const }
  const options = () => {
    const { db, registry, telemetry } = c.deps
    const url = c.config.CATALOG__DATABASE__URL
    const pace = { poll_ms: 20, batch: 500, compact_at: 100_000, compare_ms: 60_000 }
    return { db, registry, telemetry, url, enabled: true, ...pace }
  }

  it('reports that it is loading, and reads small depths from the tables meanwhile', async () => {
    const cold = { ...c.deps, graph: createGraph(options()) }
    const graph = (depth: number, more: GraphQuery = {}) =>
      traverse(cold, { route, query: { root_id: ['hub'], depth, ...more } }, by_all)
    expect(await graph(2)).toMatchObject({ as_of: { lag_ms: 0 }, nodes: expect.any(Array) })
    const warming = { category: 'stale_projection', code: 'graph_warming', status: 503 }
    await expect(graph(3)).rejects.toMatchObject(warming)
    await expect(graph(1, { page_token: 'any' })).rejects.toMatchObject(warming)
    await expect(cold.graph.check()).rejects.toThrow('is being loaded')
  })

  it('reports its lag, and refuses a request for a write that it does not hold', async () => {
    const hasty = { ...c.deps, config: { ...c.deps.config, stale_wait_ms: 100 } }
    const { change_token } = await c.as('ada').record({ resource_id: 'late', type_key: 'infra.service', name: 'late' })
    const graph = (more: GraphQuery) =>
      traverse(hasty, { route, query: { root_id: ['hub'], depth: 1, ...more } }, by_all)
    const lagging = { category: 'stale_projection', code: 'projection_lag', status: 503 }
    await expect(graph({ min_change: change_token })).rejects.toMatchObject(lagging)
    const behind = await until(async () => (await graph({})).as_of.lag_ms)
    expect(behind).toBeGreaterThan(0)
    await expect(graph({ max_lag_ms: 0 })).rejects.toMatchObject(lagging)
    await expect(readTopologyGraph(hasty, { max_lag_ms: 0 }, by_all)).rejects.toMatchObject(lagging)
    // A root that only the tables know is waited for, not denied.
    await expect(graph({ root_id: ['late'] })).rejects.toMatchObject(lagging)
    const waiting = traverse(c.deps, { route, query: { root_id: ['late'], min_change: change_token } }, by_all)
    await c.sequence()
    expect((await waiting).nodes).toMatchObject([{ resource_id: 'late' }])
    await until(async () => (await graph({ max_lag_ms: 0 })).as_of.lag_ms === 0)
  })

  /** Numbers the log until the work is done: a comparison waits for all events until then, such as expired health. */
  const numbering = async <T>(work: Promise<T>): Promise<T> => {
    const settled = work.then(
      () => true,
      () => true,
    )
    while (!(await Promise.race([settled, delay(20)]))) await c.sequence()
    return work
  }

  const both = async (
    query: GraphQuery,
    reader: { name: string; access: 'all' | { place_ids: string[]; type_ids: null }[] },
  ) => {
    const [memory, sql] = await Promise.all(
      (['memory', 'sql'] as const).map((by) =>
        traverse(c.deps, { route, query }, reader, by).catch((error: Error) => error.message),
      ),
    )
    const plain = (graph: Graph | string | undefined) =>
      typeof graph === 'object'
        ? { ...graph, as_of: null, frontier: graph.frontier.map((entry) => ({ ...entry, page_token: null })) }
        : graph
    return [plain(memory), plain(sql)]
  }

  const query = (ids: string[]) =>
    fc.record(
      {
        root_id: fc.uniqueArray(fc.constantFrom(...ids), { minLength: 1, maxLength: 3 }),
        depth: fc.integer({ min: 0, max: 4 }),
        direction: fc.constantFrom('out' as const, 'in' as const, 'both' as const),
        relationship_types: fc.subarray(['depends_on', 'contained_in', 'connects_to', 'member_of'], { minLength: 1 }),
        node_types: fc.subarray(['infra.service', 'infra.host', 'core.resource', 'topology.segment'], { minLength: 1 }),
        max_nodes: fc.integer({ min: 3, max: 60 }),
        max_edges: fc.integer({ min: 1, max: 80 }),
        fanout: fc.integer({ min: 1, max: 50 }),
      },
      { requiredKeys: ['root_id'] },
    )
  const reader = fc.constantFrom(
    by_all,
    { name: 'b', access: [{ place_ids: ['eu1'], type_ids: null }] },
    { name: 'c', access: [{ place_ids: ['gone'], type_ids: null }] },
  )

  it('is reloaded in the background after many changes, and never goes back in time', async () => {
    const small = createGraph({ ...options(), compact_at: 3 })
    small.start()
    await until(() => small.store())
    for (let i = 0; i < 6; i++)
      await c.as('ada').record({ resource_id: `again-${i}`, type_key: 'infra.service', name: `again-${i}` })
    await c.followed()
    const head = BigInt(c.deps.graph.store()?.watermark ?? 0)
    await until(() => small.figures().loads >= 2 && (small.figures().changed ?? 9) <= 3)
    expect(BigInt(small.store()?.watermark ?? 0)).toBeGreaterThanOrEqual(head)
    expect(small.store()?.ridOf('again-5')).toBe(c.deps.graph.store()?.ridOf('again-5'))
    await small.stop()
  })

  it('is loaded anew when Postgres runs anew, which may be an older copy: it forgets what that has lost', async () => {
    await c.as('ada').record({ resource_id: 'lost', type_key: 'infra.service', name: 'lost' })
    await c.followed()
    const graph = createGraph(options())
    graph.start()
    try {
      await until(() => graph.store()?.ridOf('lost'))
      const head = BigInt(graph.store()?.watermark ?? 0)
      const rid = `(select rid from catalog.resource where resource_id = 'lost')`
      for (const row of [
        `resource_state where rid = ${rid}`,
        `outbox where pub_seq >= (select min(pub_seq) from catalog.outbox where agg_id = 'lost')`,
        `resource where rid = ${rid}`,
      ])
        await c.rows(`delete from catalog.${row}`)
      // Of a restored copy, the table is another one, too.
      await c.deps.db.transaction(async (tx) => {
        await tx.execute(sql`lock table catalog.resource in access exclusive mode`)
        await c.rows('create table catalog.other as table catalog.relay_state')
        await c.rows('drop table catalog.relay_state')
        await c.rows('alter table catalog.other rename to relay_state')
        // Until it has loaded, whoever needs a current graph does not get the old one.
        await until(() => graph.lag() > 500)
      })
      await until(() => graph.store()?.ridOf('lost') === undefined)
      expect(BigInt(graph.store()?.watermark ?? 0)).toBeLessThan(head)
      expect(graph.figures().loads).toBe(2)
      await until(() => graph.lag() === 0)
    } finally {
      await graph.stop()
    }
  })

  it('is rebuilt from the tables if an event does not fit, and a comparison waits for that', async () => {
    const graph = createGraph(options())
    graph.start()
    await until(() => graph.store())
    // A resource that the log never reported: later events about it have no place in the graph.
    await c.rows(`with made as (insert into catalog.resource (resource_id, type_id, type_version, name, display_name, path, created_at, created_by)
        select 'untold', type_id, type_version, 'untold', 'untold', '999999999', created_at, created_by
        from catalog.resource where resource_id = 'hub' returning rid)
      insert into catalog.resource_state (rid, version, generation, observed_generation, lifecycle_status, drift_status,
          lifecycle_at, drift_at, health_at, updated_at, updated_by)
        select made.rid, 1, 1, 0, 'active', 'unknown', now(), now(), now(), now(), 'svc:test' from made`)
    try {
      await c.observe('untold', { status: 'degraded' })
      expect(await numbering(graph.compare(true))).toMatchObject({ differ: 0 })
      await until(() => graph.store()?.ridOf('untold'))
      await c.as('ada').record({ resource_id: 'told', type_key: 'infra.service', name: 'told' })
      await c.sequence()
      await until(() => graph.store()?.ridOf('told'))
      expect(graph.figures().loads).toBeGreaterThan(1)
      // The pass that took it asked for the age of the log before the event had its number.
      await until(() => graph.lag() === 0)
    } finally {
      await graph.stop()
      const of = `where rid = (select rid from catalog.resource where resource_id = 'untold')`
      await c.rows(`delete from catalog.outbox where agg_id = 'untold'`)
      for (const table of ['observation_latest', 'observation_history', 'resource_state', 'resource'])
        await c.rows(`delete from catalog.${table} ${of}`)
      await numbering(c.deps.graph.compare(true))
    }
  })

  it('ends a comparison that takes too long, and then accepts another', async () => {
    const graph = createGraph({ ...options(), compare_ms: 3000 })
    graph.start()
    await until(() => graph.store())
    await c.followed()
    await c.as('ada').record({ resource_id: 'no-number', type_key: 'infra.service', name: 'no-number' })
    await expect(graph.compare(false)).rejects.toThrow('took longer than 3000 ms')
    const compared = until(() => graph.compare(true).catch(() => undefined))
    expect(await numbering(compared)).toMatchObject({ differ: 0 })
    await graph.stop()
  })

  it('answers as SQL does, on random graphs under random commands', async () => {
    const ids = ['eu1', 'eu1-a', 'eu1-a-web', 'eu1-web-01', 'eu1-web-02', ...calls.keys()]
    const versions = async (id: string) => (await c.as('vic').get(`/v1/resources/${id}`)).body.version as number
    const change = fc.record({
      id: fc.constantFrom(...[...calls.keys()]),
      target: fc.constantFrom(...ids),
      op: fc.constantFrom('add' as const, 'remove' as const),
      type_key: fc.constantFrom('depends_on', 'depends_on', 'connects_to', 'member_of', 'contained_in'),
      direction: fc.constantFrom('out' as const, 'in' as const),
      kind: fc.constantFrom('edge', 'edge', 'edge', 'edge', 'new', 'end', 'health'),
    })
    let applied = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { minLength: 1, maxLength: 8 }),
        fc.array(fc.tuple(query(ids), reader), { minLength: 8, maxLength: 8 }),
        async (changes, queries) => {
          for (const { id, target, op, type_key, direction, kind } of changes) {
            if (kind === 'new') {
              const fresh = `n-${randomUUID()}`
              await c.as('ada').record(hostOf(fresh, 'eu1-a-web'))
              ids.push(fresh)
            } else if (kind === 'health') await c.observe(id, { status: 'degraded' })
            else {
              const edge = [{ op, type_key, direction, target_id: target }]
              const changes = kind === 'end' ? { lifecycle_status: 'retired' } : { relationship_changes: edge }
              const { status } = await c.result(id, { expected_version: await versions(id), changes })
              applied += Number(status === 200)
            }
          }
          await c.followed()
          for (const [asked, by] of queries) {
            const [memory, sql] = await both(asked as GraphQuery, by as never)
            expect(memory).toEqual(sql)
          }
        },
      ),
      { numRuns: 15, endOnFailure: true },
    )
    expect(applied).toBeGreaterThan(10)
    // A freshly loaded graph is the same: the one built from events equals the one loaded from the tables.
    const again = createGraph(options())
    again.start()
    const loaded = await until(() => again.store())
    expect(loaded.figures()).toMatchObject({ nodes: c.deps.graph.figures().nodes, edges: c.deps.graph.figures().edges })
    await again.stop()
  }, 120_000)
})
