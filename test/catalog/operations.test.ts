import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startOperationsConsumer } from '../../apps/catalog/operations/consumer.ts'
import { applyOperationMessage, CONSUMER, fetchEvents } from '../../apps/catalog/operations/follow.ts'
import type { Projections, Proof } from '../../apps/shared/contracts/catalog/projections.ts'
import { connectNats, type Envelope, ensureStreams, subjectOf } from '../../apps/shared/events/events.ts'
import { isOutage } from '../../apps/shared/process/outage.ts'
import { createAuthority } from '../support/certificates.ts'
import { serverUrl } from '../support/database.ts'
import { until } from '../support/until.ts'
import { type Catalog, seedRegion, startCatalog } from './support/platform.ts'

/**
 * The operations app's log, as its internal listener serves it: after a position, or of one operation after a version.
 */
const operationsLog = async () => {
  const events: Envelope[] = []
  const state = { away: false, asked: 0 }
  const server = createServer((req, res) => {
    const query = new URL(req.url ?? '', 'http://x').searchParams
    const id = query.get('agg_id')
    if (id !== null) state.asked += 1
    if (state.away) return void res.writeHead(503).end()
    const items = events.filter((event) =>
      id === null
        ? Number(event.pub_seq) > Number(query.get('after'))
        : event.agg_id === id && (event.agg_version ?? 0) > Number(query.get('after_version')),
    )
    res
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ items: items.slice(0, 2), last_pub_seq: events.at(-1)?.pub_seq ?? '0' }))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    events,
    state,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => void server.close(),
    /** Adds one more event of an operation. */
    tell: (agg_id: string, type: string, data: Record<string, unknown>, occurred_at = '2026-01-01T00:00:00Z') => {
      const agg_version = events.filter((event) => event.agg_id === agg_id).length + 1
      const event: Envelope = {
        event_id: randomUUID(),
        type: 'operation.changed',
        schema_version: 1,
        occurred_at,
        agg_type: 'operation',
        agg_id,
        agg_version,
        pub_seq: String(Number(events.at(-1)?.pub_seq ?? 0) + 1),
        events: [{ seq: agg_version, type, at: occurred_at, data }],
      }
      events.push(event)
      return event
    },
  }
}

let operations: Awaited<ReturnType<typeof operationsLog>>
let c: Catalog
beforeAll(async () => {
  operations = await operationsLog()
  c = await startCatalog({ env: { CATALOG__OPERATIONS__URL: operations.url } })
  await seedRegion(c, 'eu1', 3)
})
afterAll(async () => {
  await c?.stop()
  operations.close()
})

const summary = async (resource_id: string) =>
  (await c.as('vic').get(`/v1/resources/${resource_id}/operations-summary`)).body
const apply = async (...events: Envelope[]) => {
  for (const event of events) await applyOperationMessage(c.deps, event)
}
const queued = (operation_id: string, resources: string[], title = 'Roll out') =>
  operations.tell(operation_id, 'operation.queued', { kind: 'change', title, status: 'queued', resources })

describe('operations-summary', () => {
  it('follows the events of the operations app, once and in order', async () => {
    const operation_id = randomUUID()
    const first = queued(operation_id, ['eu1-web-01', 'not-here'])
    const started = operations.tell(operation_id, 'operation.started', { status: 'running' })
    const ended = operations.tell(operation_id, 'operation.succeeded', { status: 'succeeded' })
    expect(await summary('eu1-web-01')).toMatchObject({ counts: {}, last: [] })
    await apply(first, first, started)
    expect(await summary('eu1-web-01')).toMatchObject({
      counts: { running: 1 },
      last: [{ operation_id, title: 'Roll out', status: 'running', ended_at: null }],
    })
    const changes = { observed_state_patch: { release: '9.0.0' } }
    await c.result('eu1-web-01', { operation_id, expected_version: 1, changes })
    await apply(ended, started)
    const times = { started_at: expect.any(String), ended_at: expect.any(String) }
    expect(await summary('eu1-web-01')).toMatchObject({
      counts: { succeeded: 1 },
      last: [{ status: 'succeeded', version_from: 1, version_to: 2, ...times }],
    })
  })

  it('fetches missed events from the operations app, from the version it has', async () => {
    const operation_id = randomUUID()
    const first = queued(operation_id, ['eu1-web-02'])
    for (let i = 0; i < 4; i++) operations.tell(operation_id, 'operation.paused', { status: 'paused' })
    const last = operations.tell(operation_id, 'operation.succeeded', { status: 'succeeded' })
    await apply(first, last)
    expect(await summary('eu1-web-02')).toMatchObject({ counts: { succeeded: 1 } })
  })
})

