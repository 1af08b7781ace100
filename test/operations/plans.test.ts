import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { loadPlanPolicies } from '../../apps/operations/policies/plans.ts'
import { frameFor } from '../../apps/operations/stream/stream.ts'
import type { PackView } from '../../apps/shared/contracts/operations/plans.ts'
import { digest } from '../../apps/shared/data/digest.ts'
import { type DeadLetter, listDeadLetters, releaseLetter } from '../../db/inbox.ts'
import { grantLeases } from '../../db/operations/leases/rows.ts'
import { listSummaries } from '../../db/operations/operations/read.ts'
import { listComing } from '../../db/operations/plans/planning.ts'
import { expireDue, operationClosed, planConfirmed, startWithdrawn } from '../../db/operations/plans/rows.ts'
import { inboxOf } from '../../db/operations/tables/index.ts'
import { siteFolder } from '../support/site.ts'
import { until } from '../support/until.ts'
import { type CatalogLog, catalogLog } from './support/catalog.ts'
import { must, type Person, type Platform, person, problem, type Reply, startPlatform } from './support/platform.ts'

/** A site's additions to the shipped packs: a runbook for each host, and one that needs no host. */
const SITE_PACK = `
format: signalbox/pack@1
pack: site
version: 1.0.0
title: Runbooks of this site
owners: [netops]
procedures:
  - key: look
    kind: runbook
    title: Look at each host
    match: { when: target.lifecycle_status == 'active' }
    parameters: { type: object, properties: { level: { type: integer, default: 1 } }, additionalProperties: false }
    lease: { mode: shared, ancestors: none }
    batch: { canary: 1 }
    gates: [{ policy: cutover, at: after_canary }]
    steps: [{ id: look, executor: noop, with: { outputs: { name: { $from: target/name }, level: { $from: params/level } } } }]
  - key: announce
    kind: runbook
    title: Say it once
    scope: plan
    steps:
      - { id: say, executor: noop, with: { outputs: { of: { $from: plan/targets } } } }
      - { id: done, needs: [say], executor: noop }
  - key: play
    kind: runbook
    title: Run a playbook on all hosts
    scope: plan
    steps:
      - id: play
        executor: noop
        with:
          outputs:
            hosts: { $each: { key: target/name, value: { address: { $from: target/resource_id } } } }
            groups: { $each: { key: target/name, by: target/labels/role } }
  - key: observe
    kind: runbook
    title: Observe a canary before the rest
    scope: plan
    steps:
      - { id: canary, executor: noop }
      - id: watch
        needs: [canary]
        executor: watch
        with: { for_s: 60, every_s: 10, checks: [{ name: errors, prometheus: http://127.0.0.1:9, query: errors, max: 1 }] }
      - { id: rest, needs: [watch], executor: noop }
`
/** Asked between a canary and the rest, of plans with this label. */
const ASK = `
format: signalbox/gate-policy@1
key: ask
version: 1
question: Let the rest follow the canary?
applies: "'observed' in plan.labels"
place: { at: before_step, step: rest }
approvals: { groups: [{ group: netops, min: 1 }] }
on_timeout: approve
`
/** A day that keeps this site's window closed now, whatever the time is. */
const OTHER_DAY = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'][(new Date().getUTCDay() + 3) % 7]
const SITE_CALENDAR = `
format: signalbox/calendar@1
windows:
  - { window_id: never-mind, applies: "target.name == 'nobody'", timezone: Europe/Berlin, days: [mon, tue, wed, thu, fri, sat, sun], from: '00:00', to: '00:00' }
  - { window_id: other-day, applies: "'season' in target.labels", timezone: UTC, days: [${OTHER_DAY}], from: '10:00', to: '11:00' }
freezes:
  - { freeze_id: season, title: The season, applies: "'season' in target.labels", from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z', approvers: [netops-leads] }
  - { freeze_id: past, title: Long ago, applies: 'true', from: '2020-01-01T00:00:00Z', to: '2020-01-02T00:00:00Z', approvers: [netops] }
  - { freeze_id: far, title: The next century, applies: 'true', from: '2100-01-01T00:00:00Z', to: '2100-01-02T00:00:00Z', approvers: [netops] }
`
/** A planning policy for plans of one tier. */
const forbid = (id: string, detail: string, tier: string) =>
  `@id("${id}") @detail("${detail}") forbid (principal, action == Action::"plan.execute", resource is Plan)
   when { resource.hasTag("tier") && resource.getTag("tier") == "${tier}" };`
let catalog: CatalogLog
let p: Platform
beforeAll(async () => {
  catalog = await catalogLog()
  catalog.loadTypes()
  catalog.put('eu1', { type_key: 'topology.region' })
  p = await startPlatform({
    relay: false,
    instances: 2,
    catalog: createCatalogClient(catalog.url, () => 'token'),
    env: {
      OPERATIONS__COMMANDS__WAIT_MS: '0',
      OPERATIONS__PROJECTION__MAX_LAG_MS: '0',
      OPERATIONS__LIMITS__TARGETS: '10',
      OPERATIONS__PACKS__DIR: siteFolder({ 'site.yaml': SITE_PACK }),
      OPERATIONS__POLICY__DIR: siteFolder({
        'hard.cedar': forbid('no_gold', 'Gold is not touched by anybody.', 'gold'),
        'soft.cedar': `@approvers("netops-leads") ${forbid('silver', 'Silver needs a second look.', 'silver')}`,
        'calendar/site.yaml': SITE_CALENDAR,
        'gates/ask.yaml': ASK,
        'advisory.cedar': forbid('bronze', 'Bronze is old.', 'bronze'),
      }),
    },
  })
})
afterAll(async () => {
  await p.stop()
  await catalog.close()
})

let number = 0
let hosts: string[]
/** Fresh hosts for each test, so that no operation holds a lease on them. */
beforeEach(() => {
  number += 1
  hosts = ['01', '02', '03'].map((n) => `h${number}-${n}`)
  for (const id of hosts) catalog.put(id, { parent_id: 'eu1', name: id })
})

const stated = async (more: Record<string, unknown> = {}) => {
  const body = {
    kind: 'change',
    title: 'web 2.4.0',
    reason: 'a new release',
    targets: hosts.map((resource_id) => ({ resource_id })),
    change: { op: 'update', desired_state_patch: { release: '2.4.0' }, parameters: { drain_s: 1 } },
    labels: { environment: 'demo' },
    ...more,
  }
  return must(await p.as('olga').post('/v1/intents', body), 201).body
}
const preview = (intent_id: string, body: unknown = {}) =>
  p.as('olga').post(`/v1/intents/${intent_id}/plan-preview`, body)
const planned = async (more: Record<string, unknown> = {}) => {
  const intent = await stated(more)
  return { intent, plan: must(await preview(intent.intent_id), 201).body }
}
type PlanBody = { plan_id: string; plan_hash: string }
const start = (plan: PlanBody, more: Record<string, unknown> = {}, options = {}) =>
  p.as('olga').post(`/v1/plans/${plan.plan_id}/start`, { reviewed_plan_hash: plan.plan_hash, ...more }, options)
const read = async (plan: PlanBody) => must(await p.as('vic').get(`/v1/plans/${plan.plan_id}`), 200).body
const statusOf = async (intent_id: string) => must(await p.as('vic').get(`/v1/intents/${intent_id}`), 200).body.status
/** A busy machine may answer 503: a retryable request is sent again under its own key, as a client would. */
const firmly = (send: (key: string) => Promise<Reply>): Promise<Reply> => {
  const key = randomUUID()
  return until(
    async () => {
      const reply = await send(key)
      return reply.status === 503 && reply.body.retryable ? undefined : reply
    },
    { what: 'an answer other than 503' },
  )
}
/** A thread may be slow to start on a busy machine. */
const rehearsed = (intent_id: string, body: unknown) =>
  firmly((key) => p.as('olga').post(`/v1/intents/${intent_id}/plan-preview`, body, { key }))
const operationsOf = (plan: PlanBody) =>
  p.query('select operation_id from operations.operations where plan_id = $1', [plan.plan_id])

