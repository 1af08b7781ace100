import { randomBytes, randomUUID } from 'node:crypto'
import type { NatsConnection } from 'nats'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { relationshipId } from '../../apps/catalog/read/documents.ts'
import { createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { createCatalogProjection } from '../../apps/operations/catalog/projection.ts'
import { createRequestedIntent } from '../../apps/operations/intents/requested.ts'
import { createPublisher } from '../../apps/relay/events/publisher.ts'
import type { CatalogEvent } from '../../apps/shared/contracts/catalog/events.ts'
import { connectNats, consume, ensureStreams, streamName } from '../../apps/shared/events/events.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { createDb } from '../../db/client.ts'
import { addMany } from '../catalog/support/many.ts'
import { type Catalog, seedRegion, startCatalog } from '../catalog/support/platform.ts'
import { serverUrl, testDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

/** The catalog, the relay's publisher and the projection of operations, connected only by NATS. */
const { log } = createTelemetry('test', { level: 'silent' })
const prefix = `t${randomBytes(4).toString('hex')}`
const MEMBERS = 3000
let c: Catalog & { stop: () => Promise<void> }
let database: Awaited<ReturnType<typeof testDatabase>>
let connection: ReturnType<typeof createDb>
let nats: NatsConnection
let consumer: { stop: () => Promise<void> }
const asked: string[] = []

beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 1)
  database = await testDatabase('operations')
  connection = createDb(database.url, { app: 'test', statement_timeout_ms: 30_000 })
  nats = await connectNats(serverUrl('NATS_URL'), 'test')
  await ensureStreams(nats, prefix, ['CATALOG'])
  const client = createCatalogClient(c.internal_url, c.services.signer('operations'))
  const projection = createCatalogProjection({
    db: connection.db,
    catalog: {
      ...client,
      eventsOf: (...given) => {
        asked.push(given.join(' '))
        return client.eventsOf(...given)
      },
    },
    log,
    createIntent: createRequestedIntent,
  })
  consumer = await consume({
    nc: nats,
    prefix,
    stream: 'CATALOG',
    durable: 'follower',
    handle: async (event) => {
      const result = await projection.apply(event as unknown as CatalogEvent)
      if (typeof result !== 'string') throw new Error(`${result.resource_id} is at ${result.have}`)
    },
    park: async (_, error) => expect.unreachable(String(error)),
    onError: () => {},
  })
})
afterAll(async () => {
  await consumer.stop()
  await (await nats.jetstreamManager()).streams.delete(streamName(prefix, 'CATALOG'))
  await nats.close()
  await connection.close()
  await database.drop()
  await c.stop()
})

const retire = async (id: string) => {
  const reply = await c.result(id, { expected_version: 1, changes: { lifecycle_status: 'retired' } })
  expect(reply.status, reply.text).toBe(200)
}
const pool = async () =>
  (await c.as('ada').record({ type_key: 'infra.pool', name: `p-${randomUUID()}`, parent_id: 'eu1-a-web' }))
    .resource_id as string

/** Rewrites the log of the last change as it was written before events had a size limit: one row, however large. */
const asOneRow = async (resource_id: string) => {
  const parts = await c.rows<{ payload: { relationship_changes: unknown[] } }>(
    `delete from catalog.outbox where agg_type = 'relationships' and payload->>'resource_id' = $1 returning id, payload`,
    [resource_id],
  )
  const [main] = await c.rows<{ bytes: number }>(
    `update catalog.outbox set payload = payload - 'relationship_parts' || jsonb_build_object('relationship_changes', $2::jsonb)
     where agg_type = 'resource' and agg_id = $1 and agg_version = 2 returning octet_length(payload::text)::int as bytes`,
    [resource_id, JSON.stringify(parts.flatMap(({ payload }) => payload.relationship_changes))],
  )
  return main?.bytes
}

