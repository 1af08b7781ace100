import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, Connection } from '@temporalio/client'
import type { NatsConnection } from 'nats'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { sweep } from '../../apps/operations/upkeep/sweeper.ts'
import { connectNats } from '../../apps/shared/events/events.ts'
import { listSummaries } from '../../db/operations/operations/read.ts'
import { carryOut, createReporter, type Job, listenForWork, type Work } from '../support/agent/agent.ts'
import { announce, takeFromStream } from '../support/agent/stream.ts'
import { serverUrl } from '../support/database.ts'
import { until } from '../support/until.ts'
import { type Platform, startPlatform } from './support/platform.ts'
import { startWorker } from './support/worker.ts'

/** Agents that take their work from the stream, and pools that give out no more than they may. */
let p: Platform
let worker: Awaited<ReturnType<typeof startWorker>>
let nc: NatsConnection
let folder: string
let web: Awaited<ReturnType<typeof listenForWork>>
let answerBy: (work: Work) => Promise<void>
/** An agent that takes work and never answers a cancel. */
let deaf: Server
const toldDeaf: Work[] = []
let deafCancels = 0
const PLACES = 2
const reason = 'a test'

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-pools-'))
  const policy_file = join(folder, 'policy.yaml')
  const pool = { destinations: [], secrets: [], mode: 'nats', max_in_flight: PLACES }
  web = await listenForWork((work) => answerBy(work))
  deaf = createServer((req, res) => {
    if (req.url === '/cancel') {
      deafCancels += 1
      return
    }
    let text = ''
    req.on('data', (chunk) => (text += chunk))
    req.on('end', () => {
      toldDeaf.push(JSON.parse(text))
      res.writeHead(202).end()
    })
  })
  await new Promise<void>((resolve) => deaf.listen(0, '127.0.0.1', resolve))
  const loopback = { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: ['1024-65535'] }
  const http = (endpoint: string) => ({ ...pool, destinations: [loopback], mode: 'http', endpoint })
  const pools = {
    default: { destinations: [], secrets: [] },
    lab: pool,
    idle: pool,
    rested: pool,
    labelled: pool,
    web: http(web.url),
    deaf: http(`http://127.0.0.1:${(deaf.address() as AddressInfo).port}`),
  }
  writeFileSync(policy_file, JSON.stringify({ format: 'signalbox/executor-policy@1', pools }))
  p = await startPlatform({
    env: { OPERATIONS__COMMANDS__WAIT_MS: '5000', WORKER__EXECUTORS__POLICY_FILE: policy_file },
  })
  worker = await startWorker(p, policy_file)
  nc = await connectNats(serverUrl('NATS_URL'), 'agent')
}, 90_000)
afterAll(async () => {
  await nc.close()
  await worker.stop()
  await p.stop()
  await web.close()
  deaf.closeAllConnections()
  deaf.close()
  rmSync(folder, { recursive: true })
  await worker.end()
})

const external = (node_id: string, more: Record<string, unknown> = {}) => ({
  node_id,
  executor: 'external',
  pool: 'lab',
  with: { job: 'greet', inputs: { name: node_id } },
  ...more,
})
const start = async (...nodes: Record<string, unknown>[]) => {
  const { operation_id } = await p.startOperation({ nodes })
  return { operation_id, path: `/v1/operations/${operation_id}` }
}
const status = async (operation_id: string): Promise<string> =>
  (await p.as('vic').get(`/v1/operations/${operation_id}`)).body.status
const reaches = (operation_id: string, wanted: string) =>
  until(async () => (await status(operation_id)) === wanted, { what: `status ${wanted}` })
const stream = () => `${p.prefix}EXECUTION`
const agentOf = async (pool: string, take: (work: Work) => Promise<void>) =>
  until(
    () =>
      takeFromStream(nc, { pool, stream: stream(), subject: `${p.prefix}.execution.${pool}` }, take).catch(
        () => undefined,
      ),
    { what: 'the consumer of the pool' },
  )

