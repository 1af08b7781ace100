import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createReporter } from '../../apps/cli/agent/report.ts'
import { tellUntold } from '../../apps/operations/calendar/freezes.ts'
import { createDriftWatch } from '../../apps/operations/upkeep/drift.ts'
import { sweep } from '../../apps/operations/upkeep/sweeper.ts'
import type { Work } from '../../apps/shared/contracts/engine/executions.ts'
import { expireArtifacts } from '../../db/operations/agents/artifacts.ts'
import { pruneAnswers } from '../../db/operations/agents/results.ts'
import { isDescribed } from './support/described.ts'
import { gated, must, type Platform, startPlatform } from './support/platform.ts'
import { operationOn } from './support/targets.ts'

let p: Platform
beforeAll(async () => {
  p = await startPlatform()
})
afterAll(() => p.stop())

const signals = (operation_id: string) => `/internal/v1/workflow-signals/${operation_id}`

describe('signals of control planes', () => {
  it('are commands like any other, once per signal_id', async () => {
    const { operation_id } = await p.startOperation(gated())
    const plane = p.service('demo-control-plane')
    const signal = { signal_id: randomUUID(), type: 'pause', reason: 'rack maintenance' }
    expect(await plane.post(signals(operation_id), signal)).toMatchObject({
      status: 202,
      body: { command_id: signal.signal_id, status: 'accepted', duplicate: false },
    })
    expect(await plane.post(signals(operation_id), signal)).toMatchObject({ status: 202, body: { duplicate: true } })
    expect(await plane.post(signals(operation_id), { ...signal, reason: 'another' })).toMatchObject({
      status: 422,
      body: { category: 'validation_error', code: 'idempotency_key_reused' },
    })
    expect(await plane.post(signals(operation_id), { ...signal, signal_id: randomUUID() })).toMatchObject({
      status: 409,
      body: { category: 'invalid_state_transition', code: 'already_paused' },
    })
    const { body } = await p.as('vic').get(`/v1/operations/${operation_id}/timeline?types=operation.pausing`)
    expect(body.events).toMatchObject([
      { actor: { kind: 'service', id: 'svc:demo-control-plane' }, reason: 'rack maintenance' },
    ])
    expect((await plane.post(signals(operation_id), { signal_id: randomUUID(), type: 'resume' })).status).toBe(202)
    expect(
      (
        await plane.post(signals(operation_id), {
          signal_id: randomUUID(),
          type: 'node_signal',
          body: { name: 'ready' },
        })
      ).status,
    ).toBe(202)
    expect(
      (
        await plane.post(signals(operation_id), {
          signal_id: randomUUID(),
          type: 'cancel',
          body: { mode: 'compensate' },
        })
      ).status,
    ).toBe(202)
  })

  it('pause operations whose effect would differ from the plan, and no others; their gates ask again', async () => {
    await p.query(
      `insert into operations.catalog_resources (resource_id, type_key, type_version, name, version, lifecycle_status, labels, desired_state, observed_state)
       values ('moved', 't', 1, 'moved', 2, 'active', '{}', '{"delay": 1}', '{}')`,
    )
    const { operation_id } = await p.startOperation({
      nodes: [
        { node_id: 'before', executor: 'noop', with: {} },
        {
          node_id: 'behind',
          executor: 'noop',
          with: { delay_ms: { $from: 'target/desired_state/delay' } },
          target_id: 'moved',
          depends_on: ['before'],
        },
      ],
      gates: [
        { gate_id: 'entry', policy: {}, guards: ['before'] },
        { gate_id: 'go', policy: {}, guards: ['behind'] },
      ],
    })
    const plane = p.service('demo-control-plane')
    const drift = (...resource_ids: string[]) =>
      plane.post(signals(operation_id), { signal_id: randomUUID(), type: 'catalog_drift', body: { resource_ids } })
    const moved = `update operations.catalog_resources set version = $1, desired_state = jsonb_build_object('delay', $2::int),
      change_seq = nextval('operations.catalog_change_seq') where resource_id = 'moved'`
    const moves = (version: number, delay: number) => p.query(moved, [version, delay])
    const row = async () =>
      (
        await p.query(
          `select control, pause_reason, pins from operations.operation_control join operations.operations using (operation_id)
           where operation_id = $1`,
          [operation_id],
        )
      )[0]
    const watch = createDriftWatch(p.deps)
    expect(await drift('moved', 'unknown')).toMatchObject({ status: 202, body: { status: 'applied' } })
    // A version that changes without a value is pinned again, and asks no one; the operation's own writes are no drift.
    await moves(3, 1)
    expect(await watch()).toBe(0)
    expect(await row()).toEqual({ control: 'run', pause_reason: null, pins: { moved: 3 } })
    const own = (version: number | null) =>
      p.query('update operations.resource_operation_index set version_to = $2 where operation_id = $1', [
        operation_id,
        version,
      ])
    await moves(4, 9)
    await own(4)
    expect(await watch()).toBe(0)
    await own(null)
    // Both gates have approved the earlier values; one of them has already let its node start.
    await p.query(
      `update operations.gates set status = 'approved', approved_digest = digest,
         consumed_at = case gate_id when 'entry' then clock_timestamp() end where operation_id = $1`,
      [operation_id],
    )
    await moves(5, 20)
    expect(await watch()).toBe(1)
    expect(await watch()).toBe(0)
    expect(await row()).toEqual({ control: 'pause', pause_reason: 'catalog_drift', pins: { moved: 3 } })
    const { body } = await p.as('vic').get(`/v1/operations/${operation_id}/timeline?types=operation.drifted`)
    expect(body.events).toMatchObject([{ actor: { kind: 'system' }, data: { node_ids: ['behind'] } }])

    const resume = (acknowledge_drift: boolean, more = {}) =>
      p.as('olga').post(`/v1/operations/${operation_id}/resume`, { reason: 'seen', acknowledge_drift, ...more })
    expect(await resume(false)).toMatchObject({ status: 409, body: { code: 'drift_unacknowledged' } })
    expect(await resume(true, { dry_run: true })).toMatchObject({
      status: 200,
      body: { effect: { drifted: ['behind'], rearmed_gates: ['entry', 'go'] } },
    })
    expect((await resume(true)).status).toBe(202)
    expect(await row()).toEqual({ control: 'run', pause_reason: null, pins: { moved: 5 } })
    expect((await p.as('vic').get(`/v1/operations/${operation_id}/gates`)).body.items).toMatchObject([
      { gate_id: 'entry', status: 'armed', round: 2, guards: ['before', 'behind'] },
      { gate_id: 'go', status: 'waiting', round: 2, guards: ['behind'] },
    ])
    const { subject } = (await p.as('vic').get(`/v1/operations/${operation_id}/gates/go`)).body
    expect(subject.releases).toMatchObject([{ node_id: 'behind', inputs: { delay_ms: 20 } }])
    const [told] = await p.query(
      `select payload from operations.operation_commands where operation_id = $1 and kind = 'resume'`,
      [operation_id],
    )
    expect(told?.payload).toMatchObject({
      acknowledged: ['behind'],
      gates: { entry: { status: 'armed', round: 2 }, go: { status: 'waiting', round: 2 } },
      guarding: { entry: ['before', 'behind'] },
    })
    await moves(6, 20)
    expect(await watch()).toBe(0)
    // Its number is drawn first and committed last.
    const late = await p.deps.pool.connect()
    await late.query('begin')
    await late.query(moved, [7, 30])
    await p.query(
      `insert into operations.catalog_resources (resource_id, type_key, type_version, name, version, lifecycle_status, labels, desired_state, observed_state, change_seq)
       values ('other', 't', 1, 'other', 1, 'active', '{}', '{}', '{}', nextval('operations.catalog_change_seq'))`,
    )
    expect(await watch()).toBe(0)
    await late.query('commit')
    late.release()
    expect(await watch()).toBe(1)
    await p.query(`delete from operations.catalog_resources where resource_id in ('moved', 'other')`)
  })

  it('answer gates of external checks, which people cannot', async () => {
    const people = await p.startOperation(gated())
    await p.openGate(people.operation_id, 'go')
    const plane = p.service('demo-control-plane')
    const checking = (service: string) => {
      const [nodes, gates] = [gated().nodes, gated().gates]
      return { nodes, gates: gates.map((g) => ({ ...g, policy: { check: { service, timeout_s: 600 } } })) }
    }
    const { operation_id } = await p.startOperation(checking('demo-control-plane'))
    await p.openGate(operation_id, 'go')
    const other = await p.startOperation(checking('change-advisory'))
    await p.openGate(other.operation_id, 'go')
    const check = (body: Record<string, unknown>, of = operation_id) =>
      plane.post(signals(of), {
        signal_id: randomUUID(),
        type: 'external_check_result',
        body: { gate_id: 'go', round: 1, ...body },
      })
    for (const another of [people.operation_id, other.operation_id])
      expect(await check({ verdict: 'passed' }, another)).toMatchObject({ status: 403, body: { code: 'not_eligible' } })
    const view = (await p.as('vic').get(`/v1/operations/${operation_id}/gates/go`)).body
    expect(view).toMatchObject({ kind: 'external_check', policy: { check: { service: 'demo-control-plane' } } })
    expect(
      await p.as('eva').post(`/v1/operations/${operation_id}/gates/go/approve`, await p.seen(operation_id, 'go')),
    ).toMatchObject({ status: 403, body: { code: 'not_eligible' } })
    expect((await check({ verdict: 'running', summary: 'half way' })).status).toBe(202)
    expect((await check({ verdict: 'passed' })).status).toBe(202)
    expect(await check({ verdict: 'failed' })).toMatchObject({
      status: 409,
      body: { category: 'gate_not_waiting', code: 'already_decided' },
    })
    expect((await p.as('vic').get(`/v1/operations/${operation_id}/gates/go`)).body).toMatchObject({
      status: 'approved',
      decided: { by: { kind: 'service' } },
    })
    // If the service stays away, break glass works, but only for authorized people.
    const path = `/v1/operations/${other.operation_id}/gates/go`
    const broken = { ...(await p.seen(other.operation_id, 'go')), break_glass: { reason: 'the service is away' } }
    expect((await p.as('eva').post(`${path}/approve`, broken)).status).toBe(403)
    const offered = (await p.as('both').get(path)).body.allowed_actions as { action: string; allowed: boolean }[]
    expect(offered.map(({ action, allowed }) => [action, allowed])).toEqual([
      ['approve', false],
      ['reject', false],
      ['break_glass', true],
    ])
    expect(await p.as('both').post(`${path}/approve`, broken)).toMatchObject({ body: { status: 'bypassed' } })
  })

  it('tell the service of an external check whenever it is asked again', async () => {
    const service = 'demo-control-plane'
    const gates = gated().gates.map((gate) => ({ ...gate, policy: { check: { service, timeout_s: 600 } } }))
    const { operation_id } = await p.startOperation({ ...gated(), gates })
    await p.openGate(operation_id, 'go')
    const path = `/v1/operations/${operation_id}`
    const passes = async (round: number) => {
      const body = { gate_id: 'go', round, verdict: 'passed' }
      must(
        await p
          .service(service)
          .post(signals(operation_id), { signal_id: randomUUID(), type: 'external_check_result', body }),
        202,
      )
    }
    const told = async () =>
      must(await p.as('vic').get(`${path}/timeline?types=gate.reopened`), 200).body.events.flatMap(
        ({ gate_id, data }: { gate_id: string; data: Record<string, unknown> }) =>
          gate_id === 'go' ? [[data.round, data.service]] : [],
      )
    const reason = 'a test'
    const { body } = await p.as('vic').get(`${path}/gates/go`)
    await passes(1)
    const changes = [{ op: 'update_node', node_id: body.guards[0], set: { with: { delay_ms: 3 } } }]
    const patch = must(await p.as('olga').post(`${path}/patches`, { base_revision: 1, changes, reason }), 201, 202).body
    const seen = { reviewed_digest: patch.digest }
    must(await p.as('eva').post(`${path}/patches/${patch.patch_id}/approve`, seen), 200, 202)
    expect(await told()).toEqual([[2, service]])
    const change = { type: 'set_input', node_id: body.guards[0], payload: { input_overrides: { delay_ms: 2 } }, reason }
    must(await p.as('olga').post(`${path}/interventions`, change), 201, 202)
    expect(await told()).toEqual([2, 3].map((round) => [round, service]))
    const glass = { ...(await p.seen(operation_id, 'go')), break_glass: { reason } }
    must(await p.as('both').post(`${path}/gates/go/approve`, glass), 200, 202)
    await p.query(
      `update operations.operation_commands set status = 'pending', attempts = 0, not_after = now() - interval '1 s' where operation_id = $1 and kind = 'gate_decided' and payload ->> 'status' = 'bypassed'`,
      [operation_id],
    )
    await sweep(p.deps.db)
    expect(await told()).toEqual([2, 3, 4].map((round) => [round, service]))
  })

  it('name either the service or the people that decide a gate, never both', async () => {
    const both = { check: { service: 'x1', timeout_s: 60 }, approvals: { quorum: 1 } }
    const graph = { ...gated(), gates: gated().gates.map((g) => ({ ...g, policy: both })) }
    const { body } = await p.as('pia').post('/v1/intents', { kind: 'graph', title: 't', reason: 'r', graph })
    expect(await p.as('pia').post(`/v1/intents/${body.intent_id}/plan-preview`, {})).toMatchObject({
      status: 422,
      body: { violations: [{ pointer: '/graph/gates/0/policy/check' }] },
    })
  })

  it('need a service token with the scope; user tokens and user identities are refused', async () => {
    const { operation_id } = await p.startOperation(gated())
    const body = { signal_id: randomUUID(), type: 'pause' }
    expect(await p.service('catalog').post(signals(operation_id), body)).toMatchObject({
      status: 403,
      body: { category: 'policy_denied', scope: 'signals:write' },
    })
    const url = `${p.running[0]?.internal_url}${signals(operation_id)}`
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${p.tokenOf(p.people.olga)}` }
    expect((await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).status).toBe(401)
    const plane = p.services.signer('demo-control-plane')('operations-internal')
    const disguised = { ...headers, authorization: `Bearer ${plane}`, 'x-user-id': p.people.olga.id }
    const claimed = await fetch(url, { method: 'POST', headers: disguised, body: JSON.stringify(body) })
    expect(await claimed.json()).toMatchObject({ status: 400, category: 'validation_error', code: 'forbidden_header' })
    expect((await p.service('demo-control-plane').post(signals(randomUUID()), body)).status).toBe(404)
    for (const wrong of [
      {},
      { signal_id: 'x', type: 'pause' },
      { signal_id: randomUUID(), type: 'wish' },
      { ...body, more: 1 },
    ])
      expect(await p.service('demo-control-plane').post(signals(operation_id), wrong)).toMatchObject({
        status: 400,
        body: { category: 'validation_error' },
      })
  })
})

describe('freezes created while operations run', () => {
  const NAME = '/internal/v1/freezes/'
  const from = '2020-01-01T00:00:00Z'
  const freeze = (more: Record<string, unknown> = {}) => ({
    title: 'The rack is rebuilt',
    applies: "target.name == 'rack'",
    from,
    to: '2100-01-01T00:00:00Z',
    approvers: ['netops'],
    ...more,
  })
  const onRack = (beside?: () => Promise<unknown>) => operationOn(p, 'rack', beside)
  const changesOf = async (operation_id: string) =>
    (await p.as('vic').get(`/v1/operations/${operation_id}/timeline?types=calendar.changed`)).body.events

  it('hold the next claims at once, are shown in the calendar, and release them when withdrawn', async () => {
    const plane = p.service('demo-control-plane')
    const running = await onRack()
    expect(await plane.put(`${NAME}rebuild`, freeze())).toMatchObject({
      status: 200,
      body: { freeze_id: 'rebuild', changed: true, operations: 1, put_by: 'demo-control-plane' },
    })
    expect(await running.claim()).toBe('frozen rebuild')
    expect((await p.as('vic').get('/v1/calendar')).body.freezes).toMatchObject([
      { freeze_id: 'rebuild', in_force: true, put_by: 'demo-control-plane' },
    ])
    // A repeat changes nothing; new times apply, even if someone had overridden the freeze.
    expect((await plane.put(`${NAME}rebuild`, freeze())).body).toMatchObject({ changed: false, operations: 0 })
    expect(await changesOf(running.operation_id)).toMatchObject([
      { actor: { kind: 'service' }, data: { freezes_held: ['rebuild'], freezes_lifted: [] } },
    ])
    await p.query(
      `update operations.operation_control set calendar = calendar #- '{freezes,rebuild}' where operation_id = $1`,
      [running.operation_id],
    )
    expect((await plane.put(`${NAME}other`, freeze({ applies: 'false' }))).body).toMatchObject({ operations: 0 })
    const again = { signal_id: randomUUID(), type: 'calendar_changed' }
    expect((await plane.post(signals(running.operation_id), again)).body.status).toBe('applied')
    expect((await plane.put(`${NAME}rebuild`, freeze({ to: '2101-01-01T00:00:00Z' }))).body.operations).toBe(1)
    expect(await running.claim()).toBe('frozen rebuild')
    expect((await plane.delete(`${NAME}rebuild`)).body).toEqual({
      freeze_id: 'rebuild',
      withdrawn: true,
      operations: 1,
    })
    expect(await running.claim()).toBe('granted')
    expect((await plane.delete(`${NAME}rebuild`)).body).toMatchObject({ withdrawn: false, operations: 0 })
    expect(await p.delivered((await changesOf(running.operation_id)).at(-1).command_id)).toBe('delivered')
    await running.release()
  })

  it('that reach further than the freeze approved at a gate hold the operation again', async () => {
    const plane = p.service('demo-control-plane')
    const put = (more: Record<string, unknown> = {}) => plane.put(`${NAME}season`, freeze(more))
    const approved = async (beside?: () => Promise<unknown>) => {
      const running = await onRack(beside)
      const passed = await p.query(
        `update operations.gates set status = 'bypassed' where operation_id = $1 and kind = 'freeze' returning question`,
        [running.operation_id],
      )
      expect(passed).toMatchObject([{ question: expect.stringContaining('until 2100-01-01T00:00:00Z') }])
      return running
    }
    await put()
    const running = await approved()
    await put({ to: '2099-01-01T00:00:00Z' })
    // A shorter freeze is covered by the approval.
    expect(await running.claim()).toBe('granted')
    await running.release()
    for (const further of [
      { approvers: ['storage'] },
      { to: '2101-01-01T00:00:00Z' },
      { from: '2019-01-01T00:00:00Z' },
    ]) {
      await put()
      const held = await approved()
      await put(further)
      expect([further, await held.claim()]).toEqual([further, 'frozen season'])
      await put({ ...further, title: 'Another title' })
      expect(await held.claim()).toBe('frozen season')
      await held.release()
    }
    await plane.delete(`${NAME}season`)
  })

  it('that changed between plan and start are not passed at the gate for their earlier content', async () => {
    const plane = p.service('demo-control-plane')
    const put = (more: Record<string, unknown> = {}) => plane.put(`${NAME}season`, freeze(more))
    for (const [more, claim] of [
      [{ approvers: ['storage'] }, 'frozen season'],
      [{ to: '2101-01-01T00:00:00Z' }, 'frozen season'],
      [{}, 'granted'],
    ] as const) {
      await put()
      const running = await operationOn(p, 'rack', undefined, () => put(more))
      await p.query(`update operations.gates set status = 'bypassed' where operation_id = $1`, [running.operation_id])
      expect([more, await running.claim()]).toEqual([more, claim])
      await running.release()
    }
    await plane.delete(`${NAME}season`)
  })

  it('reach every operation that starts meanwhile, and those whose notification was lost', async () => {
    const plane = p.service('demo-control-plane')
    // In whatever order start and freeze arrive, the operation sees the freeze.
    for (const turn of [0, 1, 2, 3]) {
      const running = await onRack(() => plane.put(`${NAME}race`, freeze()))
      expect([turn, await running.claim()]).toEqual([turn, 'frozen race'])
      await plane.delete(`${NAME}race`)
      await running.release()
    }
    const running = await onRack()
    await p.query(
      `insert into operations.calendar_entries (freeze_id, entry, put_by) values ('lost', $1, 'demo-control-plane')`,
      [JSON.stringify(freeze())],
    )
    expect(await tellUntold(p.deps, 0)).toBe(1)
    expect(await running.claim()).toBe('frozen lost')
    expect(await tellUntold(p.deps, 0)).toBe(0)
    await plane.delete(`${NAME}lost`)
    await running.release()
  })

  it('are refused if they are not valid, and to services without the scope', async () => {
    const plane = p.service('demo-control-plane')
    const refused = async (body: unknown, status: number, code: string) =>
      expect(await plane.put(`${NAME}wrong`, body)).toMatchObject({
        status,
        body: { category: 'validation_error', code },
      })
    await refused(freeze({ to: from }), 422, 'parameters_invalid')
    await refused(freeze({ applies: 'target.' }), 422, 'expression_error')
    await refused(freeze({ applies: 'plan.kind == 1' }), 422, 'expression_error')
    await refused(freeze({ approvers: [] }), 400, 'schema_violation')
    await refused(freeze({ more: 1 }), 400, 'schema_violation')
    expect((await plane.put(`${NAME}Wrong!`, freeze())).status).toBe(400)
    expect(await p.service('catalog').put(`${NAME}wrong`, freeze())).toMatchObject({
      status: 403,
      body: { scope: 'calendar:write' },
    })
    expect((await p.service('catalog').delete(`${NAME}wrong`)).status).toBe(403)
    expect(await p.query(`select 1 from operations.calendar_entries where freeze_id = 'wrong'`)).toEqual([])
  })
})

