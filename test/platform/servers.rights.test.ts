import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type NatsConnection, type StreamConfig } from 'nats'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { locateNats, writeNatsConfig } from '../../apps/platform/servers/nats.ts'
import { agentInbox, agentRights, natsRights } from '../../apps/platform/servers/rights.ts'
import { consume, ensureStreams } from '../../apps/shared/events/events.ts'
import { ensureExecution } from '../../apps/shared/events/execution-stream.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { createNats } from '../../apps/worker/nats.ts'
import type { Work } from '../support/agent/agent.ts'
import { takeFromStream } from '../support/agent/stream.ts'
import { until } from '../support/until.ts'

/** A server with the users that the platform writes: apps, and the agents of two pools. */
let dir: string
let port: number
let stop: () => void
const open: NatsConnection[] = []
const as = async (user: string, inboxPrefix?: string) => {
  const errors: string[] = []
  const nc = await connect({
    servers: `127.0.0.1:${port}`,
    user,
    pass: user,
    timeout: 2000,
    ...(inboxPrefix && { inboxPrefix }),
  })
  open.push(nc)
  void (async () => {
    for await (const { data } of nc.status()) errors.push(String(data))
  })()
  return { nc, errors }
}

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'signalbox-nats-'))
  port = await createPorts().take('nats', 0)
  const user = (name: string, rights: ReturnType<typeof natsRights>) => ({ name, password: name, rights })
  const config = writeNatsConfig(dir, port, [
    ...['worker', 'relay', 'gateway', 'operations'].map((app) => user(app, natsRights(app))),
    ...['lab', 'other'].map((pool) => user(`agent-${pool}`, agentRights(pool))),
  ])
  const server = spawn(await locateNats(silentScreen), ['-c', config], { stdio: 'ignore' })
  stop = () => server.kill('SIGKILL')
  await until(() => as('gateway').catch(() => undefined), { what: 'the server' })
}, 60_000)
afterAll(async () => {
  for (const nc of open) await nc.close()
  stop()
  rmSync(dir, { recursive: true, force: true })
})

it("lets the worker hand out work, only the pool's agent take it, and no one else see it", async () => {
  const log = createTelemetry('test').log
  const worker = createNats(`nats://worker:worker@127.0.0.1:${port}`, '', log, ['lab', 'other'])
  const work = { operation_id: 'o', execution_token: 'exe_secret' }
  await until(
    () =>
      worker.agents.publish('lab', work, 1).then(
        () => true,
        () => undefined,
      ),
    { timeout_ms: 15_000 },
  )
  // The same fence again is the same message.
  await worker.agents.publish('lab', work, 1)

  const refuses = async (user: string, act: (nc: NatsConnection) => Promise<unknown>, inbox?: string) => {
    const { nc, errors } = await as(user, inbox)
    const said = await act(nc).then(
      () => 'it went through',
      (error: Error & { code?: string }) => `${error.code} ${error.message}`,
    )
    expect(said).not.toBe('it went through')
    const denied = () => [said, ...errors].some((text) => /permissions.violation/i.test(text))
    await until(denied, { timeout_ms: 5000, what: `${user} refused, not "${said}"` })
  }
  const get = async (nc: NatsConnection) =>
    (await nc.jetstream().consumers.get('EXECUTION', 'lab')).next({ expires: 1000 })
  await refuses('agent-other', get, agentInbox('other'))
  await refuses('gateway', get)
  await refuses('relay', (nc) => nc.jetstream().publish('execution.lab', '{}', { timeout: 500 }))
  await refuses('agent-lab', (nc) => nc.jetstream().publish('execution.lab', '{}', { timeout: 500 }), agentInbox('lab'))
  await refuses('agent-lab', (nc) => nc.jetstream().publish('operations.x', '{}', { timeout: 500 }), agentInbox('lab'))
  // The list of agents says only what each pool's own agents say.
  for (const [user, inbox] of [['agent-other', agentInbox('other')], ['gateway'], ['worker']] as const)
    await refuses(user, (nc) => nc.request('agents.lab', '{}', { timeout: 500 }), inbox)
  await refuses('gateway', (nc) => nc.request('$JS.API.STREAM.MSG.GET.EXECUTION', '{"seq":1}', { timeout: 500 }))
  await refuses('gateway', (nc) =>
    nc.request('$JS.API.CONSUMER.CREATE.EXECUTION', '{"stream_name":"EXECUTION","config":{}}', { timeout: 500 }),
  )
  // Operations hands it to agents that ask over the API; it neither creates work nor decides who gets it.
  await refuses('operations', (nc) => nc.jetstream().publish('execution.lab', '{}', { timeout: 500 }))
  for (const verb of ['CREATE', 'DURABLE.CREATE', 'DELETE'])
    await refuses('operations', (nc) =>
      nc.request(`$JS.API.CONSUMER.${verb}.EXECUTION.lab`, '{"stream_name":"EXECUTION","config":{}}', { timeout: 500 }),
    )
  const listens = async (user: string, subject: string, inbox?: string) => {
    const { nc, errors } = await as(user, inbox)
    nc.subscribe(subject, { callback: () => {} })
    await nc.flush()
    await until(() => errors.length > 0, { timeout_ms: 5000, what: `${user} refused ${subject}` })
  }
  await listens('gateway', 'execution.>')
  await listens('relay', '_INBOX_AGENT.>')
  await listens('agent-lab', 'execution.other.cancel', agentInbox('lab'))
  await listens('agent-lab', '_INBOX.>', agentInbox('lab'))

  const { nc } = await as('agent-lab', agentInbox('lab'))
  const taken: Work[] = []
  const agent = await takeFromStream(nc, { pool: 'lab' }, async (given) => void taken.push(given))
  await until(() => taken.length > 0, { timeout_ms: 10_000, what: 'the work' })
  await worker.agents.publish('other', { ...work, operation_id: 'over the API' }, 3)
  const asked = await (await as('operations')).nc.jetstream().consumers.get('EXECUTION', 'other')
  const given = await asked.next({ expires: 5000 })
  expect([given?.json<Work>().operation_id, await given?.ackAck()]).toEqual(['over the API', true])
  await worker.agents.publish('lab', { ...work, operation_id: 'second' }, 2)
  await until(() => taken.length > 1, { timeout_ms: 10_000, what: 'the next work' })
  expect(taken.map(({ operation_id }) => operation_id)).toEqual(['o', 'second'])
  await agent.close()
  await worker.close()
}, 60_000)

