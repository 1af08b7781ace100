import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startImporter } from '../../apps/catalog/imports/worker.ts'
import { prune } from '../../apps/catalog/jobs.ts'
import { LOCKS } from '../../db/locks.ts'
import { until } from '../support/until.ts'
import { type Catalog, seedRegion, startCatalog } from './support/platform.ts'

/** How often a wait for a lock is looked for: shorter than one that counts. */
const LOOK_MS = 5

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 0)
})
afterAll(() => c.stop())

const source = () => ({ kind: 'test', name: `s-${randomUUID()}` })
/** Services in a chain, each depending on the next: most targets come later. */
const chain = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, i) => ({
    external_id: `${prefix}/${i}`,
    type_key: 'infra.service',
    name: `${prefix}-${i}`,
    desired_state: { port: 80 },
    ...(i + 1 < count && { relationships: [{ type_key: 'depends_on', target_external_id: `${prefix}/${i + 1}` }] }),
  }))
const start = async (items: object[], key = randomUUID()) => {
  const reply = await c.as('ada').post('/v1/imports', { source: source(), items }, { key })
  expect(reply).toMatchObject({ status: 202, body: { status: 'queued', total: items.length, done: 0 } })
  expect(reply.headers.get('location')).toBe(`/v1/imports/${reply.body.job_id}`)
  return reply.body.job_id as string
}
const read = async (job_id: string) => (await c.as('ada').get(`/v1/imports/${job_id}`)).body
const ended = (job_id: string) =>
  until(async () => (await read(job_id)).ended_at !== null, { what: 'the end of the import' })
/** How often each of these was created and changed, and how many edges exist. */
const made = async (prefix: string) => {
  const [row] = await c.rows<{ resources: number; versions: number; created: number; edges: number }>(
    `select count(*)::int as resources, coalesce(sum(s.version), 0)::int as versions,
            (select count(*)::int from catalog.outbox where type = 'resource.created'
               and agg_id in (select resource_id from catalog.resource where name like $1 || '-%')) as created,
            (select count(*)::int from catalog.relationship e join catalog.resource a on a.rid = e.src
               where a.name like $1 || '-%') as edges
     from catalog.resource r join catalog.resource_state s using (rid) where r.name like $1 || '-%'`,
    [prefix],
  )
  return row
}