describe('a NATS that brings no event', () => {
  const index = async () => {
    const { items } = (await c.internally('GET', '/projections')).body as Projections
    return items.find(({ name }) => name === 'operations_index')
  }
  const lag = async (): Promise<number> => (await summary('eu1-web-03')).as_of.lag_ms

  it('hides none: the log is read to its end, and the lag counts from then', async () => {
    const consumer = startOperationsConsumer(c.deps, { watch_ms: 20, pull_ms: 20 })
    const told = async (title: string) => {
      const { agg_id, pub_seq } = queued(randomUUID(), ['eu1-web-03'], title)
      return { operation_id: agg_id, watermark: pub_seq, title }
    }
    const heard = ({ operation_id, watermark, title }: Awaited<ReturnType<typeof told>>) =>
      until(async () => {
        const { last, as_of } = await summary('eu1-web-03')
        return (
          as_of.watermark === watermark &&
          last.some((one: Record<string, unknown>) => one.operation_id === operation_id && one.title === title)
        )
      })
    try {
      await heard(await told('First'))
      expect(await index()).toMatchObject({ state: 'live', pub_seq: String(operations.events.at(-1)?.pub_seq) })
      operations.state.away = true
      const before = await lag()
      await until(async () => (await lag()) > before + 200, { what: 'a lag that grows while operations is away' })
      operations.state.away = false
      await until(async () => (await lag()) < 200, { what: 'an index that is up to date' })
      await c.internally('POST', '/projections/operations_index/pause')
      const second = await told('Second')
      await until(async () => (await lag()) > 300, { what: 'a lag that grows while the index is paused' })
      expect((await index())?.lag_ms).toBeGreaterThan(300)
      expect((await summary('eu1-web-03')).last).not.toContainEqual(expect.objectContaining({ title: 'Second' }))
      const gauge = await c.deps.telemetry.metrics.getSingleMetric('signalbox_projection_lag_seconds')?.get()
      const own = gauge?.values.find(({ labels }) => labels.consumer === 'operations_index')
      expect(own?.value).toBeGreaterThan(0.2)
      await c.internally('POST', '/projections/operations_index/resume')
      await heard(second)
    } finally {
      operations.state.away = false
      await consumer.stop()
    }
  })
})

describe('an operations app that does not answer', () => {
  it('sets no event aside, however often it is needed; once it answers, the gap is filled', async () => {
    const nc = await connectNats(serverUrl('NATS_URL'), 'test')
    const jsm = await ensureStreams(nc, c.deps.nats.prefix, ['OPERATIONS'])
    const operation_id = randomUUID()
    queued(operation_id, ['eu1-web-01'])
    const started = operations.tell(operation_id, 'operation.paused', { status: 'paused' })
    operations.state.away = true
    operations.state.asked = 0
    const consumer = startOperationsConsumer(c.deps, { watch_ms: 20, pull_ms: 60_000 })
    try {
      const subject = subjectOf(c.deps.nats.prefix, 'operations', 'operation', operation_id)
      await nc.jetstream().publish(subject, JSON.stringify(started))
      // One more than the number of tries that may count against an event.
      await until(() => operations.state.asked > 5, { what: 'the sixth try' })
      operations.state.away = false
      await until(async () => (await summary('eu1-web-01')).counts.paused === 1, { timeout_ms: 30_000 })
      const letters = await c.deps.pool.query('select 1 from catalog.dead_letter where agg_id = $1', [operation_id])
      expect(letters.rowCount).toBe(0)
    } finally {
      operations.state.away = false
      await consumer.stop()
      await jsm.streams.delete(`${c.deps.nats.prefix}OPERATIONS`)
      await nc.close()
    }
  }, 120_000)
})

it('a certificate of operations that is not accepted is an outage, and no fault of an event', async () => {
  const server = createTlsServer(createAuthority().issue('operations', { expired: true })).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const operations_url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const asked = fetchEvents({ ...c.deps, config: { operations_url } }, { after: '0' })
  expect(isOutage(await asked.catch((error: unknown) => error))).toBe(true)
  server.close()
})

