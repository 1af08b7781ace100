import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { loadPolicies } from '../../apps/operations/policies/cedar.ts'
import { verifyChain } from '../../apps/shared/contracts/client/browser-chain.ts'
import { must, type Person, type Platform, person, startPlatform } from './support/platform.ts'

/** A machine commands like a person with its rights, decides nothing, and its owners count as taking part. */

let p: Platform
let bot: Person
const ALL = [
  'operation:read',
  'intent:create',
  'plan:start',
  'patch:propose',
  'operation:control',
  'operation:intervene',
]
beforeAll(async () => {
  p = await startPlatform({ env: { OPERATIONS__COMMANDS__WAIT_MS: '200' } })
  bot = person('machine:bot', ['planner', 'operator'], ['netops'])
  Object.assign(p.people, { bot })
})
afterAll(() => p.stop())
beforeEach(() => {
  bot.roles = ['planner', 'operator']
  bot.machine = { permissions: ALL, behind: [p.people.both.id] }
  p.deps.trust.principals.drop('all')
})

const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
const graph = {
  nodes: [
    { node_id: 'first', executor: 'noop', with: {} },
    { node_id: 'behind', executor: 'noop', with: {}, depends_on: ['first'] },
  ],
  gates: [{ gate_id: 'go', policy, guards: ['behind'] }],
}
const planned = async (by: Person) => {
  await p.query('update operations.projection set at = clock_timestamp()')
  const intent = must(await p.as(by).post('/v1/intents', { kind: 'graph', title: 'a test', reason: 'ci', graph }), 201)
  const plan = must(await p.as(by).post(`/v1/intents/${intent.body.intent_id}/plan-preview`, {}), 201)
  return plan.body as { plan_id: string; plan_hash: string }
}
const start = (by: Person, { plan_id, plan_hash }: { plan_id: string; plan_hash: string }) =>
  p.as(by).post(`/v1/plans/${plan_id}/start`, { reviewed_plan_hash: plan_hash })
const started = async (asks = bot, starts = bot) => {
  const { operation_id } = must(await start(starts, await planned(asks)), 201, 202).body
  await p.openGate(operation_id, 'go')
  return { operation_id, path: `/v1/operations/${operation_id}` }
}
const approve = async (who: 'eva' | 'both', path: string, gate_id = 'go') => {
  const [, , , operation_id = ''] = path.split('/')
  return p.as(who).post(`${path}/gates/${gate_id}/approve`, await p.seen(operation_id, gate_id, who))
}
const recordsOf = async (path: string) => must(await p.as('vic').get(`${path}/evidence`), 200).body.records

describe('a machine', () => {
  it.each([
    ['asks and starts', true, true],
    ['asks', true, false],
    ['starts', false, true],
  ])('that %s involves its people: they cannot approve, another person can', async (_what, asks, starts) => {
    const { path, operation_id } = await started(asks ? bot : p.people.pia, starts ? bot : p.people.olga)
    expect(await approve('both', path)).toMatchObject({ status: 403, body: { code: 'self_approval' } })
    const record = (await recordsOf(path)).find(({ kind }: { kind: string }) => kind === 'start')
    expect(record.subject.involved).toEqual(expect.arrayContaining([bot.id, p.people.both.id]))
    expect(record.actor.name).toBe(starts ? 'machine:bot' : 'olga')
    const { plan_hash, evidence_head } = must(await p.as('vic').get(path), 200).body
    // The reply has every member that a hash covers.
    const checked = await verifyChain({ operation_id, records: await recordsOf(path), plan_hash, head: evidence_head })
    expect(checked).not.toHaveProperty('fault')
    expect(must(await approve('eva', path), 200, 202).body.status).toBe('approved')
  })

  it('decides nothing, even with the role of an approver', async () => {
    const { path, operation_id } = await started(p.people.pia, p.people.olga)
    bot.roles = ['approver', 'operator', 'planner', 'admin']
    bot.machine = { permissions: [...ALL, 'gate:decide', 'patch:decide'], behind: [] }
    p.deps.trust.principals.drop('all')
    const gate = await p.seen(operation_id, 'go')
    for (const verb of ['approve', 'reject'])
      expect(
        await p.as(bot).post(`${path}/gates/go/${verb}`, verb === 'approve' ? gate : { round: 1, comment: 'no' }),
      ).toMatchObject({ status: 403, body: { code: 'machine_vote' } })
    expect(await p.query('select 1 from operations.votes where operation_id = $1', [operation_id])).toEqual([])
  })

  it('does no more than its credential permits', async () => {
    const plan = await planned(bot)
    bot.machine = { permissions: ['operation:read', 'intent:create'], behind: [] }
    expect(await start(bot, plan)).toMatchObject({ status: 403, body: { permission: 'plan:start' } })
    bot.machine = { permissions: ALL, behind: [] }
    must(await start(bot, plan), 201, 202)
  })

  it('excludes its people from the patch that it proposes', async () => {
    const { path } = await started(p.people.pia, p.people.olga)
    const { plan_revision } = must(await p.as('vic').get(path), 200).body
    const node = { node_id: 'more', executor: 'noop', with: {}, depends_on: ['behind'] }
    const body = { base_revision: plan_revision, changes: [{ op: 'add_node', node }], reason: 'a test' }
    const { patch_id, digest } = must(await p.as(bot).post(`${path}/patches`, body), 201, 202).body
    const decide = (who: 'eva' | 'both') =>
      p.as(who).post(`${path}/patches/${patch_id}/approve`, { reviewed_digest: digest })
    expect(await decide('both')).toMatchObject({ status: 403, body: { code: 'self_patch_approval' } })
    expect(must(await decide('eva'), 200, 202).body.status).toBe('approved')
    const [{ involved }] = (await p.query<{ involved: string[] }>(
      'select involved from operations.operations where operation_id = $1',
      [path.split('/').at(-1)],
    )) as [{ involved: string[] }]
    expect(involved).toEqual(expect.arrayContaining([bot.id, p.people.both.id]))
  })

  it('counts as one with its people if an intervention needs a second person', async () => {
    const { path, operation_id } = await started(p.people.pia, p.people.olga)
    await p.query(`update operations.operations set risk_level = 'high' where operation_id = $1`, [operation_id])
    await p.query(`update operations.nodes set state = 'failed' where operation_id = $1 and node_id = 'first'`, [
      operation_id,
    ])
    const asked = await p
      .as(bot)
      .post(`${path}/interventions`, { type: 'skip', node_id: 'first', payload: {}, reason: 'ci' })
    const { gate_id } = must(asked, 202).body.intervention
    expect(await approve('both', path, gate_id)).toMatchObject({ status: 403, body: { code: 'second_person' } })
    const rule = (await recordsOf(path)).findLast(({ subject }: { subject: { id: string } }) => subject.id === gate_id)
    expect(rule.subject.rules[0]).toMatchObject({ author: bot.id, behind: [p.people.both.id] })
    expect(must(await approve('eva', path, gate_id), 200, 202).body.status).toBe('approved')
  })
})

