import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sweepReservations } from '../../apps/catalog/expiry.ts'
import { startImporter } from '../../apps/catalog/imports/worker.ts'
import { pruneOld, pruneRevisions } from '../../db/catalog/resources/commands.ts'
import { until } from '../support/until.ts'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
let other: pg.Client
beforeAll(async () => {
  c = await startCatalog({ env: { CATALOG__STALE__WAIT_MS: '300' } })
  await seedRegion(c, 'eu1', 1)
  await seedRegion(c, 'us1', 1)
  other = new pg.Client({ connectionString: c.config.CATALOG__DATABASE__URL })
  await other.connect()
})
afterAll(async () => {
  await other.end()
  await c.stop()
})

const box = async (over: Record<string, unknown> = {}) =>
  (
    await c
      .as('ada')
      .record({
        type_key: 'infra.generic',
        name: `b-${randomUUID()}`,
        desired_state: { provider: 'p', kind: 'box' },
        ...over,
      })
  ).resource_id as string
const read = (path: string) => c.as('vic').get(path, { once: true })
const now = () => c.deps.clock.now().toISOString()
/** Holds the lock of a resource from outside, so that a command on it stays open. */
const holding = async (id: string, run: () => Promise<void>) => {
  await other.query('begin')
  await other.query(
    `select from catalog.resource_state s join catalog.resource r using (rid) where r.resource_id = $1 for update of s`,
    [id],
  )
  try {
    await run()
  } finally {
    await other.query('rollback')
  }
}
const waiting = () =>
  until(
    async () =>
      (
        await c.rows(
          `select from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'catalog' and datname = current_database()`,
        )
      ).length > 0,
    { what: 'a command that waits' },
  )

