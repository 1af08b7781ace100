import { randomUUID } from 'node:crypto'
import { connect } from 'nats'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { frameFrom } from '../../apps/shared/contracts/client/frames.ts'
import { StreamFrame } from '../../apps/shared/contracts/operations/events.ts'
import { prefixed } from '../../apps/shared/events/events.ts'
import { ENGINE, SYSTEM, stateFacts } from '../../db/operations/facts/state.ts'
import { serverUrl } from '../support/database.ts'
import { until } from '../support/until.ts'
import { faultsOfFrame } from './support/described.ts'
import { gated, must, type Person, type Platform, person, problem, startPlatform } from './support/platform.ts'
import { listenTo } from './support/stream.ts'

let p: Platform
beforeAll(async () => {
  p = await startPlatform({ instances: 2 })
})
afterAll(() => p.stop())

const heard: Awaited<ReturnType<typeof listenTo>>[] = []
const listen = async (who: Person, topics: string, options?: Parameters<typeof listenTo>[3]) => {
  const stream = await listenTo(p, who, topics, options)
  heard.push(stream)
  return stream
}
/** Whatever a test listens to, the document describes. */
afterEach(() => {
  expect(heard.splice(0).flatMap(({ frames }) => frames.flatMap(faultsOfFrame))).toEqual([])
})
const pause = (operation_id: string) => p.as('olga').post(`/v1/operations/${operation_id}/pause`, { reason: 'x' })

