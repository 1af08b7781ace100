import { randomBytes } from 'node:crypto'
import type { NatsConnection } from 'nats'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { connectNats, consume, ensureStreams, subjectOf } from '../../apps/shared/events/events.ts'
import { holdNats } from '../../apps/shared/events/holder.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { serverUrl } from '../support/database.ts'
import { type Link, startLink } from '../support/link.ts'
import { until } from '../support/until.ts'

/** A consumer whose broker is slow, and events that cannot be applied. */
const { log } = createTelemetry('test', { level: 'silent' })
const prefix = `t${randomBytes(4).toString('hex')}`
let direct: NatsConnection
let link: Link
beforeAll(async () => {
  direct = await connectNats(serverUrl('NATS_URL'), 'test')
  link = await startLink(serverUrl('NATS_URL'))
  await ensureStreams(direct, prefix, ['CATALOG'])
})
afterAll(async () => {
  await (await direct.jetstreamManager()).streams.delete(`${prefix}CATALOG`)
  await direct.close()
  link.stop()
})

const publish = (name: string) =>
  direct.jetstream().publish(subjectOf(prefix, 'catalog', 'resource', name), JSON.stringify({ agg_id: name }))

it('one timeout at the start is not the end: it consumes as soon as the broker answers', async () => {
  const holder = holdNats(link.url, 'test', log)
  const nc = await until(() => holder.get())
  const errors: Error[] = []
  const heard: string[] = []
  link.freeze()
  const consumer = consume({
    nc,
    prefix,
    stream: 'CATALOG',
    durable: 'slow',
    handle: async ({ agg_id }) => void heard.push(String(agg_id)),
    onError: (error) => errors.push(error),
  })
  let prepared = 0
  holder.prepare('a stream', async (connection) => {
    await connection.jetstreamManager()
    prepared += 1
  })
  await until(() => errors.length > 0, { what: 'a time-out' })
  link.thaw()
  await publish('first')
  await until(() => heard.includes('first') && prepared === 1, { what: 'the event' })
  await consumer.stop()
  await holder.close()
}, 120_000)

it('who no longer wants to hear has no subscription, before the connection and after it', async () => {
  const holder = holdNats(link.url, 'test', log)
  const heard: string[] = []
  const never = holder.hear(`${prefix}.wake`, () => heard.push('never'))
  never()
  const nc = await until(() => holder.get())
  const once = holder.hear(`${prefix}.wake`, () => heard.push('once'))
  const again: string[] = []
  holder.onReconnect(() => again.push('not'))()
  holder.onReconnect(() => again.push('yes'))
  await nc.flush()
  direct.publish(`${prefix}.wake`)
  await until(() => heard.length > 0)
  once()
  await nc.flush()
  direct.publish(`${prefix}.wake`)
  await direct.flush()
  await nc.reconnect()
  await until(() => again.length > 0)
  expect(heard).toEqual(['once'])
  expect(again).toEqual(['yes'])
  await holder.close()
}, 30_000)

it('counts the faults of an event, not its deliveries', async () => {
  const faults: string[] = []
  const tries = new Map<string, number>()
  const consumer = consume({
    nc: direct,
    prefix,
    stream: 'CATALOG',
    durable: 'counting',
    max_deliver: 2,
    handle: async ({ agg_id }) => {
      if (agg_id !== 'poison') return
      const n = (tries.get(agg_id) ?? 0) + 1
      tries.set(agg_id, n)
      if (n <= 3) throw Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
      throw new Error(`fault ${n}`)
    },
    park: async (_event, error) => void faults.push(error.message),
  })
  await publish('poison')
  await until(() => faults.length > 0, { what: 'the event set aside' })
  expect(faults).toEqual(['fault 5'])
  await consumer.stop()
}, 90_000)

it('drops an event that cannot even be set aside, for example one without an id', async () => {
  let tries = 0
  const consumer = consume({
    nc: direct,
    prefix,
    stream: 'CATALOG',
    durable: 'nameless',
    max_deliver: 1,
    handle: async ({ agg_id }) => {
      if (agg_id === 'nameless') throw new Error('no envelope')
    },
    park: async () => {
      tries += 1
      // The first time Postgres is away.
      const code = tries === 1 ? '57P01' : '23502'
      throw Object.assign(new Error('not stored'), { cause: Object.assign(new Error('refused'), { code }) })
    },
  })
  await publish('nameless')
  const { consumers } = await direct.jetstreamManager()
  await until(() => tries === 2, { what: 'a second try' })
  await until(async () => (await consumers.info(`${prefix}CATALOG`, 'nameless')).num_ack_pending === 0, {
    what: 'the end of the message',
  })
  expect(tries).toBe(2)
  await consumer.stop()
}, 90_000)