describe('a preview', () => {
  it('shows what changes, how risky it is, who must agree', async () => {
    const { intent, plan } = await planned()
    expect(plan).toMatchObject({
      intent_id: intent.intent_id,
      status: 'ready',
      counts: { update: 3, nodes: 14, gates: 1 },
      packs: [{ pack: 'fleet', version: '1.4.0' }],
      catalog_pins: hosts.map((resource_id) => ({ resource_id, version: 1 })),
      pins_moved: [],
      risk: { level: 'low', score: 10 },
      conflicts: [],
      superseded_plan_id: null,
      operation_id: null,
    })
    expect(plan.diff[0]).toEqual({
      resource_id: hosts[0],
      name: hosts[0],
      type_key: 'fleet.host',
      region_id: 'eu1',
      change: 'update',
      fields: [{ path: '/release', before: '2.3.9', after: '2.4.0', sensitive: false, noise: false }],
    })
    expect(plan.gates).toMatchObject([{ gate_id: 'cutover', who: ['netops'], can_i: false }])
    expect(plan.allowed_actions).toMatchObject([
      { action: 'start', allowed: true },
      { action: 'preview', allowed: true },
    ])
    expect(await statusOf(intent.intent_id)).toBe('previewed')
    const eva = must(await p.as('eva').get(`/v1/plans/${plan.plan_id}`), 200).body
    expect(eva.gates[0].can_i).toBe(true)
    expect(eva.allowed_actions).toMatchObject([
      { action: 'start', allowed: false, reason_code: 'permission_missing' },
      { action: 'preview', allowed: false, reason_code: 'permission_missing' },
    ])
  })

  it('hashes the document that is reviewed', async () => {
    const { plan } = await planned()
    const [row] = await p.query('select document, plan_hash from operations.plans where plan_id = $1', [plan.plan_id])
    expect(digest(row?.document)).toBe(plan.plan_hash)
    expect(Object.keys(row?.document).sort()).toEqual(
      [
        'catalog_pins',
        'constraints',
        'gates',
        'intent_id',
        'kind',
        'leases',
        'nodes',
        'packs',
        'policies',
        'windows',
      ].sort(),
    )
  })

  it('draws the graph in rank order, the same bytes for equal plans', async () => {
    const { plan } = await planned()
    const get = async (query = '') => must(await p.as('vic').get(`/v1/plans/${plan.plan_id}/graph${query}`), 200)
    const graph = await get()
    expect(graph.body).toMatchObject({ plan_hash: plan.plan_hash, gates: [{ gate_id: 'cutover', state: 'armed' }] })
    expect(graph.body.nodes).toHaveLength(14)
    expect(new Set(graph.body.nodes.map(({ state }: { state: string }) => state))).toEqual(new Set(['pending']))
    expect((await get()).text).toBe(graph.text)
    expect((await get('?collapse=groups')).body).toMatchObject({
      nodes: [],
      groups: [{ group_id: 'canary', counts: { pending: 5 } }, {}],
    })
  })

  it('with the same effect is the same plan; a different one replaces it', async () => {
    const { intent, plan } = await planned()
    const again = must(await preview(intent.intent_id), 200).body
    expect(again.plan_id).toBe(plan.plan_id)
    catalog.put(hosts[0] as string, { labels: { tier: 'gold' } })
    expect(must(await preview(intent.intent_id), 200).body).toMatchObject({
      plan_id: plan.plan_id,
      pins_moved: [{ resource_id: hosts[0], planned: 1, current: 2 }],
    })
    catalog.put(hosts[0] as string, { desired_state: { hostname: 'x', release: '2.3.7' } })
    const other = must(await preview(intent.intent_id), 201).body
    expect(other).toMatchObject({ superseded_plan_id: plan.plan_id })
    expect(await read(plan)).toMatchObject({ status: 'superseded', superseded_by: other.plan_id })
    expect(problem(await start(plan))).toBe('409 invalid_state_transition/plan_not_ready')
  })

  it('by many at one time makes one plan', async () => {
    const intent = await stated()
    const replies = await Promise.all(
      Array.from({ length: 8 }, () =>
        firmly((key) => p.as('olga').post(`/v1/intents/${intent.intent_id}/plan-preview`, {}, { key })),
      ),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 200, 200, 201])
    expect(new Set(replies.map(({ body }) => body.plan_id)).size).toBe(1)
  })

  it('leaves out excluded targets, and those already in their desired state', async () => {
    catalog.put(hosts[1] as string, { desired_state: { hostname: 'h', release: '2.4.0' } })
    const intent = await stated()
    const { body } = must(await preview(intent.intent_id, { exclude_targets: [hosts[2]] }), 201)
    expect(body.counts).toMatchObject({ update: 1, no_change: 1, nodes: 5 })
    expect(body.catalog_pins).toHaveLength(2)
  })

  it('is refused if an excluded id is no target, is used by a node of a graph, or leaves none', async () => {
    const { intent_id } = await stated()
    const refused = async (exclude_targets: string[], code: string, pointer: string, id = intent_id) => {
      const reply = await preview(id, { exclude_targets })
      expect(problem(reply)).toBe(`422 validation_error/${code}`)
      expect(reply.body.violations).toMatchObject([{ pointer }])
      return reply.body.detail
    }
    await refused([hosts[2] as string, `${hosts[0]}1`], 'target_not_found', '/exclude_targets/1')
    await refused(hosts, 'no_targets', '/exclude_targets')
    const nodes = [{ node_id: 'one', executor: 'noop', target_id: hosts[0] }]
    const body = { kind: 'graph', title: 'g', reason: 'r', graph: { nodes } }
    const drawn = must(await p.as('pia').post('/v1/intents', body), 201).body
    const detail = await refused([hosts[0] as string], 'parameters_invalid', '/exclude_targets/0', drawn.intent_id)
    expect(detail).toContain('the node "one"')
  })

  it('without changes can be read, but not started', async () => {
    const { plan } = await planned({ change: { op: 'update', desired_state_patch: { release: '2.3.9' } } })
    expect(plan.warnings).toContainEqual(expect.objectContaining({ code: 'nothing_to_do' }))
    expect(problem(await start(plan))).toBe('409 invalid_state_transition/plan_not_ready')
  })

  it('plans and starts a graph of 5,000 nodes, whose intent has more than a megabyte', async () => {
    const ids = Array.from({ length: 5000 }, (_, at) => `step-${String(at).padStart(4, '0')}`)
    const nodes = ids.map((node_id, at) => ({
      node_id,
      name: `Bring ${node_id} to the release that the whole site has been waiting for`,
      executor: 'noop',
      with: { outputs: { release: '2.4.0', note: 'x'.repeat(60) } },
      depends_on: at < 100 ? [] : [ids[at - 100]],
    }))
    const graph = { nodes, gates: [{ gate_id: 'go', policy: { approvals: { quorum: 1 } }, guards: ids }] }
    expect(JSON.stringify(graph).length).toBeGreaterThan(1_200_000)
    const { plan } = await planned({ kind: 'graph', change: undefined, targets: undefined, graph })
    expect(plan.counts).toMatchObject({ nodes: 5000 })
    must(await start(plan), 202)
  }, 120_000)

  it('warns of a gate that no one could open', async () => {
    const gate = (group: string) => ({
      kind: 'graph',
      change: undefined,
      targets: undefined,
      graph: {
        nodes: [{ node_id: 'a', executor: 'noop' }],
        gates: [{ gate_id: 'go', policy: { approvals: { groups: [{ group, min: 1 }] } }, guards: ['a'] }],
      },
    })
    expect((await planned(gate('lonely'))).plan.warnings).toMatchObject([{ code: 'no_eligible_approver' }])
    expect((await planned(gate('netops'))).plan.warnings).toEqual([])
  })

  it('warns of steps that no agent could take now, and refuses a pool without agents', async () => {
    const job = (node_id: string, labels: object, pool = 'demo') => ({
      ...{ node_id, executor: 'external', pool, with: { job: 'x', inputs: {}, labels } },
    })
    const graphOf = (...nodes: object[]) => ({ kind: 'graph', change: undefined, targets: undefined, graph: { nodes } })
    const eu1 = { region: 'eu1' }
    const five = graphOf(...['a', 'b', 'c', 'd'].map((id) => job(id, eu1)), job('e', {}))
    const warned = async () =>
      (await planned(five)).plan.warnings.map(({ code, message }: { code: string; message: string }) => [code, message])
    const words = (who: string, steps: string, seen: string) =>
      `No agent of the pool "demo"${who} asks for work now, so these steps would wait: ${steps}. Last seen: ${seen}.`
    expect(await warned()).toEqual([
      ['no_agent', words(' with region=eu1', 'a, b, c, +1', 'never')],
      ['no_agent', words('', 'e', 'never')],
    ])
    const seen = (agent: string, labels: object, ago_s: number) =>
      p.query(
        `insert into operations.agents (agent, machine, pools, labels, draining, seen_at)
         values ($1, 'machine:demo-runner', '{demo}', $2, false, date_trunc('second', clock_timestamp()) - make_interval(secs => $3))`,
        [agent, JSON.stringify(labels), ago_s],
      )
    await seen('eu1', eu1, 3600)
    await seen('us1', { region: 'us1' }, 0)
    expect(await warned()).toEqual([['no_agent', expect.stringMatching(/region=eu1 asks .* Last seen: 20\d\d-.*Z\.$/)]])
    await seen('eu1-b', { ...eu1, disk: 'ssd' }, 0)
    expect(await warned()).toEqual([])
    const intent = await stated(graphOf(job('a', {}, 'default')))
    const refused = await preview(intent.intent_id)
    expect(problem(refused)).toBe('422 validation_error/schema_violation')
    expect(refused.body.violations).toMatchObject([
      { code: 'inputs_invalid', message: 'there is no pool "default" with agents' },
    ])
  })

  it('can be rehearsed: the same seed gives the same bytes, kept with the plan until it starts, then in the evidence', async () => {
    const intent = await stated()
    const told = { rehearse: { seed: 3, approval_delay_s: 900, failures: [] } }
    const first = must(await rehearsed(intent.intent_id, told), 201).body
    expect(first.rehearsal).toMatchObject({
      seed: 3,
      ends: 'succeeded',
      lanes_count: 12,
      gates: [{ gate_id: 'cutover', status: 'approved' }],
    })
    const again = must(await rehearsed(intent.intent_id, told), 200).body
    expect(again.rehearsal).toEqual(first.rehearsal)
    const failures = [{ node_id: `verify.${hosts[0]}`, attempt: 1, class: 'refused' }]
    const worse = must(await rehearsed(intent.intent_id, { rehearse: { seed: 3, failures } }), 200).body
    expect(worse).toMatchObject({ plan_hash: first.plan_hash, rehearsal: { ends: 'blocked' } })
    expect((await read(first)).rehearsal).toEqual(worse.rehearsal)
    // A preview without one leaves the newest in place.
    expect(must(await preview(intent.intent_id), 200).body.rehearsal).toEqual(worse.rehearsal)
    const wrong = await rehearsed(intent.intent_id, {
      rehearse: { failures: [{ ...failures[0], node_id: 'nowhere' }] },
    })
    expect(problem(wrong)).toBe('422 validation_error/unknown_reference')
    expect(wrong.body.violations[0].pointer).toBe('/rehearse/failures/0/node_id')

    const { operation_id } = must(await start(first), 202).body
    const [evidence] = await p.query(
      `select subject_digest from operations.operation_evidence_index where operation_id = $1 and kind = 'rehearsal'`,
      [operation_id],
    )
    expect(evidence?.subject_digest).toBe(digest(worse.rehearsal))
  }, 120_000)

  it('of a runbook: chosen by name and version, once per target or once for the plan', async () => {
    const runbook = (more: object) => ({ kind: 'runbook', change: undefined, runbook: { pack: 'site', ...more } })
    const { plan } = await planned(runbook({ procedure: 'look', parameters: { level: 3 } }))
    expect(plan).toMatchObject({
      kind: 'runbook',
      packs: [{ pack: 'site', version: '1.0.0' }],
      counts: { nodes: 5, gates: 1, no_change: 0 },
      leases: hosts.map((resource_id) => ({ resource_id, mode: 'shared' })),
    })
    const graph = must(await p.as('vic').get(`/v1/plans/${plan.plan_id}/graph`), 200).body
    expect(graph.nodes.map(({ node_id }: { node_id: string }) => node_id)).toContain(`look.${hosts[2]}`)
    const [row] = await p.query('select document from operations.plans where plan_id = $1', [plan.plan_id])
    const values = row?.document.nodes.find(({ node_id }: { node_id: string }) => node_id === `look.${hosts[0]}`)
    expect(values.with).toEqual({ outputs: { name: hosts[0], level: 3 } })

    const once = await planned({ ...runbook({ procedure: 'announce', version: '1.0.0' }), targets: undefined })
    expect(once.plan).toMatchObject({ counts: { nodes: 2 }, catalog_pins: [], leases: [] })
    expect(must(await start(once.plan), 202).body.kind).toBe('runbook')
    const spare = { exclude_targets: hosts }
    const { intent_id } = await stated(runbook({ procedure: 'announce' }))
    expect(must(await preview(intent_id, spare), 201).body.catalog_pins).toEqual([])
    const each = await stated(runbook({ procedure: 'look' }))
    expect(problem(await preview(each.intent_id, spare))).toBe('422 validation_error/no_targets')

    const state = (body: object) =>
      p.as('olga').post('/v1/intents', { kind: 'runbook', title: 't', reason: 'to see', ...body })
    const named = (more: object) => ({ runbook: { pack: 'site', procedure: 'look', ...more } })
    const targets = hosts.map((resource_id) => ({ resource_id }))
    expect(problem(await state(named({ procedure: 'nothing' })))).toBe('422 validation_error/unknown_procedure')
    expect(problem(await state(named({ version: '9.0.0' })))).toBe('422 validation_error/unknown_procedure')
    expect(problem(await state({ runbook: { pack: 'fleet', procedure: 'release' } }))).toBe(
      '422 validation_error/unknown_procedure',
    )
    expect(problem(await state({ change: { op: 'create' }, ...named({}) }))).toBe(
      '400 validation_error/schema_violation',
    )
    const bare = must(await state(named({})), 201).body
    expect(problem(await preview(bare.intent_id))).toBe('422 validation_error/no_targets')
    const odd = must(await state({ ...named({ parameters: { level: 'x' } }), targets }), 201).body
    expect(problem(await preview(odd.intent_id))).toBe('422 validation_error/parameters_invalid')
  })

  it('has an inventory of the resources that a selector matches, and pins them', async () => {
    const [first, second] = hosts as [string, string]
    for (const [id, role] of [
      [first, 'web'],
      [second, 'db'],
    ] as const)
      catalog.put(id, { parent_id: 'eu1', name: id, labels: { role } })
    // An intent that names them brings them here.
    await stated()
    const when = `target.name.startsWith('${first.slice(0, -2)}')`
    const { plan } = await planned({
      ...{ kind: 'runbook', change: undefined, runbook: { pack: 'site', procedure: 'play' } },
      targets: [{ selector: { type_key: 'fleet.host', when } }],
    })
    expect(plan).toMatchObject({
      counts: { nodes: 1 },
      catalog_pins: hosts.map((resource_id, i) => ({ resource_id, version: i < 2 ? 2 : 1 })),
      leases: expect.arrayContaining(hosts.map((resource_id) => ({ resource_id, mode: 'exclusive' }))),
    })
    const [row] = await p.query('select document from operations.plans where plan_id = $1', [plan.plan_id])
    expect(row?.document.nodes[0].with).toEqual({
      outputs: {
        hosts: Object.fromEntries(hosts.map((id) => [id, { address: id }])),
        groups: { web: [first], db: [second] },
      },
    })
    // Another inventory is another plan: a start of this one is refused.
    catalog.put(second, { parent_id: 'eu1', name: second, labels: { role: 'web' } })
    expect((await start(plan)).status).toBe(409)
  })

  it('names conflicts: closed windows, freezes, operations on dependents of a target, other plans', async () => {
    const [first, second, third] = hosts as [string, string, string]
    catalog.put(first, { parent_id: 'eu1', name: first, labels: { season: 'high' } })
    catalog.link({ type_key: 'depends_on', from_id: second, to_id: third })
    const other = await planned({ title: 'beside', targets: [{ resource_id: second }] })
    must(await start(other.plan), 202)
    const rival = await planned({ title: 'rival', targets: [{ resource_id: first }] })
    const { plan } = await planned({ targets: [{ resource_id: first }, { resource_id: third }] })
    expect(plan.conflicts).toMatchObject([
      {
        kind: 'dependent',
        resource_id: second,
        title: 'beside',
        message: expect.stringContaining('"beside" is changing'),
      },
      { kind: 'window', id: 'other-day', message: expect.stringContaining('opens at') },
      { kind: 'freeze', id: 'season' },
      { kind: 'plan', id: rival.plan.plan_id, title: 'rival' },
    ])
    expect(plan.gates.map(({ kind }: { kind: string }) => kind)).toContain('freeze')
    // Started now it is queued until the window opens.
    const begun = must(await start(plan), 202).body
    const opening = /opens at (.*)\.$/.exec(plan.conflicts[1].message)?.[1]
    expect(begun).toMatchObject({ status: 'queued', constraints: { not_before: opening } })
    expect(new Date(opening ?? '').toISOString()).toMatch(/T10:00:00\.000Z$/)
    // Until then another change of the targets may go first.
    expect(begun.leases).toEqual([])
    expect((await planned({ targets: [{ resource_id: third }] })).plan.conflicts).toContainEqual({
      ...{ kind: 'waits', id: begun.operation_id, resource_id: third, title: 'web 2.4.0' },
      message: `"web 2.4.0" is waiting for its time, and will then hold ${third}.`,
    })
    // And later no node of that target starts outside the window or during the freeze.
    const [control] = await p.query('select calendar from operations.operation_control where operation_id = $1', [
      begun.operation_id,
    ])
    expect(control?.calendar).toMatchObject({
      windows: { 'other-day': { from: '10:00', to: '11:00' } },
      asked: null,
      targets: { [first]: { windows: ['other-day'], freezes: expect.arrayContaining(['season']) } },
    })
    expect(control?.calendar.targets[third]?.windows ?? []).toEqual([])
  })

  it('keeps conflicts to their kind, and dependents to their number, where its reader may see neither', async () => {
    const [here, there, behind] = ['here', 'there', 'behind'].map((name) => `${name}-${number}`) as [
      string,
      string,
      string,
    ]
    catalog.put('us1', { type_key: 'topology.region' })
    catalog.put(here, { parent_id: 'eu1', name: here })
    for (const id of [there, behind]) catalog.put(id, { parent_id: 'us1', name: id })
    catalog.link({ type_key: 'depends_on', from_id: behind, to_id: here })
    for (const id of [there, behind])
      must(await start((await planned({ title: `secret ${id}`, targets: [{ resource_id: id }] })).plan), 202)
    await planned({ title: 'secret rival', targets: [{ resource_id: there }] })
    const { plan } = await planned({ targets: [{ resource_id: here }, { resource_id: there }] })
    const titles = (conflicts: { title: string }[]) => conflicts.map(({ title }) => title)
    expect(titles(plan.conflicts)).toEqual([`secret ${there}`, `secret ${behind}`, 'secret rival'])
    expect(plan.impact.dependents).toEqual([behind])

    const local = person('local', ['viewer'], [], { regionId: 'eu1' })
    Object.assign(p.people, { local })
    const { conflicts, impact } = must(await p.as(local).get(`/v1/plans/${plan.plan_id}`), 200).body
    const hidden = { id: '', title: null }
    expect(conflicts).toEqual([
      { ...hidden, kind: 'lease', resource_id: there, message: `Another operation holds ${there}.` },
      {
        ...{ ...hidden, kind: 'dependent', resource_id: null },
        message: 'Another operation is changing a resource that depends on a target.',
      },
      {
        ...{ ...hidden, kind: 'plan', resource_id: null },
        message: 'Another plan is ready and changes some of the same resources.',
      },
    ])
    expect(impact).toMatchObject({ dependents: [], dependents_count: 1 })
  })

  it('names where the same change failed, to those who may see that operation', async () => {
    const [here] = hosts as [string, ...string[]]
    const [there, elsewhere] = [`away-${number}`, `beside-${number}`]
    catalog.put('us1', { type_key: 'topology.region' })
    for (const id of [there, elsewhere]) catalog.put(id, { parent_id: 'us1', name: id })
    const looking = (resource_id: string, level: number, title = 'look') =>
      planned({
        ...{ kind: 'runbook', change: undefined, title, targets: [{ resource_id }] },
        runbook: { pack: 'site', procedure: 'look', parameters: { level } },
      })
    const { operation_id } = must(await start((await looking(there, 7, 'look there')).plan), 202).body
    const failed = async (plan: PlanBody, as: Person | 'vic' = 'vic') =>
      must(await p.as(as).get(`/v1/plans/${plan.plan_id}`), 200).body.conflicts.filter(
        ({ kind }: { kind: string }) => kind === 'failed',
      )
    const { plan } = await looking(here, 7)
    expect(await failed(plan)).toEqual([])
    const error = { class: 'refused', message: 'Port 80 is taken.', retryable: false }
    const broken = `update operations.nodes set state = 'failed', error = $2, ended_at = clock_timestamp() where operation_id = $1`
    await p.query(broken, [operation_id, JSON.stringify(error)])
    await p.query('update operations.operations set failed = 1 where operation_id = $1', [operation_id])
    const message = `The same change failed on ${there} in "look there": Port 80 is taken.`
    const found = {
      ...{ kind: 'failed', id: operation_id, resource_id: there, title: 'look there' },
      message,
      error: error.message,
    }
    expect(await failed(plan)).toEqual([found])
    expect(await failed((await looking(here, 8)).plan)).toEqual([])
    expect(await failed((await looking('eu1', 7)).plan)).toEqual([])
    const local = person('local', ['viewer'], [], { regionId: 'eu1' })
    Object.assign(p.people, { local })
    expect(await failed(plan, local)).toEqual([])
    // Neither a person's cancel nor a refusal is a failure.
    for (const because of ['cancelled', 'rejected']) {
      await p.query(broken, [operation_id, JSON.stringify({ ...error, class: because })])
      expect(await failed(plan)).toEqual([])
    }
    await p.query(broken, [operation_id, JSON.stringify(error)])
    expect(await failed(plan)).toEqual([found])
    // It has succeeded there since, and another change has not.
    const succeed = (id: string) =>
      p.deps.db
        .transaction((tx) => operationClosed(tx, id, 'succeeded'))
        .then(() =>
          p.query(
            `update operations.operations set engine_status = 'succeeded', started_at = clock_timestamp(), ended_at = clock_timestamp() where operation_id = $1`,
            [id],
          ),
        )
    await succeed(must(await start((await looking(there, 8)).plan), 202).body.operation_id)
    await succeed(must(await start((await looking(elsewhere, 7)).plan), 202).body.operation_id)
    expect(await failed(plan)).toEqual([found])
    const mended = must(await start((await looking(there, 7)).plan), 202).body.operation_id
    await succeed(mended)
    expect(await failed(plan)).toEqual([])
    // One that ran before the failure mends none, though it was asked for later.
    const began = (when: string) =>
      p.query(
        `update operations.operations set started_at = clock_timestamp() - $2::interval where operation_id = $1`,
        [mended, when],
      )
    await began('1 h')
    expect(await failed(plan)).toEqual([found])
    await began('0 s')
    expect(await failed(plan)).toEqual([])
    await p.query(
      'update operations.operations set ended_at = null where operation_id <> $1 and resource_ids = array[$2]',
      [operation_id, there],
    )
    expect(await failed(plan)).toEqual([found])
    const long_over = `update operations.operations set ended_at = clock_timestamp() - interval '25 h' where operation_id = $1`
    await p.query(long_over, [operation_id])
    expect(await failed(plan)).toEqual([])
  })

  it('is judged by the hard, soft and advisory policies of the site', async () => {
    const tier = (name: string) => planned({ labels: { environment: 'demo', tier: name } })
    const results = (plan: { policy_results: { policy_id: string; level: string; result: string }[] }) =>
      plan.policy_results
        .filter(({ result }) => result === 'forbids')
        .map(({ policy_id, level }) => `${level} ${policy_id}`)
    const { plan: plain } = await planned()
    expect(results(plain)).toEqual([])
    expect(plain.policy_results).toHaveLength(4)

    const { plan: bronze } = await tier('bronze')
    expect([bronze.status, results(bronze), bronze.gates.length]).toEqual(['ready', ['advisory bronze'], 1])

    const { plan: silver } = await tier('silver')
    expect([silver.status, results(silver)]).toEqual(['ready', ['soft silver']])
    expect(silver.gates[0]).toMatchObject({
      gate_id: 'silver',
      kind: 'policy_override',
      question: 'Silver needs a second look. Continue despite this policy?',
      guards: [`drain.${hosts[0]}`],
      who: ['netops-leads'],
    })
    const { operation_id } = must(await start(silver), 202).body
    const told = await p.query(
      `select statement from operations.operation_evidence_index where operation_id = $1 and kind = 'policy_result'`,
      [operation_id],
    )
    expect(told).toEqual([{ statement: 'The soft policy silver forbids the plan: Silver needs a second look.' }])

    const { intent, plan: gold } = await tier('gold')
    expect(gold).toMatchObject({ status: 'blocked_by_policy', status_reason: 'Gold is not touched by anybody.' })
    expect(results(gold)).toEqual(['hard no_gold'])
    expect(gold.allowed_actions[0]).toMatchObject({ action: 'start', allowed: false, reason_code: 'hard_policy' })
    const refused = await start(gold)
    expect(problem(refused)).toBe('403 policy_denied/hard_policy')
    expect(refused.body).toMatchObject({ policy_ids: ['no_gold'], detail: 'Gold is not touched by anybody.' })
    expect(problem(await start(gold, { dry_run: true }))).toBe('403 policy_denied/hard_policy')
    expect(await operationsOf(gold)).toEqual([])
    // The same request again gives the same blocked plan; once a deploy removes the policy, a preview makes it ready.
    expect(must(await preview(intent.intent_id), 200).body).toMatchObject({
      plan_id: gold.plan_id,
      status: 'blocked_by_policy',
    })
    const [one, two] = p.running.map(({ deps }) => deps)
    if (!one || !two) throw new Error('two instances')
    const kept = one.planPolicies
    one.planPolicies = loadPlanPolicies()
    try {
      expect(problem(await start(gold))).toBe('409 invalid_state_transition/plan_not_ready')
      expect(must(await preview(intent.intent_id), 200).body).toMatchObject({ plan_id: gold.plan_id, status: 'ready' })
    } finally {
      one.planPolicies = kept
    }
    // Ready, but the other policies are back: those in force at the start count.
    expect(problem(await start(gold))).toBe('403 policy_denied/hard_policy')
  })

  it('waits for a position in the catalog, and reports if it does not arrive', async () => {
    const intent = await stated()
    expect((await preview(intent.intent_id, { min_watermark: String(catalog.events.length) })).status).toBe(201)
    const late = await preview(intent.intent_id, { min_watermark: '999999' })
    expect(problem(late)).toBe('503 stale_catalog_projection/projection_lag')
    expect(late.body).toMatchObject({ retryable: true, watermark: { required: '999999' } })
    expect(late.headers.get('retry-after')).toBe('1')
    catalog.state.away = true
    try {
      expect(problem(await preview(intent.intent_id))).toBe('503 stale_catalog_projection/projection_lag')
    } finally {
      catalog.state.away = false
    }
  })

  it('refuses a plan that cannot be carried out, with the code of the fault', async () => {
    const refusal = async (more: Record<string, unknown>) => problem(await preview((await stated(more)).intent_id))
    expect(await refusal({ change: { op: 'update', desired_state_patch: { hostname: 'x' } } })).toBe(
      '422 validation_error/unsupported_change',
    )
    expect(
      await refusal({ change: { op: 'update', desired_state_patch: { release: '3' }, parameters: { drain_s: -1 } } }),
    ).toBe('422 validation_error/parameters_invalid')
    expect(await refusal({ constraints: { risk_ceiling: 'low' }, labels: { environment: 'prod' } })).toBe(
      '403 policy_denied/risk_ceiling',
    )
    const graph = (nodes: unknown[]) => ({ kind: 'graph', change: undefined, targets: undefined, graph: { nodes } })
    expect(await refusal(graph([{ node_id: 'a', executor: 'noop', depends_on: ['a'] }]))).toBe(
      '422 validation_error/cycle',
    )
    expect(await refusal(graph([{ node_id: 'a', executor: 'magic' }]))).toBe('422 validation_error/unknown_executor')
  })

  it('refuses a secret that the pool of its step may not resolve, with its place', async () => {
    const plan = async (secret: string, pool?: string) => {
      const node = { node_id: 'a', executor: 'noop', with: {}, secrets: { token: secret }, ...(pool && { pool }) }
      const intent = await stated({ kind: 'graph', change: undefined, targets: undefined, graph: { nodes: [node] } })
      return preview(intent.intent_id)
    }
    expect((await plan('secret://file/fleet-token#1')).status).toBe(201)
    for (const refused of [
      await plan('secret://file/root-password#1'),
      await plan('secret://file/fleet-token#1', 'lab'),
    ])
      expect([problem(refused), refused.body.violations[0].pointer]).toEqual([
        '403 policy_denied/secret_not_allowed',
        '/nodes/a/secrets/token',
      ])
  })

  it('needs an existing window and an existing operation to retry', async () => {
    const state = async (who: 'olga' | 'far', more: object) =>
      problem(
        await p
          .as(who)
          .post('/v1/intents', {
            ...{ kind: 'graph', title: 't', reason: 'to see', graph: { nodes: [{ node_id: 'a', executor: 'noop' }] } },
            ...more,
          }),
      )
    const unknown = '422 validation_error/unknown_reference'
    expect(await state('olga', { constraints: { window_id: 'none-such' } })).toBe(unknown)
    expect(await state('olga', { constraints: { window_id: 'other-day' } })).toMatch(/^201/)
    const { plan } = await planned()
    const { operation_id } = must(await start(plan), 202).body
    expect(await state('olga', { retry_of: operation_id })).toMatch(/^201/)
    expect(await state('olga', { retry_of: randomUUID() })).toBe(unknown)
  })

  it('takes at most as many targets as one intent may have', async () => {
    const many = Array.from({ length: 11 }, (_, n) => `m${number}-${n}`)
    for (const id of many) catalog.put(id, { parent_id: 'eu1', name: id })
    const state = (targets: unknown[]) =>
      p
        .as('olga')
        .post('/v1/intents', {
          kind: 'action',
          title: 'restart',
          reason: 'to see',
          action: { action_key: 'restart' },
          targets,
        })
    const named = many.map((resource_id) => ({ resource_id }))
    must(await state(named.slice(0, 10)), 201)
    expect(problem(await state(named))).toBe('422 validation_error/too_many_targets')
    const selector = { type_key: 'fleet.host', when: `target.name.startsWith('m${number}-')` }
    expect(problem(await state([{ selector }]))).toBe('422 validation_error/too_many_targets')
    must(await state([{ selector: { ...selector, limit: 10 } }]), 201)
  })

  it('is for people who may create intents on all targets', async () => {
    const intent = await stated()
    const as = (who: 'vic' | 'far') => p.as(who).post(`/v1/intents/${intent.intent_id}/plan-preview`, {})
    expect(problem(await as('vic'))).toBe('403 policy_denied/permission_missing')
    expect(problem(await as('far'))).toBe('404 not_found/intent')
    expect(problem(await preview(randomUUID()))).toBe('404 not_found/intent')
    expect(problem(await preview(intent.intent_id, { colour: 1 }))).toBe('400 validation_error/schema_violation')
  })
})