describe('the state at a past time', () => {
  it.each([
    ['a resource', (id: string, at: string) => `/v1/resources/${id}?at=${at}`],
    ['a list', (_: string, at: string) => `/v1/resources?type_key=infra.generic&include=state&at=${at}`],
    ['relationships', (id: string, at: string) => `/v1/resources/${id}/relationships?at=${at}`],
    ['capabilities', (id: string, at: string) => `/v1/resources/${id}/capabilities?at=${at}`],
    ['health', (id: string, at: string) => `/v1/resources/${id}/health?at=${at}`],
    ['a graph', (id: string, at: string) => `/v1/graphs/resources?root_id=${id}&at=${at}`],
  ])(
    'is never given while a command that may belong to it is open, and never changes later: %s',
    async (_, path) => {
      const id = await box()
      let sent: ReturnType<typeof c.result> | undefined
      let at = ''
      await holding(id, async () => {
        sent = c.result(
          id,
          { expected_version: 1, changes: { observed_state_patch: { attributes: { seen: 1 } } } },
          { once: true },
        )
        await waiting()
        at = now()
        const told = await read(path(id, at))
        expect({ status: told.status, body: told.body }).toMatchObject({
          status: 503,
          body: { category: 'stale_projection', code: 'projection_lag', retryable: true, watermark: { required: at } },
        })
        // Earlier times are answered at once.
        expect((await read(path(id, new Date(Date.parse(at) - 3_600_000).toISOString()))).status).not.toBe(503)
      })
      expect((await sent)?.status).toBe(200)
      const [first, second] = [await read(path(id, at)), await read(path(id, at))]
      expect(first.status, first.text).toBe(200)
      const rows = ({ body: { as_of, ...body } }: typeof first) => body
      expect(rows(first)).toEqual(rows(second))
    },
    20_000,
  )

  it('is never given while a job imports what may belong to it, and never changes later', async () => {
    const source = { kind: 'test', name: `s-${randomUUID()}` }
    const thing = (external_id: string, over: object = {}) => ({
      external_id,
      type_key: 'infra.service',
      name: `${source.name}-${external_id}`,
      desired_state: { port: 80 },
      ...over,
    })
    const first = await c.as('ada').post('/v1/resources:import', { source, items: [thing('held')] })
    const { resource_id } = first.body.results[0]
    const items = [thing('fresh'), thing('held', { labels: { tier: 'gold' } })]
    const job = await c.as('ada').post('/v1/imports', { source, items })
    const done = async () => (await c.as('ada').get(`/v1/imports/${job.body.job_id}`)).body.ended_at !== null
    let at = ''
    let importer = undefined as ReturnType<typeof startImporter> | undefined
    const list = () => read(`/v1/resources?type_key=infra.service&at=${at}`)
    try {
      await holding(resource_id, async () => {
        importer = startImporter(c.deps)
        await waiting()
        at = now()
        expect(await list()).toMatchObject({
          status: 503,
          body: { code: 'projection_lag', watermark: { required: at } },
        })
      })
      await until(done, { what: 'the end of the import' })
    } finally {
      await importer?.stop()
    }
    const [one, two] = [(await list()).body, (await list()).body]
    expect(one.items).toEqual(two.items)
  })

  it('a change gets its time after its locks, so versions and times have one order', async () => {
    const id = await box()
    const commands: ReturnType<typeof c.result>[] = []
    let opened = ''
    await holding(id, async () => {
      commands.push(c.result(id, { expected_version: 1, changes: { observed_state_patch: { attributes: { n: 1 } } } }))
      await waiting()
      await delay(20)
      opened = now()
    })
    for (const sent of commands) expect((await sent).status).toBe(200)
    const { items } = (await c.as('vic').get(`/v1/resources/${id}/versions`)).body
    expect(Date.parse(items[0].at)).toBeGreaterThanOrEqual(Date.parse(opened))
    expect(Date.parse(items[0].at)).toBeGreaterThan(Date.parse(items[1].at))
  })

  it('gives the same rows forever, whatever is written meanwhile, over two processes', async () => {
    const places = [c.internal_url, (await c.startProcess()).at]
    const ids = await Promise.all(Array.from({ length: 6 }, () => box({ parent_id: 'eu1-a-web' })))
    const path = (at: string) => `/v1/resources?type_key=infra.generic&include=state&page_size=500&at=${at}`
    const facts = (body: { items: object[] }) => JSON.stringify(body.items)
    const told = new Map<string, string>()
    let writing = true
    const write = async (n: number) => {
      for (let i = 0; writing; i++) {
        const id = ids[(n + i) % ids.length] as string
        const { version } = (await c.as('vic').get(`/v1/resources/${id}`)).body
        const changes = { observed_state_patch: { attributes: { n: `${n}-${i}` } } }
        await c.result(id, { expected_version: version, changes }, { at: places[i % 2] as string })
        if (i % 5 === 0) await box({ parent_id: 'eu1-a-web' })
      }
    }
    const writers = [0, 1, 2].map(write)
    for (let i = 0; i < 25; i++) {
      const at = now()
      const reply = await c.as('vic').get(path(at))
      expect(reply.status, reply.text).toBe(200)
      told.set(at, facts(reply.body))
    }
    writing = false
    await Promise.all(writers)
    for (const [at, before] of told) expect(facts((await c.as('vic').get(path(at))).body), at).toBe(before)
    expect(new Set(told.values()).size).toBeGreaterThan(5)
  }, 60_000)

  /** One of a few things that move, change, end and return below two places. */
  const step = fc.record({
    what: fc.constantFrom('change', 'move', 'relate', 'part', 'retire', 'again', 'check'),
    who: fc.nat(3),
    other: fc.nat(3),
  })

  it('is the same in every view after any writes, and after older history was pruned', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 12, maxLength: 18 }), async (steps) => {
        const root = await box()
        const places = [await box({ parent_id: root }), await box({ parent_id: root })] as const
        const names = [0, 1, 2, 3].map((n) => `n${n}-${root}`)
        const things = await Promise.all(names.map((name, n) => box({ name, parent_id: places[n % 2] })))
        const everyone = [root, ...places, ...things]
        const write = async ({ what, who, other }: { what: string; who: number; other: number }, n: number) => {
          const [id, peer] = [things[who] as string, things[other] as string]
          const row = (await c.as('vic').get(`/v1/resources/${id}`)).body
          const edge = (op: string, type_key: string, target_id: string) => ({ op, type_key, target_id })
          const apply = (changes: object) => c.result(id, { expected_version: row.version, changes })
          if (what === 'again' && row.lifecycle_status === 'retired') {
            things[who] = await box({ name: names[who], parent_id: places[other % 2] })
            everyone.push(things[who] as string)
          } else if (what === 'change') await apply({ observed_state_patch: { attributes: { n: `${n}` } } })
          else if (what === 'move' && row.parent_id !== null) {
            const gone = edge('remove', 'contained_in', row.parent_id)
            await apply({ relationship_changes: [gone, edge('add', 'contained_in', places[other % 2] as string)] })
          } else if (what === 'relate') await apply({ relationship_changes: [edge('add', 'depends_on', peer)] })
          else if (what === 'part') await apply({ relationship_changes: [edge('remove', 'depends_on', peer)] })
          else if (what === 'retire') await apply({ lifecycle_status: 'retired' })
          else if (what === 'check') await c.observe(id, { status: other > 1 ? 'degraded' : 'healthy' })
        }
        const views = (at: string, from: string) => [
          `/v1/resources?parent_id=${places[0]}&include=state&at=${at}`,
          `/v1/resources?parent_id=${places[1]}&include_retired=true&sort=resource_id&at=${at}`,
          `/v1/graphs/resources?root_id=${root}&depth=5&at=${at}`,
          `/v1/resources/${root}/difference?from=${from}&to=${at}`,
          ...everyone.flatMap((id) =>
            ['', '/relationships', '/health'].map((view) => `/v1/resources/${id}${view}?at=${at}`),
          ),
        ]
        const told = async (path: string) => {
          const { status, text } = await c.as('vic').get(path)
          return `${status} ${text.replace(/,"as_of":\{[^}]*\}/, '').replace(/"request_id":"[^"]*"/, '')}`
        }
        const tick = () => {
          c.wait(50)
          const at = now()
          c.wait(50)
          return at
        }
        const from = tick()
        const seen: { at: string; answers: [path: string, told: string][] }[] = []
        for (const [n, one] of steps.entries()) {
          await write(one, n)
          const at = tick()
          const answers: [string, string][] = []
          for (const path of views(at, from)) answers.push([path, await told(path)])
          seen.push({ at, answers })
        }
        const middle = seen[Math.floor(seen.length / 2)]?.at as string
        for (const { answers } of seen)
          for (const [path, before] of answers) expect(await told(path), path).toBe(before)
        for (let after: string | undefined = '0'; after !== undefined; )
          after = await pruneRevisions(c.deps.db, middle, after)
        for (const table of ['relationship_history', 'provider_history'] as const)
          await pruneOld(c.deps.db, table, middle)
        for (const { at, answers } of seen)
          for (const [path, before] of answers)
            if (at >= middle && !path.includes('/difference')) expect(await told(path), path).toBe(before)
      }),
      { numRuns: 3 },
    )
  }, 120_000)

  it('is the same in every view: 404 before the resource existed, and no current counts', async () => {
    // Moves the clock of one process, so it comes after the test that has two.
    const before = new Date(Date.parse(now()) - 1000).toISOString()
    const id = await box()
    for (const view of ['', '/relationships', '/capabilities', '/health'])
      expect(await read(`/v1/resources/${id}${view}?at=${before}`), view).toMatchObject({
        status: 404,
        body: { category: 'not_found', code: 'version' },
      })
    const at = now()
    c.wait(1000)
    const health = async () => {
      const { as_of, ...told } = (await read(`/v1/resources/${id}/health?at=${at}`)).body
      return JSON.stringify(told)
    }
    const told = await health()
    await c.observe(id, { status: 'degraded' })
    expect((await read(`/v1/resources/${id}/health`)).body).toMatchObject({ health_revision: 1 })
    expect(await health()).toBe(told)
  })
})