describe('the index of operations', () => {
  const index = async () => {
    const { items } = (await c.internally('GET', '/projections')).body as Projections
    return items.find(({ name }) => name === 'operations_index')
  }
  const door = (verb: string) => c.internally('POST', `/projections/operations_index/${verb}`)
  const proven = async (kind: 'verify' | 'rebuild'): Promise<Proof> => {
    expect((await door(kind)).status).toBe(202)
    return until(async () => {
      const said = await index()
      return said?.running === null && said.proof?.kind === kind ? said.proof : undefined
    })
  }

  it('follows NATS; while it is paused, events wait in the stream', async () => {
    const nc = await connectNats(serverUrl('NATS_URL'), 'test')
    const jsm = await ensureStreams(nc, c.deps.nats.prefix, ['OPERATIONS'])
    const publish = async () => {
      const event = queued(randomUUID(), ['eu1-web-01'])
      const subject = subjectOf(c.deps.nats.prefix, 'operations', 'operation', String(event.agg_id))
      await nc.jetstream().publish(subject, JSON.stringify(event))
    }
    const heard = (count: number) =>
      until(async () => ((await summary('eu1-web-01')).counts.queued ?? 0) === count, { what: `${count} operations` })
    const consumer = startOperationsConsumer(c.deps, { watch_ms: 20, pull_ms: 60_000 })
    const waiting = async () => {
      const { num_pending, num_waiting } = await jsm.consumers.info(`${c.deps.nats.prefix}OPERATIONS`, CONSUMER)
      return { num_pending, num_waiting }
    }
    try {
      await publish()
      await heard(1)
      await door('pause')
      await until(async () => (await waiting()).num_waiting === 0, { what: 'the end of the subscription' })
      await publish()
      await until(async () => (await waiting()).num_pending === 1, { what: 'a message that waits' })
      expect(await index()).toMatchObject({ state: 'paused' })
      await heard(1)
      await door('resume')
      await heard(2)
      expect(await index()).toMatchObject({ state: 'live' })
    } finally {
      await consumer.stop()
      await jsm.streams.delete(`${c.deps.nats.prefix}OPERATIONS`)
      await nc.close()
    }
  })

  it('equals a fold of the operations log; a difference is found and repaired by a rebuild', async () => {
    expect(await proven('verify')).toMatchObject({ result: 'equal', differ: 0, skipped: 0, compared: 7 })
    const [one] = operations.events
    await c.rows(`update catalog.rm_resource_operation set status = 'failed' where operation_id = '${one?.agg_id}'`)
    const lost = randomUUID()
    queued(lost, ['eu1-web-02'], 'Nobody heard')
    const wrong = { result: 'different', differ: 2, different: [String(one?.agg_id), lost].sort(), compared: 8 }
    expect(await proven('verify')).toMatchObject(wrong)
    expect(await summary('eu1-web-01')).toMatchObject({ counts: { failed: 1 } })
    expect(await proven('rebuild')).toMatchObject(wrong)
    expect(await summary('eu1-web-01')).toMatchObject({ counts: { succeeded: 1 } })
    expect((await summary('eu1-web-02')).last).toContainEqual(expect.objectContaining({ operation_id: lost }))
    expect(await proven('verify')).toMatchObject({ result: 'equal', differ: 0 })
    // Later events continue where the log ends.
    await apply(operations.tell(lost, 'operation.cancelled', { status: 'cancelled' }))
    expect((await summary('eu1-web-02')).last).toContainEqual(
      expect.objectContaining({ operation_id: lost, status: 'cancelled' }),
    )
  })

  it('ignores operations whose beginning the log no longer has, and unfinished ones', async () => {
    operations.events.splice(
      operations.events.findIndex(({ agg_version }) => agg_version === 1),
      1,
    )
    operations.tell(randomUUID(), 'operation.queued', { resources: ['eu1-web-01'] }, new Date().toISOString())
    expect(await proven('rebuild')).toMatchObject({ result: 'equal', skipped: 1 })
  })

  it('reports that a proof failed if the log cannot be read', async () => {
    operations.state.away = true
    expect(await proven('verify')).toMatchObject({ result: 'failed', compared: 0 })
    operations.state.away = false
  })
})

describe('CATALOG__PROJECTOR__ENABLED=false', () => {
  it('leaves the index to other processes', async () => {
    const off = await startCatalog({ env: { CATALOG__PROJECTOR__ENABLED: 'false' } })
    try {
      const { at } = await off.startProcess()
      const { body } = await off.internally('GET', '/projections', undefined, { at })
      expect(body.items).toMatchObject([{ name: 'graph' }, { name: 'operations_index', state: 'off' }])
      const connected = async () =>
        ((await (await fetch(`${at}/health/ready`)).json()) as { checks: Record<string, { ok: boolean }> }).checks.nats
          ?.ok
      await until(connected, { what: 'a connection to NATS' })
      const nc = await connectNats(serverUrl('NATS_URL'), 'test')
      const jsm = await nc.jetstreamManager()
      await expect(jsm.streams.info(`${off.deps.nats.prefix}OPERATIONS`)).rejects.toThrow('not found')
      await nc.close()
    } finally {
      await off.stop()
    }
  }, 60_000)
})