it('work of a pool waits in the stream for an agent, which takes, reports and ends it', async () => {
  const greet: Job = async ({ inputs }, { log }) => {
    log(`greets ${inputs.name}`)
    return { greeting: `hello ${inputs.name}` }
  }
  const { operation_id, path } = await start(external('ada'))
  const agent = await agentOf('lab', (work) => carryOut(work, greet))
  await reaches(operation_id, 'succeeded')
  await agent.close()
  expect((await p.as('vic').get(`${path}/nodes/ada`)).body).toMatchObject({
    outputs: { greeting: 'hello ada' },
    attempts: [{ phase: 'succeeded', executor: 'external', pool: 'lab', log: { complete: true } }],
  })
  const jsm = await nc.jetstreamManager()
  expect((await jsm.streams.info(stream())).state.messages).toBe(0)
}, 90_000)

it('agents that read the stream or listen at an endpoint are listed by the names that they give, with their work', async () => {
  const listed = async () => {
    const { items } = (await p.as('vic').get('/v1/agents')).body
    return Object.fromEntries(items.map(({ agent, ...rest }: { agent: string }) => [agent, rest]))
  }
  const say = (text: string) => nc.publish(`${p.prefix}.agents.lab`, text)
  for (const text of ['{', '[]', 'null', '{"agent":{"name":"../x"}}', '{"agent":{"name":"x","pools":7}}', '{}'])
    say(text)
  const about = { labels: { region: 'eu1' }, agent: { name: 'one', version: '3.1', concurrency: 2 } }
  const leave = announce(nc, `${p.prefix}.agents.lab`, about)
  await until(async () => (await listed())['pool:lab/one'], { what: 'it listed' })
  expect(await listed()).toEqual({
    'pool:lab/one': expect.objectContaining({
      ...{ machine: 'pool:lab', pools: ['lab'], labels: { region: 'eu1' }, version: '3.1', concurrency: 2 },
      ...{ status: 'idle', work: [] },
    }),
  })
  let go = () => {}
  const goes = new Promise<void>((resolve) => {
    go = resolve
  })
  const held: Job = () => goes.then(() => ({}))
  answerBy = (work) => carryOut(work, held, 'two')
  const agent = await agentOf('lab', (work) => carryOut(work, held, 'one'))
  const { operation_id } = await start(external('ada'), external('eve', { pool: 'web' }))
  const work = (node_id: string, pool: string) => ({
    ...{ status: 'working', works: 1 },
    work: [expect.objectContaining({ operation_id, node_id, pool })],
  })
  await until(async () => (await listed())['pool:web/two']?.works && (await listed())['pool:lab/one']?.works, {
    what: 'both at work',
  })
  expect(await listed()).toMatchObject({ 'pool:lab/one': work('ada', 'lab'), 'pool:web/two': work('eve', 'web') })
  // A message about work changes nothing else that the agent has said of itself.
  expect((await listed())['pool:lab/one']).toMatchObject({ labels: { region: 'eu1' }, version: '3.1' })
  go()
  await reaches(operation_id, 'succeeded')
  await agent.close()
  leave()
  await until(async () => !(await listed())['pool:lab/one'], { what: 'it left' })
  expect((await listed())['pool:web/two']).toMatchObject({ status: 'idle', works: 0 })
}, 90_000)