describe('a start', () => {
  it('writes the reviewed operation: nodes, gates with digests, evidence, command', async () => {
    const { intent, plan } = await planned()
    const reply = await start(plan, { comment: 'go', max_parallel: 3, deadline_s: 3600 })
    expect(reply.status).toBe(202)
    const { operation_id } = reply.body
    expect(reply.headers.get('location')).toBe(
      `/v1/operations/${operation_id}/commands/${reply.body.command.command_id}`,
    )
    expect(reply.body).toMatchObject({
      status: 'queued',
      plan_id: plan.plan_id,
      plan_hash: plan.plan_hash,
      title: 'web 2.4.0',
      environment: 'demo',
      max_parallel: 3,
      progress: { total: 14, done: 0 },
      constraints: { max_parallel: 3, deadline_s: 3600 },
      command: { kind: 'start', status: 'accepted', seq: 1 },
    })
    expect(reply.body.deadline_at).not.toBeNull()
    const [document] = await p.query('select document from operations.plans where plan_id = $1', [plan.plan_id])
    const nodes = await p.query(
      'select node_id, spec, spec_digest, gate_ids, depends_on, state, ordinal from operations.nodes where operation_id = $1 order by ordinal',
      [operation_id],
    )
    expect(nodes.map(({ spec }) => spec)).toEqual(document?.document.nodes)
    expect(nodes.find(({ node_id }) => node_id === `drain.${hosts[1]}`)).toMatchObject({
      gate_ids: ['cutover'],
      depends_on: ['barrier.canary'],
      state: 'pending',
    })
    const [gate] = await p.query('select * from operations.gates where operation_id = $1', [operation_id])
    expect(gate).toMatchObject({ gate_id: 'cutover', status: 'armed', round: 1, approved_digest: null })
    expect(gate?.digest).toBe(digest(gate?.subject))
    expect(gate?.subject).toMatchObject({
      operation_id,
      changes: [{ resource_id: hosts[1] }, { resource_id: hosts[2] }],
    })
    const evidence = await p.query(
      'select kind, subject_digest, prev_hash from operations.operation_evidence_index where operation_id = $1 order by seq',
      [operation_id],
    )
    expect(evidence).toMatchObject([
      { kind: 'plan', subject_digest: plan.plan_hash, prev_hash: plan.plan_hash },
      { kind: 'start' },
    ])
    const [command] = await p.query(
      'select kind, class, payload, not_after from operations.operation_commands where operation_id = $1',
      [operation_id],
    )
    expect(command).toMatchObject({
      kind: 'start',
      class: 'start',
      payload: { plan_hash: plan.plan_hash, requester: 'olga' },
    })
    expect(command?.not_after).not.toBeNull()
    const held = await p.query(
      'select resource_id, mode from operations.leases where operation_id = $1 order by resource_id',
      [operation_id],
    )
    expect(held).toEqual([
      { resource_id: 'eu1', mode: 'shared' },
      ...hosts.map((resource_id) => ({ resource_id, mode: 'exclusive' })),
    ])
    const index = await p.query(
      `select resource_id, relation, change, version_from from operations.resource_operation_index where operation_id = $1 and relation = 'target' order by 1`,
      [operation_id],
    )
    expect(index[0]).toEqual({ resource_id: hosts[0], relation: 'target', change: 'update', version_from: '1' })
    expect(await read(plan)).toMatchObject({ status: 'locked', operation_id })
    expect(await statusOf(intent.intent_id)).toBe('executing')
    const [queued] = await p.query(`select payload from operations.outbox where agg_id = $1`, [operation_id])
    expect(queued?.payload.events[0]).toMatchObject({
      type: 'operation.queued',
      data: { kind: 'change', title: 'web 2.4.0', resources: hosts },
    })
  })

  it('answers 201 if the engine confirms in time', async () => {
    const fast = await startPlatform({ relay: false, catalog: createCatalogClient(catalog.url, () => 'token') })
    try {
      const graph = { nodes: [{ node_id: 'a', executor: 'noop' }] }
      const engine = setInterval(() => {
        void fast.query(
          `update operations.operation_commands set status = 'applied', outcome_at = clock_timestamp() where status = 'pending'`,
        )
      }, 20)
      const { started, operation_id } = await fast.startOperation(graph).finally(() => clearInterval(engine))
      expect(started.status).toBe(201)
      expect(started.headers.get('location')).toBe(`/v1/operations/${operation_id}`)
      expect(started.body.command).toMatchObject({ status: 'applied' })
    } finally {
      await fast.stop()
    }
  })

  it('accepts only the reviewed document', async () => {
    const { plan } = await planned()
    const other = await start({ ...plan, plan_hash: `sha256:${'0'.repeat(64)}` })
    expect(problem(other)).toBe('412 version_conflict/plan_hash_moved')
    expect(other.body.plan_hash).toBe(plan.plan_hash)
    expect(problem(await start({ ...plan, plan_hash: 'mine' }))).toBe('400 validation_error/schema_violation')
    expect(await operationsOf(plan)).toEqual([])
    expect(await read(plan)).toMatchObject({ status: 'ready' })
  })

  it('by many callers over two processes happens once; the others learn its place', async () => {
    const { plan } = await planned()
    const replies = await Promise.all(
      Array.from({ length: 24 }, (_, i) =>
        firmly((key) =>
          p
            .as(i % 3 === 0 ? 'both' : 'olga')
            .post(`/v1/plans/${plan.plan_id}/start`, { reviewed_plan_hash: plan.plan_hash }, { key, instance: i % 2 }),
        ),
      ),
    )
    const won = replies.filter(({ status }) => status === 202)
    const lost = replies.filter(({ status }) => status !== 202)
    expect(won).toHaveLength(1)
    const operation_id = won[0]?.body.operation_id
    for (const reply of lost) {
      expect(problem(reply)).toBe('409 plan_locked/already_started')
      expect(reply.body.operation_id).toBe(operation_id)
    }
    expect(await operationsOf(plan)).toEqual([{ operation_id }])
    const commands = await p.query('select count(*)::int from operations.operation_commands where operation_id = $1', [
      operation_id,
    ])
    expect(commands).toEqual([{ count: 1 }])
  })

  it('with one key many times is one operation and the same bytes', async () => {
    const { plan } = await planned()
    const key = randomUUID()
    const replies = await Promise.all(Array.from({ length: 10 }, (_, i) => start(plan, {}, { key, instance: i % 2 })))
    expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(await operationsOf(plan)).toHaveLength(1)
    expect(problem(await start(plan, { max_parallel: 2 }, { key }))).toBe('422 validation_error/idempotency_key_reused')
  })

  it('re-plans silently if only versions changed, and pins the new ones', async () => {
    const { plan } = await planned()
    catalog.put(hosts[0] as string, { labels: { tier: 'gold' } })
    await p.deps.projection.catchUp()
    const { body, status } = await start(plan)
    expect(status).toBe(202)
    expect(body.plan_hash).toBe(plan.plan_hash)
    const [row] = await p.query('select pins from operations.operations where operation_id = $1', [body.operation_id])
    expect(row?.pins).toEqual({ [hosts[0] as string]: 2, [hosts[1] as string]: 1, [hosts[2] as string]: 1 })
  })

  it('is refused if the values changed, and the plan is stale until it is made again', async () => {
    const { intent, plan } = await planned()
    const [id] = hosts as [string]
    catalog.put(id, { desired_state: { hostname: id, release: '2.3.8' } })
    await p.deps.projection.catchUp()
    const refused = await start(plan)
    expect(problem(refused)).toBe('409 stale_catalog_projection/resource_version_moved')
    expect(refused.body.pins_moved).toEqual([{ resource_id: id, planned: 1, current: 2 }])
    expect(await read(plan)).toMatchObject({ status: 'stale', status_reason: expect.stringContaining(id) })
    expect(problem(await start(plan))).toBe('409 invalid_state_transition/plan_not_ready')
    catalog.put(id, { desired_state: { hostname: id, release: '2.3.9' } })
    expect(must(await preview(intent.intent_id), 200).body).toMatchObject({ plan_id: plan.plan_id, status: 'ready' })
    expect((await start(plan)).status).toBe(202)
    expect(await operationsOf(plan)).toHaveLength(1)
  })

  it('is bound by the current policies: one that now requires a gate makes the plan stale', async () => {
    const [one] = p.running.map(({ deps }) => deps)
    if (!one) throw new Error('an instance')
    const kept = one.planPolicies
    one.planPolicies = loadPlanPolicies()
    const { intent, plan } = await planned({ labels: { environment: 'demo', tier: 'silver' } })
    one.planPolicies = kept
    const refused = await start(plan)
    expect(problem(refused)).toBe('409 invalid_state_transition/plan_not_ready')
    expect(refused.body).toMatchObject({ policies: ['silver'], hint: expect.stringContaining('Preview') })
    expect(await read(plan)).toMatchObject({ status: 'stale', status_reason: expect.stringContaining('silver') })
    const again = must(await preview(intent.intent_id), 201).body
    expect(again.gates[0]).toMatchObject({ gate_id: 'silver' })
    expect((await start(again)).status).toBe(202)
  })

  it('starts with a gate of a policy that shows more than the policy asks for', async () => {
    const runbook = { kind: 'runbook', change: undefined, runbook: { pack: 'site', procedure: 'observe' } }
    const { plan } = await planned({ ...runbook, targets: undefined, labels: { environment: 'demo', observed: 'yes' } })
    const [row] = await p.query('select document from operations.plans where plan_id = $1', [plan.plan_id])
    expect(row?.document.gates).toMatchObject([{ gate_id: 'ask', policy: { binds: ['nodes/watch.observe/outputs'] } }])
    must(await start(plan), 202)
    expect(await operationsOf(plan)).toHaveLength(1)
  })

  it('is bound by the current risk: new dependents of a target can lift it above the ceiling', async () => {
    const low = { constraints: { risk_ceiling: 'low' } }
    const one = { targets: [{ resource_id: hosts[0] ?? '' }] }
    const { plan } = await planned({ ...one, ...low })
    const { plan: free } = await planned(one)
    expect(plan.risk).toMatchObject({ level: 'low' })
    for (let n = 0; n < 11; n++) {
      catalog.put(`d${number}-${n}`)
      catalog.link({ type_key: 'depends_on', from_id: `d${number}-${n}`, to_id: hosts[0] ?? '' })
    }
    await p.deps.projection.catchUp()
    expect(problem(await start(plan))).toBe('403 policy_denied/risk_ceiling')
    const { operation_id } = must(await start(free), 202).body
    expect((await p.as('vic').get(`/v1/operations/${operation_id}`)).body.risk_level).toBe('medium')
  })

  it('is refused while an event of a target is set aside, because the shown state differs from the catalog', async () => {
    const { intent, plan } = await planned()
    const [id] = hosts as [string]
    const event = catalog.put(id, { desired_state: { hostname: id, release: '9' } })
    await p.deps.projection.park(event, new Error('poison'), 5)
    const gap = { status: 503, body: { watermark: { observed: '1', required: '2' }, resource_id: id } }
    for (const reply of [await start(plan), await preview(intent.intent_id)]) {
      expect(problem(reply)).toBe('503 stale_catalog_projection/projection_gap')
      expect(reply).toMatchObject(gap)
    }
    expect(await operationsOf(plan)).toEqual([])
    const others = { exclude_targets: [id] }
    expect((await p.as('pia').post(`/v1/intents/${intent.intent_id}/plan-preview`, others)).status).toBe(201)
    const letter = (await listDeadLetters(p.deps.db, inboxOf)).find(({ agg_id }) => agg_id === id) as DeadLetter
    await p.deps.db.transaction((tx) => releaseLetter(tx, inboxOf, letter, false))
    await p.deps.projection.catchUp()
    expect((await preview(intent.intent_id)).status).toBe(201)
  })

  it('is refused while another operation holds a target and it may not wait; of two that meet, one wins', async () => {
    const first = await planned()
    const second = await planned({ title: 'another' })
    expect(second.plan.conflicts).toMatchObject([{ kind: 'plan', id: first.plan.plan_id }])
    const once = { on_conflict: 'reject' }
    const replies = await Promise.all([start(first.plan, once), start(second.plan, once)])
    expect(replies.map(({ status }) => status).sort()).toEqual([202, 409])
    const lost = replies.find(({ status }) => status === 409) as Reply
    const won = replies.find(({ status }) => status === 202) as Reply
    expect(problem(lost)).toBe('409 plan_locked/resource_lease_held')
    expect(lost.body.blockers[0]).toMatchObject({
      kind: 'lease',
      operation_id: won.body.operation_id,
      href: `/v1/operations/${won.body.operation_id}`,
    })
    const loser = won.body.plan_id === first.plan.plan_id ? second : first
    expect(await read(loser.plan)).toMatchObject({ status: 'ready', conflicts: [{ kind: 'lease' }, {}, {}] })
    await p.deps.db.transaction((tx) => operationClosed(tx, won.body.operation_id, 'succeeded'))
    expect((await start(loser.plan, once)).status).toBe(202)
  })

  it('names once each operation that will hold its targets, at a gate, in line or before its time', async () => {
    const waits = async (plan: PlanBody, as: Person | 'vic' = 'vic') =>
      must(await p.as(as).get(`/v1/plans/${plan.plan_id}`), 200).body.conflicts.filter(
        ({ kind }: { kind: string }) => kind === 'waits',
      )
    const [first, , third] = hosts as [string, string, string]
    const mine = await planned({ title: 'mine' })
    const { operation_id: id } = must(await start((await planned({ title: 'theirs' })).plan), 202).body
    expect(await waits(mine.plan)).toEqual([])
    // What the engine has it do at an entry gate.
    await p.query('delete from operations.leases where operation_id = $1', [id])
    await p.query(`update operations.operation_control set lease_state = 'released' where operation_id = $1`, [id])
    await p.query('update operations.operations set open_gates = 1 where operation_id = $1', [id])
    const at_gate = { kind: 'waits', id, resource_id: first, title: 'theirs' }
    expect(await waits(mine.plan)).toEqual([
      { ...at_gate, message: `"theirs" is waiting for an approval, and will then hold ${first} and 2 more.` },
    ])
    const afar = person('afar', ['viewer'], [], { regionId: 'us1' })
    Object.assign(p.people, { afar })
    await p.query('update operations.intents set requester_id = $2 where intent_id = $1', [
      mine.intent.intent_id,
      afar.id,
    ])
    expect(await waits(mine.plan, afar)).toEqual([
      {
        ...{ ...at_gate, id: '', title: null },
        message: `Another operation is waiting, and will then hold ${first} and 2 more.`,
      },
    ])
    // Whoever holds the leases goes first; whoever is in line for them is named to the others.
    const holder = must(await start((await planned({ title: 'holder', targets: [{ resource_id: third }] })).plan), 202)
    await until(
      async () =>
        (await p.query('select 1 from operations.leases where operation_id = $1', [holder.body.operation_id])).length >
        0,
    )
    const line = must(await start((await planned({ title: 'in line', targets: [{ resource_id: third }] })).plan), 202)
    expect(await waits(mine.plan)).toMatchObject([
      { id },
      {
        id: line.body.operation_id,
        message: `"in line" is waiting for other operations, and will then hold ${third}.`,
      },
    ])
    const comingTo = (operation_id: string) =>
      listComing(p.deps.db, [{ resource_id: third, mode: 'exclusive' }], operation_id)
    expect(await comingTo(holder.body.operation_id)).toEqual([])
    expect(await comingTo(line.body.operation_id)).toMatchObject([{ operation_id: id }])
    expect(await comingTo(id)).toMatchObject([{ operation_id: line.body.operation_id }])
  })

  it('names who holds its targets, tried or refused, only to those who may see them', async () => {
    const [place, host] = [`place-${number}`, `housed-${number}`]
    catalog.put(place, { type_key: 'topology.region' })
    catalog.put(host, { parent_id: place, name: host })
    const graph = { nodes: [{ node_id: 'a', executor: 'noop', target_id: place }] }
    const whole = await planned({ title: 'a secret', kind: 'graph', change: undefined, targets: undefined, graph })
    const { operation_id } = must(await start(whole.plan), 202).body
    const { plan } = await planned({ targets: [{ resource_id: host }] })
    Object.assign(p.people, { near: person('near', ['operator'], [], { typeKey: 'fleet.host' }) })
    const told = async (who: 'olga' | 'near') => {
      const body = { reviewed_plan_hash: plan.plan_hash }
      const begin = (more: object) => p.as(who as 'olga').post(`/v1/plans/${plan.plan_id}/start`, { ...body, ...more })
      const [tried, refused] = [await begin({ dry_run: true }), await begin({ on_conflict: 'reject' })]
      expect(problem(refused)).toBe('409 plan_locked/resource_lease_held')
      const { detail, blockers } = refused.body
      return { conflicts: must(tried, 200).body.effect.conflicts, detail, blockers }
    }
    const message = `"a secret" holds ${place}.`
    expect(await told('olga')).toEqual({
      conflicts: [{ kind: 'lease', id: operation_id, resource_id: place, title: 'a secret', message }],
      detail: message,
      blockers: [
        {
          ...{ kind: 'lease', id: place, operation_id, title: 'a secret', message },
          href: `/v1/operations/${operation_id}`,
        },
      ],
    })
    const hidden = `Another operation holds ${place}.`
    expect(await told('near')).toEqual({
      conflicts: [{ kind: 'lease', id: '', resource_id: place, title: null, message: hidden }],
      detail: hidden,
      blockers: [{ kind: 'lease', id: place, message: hidden }],
    })
    // The one that waits, as each of them reads and follows it.
    const late = must(await start(plan), 202).body
    const readings = async (who: 'olga' | 'near') => {
      const as = p.as(who as 'olga')
      const path = `/v1/operations/${late.operation_id}`
      const { items } = must(await as.get(`/v1/operations?resource_id=${host}`), 200).body
      const { events } = must(await as.get(`${path}/timeline?types=lease.waiting`), 200).body
      const user_id = (p.people as Record<string, Person>)[who]?.id ?? ''
      const { grants = [] } = (await p.deps.trust.principals.get(user_id)) ?? {}
      const [live] = await listSummaries(p.deps.db, [late.operation_id])
      const data = { ...live?.fields, operation_id: late.operation_id, change_seq: 1 }
      const frame = await frameFor(p.deps.db, { user_id, grants }, { event: 'operation', data })
      const rows = [must(await as.get(path), 200).body, items[0], frame.data] as Record<string, unknown[]>[]
      return { waits: rows.map((row) => row.blocked_on?.[0]), told: events[0].data.blockers }
    }
    const waits = {
      kind: 'lease',
      id: place,
      since: expect.any(String),
      message: `"a secret" holds or waits for ${place}.`,
    }
    const open = { ...waits, href: `/v1/operations/${operation_id}` }
    const closed = { ...waits, message: `Another operation holds or waits for ${place}.` }
    const blocker = { resource_id: place, mode: 'exclusive' }
    expect(await readings('olga')).toEqual({
      waits: [open, open, open],
      told: [{ ...blocker, operation_id, title: 'a secret' }],
    })
    expect(await readings('near')).toEqual({ waits: [closed, closed, closed], told: [blocker] })
  })

  it('narrows the limits of its reviewed plan, and never widens them', async () => {
    const in_days = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
    const constraints = { max_parallel: 2, not_before: in_days(2), window_id: 'never-mind', deadline_s: 3600 }
    const { plan } = await planned({ title: 'limited', constraints })
    for (const wider of [
      { max_parallel: 3 },
      { not_before: in_days(1) },
      { window_id: 'other-day' },
      { deadline_s: 3601 },
    ])
      expect([wider, problem(await start(plan, wider))]).toEqual([wider, '422 validation_error/beyond_plan'])
    const narrower = { max_parallel: 1, not_before: in_days(3), window_id: 'never-mind', deadline_s: 1800 }
    const { body } = await start(plan, { ...narrower, dry_run: true })
    expect(body).toMatchObject({ dry_run: true })
    const begun = must(await start(plan, narrower), 202).body
    expect(begun).toMatchObject({ max_parallel: 1, constraints: { max_parallel: 1, deadline_s: 1800 } })
    expect(Date.parse(begun.constraints.not_before)).toBeGreaterThanOrEqual(Date.parse(narrower.not_before))
  })

  /** Also while its time stands, when no reader is shown it. */
  const storedDeadline = async (operation_id: string) => {
    const text = `select extract(epoch from deadline_at) * 1000 as ms from operations.operations where operation_id = $1`
    const [row] = await p.query<{ ms: string }>(text, [operation_id])
    return Math.round(Number(row?.ms))
  }

  it('counts its deadline from the time that lets it begin, with and without a wait for leases', async () => {
    const holder = must(await start((await planned({ title: 'holder' })).plan), 202).body
    const nights = [1, 2].map((days) => new Date(Date.now() + days * 86_400_000).toISOString())
    const ids: string[] = []
    for (const not_before of nights) {
      const { plan } = await planned({ title: `from ${not_before}` })
      const begun = must(await start(plan, { not_before, deadline_s: 3600 }), 202).body
      expect(begun.deadline_at).toBeNull()
      expect(await storedDeadline(begun.operation_id)).toBe(Date.parse(not_before) + 3_600_000)
      expect(Date.parse(begun.eta_at)).toBeGreaterThan(Date.parse(not_before))
      ids.push(begun.operation_id)
    }
    const [early, late] = ids
    const [first, second] = nights as [string, string]
    const deadline = async (id = '') => Date.parse((await p.as('vic').get(`/v1/operations/${id}`)).body.deadline_at)
    const granted = async (ends: string, id = '') => {
      await p.deps.db.transaction((tx) => operationClosed(tx, ends, 'failed'))
      expect(await grantLeases(p.deps.db, { deadline_s: 300 })).toBe(1)
      return deadline(id)
    }
    expect(await granted(holder.operation_id, early)).toBe(Date.parse(first) + 3_600_000)
    // The other one waits until its time has come, and for half an hour more.
    await p.query(
      `update operations.operations set constraints = jsonb_set(constraints, '{not_before}', to_jsonb(now() - interval '30 min')),
         deadline_at = deadline_at - ($2::timestamptz - (now() - interval '30 min')) where operation_id = $1`,
      [late, second],
    )
    await p.query(`update operations.lease_waits set since = since - interval '1 day' where operation_id = $1`, [late])
    expect(Math.abs((await granted(early ?? '', late)) - Date.now() - 3_600_000)).toBeLessThan(10_000)
  })

  it('waits while another operation holds a target, then starts in the order of waiting', async () => {
    const plans = await Promise.all(['a', 'b', 'c'].map((title) => planned({ title })))
    const ids: string[] = []
    for (const { plan } of plans) ids.push(must(await start(plan), 202).body.operation_id)
    const [holder, second, third] = ids as [string, string, string]
    const { body } = await p.as('vic').get(`/v1/operations/${second}`)
    expect(body).toMatchObject({
      status: 'queued',
      blocked_on: [{ kind: 'lease', href: `/v1/operations/${holder}` }, {}, {}],
    })
    const heldBack = () =>
      p.query<{ operation_id: string; held: boolean }>(
        `select operation_id, next_try_at = 'infinity' and not_after is null as held from operations.operation_commands where operation_id = any($1) order by created_at`,
        [ids],
      )
    const held = async () => (await heldBack()).flatMap(({ operation_id, held }) => (held ? [operation_id] : []))
    const grant = () => grantLeases(p.deps.db, { deadline_s: 300 })
    expect(await held()).toEqual([second, third])
    // An hour later they wait for leases alone: the engine is not asked before.
    await p.query(
      `update operations.operation_commands set created_at = created_at - interval '1 h' where operation_id = any($1)`,
      [[second, third]],
    )
    const kinds = async (id: string) =>
      must(await p.as('vic').get(`/v1/operations/${id}`), 200).body.blocked_on.map(({ kind }: { kind: string }) => kind)
    expect(new Set(await kinds(third))).toEqual(new Set(['lease']))
    const holders = async (id: string) => {
      const { items } = must(await p.as('vic').get(`/v1/operations?resource_id=${hosts[0]}`), 200).body
      const { blocked_on } = items.find(({ operation_id }: { operation_id: string }) => operation_id === id)
      const ids = blocked_on.map(({ href = '' }: { href?: string }) => href.split('/').at(-1))
      return [...new Set(ids)]
    }
    expect(await holders(third)).toEqual([holder, second])
    const url = `/v1/operations/${third}`
    const since = { headers: { 'if-none-match': (await p.as('vic').get(url)).headers.get('etag') ?? '' } }
    expect((await p.as('vic').get(url, since)).status).toBe(200)
    expect(await grant()).toBe(0)
    await p.deps.db.transaction((tx) => operationClosed(tx, holder, 'failed'))
    expect((await Promise.all([grant(), grant(), grant()])).reduce((sum, n) => sum + n)).toBe(1)
    expect(await held()).toEqual([third])
    expect((await p.as('vic').get(`/v1/operations/${second}`)).body).toMatchObject({ blocked_on: [] })
    expect(await holders(third)).toEqual([second])
    const { events } = (await p.as('vic').get(`/v1/operations/${second}/timeline`)).body
    expect(events.map(({ type }: { type: string }) => type)).toEqual([
      'operation.queued',
      'command.accepted',
      'lease.waiting',
      'lease.granted',
    ])
    // One that never began gives its place to the next.
    await p.deps.db.transaction((tx) => startWithdrawn(tx, second))
    expect(await grant()).toBe(1)
    expect(await held()).toEqual([])
  })

  it('is granted what is free, however many wait longer for what is not', async () => {
    const [a, b] = hosts as [string, string]
    const one = (id: string) => ({ targets: [{ resource_id: id }] })
    must(await start((await planned(one(a))).plan), 202)
    const holder = must(await start((await planned(one(b))).plan), 202).body.operation_id
    const late = must(await start((await planned(one(b))).plan), 202).body.operation_id
    await p.query(
      `insert into operations.lease_waits (operation_id, wanted, since)
       select gen_random_uuid(), $1, now() - interval '1 h' from generate_series(1, 150)`,
      [JSON.stringify([{ resource_id: a, mode: 'exclusive' }])],
    )
    await p.deps.db.transaction((tx) => operationClosed(tx, holder, 'succeeded'))
    expect(await grantLeases(p.deps.db, { deadline_s: 300 })).toBe(1)
    expect((await p.as('vic').get(`/v1/operations/${late}`)).body.blocked_on).toEqual([])
    await p.query(`delete from operations.lease_waits where since < now() - interval '30 min'`)
  })

  it('begins its clock, and that of its commands, once it holds its leases', async () => {
    const holder = must(await start((await planned({})).plan), 202).body.operation_id
    const waits = await planned({ constraints: { deadline_s: 3600 } })
    const { operation_id } = must(await start(waits.plan), 202).body
    const read = async () => must(await p.as('olga').get(`/v1/operations/${operation_id}`), 200).body
    for (const verb of ['pause', 'resume'])
      must(await p.as('olga').post(`/v1/operations/${operation_id}/${verb}`, { reason: 'x' }), 200, 202)
    const timeOfResume = async () =>
      (
        await p.query(
          `select not_after from operations.operation_commands where operation_id = $1 and kind = 'resume'`,
          [operation_id],
        )
      )[0]
    expect(await timeOfResume()).toEqual({ not_after: null })
    expect((await read()).deadline_at).toBeNull()
    const earlier = await storedDeadline(operation_id)
    await p.query(`update operations.lease_waits set since = since - interval '2 h' where operation_id = $1`, [
      operation_id,
    ])
    await p.deps.db.transaction((tx) => operationClosed(tx, holder, 'succeeded'))
    expect(await grantLeases(p.deps.db, { deadline_s: 300 })).toBe(1)
    expect(await timeOfResume()).toEqual({ not_after: expect.anything() })
    const later_ms = (await storedDeadline(operation_id)) - earlier
    expect(later_ms).toBeGreaterThan(7_190_000)
    expect(later_ms).toBeLessThan(7_500_000)
  })

  it('is paused at once while it waits, passed over, and first again after the resume', async () => {
    const ids: string[] = []
    for (const title of ['holder', 'stopped', 'next'])
      ids.push(must(await start((await planned({ title })).plan), 202).body.operation_id)
    const [holder, stopped, next] = ids as [string, string, string]
    const read = async () => must(await p.as('olga').get(`/v1/operations/${stopped}`), 200).body
    const waiting = () =>
      p.query<{ id: string }>(`select operation_id as id from operations.lease_waits order by since`)
    const others = (await waiting()).map(({ id }) => id).filter((id) => !ids.includes(id))
    const waits = async () => (await waiting()).map(({ id }) => id).filter((id) => !others.includes(id))
    const paused = must(await p.as('olga').post(`/v1/operations/${stopped}/pause`, { reason: 'not now' }), 202).body
    expect(paused.status).toBe('paused')
    const inTheWay = [{ kind: 'paused', id: stopped, message: 'Paused by an operator.' }]
    expect(await read()).toMatchObject({ blocked_on: inTheWay })
    const stated = await p.query<{ type: string }>(
      `select type from operations.operation_timeline_view where operation_id = $1 and type like 'operation.paus%' order by seq`,
      [stopped],
    )
    expect(stated.map(({ type }) => type)).toEqual(['operation.pausing', 'operation.paused'])
    // Callers that wait longer than those of this test need not wait for the leases.
    expect(await p.deps.outcomes.within(paused.command.command_id, 5000)).toMatchObject({ kind: 'pause', held: true })
    await p.deps.db.transaction((tx) => operationClosed(tx, holder, 'succeeded'))
    expect(await grantLeases(p.deps.db, { deadline_s: 300 })).toBe(1)
    expect(await waits()).toEqual([stopped])
    expect(await read()).toMatchObject({ status: 'paused', leases: [] })
    must(await p.as('olga').post(`/v1/operations/${stopped}/resume`, { reason: 'now' }), 202)
    const { status, blocked_on } = await read()
    const href = `/v1/operations/${next}`
    expect([status, blocked_on]).toMatchObject(['queued', [1, 2, 3].map(() => ({ kind: 'lease', href }))])
    const last = must(await start((await planned({ title: 'last' })).plan), 202).body.operation_id
    await p.deps.db.transaction((tx) => operationClosed(tx, next, 'succeeded'))
    expect(await grantLeases(p.deps.db, { deadline_s: 300 })).toBe(1)
    expect(await waits()).toEqual([last])
  })

  it('does not overtake a waiting one, even if its own targets are free', async () => {
    const [a, b] = hosts as [string, string]
    const one = (...ids: string[]) => ({ targets: ids.map((resource_id) => ({ resource_id })) })
    must(await start((await planned(one(a))).plan), 202)
    must(await start((await planned(one(a, b))).plan), 202)
    const late = await planned(one(b))
    for (const dry_run of [true, false])
      expect(problem(await start(late.plan, { on_conflict: 'reject', dry_run }))).toBe(
        '409 plan_locked/resource_lease_held',
      )
    expect(must(await start(late.plan), 202).body.blocked_on).toMatchObject([{ kind: 'lease', id: b }])
  })

  it('leaves a whole place free for changes of its parts, and holds it for a change of itself', async () => {
    const part = await planned({ targets: [{ resource_id: hosts[0] }] })
    const sibling = await planned({ targets: [{ resource_id: hosts[1] }] })
    expect((await start(part.plan)).status).toBe(202)
    expect((await start(sibling.plan)).status).toBe(202)
    const whole = {
      kind: 'graph',
      change: undefined,
      targets: undefined,
      graph: { nodes: [{ node_id: 'a', executor: 'noop', target_id: 'eu1' }] },
    }
    expect(problem(await start((await planned(whole)).plan, { on_conflict: 'reject' }))).toBe(
      '409 plan_locked/resource_lease_held',
    )
  })

  it('in a dry run shows the result and stores nothing', async () => {
    const { plan } = await planned()
    const { status, body } = await start(plan, { dry_run: true })
    expect(status).toBe(200)
    expect(body).toMatchObject({ dry_run: true, effect: { conflicts: [], first_gate: 'cutover' } })
    expect(body.effect.first_nodes).toHaveLength(5)
    expect(body.allowed_actions[0]).toMatchObject({ action: 'start', allowed: true })
    expect(await operationsOf(plan)).toEqual([])
    expect(problem(await start({ ...plan, plan_hash: `sha256:${'0'.repeat(64)}` }, { dry_run: true }))).toBe(
      '412 version_conflict/plan_hash_moved',
    )
  })

  it('is refused in the order not found, policy, state, version', async () => {
    const { plan } = await planned()
    const wrong = { reviewed_plan_hash: `sha256:${'0'.repeat(64)}` }
    const as = (who: 'pia' | 'far' | 'olga' | 'vic', id = plan.plan_id) =>
      p.as(who).post(`/v1/plans/${id}/start`, wrong)
    expect(problem(await as('olga', randomUUID()))).toBe('404 not_found/plan')
    expect(problem(await as('far'))).toBe('404 not_found/plan')
    expect(problem(await as('vic'))).toBe('403 policy_denied/permission_missing')
    expect(problem(await as('pia'))).toBe('403 policy_denied/permission_missing')
    must(await start(plan), 202)
    expect(problem(await as('olga'))).toBe('409 plan_locked/already_started')
    expect(problem(await p.as('olga').post(`/v1/plans/${plan.plan_id}/start`, { ...wrong, colour: 1 }))).toBe(
      '400 validation_error/schema_violation',
    )
    expect(problem(await p.as('olga').post(`/v1/plans/${plan.plan_id}/start`, wrong, { key: null }))).toBe(
      '400 validation_error/idempotency_key_required',
    )
    expect(problem(await start(plan, { window_id: 'nowhere' }))).toBe('409 plan_locked/already_started')
  })

  it('needs every target in scope, although one is enough to read', async () => {
    catalog.put('us1', { type_key: 'topology.region' })
    const us = `us-${number}`
    catalog.put(us, { parent_id: 'us1', name: us })
    const { plan } = await planned({ targets: [{ resource_id: hosts[0] }, { resource_id: us }] })
    expect((await p.as('far').get(`/v1/plans/${plan.plan_id}`)).status).toBe(200)
    const refused = await p.as('far').post(`/v1/plans/${plan.plan_id}/start`, { reviewed_plan_hash: plan.plan_hash })
    expect(problem(refused)).toBe('403 policy_denied/out_of_scope')
    const { items } = must(await p.as('aud').get(`/v1/audit?object=plan:${plan.plan_id}&action=start`), 200).body
    expect(items).toMatchObject([{ outcome: 'denied', reason: 'out_of_scope' }])
  })
})

