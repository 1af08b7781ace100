import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createCatalogWriter, type ResourceUpdateCommand } from '../../activities/catalog.client.ts'
import { saveCatalogWrite } from '../../db/operations/operations/catalog.ts'
import { until } from '../support/until.ts'
import { createEngine, type Engine, node } from './support/engine.ts'

let engine: Engine
const commands: ResourceUpdateCommand[] = []
let answer: (command: ResourceUpdateCommand, call: number) => { status: number; body: unknown }
/** The target's version in the catalog's answer; `undefined`: it does not answer. */
let version: number | undefined = 4
let asked = 0
/** The resource, for callers that read it. */
let document: Record<string, unknown> = {}
const server = createServer(async (req, res) => {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  if (req.url?.endsWith(':versions')) {
    asked += 1
    const items = version === undefined ? undefined : [{ resource_id: 'host-1', version }]
    return res.writeHead(items ? 200 : 503, { 'content-type': 'application/json' }).end(JSON.stringify({ items }))
  }
  if (req.method === 'GET')
    return res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
  commands.push(JSON.parse(Buffer.concat(chunks).toString('utf8')) as ResourceUpdateCommand)
  const { status, body } = answer(commands.at(-1) as ResourceUpdateCommand, commands.length)
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
})
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  engine = await createEngine({ catalog: createCatalogWriter(url, () => 'token') })
})
afterAll(async () => {
  await engine.close()
  server.closeAllConnections()
  server.close()
})

const spec = () => ({
  pins: [{ resource_id: 'host-1', version: 4 }],
  nodes: [
    node('deploy', {
      target_id: 'host-1',
      with: { outputs: { release: '2.0' } },
      catalog: { observed_state_patch: { release: { $from: 'nodes/deploy/outputs/release' } } },
    }),
  ],
})
const conflict = (operation_id: string | null) => ({
  status: 409,
  body: { code: 'version_mismatch', detail: 'moved', current_version: 5, last_changed_by: { operation_id } },
})

it('writes one command on the pinned version; a retry after an outage repeats it exactly', async () => {
  commands.length = 0
  answer = (_, call) => (call === 1 ? { status: 503, body: {} } : { status: 200, body: { version: 5 } })
  const operation_id = await engine.start(spec())
  expect((await engine.ends(operation_id)).status).toBe('succeeded')
  expect(commands).toHaveLength(2)
  expect(commands[1]).toEqual(commands[0])
  expect(commands[0]).toMatchObject({
    idempotency_key: `${operation_id}:deploy:1`,
    operation_id,
    resource_id: 'host-1',
    expected_version: 4,
    changes: { observed_state_patch: { release: '2.0' } },
  })
  expect((await engine.read.node(operation_id, 'deploy')).catalog).toMatchObject({ status: 'applied', version: 5 })
  const { rows } = await engine.pool.query('select pins from operations.operations where operation_id = $1', [
    operation_id,
  ])
  expect(rows[0].pins).toEqual({ 'host-1': 5 })
})

it('a version changed by someone else waits for a person; its own does not', async () => {
  commands.length = 0
  answer = ({ operation_id }, call) => (call === 1 ? conflict(operation_id) : { status: 200, body: { version: 6 } })
  expect((await engine.ends(await engine.start(spec()))).status).toBe('succeeded')
  expect(commands.map(({ expected_version }) => expected_version)).toEqual([4, 5])

  answer = () => conflict(null)
  const operation_id = await engine.start(spec())
  await engine.statusIs(operation_id, 'blocked')
  expect(await engine.read.node(operation_id, 'deploy')).toMatchObject({
    state: 'outcome_unknown',
    error: { class: 'catalog_conflict' },
  })
  await engine.client.workflow.getHandle(operation_id).cancel()
  await engine.ends(operation_id)
  // One that the catalog takes after the end is true of the resource, and changes no end.
  const { generation } = await engine.read.node(operation_id, 'deploy')
  const late = { command_id: operation_id, resource_id: 'host-1', version: 9 }
  await saveCatalogWrite(engine.db, { operation_id, node_id: 'deploy', generation }, 'run', late)
  expect(await engine.read.node(operation_id, 'deploy')).toMatchObject({
    state: 'outcome_unknown',
    catalog: { version: 9 },
  })
})

it('a write that the catalog refuses for good waits for a person; one that it cannot take now is repeated', async () => {
  const refused = [
    { status: 409, body: { code: 'already_exists', detail: 'taken', retryable: false } },
    { status: 413, body: { code: 'body_too_large', detail: 'too large', retryable: false } },
  ]
  for (const given of refused) {
    commands.length = 0
    answer = () => given
    const operation_id = await engine.start(spec())
    await engine.statusIs(operation_id, 'blocked')
    expect((await engine.read.node(operation_id, 'deploy')).error).toMatchObject({
      class: 'refused',
      message: expect.stringContaining(given.body.code),
    })
    expect(commands).toHaveLength(1)
    await engine.client.workflow.getHandle(operation_id).cancel()
    await engine.ends(operation_id)
  }
  const later = [
    ...[401, 403, 408, 429].map((status) => ({ status, body: { retryable: false } })),
    { status: 409, body: { code: 'in_progress', retryable: true } },
  ]
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  for (const given of later) {
    answer = () => given
    const write = createCatalogWriter(url, () => 'token').apply({ resource_id: 'host-1' } as ResourceUpdateCommand)
    await expect(write, String(given.status)).rejects.toThrow('The catalog answered')
  }
}, 90_000)