const edges = (db: 'catalog' | 'operations'): Promise<string[]> => {
  const text =
    db === 'catalog'
      ? `select e.rel_no as id, e.rev, a.resource_id || ' ' || t.type_key || ' ' || b.resource_id as edge from catalog.relationship e
         join catalog.resource a on a.rid = e.src join catalog.resource b on b.rid = e.dst
         join catalog.relationship_type t on t.id = e.reltype_id`
      : `select relationship_id as id, rev, from_id || ' ' || type_key || ' ' || to_id as edge from operations.catalog_relationships where open`
  const rows = (db === 'catalog' ? c.deps.pool : connection.pool).query<{ id: string; rev: number; edge: string }>(text)
  return rows.then(({ rows }) =>
    rows.map(({ id, rev, edge }) => `${id.startsWith('rel_') ? id : relationshipId(id)} ${Number(rev)} ${edge}`).sort(),
  )
}
const resources = async (db: 'catalog' | 'operations') => {
  const text =
    db === 'catalog'
      ? `select r.resource_id || ' ' || s.version || ' ' || s.lifecycle_status || ' ' || coalesce(p.resource_id, '-') as line
         from catalog.resource r join catalog.resource_state s using (rid) left join catalog.resource p on p.rid = r.parent_rid`
      : `select resource_id || ' ' || version || ' ' || lifecycle_status || ' ' || coalesce(parent_id, '-') as line from operations.catalog_resources`
  const { rows } = await (db === 'catalog' ? c.deps.pool : connection.pool).query<{ line: string }>(text)
  return rows.map(({ line }) => line).sort()
}

it('a follower of NATS alone arrives at the rows of the catalog, however large a change was', async () => {
  const like = (await c.as('ada').record({ type_key: 'infra.service', name: 'like', desired_state: { tier: 1 } }))
    .resource_id
  const [first, second] = [await pool(), await pool()]
  await addMany(c, like, 'member', MEMBERS, (i) => ({ type_key: 'member_of', to: i % 2 ? first : second }))
  // A hundred relationships with properties that would fill an event by themselves.
  const text = 'x'.repeat(7000)
  await c.rows(
    `update catalog.relationship_type set document = jsonb_set(document, '{properties_schema}', '{"type":"object"}') where type_key = 'backs_up'`,
  )
  await c.rows(`update catalog.pack set load_no = load_no + 1 where pack = 'core'`)
  await c.deps.registry.reload()
  const wide = await c
    .as('ada')
    .record({
      type_key: 'infra.service',
      name: 'wide',
      relationships: Array.from({ length: 64 }, (_, i) => ({
        type_key: 'backs_up',
        target_id: `member-${i}`,
        properties: { text },
      })),
    })
  await retire(first)
  await retire(second)
  expect(await asOneRow(second)).toBeGreaterThan(200_000)
  await c.rows(
    `update catalog.outbox set payload = payload || jsonb_build_object('padding', repeat('x', 1100000))
     where agg_type = 'resource' and agg_id = $1 and agg_version = 2`,
    [second],
  )
  const [size] = await c.rows<{ most: number; wide: number }>(
    `select max(octet_length(payload::text)) filter (where payload->>'resource_id' <> $1)::int as most,
       count(*) filter (where agg_type = 'relationships' and payload->>'resource_id' = $2)::int as wide from catalog.outbox`,
    [second, wide.resource_id],
  )
  expect(size?.most).toBeLessThanOrEqual(262_144)
  expect(size?.wide).toBeGreaterThan(2)

  while (await c.sequence());
  const publisher = createPublisher({
    pool: c.deps.pool,
    schema: 'catalog',
    prefix,
    nats: () => nats,
    log,
    published: () => true,
  })
  while (await publisher.turn());
  expect(await c.rows('select type, parked from catalog.outbox where published_at is null')).toEqual([])
  await until(async () => (await resources('operations')).length === (await resources('catalog')).length, {
    what: 'all resources by NATS',
    timeout_ms: 120_000,
  })
  await until(async () => (await edges('operations')).length === (await edges('catalog')).length, {
    what: 'all relationships by NATS',
    timeout_ms: 60_000,
  })
  expect(await edges('operations')).toEqual(await edges('catalog'))
  expect(await resources('operations')).toEqual(await resources('catalog'))
  // Only the one that NATS could not carry was fetched, by the name in its event.
  expect(new Set(asked)).toEqual(new Set([`resource ${second} 1`]))
}, 240_000)