describe('the outcome of a started plan', () => {
  const started = async () => {
    const made = await planned()
    const { operation_id } = must(await start(made.plan), 202).body
    return { ...made, operation_id: operation_id as string }
  }
  const twice = async (run: (tx: Parameters<Parameters<typeof p.deps.db.transaction>[0]>[0]) => Promise<void>) => {
    await p.deps.db.transaction(run)
    await p.deps.db.transaction(run)
  }
  const eventsOf = async (agg_id: string) =>
    (
      await p.query<{ type: string; agg_version: string }>(
        `select payload -> 'events' -> 0 ->> 'type' as type, agg_version from operations.outbox where agg_id = $1 order by agg_version`,
        [agg_id],
      )
    ).map(({ type, agg_version }) => `${agg_version} ${type}`)

  it('confirmed by the engine: started; ended: the intent is fulfilled and the leases are free', async () => {
    const { intent, plan, operation_id } = await started()
    await twice((tx) => planConfirmed(tx, operation_id))
    expect(await read(plan)).toMatchObject({ status: 'started' })
    expect(problem(await preview(intent.intent_id))).toBe('409 plan_locked/already_started')
    await twice((tx) => operationClosed(tx, operation_id, 'succeeded_with_exceptions'))
    expect(await statusOf(intent.intent_id)).toBe('fulfilled')
    expect(problem(await preview(intent.intent_id))).toBe('409 invalid_state_transition/intent_closed')
    expect(await p.query('select 1 from operations.leases where operation_id = $1', [operation_id])).toEqual([])
    expect(await eventsOf(plan.plan_id)).toEqual(['1 plan.ready', '2 plan.locked', '3 plan.started'])
    expect(await eventsOf(intent.intent_id)).toEqual([
      '1 intent.open',
      '2 intent.previewed',
      '3 intent.executing',
      '4 intent.fulfilled',
    ])
  })

  it('failed: the intent is unfulfilled and can be planned again', async () => {
    const { intent, operation_id } = await started()
    await p.deps.db.transaction((tx) => operationClosed(tx, operation_id, 'failed'))
    expect(await statusOf(intent.intent_id)).toBe('unfulfilled')
    expect((await preview(intent.intent_id)).status).toBe(201)
  })

  it('withdrawn: the plan is ready, and can be started as another operation', async () => {
    const { intent, plan, operation_id } = await started()
    await twice((tx) => startWithdrawn(tx, operation_id))
    expect(await read(plan)).toMatchObject({ status: 'ready', operation_id: null })
    expect(await statusOf(intent.intent_id)).toBe('previewed')
  })

  it('time over for the intent first: its plan starts no more, and expires with it', async () => {
    const { intent, plan } = await planned()
    const expire = `update operations.intents set expires_at = clock_timestamp() - interval '1 s' where intent_id = $1`
    await p.query(expire, [intent.intent_id])
    // Before the sweeper has marked it.
    expect(problem(await start(plan))).toBe('409 invalid_state_transition/intent_closed')
    expect(problem(await preview(intent.intent_id))).toBe('409 invalid_state_transition/intent_closed')
    expect(must(await p.as('olga').get(`/v1/intents/${intent.intent_id}`), 200).body.status).toBe('expired')
    const listed = async (status: string) =>
      must(await p.as('olga').get(`/v1/intents?status=${status}`), 200).body.items.map(
        (one: { intent_id: string }) => one.intent_id,
      )
    expect(await listed('previewed')).not.toContain(intent.intent_id)
    expect(await listed('expired')).toContain(intent.intent_id)
    expect(await p.deps.db.transaction(expireDue)).toBe(1)
    expect(await read(plan)).toMatchObject({ status: 'expired' })
    // An expiry of the intent alone, as earlier versions left it.
    await p.query(`update operations.plans set status = 'ready' where plan_id = $1`, [plan.plan_id])
    const [action] = must(await p.as('olga').get(`/v1/plans/${plan.plan_id}`), 200).body.allowed_actions
    expect(action).toMatchObject({ action: 'start', allowed: false, reason_code: 'intent_closed' })
    expect(problem(await start(plan))).toBe('409 invalid_state_transition/intent_closed')
    expect(await read(plan)).toMatchObject({ operation_id: null })
  })

  it('time over: plan and intent expire, seen at once and stated by the sweeper', async () => {
    const { intent, plan } = await planned()
    await p.query(`update operations.plans set expires_at = clock_timestamp() - interval '1 s' where plan_id = $1`, [
      plan.plan_id,
    ])
    expect(await read(plan)).toMatchObject({ status: 'expired' })
    expect(problem(await start(plan))).toBe('409 invalid_state_transition/plan_not_ready')
    await p.query(
      `update operations.intents set expires_at = clock_timestamp() - interval '1 s' where intent_id = $1`,
      [intent.intent_id],
    )
    expect(await p.deps.db.transaction(expireDue)).toBe(2)
    expect(await p.deps.db.transaction(expireDue)).toBe(0)
    expect(await statusOf(intent.intent_id)).toBe('expired')
    expect(problem(await preview(intent.intent_id))).toBe('409 invalid_state_transition/intent_closed')
  })
})