it('repeats a write on a later version whose answer was lost, and the catalog refuses no reused id', async () => {
  commands.length = 0
  let now = 5
  const accepted = new Map<string, number>()
  answer = ({ command_id, expected_version, operation_id }) => {
    const known = accepted.get(command_id)
    if (known !== undefined && known !== expected_version) return { status: 422, body: { code: 'command_id_reused' } }
    if (known === undefined && expected_version !== now) {
      const { status, body } = conflict(operation_id)
      return { status, body: { ...body, current_version: now } }
    }
    accepted.set(command_id, expected_version)
    if (accepted.size > 1) return { status: 200, body: { version: now } }
    now = 6
    return { status: 503, body: {} }
  }
  const operation_id = await engine.start(spec())
  expect((await engine.ends(operation_id)).status).toBe('succeeded')
  expect(commands.map(({ expected_version }) => expected_version)).toEqual([4, 5, 4, 6])
})

it('starts no node on a target that has changed in the catalog until a person has reviewed it', async () => {
  answer = () => ({ status: 200, body: { version: 6 } })
  version = 5
  const operation_id = await engine.start(spec())
  const blocked = async () => (await engine.read.operation(operation_id)).blocked_on[0]
  await until(async () => (await blocked())?.kind === 'catalog', { timeout_ms: 30_000 })
  expect(await blocked()).toMatchObject({ id: 'host-1', message: expect.stringContaining('as it was planned') })
  expect(await engine.read.attempts(operation_id)).toEqual([])
  // A version that changed without a value is pinned again.
  await engine.pool.query(`update operations.operations set pins = '{"host-1": 5}' where operation_id = $1`, [
    operation_id,
  ])
  expect((await engine.ends(operation_id)).status).toBe('succeeded')
  expect(await engine.read.attempts(operation_id)).toMatchObject([{ node_id: 'deploy', attempt: 1 }])
  version = 4
}, 90_000)

it('starts no node on a target while the catalog does not answer; a stop needs no catalog', async () => {
  answer = () => ({ status: 200, body: { version: 5 } })
  version = undefined
  const operation_id = await engine.start(spec())
  await until(async () => (await engine.read.operation(operation_id)).blocked_on[0]?.kind === 'catalog', {
    timeout_ms: 30_000,
  })
  version = 4
  expect((await engine.ends(operation_id)).status).toBe('succeeded')
  version = undefined
  const stopped = await engine.start(spec())
  await until(async () => (await engine.read.operation(stopped)).blocked_on[0]?.kind === 'catalog', {
    timeout_ms: 30_000,
  })
  await engine.client.workflow.getHandle(stopped).cancel()
  expect((await engine.ends(stopped)).status).toBe('cancelled')
  expect(await engine.read.attempts(stopped)).toEqual([])
  version = 4
}, 90_000)

it('asks about many targets at one moment in few round trips, and never uses an answer from before the question', async () => {
  version = 4
  asked = 0
  const { port } = server.address() as AddressInfo
  const { versionOf } = createCatalogWriter(`http://127.0.0.1:${port}`, () => 'token')
  // A call that is not sent yet asks for those after it, too.
  const first = versionOf('host-1')
  version = 5
  const later = await Promise.all(Array.from({ length: 200 }, () => versionOf('host-1')))
  expect(await first).toBeGreaterThanOrEqual(4)
  expect(new Set(later)).toEqual(new Set([5]))
  expect(asked).toBe(1)
  expect(await versionOf('nowhere')).toBeUndefined()
  version = 4
})

it('an undo restores what others left alone; what they changed waits for a person, whose decision ends it', async () => {
  const undone = async (found: Record<string, unknown>) => {
    const [deploy] = spec().nodes
    const compensate = { executor: 'noop', with: {}, catalog: { observed_state_patch: { release: '1.0' } } }
    commands.length = 0
    document = { version: 6, ...found }
    answer = ({ expected_version, idempotency_key }) =>
      idempotency_key.includes(':c') && expected_version !== 6
        ? conflict(null)
        : { status: 200, body: { version: expected_version + 1 } }
    const last = node('last', { executor: 'noop', depends_on: ['deploy'], with: { delay_ms: 3000 } })
    const operation_id = await engine.start({ ...spec(), nodes: [{ ...deploy, compensate } as never, last] })
    await until(async () => (await engine.read.states(operation_id)).last === 'running', { timeout_ms: 30_000 })
    await engine.command(operation_id, 'cancel', { mode: 'compensate' }, (tx) =>
      tx.execute(
        sql`update operations.operation_control set control = 'cancel', cancel_mode = 'compensate' where operation_id = ${operation_id}`,
      ),
    )
    return operation_id
  }
  const alone = await undone({ observed_state: { release: '2.0', seen: true }, labels: { other: 'changed' } })
  expect((await engine.ends(alone)).status).toBe('cancelled')
  expect(await engine.read.node(alone, 'deploy')).toMatchObject({
    state: 'compensated',
    catalog: { status: 'restored', version: 7 },
  })
  expect(commands.map(({ expected_version, changes }) => [expected_version, changes])).toEqual([
    [4, { observed_state_patch: { release: '2.0' } }],
    [5, { observed_state_patch: { release: '1.0' } }],
    [6, { observed_state_patch: { release: '1.0' } }],
  ])
  expect(commands[2]?.command_id).not.toBe(commands[1]?.command_id)

  const changed = await undone({ observed_state: { release: '3.0' } })
  await until(async () => (await engine.read.states(changed)).deploy === 'compensation_failed', { timeout_ms: 30_000 })
  expect(await engine.read.node(changed, 'deploy')).toMatchObject({
    error: { class: 'catalog_conflict', message: expect.stringContaining('observed_state/release was changed') },
  })
  expect(commands).toHaveLength(2)
}, 90_000)
