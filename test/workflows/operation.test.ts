import { eq, sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sweep } from '../../apps/operations/upkeep/sweeper.ts'
import type { PlanNode } from '../../apps/shared/contracts/operations/graph.ts'
import type { OperationCalendar } from '../../apps/shared/data/calendar.ts'
import { brokenLink } from '../../db/operations/facts/state.ts'
import { grantLeases } from '../../db/operations/leases/rows.ts'
import { recordChanges } from '../../db/operations/operations/record.ts'
import { gates, nodes, operation_control } from '../../db/operations/tables/index.ts'
import { until } from '../support/until.ts'
import { createEngine, type Engine, gate, node, type Spec } from './support/engine.ts'
import { startTarget, type Target } from './support/target.ts'

let engine: Engine
let target: Target
beforeAll(async () => {
  engine = await createEngine()
})
afterAll(() => engine.close())
beforeEach(async () => {
  target = await startTarget()
})
afterEach(() => target.close())

const call = (node_id: string, more: Partial<PlanNode> = {}, path = `/${node_id}`): PlanNode =>
  node(node_id, {
    executor: 'http',
    with: { request: { method: 'POST', url: `${target.url}${path}`, body: {} } },
    ...more,
  })
const undo = (node_id: string) => ({
  executor: 'http',
  idempotent: true,
  with: { request: { method: 'POST', url: `${target.url}/undo-${node_id}` } },
})
const stateIs = (operation_id: string, node_id: string, state: string) =>
  until(async () => (await engine.read.states(operation_id))[node_id] === state, { what: `${node_id} is ${state}` })
const approve = (operation_id: string, gate_id: string, more: Parameters<Engine['command']>[4] = {}) =>
  engine.command(
    operation_id,
    'gate_decided',
    { gate_id, round: 1, status: 'approved', digest: '' },
    (tx) =>
      tx
        .update(gates)
        .set({ status: 'approved', approved_digest: sql`digest` })
        .where(sql`operation_id = ${operation_id} and gate_id = ${gate_id} and status = 'waiting'`),
    more,
  )
const pause = (operation_id: string, more: Parameters<Engine['command']>[4] = {}) =>
  engine.command(
    operation_id,
    'pause',
    {},
    (tx) =>
      tx.execute(
        sql`update operations.operation_control set control = 'pause', pause_reason = 'operator' where operation_id = ${operation_id}`,
      ),
    more,
  )
const resume = (operation_id: string) =>
  engine.command(operation_id, 'resume', { acknowledged: [] }, (tx) =>
    tx.execute(
      sql`update operations.operation_control set control = 'run', pause_reason = null where operation_id = ${operation_id}`,
    ),
  )
const cancel = (operation_id: string, mode: 'graceful' | 'compensate' | 'force') =>
  engine.command(operation_id, 'cancel', { mode }, (tx) =>
    tx.execute(
      sql`update operations.operation_control set control = 'cancel', cancel_mode = ${mode} where operation_id = ${operation_id}`,
    ),
  )
const inFlight = async (operation_id: string) =>
  (await engine.client.workflow.getHandle(operation_id).query<{ in_flight: { doing: string }[] }>('state')).in_flight
const outcomeOf = async (command_id: string) =>
  until(async () => {
    const row = await engine.read.command(command_id)
    return ['pending', 'sending', 'delivered'].includes(row.status) ? undefined : row
  })