it('work that no agent has begun for half a minute says so, with the labels that it asks for', async () => {
  const leave = announce(nc, `${p.prefix}.agents.labelled`, { labels: { region: 'eu1' }, agent: { name: 'eu' } })
  const asks = (node_id: string, labels: object) =>
    external(node_id, { pool: 'labelled', with: { job: 'greet', inputs: {}, labels } })
  const { operation_id, path } = await start(asks('eu', { region: 'eu1' }), asks('us', { region: 'us1' }))
  const blocked = async (): Promise<{ kind: string; message: string }[]> =>
    (await p.as('vic').get(path)).body.blocked_on
  const handed = () => p.query('select from operations.executions where operation_id = $1', [operation_id])
  await until(async () => (await handed()).length === 2, { what: 'both handed over' })
  expect(await blocked()).toEqual([])
  await p.query(
    `update operations.executions set created_at = created_at - case node_id when 'eu' then interval '31 s' else interval '32 s' end
     where operation_id = $1`,
    [operation_id],
  )
  const inputs = 'select from operations.node_attempts where operation_id = $1 and inputs is not null'
  await until(async () => (await p.query(inputs, [operation_id])).length === 2, { what: 'both note their inputs' })
  const of = (message: unknown) => ({ kind: 'executor', id: 'labelled', since: expect.any(String), message })
  const words = [
    of('No agent of the pool "labelled" with region=us1 has begun us; last seen: never.'),
    of(expect.stringMatching(/^No agent of the pool "labelled" with region=eu1 has begun eu; last seen: \d{4}-.*Z\.$/)),
  ]
  expect(await blocked()).toEqual(words)
  const { items } = (await p.as('vic').get('/v1/operations')).body
  expect(items.find((row: { operation_id: string }) => row.operation_id === operation_id).blocked_on).toEqual(words)
  // Labels may come from another node, and any program may have made the preview.
  await p.query(
    `update operations.node_attempts set inputs = '{"labels": null, "inputs": {"preview": {"plan": {"key": "x y"}}}}'
     where operation_id = $1`,
    [operation_id],
  )
  expect(await blocked()).toEqual([
    of(expect.stringMatching(/^No agent of the pool "labelled" has begun 2 steps; last/)),
  ])
  expect((await p.as('vic').get('/v1/operations')).status).toBe(200)
  // News of the operation says the same as a reload.
  const [frame] = await listSummaries(p.deps.db, [operation_id])
  expect(frame?.fields.blocked_on).toEqual(await blocked())
  await p.as('olga').post(`${path}/cancel`, { reason })
  await reaches(operation_id, 'cancelled')
  expect(await blocked()).toEqual([])
  leave()
}, 90_000)

it('work that no agent takes in time fails definitely, and a late agent is refused', async () => {
  const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const graph = { nodes: [external('late', { pool: 'idle', timeouts: { start_s: 1 } })] }
  const { operation_id } = await p.startOperation(graph, { headers: { traceparent: trace } })
  const path = `/v1/operations/${operation_id}`
  const node = async () => (await p.as('vic').get(`${path}/nodes/late`)).body
  await until(async () => (await node()).error_class === 'not_picked_up', { timeout_ms: 30_000 })
  const jsm = await nc.jetstreamManager()
  const kept = await jsm.streams.getMessage(stream(), { last_by_subj: `${p.prefix}.execution.idle` })
  const work = kept.json<Work>()
  expect(work).toMatchObject({ v: 1, operation_id, node_id: 'late', job: 'greet', trace })
  // The stream drops a repeat of the same handover.
  expect(kept.header.get('Nats-Msg-Id')).toBe(String(work.fence))
  const refused: (string | undefined)[] = []
  const agent = await agentOf('idle', async (given) => {
    refused.push((await createReporter(given)('started')).code)
  })
  await until(() => refused.length > 0, { timeout_ms: 30_000 })
  await agent.close()
  expect(refused).toEqual(['attempt_closed'])
  await p.as('olga').post(`${path}/cancel`, { reason })
}, 90_000)