it('lists the packs with their procedures, their use, and versions that are no longer loaded', async () => {
  await p.query(
    `insert into operations.packs (pack, version, digest, document) values ('site', '0.9.0', 'sha256:old', '{}')`,
  )
  const list = async (): Promise<PackView[]> => must(await p.as('vic').get('/v1/packs'), 200).body.items
  const site = async (version: string) => (await list()).find((one) => one.pack === 'site' && one.version === version)
  const before = await site('1.0.0')
  expect(before).toMatchObject({
    status: 'current',
    procedures: expect.arrayContaining([expect.objectContaining({ key: 'look', gates: ['cutover'] })]),
  })
  expect(await site('0.9.0')).toMatchObject({
    status: 'retired',
    procedures: [],
    used_by: { operations: 0, schedules: 0 },
  })
  const intent = {
    kind: 'runbook',
    title: 'Say it',
    reason: 'to see',
    runbook: { pack: 'site', procedure: 'announce' },
  }
  must(await p.as('pia').post('/v1/schedules', { when: { every_s: 86_400 }, intent }), 201)
  const { intent_id } = must(await p.as('pia').post('/v1/intents', intent), 201).body
  const plan = must(await p.as('pia').post(`/v1/intents/${intent_id}/plan-preview`, {}), 201).body
  must(await p.as('olga').post(`/v1/plans/${plan.plan_id}/start`, { reviewed_plan_hash: plan.plan_hash }), 201, 202)
  const { operations = 0, schedules = 0 } = before?.used_by ?? {}
  expect(await site('1.0.0')).toMatchObject({ used_by: { operations: operations + 1, schedules: schedules + 1 } })
})