describe('nodes', () => {
  it('run in dependency order, each effect once, with outputs passed on and an unbroken history', async () => {
    target.answer('/a', () => ({ status: 200, body: { previous: 'v1', secret: 'Bearer s3cret-token' } }))
    const operation_id = await engine.start({
      nodes: [
        call('a', {
          outputs: { previous: '/body/previous', leak: '/body/secret' },
          secrets: { token: 'secret://env/TEST_TOKEN#1' },
          with: {
            headers: { authorization: { $secret: 'token' } },
            request: { method: 'POST', url: `${target.url}/a` },
          },
        }),
        call('b', {
          depends_on: ['a'],
          with: {
            request: { method: 'POST', url: `${target.url}/b`, body: { was: { $from: 'nodes/a/outputs/previous' } } },
          },
        }),
        call('never', { depends_on: ['a'], when: 'nodes["a"].outputs.previous == "v9"' }),
        call('c', { depends_on: ['a'], when: 'nodes["a"].outputs.previous == "v1"' }),
        node('all', { kind: 'barrier', executor: '', depends_on: ['b', 'c', 'never'] }),
      ],
    })
    const end = await engine.ends(operation_id)
    expect(end.status).toBe('succeeded')
    expect(await engine.read.states(operation_id)).toEqual({
      a: 'succeeded',
      b: 'succeeded',
      never: 'skipped',
      c: 'succeeded',
      all: 'succeeded',
    })
    expect(target.paths()[0]).toBe('/a')
    expect(target.paths().slice(1).sort()).toEqual(['/b', '/c'])
    expect(target.effects[0]).toMatchObject({ key: `${operation_id}:a:1`, authorization: 'Bearer s3cret-token' })
    expect(target.effects.find(({ path }) => path === '/b')?.body).toEqual({ was: 'v1' })
    expect((await engine.read.node(operation_id, 'a')).outputs).toEqual({ previous: 'v1', leak: '•••' })
    expect(
      JSON.stringify([await engine.read.timeline(operation_id), await engine.read.attempts(operation_id)]),
    ).not.toContain('s3cret')

    const timeline = await engine.read.timeline(operation_id)
    expect(timeline.map(({ seq }) => Number(seq))).toEqual(timeline.map((_, i) => i + 1))
    const records = (
      await engine.pool.query(
        'select * from operations.operation_evidence_index where operation_id = $1 order by seq',
        [operation_id],
      )
    ).rows
    const row = (await engine.pool.query('select * from operations.operations where operation_id = $1', [operation_id]))
      .rows[0]
    const times = await engine.pool.query(
      `select started_at <= (select min(n.started_at) from operations.nodes n where n.operation_id = o.operation_id) as begins_first,
         ended_at <= updated_at as ends_last from operations.operations o where operation_id = $1`,
      [operation_id],
    )
    expect(times.rows).toEqual([{ begins_first: true, ends_last: true }])
    const chain = records.map((record) => ({ ...record, seq: Number(record.seq) }))
    expect(brokenLink(row.plan_hash, chain, { seq: Number(row.evidence_seq), hash: row.evidence_hash })).toBeUndefined()
    expect(end).toMatchObject({ evidence_head: { seq: Number(row.evidence_seq), hash: row.evidence_hash } })
    expect(
      brokenLink(row.plan_hash, chain.toSpliced(1, 1), { seq: chain.length, hash: row.evidence_hash }),
    ).toMatchObject({ seq: 2 })
  })

  it('retry after a back-off, then hold; a retry of the node reruns its cone', async () => {
    target.answer('/a', (count) => ({ status: count <= 3 ? 503 : 200 }))
    const retry = { max_attempts: 3, initial_s: 0.1, factor: 1, max_s: 1 }
    const operation_id = await engine.start({
      nodes: [call('a', { retry }), call('b', { depends_on: ['a'] }), call('other')],
    })
    await engine.statusIs(operation_id, 'blocked')
    expect(await engine.read.states(operation_id)).toEqual({ a: 'failed', b: 'pending', other: 'succeeded' })
    expect(await engine.read.operation(operation_id)).toMatchObject({
      blocked_on: [{ kind: 'failed_node', id: 'a' }],
      progress: { failed: 1 },
    })
    expect(
      (await engine.read.attempts(operation_id))
        .filter(({ node_id }) => node_id === 'a')
        .map(({ attempt, phase, key }) => [attempt, phase, key]),
    ).toEqual([1, 2, 3].map((attempt) => [attempt, 'failed', `${operation_id}:a:${attempt}`]))
    const { command_id } = await engine.command(
      operation_id,
      'retry_node',
      { node_id: 'a', scope: 'downstream', generations: { a: 2 }, gates: {} },
      (tx) =>
        tx
          .update(nodes)
          .set({ generation: 2, state: 'pending', error: null })
          .where(sql`operation_id = ${operation_id} and node_id = 'a'`),
    )
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    expect((await engine.read.command(command_id)).status).toBe('applied')
    expect(await engine.read.node(operation_id, 'a')).toMatchObject({
      attempt: 4,
      generation: 2,
      state: 'succeeded',
      error: null,
    })
    expect(target.effects.filter(({ path }) => path === '/a')).toMatchObject([{ key: `${operation_id}:a:4` }])
  })

  it('that may have taken effect and cannot be repeated wait for a person', async () => {
    target.answer('/a', () => ({ status: 200, hang: true }))
    const slow = { request: { method: 'POST', url: `${target.url}/a`, timeout_s: 1 } }
    const operation_id = await engine.start({ nodes: [call('a', { idempotent: false, with: slow })] })
    await engine.statusIs(operation_id, 'blocked')
    expect(await engine.read.node(operation_id, 'a')).toMatchObject({ state: 'outcome_unknown', attempt: 1 })
    expect(target.calls).toHaveLength(1)
    await engine.command(operation_id, 'intervene', { type: 'mark_succeeded', node_id: 'a', generation: 2 }, (tx) =>
      tx
        .update(nodes)
        .set({ generation: 2, exception: 'mark_succeeded' })
        .where(sql`operation_id = ${operation_id} and node_id = 'a'`),
    )
    expect((await engine.ends(operation_id)).status).toBe('succeeded_with_exceptions')
  })

  it('that can be repeated are, under the same key and a larger fence', async () => {
    target.answer('/a', (count) => ({ status: 200, hang: count === 1 }))
    const operation_id = await engine.start({
      nodes: [call('a', { with: { request: { method: 'POST', url: `${target.url}/a`, timeout_s: 1 } } })],
    })
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    const [first, second] = target.calls
    expect(second?.key).toBe(first?.key)
    expect(second?.fence).toBeGreaterThan(first?.fence ?? 0)
    expect(
      (await engine.read.attempts(operation_id)).map(({ attempt, phase, fences }) => [attempt, phase, fences.length]),
    ).toEqual([[1, 'succeeded', 2]])
  })

  it('poll until a condition holds without calling twice, and store no secret that the target repeats', async () => {
    target.answer('/drain', () => ({ status: 200, body: { with: 'Bearer s3cret-token' } }))
    target.answer('/status', (count) => ({ status: 200, body: { connections: Math.max(0, 2 - count) } }))
    const poll = {
      request: { method: 'GET', url: `${target.url}/status` },
      until: 'response.body.connections == 0',
      interval_s: 1,
      timeout_s: 20,
    }
    const operation_id = await engine.start({
      nodes: [
        call('drain', {
          outputs: { with: '/body/with' },
          secrets: { token: 'secret://env/TEST_TOKEN#1' },
          with: {
            headers: { authorization: { $secret: 'token' } },
            request: { method: 'POST', url: `${target.url}/drain` },
            poll,
          },
        }),
      ],
    })
    const resume = await until(async () => (await engine.read.attempts(operation_id))[0]?.resume)
    expect(resume).toMatchObject({ raw: { status: 200, body: { with: '•••' } } })
    expect(JSON.stringify(resume)).not.toContain('s3cret')
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    expect(target.calls.map(({ path }) => path)).toEqual(['/drain', '/status', '/status'])
    const { rows } = await engine.pool.query(
      'select lines from operations.log_chunks where operation_id = $1 order by chunk',
      [operation_id],
    )
    expect(
      rows
        .flatMap(({ lines }) => lines)
        .map(({ seq, text }) => [seq, text.replace(/ \(.*/, '').replace(target.url, '')]),
    ).toEqual([
      [1, 'POST /drain answered 200'],
      [2, 'GET /status answered 200'],
      [3, 'GET /status answered 200'],
    ])
  })

  it('continue by their failure policy', async () => {
    for (const path of ['/tolerated', '/skipping']) target.answer(path, () => ({ status: 404 }))
    const operation_id = await engine.start({
      nodes: [
        call('tolerated', { on_failure: 'tolerate' }),
        call('after', { depends_on: ['tolerated'] }),
        call('skipping', { on_failure: 'skip_dependents' }),
        call('skipped', { depends_on: ['skipping'] }),
        call('skipped-too', { depends_on: ['skipped'] }),
        node('batch', {
          kind: 'barrier',
          executor: '',
          depends_on: ['skipped-too', 'after'],
          join: 'settled',
          max_failures: 1,
        }),
      ],
    })
    expect((await engine.ends(operation_id)).status).toBe('succeeded_with_exceptions')
    expect(await engine.read.states(operation_id)).toEqual({
      tolerated: 'failed',
      after: 'succeeded',
      skipping: 'failed',
      skipped: 'skipped',
      'skipped-too': 'skipped',
      batch: 'succeeded',
    })
    expect((await engine.read.operation(operation_id)).progress).toMatchObject({ failed: 2, done: 4 })
  })

  it('that fail with on_failure compensate have everything undone in reverse order', async () => {
    target.answer('/c', () => ({ status: 409 }))
    const operation_id = await engine.start({
      nodes: [
        call('a', { compensate: undo('a') }),
        call('b', { depends_on: ['a'], compensate: undo('b') }),
        call('c', { depends_on: ['b'], compensate: undo('c'), on_failure: 'compensate' }),
      ],
    })
    expect(await engine.ends(operation_id)).toMatchObject({ status: 'failed', end_reason: 'node_failed' })
    expect(target.paths()).toEqual(['/a', '/b', '/undo-b', '/undo-a'])
    expect(target.effects[3]?.key).toBe(`${operation_id}:a:c1`)
    expect(await engine.read.states(operation_id)).toEqual({ a: 'compensated', b: 'compensated', c: 'failed' })
  })
})

describe('the calendar', () => {
  const frozen = (to: Date): OperationCalendar => ({
    windows: {},
    freezes: { launch: { from: '2020-01-01T00:00:00Z', to: to.toISOString(), approvers: [] } },
    asked: null,
    targets: { host: { windows: [], freezes: ['launch'] } },
  })

  it('holds nodes under a freeze and says until when; a cancel still ends it all', async () => {
    const to = new Date(Date.now() + 3_600_000)
    const nodes = [call('free'), call('held', { target_id: 'host' }), call('last', { depends_on: ['held'] })]
    const operation_id = await engine.start({ nodes, calendar: frozen(to) })
    await engine.statusIs(operation_id, 'blocked')
    expect(await engine.read.operation(operation_id)).toMatchObject({
      blocked_on: [{ kind: 'freeze', id: 'launch', until: to.toISOString() }],
    })
    expect(await engine.read.states(operation_id)).toEqual({ free: 'succeeded', held: 'ready', last: 'pending' })
    await cancel(operation_id, 'graceful')
    expect((await engine.ends(operation_id)).status).toBe('cancelled')
    expect(target.paths()).toEqual(['/free'])
  })

  it('releases them when a person overrides the freeze, which is an exception', async () => {
    const nodes = [call('held', { target_id: 'host' })]
    const operation_id = await engine.start({ nodes, calendar: frozen(new Date(Date.now() + 3_600_000)) })
    await engine.statusIs(operation_id, 'blocked')
    await engine.command(operation_id, 'intervene', { type: 'override_freeze', node_id: null }, (tx) =>
      tx.execute(
        sql`update operations.operation_control set calendar = calendar #- '{freezes,launch}' where operation_id = ${operation_id}`,
      ),
    )
    expect((await engine.ends(operation_id)).status).toBe('succeeded_with_exceptions')
    expect(target.paths()).toEqual(['/held'])
  })

  it('holds and releases nodes that have not started when it changes meanwhile', async () => {
    const operation_id = await engine.start({
      nodes: [call('first', { target_id: 'host' }), call('held', { target_id: 'host', depends_on: ['first'] })],
      gates: [gate('go', ['held'])],
    })
    await engine.statusIs(operation_id, 'blocked')
    const change = (calendar: OperationCalendar | null) =>
      engine.command(operation_id, 'calendar_changed', { entry_ids: ['launch'] }, (tx) =>
        tx.update(operation_control).set({ calendar }).where(eq(operation_control.operation_id, operation_id)),
      )
    await change(frozen(new Date(Date.now() + 3_600_000)))
    await approve(operation_id, 'go')
    await until(async () => (await engine.read.operation(operation_id)).blocked_on[0]?.kind === 'freeze')
    expect(target.paths()).toEqual(['/first'])
    await change(null)
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    expect(target.paths()).toEqual(['/first', '/held'])
  })

  it('releases them by itself when the freeze is over', async () => {
    const to = new Date(Date.now() + 3000)
    const nodes = [call('held', { target_id: 'host' }), call('last', { depends_on: ['held'] })]
    const operation_id = await engine.start({ nodes, calendar: frozen(to) })
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    expect(Date.now()).toBeGreaterThanOrEqual(to.getTime())
    expect(target.paths()).toEqual(['/held', '/last'])
  })
})

describe('leases', () => {
  const heldBy = async (resource_id: string) =>
    (
      await engine.pool.query('select operation_id from operations.leases where resource_id = $1', [resource_id])
    ).rows.map((row) => row.operation_id)
  const leases = (resource_id: string) => [{ resource_id, mode: 'exclusive' as const }]
  const stepped = (resource_id: string, more: Partial<Spec> = {}): Spec => ({
    nodes: [call('a'), call('b', { depends_on: ['a'], target_id: resource_id })],
    gates: [gate('go', ['b'], { lease_policy: 'release' })],
    leases: leases(resource_id),
    ...more,
  })

  it('are given back while a gate that releases them waits, and taken again before its nodes start', async () => {
    const operation_id = await engine.start(stepped('one'))
    await until(async () => (await heldBy('one')).length === 0)
    expect(await engine.read.operation(operation_id)).toMatchObject({ blocked_on: [{ kind: 'gate', id: 'go' }] })
    await approve(operation_id, 'go')
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    const types = (await engine.read.timeline(operation_id)).map(({ type }) => type)
    expect(types.filter((type) => type.startsWith('lease.'))).toEqual(['lease.released', 'lease.granted'])
    expect(types.lastIndexOf('lease.granted')).toBeLessThan(types.lastIndexOf('node.succeeded'))
  })

  it('are taken just before the first node if the operation begins later', async () => {
    const not_before = new Date(Date.now() + 3000).toISOString()
    const spec = { nodes: [call('a'), call('b')], leases: leases('late'), lease_state: 'released' as const }
    const operation_id = await engine.start({ ...spec, constraints: { not_before } })
    await engine.statusIs(operation_id, 'queued')
    expect(await heldBy('late')).toEqual([])
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    const events = await engine.read.timeline(operation_id)
    const at = (type: string) => events.findIndex((event) => event.type === type)
    expect(at('lease.granted')).toBeGreaterThan(-1)
    expect(at('lease.granted')).toBeLessThan(at('node.succeeded'))
    expect(target.paths().sort()).toEqual(['/a', '/b'])
    expect((await engine.read.attempts(operation_id)).map(({ attempt }) => attempt)).toEqual([1, 1])
  })

  it('that someone else has taken meanwhile are waited for; the blocking reason says so', async () => {
    const operation_id = await engine.start(stepped('two'))
    await until(async () => (await heldBy('two')).length === 0)
    const later = call('d', { depends_on: ['c'] })
    const other = await engine.start({ nodes: [call('c'), later], gates: [gate('go', ['d'])], leases: leases('two') })
    await stateIs(other, 'c', 'succeeded')
    await approve(operation_id, 'go')
    await until(async () => (await engine.read.operation(operation_id)).blocked_on[0]?.kind === 'lease')
    expect(await grantLeases(engine.db, { deadline_s: 300 })).toBe(0)
    await cancel(other, 'graceful')
    await engine.ends(other)
    expect(await grantLeases(engine.db, { deadline_s: 300 })).toBe(1)
    expect(await engine.sendPending(operation_id)).toEqual(['lease_granted'])
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    expect(target.paths()).toEqual(['/a', '/c', '/b'])
  })

  it('are free while gates hold back everything, and kept at the same gate once something has begun', async () => {
    target.answer('/a', () => ({ status: 422 }))
    const nodes = [call('a'), call('b')]
    const operation_id = await engine.start({ nodes, gates: [gate('go', ['a', 'b'])], leases: leases('entry') })
    await until(async () => (await heldBy('entry')).length === 0)
    const types = async () => (await engine.read.timeline(operation_id)).map(({ type }) => type)
    await approve(operation_id, 'go')
    await until(async () => {
      const seen = await types()
      return seen.includes('node.succeeded') && seen.includes('node.failed')
    })
    expect((await types()).indexOf('lease.granted')).toBeLessThan((await types()).indexOf('node.succeeded'))
    const again = { node_id: 'a', scope: 'node', generations: { a: 2 }, gates: { go: { status: 'armed', round: 2 } } }
    await engine.command(operation_id, 'retry_node', again as never, async (tx) => {
      await tx.execute(sql`update operations.nodes set state = 'pending', generation = 2
        where operation_id = ${operation_id} and node_id = 'a'`)
      await tx.execute(sql`update operations.gates set status = 'armed', round = 2, approved_digest = null
        where operation_id = ${operation_id} and gate_id = 'go'`)
    })
    await until(async () => (await engine.read.gate(operation_id, 'go')).status === 'waiting')
    await engine.statusIs(operation_id, 'blocked')
    expect(await heldBy('entry')).toEqual([operation_id])
    await cancel(operation_id, 'graceful')
    await engine.ends(operation_id)
    expect((await types()).filter((type) => type === 'lease.released')).toHaveLength(1)
  })

  it('are taken again although a target has moved: its claim waits until the watch has pinned it, or paused', async () => {
    await engine.db.execute(sql`
      insert into operations.catalog_resources (resource_id, type_key, type_version, name, version, lifecycle_status, labels, desired_state, observed_state)
      values ('three', 't', 1, 'three', 5, 'active', '{}', '{}', '{}')`)
    const operation_id = await engine.start(stepped('three', { pins: [{ resource_id: 'three', version: 4 }] }))
    await until(async () => (await heldBy('three')).length === 0)
    await approve(operation_id, 'go')
    await until(async () => (await engine.read.operation(operation_id)).blocked_on[0]?.kind === 'catalog')
    expect(await heldBy('three')).toEqual([operation_id])
    expect(target.paths()).toEqual(['/a'])
    await engine.pool.query(`update operations.operations set pins = '{"three": 5}' where operation_id = $1`, [
      operation_id,
    ])
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    const types = (await engine.read.timeline(operation_id)).map(({ type }) => type)
    expect(types).not.toContain('operation.drifted')
  })

  it('that a claim finds missing are taken again; an undo needs them too', async () => {
    const nodes = [call('a', { compensate: undo('a') }), call('b', { depends_on: ['a'] })]
    const spec = stepped('four', { nodes, gates: [gate('go', ['b'], { lease_policy: 'release' })] })
    const operation_id = await engine.start(spec)
    await until(async () => (await heldBy('four')).length === 0)
    await cancel(operation_id, 'compensate')
    expect((await engine.ends(operation_id)).status).toBe('cancelled')
    expect(target.paths()).toEqual(['/a', '/undo-a'])
    const held = await engine.start({
      nodes: [call('x'), call('y', { depends_on: ['x'] })],
      gates: [gate('go', ['y'])],
      leases: leases('four'),
    })
    await engine.statusIs(held, 'blocked')
    await engine.control(held, { lease_state: 'given_back' })
    await approve(held, 'go')
    expect((await engine.ends(held)).status).toBe('succeeded')
  })
})

describe('gates', () => {
  it('open when their frontier is reached, and release the node when approved', async () => {
    const operation_id = await engine.start({
      nodes: [call('a'), call('b', { depends_on: ['a'] })],
      gates: [gate('go', ['b'])],
    })
    await engine.statusIs(operation_id, 'blocked')
    expect(await engine.read.gate(operation_id, 'go')).toMatchObject({ status: 'waiting', round: 1, consumed_at: null })
    expect(await engine.read.states(operation_id)).toEqual({ a: 'succeeded', b: 'gated' })
    expect(target.paths()).toEqual(['/a'])
    const shows = (OpStatus: string, WaitingGates: string[]) =>
      until(
        async () => {
          const { searchAttributes } = await engine.client.workflow.getHandle(operation_id).describe()
          return (
            JSON.stringify([searchAttributes.OpStatus, searchAttributes.WaitingGates ?? []]) ===
            JSON.stringify([[OpStatus], WaitingGates])
          )
        },
        { what: `the engine shows ${OpStatus}` },
      )
    await shows('blocked', ['go'])
    await approve(operation_id, 'go')
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    await shows('succeeded', [])
    expect((await engine.read.gate(operation_id, 'go')).consumed_at).not.toBeNull()
  })

  it('of any number and length can wait at once: the engine shows as many as it can hold', async () => {
    const ids = Array.from({ length: 20 }, (_, i) => `${'g'.repeat(107)}-${10 + i}`)
    const operation_id = await engine.start({
      nodes: ids.map((_, i) => call(`n${i}`)),
      gates: ids.map((id, i) => gate(id, [`n${i}`])),
    })
    await engine.statusIs(operation_id, 'blocked')
    const shown = await until(async () => {
      const { searchAttributes, status } = await engine.client.workflow.getHandle(operation_id).describe()
      expect(status.name).toBe('RUNNING')
      return searchAttributes.WaitingGates
    })
    expect(shown).toEqual(ids.slice(0, 17))
    await cancel(operation_id, 'graceful')
    expect((await engine.ends(operation_id)).status).toBe('cancelled')
  })

  it('that approved other values than a drift left ask again, also for later nodes', async () => {
    const operation_id = await engine.start({
      nodes: [call('a'), call('b', { depends_on: ['a'] })],
      gates: [gate('entry', ['a']), gate('go', ['b'])],
    })
    await until(async () => (await engine.read.gate(operation_id, 'entry')).status === 'waiting')
    await approve(operation_id, 'entry')
    await stateIs(operation_id, 'b', 'gated')
    await pause(operation_id)
    await engine.statusIs(operation_id, 'paused')
    const body = {
      acknowledged: ['b'],
      gates: { entry: { status: 'armed' as const, round: 2, deadline_at: null } },
      guarding: { entry: ['a', 'b'] },
    }
    await engine.command(operation_id, 'resume', body, async (tx) => {
      await tx.execute(
        sql`update operations.operation_control set control = 'run', pause_reason = null where operation_id = ${operation_id}`,
      )
      await tx.execute(
        sql`update operations.nodes set gate_ids = '{go,entry}' where operation_id = ${operation_id} and node_id = 'b'`,
      )
      await tx.execute(sql`update operations.gates set status = 'armed', round = 2, consumed_at = null, approved_digest = null,
        guards = '{a,b}' where operation_id = ${operation_id} and gate_id = 'entry'`)
    })
    await until(async () => (await engine.read.gate(operation_id, 'entry')).status === 'waiting')
    await approve(operation_id, 'go')
    await until(async () => (await engine.read.operation(operation_id)).blocked_on[0]?.id === 'entry')
    expect(target.paths()).toEqual(['/a'])
    await engine.command(
      operation_id,
      'gate_decided',
      { gate_id: 'entry', round: 2, status: 'approved', digest: '' },
      (tx) =>
        tx.execute(sql`update operations.gates set status = 'approved', approved_digest = digest
          where operation_id = ${operation_id} and gate_id = 'entry'`),
    )
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    expect(target.paths()).toEqual(['/a', '/b'])
  })

  it('ask the next groups if no one has decided in time, and keep waiting for their deadline', async () => {
    const escalation = [
      { after_s: 1, add_groups: ['leads'] },
      { after_s: 2, add_groups: ['directors'] },
    ]
    const operation_id = await engine.start({ nodes: [call('a')], gates: [gate('go', ['a'], { escalation })] })
    await until(async () => (await engine.read.gate(operation_id, 'go')).escalation_level === 2, {
      timeout_ms: 60_000,
      what: 'two levels of escalation',
    })
    const waiting = await engine.read.gate(operation_id, 'go')
    expect(waiting).toMatchObject({ status: 'waiting', round: 1, next_escalation_at: null })
    const told = (await engine.read.timeline(operation_id)).filter(({ type }) => type === 'gate.escalated')
    expect(told.map(({ data }) => data.level)).toEqual([1, 2])
    await approve(operation_id, 'go')
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
  })

  it('expire by the clock of the rows, and their nodes fail as rejected', async () => {
    const operation_id = await engine.start({ nodes: [call('a')], gates: [gate('go', ['a'], { deadline_s: 1 })] })
    await stateIs(operation_id, 'a', 'failed')
    expect(await engine.read.gate(operation_id, 'go')).toMatchObject({ status: 'expired', round: 1 })
    expect((await engine.read.node(operation_id, 'a')).error).toMatchObject({ class: 'rejected' })
    expect(target.calls).toEqual([])
    await cancel(operation_id, 'graceful')
    expect((await engine.ends(operation_id)).status).toBe('cancelled')
  })

  it('hold their nodes if the policy says so; a retry of one opens the gate again', async () => {
    const operation_id = await engine.start({
      nodes: [call('a'), call('b')],
      gates: [gate('go', ['a', 'b'], { deadline_s: 1, on_reject: 'hold' })],
    })
    await until(async () => (await engine.read.gate(operation_id, 'go')).status === 'expired')
    expect(await engine.read.states(operation_id)).toEqual({ a: 'gated', b: 'gated' })
    const own = sql`operation_id = ${operation_id}`
    await engine.command(
      operation_id,
      'retry_node',
      { node_id: 'a', scope: 'node', generations: { a: 2 }, gates: { go: { status: 'armed', round: 2 } } },
      async (tx) => {
        await tx.update(nodes).set({ generation: 2, state: 'pending' }).where(sql`${own} and node_id = 'a'`)
        await tx
          .update(gates)
          .set({ status: 'armed', round: 2, policy: sql`policy || '{"deadline_s": 600}'` as never })
          .where(own)
      },
    )
    await until(async () => (await engine.read.gate(operation_id, 'go')).status === 'waiting')
    expect(target.calls).toEqual([])
    await engine.command(
      operation_id,
      'gate_decided',
      { gate_id: 'go', round: 2, status: 'approved', digest: '' },
      (tx) => tx.update(gates).set({ status: 'approved', approved_digest: sql`digest` }).where(own),
    )
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
  })

  it('follow their policy on silence: it approves only low risk, or keeps waiting', async () => {
    const start = (on_timeout: 'approve' | 'hold', risk_level: 'low' | 'high') =>
      engine.start({ nodes: [call('a')], gates: [gate('go', ['a'], { deadline_s: 1, on_timeout })], risk_level })
    const low = await start('approve', 'low')
    expect((await engine.ends(low)).status).toBe('succeeded')
    expect(await engine.read.gate(low, 'go')).toMatchObject({ status: 'approved', decided_by: { kind: 'system' } })
    target.calls.length = 0
    const high = await start('approve', 'high')
    await stateIs(high, 'a', 'failed')
    expect(await engine.read.gate(high, 'go')).toMatchObject({ status: 'expired', approved_digest: null })
    const held = await start('hold', 'high')
    await until(
      async () =>
        (await engine.read.gate(held, 'go')).deadline_at === null &&
        (await engine.read.gate(held, 'go')).status === 'waiting',
    )
    await until(async () =>
      (await engine.read.timeline(held)).some(
        ({ type, data }) => type === 'gate.waiting' && data.on_timeout === 'hold',
      ),
    )
    expect(target.calls).toEqual([])
    await approve(held, 'go')
    expect((await engine.ends(held)).status).toBe('succeeded')
    await cancel(high, 'graceful')
    await engine.ends(high)
  })

  it('an approval that comes after its time is undone visibly', async () => {
    const operation_id = await engine.start({ nodes: [call('a')], gates: [gate('go', ['a'])] })
    await engine.statusIs(operation_id, 'blocked')
    const late = await approve(operation_id, 'go', { not_after: new Date(Date.now() - 1000).toISOString() })
    expect((await outcomeOf(late.command_id)).status).toBe('expired')
    expect(await engine.read.gate(operation_id, 'go')).toMatchObject({
      status: 'waiting',
      round: 2,
      approved_digest: null,
    })
    expect(target.calls).toEqual([])
    await cancel(operation_id, 'graceful')
    await engine.ends(operation_id)
  })
})

describe('control', () => {
  it('a pause holds from the moment it is accepted, before the engine has received it', async () => {
    const operation_id = await engine.start({
      nodes: [call('a'), call('b', { depends_on: ['a'] })],
      gates: [gate('go', ['b'])],
    })
    await engine.statusIs(operation_id, 'blocked')
    const approved = await approve(operation_id, 'go', { send: false })
    const paused = await pause(operation_id, { send: false })
    await approved.send()
    // The approval has arrived, the pause has not: the claim refuses what the reducer dispatches.
    await until(async () => (await inFlight(operation_id)).some(({ doing }) => doing === 'parked'), {
      what: 'the node is parked',
    })
    expect(target.paths()).toEqual(['/a'])
    await paused.send()
    await engine.statusIs(operation_id, 'paused')
    await resume(operation_id)
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    expect(await engine.read.attempts(operation_id)).toMatchObject([
      { node_id: 'a' },
      { node_id: 'b', attempt: 1, phase: 'succeeded' },
    ])
  })

  it('paused before its time has not started; until then it says when it may start', async () => {
    const not_before = new Date(Date.now() + 3_600_000).toISOString()
    const operation_id = await engine.start({ nodes: [node('a')], constraints: { not_before } })
    const waits = { status: 'queued', blocked_on: [{ kind: 'not_before', until: not_before }] }
    const isQueued = () =>
      until(async () =>
        expect
          .objectContaining(waits.blocked_on[0])
          .asymmetricMatch((await engine.read.operation(operation_id)).blocked_on[0]),
      )
    await isQueued()
    await pause(operation_id)
    await engine.statusIs(operation_id, 'paused')
    await resume(operation_id)
    await isQueued()
    expect(await engine.read.operation(operation_id)).toMatchObject({ ...waits, started_at: null })
    const types = (await engine.read.timeline(operation_id)).map(({ type }) => type)
    expect(types).not.toContain('operation.started')
  })

  it('paused means that no node is in flight and none starts until the resume', async () => {
    const operation_id = await engine.start({
      nodes: [node('slow', { with: { delay_ms: 800 } }), call('b', { depends_on: ['slow'] })],
    })
    await stateIs(operation_id, 'slow', 'running')
    await pause(operation_id)
    expect((await engine.read.operation(operation_id)).status).toBe('pausing')
    await engine.statusIs(operation_id, 'paused')
    expect(await engine.read.states(operation_id)).toMatchObject({ slow: 'succeeded', b: 'ready' })
    expect(target.calls).toEqual([])
    await resume(operation_id)
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    expect(target.paths()).toEqual(['/b'])
  })

  it('a graceful cancel lets running nodes end and starts no more', async () => {
    const operation_id = await engine.start({
      nodes: [node('slow', { with: { delay_ms: 800 } }), call('b', { depends_on: ['slow'] })],
    })
    await stateIs(operation_id, 'slow', 'running')
    await cancel(operation_id, 'graceful')
    expect(await engine.ends(operation_id)).toMatchObject({ status: 'cancelled' })
    expect(await engine.read.states(operation_id)).toEqual({ slow: 'succeeded', b: 'cancelled' })
    expect(target.calls).toEqual([])
  })

  it('a report of an earlier pause that is written late does not pause an operation with an attempt in flight', async () => {
    target.answer('/slow', () => ({ status: 200, hang: true }))
    const operation_id = await engine.start({ nodes: [call('slow')] })
    await stateIs(operation_id, 'slow', 'running')
    await engine.control(operation_id, { control: 'pause' })
    const report = { total: 1, done: 0, running: 0, failed: 0, waiting: 0, open_gates: 0, blocked_on: [] }
    await recordChanges(
      engine.db,
      operation_id,
      { record_seq: 1000, changes: [], report: { ...report, engine_status: 'paused' } },
      { namespace: 'default', workflow_id: operation_id, run_id: '' },
    )
    expect((await engine.read.operation(operation_id)).status).toBe('pausing')
    await engine.client.workflow.getHandle(operation_id).terminate()
  })

  it('ends although the command that its end waited for was never sent and is withdrawn', async () => {
    const operation_id = await engine.start({ nodes: [node('first', { with: { delay_ms: 1000 } })] })
    await stateIs(operation_id, 'first', 'running')
    const more = { type: 'set_limits', node_id: null, payload: { max_parallel: 2 } } as const
    const { command_id } = await engine.command(operation_id, 'intervene', more, undefined, { send: false })
    const handle = engine.client.workflow.getHandle(operation_id)
    await until(async () => {
      const { events } = await handle.fetchHistory()
      const asked = events?.find(
        (e) => e.activityTaskScheduledEventAttributes?.activityType?.name === 'close_operation',
      )
      const answers = events?.map((e) => String(e.activityTaskCompletedEventAttributes?.scheduledEventId)) ?? []
      return asked !== undefined && answers.includes(String(asked.eventId))
    })
    await engine.pool.query(
      `update operations.operation_commands set not_after = clock_timestamp() - interval '1 s' where command_id = $1`,
      [command_id],
    )
    await sweep(engine.db)
    expect((await engine.read.command(command_id)).status).toBe('withdrawn')
    await engine.sendPending(operation_id)
    expect(await engine.ends(operation_id)).toMatchObject({ status: 'succeeded' })
  })

  it('a forced cancel tells attempts to stop and closes them', async () => {
    const operation_id = await engine.start({ nodes: [node('slow', { with: { delay_ms: 50_000 } })] })
    await stateIs(operation_id, 'slow', 'running')
    await cancel(operation_id, 'graceful')
    await cancel(operation_id, 'force')
    expect((await engine.ends(operation_id)).status).toBe('cancelled')
    expect(['failed', 'outcome_unknown']).toContain((await engine.read.states(operation_id)).slow)
  })

  it('a cancel made in the engine is a command like any other', async () => {
    const operation_id = await engine.start({ nodes: [call('a')], gates: [gate('go', ['a'])] })
    await engine.statusIs(operation_id, 'blocked')
    await engine.client.workflow.getHandle(operation_id).cancel()
    expect(await engine.ends(operation_id)).toMatchObject({ status: 'cancelled', end_reason: 'cancelled_in_engine' })
    expect((await engine.read.gate(operation_id, 'go')).status).toBe('cancelled')
  })

  it('a cancel by the engine takes back a command that its end waits for, and the operation still ends', async () => {
    const operation_id = await engine.start({ nodes: [node('a', { with: { delay_ms: 1000 } })] })
    const unsent = await engine.command(operation_id, 'node_signal', { name: 'x' }, async () => {}, { send: false })
    await until(async () => (await engine.read.timeline(operation_id)).some(({ type }) => type === 'node.succeeded'))
    await engine.client.workflow.getHandle(operation_id).cancel()
    await until(async () => (await engine.read.command(unsent.command_id)).status === 'superseded')
    await engine.sendPending(operation_id)
    expect(await engine.ends(operation_id)).toMatchObject({ status: 'cancelled', end_reason: 'cancelled_in_engine' })
  })

  it('the deadline of the operation cancels it', async () => {
    const operation_id = await engine.start({ nodes: [call('a')], gates: [gate('go', ['a'])], deadline_s: 2 })
    expect(await engine.ends(operation_id)).toMatchObject({ status: 'timed_out', end_reason: 'deadline' })
  })

  it('the deadline does not cancel an operation that has more time by its rows, before or after the engine knows', async () => {
    const operation_id = await engine.start({ nodes: [call('a')], gates: [gate('go', ['a'])], deadline_s: 2 })
    await engine.statusIs(operation_id, 'blocked')
    const body = { type: 'extend_deadline', node_id: null, payload: { add_s: 3600 } } as const
    const more = await engine.command(operation_id, 'intervene', body, async () => {}, { send: false })
    const asked = () =>
      engine.pool.query(
        `select from operations.operations where operation_id = $1 and record_result #>> '{control,seq}' = $2`,
        [operation_id, String(more.seq)],
      )
    await until(async () => (await asked()).rowCount === 1, { what: 'the engine asks to cancel' })
    await more.send()
    await until(async () => (await engine.read.command(more.command_id)).status === 'applied')
    await approve(operation_id, 'go')
    expect(await engine.ends(operation_id)).toMatchObject({ status: 'succeeded' })
  })

  it('more time from before the engine has the graph counts once', async () => {
    const input = await engine.prepare({ nodes: [call('a')], gates: [gate('go', ['a'])], deadline_s: 3600 })
    const { operation_id } = input
    const body = { type: 'extend_deadline', node_id: null, payload: { add_s: 3600 } } as const
    const longer = sql`update operations.operations set deadline_at = deadline_at + interval '1 h' where operation_id = ${operation_id}`
    const more = await engine.command(operation_id, 'intervene', body, (tx) => tx.execute(longer), { send: false })
    const query = `select extract(epoch from deadline_at)::float8 as at from operations.operations where operation_id = $1`
    const deadline = async () => (await engine.pool.query<{ at: number }>(query, [operation_id])).rows[0]?.at ?? 0
    const decided = await deadline()
    await engine.launch(input)
    await more.send()
    await engine.statusIs(operation_id, 'blocked')
    await pause(operation_id)
    await engine.statusIs(operation_id, 'paused')
    await resume(operation_id)
    await until(async () => (await deadline()) !== decided, { what: 'the pause has moved the deadline' })
    expect((await deadline()) - decided).toBeLessThan(600)
    await engine.client.workflow.getHandle(operation_id).terminate()
  })

  it('a start after its deadline never happens', async () => {
    const input = await engine.prepare({ nodes: [call('a')] })
    input.start.not_after = new Date(Date.now() - 1000).toISOString()
    await engine.launch(input)
    expect(await engine.ends(input.operation_id)).toMatchObject({ status: 'cancelled', end_reason: 'start_withdrawn' })
    expect(await engine.read.operation(input.operation_id)).toMatchObject({
      status: 'cancelled',
      end_reason: 'start_withdrawn',
    })
    expect(
      (await engine.pool.query('select status, operation_id from operations.plans where plan_id = $1', [input.plan_id]))
        .rows[0],
    ).toEqual({ status: 'ready', operation_id: null })
    expect(target.calls).toEqual([])
  })

  it('a start that was withdrawn and reaches the engine all the same leaves the end as it was', async () => {
    const input = await engine.prepare({ nodes: [call('a')], gates: [gate('go', ['a'])] })
    const { operation_id } = input
    await engine.pool.query(
      `update operations.operation_commands set status = 'pending', not_after = clock_timestamp() - interval '1 s' where operation_id = $1`,
      [operation_id],
    )
    await sweep(engine.db)
    const withdrawn = await engine.read.timeline(operation_id)
    input.start.not_after = new Date(Date.now() - 1000).toISOString()
    await engine.launch(input)
    expect(await engine.ends(operation_id)).toMatchObject({ status: 'cancelled', end_reason: 'start_withdrawn' })
    expect(await engine.read.timeline(operation_id)).toEqual(withdrawn)
    expect(await engine.read.operation(operation_id)).toMatchObject({ status: 'cancelled' })
  })

  it('a command sent twice is carried out once, and no operation ends before a pending one', async () => {
    const operation_id = await engine.start({ nodes: [call('a')], gates: [gate('go', ['a'])] })
    await engine.statusIs(operation_id, 'blocked')
    const unsent = await engine.command(operation_id, 'node_signal', { name: 'late' }, async () => {}, { send: false })
    const approved = await approve(operation_id, 'go', { send: false })
    // Out of order the later one counts and the earlier one is old; the relay never does this to a command it promised.
    await unsent.send()
    await approved.send()
    await approved.send()
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    expect(target.effects).toHaveLength(1)
    const applied = (await engine.read.timeline(operation_id)).filter(({ type }) => type === 'command.applied')
    expect(new Set(applied.map(({ command_id }) => command_id)).size).toBe(applied.length)
  })

  it('the operation waits for an accepted command before it ends', async () => {
    const operation_id = await engine.start({ nodes: [node('slow', { with: { delay_ms: 500 } })] })
    await stateIs(operation_id, 'slow', 'running')
    const paused = await pause(operation_id, { send: false })
    await until(
      async () =>
        (
          await engine.client.workflow
            .getHandle(operation_id)
            .query<{ stage: string; counts: Record<string, number> }>('state')
        ).counts.succeeded === 1,
    )
    await paused.send()
    await engine.statusIs(operation_id, 'paused')
    await resume(operation_id)
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
  })
})