it('work may lie in the stream while every agent is busy: that takes none of its own time', async () => {
  const left_s = async (node: Record<string, unknown>) => {
    const { operation_id } = await p.startOperation({ nodes: [node] })
    const path = `/v1/operations/${operation_id}`
    const waits = async () => (await p.as('vic').get(`${path}/nodes/${node.node_id}`)).body
    await until(async () => (await waits()).attempts[0]?.progress, { what: 'the handover' })
    const [{ s, ...rest } = { s: 0 }] = await p.query(
      `select extract(epoch from start_before - created_at)::int as s, extract(epoch from deadline_at - start_before)::int as runs
       from operations.executions where operation_id = $1`,
      [operation_id],
    )
    expect(rest).toEqual({ runs: 5 })
    return { path, s, waits }
  }
  const busy = await left_s(external('busy', { pool: 'idle', timeouts: { run_s: 5 } }))
  expect(busy.s).toBeGreaterThan(800)
  expect((await busy.waits()).attempts[0].progress.message).toMatch(/^Waiting for an agent of the pool "idle" until /)
  await p.as('olga').post(`${busy.path}/cancel`, { reason })
  const over = await left_s(external('over', { pool: 'rested', timeouts: { run_s: 5 } }))
  const wait = async () => {
    const [{ s } = { s: 0 }] = await p.query<{ s: number }>(
      `select extract(epoch from clock_timestamp() - created_at)::float as s from operations.executions where node_id = 'over'`,
    )
    return s > 7
  }
  await until(wait, { what: 'it lay longer than it may run' })
  // As a worker of an earlier version wrote it.
  await p.query(`update operations.executions set deadline_at = start_before where node_id = 'over'`)
  const left: (number | undefined)[] = []
  const agent = await agentOf('rested', async (work) => {
    const report = createReporter(work)
    left.push((await report('started')).left_s)
    await report('succeeded', { outputs: {} })
  })
  await until(async () => (await over.waits()).state === 'succeeded', { what: 'it ran' })
  expect(left).toEqual([5])
  await agent.close()
}, 90_000)

/** Works silently until told to stop. */
const stall =
  (heard: string[]): Job =>
  (work, { signal }) =>
    new Promise((_, reject) => {
      const stopped = () => {
        heard.push(work.node_id)
        reject(new Error('stopped'))
      }
      if (signal.aborted) stopped()
      else signal.addEventListener('abort', stopped)
    })
const silent = { timeouts: { run_s: 600, heartbeat_s: 600 } }
const force = async (operation_id: string, path: string) => {
  expect((await p.as('both').post(`${path}/cancel`, { reason })).status).toBe(200)
  await p.query(
    `update operations.operation_control set cancelled_at = cancelled_at - interval '1 h' where operation_id = $1`,
    [operation_id],
  )
  expect((await p.as('both').post(`${path}/cancel`, { reason, mode: 'force' })).status).toBe(200)
}
const isAtAgent = (path: string, node_id: string) =>
  until(
    async () =>
      (await p.query(`select 1 from operations.executions where node_id = $1 and started_at is not null`, [node_id]))
        .length > 0,
    { what: `${path} at the agent` },
  )

it('a forced cancel is pushed to the agent that has the work, at once and to no other', async () => {
  const heard: string[] = []
  const agent = await agentOf('lab', (work) => carryOut(work, stall(heard)))
  const kept = await start(external('kept', silent))
  const { operation_id, path } = await start(external('stopped', silent))
  await isAtAgent(kept.path, 'kept')
  await isAtAgent(path, 'stopped')
  await force(operation_id, path)
  await reaches(operation_id, 'cancelled')
  expect((await p.as('vic').get(`${path}/nodes/stopped`)).body).toMatchObject({ error_class: 'cancelled' })
  expect(heard).toEqual(['stopped'])
  await force(kept.operation_id, kept.path)
  await reaches(kept.operation_id, 'cancelled')
  await agent.close()
}, 90_000)

it('an agent whose time is over is informed, also by HTTP; a silent one holds up no other work', async () => {
  const heard: string[] = []
  // By its own clock there is time left.
  const deadline_at = new Date(Date.now() + 3_600_000).toISOString()
  answerBy = (work) => carryOut({ ...work, deadline_at }, stall(heard))
  const over = await start(
    external('over', { pool: 'web', timeouts: { run_s: 2, heartbeat_s: 600 }, idempotent: false }),
  )
  await until(async () => (await p.as('vic').get(`${over.path}/nodes/over`)).body.state === 'outcome_unknown', {
    timeout_ms: 30_000,
  })
  await until(() => heard.includes('over'), { timeout_ms: 10_000, what: 'the agent hearing of it' })
  await p.as('olga').post(`${over.path}/cancel`, { reason })

  const deaf = await start(external('deaf', { pool: 'deaf', ...silent }))
  const work = await until(() => toldDeaf.find(({ node_id }) => node_id === 'deaf'), { timeout_ms: 30_000 })
  const report = createReporter(work)
  expect((await report('started')).status).toBe(200)
  await force(deaf.operation_id, deaf.path)
  await until(() => deafCancels > 0, { timeout_ms: 10_000, what: 'the call that nobody answers' })
  expect(await report('heartbeat')).toMatchObject({ status: 200, cancel_requested: true })
  expect((await report('failed', { error: { class: 'cancelled', message: 'Stopped.' } })).status).toBe(200)
  await reaches(deaf.operation_id, 'cancelled')
}, 90_000)