it('lists the procedures with the schemas of their parameters', async () => {
  const { items } = must(await p.as('vic').get('/v1/procedures'), 200).body
  expect(items.map(({ pack, key }: { pack: string; key: string }) => `${pack}/${key}`)).toEqual([
    'delivery/detect_drift',
    'delivery/correct_drift',
    'delivery/force_unlock',
    'delivery/apply',
    'delivery/apply_set',
    'delivery/apply_playbook',
    'fleet/release',
    'fleet/restart',
    'fleet/rotate_certificate',
    'infra/realise',
    'infra/rollout',
    'site/look',
    'site/announce',
    'site/play',
    'site/observe',
  ])
  const release = items.find(({ key }: { key: string }) => key === 'release')
  expect(release.parameters.properties.drain_s).toMatchObject({ default: 30 })
})

it('shows the calendar: windows with their next opening, and freezes that have not ended', async () => {
  const { body } = must(await p.as('vic').get('/v1/calendar'), 200)
  expect(body.windows).toMatchObject([
    { window_id: 'never-mind', applies: "target.name == 'nobody'", open: true },
    { window_id: 'other-day', open: false },
  ])
  const { openings, closes_at } = body.windows[0]
  expect(openings[0]).toEqual({ opens_at: body.as_of, closes_at })
  expect(openings.length).toBeGreaterThanOrEqual(15)
  expect(Date.parse(body.windows[0].closes_at)).toBeGreaterThan(Date.parse(body.as_of))
  expect(body.freezes).toMatchObject([
    { freeze_id: 'season', in_force: true },
    { freeze_id: 'far', in_force: false, approvers: ['netops'] },
  ])
})

