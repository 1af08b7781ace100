import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { prune, pruneHistory } from '../../apps/catalog/jobs.ts'
import { causesOf, type FlowRule, type HealthGraph, rollUp } from '../../apps/catalog/rules/roll-up.ts'
import type { HealthStatus } from '../../apps/shared/contracts/catalog/resources.ts'
import { pruneRevisions } from '../../db/catalog/resources/commands.ts'
import { addMany } from './support/many.ts'
import { type Catalog, seedRegion, startCatalog } from './support/platform.ts'

const ORDER: HealthStatus[] = ['healthy', 'unknown', 'degraded', 'unhealthy']

describe('the roll-up', () => {
  const n = 8
  const rules = new Map<number, FlowRule>([
    [1, { mode: 'worst', k: 1, cap: null }],
    [2, { mode: 'worst', k: 1, cap: 'degraded' }],
    [3, { mode: 'quorum', k: 0.5, cap: null }],
    [4, { mode: 'quorum', k: 2, cap: 'degraded' }],
  ])
  const graph: fc.Arbitrary<HealthGraph> = fc.record({
    own: fc
      .array(fc.constantFrom<HealthStatus>('healthy', 'healthy', 'unknown', 'degraded', 'unhealthy', 'maintenance'), {
        minLength: n,
        maxLength: n,
      })
      .map((all) => new Map(all.map((status, i) => [String(i), status]))),
    flows: fc.uniqueArray(
      fc.record({
        dependent: fc.integer({ min: 0, max: n - 1 }).map(String),
        peer: fc.integer({ min: 0, max: n - 1 }).map(String),
        kind: fc.integer({ min: 1, max: 4 }),
      }),
      { maxLength: 20, selector: (flow) => JSON.stringify(flow) },
    ),
    rules: fc.constant(rules),
  })

  /** Applies every rule to every resource, again and again, until a full pass changes nothing. */
  const bruteForce = ({ own, flows }: HealthGraph): Map<string, HealthStatus> => {
    const now = new Map(own)
    for (let moved = true; moved; ) {
      moved = false
      for (const [rid, status] of [...now]) {
        if (status === 'maintenance') continue
        for (const [kind, { mode, k, cap }] of rules) {
          const peers = flows
            .filter((flow) => flow.dependent === rid && flow.kind === kind)
            .map((flow) => now.get(flow.peer))
          const counted = peers.filter((peer) => peer !== 'maintenance') as HealthStatus[]
          const healthy = counted.filter((peer) => peer === 'healthy').length
          let given: HealthStatus = ORDER[Math.max(0, ...counted.map((peer) => ORDER.indexOf(peer)))] as HealthStatus
          if (mode === 'quorum') {
            const enough = healthy >= (k < 1 ? k * counted.length : k)
            given = healthy === counted.length ? 'healthy' : enough ? 'degraded' : 'unhealthy'
          }
          if (cap === 'degraded' && given === 'unhealthy') given = 'degraded'
          if (ORDER.indexOf(given) > ORDER.indexOf(now.get(rid) as HealthStatus)) {
            now.set(rid, given)
            moved = true
          }
        }
      }
    }
    return now
  }

  it('is the least fixpoint, on any graph with cycles', () => {
    fc.assert(
      fc.property(graph, (g) => {
        expect(rollUp(g)).toEqual(bruteForce(g))
      }),
      { numRuns: 1000 },
    )
  })

  it('has causes that are real paths to an unhealthy resource, the worst first', () => {
    fc.assert(
      fc.property(graph, (g) => {
        const rolled = rollUp(g)
        const causes = causesOf('0', g, rolled, (rid) => rid, 5)
        const status = rolled.get('0') as HealthStatus
        expect(causes.length > 0).toBe(status !== 'healthy' && status !== 'maintenance')
        for (const { rid, status: own, path } of causes) {
          expect([path[0], path.at(-1), g.own.get(rid)]).toEqual(['0', rid, own])
          expect(ORDER.indexOf(own)).toBeGreaterThan(0)
          for (const [i, step] of path.slice(1).entries())
            expect(g.flows.some((flow) => flow.dependent === path[i] && flow.peer === step)).toBe(true)
        }
        const badness = causes.map((cause) => -ORDER.indexOf(cause.status))
        expect(badness).toEqual([...badness].sort((a, b) => a - b))
      }),
      { numRuns: 1000 },
    )
  })
})

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 2)
  await seedRegion(c, 'us1', 1)
})
afterAll(() => c.stop())