describe('a control plane with the key of a machine', () => {
  const checked = {
    ...graph,
    gates: [{ gate_id: 'go', policy: { check: { service: 'machine:bot', timeout_s: 600 } }, guards: ['behind'] }],
  }
  const opened = async (of: object = checked) => {
    const { operation_id } = await p.startOperation(of)
    await p.openGate(operation_id, 'go')
    return operation_id
  }
  const send = (who: Person, operation_id: string, signal: object) =>
    p.as(who).post(`/v1/operations/${operation_id}/signals`, signal)
  const check = (operation_id: string, verdict: string, more: object = {}) =>
    send(bot, operation_id, { type: 'external_check_result', body: { gate_id: 'go', round: 1, verdict }, ...more })
  const gateOf = async (operation_id: string) =>
    must(await p.as('vic').get(`/v1/operations/${operation_id}/gates/go`), 200).body
  beforeEach(() => {
    bot.roles = ['controller']
    bot.machine = { permissions: ['operation:read', 'signal:send'], behind: [p.people.both.id] }
    p.deps.trust.principals.drop('all')
  })

  it('answers the gate of an external check that names it, once, and history names the machine', async () => {
    const operation_id = await opened()
    expect(await check(operation_id, 'passed', { dry_run: true })).toMatchObject({
      status: 200,
      body: { dry_run: true },
    })
    must(await check(operation_id, 'running'), 200, 202)
    expect(await gateOf(operation_id)).toMatchObject({ status: 'waiting' })
    const { body } = must(await check(operation_id, 'passed', { reason: 'CHG-1042' }), 200, 202)
    expect(body).toEqual({ command: expect.objectContaining({ kind: 'gate_decided' }) })
    const decided = await gateOf(operation_id)
    expect(decided).toMatchObject({ status: 'approved', votes: [], decided: { by: { name: 'machine:bot' } } })
    expect(await check(operation_id, 'failed')).toMatchObject({ status: 409, body: { code: 'already_decided' } })
    const decision = (await recordsOf(`/v1/operations/${operation_id}`)).find(
      ({ kind }: { kind: string }) => kind === 'gate_decision',
    )
    expect(decision.statement).toBe('machine:bot answered passed to gate go, round 1')
    expect(decision.actor).toMatchObject({ name: 'machine:bot' })
  })

  it('hears that machines have no vote, not that a role is missing', async () => {
    const operation_id = await opened()
    const seen = await p.seen(operation_id, 'go')
    const bodies = { approve: seen, reject: { round: seen.round, comment: 'no' } }
    for (const [verdict, body] of Object.entries(bodies))
      expect(await p.as(bot).post(`/v1/operations/${operation_id}/gates/go/${verdict}`, body)).toMatchObject({
        status: 403,
        body: {
          code: 'machine_vote',
          detail: 'Machines do not decide.',
          hint: expect.stringContaining('external_check'),
        },
      })
  })

  it('opens no gate of people, alone or beside a vote, and no gate that names another machine', async () => {
    const two = { approvals: { quorum: 2 } }
    for (const asked of [policy, two, { check: { service: 'machine:other', timeout_s: 600 } }]) {
      const operation_id = await opened({ ...graph, gates: [{ gate_id: 'go', policy: asked, guards: ['behind'] }] })
      if (asked === two) must(await approve('eva', `/v1/operations/${operation_id}`), 200, 202)
      expect(await check(operation_id, 'passed')).toMatchObject({ status: 403, body: { code: 'not_eligible' } })
      expect(await gateOf(operation_id)).toMatchObject({ status: 'waiting' })
    }
  })

  it('of many answers at once, one decides', async () => {
    const operation_id = await opened()
    const verdicts = Array.from({ length: 12 }, (_, n) => (n % 2 ? 'passed' : 'failed'))
    const answers = await Promise.all(verdicts.map((verdict) => check(operation_id, verdict)))
    const won = answers.filter(({ status }) => status < 300)
    expect(won).toHaveLength(1)
    for (const answer of answers.filter((one) => !won.includes(one)))
      expect(answer).toMatchObject({ status: 409, body: { category: 'gate_not_waiting' } })
    const verdict = verdicts[answers.indexOf(won[0] as (typeof answers)[number])]
    expect((await gateOf(operation_id)).status).toBe(verdict === 'passed' ? 'approved' : 'rejected')
  })

  it('ends waits and reports drift; a repeat with the same key gets the same answer', async () => {
    const operation_id = await opened()
    const key = randomUUID()
    const signal = { type: 'node_signal', body: { name: 'ready', payload: { build: 7 } } }
    const once = () => p.as(bot).post(`/v1/operations/${operation_id}/signals`, signal, { key })
    const [first, again] = [must(await once(), 200, 202), must(await once(), 200, 202)]
    expect(again.body.command.command_id).toBe(first.body.command.command_id)
    const { body } = await p.as('vic').get(`/v1/operations/${operation_id}/timeline?types=operation.signalled`)
    expect(body.events).toMatchObject([
      { actor: { name: 'machine:bot' }, data: { name: 'ready', payload: { build: 7 } } },
    ])
    must(await send(bot, operation_id, { type: 'catalog_drift', body: { resource_ids: ['unknown'] } }), 200, 202)
  })

  it("is refused without the role, without its key's permission, and outside its place", async () => {
    const operation_id = await opened()
    const refusedWith = async (code: string, status = 403) =>
      expect(await check(operation_id, 'passed')).toMatchObject({ status, body: { code } })
    bot.roles = ['operator', 'planner', 'viewer']
    p.deps.trust.principals.drop('all')
    await refusedWith('permission_missing')
    bot.roles = ['controller']
    bot.machine = { permissions: ['operation:read', 'operation:control'], behind: [] }
    p.deps.trust.principals.drop('all')
    await refusedWith('permission_missing')
    bot.machine = { permissions: ['operation:read', 'signal:send'], behind: [] }
    bot.scope = { regionId: 'elsewhere' }
    p.deps.trust.principals.drop('all')
    await refusedWith('operation', 404)
    delete bot.scope
    p.deps.trust.principals.drop('all')
    const bad = { type: 'external_check_result', body: { gate_id: 'go', round: 1, verdict: 'maybe' } }
    expect(await send(bot, operation_id, bad)).toMatchObject({ status: 400, body: { code: 'schema_violation' } })
    for (const type of ['pause', 'cancel', 'calendar_changed'])
      expect(await send(bot, operation_id, { type })).toMatchObject({ status: 400 })
    expect(await gateOf(operation_id)).toMatchObject({ status: 'waiting' })
    const hal = person('hal', ['controller'])
    Object.assign(p.people, { hal })
    const answered = { ...bad, body: { ...bad.body, verdict: 'passed' } }
    expect(await send(hal, operation_id, answered)).toMatchObject({ status: 403, body: { code: 'permission_missing' } })
  })
})

it('policies distinguish a machine from a person', () => {
  const { refuse } = loadPolicies()
  const object = { type: 'Gate', id: 'o/go', requester: 'x', behind: [], involved: [], four_eyes: true } as const
  const rest = { groups: [], risk: 'low', environment: null, types: [], regions: [], labels: {} }
  const asked = { user_id: 'bot', groups: [], granted: true, both: true, as_groups: [], auth_age_s: 1 }
  const codes = (['person', 'machine'] as const).map((kind) =>
    (['gate.approve', 'gate.reject', 'gate.break_glass'] as const).map(
      (action) => refuse({ ...asked, kind, action, object: { ...object, ...rest } })?.code,
    ),
  )
  expect(codes).toEqual([
    [undefined, undefined, undefined],
    ['machine_vote', 'machine_vote', 'machine_vote'],
  ])
})