it('the audit log shows commands and refusals to auditors, newest first, in pages, by actor, action and object', async () => {
  const { plan } = await planned()
  const { operation_id } = must(await start(plan), 202).body
  must(await p.as('eva').post(`/v1/plans/${plan.plan_id}/start`, { reviewed_plan_hash: plan.plan_hash }), 403)
  const list = async (query: string) => must(await p.as('aud').get(`/v1/audit?${query}`), 200).body
  const started = await list(`object=operation:${operation_id}`)
  expect(started.items).toMatchObject([
    { actor: `user:${p.people.olga.id}`, roles: ['operator', 'planner'], action: 'start', outcome: 'done' },
  ])
  expect(started.items[0]).not.toHaveProperty('mac')
  const denied = await list(`actor=user:${p.people.eva.id}&page_size=1`)
  expect(denied.items).toMatchObject([{ outcome: 'denied', reason: 'permission_missing' }])
  const previews = await list('action=plan.preview&page_size=2')
  const rest = await list(`action=plan.preview&page_size=2&page_token=${previews.next_page_token}`)
  expect(rest.items[0].at < previews.items[1].at).toBe(true)
  expect(problem(await p.as('vic').get('/v1/audit'))).toBe('403 policy_denied/permission_missing')
  for (const times of ['from=yesterday', 'from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z'])
    expect(problem(await p.as('aud').get(`/v1/audit?${times}`))).toBe('400 validation_error/schema_violation')
})