it('has a consumer of an app wait for the stream that the relay makes', async () => {
  const [{ nc }, relay] = await Promise.all([as('operations'), as('relay')])
  await relay.nc.jetstreamManager().then((jsm) => jsm.streams.delete('CATALOG').catch(() => false))
  const [told, faults] = [[] as string[], [] as string[]]
  const consumer = consume({
    ...{ nc, prefix: '', stream: 'CATALOG' as const, durable: 'waits' },
    handle: async ({ type }) => void told.push(type),
    onError: ({ message }) => faults.push(message),
  })
  await until(() => faults.length > 0, { what: 'a refusal' })
  expect(faults[0]).toBe('the stream CATALOG does not exist yet: the relay makes it')
  await ensureStreams(relay.nc, '', ['CATALOG'])
  await relay.nc.jetstream().publish('catalog.x', JSON.stringify({ type: 'seen', event_id: 'e' }))
  await until(() => told.includes('seen'), { what: 'the event' })
  await consumer.stop()
}, 60_000)

it('lets only the relay change a stream of events, and only the worker that of work', async () => {
  const users = await Promise.all(['relay', 'worker', 'gateway', 'operations'].map((user) => as(user)))
  const [relay, worker] = users.map(({ nc }) => nc)
  if (!relay || !worker) throw new Error('no connection')
  await ensureStreams(relay, '', ['AUTH', 'CATALOG', 'OPERATIONS', 'AUDIT'])
  await ensureExecution(worker, '', 'lab')
  const changes = async (nc: NatsConnection, stream: string) => {
    const jsm = await nc.jetstreamManager()
    const { config } = await jsm.streams.info(stream).catch(() => ({ config: { name: stream } as StreamConfig }))
    return jsm.streams.update(stream, { ...config, description: 'changed' }).then(
      () => true,
      () => false,
    )
  }
  const may: string[] = []
  for (const [i, user] of ['relay', 'worker', 'gateway', 'operations'].entries())
    for (const stream of ['AUTH', 'CATALOG', 'OPERATIONS', 'AUDIT', 'EXECUTION'])
      if (await changes((users[i] as { nc: NatsConnection }).nc, stream)) may.push(`${user} ${stream}`)
  const own = ['AUTH', 'CATALOG', 'OPERATIONS', 'AUDIT'].map((stream) => `relay ${stream}`)
  expect(may).toEqual([...own, 'worker EXECUTION'])
  // A stream of its own would publish in the name of the server.
  const makes = async (nc: NatsConnection) =>
    (await nc.jetstreamManager()).streams
      .add({ name: 'OWN', subjects: ['own.>'], republish: { src: 'own.>', dest: 'execution.lab' } } as StreamConfig)
      .then(() => true)
      .catch((error: Error) => error.message)
  const refused = expect.stringMatching(/permissions violation/i)
  expect(await Promise.all(users.slice(2).map(({ nc }) => makes(nc)))).toEqual([refused, refused])
  const deletes = async (nc: NatsConnection) =>
    (await nc.jetstreamManager()).streams.deleteMessage('AUDIT', seq).catch(() => false)
  const { seq } = await relay.jetstream().publish('audit.anchor', '{}')
  const deleted = await Promise.all(users.slice(1).map(({ nc }) => deletes(nc)))
  expect([...deleted, await deletes(relay)]).toEqual([false, false, false, true])
}, 60_000)