/** Longer than the time limit of other requests on both sides. */
const LONGER_MS = 11_000
/** A way to a server on which both directions of each connection pause after their first bytes. */
const slowWay = async (to: string) => {
  const pass = (from: Socket, to: Socket) =>
    from.once('data', (first) => {
      to.write(first)
      from.pause()
      setTimeout(() => from.pipe(to), LONGER_MS)
    })
  const server = createServer((one) => {
    const other = connect(Number(new URL(to).port), '127.0.0.1')
    for (const side of [one, other]) side.on('error', () => {})
    pass(one, other)
    pass(other, one)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const sha = (text: string) => createHash('sha256').update(text).digest('hex')
/** A node whose work an agent has taken up, with the agent's token. */
const atWork = async () => {
  const { operation_id } = await p.startOperation(gated())
  const token = `exe_${randomBytes(24).toString('base64url')}`
  await p.query(
    `with node as (update operations.nodes set state = 'running', attempt = 1 where operation_id = $1 and node_id = 'behind'),
       attempt as (insert into operations.node_attempts (operation_id, node_id, attempt, generation, fence, phase, executor, key)
         values ($1, 'behind', 1, 1, 7, 'running', 'external', 'x'))
       insert into operations.executions (token_sha256, operation_id, node_id, attempt, generation, fence, pool, heartbeat_s, start_before, deadline_at, started_at, heartbeat_at)
       values ($2, $1, 'behind', 1, 1, 7, 'default', 30, now() + interval '1 h', now() + interval '1 h', now(), now())`,
    [operation_id, sha(token)],
  )
  let sequence = Date.now()
  const call = async (method: 'post' | 'put', path: string, body: string, content_type: string, bearer = token) => {
    const headers = { authorization: `Bearer ${bearer}`, 'content-type': content_type }
    const response = await fetch(`${p.running[0]?.internal_url}/internal/v1/${path}`, { method, headers, body })
    const described = path.replace(/^(artifacts)\/.*/, '$1/{sha256}')
    expect(isDescribed(method, `/api/v1/${described}`, response.status), `${response.status} of ${path}`).toBe(true)
    return { status: response.status, body: await response.json() }
  }
  const says = (artifacts: unknown[], lines: unknown[] = [], more: Record<string, unknown> = {}) => {
    const ids = { result_id: randomUUID(), operation_id, node_id: 'behind', attempt: 1, generation: 1, fence: 7 }
    sequence += 1
    const message = { ...ids, sequence, phase: 'progress', artifacts, lines, ...more }
    return call('post', 'execution-results', JSON.stringify(message), 'application/json')
  }
  const brings = (sha256: string, bytes: string, bearer?: string) =>
    call('put', `artifacts/${sha256}`, bytes, 'application/octet-stream', bearer)
  const listed = async () =>
    (await p.as('vic').get(`/v1/operations/${operation_id}/artifacts`)).body.items as Record<string, string>[]
  const content = (id = '') => p.as('vic').get(`/v1/operations/${operation_id}/artifacts/${id}/content`)
  const logs = async (query = '') =>
    must(await p.as('vic').get(`/v1/operations/${operation_id}/nodes/behind/logs${query}`), 200).body
  return { operation_id, token, says, logs, brings, listed, content }
}

describe('log lines of agents', () => {
  const lines = (...seqs: number[]) =>
    seqs.map((seq) => ({ seq, time: '2026-01-01T00:00:00Z', stream: 'log', level: 'info', text: `line ${seq}` }))
  const seqsOf = (page: { lines: { seq: number }[] }) => page.lines.map(({ seq }) => seq)

  it('are read to the end and back, whatever numbers are missing or came late', async () => {
    const { says, logs } = await atWork()
    expect(await says([], lines(1, 2000))).toMatchObject({ status: 200 })
    expect(await says([], lines(6000, 6001))).toMatchObject({ status: 200 })
    expect(await logs('?after_seq=1&limit=500')).toMatchObject({ first_seq: 2000, last_seq: 2000, total_lines: 6001 })
    expect(seqsOf(await logs('?after_seq=2000&limit=1'))).toEqual([6000])
    expect(seqsOf(await logs('?before_seq=6000&limit=500'))).toEqual([2000])
    expect(seqsOf(await logs('?before_seq=2000&limit=500'))).toEqual([1])
    for (const query of ['?after_seq=6001', '?before_seq=1']) expect(seqsOf(await logs(query))).toEqual([])
    // Those that fill a gap are in their place.
    expect(await says([], lines(2, 3, 1999))).toMatchObject({ status: 200 })
    const read: number[] = []
    for (let page = await logs('?after_seq=0&limit=2'); page.lines.length > 0; )
      page = await logs(`?after_seq=${read.push(...seqsOf(page)) && read.at(-1)}&limit=2`)
    expect(read).toEqual([1, 2, 3, 1999, 2000, 6000, 6001])
  })

  it('are compared only with stored ones that they may repeat', async () => {
    const { operation_id, says, logs } = await atWork()
    await says([], lines(1, 2, 3))
    await says([], lines(5000, 5001))
    // A part that cannot be read shows whether it is read.
    const set = (part: string) =>
      p.query(`update operations.log_chunks set lines = $2 where operation_id = $1 and chunk = 1`, [operation_id, part])
    await set('{}')
    expect(await says([], lines(5001, 5002))).toMatchObject({ status: 200 })
    const other = [{ ...lines(5000)[0], text: 'another' }]
    expect(await says([], other)).toMatchObject({ status: 422, body: { code: 'log_conflict' } })
    await set(JSON.stringify(lines(1, 2, 3)))
    const past = [{ ...lines(3)[0], text: 'another' }]
    expect(await says([], past)).toMatchObject({ status: 422, body: { code: 'log_conflict' } })
    expect(seqsOf(await logs())).toEqual([1, 2, 3])
    expect(seqsOf(await logs('?after_seq=3'))).toEqual([5000, 5001, 5002])
  })
})

it('a refusal that ends an attempt is given again to the same message', async () => {
  const { operation_id, says } = await atWork()
  const schema = { outputs_schema: { type: 'object', required: ['n'] } }
  await p.query(`update operations.nodes set spec = spec || $2 where operation_id = $1 and node_id = 'behind'`, [
    operation_id,
    schema,
  ])
  const done = { result_id: randomUUID(), phase: 'succeeded', sequence: 1, outputs: {} }
  const first = await says([], [], done)
  expect(first).toMatchObject({ status: 422, body: { code: 'outputs_invalid' } })
  const { code, detail } = first.body as Record<string, string>
  expect(await says([], [], done)).toMatchObject({ status: 422, body: { code, detail } })
  const refused = (why: string) => ({ status: 409, body: { code: why } })
  expect(await says([], [], { ...done, outputs: { n: 1 } })).toMatchObject(refused('result_conflict'))
  expect(await says([], [], { ...done, result_id: randomUUID() })).toMatchObject(refused('attempt_closed'))
})

it('a repeat that is refused is in the history, and the answer to the end is given again', async () => {
  const { operation_id, says } = await atWork()
  const beat = { result_id: randomUUID(), phase: 'heartbeat', sequence: 1 }
  expect(await says([], [], beat)).toMatchObject({ status: 200 })
  const done = { result_id: randomUUID(), phase: 'succeeded', sequence: 2, outputs: {} }
  for (const duplicate of [false, true])
    expect(await says([], [], done)).toMatchObject({ status: 200, body: { duplicate } })
  expect(await says([], [], beat)).toMatchObject({ status: 409, body: { code: 'attempt_closed' } })
  const { events } = (await p.as('vic').get(`/v1/operations/${operation_id}/timeline?types=node.result_refused`)).body
  expect(events).toMatchObject([{ node_id: 'behind', data: { code: 'attempt_closed', phase: 'heartbeat' } }])
})

it('answers to messages of agents are kept as long as a message can be repeated', async () => {
  const [ended, open] = [await atWork(), await atWork()]
  for (const { says } of [ended, ended, open]) expect(await says([])).toMatchObject({ status: 200 })
  const kept = async ({ token }: { token: string }) =>
    (await p.query('select from operations.execution_results where token_sha256 = $1', [sha(token)])).length
  const passes = (minutes: number) =>
    p.query(
      `update operations.executions set deadline_at = now() - make_interval(mins => $2) where token_sha256 = $1`,
      [sha(ended.token), minutes],
    )
  await passes(9)
  await pruneAnswers(p.deps.db)
  expect([await kept(ended), await kept(open)]).toEqual([2, 1])
  await passes(11)
  await pruneAnswers(p.deps.db)
  expect([await kept(ended), await kept(open)]).toEqual([0, 1])
  expect(await ended.says([])).toMatchObject({ status: 401 })
})

describe('artifacts of agents', () => {
  const artifact = (name: string, text: string, more = {}) => ({
    name,
    kind: 'report',
    media_type: 'text/plain',
    size: Buffer.byteLength(text),
    sha256: sha(text),
    ...more,
  })
  it('are stored only if the bytes match those announced', async () => {
    const { operation_id, says, brings, listed, content } = await atWork()
    const mismatch = { status: 422, body: { category: 'execution_result_rejected', code: 'artifact_digest_mismatch' } }
    expect(await says([artifact('a.txt', 'hello')])).toMatchObject({ status: 200 })
    const liar = await atWork()
    expect(await liar.says([artifact('long.txt', 'hello', { size: 6 })])).toMatchObject({ status: 200 })
    const [row] = await listed()
    expect(row).toMatchObject({ name: 'a.txt', status: 'pending' })
    expect(await content(row?.artifact_id)).toMatchObject({ status: 404, body: { code: 'artifact' } })
    for (const wrong of ['hellO', 'hell', 'hello!', ''])
      expect(await brings(sha('hello'), wrong)).toMatchObject(mismatch)
    expect(await listed()).toMatchObject([{ status: 'pending' }])
    expect(await brings(sha('hello'), 'hello')).toMatchObject({ status: 200, body: { size: 5, duplicate: false } })
    expect(await brings(sha('hello'), 'hello')).toMatchObject({ status: 200, body: { duplicate: true } })
    expect(await listed()).toMatchObject([{ status: 'stored' }])
    expect(await liar.listed()).toMatchObject([{ name: 'long.txt', status: 'pending' }])
    expect((await content(row?.artifact_id)).text).toBe('hello')
    const { events } = (await p.as('vic').get(`/v1/operations/${operation_id}/timeline?types=artifact.stored`)).body
    expect(events).toMatchObject([{ actor: { kind: 'executor' }, node_id: 'behind', data: { name: 'a.txt' } }])

    // The same bytes are already stored; the same name for other bytes is refused, and the history records it.
    expect(await says([artifact('b.txt', 'hello'), artifact('a.txt', 'hello')])).toMatchObject({ status: 200 })
    expect(await says([artifact('a.txt', 'other')])).toMatchObject(mismatch)
    expect(await says([artifact('c.txt', 'x'), artifact('c.txt', 'y')])).toMatchObject(mismatch)
    expect(await says([artifact('far.txt', 'far', { uri: 'https://elsewhere.example/far' })])).toMatchObject({
      status: 200,
    })
    const all = await listed()
    expect(all.map(({ name, status }) => `${name} ${status}`)).toEqual([
      'a.txt stored',
      'b.txt stored',
      'far.txt external',
    ])
    expect(await content(all[2]?.artifact_id)).toMatchObject({
      status: 404,
      body: { uri: 'https://elsewhere.example/far' },
    })
    const refused = await p.as('vic').get(`/v1/operations/${operation_id}/timeline?types=node.result_refused`)
    // Each of another file has its own line.
    expect(refused.body.events).toHaveLength(2)

    await p.query(`update operations.operations set ended_at = now() - interval '100 days' where operation_id = $1`, [
      operation_id,
    ])
    const removed: string[] = []
    const expire = (days: number) =>
      expireArtifacts(p.deps.db, days, async (sha256) => {
        removed.push(sha256)
        await p.deps.artifacts.remove(sha256)
      })
    // An operation is no older than its id.
    await expire(90)
    expect(removed).toEqual([])
    await expire(0)
    expect(removed).toEqual([sha('hello')])
    expect(await content(row?.artifact_id)).toMatchObject({ status: 410, body: { code: 'gone' } })
  })

  it('takes no progress that is longer than a page shows', async () => {
    const { says } = await atWork()
    const progress = (length: number) => ({ progress: { message: 'x'.repeat(length) } })
    expect(await says([], [], progress(20_000))).toMatchObject({ status: 422, body: { code: 'too_large' } })
    expect(await says([], [], progress(10_000))).toMatchObject({ status: 200 })
  })

  it('may take longer than other requests, in both directions', async () => {
    const { operation_id, token, listed } = await atWork()
    const { url: open = '', internal_url = '' } = p.running[0] ?? {}
    const [link, people] = await Promise.all([slowWay(internal_url), slowWay(open)])
    const ids = { operation_id, node_id: 'behind', attempt: 1, generation: 1, fence: 7, execution_token: token }
    const urls = {
      results_url: `${internal_url}/internal/v1/execution-results`,
      artifacts_url: `${link.url}/internal/v1/artifacts`,
    }
    const deadline_at = new Date(Date.now() + 60_000).toISOString()
    const { keep, fetch: fetchAgain } = createReporter({
      ...ids,
      ...urls,
      deadline_at,
      start_before: deadline_at,
    } as Work)
    const bytes = randomBytes(5_000_000)
    const { sha256 } = await keep({ name: 'plan', kind: 'saved_plan', media_type: 'application/octet-stream' }, bytes)
    const [row] = await listed()
    const download = async () => {
      const headers = { authorization: `Bearer ${p.tokenOf(p.people.vic)}` }
      const place = `/v1/operations/${operation_id}/artifacts/${row?.artifact_id}/content`
      return Buffer.from(await (await fetch(`${people.url}${place}`, { headers })).arrayBuffer())
    }
    const got = await Promise.all([fetchAgain(sha256), download()])
    expect(got.map((all) => all.equals(bytes))).toEqual([true, true])
    for (const way of [link, people]) way.server.close()
  }, 60_000)

  it('come in messages whose numbers are as large as a clock of milliseconds', async () => {
    const { says } = await atWork()
    for (const _ of [1, 2]) expect(await says([])).toMatchObject({ status: 200 })
  })

  it('are accepted only from the attempt that announced them and from authorized services', async () => {
    const one = await atWork()
    const other = await atWork()
    await one.says([artifact('a.txt', 'mine')])
    const unknown = { status: 404, body: { category: 'not_found', code: 'artifact' } }
    expect(await other.brings(sha('mine'), 'mine')).toMatchObject(unknown)
    expect(await one.brings(sha('not announced'), 'not announced')).toMatchObject(unknown)
    expect((await one.brings('nonsense', 'mine')).status).toBe(400)
    expect(await one.brings(sha('mine'), 'mine', `exe_${'x'.repeat(30)}`)).toMatchObject({ status: 401 })
    expect(await one.brings(sha('mine'), 'mine', p.tokenOf(p.people.olga))).toMatchObject({ status: 401 })
    const of = (name: string) => p.services.signer(name)('operations-internal')
    expect(await one.brings(sha('mine'), 'mine', of('catalog'))).toMatchObject({
      status: 403,
      body: { category: 'policy_denied', scope: 'artifacts:write' },
    })
    expect(await one.listed()).toMatchObject([{ status: 'pending' }])
    expect(await one.brings(sha('mine'), 'mine', of('demo-control-plane'))).toMatchObject({ status: 200 })
    expect(await one.listed()).toMatchObject([{ status: 'stored' }])
  })
})

describe('the log of events', () => {
  it('is read from a position, or for one aggregate from a version', async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.as('olga').post(`/v1/operations/${operation_id}/pause`, { reason: 'x' })
    const catalog = p.service('catalog')
    const one = must(
      await catalog.get(`/internal/v1/events?agg_type=operation&agg_id=${operation_id}&after_version=0`),
      200,
    ).body
    expect(one.items.map(({ agg_version }: { agg_version: number }) => agg_version)).toEqual(
      one.items.map((_: unknown, n: number) => n + 1),
    )
    expect(one.items[0]).toMatchObject({
      type: 'operation.changed',
      agg_id: operation_id,
      events: [{ type: 'operation.queued', data: { kind: 'graph' } }, {}],
    })
    const { until } = await import('../support/until.ts')
    await until(async () => Number((await catalog.get('/internal/v1/events?after=0&limit=1')).body.last_pub_seq) >= 3)
    const first = must(await catalog.get('/internal/v1/events?after=0&limit=2'), 200).body
    const rest = must(await catalog.get(`/internal/v1/events?after=${first.items.at(-1).pub_seq}&limit=500`), 200).body
    const seqs = [...first.items, ...rest.items].map(({ pub_seq }: { pub_seq: string }) => Number(pub_seq))
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, n) => n + 1))
    expect((await catalog.get('/internal/v1/events?agg_type=operation')).status).toBe(400)
    expect((await p.service('worker').get('/internal/v1/events')).status).toBe(403)
  })
})