describe('the HTTP endpoint of the projection', () => {
  const bring = (events: unknown, who = 'demo-control-plane') =>
    p.service(who).post('/internal/v1/catalog-projection-events', { events })

  it('applies events in the order of the stream, and reports known ones', async () => {
    const id = `door-${number}`
    const events = [catalog.put(id), catalog.put(id), catalog.sicken(id, 'healthy')]
    const first = await bring(events)
    expect(first).toMatchObject({ status: 200, body: { accepted: 3, duplicate: 0, gaps: [] } })
    expect((await bring(events)).body).toMatchObject({ accepted: 0, duplicate: 3, gaps: [] })
    await p.query('update operations.projection_version set held = true where agg_id = $1', [id])
    expect((await bring([catalog.put(id)])).body).toMatchObject({ accepted: 0, duplicate: 0, held: 1, gaps: [] })
    await p.query('update operations.projection_version set held = false where agg_id = $1', [id])
    const [row] = await p.query(
      'select version, health_status from operations.catalog_resources where resource_id = $1',
      [id],
    )
    expect(row).toEqual({ version: '2', health_status: 'healthy' })
  })

  it('lists missing events if the catalog cannot be asked', async () => {
    const id = `gap-${number}`
    catalog.put(id)
    catalog.put(id)
    const third = catalog.put(id)
    catalog.state.away = true
    try {
      expect((await bring([third])).body).toMatchObject({ accepted: 0, gaps: [{ resource_id: id, have: 0, need: 3 }] })
    } finally {
      catalog.state.away = false
    }
    expect((await bring([third])).body).toMatchObject({ accepted: 1, gaps: [] })
  })

  it('is for services with the scope, and refuses unknown events', async () => {
    expect(problem(await bring([catalog.put('x')], 'worker'))).toMatch(/^403 policy_denied\//)
    expect(problem(await bring([]))).toBe('400 validation_error/schema_violation')
    expect(problem(await bring([{ type: 'resource.created' }]))).toBe('400 validation_error/schema_violation')
    const unknown = await bring([{ ...catalog.put('x'), type: 'resource.exploded' }])
    expect(problem(unknown)).toBe('400 validation_error/schema_violation')
  })

  it.each<[string, Record<string, unknown>, string]>([
    ['no document', { document: undefined }, '/document'],
    ['a document of another resource', { agg_id: 'other' }, '/document/resource_id'],
    ['a document without a type', { document: { resource_id: 'x' } }, '/document/type_key'],
    ['edges that are none', { relationship_changes: 'all' }, '/relationship_changes'],
    ['an edge without an end', { relationship_changes: [{ op: 'added' }] }, '/relationship_changes/0/relationship_id'],
    ['a document elsewhere', { document: undefined, fetch_href: 'http://127.0.0.1:1/v1/resources/x' }, '/fetch_href'],
    [
      'a document somewhere else of the catalog',
      { document: undefined, fetch_href: '/v1/resources/x/../../keys' },
      '/fetch_href',
    ],
    ['no version', { agg_version: 0 }, '/agg_version'],
    ['an id that is none', { event_id: 'x' }, '/event_id'],
    ['a place beyond the log', { pub_seq: '9'.repeat(19) }, '/pub_seq'],
    ['another aggregate', { agg_type: 'health' }, '/agg_type'],
    ['health without a status', { type: 'health.changed', agg_type: 'health' }, '/status'],
    ['an intent of nobody', { type: 'intent.requested', agg_type: 'intent' }, '/intent_id'],
  ])('refuses an event with %s completely, with all events beside it', async (_what, more, pointer) => {
    const good = catalog.put(`good-${number}`)
    const before = catalog.state.requests.length
    const { status, body } = await bring([good, { ...catalog.put('x'), ...more }])
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'schema_violation' })
    expect(body.violations[0].pointer).toBe(`/events/1${pointer}`)
    expect(await p.query('select 1 from operations.catalog_resources where resource_id = $1', [good.agg_id])).toEqual(
      [],
    )
    expect(catalog.state.requests.length).toBe(before)
  })
})
