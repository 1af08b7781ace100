import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 0)
})
afterAll(() => c.stop())

const name = () => `n-${randomUUID()}`
const record = (over: Record<string, unknown>) => c.as('ada').record({ name: name(), ...over })
/** Containers that may hold each other: generic resources may be placed below anything. */
const box = async (parent_id?: string): Promise<string> => {
  const made = await record({
    type_key: 'infra.generic',
    desired_state: { provider: 'p', kind: 'box' },
    ...(parent_id && { parent_id }),
  })
  return made.resource_id
}
const versionOf = async (id: string) => (await c.as('vic').get(`/v1/resources/${id}`)).body.version
const command = async (id: string, changes: Record<string, unknown>) =>
  c.result(id, { expected_version: await versionOf(id), changes })
const move = (id: string, to: string, from?: string) =>
  command(id, {
    relationship_changes: [
      ...(from ? [{ op: 'remove', type_key: 'contained_in', target_id: from }] : []),
      { op: 'add', type_key: 'contained_in', target_id: to },
    ],
  })
const retire = (id: string) => command(id, { lifecycle_status: 'retired' })

/** Paths equal edges, every open resource has an open parent, and nothing is above itself. */
const faults = () =>
  c.rows(`with recursive up(rid, top, way) as (
      select rid, rid, array[rid] from catalog.resource where is_open
      union all
      select up.rid, e.dst, way || e.dst from up
        join catalog.relationship e on e.src = up.top
        join catalog.relationship_type t on t.id = e.reltype_id and t.type_key = 'contained_in'
        where not e.dst = any(way) or array_length(way, 1) < 2)
    select r.resource_id, 'path' as fault from catalog.resource r
      left join catalog.resource p on p.rid = r.parent_rid
      where r.is_open and r.path <> (case when p.rid is null then r.rid::text::ltree else p.path || r.rid::text::ltree end)
    union all
    select r.resource_id, 'orphan' from catalog.resource r join catalog.resource p on p.rid = r.parent_rid where r.is_open and not p.is_open
    union all
    select r.resource_id, 'edge' from catalog.resource r
      where r.is_open and r.parent_rid is distinct from (select e.dst from catalog.relationship e
        join catalog.relationship_type t on t.id = e.reltype_id and t.type_key = 'contained_in' where e.src = r.rid)
    union all
    select r.resource_id, 'cycle' from catalog.resource r where array_length(string_to_array(r.path::text, '.'), 1)
      <> (select count(distinct x) from unnest(string_to_array(r.path::text, '.')) x)
    union all
    select r.resource_id, 'dangling' from catalog.relationship e join catalog.resource r on r.rid in (e.src, e.dst) where not r.is_open`)