describe('the sweeper', () => {
  it('withdraws what was never sent in time, with all its decisions', async () => {
    const quiet = await startPlatform({ relay: false })
    try {
      const overdue = (operation_id: string, kind: string) =>
        quiet.query(
          `update operations.operation_commands set not_after = clock_timestamp() - interval '1 s' where operation_id = $1 and kind = $2`,
          [operation_id, kind],
        )
      const { operation_id } = await quiet.startOperation(gated())
      const path = `/v1/operations/${operation_id}`
      const pauses = () =>
        quiet.query(`select status from operations.operation_commands where operation_id = $1 and kind = 'pause'`, [
          operation_id,
        ])
      await quiet.openGate(operation_id, 'go')
      const seen = await quiet.seen(operation_id, 'go')
      const approved = await quiet.as('eva').post(`${path}/gates/go/approve`, seen)
      expect(approved).toMatchObject({ status: 202, body: { status: 'approved' } })
      expect(await sweep(quiet.deps.db)).toBe(0)
      await overdue(operation_id, 'gate_decided')
      expect(await sweep(quiet.deps.db)).toBe(1)
      expect(await quiet.as('vic').get(`${path}/gates/go`)).toMatchObject({
        body: { status: 'waiting', round: 2, decided: null },
      })
      expect((await quiet.as('vic').get(path)).body.open_gates).toHaveLength(1)
      expect((await quiet.as('vic').get('/v1/operations')).body.items[0].open_gates).toBe(1)
      expect(await quiet.as('vic').get(String(approved.headers.get('location')))).toMatchObject({
        body: { command: { status: 'withdrawn', code: 'withdrawn' } },
      })
      expect(await quiet.as('eva').post(`${path}/gates/go/approve`, seen)).toMatchObject({
        status: 409,
        body: { code: 'round_superseded' },
      })

      await quiet.as('olga').post(`${path}/pause`, { reason: 'x' })
      await quiet.as('olga').post(`${path}/resume`, { reason: 'x' })
      await overdue(operation_id, 'resume')
      await sweep(quiet.deps.db)
      // A stop never expires; it lapses only with what it would have stopped.
      expect(await pauses()).toEqual([{ status: 'pending' }])
      expect((await quiet.as('vic').get(path)).body).toMatchObject({
        control: 'pause',
        status: 'pausing',
        pause_reason: 'operator',
      })

      await overdue(operation_id, 'start')
      await sweep(quiet.deps.db)
      expect((await quiet.as('vic').get(path)).body).toMatchObject({
        status: 'cancelled',
        end_reason: 'start_withdrawn',
      })
      const { body } = await quiet.as('vic').get(`${path}/timeline`)
      expect(body.events.map(({ type }: { type: string }) => type)).toEqual(
        expect.arrayContaining(['command.withdrawn', 'gate.reopened', 'operation.cancelled']),
      )
      expect(await pauses()).toEqual([{ status: 'superseded' }])
    } finally {
      await quiet.stop()
    }
  })

  it('continues with the rest if one item fails', async () => {
    const quiet = await startPlatform({ relay: false })
    try {
      const stuck = await quiet.startOperation(gated())
      const due = await quiet.startOperation(gated())
      await quiet.query(
        `update operations.operation_commands set not_after = clock_timestamp() - interval '1 min' * (case operation_id when $1 then 2 else 1 end)`,
        [stuck.operation_id],
      )
      await quiet.query(
        `update operations.operation_commands set kind = 'retry_node', undo = '{"nodes": "x"}' where operation_id = $1`,
        [stuck.operation_id],
      )
      const failed: unknown[] = []
      await sweep(quiet.deps.db, (error) => failed.push(error))
      expect(failed).toHaveLength(1)
      expect((await quiet.as('vic').get(`/v1/operations/${due.operation_id}`)).body.status).toBe('cancelled')
    } finally {
      await quiet.stop()
    }
  })

  it('ends an operation at once if it is canceled before its start was sent, and releases the plan', async () => {
    const quiet = await startPlatform({ relay: false })
    try {
      const { operation_id, plan_id } = await quiet.startOperation(gated())
      const cancelled = await quiet.as('olga').post(`/v1/operations/${operation_id}/cancel`, { reason: 'x' })
      expect(cancelled).toMatchObject({
        status: 200,
        body: { status: 'cancelled', end_reason: 'start_withdrawn', command: { status: 'applied' } },
      })
      const { body } = await quiet.as('vic').get(`/v1/operations/${operation_id}/nodes`)
      expect(new Set(body.items.map(({ state }: { state: string }) => state))).toEqual(new Set(['cancelled']))
      expect(cancelled.body.progress.done).toBe(cancelled.body.progress.total)
      expect((await quiet.as('vic').get(`/v1/plans/${plan_id}`)).body.status).toBe('ready')
    } finally {
      await quiet.stop()
    }
  })

  it('pauses operations that the engine has lost, and sets running nodes to unknown', async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.query(`update operations.nodes set state = 'running' where operation_id = $1 and node_id = 'before'`, [
      operation_id,
    ])
    await p.query(`insert into operations.engine_findings (operation_id, found) values ($1, 'gone')`, [operation_id])
    await sweep(p.deps.db)
    const { body } = await p.as('olga').get(`/v1/operations/${operation_id}`)
    expect(body).toMatchObject({ status: 'paused', pause_reason: 'engine_lost' })
    expect(
      (await p.as('olga').get(`/v1/operations/${operation_id}/nodes?state=outcome_unknown`)).body.items,
    ).toMatchObject([{ node_id: 'before' }])
    expect(await p.as('olga').post(`/v1/operations/${operation_id}/resume`, { reason: 'x' })).toMatchObject({
      status: 409,
      body: { code: 'engine_lost' },
    })
    // The engine has it again: what was in flight is still a person's to judge, then the operation resumes.
    await p.query(`insert into operations.engine_findings (operation_id, found) values ($1, 'running')`, [operation_id])
    await sweep(p.deps.db)
    const path = `/v1/operations/${operation_id}`
    expect((await p.as('olga').get(path)).body).toMatchObject({ status: 'paused', pause_reason: 'engine_mismatch' })
    expect(
      await p.query(`select kind from operations.operation_commands where operation_id = $1 order by seq`, [
        operation_id,
      ]),
    ).toEqual([{ kind: 'start' }, { kind: 'pause' }])
    expect((await p.as('olga').post(`${path}/resume`, { reason: 'x' })).body.code).toBe('outcome_unknown_open')
  })

  it('ends an operation on its rows if it is canceled after the engine lost it', async () => {
    const { operation_id, intent_id } = await p.startOperation(gated())
    await p.query(`update operations.nodes set state = 'running' where operation_id = $1 and node_id = 'before'`, [
      operation_id,
    ])
    const cancel = (await p.as('olga').post(`/v1/operations/${operation_id}/cancel`, { reason: 'x' })).body
    await p.query(`insert into operations.engine_findings (operation_id, found) values ($1, 'gone')`, [operation_id])
    await sweep(p.deps.db)
    const { body } = await p.as('olga').get(`/v1/operations/${operation_id}`)
    expect(body).toMatchObject({ status: 'cancelled', end_reason: 'engine_lost', pending_commands: [] })
    const path = `/v1/operations/${operation_id}/commands/${cancel.command.command_id}`
    expect((await p.as('olga').get(path)).body.command.status).toBe('applied')
    const states = await p.query(
      'select node_id, state from operations.nodes where operation_id = $1 order by node_id',
      [operation_id],
    )
    expect(states.map(({ state }) => state)).toEqual(['outcome_unknown', 'cancelled'])
    expect((await p.as('vic').get(`/v1/intents/${intent_id}`)).body.status).toBe('unfulfilled')
  })
})