it('an expired reservation ends after its locks, so versions and times keep their order', async () => {
  const desired_state = { hostname: 'vm' }
  const name = `vm-${randomUUID()}`
  const { resource_id: vm } = await c
    .as('ada')
    .record({
      type_key: 'infra.virtual_machine',
      name,
      parent_id: 'eu1-a-web',
      lifecycle_status: 'active',
      desired_state,
    })
  const slots = {
    capability_key: 'compute.slots',
    version: '1.0.0',
    attributes: { cpu_cores: 8 },
    capacity: { total: 2 },
  }
  const offered = { provided_capability_changes: [{ op: 'add', ...slots }] }
  expect((await c.result('eu1-web-01', { expected_version: 1, changes: offered })).status).toBe(200)
  const expires_at = new Date(Date.parse(now()) + 5000).toISOString()
  const properties = { requirement_key: 'slot', capability_key: 'compute.slots', expires_at }
  const claim = { op: 'add', type_key: 'uses_capability', target_id: 'eu1-web-01', properties }
  expect((await c.result(vm, { expected_version: 1, changes: { relationship_changes: [claim] } })).status).toBe(200)
  c.wait(5000)
  let [at, swept]: [string, Promise<void> | undefined] = ['', undefined]
  await holding(vm, async () => {
    swept = sweepReservations(c.deps)
    await waiting()
    await delay(20)
    at = now()
    expect(await read(`/v1/resources/${vm}?at=${at}`)).toMatchObject({ status: 503, body: { code: 'projection_lag' } })
  })
  await swept
  const { items } = (await c.as('vic').get(`/v1/resources/${vm}/versions`)).body
  expect(items).toHaveLength(3)
  expect(Date.parse(items[0].at)).toBeGreaterThanOrEqual(Date.parse(at))
})