describe('the tree and its edges', () => {
  it('moves a subtree with its paths and scope, and only the moved resource gets a version', async () => {
    await seedRegion(c, 'us9', 0)
    const cluster = await record({
      type_key: 'infra.cluster',
      parent_id: 'eu1-a-web',
      lifecycle_status: 'active',
      desired_state: { kind: 'kubernetes' },
    })
    const inner = await box(cluster.resource_id)
    const reply = await move(cluster.resource_id, 'us9-a-web', 'eu1-a-web')
    expect(reply).toMatchObject({ status: 200, body: { version: 2 } })
    const below = (await c.as('vic').get(`/v1/resources/${inner}`)).body
    expect(below).toMatchObject({ version: 1, scope: { region_id: 'us9', datacenter_id: 'us9-a' } })
    expect((await c.as('vic').get('/v1/resources?region_id=us9&type_key=infra.generic')).body.items).toHaveLength(1)
    expect(await faults()).toEqual([])
  })

  it('refuses a second parent, a parent below itself, and itself as parent', async () => {
    const [a, b] = [await box(), await box()]
    const inner = await box(a)
    const second = { code: 'cardinality', pointer: expect.stringContaining('/relationship_changes/0') }
    expect(await move(inner, b)).toMatchObject({ status: 422, body: { code: 'cardinality', violations: [second] } })
    expect(await move(a, inner)).toMatchObject({ status: 422, body: { code: 'cycle' } })
    expect(await move(a, a)).toMatchObject({ status: 422, body: { code: 'cycle' } })
    expect(await faults()).toEqual([])
  })

  it('never lets resources host each other in a cycle, however long', async () => {
    const host = (id: string, target_id: string) =>
      command(id, { relationship_changes: [{ op: 'add', type_key: 'hosted_on', target_id }] })
    const [a, b, d] = [await box(), await box(), await box()]
    expect((await host(a, b)).status).toBe(200)
    expect(await host(b, a)).toMatchObject({ status: 422, body: { code: 'cycle' } })
    expect((await host(b, d)).status).toBe(200)
    expect(await host(d, a)).toMatchObject({ status: 422, body: { code: 'cycle' } })
    for (let round = 0; round < 8; round++) {
      const [x, y] = [await box(), await box()]
      const replies = await Promise.all([host(x, y), host(y, x)])
      expect(replies.map(({ status }) => status).sort()).toEqual([200, 422])
    }
  })

  it('never lets A into B and B into A at once', async () => {
    for (let round = 0; round < 15; round++) {
      const [a, b] = [await box(), await box()]
      const [first, second] = await Promise.all([move(a, b), move(b, a)])
      expect([first.status, second.status].sort()).toEqual([200, 422])
    }
    expect(await faults()).toEqual([])
  })

  it('never leaves a child under a parent that was retired at the same moment', async () => {
    const ends = new Set<string>()
    for (let round = 0; round < 15; round++) {
      const parent = await box()
      const child = {
        type_key: 'infra.generic',
        name: name(),
        parent_id: parent,
        desired_state: { provider: 'p', kind: 'k' },
      }
      const [made, gone] = await Promise.all([c.as('olga').post('/v1/resources', child), retire(parent)])
      ends.add(`${made.status} ${gone.status}`)
      expect([`201 422`, `422 200`]).toContain(`${made.status} ${gone.status}`)
    }
    expect(await faults()).toEqual([])
  })

  it('stays whole under moves, creations and retirements at once, over two processes', async () => {
    const places = [undefined, (await c.startProcess()).at]
    const boxes = await Promise.all(Array.from({ length: 8 }, () => box()))
    const pick = () => boxes[Math.floor(Math.random() * boxes.length)] as string
    const [won, codes] = [{ moved: 0, retired: 0 }, new Set<string>()]
    const act = async (i: number) => {
      const at = places[i % 2]
      const id = pick()
      if (i % 5 === 0)
        return c
          .as('olga')
          .post('/v1/resources', {
            type_key: 'infra.generic',
            name: name(),
            parent_id: id,
            desired_state: { provider: 'p', kind: 'k' },
          })
      const { version, parent_id } = (await c.as('vic').get(`/v1/resources/${id}`)).body
      const relationship_changes = [
        ...(parent_id ? [{ op: 'remove', type_key: 'contained_in', target_id: parent_id }] : []),
        { op: 'add', type_key: 'contained_in', target_id: pick() },
      ]
      const changes = i % 13 === 1 ? { lifecycle_status: 'retired' } : { relationship_changes }
      const reply = await c.result(id, { expected_version: version, changes }, at ? { at } : {})
      if (reply.status === 200) won['lifecycle_status' in changes ? 'retired' : 'moved'] += 1
      else codes.add(reply.body.code)
      return reply
    }
    for (let i = 0; i < 120; i += 12) {
      const replies = await Promise.all(Array.from({ length: 12 }, (_, n) => act(i + n)))
      for (const { status, text } of replies) expect([200, 201, 409, 422], text).toContain(status)
      expect(await faults()).toEqual([])
    }
    // The race was real: moves succeeded, and others were refused for the rule that they would have broken.
    expect(won.moved).toBeGreaterThan(5)
    expect([...codes]).toEqual(expect.arrayContaining(['cycle', 'version_mismatch']))
  }, 120_000)

  it('takes one change of an edge after the other, also from both of its ends at once', async () => {
    const change = (id: string, version: number, edge: object) =>
      c.result(id, { expected_version: version, changes: { relationship_changes: [edge] } }, { once: true })
    for (let round = 0; round < 15; round++) {
      const [a, b] = [await box(), await box()]
      const [to, from] = [
        { type_key: 'depends_on', target_id: b },
        { type_key: 'depends_on', direction: 'in', target_id: a },
      ]
      const added = await Promise.all([change(a, 1, { op: 'add', ...to }), change(b, 1, { op: 'add', ...from })])
      expect(added.map(({ status, text }) => [status, status === 200 || text])).toEqual([
        [200, true],
        [200, true],
      ])
      expect(added.filter(({ body }) => body.applied)).toHaveLength(1)
      const [va, vb] = [await versionOf(a), await versionOf(b)]
      const removed = await Promise.all([
        change(a, va, { op: 'remove', ...to }),
        change(b, vb, { op: 'remove', ...from }),
      ])
      expect(removed.map(({ status, text }) => [status, status === 200 || text])).toEqual([
        [200, true],
        [200, true],
      ])
      expect(removed.filter(({ body }) => body.applied)).toHaveLength(1)
    }
  })

  it('has no effect if a command opens edges and closes them again', async () => {
    const [service, peer, inside] = [await box('eu1-a-web'), await box(), await box('eu1-a-web')]
    const both = (change: object) => ['add', 'remove'].map((op) => ({ op, ...change }))
    // A result without effect still refers to its operation.
    const traces = async () => ({ ...(await c.traces()), command_log: 0, resource_operation: 0 })
    const before = await traces()
    for (const change of [
      { type_key: 'depends_on', target_id: peer },
      { type_key: 'contained_in', target_id: peer, direction: 'in' },
    ]) {
      const reply = await command(service, { relationship_changes: both(change) })
      expect(reply).toMatchObject({ status: 200, body: { version: 1, applied: false } })
    }
    expect(await traces()).toEqual(before)
    // With another change it is one version, and the edge leaves no trace in the present.
    const changes = [
      ...both({ type_key: 'depends_on', target_id: peer }),
      { op: 'add', type_key: 'depends_on', target_id: inside },
    ]
    expect(await command(service, { relationship_changes: changes })).toMatchObject({ body: { version: 2 } })
    const { items } = (await c.as('vic').get(`/v1/resources/${service}/relationships?direction=out`)).body
    expect(items.map((item: { peer: { resource_id: string } }) => item.peer.resource_id).sort()).toEqual(
      ['eu1-a-web', inside].sort(),
    )
    expect(await faults()).toEqual([])
  })

  it('closes, blocks or detaches the edges of an ended resource, as their types say', async () => {
    const pool = await record({ type_key: 'infra.pool', parent_id: 'eu1-a-web' })
    const target = await record({ type_key: 'infra.service', desired_state: { tier: 1 } })
    const user = await record({
      type_key: 'infra.service',
      relationships: [{ type_key: 'depends_on', target_id: target.resource_id }],
    })
    const member = await c
      .as('ada')
      .record({
        ...hostOf(name(), 'eu1-a-web'),
        relationships: [{ type_key: 'member_of', target_id: pool.resource_id }],
      })
    const blocked = await retire(target.resource_id)
    expect(blocked).toMatchObject({
      status: 422,
      body: { code: 'blocked_by_dependents', blockers_count: 1, blockers: [{ resource_id: user.resource_id }] },
    })
    expect((await retire(pool.resource_id)).status).toBe(200)
    expect(
      (await c.as('vic').get(`/v1/resources/${member.resource_id}/relationships?relationship_types=member_of`)).body
        .items,
    ).toEqual([])
    expect((await retire(user.resource_id)).status).toBe(200)
    expect((await retire(target.resource_id)).status).toBe(200)
    const [event] = await c.rows<{ type: string; payload: { relationship_changes: unknown[] } }>(
      `select type, payload from catalog.outbox where agg_type = 'resource' and agg_id = $1 and agg_version = 2`,
      [user.resource_id],
    )
    expect(event).toMatchObject({
      type: 'resource.retired',
      payload: { relationship_changes: [{ op: 'removed', rev: 2, to_id: target.resource_id }] },
    })
  })

  it('holds the rules of both ends of a symmetric edge, whichever end states it', async () => {
    const limit = (type_key: string, min: number, max: number | null) =>
      c.rows(
        `update catalog.type set document = jsonb_set(document, '{relationships}', document->'relationships' || $2::jsonb)
         where type_key = $1`,
        [
          type_key,
          JSON.stringify([{ type_key: 'connects_to', direction: 'out', peer_types: ['infra.generic'], min, max }]),
        ],
      )
    await limit('infra.pool', 0, 1)
    await limit('infra.endpoint', 1, null)
    await c.rows(`update catalog.pack set load_no = load_no + 1 where pack = 'core'`)
    await c.deps.registry.reload()
    const change = (op: 'add' | 'remove', id: string, target_id: string, direction = 'out') =>
      command(id, { relationship_changes: [{ op, type_key: 'connects_to', direction, target_id }] })
    const refused = (code: string) => ({ status: 422, body: { code } })
    const pool = (await record({ type_key: 'infra.pool', parent_id: 'eu1-a-web' })).resource_id
    const service = (await record({ type_key: 'infra.service' })).resource_id
    const [a, b] = [await box(), await box()]

    for (const [one, other] of [
      [pool, service],
      [service, pool],
    ]) {
      for (const direction of ['out', 'in'])
        expect(await change('add', one, other, direction)).toMatchObject(refused('target_type_not_allowed'))
    }

    const raced = await Promise.all([change('add', a, pool), change('add', b, pool)])
    expect(raced.map(({ status }) => status).sort()).toEqual([200, 422])
    const more = await box()
    for (const direction of ['out', 'in']) {
      expect(await change('add', pool, more, direction)).toMatchObject(refused('cardinality'))
      expect(await change('add', more, pool, direction)).toMatchObject(refused('cardinality'))
    }

    const endpoint = await record({
      type_key: 'infra.endpoint',
      desired_state: { url: 'https://one.example' },
      relationships: [{ type_key: 'connects_to', target_id: a }],
    })
    for (const direction of ['out', 'in']) {
      expect(await change('remove', endpoint.resource_id, a, direction)).toMatchObject(refused('cardinality'))
      expect(await change('remove', a, endpoint.resource_id, direction)).toMatchObject(refused('cardinality'))
    }
  })

  it('ends cascading resources with it, each with its own version and event', async () => {
    await c.rows(
      `update catalog.relationship_type set document = jsonb_set(document, '{on_delete}', '"cascade"') where type_key = 'backs_up'`,
    )
    await c.rows(`update catalog.pack set load_no = load_no + 1 where pack = 'core'`)
    await c.deps.registry.reload()
    const main = await box()
    const copy = await record({
      type_key: 'infra.generic',
      desired_state: { provider: 'p', kind: 'k' },
      relationships: [{ type_key: 'backs_up', target_id: main }],
    })
    expect((await retire(main)).status).toBe(200)
    expect((await c.as('vic').get(`/v1/resources/${copy.resource_id}`)).body).toMatchObject({
      version: 2,
      lifecycle_status: 'retired',
    })
    expect(await faults()).toEqual([])
  })

  it('ends and moves no more at once than a person can review', async () => {
    const main = await box()
    await c.rows(
      `insert into catalog.relationship (src, reltype_id, dst, valid_from)
       select 920000000 + n, t.id, r.rid, now() from generate_series(1, 201) n, catalog.resource r, catalog.relationship_type t
       where r.resource_id = $1 and t.type_key = 'backs_up'`,
      [main],
    )
    const moved = await box()
    try {
      for (let from = 1; from <= 10_001; from += 2000)
        await c.rows(
          `insert into catalog.resource overriding system value
           select (jsonb_populate_record(r, jsonb_build_object('rid', 930000000 + n, 'resource_id', 'below-' || n,
             'name', 'below-' || n, 'path', r.path::text || '.' || (930000000 + n)))).*
           from generate_series($2::int, $3::int) n, catalog.resource r where r.resource_id = $1`,
          [moved, from, Math.min(from + 1999, 10_001)],
        )
      expect(await retire(main)).toMatchObject({ status: 422, body: { code: 'cascade_too_large' } })
      expect(await move(moved, await box())).toMatchObject({ status: 422, body: { code: 'subtree_too_large' } })
    } finally {
      await c.rows('delete from catalog.relationship where src between 920000000 and 920001000')
      await c.rows('delete from catalog.resource where rid between 930000000 and 930020000')
    }
  })

  describe('with very many edges of one type', () => {
    const service = async () => (await record({ type_key: 'infra.service' })).resource_id as string
    /** Edges from resources that do not exist, in batches that each stay far below the statement timeout. */
    const crowd = async (hub: string, count: number, first = 1) => {
      for (let from = first; from <= count; from += 20_000)
        await c.rows(
          `insert into catalog.relationship (src, reltype_id, dst, valid_from)
           select 900000000 + n, t.id, r.rid, now() from generate_series($1::int, $2::int) n, catalog.resource r, catalog.relationship_type t
           where r.resource_id = $3 and t.type_key = 'depends_on'`,
          [from, Math.min(from + 19_999, count), hub],
        )
    }
    const disperse = async () => {
      for (let from = 0; from < 200_000; from += 20_000)
        await c.rows('delete from catalog.relationship where src between $1 and $2', [
          900_000_000 + from,
          900_020_000 + from,
        ])
    }
    const dependOn = async (hub: string) =>
      command(await service(), { relationship_changes: [{ op: 'add', type_key: 'depends_on', target_id: hub }] })

    it('a resource has a limit', async () => {
      const hub = await service()
      await crowd(hub, 150_000)
      try {
        // An earlier count serves again only while few edges were opened since, by anyone.
        for (let i = 0; i < 2; i++) expect((await dependOn(hub)).status).toBe(200)
        await crowd(hub, 199_997, 150_001)
        expect((await dependOn(hub)).status).toBe(200)
        expect(await dependOn(hub)).toMatchObject({ status: 422, body: { code: 'too_many_relationships' } })
      } finally {
        await disperse()
      }
    })

    it('counts each new one from the thousandth on', async () => {
      const counted = async () => {
        const metric = await c.deps.telemetry.metrics.getSingleMetric('signalbox_relationships_crowded_total')?.get()
        return metric?.values.find(({ labels }) => labels.type_key === 'depends_on')?.value ?? 0
      }
      const hub = await service()
      await crowd(hub, 999)
      try {
        const before = await counted()
        await dependOn(hub)
        expect(await counted()).toBe(before)
        await dependOn(hub)
        expect(await counted()).toBe(before + 1)
      } finally {
        await disperse()
      }
    })
  })

  it('lets a retired resource keep notes only, and frees its name', async () => {
    const made = await record({ type_key: 'infra.service', desired_state: { tier: 1 } })
    const id = made.resource_id
    expect((await retire(id)).status).toBe(200)
    expect(
      (await c.as('olga').patch(`/v1/resources/${id}`, { desired_state: { tier: 2 }, expected_version: 2 })).body.code,
    ).toBe('resource_terminal')
    expect((await command(id, { observed_state_patch: { endpoints_ready: 1 } })).body.code).toBe('resource_terminal')
    expect(
      (await c.as('olga').patch(`/v1/resources/${id}`, { labels: { was: 'here' }, expected_version: 2 })).status,
    ).toBe(200)
    expect((await c.as('olga').post('/v1/resources', { type_key: 'infra.service', name: made.name })).status).toBe(201)
    expect((await c.as('vic').get(`/v1/resources?ids=${id}`)).body.items).toEqual([])
    expect((await c.as('vic').get(`/v1/resources?ids=${id}&include_retired=true`)).body.items).toHaveLength(1)
  })
})
