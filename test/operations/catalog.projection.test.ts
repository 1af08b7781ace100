import { randomBytes } from 'node:crypto'
import { sql } from 'drizzle-orm'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CatalogUnavailable, createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { requireFresh, startCatalogConsumer } from '../../apps/operations/catalog/consumer.ts'
import { type CatalogProjection, createCatalogProjection } from '../../apps/operations/catalog/projection.ts'
import { createRequestedIntent } from '../../apps/operations/intents/requested.ts'
import { createLags } from '../../apps/operations/metrics.ts'
import type { CatalogEvent, RelationshipEvent } from '../../apps/shared/contracts/catalog/events.ts'
import { connectNats, ensureStreams, subjectOf } from '../../apps/shared/events/events.ts'
import { Away, isOutage } from '../../apps/shared/process/outage.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { createDb } from '../../db/client.ts'
import { loadAncestors, loadResources } from '../../db/operations/plans/planning.ts'
import { endFill, firstHeld, startFill } from '../../db/operations/projection/rows.ts'
import { serverUrl, testDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { type CatalogLog, catalogLog } from './support/catalog.ts'

const { log } = createTelemetry('operations')
let database: Awaited<ReturnType<typeof testDatabase>>
let connection: ReturnType<typeof createDb>
let catalog: CatalogLog
let projection: CatalogProjection

beforeAll(async () => {
  database = await testDatabase('operations')
  connection = createDb(database.url, { app: 'test' })
})
afterAll(async () => {
  await connection.close()
  await database.drop()
})
beforeEach(async () => {
  catalog = await catalogLog()
  projection = createCatalogProjection({
    db: connection.db,
    catalog: createCatalogClient(catalog.url, () => 'token'),
    log,
    createIntent: createRequestedIntent,
  })
  await clear()
})
afterEach(() => catalog.close())

const TABLES = [
  'catalog_resources',
  'catalog_relationships',
  'catalog_health',
  'catalog_types',
  'catalog_relationship_types',
  'projection_version',
  'intents',
]
const clear = () =>
  connection.pool.query(
    `truncate ${[...TABLES, 'inbox', 'projection', 'dead_letter', 'outbox', 'resource_operation_index'].map((t) => `operations.${t}`).join()}`,
  )

/** All rows of the projection, without their times and order of arrival. */
const rows = async () => {
  const all: Record<string, unknown[]> = {}
  for (const table of TABLES) {
    const { rows } = await connection.pool.query(
      `select to_jsonb(t) - '{change_seq,updated_at,created_at,expires_at}'::text[] as row from operations.${table} t order by to_jsonb(t) ->> 'resource_id', to_jsonb(t) ->> 'relationship_id', to_jsonb(t)::text`,
    )
    all[table] = rows.map(({ row }) => row)
  }
  return all
}
const applyAll = async (events: CatalogEvent[]) => {
  for (const event of events) await projection.apply(event)
}
/** A small history: a tree, edges reported from both ends, one removed, health, types, an intent, an ended resource. */
const history = () => {
  catalog.loadTypes()
  catalog.put('eu1', { type_key: 'topology.region' })
  catalog.put('eu1-web-01', { parent_id: 'eu1' })
  catalog.put('eu1-web-02', { parent_id: 'eu1' })
  catalog.sicken('eu1-web-01', 'healthy')
  const kept = catalog.link({ type_key: 'depends_on', from_id: 'eu1-web-01', to_id: 'eu1-web-02' })
  const gone = catalog.link({ type_key: 'depends_on', from_id: 'eu1-web-02', to_id: 'eu1' }, 'eu1')
  catalog.relink(kept, 'updated', 'eu1-web-02')
  catalog.relink(gone, 'removed', 'eu1-web-02')
  catalog.put('eu1-web-01', { desired_state: { release: '2.4.0' } })
  catalog.request('eu1-web-01', { release: '2.5.0' })
  catalog.sicken('eu1-web-01', 'unhealthy')
  catalog.put('eu1-web-02', { lifecycle_status: 'retired' }, [], { type: 'resource.retired' })
}

describe('the projection of the catalog', () => {
  it('holds resources, edges, health, types and intents as the log has them', async () => {
    history()
    await applyAll(catalog.events)
    const all = await rows()
    expect(all.catalog_resources).toMatchObject([
      { resource_id: 'eu1', type_key: 'topology.region' },
      {
        resource_id: 'eu1-web-01',
        version: 3,
        parent_id: 'eu1',
        health_status: 'unhealthy',
        desired_state: { release: '2.4.0' },
      },
      { resource_id: 'eu1-web-02', version: 4, lifecycle_status: 'retired' },
    ])
    expect(all.catalog_relationships).toMatchObject([
      { relationship_id: 'rel_1', open: true, rev: 2, properties: { touched: 1 } },
      { relationship_id: 'rel_2', open: false },
    ])
    expect(all.intents).toMatchObject([
      { kind: 'change', status: 'open', title: 'change eu1-web-01', resource_ids: ['eu1-web-01'] },
    ])
    expect(all.catalog_types).toHaveLength(3)
    expect((await projection.watermark())?.pub_seq).toBeUndefined()
  })

  it('knows the place of a resource, whichever event moved it, and where it ended', async () => {
    const inside = (to_id: string) => ({ type_key: 'contained_in', from_id: 'eu1-web-01', to_id })
    const standing = async () => {
      await clear()
      await applyAll(fc.sample(fc.shuffledSubarray(catalog.events, { minLength: catalog.events.length }), 1)[0] ?? [])
      const [row] = await loadResources(connection.db, ['eu1-web-01'])
      const above = (await loadAncestors(connection.db, ['eu1-web-01'])).get('eu1-web-01') ?? []
      return [row?.parent_id, ...above.map(({ resource_id }) => resource_id)]
    }
    catalog.loadTypes()
    for (const id of ['eu1', 'us1']) catalog.put(id, { type_key: 'topology.region' })
    catalog.put('eu1-web-01', { parent_id: 'eu1' })
    const first = catalog.link(inside('eu1'))
    expect(await standing()).toEqual(['eu1', 'eu1'])
    catalog.relink(first, 'removed', 'eu1')
    expect(await standing()).toEqual([null])
    const second = catalog.link(inside('us1'), 'us1')
    expect(await standing()).toEqual(['us1', 'us1'])
    catalog.relink(second, 'removed', 'us1')
    catalog.put('eu1-web-01', { parent_id: 'us1', lifecycle_status: 'retired' }, [], { type: 'resource.retired' })
    expect(await standing()).toEqual(['us1', 'us1'])
  })

  it('gives the same rows for any order and repetition of the same events, with their parts', async () => {
    history()
    catalog.linkMany('eu1', 'connects_to', [['eu1-web-01', 'eu1-web-02'], ['us1']])
    catalog.relink(catalog.link({ type_key: 'connects_to', from_id: 'eu1', to_id: 'eu1-web-01' }), 'removed', 'eu1')
    await applyAll(catalog.events)
    const expected = await rows()
    const orders = fc.sample(
      fc.tuple(fc.shuffledSubarray(catalog.events, { minLength: catalog.events.length }), fc.subarray(catalog.events)),
      12,
    )
    for (const [order, repeated] of orders) {
      await clear()
      await applyAll([...order, ...repeated])
      expect(await rows()).toEqual(expected)
    }
  })

  it('gives the same rows if the catalog is down and the missing events come later', async () => {
    history()
    await applyAll(catalog.events)
    const expected = await rows()
    await clear()
    catalog.state.away = true
    const types = catalog.events.filter(({ agg_type }) => agg_type === 'type')
    const others = catalog.events.filter(({ agg_type }) => agg_type !== 'type').toReversed()
    const away = new Set<string>()
    const applyWhatCan = async () => {
      for (const event of others)
        await projection.apply(event).catch((error: unknown) => {
          if (!isOutage(error)) throw error
          away.add(event.agg_id)
        })
    }
    await applyWhatCan()
    expect(away).toContain('eu1-web-02')
    for (let turn = 0; turn < others.length; turn++) await applyWhatCan()
    catalog.state.away = false
    await applyAll(types)
    expect(await rows()).toEqual(expected)
  })

  it('classifies an event: applied, a duplicate, or outdated', async () => {
    const first = catalog.put('a')
    const second = catalog.put('a')
    expect(await projection.apply(first)).toBe('applied')
    expect(await projection.apply(first)).toBe('duplicate')
    expect(await projection.apply(second)).toBe('applied')
    expect(await projection.apply({ ...first, event_id: '018f0000-0000-7000-8000-000000000009' })).toBe('older')
  })

  it('applies one event once if many deliver it at the same time', async () => {
    const event = catalog.put('a')
    const results = await Promise.all(Array.from({ length: 12 }, () => projection.apply(event)))
    expect(results.filter((result) => result === 'applied')).toHaveLength(1)
    expect(results.filter((result) => result === 'duplicate')).toHaveLength(11)
  })

  it('fills a gap from the catalog, from its current version', async () => {
    const events = [catalog.put('a'), catalog.put('a'), catalog.put('a'), catalog.put('a')]
    await projection.apply(events[0] as CatalogEvent)
    expect(await projection.apply(events[3] as CatalogEvent)).toBe('applied')
    expect(catalog.state.requests).toEqual(['/internal/v1/events?agg_type=resource&agg_id=a&after_version=1&limit=500'])
    expect((await rows()).catalog_resources).toMatchObject([{ resource_id: 'a', version: 4 }])
  })

  it('creates an intent once, and only if its resource is as new as it was for the catalog', async () => {
    catalog.put('a')
    catalog.put('a', { labels: { environment: 'demo' } })
    const intent = catalog.request('a', { release: '9' })
    catalog.state.away = true
    await expect(projection.apply(intent)).rejects.toThrow(CatalogUnavailable)
    expect((await rows()).intents).toEqual([])
    catalog.state.away = false
    expect(await projection.apply(intent)).toBe('applied')
    expect(await projection.apply(intent)).toBe('duplicate')
    expect((await rows()).intents).toMatchObject([
      {
        intent_id: intent.agg_id,
        labels: { environment: 'demo' },
        requester: { name: 'olga' },
        request: { change: { op: 'update', desired_state_patch: { release: '9' } }, targets: [{ resource_id: 'a' }] },
      },
    ])
  })

  it('moves the versions of operations that changed a resource forward, never back', async () => {
    const operation_id = '018f0000-0000-7000-8000-0000000000aa'
    await connection.db.execute(sql`insert into operations.resource_operation_index (resource_id, operation_id, status, kind, title, version_from)
      values ('a', ${operation_id}, 'running', 'change', 't', 1)`)
    catalog.put('a')
    catalog.put('a', {}, [], { operation_id })
    catalog.put('a', {}, [], { operation_id })
    await applyAll([...catalog.events, ...catalog.events])
    const { rows } = await connection.pool.query(
      'select version_from, version_to from operations.resource_operation_index',
    )
    expect(rows).toEqual([{ version_from: '1', version_to: '3' }])
  })
})

describe('following the log', () => {
  it('sets aside events behind a gap, and skips none while the catalog does not answer', async () => {
    catalog.put('a')
    await projection.catchUp()
    catalog.put('a')
    const behind = catalog.put('a')
    const [hole] = catalog.events.splice(catalog.events.indexOf(behind) - 1, 1)
    catalog.put('b')
    // The log answers, and then stops: events in the hole may still come.
    const away = createCatalogProjection({
      db: connection.db,
      catalog: {
        ...createCatalogClient(catalog.url, () => 'token'),
        eventsAfter: async () => ({ items: [behind], last_pub_seq: '9' }),
        eventsOf: () => Promise.reject(new Away('away')),
      },
      log,
      createIntent: createRequestedIntent,
    })
    const mark = await projection.watermark()
    await expect(away.catchUp()).rejects.toThrow('away')
    expect((await projection.watermark())?.pub_seq).toBe(mark?.pub_seq)
    expect(await firstHeld(connection.db, ['a'])).toBeUndefined()
    // It answers, and has no event for the hole.
    await projection.catchUp()
    expect(await firstHeld(connection.db, ['a', 'b'])).toEqual({ resource_id: 'a', have: 1, need: 3 })
    expect((await rows()).catalog_resources).toMatchObject([{ resource_id: 'a', version: 1 }, { resource_id: 'b' }])
    expect(await projection.apply(hole as CatalogEvent)).toBe('held')
  })

  it('fills an empty projection from a snapshot, page by page, and continues from its watermark', async () => {
    history()
    await applyAll(catalog.events)
    const expected = await rows()
    await clear()
    await projection.catchUp()
    expect((await projection.watermark())?.pub_seq).toBe(String(catalog.events.length))
    const filled = await rows()
    // A snapshot holds the current state: intents come by events, and closed edges are left out.
    expect(filled.catalog_resources).toEqual(expected.catalog_resources)
    expect(filled.catalog_relationships).toEqual(expected.catalog_relationships?.slice(0, 1))
    catalog.put('eu1-web-03', { parent_id: 'eu1' })
    await projection.catchUp()
    expect((await rows()).catalog_resources).toHaveLength(4)
    expect((await projection.watermark())?.pub_seq).toBe(String(catalog.events.length))
  })

  it('knows every edge that opens or ends while it is filled, although only the later end tells it', async () => {
    const ends = { type_key: 'depends_on', from_id: 'a', to_id: 'y' }
    for (const id of ['a', 'b', 'c', 'd', 'y']) catalog.put(id)
    const [gone, moved, early] = [catalog.link(ends), catalog.link({ ...ends, from_id: 'b' }), catalog.link(ends)]
    const client = createCatalogClient(catalog.url, () => 'token')
    let pages = 0
    /** Changes happen after the first page was read; the first fill does not survive the second page. */
    const snapshot = async (after: string | null) => {
      const page = await client.snapshot(after)
      pages += 1
      if (pages === 2) throw new Away('away')
      if (pages !== 3) return page
      catalog.relink(gone, 'removed', 'y')
      catalog.relink(moved, 'updated', 'y')
      catalog.link({ type_key: 'contained_in', from_id: 'a', to_id: 'x' }, 'x')
      catalog.linkMany('z', 'depends_on', [['b', 'c'], ['a']], 'in')
      return page
    }
    const filling = createCatalogProjection({
      db: connection.db,
      catalog: { ...client, snapshot },
      log,
      createIntent: createRequestedIntent,
    })
    await expect(filling.catchUp()).rejects.toThrow('away')
    catalog.relink(early, 'removed', 'a')
    await filling.catchUp()
    const open = async () =>
      (await rows()).catalog_relationships?.filter((row) => (row as { open: boolean }).open) as unknown[]
    const filled = await open()
    expect((await loadResources(connection.db, ['a'])).map(({ parent_id }) => parent_id)).toEqual(['x'])
    await clear()
    await applyAll(catalog.events)
    expect(filled).toEqual(await open())
    expect(filled).toHaveLength(5)
  })

  it('gives the same rows as one event after another, whatever NATS has delivered before', async () => {
    history()
    catalog.linkMany('eu1', 'connects_to', [['eu1-web-01', 'eu1-web-02'], ['us1']])
    for (const name of ['a', 'b', 'a', 'c', 'a']) {
      catalog.put(name, { parent_id: 'eu1', labels: { at: String(catalog.events.length) } })
      catalog.sicken(name, catalog.events.length % 4 ? 'healthy' : 'degraded')
    }
    catalog.relink(catalog.link({ type_key: 'connects_to', from_id: 'a', to_id: 'b' }), 'removed', 'b')
    await applyAll(catalog.events)
    const expected = await rows()
    for (const before of fc.sample(fc.subarray(catalog.events), 8)) {
      await clear()
      await startFill(connection.db, '0')
      await endFill(connection.db)
      await applyAll(before)
      await projection.catchUp()
      expect(await rows()).toEqual(expected)
    }
  })

  it('handles a flood of changes in batches: known resources stay current during an import', async () => {
    await projection.catchUp()
    const of = (count: number) => Array.from({ length: count }, (_, n) => catalog.put(`host-${n}`))
    const since = async (work: () => Promise<unknown>) => {
      const started = performance.now()
      await work()
      return performance.now() - started
    }
    const single = of(200)
    const each_ms = (await since(() => applyAll(single))) / 200
    of(2000)
    const together_ms = (await since(() => projection.catchUp())) / 2000
    expect((await projection.watermark())?.pub_seq).toBe('2200')
    expect(each_ms / together_ms).toBeGreaterThan(3)
  })

  it('does not undo events that a snapshot has overtaken', async () => {
    history()
    catalog.linkMany('eu1-web-01', 'connects_to', [['eu1'], ['us1']])
    const [gone] = (catalog.events as (CatalogEvent & { relationship_changes: RelationshipEvent[] })[]).flatMap(
      ({ type, relationship_changes }) => (type === 'resource.relationships' ? relationship_changes : []),
    )
    catalog.relink(gone as RelationshipEvent, 'removed', 'eu1-web-01')
    await projection.catchUp()
    const expected = await rows()
    const told = new Set(['resource', 'relationships', 'health'])
    await applyAll(catalog.events.filter(({ agg_type }) => told.has(agg_type)))
    expect((await rows()).catalog_resources).toEqual(expected.catalog_resources)
    expect((await rows()).catalog_relationships).toEqual(expected.catalog_relationships)
  })

  it('sets aside events that cannot be applied, holds their aggregates, and reads on', async () => {
    await projection.catchUp()
    const poison = { ...catalog.put('a'), document: undefined, type: 'resource.exploded' }
    catalog.events[0] = poison as unknown as CatalogEvent
    catalog.put('b')
    await projection.catchUp()
    const { rows: dead } = await connection.pool.query('select event_id, error from operations.dead_letter')
    expect(dead).toEqual([{ event_id: poison.event_id, error: 'unknown event type resource.exploded' }])
    expect((await rows()).catalog_resources).toMatchObject([{ resource_id: 'b' }])
    expect(await projection.apply(catalog.put('a'))).toBe('held')
    expect((await projection.watermark())?.pub_seq).toBe('3')
  })

  it('waits for a position in the log, and answers 503 projection_lag if it does not arrive', async () => {
    catalog.put('a')
    expect(await requireFresh(projection, { min_watermark: '1', max_lag_ms: 60_000 })).toBe('1')
    await expect(
      requireFresh(projection, { min_watermark: '9', max_lag_ms: 60_000, wait_ms: 200 }),
    ).rejects.toMatchObject({
      category: 'stale_catalog_projection',
      code: 'projection_lag',
      status: 503,
      options: { extra: { watermark: { observed: '1', required: '9' } } },
    })
    catalog.state.away = true
    await expect(requireFresh(projection, { max_lag_ms: 0, wait_ms: 200 })).rejects.toMatchObject({
      code: 'projection_lag',
    })
  })

  it('lags by the age of the oldest unapplied event, not by the time since the last look', async () => {
    const telemetry = createTelemetry('operations')
    const lags = createLags(projection, telemetry)
    expect(await lags()).toEqual({})
    await projection.catchUp()
    const long_ago = new Date(Date.now() - 3_600_000).toISOString()
    await connection.pool.query('update operations.projection set at = $1', [long_ago])
    expect(await lags()).toEqual({ catalog_projection_s: 0 })
    catalog.put('a').occurred_at = new Date(Date.now() - 60_000).toISOString()
    catalog.put('b')
    expect((await lags()).catalog_projection_s).toBeCloseTo(60, -1)
    expect(await telemetry.metrics.metrics()).toMatch(
      /signalbox_projection_lag_seconds\{consumer="catalog",[^}]*\} 6\d/,
    )
    await projection.catchUp()
    expect(await lags()).toEqual({ catalog_projection_s: 0 })
    // The log may have continued unseen since.
    catalog.state.away = true
    await connection.pool.query('update operations.projection set at = $1', [long_ago])
    expect((await lags()).catalog_projection_s).toBeGreaterThanOrEqual(3600)
  })

  it('follows NATS at once, and the log for messages that NATS lost', async () => {
    const prefix = `t${randomBytes(4).toString('hex')}`
    const nc = await connectNats(serverUrl('NATS_URL'), 'test')
    const jsm = await ensureStreams(nc, prefix, ['CATALOG'])
    const applied: string[] = []
    const watched: CatalogProjection = {
      ...projection,
      apply: (event) => {
        applied.push(event.agg_id)
        return projection.apply(event)
      },
    }
    const tell = (event: CatalogEvent) =>
      nc.jetstream().publish(subjectOf(prefix, 'catalog', 'resource', event.agg_id), JSON.stringify(event))
    const consumer = startCatalogConsumer({ projection: watched, log, prefix, watch_ms: 600_000 })
    try {
      await until(() => consumer.isReady())
      await consumer.subscribe(nc)
      const lost = catalog.put('a')
      const heard = catalog.put('b')
      await tell(heard)
      await until(async () => (await rows()).catalog_resources?.length === 1, { what: 'b' })
      expect((await projection.watermark())?.pub_seq).toBe('0')
      await projection.catchUp()
      expect((await rows()).catalog_resources).toMatchObject([{ resource_id: lost.agg_id }, { resource_id: 'b' }])
      expect((await projection.watermark())?.pub_seq).toBe('2')
      // An event that the log has delivered is not applied again when NATS delivers it at last.
      await tell(lost)
      await tell(catalog.put('c'))
      await until(() => applied.includes('c'), { what: 'c' })
      expect(applied).toEqual(['b', 'c'])
    } finally {
      await consumer.stop()
      await jsm.streams.delete(`${prefix}CATALOG`)
      await nc.close()
    }
  })
})