it('a retired resource is in its last place at every later time', async () => {
  const top = await box({ parent_id: 'eu1-a-web' })
  const id = await box({ parent_id: top })
  c.wait(1000)
  await c.result(id, { expected_version: 1, changes: { lifecycle_status: 'retired' } })
  c.wait(1000)
  const at = now()
  c.wait(1000)
  await c.result(top, {
    expected_version: 1,
    changes: {
      relationship_changes: [
        { op: 'remove', type_key: 'contained_in', target_id: 'eu1-a-web' },
        { op: 'add', type_key: 'contained_in', target_id: 'us1-a-web' },
      ],
    },
  })
  c.wait(1000)
  const placed = async (query: string) => {
    const { parent_id, scope } = (await c.as('vic').get(`/v1/resources/${id}${query}`)).body
    return [parent_id, scope.segment_id]
  }
  expect(await placed('')).toEqual([top, 'us1-a-web'])
  expect(await placed('?at_version=2')).toEqual([top, 'eu1-a-web'])
  expect(await placed(`?at=${at}`)).toEqual([top, 'eu1-a-web'])
  expect(await placed(`?at=${now()}`)).toEqual([top, 'us1-a-web'])
  const listed = await c.as('vic').get(`/v1/resources?segment_id=eu1-a-web&include_retired=true&at=${at}`)
  expect(listed.body.items.map(({ resource_id }: { resource_id: string }) => resource_id)).toContain(id)
})