describe('an import as a job', () => {
  it('is not for machines, whose keys may permit less than their accounts; they import synchronously', async () => {
    const body = { source: source(), items: chain(`m${randomUUID().slice(0, 8)}`, 1) }
    expect(await c.as('plane').post('/v1/imports', body)).toMatchObject({
      status: 403,
      body: { code: 'person_required', hint: expect.stringContaining('POST /v1/resources:import') },
    })
    expect(await c.as('plane').post('/v1/resources:import', body)).toMatchObject({ status: 200 })
  })

  it('reports its progress, imports every item once, and finds later items in it', async () => {
    const prefix = `j${randomUUID().slice(0, 8)}`
    const job_id = await start(chain(prefix, 130))
    const importer = startImporter(c.deps)
    await ended(job_id).finally(() => importer.stop())
    expect(await read(job_id)).toMatchObject({ status: 'done', done: 130, counts: { created: 130, refused: 0 } })
    expect(await made(prefix)).toMatchObject({ resources: 130, created: 130, edges: 129 })
    const first = await c.as('ada').get(`/v1/imports/${job_id}/results`)
    expect(first.body.items.map(({ index }: { index: number }) => index)).toEqual([...Array(130).keys()])
    expect(first.body.items.every(({ problem }: { problem?: object }) => problem === undefined)).toBe(true)
    for (const path of ['', '/results'])
      expect(await c.as('olga').get(`/v1/imports/${job_id}${path}`)).not.toMatchObject({ status: 200 })
  })

  it('refuses items of wrong form at once, and those that contradict one another, and imports the others', async () => {
    const prefix = `w${randomUUID().slice(0, 8)}`
    const [good, bad, twin] = chain(prefix, 3).map(({ relationships: _, ...item }) => item)
    const items = [{ ...bad, name: 5 }, good, twin, { ...twin, labels: { tier: 'gold' } }]
    const reply = await c.as('ada').post('/v1/imports', { source: source(), items })
    expect(reply).toMatchObject({ status: 202, body: { total: 4, done: 3, counts: { refused: 3 } } })
    expect(await read(reply.body.job_id)).toEqual(reply.body)
    const importer = startImporter(c.deps)
    await ended(reply.body.job_id).finally(() => importer.stop())
    const { body } = await c.as('ada').get(`/v1/imports/${reply.body.job_id}/results`)
    expect(body.items).toMatchObject([
      { index: 0, outcome: 'refused', problem: { violations: [{ pointer: '/name' }] } },
      { index: 1, outcome: 'created' },
      { index: 2, outcome: 'refused', problem: { violations: [{ pointer: '/external_id' }] } },
      { index: 3, outcome: 'refused', problem: { violations: [{ pointer: '/external_id' }] } },
    ])
    expect(await made(prefix)).toMatchObject({ resources: 1 })
  })

  it('leaves an audit row of each item that policy refuses', async () => {
    const prefix = `a${randomUUID().slice(0, 8)}`
    const [inside, outside] = chain(prefix, 2).map(({ relationships: _, ...item }) => item)
    const items = [
      { ...inside, parent_id: 'eu1-a-web' },
      // Without a place only those may write whose grants name none.
      outside,
    ]
    c.people.rover.grants = [{ role: 'admin', scope: { regionId: 'eu1' } }]
    const from = source()
    const { body } = await c.as('rover').post('/v1/imports', { source: from, items })
    const results = async () => (await c.as('rover').get(`/v1/imports/${body.job_id}/results`)).body.items
    const importer = startImporter(c.deps)
    await until(async () => (await results()).length === 2, { what: 'both results' }).finally(() => importer.stop())
    expect(await results()).toMatchObject([{ outcome: 'created' }, { outcome: 'refused', problem: { status: 403 } }])
    const denied = await c.rows(
      `select action, object, outcome, reason from catalog.audit where object like $1 order by object`,
      [`import:${from.name}/%`],
    )
    expect(denied).toEqual([
      {
        action: 'POST /v1/imports',
        object: `import:${from.name}/${outside?.external_id}`,
        outcome: 'denied',
        reason: 'out_of_scope',
      },
    ])
  })

  it('continues after its process was killed: nothing twice, nothing lost', async () => {
    const prefix = `k${randomUUID().slice(0, 8)}`
    const doomed = await c.startProcess('imports.chunk')
    const job_id = await start(chain(prefix, 80))
    await doomed.exited
    expect(await made(prefix)).toMatchObject({ resources: 0, created: 0 })
    expect(await read(job_id)).toMatchObject({ status: 'queued', done: 0 })
    const importer = startImporter(c.deps)
    await ended(job_id).finally(() => importer.stop())
    expect(await read(job_id)).toMatchObject({ status: 'done', done: 80, counts: { created: 80 } })
    expect(await made(prefix)).toMatchObject({ resources: 80, created: 80, edges: 79 })
  }, 120_000)

  it('lets another move wait for at most 100 ms', async () => {
    const prefix = `m${randomUUID().slice(0, 8)}`
    const resource_id = `${prefix}-moved`
    const [web, next] = ['eu1-a-web', `${prefix}-next`]
    await c.as('ada').record({ resource_id: next, type_key: 'topology.segment', name: next, parent_id: 'eu1-a-edge' })
    await c.as('ada').record({ resource_id, type_key: 'infra.service', name: resource_id, parent_id: 'eu1-a-web' })
    const job_id = await start(chain(prefix, 600).map((item) => ({ ...item, parent_id: next })))
    const waits: number[] = []
    let over = false
    const watching = (async () => {
      while (!over) {
        const [row] = await c.rows<{ ms: number | null }>(
          `select max(extract(epoch from clock_timestamp() - waitstart) * 1000)::float8 as ms from pg_locks
           where not granted and locktype = 'advisory'`,
        )
        waits.push(row?.ms ?? 0)
        await delay(LOOK_MS)
      }
    })()
    const importer = startImporter(c.deps)
    let moves = 0
    try {
      for (let version = 1; (await read(job_id)).ended_at === null; version++) {
        const [from, to] = version % 2 === 1 ? [web, next] : [next, web]
        const into = (op: string, target_id: string) => ({ op, type_key: 'contained_in', target_id })
        const change = {
          resource_id,
          expected_version: version,
          relationship_changes: [into('remove', from), into('add', to)],
        }
        const reply = await c
          .as('ada')
          .post('/v1/resources:bulk?mode=record_only', { items: [{ op: 'relate', change }] })
        expect(reply.body.results[0], reply.text).toMatchObject({ status: 200 })
        moves += 1
      }
    } finally {
      over = true
      await Promise.all([importer.stop(), watching])
    }
    const waited = waits.filter((ms) => ms > 0).sort((a, b) => a - b)
    expect(moves).toBeGreaterThan(3)
    // Load from other work on the machine is not a wait for the lock, so only the 90th percentile counts.
    expect(waited[Math.floor(waited.length * 0.9)] ?? 0).toBeLessThan(100)
  }, 120_000)

  it('that others keep blocking lets later ones pass, and fails in the end', async () => {
    const stuck = await start(chain(`b${randomUUID().slice(0, 8)}`, 2))
    const free = await start(chain(`f${randomUUID().slice(0, 8)}`, 2))
    const [source] = await c.rows<{ name: string }>(
      `select source ->> 'name' as name from catalog.import_job where job_id = $1`,
      [stuck],
    )
    const client = await c.deps.pool.connect()
    await client.query('begin')
    await client.query(`select pg_advisory_xact_lock(${LOCKS.importSource}, hashtext($1))`, [source?.name])
    const importer = startImporter(c.deps)
    try {
      await ended(free)
      expect(await read(free)).toMatchObject({ status: 'done', done: 2 })
      expect(await read(stuck)).toMatchObject({ status: 'queued', done: 0 })
      await c.rows('update catalog.import_job set failures = 4999 where job_id = $1', [stuck])
      await ended(stuck)
      expect(await read(stuck)).toMatchObject({ status: 'failed', problem: { category: expect.any(String) } })
    } finally {
      await client.query('rollback')
      client.release()
      await importer.stop()
    }
  }, 120_000)

  it('stays canceled, although its last attempt fails at that moment', async () => {
    const job_id = await start(chain(`x${randomUUID().slice(0, 8)}`, 2))
    const [source] = await c.rows<{ name: string }>(
      `update catalog.import_job set failures = 4999 where job_id = $1 returning source ->> 'name' as name`,
      [job_id],
    )
    const client = await c.deps.pool.connect()
    await client.query('begin')
    await client.query(`select pg_advisory_xact_lock(${LOCKS.importSource}, hashtext($1))`, [source?.name])
    const importer = startImporter(c.deps)
    try {
      const waits = () => c.rows(`select from pg_locks where not granted and locktype = 'advisory'`)
      await until(async () => (await waits()).length > 0, { what: 'the chunk that waits' })
      // It waits for the chunk, which fails when its own wait is over.
      const reply = await c.as('ada').post(`/v1/imports/${job_id}/cancel`, {})
      expect(reply).toMatchObject({ status: 200, body: { status: 'cancelled' } })
    } finally {
      await client.query('rollback')
      client.release()
      await importer.stop()
    }
    expect(await read(job_id)).toMatchObject({ status: 'cancelled', done: 0 })
  })

  it('is forgotten with its rows a week after its end, and not before', async () => {
    const [old, recent, open] = [randomUUID(), randomUUID(), randomUUID()].map((name) => `r${name.slice(0, 8)}`)
    const jobs = [
      await start(chain(old ?? '', 2)),
      await start(chain(recent ?? '', 2)),
      await start(chain(open ?? '', 2)),
    ]
    for (const [i, days] of [8, 6].entries())
      await c.rows(
        `update catalog.import_job set status = 'cancelled', ended_at = clock_timestamp() - $2 * interval '1 day' where job_id = $1`,
        [jobs[i], days],
      )
    await prune(c.deps)
    const left = async (table: string) =>
      (
        await c.rows<{ job_id: string }>(`select distinct job_id from catalog.${table} where job_id = any($1)`, [jobs])
      ).map(({ job_id }) => job_id)
    for (const table of ['import_job', 'import_job_item'])
      expect(new Set(await left(table))).toEqual(new Set([jobs[1], jobs[2]]))
    for (const job_id of jobs.slice(1)) await c.as('ada').post(`/v1/imports/${job_id}/cancel`, {})
  })

  it('ends when it is canceled, and uses the current rights of its owner', async () => {
    const [one, two] = [`c${randomUUID().slice(0, 8)}`, `d${randomUUID().slice(0, 8)}`]
    const cancelled = await start(chain(one, 3))
    const reply = await c.as('ada').post(`/v1/imports/${cancelled}/cancel`, {})
    expect(reply).toMatchObject({ status: 200, body: { status: 'cancelled', done: 0 } })
    const job_id = await start(chain(two, 3))
    c.people.ada.roles = ['viewer']
    const importer = startImporter(c.deps)
    const failed = () =>
      c.rows<{ status: string }>(`select status from catalog.import_job where job_id = $1 and ended_at is not null`, [
        job_id,
      ])
    await until(async () => (await failed()).length > 0, { what: 'the end of the import' }).finally(() =>
      importer.stop(),
    )
    c.people.ada.roles = ['admin']
    expect(await read(job_id)).toMatchObject({ status: 'failed', problem: { category: 'policy_denied' } })
    expect((await read(cancelled)).status).toBe('cancelled')
    expect([await made(one), await made(two)]).toMatchObject([{ resources: 0 }, { resources: 0 }])
  })
})