describe('the live stream', () => {
  it('greets with its topics, and refuses only those that the caller may not see', async () => {
    const { operation_id } = await p.startOperation(gated())
    const hidden = (await p.startOperation(gated())).operation_id
    await p.query(`update operations.operations set resource_ids = '{eu1-web-01}' where operation_id = $1`, [hidden])
    const stream = await listen(p.people.far, `operations,operation:${hidden},log:${hidden}/before/1`)
    const hello = await stream.next('hello')
    expect(stream.response.headers.get('content-type')).toContain('text/event-stream')
    expect(stream.response.headers.get('cache-control')).toBe('no-store, no-transform')
    expect(hello.data).toMatchObject({
      topics: ['operations'],
      refused: [
        { topic: `operation:${hidden}`, reason: 'not_found' },
        { topic: `log:${hidden}/before/1`, reason: 'not_found' },
      ],
      server_time: expect.any(String),
    })
    await stream.stop()
    // Whoever reads logs elsewhere only follows this operation, not its log.
    const wide = { ...person('wide', ['admin', 'viewer']), scopes: { viewer: { regionId: 'elsewhere' } } }
    Object.assign(p.people, { wide })
    const narrow = await listen(wide, `operation:${operation_id},log:${operation_id}/before/1`)
    expect((await narrow.next('hello')).data).toMatchObject({
      topics: [`operation:${operation_id}`],
      refused: [{ topic: `log:${operation_id}/before/1`, reason: 'not_found' }],
    })
    await narrow.stop()
    const engineer = await listen(p.people.eng, `operation:${operation_id},me,inbox,resources`)
    expect((await engineer.next('hello')).data.topics).toEqual([
      `operation:${operation_id}`,
      'me',
      'inbox',
      'resources',
    ])
    await engineer.stop()
  })

  it('sends followers of an operation every change, with the change_seq that a reader compares', async () => {
    const { operation_id } = await p.startOperation(gated())
    const stream = await listen(p.people.vic, `operation:${operation_id}`)
    await p.openGate(operation_id, 'go')
    await pause(operation_id)
    await p.as('eva').post(`/v1/operations/${operation_id}/gates/go/approve`, await p.seen(operation_id, 'go'))
    const gate = await stream.next('gate')
    expect(gate.data).toMatchObject({ operation_id, gate_id: 'go', status: 'approved', round: 1 })
    const paused = await stream.next('operation', ({ data }) => data.status === 'pausing')
    const { body } = await p.as('vic').get(`/v1/operations/${operation_id}`)
    const last = stream.frames.findLast(({ event }) => event === 'operation')
    expect(last?.data.change_seq).toBe(body.change_seq)
    expect(paused.data).toMatchObject({ operation_id, progress: { total: 2 } })
    await stream.stop()
  })

  it('is described in frames that our client knows', () => {
    for (const { properties } of StreamFrame.anyOf) expect(frameFrom(properties.event.const, '{}')).toBeDefined()
  })

  it('sends nodes, patches and the inbox as the document describes them', async () => {
    const { operation_id } = await p.startOperation(gated())
    const stream = await listen(p.people.vic, `operation:${operation_id},inbox`)
    const changes = [{ op: 'update_node', node_id: 'behind', set: { name: 'b again' } }]
    const path = `/v1/operations/${operation_id}/patches`
    const { body } = must(await p.as('olga').post(path, { base_revision: 1, reason: 'to see', changes }), 201)
    expect((await stream.next('patch')).data).toMatchObject({ operation_id, patch_id: body.patch_id })
    const fact = { type: 'node.cancelled', actor: ENGINE, node_id: 'behind', data: {} }
    await p.deps.db.transaction((tx) => stateFacts(tx, operation_id, { events: [fact] }))
    expect((await stream.next('node')).data).toMatchObject({ operation_id, node_id: 'behind' })
    // The row of a node that was sent says so once it is claimed.
    const sent = { ...fact, type: 'node.dispatched', node_id: 'before' }
    await p.deps.db.transaction((tx) => stateFacts(tx, operation_id, { events: [sent] }))
    const frame = await stream.next('node', ({ data }) => data.node_id === 'before')
    expect(frame.data).toMatchObject({ state: 'dispatched' })
    expect((await stream.next('inbox')).data).toMatchObject({ operation_id, patch_id: body.patch_id })
    await stream.stop()
  })

  it('tells people the outcome of their own commands, wherever they sent them; accepted is not an outcome', async () => {
    const end = async (who: 'olga' | 'both', outcome: string) => {
      const { operation_id } = await p.startOperation(gated(), { by: who })
      const { body } = await p.as(who).post(`/v1/operations/${operation_id}/pause`, { reason: 'x' })
      const { command_id } = body.command
      const fact = { type: `command.${outcome}`, actor: ENGINE, command_id, data: { kind: 'pause' } }
      await p.deps.db.transaction((tx) => stateFacts(tx, operation_id, { events: [fact] }))
      return { operation_id, command_id }
    }
    const [olga, both] = [await listen(p.people.olga, 'me'), await listen(p.people.both, 'me')]
    const first = await end('olga', 'applied')
    const second = await end('both', 'superseded')
    expect((await olga.next('command')).data).toEqual({ ...first, kind: 'pause', status: 'applied' })
    expect((await both.next('command')).data).toEqual({ ...second, kind: 'pause', status: 'withdrawn' })
    // Both were sent in the order of the log: a client that has received the second has passed the first.
    expect(both.frames.map(({ event }) => event)).toEqual(['hello', 'command'])
    expect(olga.frames.filter(({ event }) => event === 'command')).toHaveLength(1)
    await olga.stop()
    await both.stop()
  })

  it('shows lists only rows that the caller may see', async () => {
    const seen = (await p.startOperation(gated())).operation_id
    const hidden = (await p.startOperation(gated())).operation_id
    await p.query(`update operations.operations set resource_ids = '{eu1-web-01}' where operation_id = $1`, [hidden])
    const far = await listen(p.people.far, 'operations')
    const vic = await listen(p.people.vic, 'operations')
    await pause(hidden)
    await pause(seen)
    await vic.next('operation', ({ data }) => data.operation_id === seen)
    expect(vic.frames.some(({ data }) => data.operation_id === hidden)).toBe(true)
    // far's grants cover neither; events that it may not see never arrive.
    const own = (await p.startOperation(gated(), { by: 'olga' })).operation_id
    await p.query(`update operations.operations set requester_id = $2 where operation_id = $1`, [own, p.people.far.id])
    await pause(own)
    await far.next('operation', ({ data }) => data.operation_id === own)
    expect(far.frames.some(({ data }) => data.operation_id === hidden || data.operation_id === seen)).toBe(false)
    await far.stop()
    await vic.stop()
  })

  it('recounts the inbox when a gate starts or stops waiting', async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.openGate(operation_id, 'go')
    const stream = await listen(p.people.ada, 'inbox')
    await p.as('eva').post(`/v1/operations/${operation_id}/gates/go/approve`, await p.seen(operation_id, 'go'))
    const frame = await stream.next('inbox', ({ data }) => data.cause === 'approved')
    expect(frame.data).toMatchObject({
      operation_id,
      gate_id: 'go',
      round: 1,
      counts: { gates_all: expect.any(Number) },
    })
    // So does a pause because targets moved in the catalog.
    const drifted = { type: 'operation.drifted', actor: SYSTEM, data: {} }
    await p.deps.db.transaction((tx) => stateFacts(tx, operation_id, { events: [drifted] }))
    await stream.next('inbox', ({ data }) => data.operation_id === operation_id && data.cause === 'drifted')
    await stream.stop()
  })

  it('continues without a gap or a repeat after a break, even at another process', async () => {
    const { operation_id } = await p.startOperation(gated())
    const first = await listen(p.people.vic, `operation:${operation_id}`)
    await pause(operation_id)
    await first.next('operation', ({ data }) => data.status === 'pausing')
    const cursor = first.lastId() as string
    await first.stop()
    await p.as('olga').post(`/v1/operations/${operation_id}/resume`, { reason: 'x' })
    await pause(operation_id)
    const { change_seq } = (await p.as('vic').get(`/v1/operations/${operation_id}`)).body
    const second = await listen(p.people.vic, `operation:${operation_id}`, { last_event_id: cursor, instance: 1 })
    await second.next('operation', ({ data }) => data.change_seq === change_seq)
    const seqs = [...first.frames, ...second.frames]
      .filter(({ event }) => event === 'operation')
      .map(({ data }) => data.change_seq)
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, n) => (seqs[0] as number) + n))
    expect(second.frames.some(({ event }) => event === 'resync')).toBe(false)
    await second.stop()
  })

  it('sends resync for an unknown position', async () => {
    const stream = await listen(p.people.vic, 'operations,inbox', { last_event_id: 'nonsense' })
    await stream.next('resync', ({ data }) => data.topic === 'inbox')
    expect(stream.frames.filter(({ event }) => event === 'resync').map(({ data }) => data.topic)).toEqual([
      'operations',
      'inbox',
    ])
    await stream.stop()
  })

  it('sends resync to the followers of an operation for a change too large to be told', async () => {
    const { operation_id } = await p.startOperation(gated())
    const stream = await listen(p.people.vic, `operation:${operation_id},operations,inbox`)
    await stream.next('hello')
    const nodes = Array.from({ length: 1300 }, () => ({
      type: 'node.cancelled',
      actor: ENGINE,
      node_id: 'before',
      data: { pad: 'x'.repeat(100) },
    }))
    const events = [...nodes, { type: 'gate.cancelled', actor: ENGINE, gate_id: 'go', data: {} }]
    const { change_seq } = await p.deps.db.transaction((tx) => stateFacts(tx, operation_id, { events }))
    p.deps.nats.wake('operations')
    await stream.next('operation', ({ data }) => data.change_seq === change_seq)
    await stream.next('resync', ({ data }) => data.topic === 'inbox')
    expect(stream.frames.filter(({ event }) => event === 'resync').map(({ data }) => data.topic)).toEqual([
      `operation:${operation_id}`,
      'inbox',
    ])
    await stream.stop()
  })

  it('follows a log line by line, and reports only its length if that is too much', async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.query(
      `insert into operations.node_attempts (operation_id, node_id, attempt, generation, fence, phase, executor, key) values ($1, 'before', 1, 1, 5, 'running', 'noop', 'k')`,
      [operation_id],
    )
    const add = async (chunk: number, first_seq: number, count: number) => {
      const lines = Array.from({ length: count }, (_, n) => ({
        seq: first_seq + n,
        time: 't',
        stream: 'stdout',
        level: 'info',
        text: `line ${first_seq + n}`,
      }))
      await p.query(
        `insert into operations.log_chunks (operation_id, node_id, attempt, chunk, lines) values ($1, 'before', 1, $2, $3)`,
        [operation_id, chunk, JSON.stringify(lines)],
      )
      await p.query(
        `insert into operations.operation_job_log_index (operation_id, node_id, attempt, chunk, generation, first_seq, last_seq, first_at, last_at, lines, bytes)
         values ($1, 'before', 1, $2, 1, $3, $4, now(), now(), $5, 100)`,
        [operation_id, chunk, first_seq, first_seq + count - 1, count],
      )
    }
    const stream = await listen(p.people.vic, `log:${operation_id}/before/1`)
    await add(0, 1, 2)
    const lines = await stream.next('log')
    expect(lines.data).toMatchObject({ operation_id, node_id: 'before', attempt: 1, from_seq: 1, to_seq: 2 })
    expect(lines.data.lines.map(({ text }: { text: string }) => text)).toEqual(['line 1', 'line 2'])
    await add(1, 3, 300)
    const far = await stream.next('log', ({ data }) => data.to_seq === 302)
    expect(far.data.lines).toBeUndefined()
    await stream.stop()
  })

  it('sends changes of resources', async () => {
    await p.query(`insert into operations.catalog_resources (resource_id, type_key, type_version, name, version, lifecycle_status, labels, annotations, desired_state, observed_state, change_seq)
      values ('r1', 'fleet.host', 1, 'r1', 1, 'active', '{}', '{}', '{}', '{}', nextval('operations.catalog_change_seq'))`)
    const stream = await listen(p.people.vic, 'resource:r1,resource:none')
    expect((await stream.next('hello')).data.refused).toEqual([{ topic: 'resource:none', reason: 'not_found' }])
    await p.query(
      `update operations.catalog_resources set version = 2, change_seq = nextval('operations.catalog_change_seq') where resource_id = 'r1'`,
    )
    const frame = await stream.next('resource')
    expect(frame.data).toMatchObject({ resource_id: 'r1', version: 2, lifecycle_status: 'active' })
    await stream.stop()
  })

  it('ends with the token', async () => {
    const stream = await listen(p.people.vic, 'operations', { lives_s: 2 })
    expect((await stream.next('bye')).data).toEqual({ reason: 'token' })
    await until(() => stream.isEnded())
  })

  it('ends at once when the session is revoked, and no other session does', async () => {
    const other = { ...p.people.vic, session_id: randomUUID() }
    const stream = await listen(p.people.vic, 'operations')
    const staying = await listen(other, 'operations')
    const nc = await connect({ servers: serverUrl('NATS_URL') })
    await until(() => p.deps.nats.get())
    nc.publish(
      prefixed(p.prefix, 'auth.session.revoked.v1'),
      JSON.stringify({ session_id: p.people.vic.session_id, user_id: p.people.vic.id }),
    )
    await nc.flush()
    expect((await stream.next('bye')).data).toEqual({ reason: 'revoked' })
    await until(() => stream.isEnded())
    expect(staying.isEnded()).toBe(false)
    await staying.stop()
    await nc.drain()
  })

  it('refuses a topic of an unknown form alone, and a list without topics or with too many', async () => {
    const unknown = ['colours', 'operation:42', 'log:1/2', `log:${randomUUID()}/a/0`, `resource:${'x'.repeat(400)}`]
    const stream = await listen(p.people.vic, ['me', ...unknown].join())
    expect((await stream.next('hello')).data).toMatchObject({
      topics: ['me'],
      refused: unknown.map((topic) => ({ topic, reason: 'malformed' })),
    })
    await stream.stop()
    for (const topics of [',', Array.from({ length: 51 }, (_, n) => `resource:r${n}`).join()]) {
      const { response, stop } = await listen(p.people.vic, topics)
      expect([topics, response.status]).toEqual([topics, 400])
      await stop()
    }
  })

  it('ends with the first right of its reader that ends', async () => {
    const ends = { ...person('ends', ['viewer', 'operator']), ends: new Date(Date.now() + 3000) }
    Object.assign(p.people, { ends })
    const stream = await listen(ends, 'operations')
    expect((await stream.next('bye')).data).toEqual({ reason: 'shutdown', retry_ms: 100 })
    expect(problem(await p.as(ends).get('/v1/operations'))).toBe('403 policy_denied/permission_missing')
  })

  it('ends if rights have changed while no message could arrive, and no other does', async () => {
    const moved: Person = person('moved', ['viewer'])
    Object.assign(p.people, { moved })
    const stream = await listen(moved, 'operations')
    const staying = await listen(p.people.vic, 'operations')
    moved.version = 2
    await p.deps.nats.get()?.reconnect()
    expect((await stream.next('bye')).data).toEqual({ reason: 'shutdown', retry_ms: 100 })
    expect(staying.isEnded()).toBe(false)
    await staying.stop()
  })

  it('ends instead of being silent if it cannot begin after its greeting', async () => {
    const { fence } = p.deps
    p.deps.fence = () => Promise.reject(new Error('away'))
    const stream = await listen(p.people.vic, 'operations')
    expect((await stream.next('bye')).data).toEqual({ reason: 'shutdown', retry_ms: 1000 })
    await until(() => stream.isEnded())
    p.deps.fence = fence
  })

  it('says good-bye also if its process ends while it begins', async () => {
    const { deps } = p.running[1] as (typeof p.running)[number]
    const { fence } = deps
    const closing = Promise.withResolvers<void>()
    deps.fence = () => closing.promise.then(fence)
    const stream = await listen(p.people.vic, 'operations', { instance: 1 })
    const stopped = p.running[1]?.stop()
    p.running.splice(1)
    closing.resolve()
    expect((await stream.next('bye')).data).toEqual({ reason: 'shutdown', retry_ms: 1000 })
    await stopped
  })

  it('has at most ten for a session, however many open at the same moment', async () => {
    const all = await Promise.all(Array.from({ length: 16 }, () => listenTo(p, p.people.vic, 'me')))
    const statuses = all.map(({ response }) => response.status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(10)
    expect(statuses.filter((status) => status === 503)).toHaveLength(6)
    await Promise.all(all.map((one) => one.stop()))
  })
})
