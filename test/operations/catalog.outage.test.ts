import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { createCatalogProjection } from '../../apps/operations/catalog/projection.ts'
import { createRequestedIntent } from '../../apps/operations/intents/requested.ts'
import type { CatalogEvent } from '../../apps/shared/contracts/catalog/events.ts'
import { connectNats, consume, ensureStreams, subjectOf } from '../../apps/shared/events/events.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { createDb } from '../../db/client.ts'
import { serverUrl, testDatabase } from '../support/database.ts'
import { type Link, startLink } from '../support/link.ts'
import { until } from '../support/until.ts'
import { type CatalogLog, catalogLog } from './support/catalog.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
let link: Link
let through: ReturnType<typeof createDb>
let direct: ReturnType<typeof createDb>
let catalog: CatalogLog
let nc: Awaited<ReturnType<typeof connectNats>>

beforeAll(async () => {
  database = await testDatabase('operations')
  link = await startLink(database.url)
  through = createDb(link.url, { app: 'test' })
  direct = createDb(database.url, { app: 'test' })
  catalog = await catalogLog()
  nc = await connectNats(serverUrl('NATS_URL'), 'test')
})
afterAll(async () => {
  await nc.close()
  await catalog.close()
  await through.close()
  await direct.close()
  link.stop()
  await database.drop()
})

it('an outage of the database sets no event aside, however often it occurs; a faulty event is set aside', async () => {
  const { log } = createTelemetry('operations')
  const client = createCatalogClient(catalog.url, () => 'token')
  const projection = createCatalogProjection({
    db: through.db,
    catalog: client,
    log,
    createIntent: createRequestedIntent,
  })
  const prefix = `t${randomBytes(4).toString('hex')}`
  await ensureStreams(nc, prefix, ['CATALOG'])
  const errors: Error[] = []
  const consumer = await consume({
    nc,
    prefix,
    stream: 'CATALOG',
    durable: 'operations-catalog',
    max_deliver: 1,
    handle: async (message) => {
      const result = await projection.apply(message as unknown as CatalogEvent)
      if (typeof result !== 'string') throw new Error(`${result.resource_id} is at ${result.have}`)
    },
    park: (message, error) => projection.park(message as unknown as CatalogEvent, error, 1),
    onError: (error) => errors.push(error),
  })
  const publish = (event: object) =>
    nc.jetstream().publish(subjectOf(prefix, 'catalog', 'resource', 'web-1'), JSON.stringify(event))
  const countIn = async (table: string) =>
    (await direct.pool.query(`select count(*)::int as n from operations.${table}`)).rows[0].n as number

  link.cut()
  const event = catalog.put('web-1')
  await publish(event)
  await until(() => errors.length >= 4, { what: 'the fourth try' })
  expect(await countIn('catalog_resources')).toBe(0)
  link.mend()
  await until(async () => (await countIn('catalog_resources')) === 1, { what: 'the event applied' })
  expect(await countIn('dead_letter')).toBe(0)

  await publish({ ...event, event_id: '018f0000-0000-7000-8000-00000000ffff', agg_version: 9 })
  await until(async () => (await countIn('dead_letter')) === 1, { what: 'the event set aside' })
  await consumer.stop()
}, 60_000)