describe('a child that its parent takes or releases', () => {
  const change = async (id: string, op: 'add' | 'remove', target_id: string) => {
    const { version } = (await c.as('vic').get(`/v1/resources/${id}`)).body
    const relationship_changes = [{ op, type_key: 'contained_in', direction: 'in', target_id }]
    const reply = await c.result(id, { expected_version: version, changes: { relationship_changes } })
    expect(reply.status, reply.text).toBe(200)
  }

  it('has its own version, tag, event and history', async () => {
    const [parent, child] = [await box(), await box()]
    const first = await c.as('vic').get(`/v1/resources/${child}`)
    const tag = first.headers.get('etag') as string
    c.wait(1000)
    const before = now()
    c.wait(1000)
    await change(parent, 'add', child)
    const moved = await c.as('vic').get(`/v1/resources/${child}`, { headers: { 'if-none-match': tag } })
    expect(moved).toMatchObject({ status: 200, body: { version: 2, parent_id: parent } })
    c.wait(1000)
    const after = now()
    c.wait(1000)
    await change(parent, 'remove', child)
    expect((await c.as('vic').get(`/v1/resources/${child}`)).body).toMatchObject({ version: 3, parent_id: null })
    expect((await c.as('vic').get(`/v1/resources/${child}?at=${after}`)).body).toMatchObject({
      version: 2,
      parent_id: parent,
    })
    expect((await c.as('vic').get(`/v1/resources/${child}?at=${before}`)).body).toMatchObject({
      version: 1,
      parent_id: null,
    })
    const below = async (at: string) =>
      (await c.as('vic').get(`/v1/resources?parent_id=${parent}&at=${at}`)).body.items.map(
        (one: { resource_id: string }) => one.resource_id,
      )
    expect([await below(before), await below(after)]).toEqual([[], [child]])
    const { items } = (await c.internally('GET', `/events?agg_type=resource&agg_id=${child}&after_version=1`)).body
    expect(items).toMatchObject([
      { type: 'resource.updated', version: 2, changed_paths: ['/parent_id'], document: { parent_id: parent } },
      { type: 'resource.updated', version: 3, document: { parent_id: null } },
    ])
    const { items: versions } = (await c.as('vic').get(`/v1/resources/${child}/versions`)).body
    expect(versions.map(({ version }: { version: number }) => version)).toEqual([3, 2, 1])
  })

  it('has one too when a new parent takes it', async () => {
    const child = await box()
    const parent = await box({ relationships: [{ type_key: 'contained_in', direction: 'in', target_id: child }] })
    expect((await c.as('vic').get(`/v1/resources/${child}`)).body).toMatchObject({ version: 2, parent_id: parent })
  })

  it('and its descendants never answer 304 after their scope moved', async () => {
    const [top, host] = [await box({ parent_id: 'eu1-a-web' }), await box()]
    await change(top, 'add', host)
    const below = await box({ parent_id: host })
    const first = await c.as('vic').get(`/v1/resources/${below}`)
    expect(first.body.scope.region_id).toBe('eu1')
    const tag = first.headers.get('etag') as string
    const unchanged = () => c.as('vic').get(`/v1/resources/${below}`, { headers: { 'if-none-match': tag } })
    expect((await unchanged()).status).toBe(304)
    await c.result(top, {
      expected_version: 2,
      changes: {
        relationship_changes: [
          { op: 'remove', type_key: 'contained_in', target_id: 'eu1-a-web' },
          { op: 'add', type_key: 'contained_in', target_id: 'us1-a-web' },
        ],
      },
    })
    expect(await unchanged()).toMatchObject({ status: 200, body: { version: 1, scope: { region_id: 'us1' } } })
    // The version part alone decides a write.
    const patched = await c
      .as('ada')
      .patch(`/v1/resources/${below}`, { labels: { a: 'b' } }, { headers: { 'if-match': tag } })
    expect(patched.status, patched.text).toBe(200)
  })

  it('has a tag that covers exactly its version', async () => {
    await c.as('ada').record(hostOf('watched', 'eu1-a-web'))
    await c.observe('watched')
    const reply = await c.as('vic').get('/v1/resources/watched?include=health')
    expect([reply.status, reply.headers.get('etag')]).toEqual([200, null])
  })
})

it('a time before the retained days is 410 for one resource too, although its last version from then is still there', async () => {
  const id = await box()
  c.wait(1000)
  const at = now()
  const views = [`/v1/resources/${id}?at=${at}`, `/v1/resources?type_key=infra.generic&at=${at}`]
  c.wait(450 * 86_400_000)
  for (const view of views)
    expect(await c.as('vic').get(view), view).toMatchObject({ status: 410, body: { code: 'history_pruned' } })
  const { status } = await c.as('vic').get(`/v1/resources/${id}?at_version=1`)
  expect(status).toBe(200)
})

it('a version from before the retained days is in the place that it had when they began', async () => {
  const rack = await box({ parent_id: 'eu1-a-web' })
  const id = await box({ parent_id: rack })
  const DAY_MS = 86_400_000
  c.wait(50 * DAY_MS)
  const contained = (op: string, target_id: string) => ({ op, type_key: 'contained_in', target_id })
  const moves = [contained('remove', 'eu1-a-web'), contained('add', 'us1-a-web')]
  await c.result(rack, { expected_version: 1, changes: { relationship_changes: moves } })
  c.wait(450 * DAY_MS)
  const kept_from = new Date(c.deps.clock.now().getTime() - c.deps.config.history_d * DAY_MS).toISOString()
  await pruneOld(c.deps.db, 'relationship_history', kept_from)
  const { version, parent_id, scope } = (await c.as('vic').get(`/v1/resources/${id}?at_version=1`)).body
  expect([version, parent_id, scope.segment_id]).toEqual([1, rack, 'us1-a-web'])
})