const health = async (id: string, query = '', name: 'vic' | 'far' = 'vic') =>
  (await c.as(name).get(`/v1/resources/${id}/health${query}`)).body
const service = async (...depends_on: string[]) =>
  (
    await c
      .as('ada')
      .record({
        type_key: 'infra.service',
        name: `s-${randomUUID()}`,
        desired_state: { tier: 1 },
        relationships: depends_on.map((target_id) => ({ type_key: 'depends_on', target_id })),
      })
  ).resource_id as string

describe('health', () => {
  it('bounds what one observation holds, and how many checks a resource has', async () => {
    const id = await service()
    const refused = async (over: Record<string, unknown>) => {
      const { status, body } = await c.observe(id, over)
      return [status, body.code, body.violations?.[0]?.pointer]
    }
    // 1,024 characters are more bytes than that.
    expect(await refused({ summary: 'ö'.repeat(600) })).toEqual([422, 'schema_violation', '/summary'])
    expect(await refused({ attributes: { a: 'x'.repeat(8200) } })).toEqual([422, 'schema_violation', '/attributes'])
    expect(await refused({ attributes: { a: 'x'.repeat(8100) }, summary: 'x'.repeat(1024) })).toEqual([
      200,
      undefined,
      undefined,
    ])
    await c.rows(
      `insert into catalog.observation_latest (rid, source, check_key, status, observed_at, expires_at, attributes, command_id)
       select rid, 'test', 'k' || i, 'healthy', now(), now() + interval '1 hour', '{}', gen_random_uuid()
       from catalog.resource, generate_series(2, 200) i where resource_id = $1`,
      [id],
    )
    expect(await refused({ check_key: 'one-more' })).toEqual([422, 'too_many_checks', undefined])
    expect(await refused({ check_key: 'k7', observed_at: new Date(Date.now() + 1000).toISOString() })).toEqual([
      200,
      undefined,
      undefined,
    ])
    const result = await c.result(id, { expected_version: 1, changes: { health_status: 'healthy' } })
    expect(result.status, result.text).toBe(200)
  })

  it('rolls up over the dependencies of a resource, and names the path to the cause', async () => {
    const back = await service('us1-web-01')
    const front = await service(back, 'eu1-web-01')
    for (const id of [front, back, 'eu1-web-01', 'us1-web-01']) await c.observe(id)
    expect((await health(front)).rollup).toMatchObject({ status: 'healthy', causes: [], visited: 4, truncated: false })
    await c.observe('us1-web-01', { status: 'unhealthy', summary: 'no answer' })
    c.wait(2000)
    expect((await health(front)).rollup).toMatchObject({
      status: 'degraded',
      causes: [
        {
          path: [front, back, 'us1-web-01'],
          resource_id: 'us1-web-01',
          status: 'unhealthy',
          check: { source: 'test', check_key: 'http', status: 'unhealthy' },
          age_s: expect.any(Number),
          hidden: false,
        },
      ],
    })
    // Its own health is untouched, and a reader who may not see the cause learns only that one exists.
    expect((await health(front)).own.status).toBe('healthy')
    c.people.far.scope = { regionId: 'eu1' }
    const [cause] = (await health(front, '', 'far')).rollup.causes
    expect(cause).toMatchObject({
      path: [front, back, null],
      resource_id: null,
      check: null,
      age_s: null,
      hidden: true,
    })
    c.people.far.scope = { regionId: 'us1' }
    expect((await health('us1')).rollup).toMatchObject({ status: 'degraded', visited: 5 })
    // A place passes on at most degraded; a resource under maintenance passes on nothing.
    await c.observe('us1-web-01', { status: 'maintenance' })
    expect((await health(front)).rollup.status).toBe('healthy')
    c.wait(61_000)
    expect((await health(front)).rollup).toMatchObject({ status: 'unknown' })
  })

  it('rolls up a chain of 3,000 levels in under 200 ms, and names the cause at its end', async () => {
    const LEVELS = 3000
    const like = await service()
    const links = await addMany(c, like, 'link', LEVELS, (i) =>
      i === 0 ? undefined : { type_key: 'depends_on', to: `link-${i - 1}` },
    )
    await c.rows('analyze catalog.relationship, catalog.resource, catalog.resource_state')
    await c.observe('link-0', { status: 'unhealthy' })
    const top = links.at(-1) as string
    const took: number[] = []
    for (let turn = 0; turn < 5; turn++) {
      const started = performance.now()
      const { rollup } = await health(top)
      took.push(performance.now() - started)
      expect(rollup).toMatchObject({ status: 'degraded', visited: LEVELS, truncated: false })
      expect(rollup.causes[0]).toMatchObject({ resource_id: 'link-0', status: 'unhealthy', path: links.toReversed() })
    }
    process.stdout.write(`roll-up of ${LEVELS} levels: ${took.map((ms) => Math.round(ms)).join(', ')} ms\n`)
    expect(Math.min(...took)).toBeLessThan(200)
  }, 60_000)

  it('forgets expired observations and command answers, and nothing else', async () => {
    const id = 'eu1-web-01'
    const count = async () =>
      (
        await c.rows<Record<string, number>>(`select (select count(*)::int from catalog.command_log) as commands,
          (select count(*)::int from catalog.observation_history) as observed,
          (select count(*)::int from catalog.observation_latest) as latest, (select count(*)::int from catalog.revision) as revisions`)
      )[0]
    await c.observe(id, { check_key: 'kept', ttl_s: 604_800 })
    const before = await count()
    await prune(c.deps)
    expect(await count()).toEqual(before)
    const later = { ...c.deps, clock: { now: () => new Date(c.deps.clock.now().getTime() + 31 * 86_400_000) } }
    await prune(later)
    expect(await count()).toEqual({ ...before, commands: 0, observed: 0 })
  })

  it('forgets expired history, and answers every retained time as before', async () => {
    const [id, peer] = [await service(), await service()]
    const day = 86_400_000
    const edge = (op: string) => [{ op, type_key: 'depends_on', target_id: peer }]
    await c.result(id, { expected_version: 1, changes: { relationship_changes: edge('add') } })
    await c.result(id, { expected_version: 2, changes: { relationship_changes: edge('remove') } })
    for (let v = 3; v <= 24; v++)
      expect(
        (await c.result(id, { expected_version: v, changes: { observed_state_patch: { endpoints_ready: v } } })).status,
      ).toBe(200)
    const rows = async () =>
      (
        await c.rows<{ version: number }>(
          `select v.version from catalog.revision v join catalog.resource r using (rid) where r.resource_id = $1 order by 1`,
          [id],
        )
      ).map(({ version }) => version)
    const closed = async () =>
      (
        await c.rows(
          `select 1 from catalog.relationship_history h join catalog.resource r on r.rid = h.src
                     where r.resource_id = $1`,
          [id],
        )
      ).length
    const read = async (version: number) => (await c.as('vic').get(`/v1/resources/${id}?at_version=${version}`)).body
    const at = (days: number) => ({
      ...c.deps,
      clock: { now: () => new Date(c.deps.clock.now().getTime() + days * day) },
    })
    const before = await read(23)
    await c.rows(`insert into catalog.inbox (consumer, event_id, received_at) select 'c', gen_random_uuid(), clock_timestamp() - d * interval '1 day'
      from unnest(array[39, 41]) d`)
    await pruneHistory(at(399))
    expect(
      await c.rows(
        `select extract(day from clock_timestamp() - received_at)::int as days from catalog.inbox where consumer = 'c'`,
      ),
    ).toEqual([{ days: 39 }])
    expect([(await rows()).length, await closed()]).toEqual([25, 1])
    await pruneHistory(at(401))
    // The newest snapshot before the cutoff stays, with all later ones.
    expect(await rows()).toEqual([21, 22, 23, 24, 25])
    expect(await closed()).toBe(0)
    expect(await read(23)).toEqual(before)
    expect(await read(20)).toMatchObject({ status: 410, code: 'history_pruned' })
  })

  it('forgets the history of one resource in many statements, none of which deletes more than 5,000 rows', async () => {
    const id = await service()
    await c.rows(
      `insert into catalog.revision (rid, version, at, kind, doc, changed_paths, lifecycle_status, actor)
       select rid, -i, now() - interval '500 days', case i when 0 then 'snapshot' else 'delta' end, '{}', '[]', 'active', 'a'
       from catalog.resource, generate_series(0, 12000) i where resource_id = $1`,
      [id],
    )
    const [one] = await c.rows<{ rid: string }>('select rid from catalog.resource where resource_id = $1', [id])
    const from = String(BigInt(one?.rid ?? 0) - 1n)
    const before = new Date(Date.now() - 450 * 86_400_000).toISOString()
    const left = async () => {
      const after = await pruneRevisions(c.deps.db, before, from)
      return [after, await count('=')]
    }
    const count = async (its: '=' | '<>') =>
      (
        await c.rows<{ n: number }>(`select count(*)::int as n from catalog.revision where rid ${its} $1`, [one?.rid])
      )[0]?.n
    const others = await count('<>')
    // The one of its creation and the snapshot stay.
    expect(await left()).toEqual([from, 7002])
    expect(await left()).toEqual([from, 2002])
    expect(await left()).toEqual([undefined, 2])
    expect(await count('<>')).toBe(others)
  })

  it('keeps late observations too, and can be read as of a time', async () => {
    const id = await service()
    const start = new Date(Date.now() + 3_600_000)
    c.wait(3_700_000)
    const at = (s: number) => new Date(start.getTime() + s * 1000).toISOString()
    for (const [s, status] of [
      [0, 'healthy'],
      [20, 'unhealthy'],
      [10, 'degraded'],
      [30, 'healthy'],
    ] as const)
      await c.observe(id, { observed_at: at(s), status, ttl_s: 15, summary: `at ${s}` })
    const page = (more = '') => health(id, `?history_since=${at(0)}&page_size=3${more}`)
    const first = await page()
    expect(first.history.items.map((item: { summary: string }) => item.summary)).toEqual(['at 30', 'at 20', 'at 10'])
    const second = await page(`&page_token=${first.history.next_page_token}`)
    expect(second.history.items.map((item: { status: string }) => item.status)).toEqual(['healthy'])
    expect((await page(`&page_token=${second.history.prev_page_token}`)).history.items).toEqual(first.history.items)
    const then = async (s: number) => (await health(id, `?at=${at(s)}`)).own
    expect(await then(5)).toMatchObject({ status: 'healthy', reason: 'observed' })
    expect(await then(12)).toMatchObject({ status: 'degraded' })
    expect(await then(25)).toMatchObject({ status: 'unhealthy' })
    expect(await then(44)).toMatchObject({ status: 'healthy' })
    expect(await then(50)).toMatchObject({ status: 'unknown', reason: 'expired' })
    expect((await health(id, `?at=${at(-10)}`)).own).toMatchObject({ reason: 'never_observed' })
    // Documents, lists, peers and graphs of the past agree with it.
    const user = await service(id)
    const past = async (s: number) => {
      const get = async (path: string) => (await c.as('vic').get(`/v1${path}at=${at(s)}`)).body
      const list = await get(`/resources?ids=${id}&sort=resource_id&`)
      const graph = await get(`/graphs/resources?root_id=${id}&depth=0&`)
      const document = await get(`/resources/${id}?`)
      return [document, list.items[0], graph.nodes[0]].map(({ health_status }) => health_status)
    }
    for (const [s, status] of [
      [5, 'healthy'],
      [12, 'degraded'],
      [25, 'unhealthy'],
      [50, 'unknown'],
    ] as const)
      expect(await past(s)).toEqual([status, status, status])
    c.wait(2000)
    const now = c.deps.clock.now().toISOString()
    await c.observe(id, { observed_at: now, status: 'degraded' })
    c.wait(1000)
    const peers = await c.as('vic').get(`/v1/resources/${user}/relationships?at=${now}`)
    expect(peers.body.items[0].peer).toMatchObject({ resource_id: id, health_status: 'degraded' })
    expect((await health(id, '?at=2999-01-01T00:00:00Z')).code).toBe('time_in_future')
    expect((await health(id, `?page_token=${first.history.next_page_token}`)).code).toBe('page_token_mismatch')
  })
})