it('gives up attempts of an operation that the engine has lost: their places are free, late reports are refused', async () => {
  const lost = await start(...['x', 'y'].map((node_id) => external(node_id, { pool: 'deaf', ...silent })))
  const told = (node_id: string) => until(() => toldDeaf.find((work) => work.node_id === node_id), { what: node_id })
  const reports = [createReporter(await told('x')), createReporter(await told('y'))]
  for (const report of reports) expect((await report('started')).status).toBe(200)
  const connection = await Connection.connect({ address: serverUrl('TEMPORAL_ADDRESS') })
  await new Client({ connection }).workflow.getHandle(lost.operation_id).terminate('lost')
  await connection.close()
  await p.query(`insert into operations.engine_findings (operation_id, found) values ($1, 'closed')`, [
    lost.operation_id,
  ])
  await sweep(p.deps.db)
  expect((await p.as('vic').get(`${lost.path}/nodes/x`)).body).toMatchObject({
    state: 'outcome_unknown',
    attempts: [{ phase: 'outcome_unknown' }],
  })
  for (const report of reports) expect(await report('succeeded')).toMatchObject({ status: 409, code: 'attempt_closed' })
  const next = await start(external('next', { pool: 'deaf', ...silent }))
  const report = createReporter(await told('next'))
  await report('started')
  expect((await report('succeeded')).status).toBe(200)
  await reaches(next.operation_id, 'succeeded')
}, 90_000)

it('gives out at most max_in_flight over all operations; waiting work says so, and continues by itself', async () => {
  const taken: { work: Work; end: () => Promise<unknown> }[] = []
  const agent = await agentOf('lab', async (work) => {
    const report = createReporter(work)
    if ((await report('started')).status !== 200) return
    taken.push({ work, end: () => report('succeeded') })
  })
  const names = Array.from({ length: 4 }, (_, i) => `n${i}`)
  const operations = await Promise.all([0, 1, 2].map(() => start(...names.map((name) => external(name)))))
  const out = async () =>
    (
      await p.query<{ operation_id: string }>(
        `select operation_id from operations.node_attempts where pool = 'lab' and phase in ('dispatched', 'running')`,
      )
    ).length
  const waiting = () => p.query('select 1 from operations.pool_waits', [])
  await until(async () => (await waiting()).length === 3 * names.length - PLACES, {
    timeout_ms: 60_000,
    what: 'all others waiting',
  })
  expect(await out()).toBe(PLACES)
  const busy = taken.map(({ work }) => work.operation_id)
  const idle = operations.find(({ operation_id }) => !busy.includes(operation_id)) ?? operations[0]
  await until(
    async () =>
      (await p.as('vic').get(idle?.path ?? '')).body.blocked_on.some((b: { kind: string }) => b.kind === 'executor'),
    { what: 'blocked_on executor' },
  )
  const { body } = await p.as('vic').get(idle?.path ?? '')
  expect(body.blocked_on).toMatchObject([{ kind: 'executor', id: 'lab', message: expect.stringContaining('pool lab') }])

  let most = 0
  const watch = setInterval(() => void out().then((now) => (most = Math.max(most, now))), 20)
  const began = new Set<string>()
  const ending = setInterval(() => void taken.shift()?.end(), 50)
  for (const { operation_id } of operations) {
    await reaches(operation_id, 'succeeded')
    began.add(operation_id)
  }
  clearInterval(watch)
  clearInterval(ending)
  await agent.close()
  expect(most).toBe(PLACES)
  expect(await waiting()).toEqual([])
}, 120_000)
