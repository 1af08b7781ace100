import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { until } from '../support/until.ts'
import { type CatalogLog, catalogLog } from './support/catalog.ts'
import { must, type Platform, startPlatform } from './support/platform.ts'

let catalog: CatalogLog
let p: Platform
beforeAll(async () => {
  catalog = await catalogLog()
  catalog.put('eu1', { type_key: 'topology.region' })
  catalog.put('us1', { type_key: 'topology.region' })
  for (const id of ['eu1-web-01', 'eu1-web-02', 'eu1-web-03']) catalog.put(id, { parent_id: 'eu1' })
  catalog.put('us1-web-01', { parent_id: 'us1' })
  for (let n = 0; n < 201; n += 1) catalog.put(`big-${n}`, { parent_id: 'eu1' })
  p = await startPlatform({ relay: false, catalog: createCatalogClient(catalog.url, () => 'token') })
})
afterAll(async () => {
  await p.stop()
  await catalog.close()
})

const change = (ids: string[], more: Record<string, unknown> = {}) => ({
  kind: 'change',
  title: 'web 2.4.0',
  reason: 'a new release',
  targets: ids.map((resource_id) => ({ resource_id })),
  change: { op: 'update', desired_state_patch: { release: '2.4.0' } },
  labels: { environment: 'demo' },
  ...more,
})
const counted = async () => (await p.query<{ count: number }>('select count(*)::int from operations.intents'))[0]?.count
const graph = (nodes: unknown[], gates?: unknown[]) => ({
  kind: 'graph',
  title: 'g',
  reason: 'r',
  graph: { nodes, gates },
})

describe('an intent', () => {
  it("may name a resource that was just created and has no number in the catalog's log yet", async () => {
    catalog.put('eu1-web-04', { parent_id: 'eu1' }, [], { pub_seq: null })
    const { body } = must(await p.as('olga').post('/v1/intents', change(['eu1-web-04'])), 201)
    expect(body.targets_resolved).toMatchObject([{ resource_id: 'eu1-web-04', version: 1 }])
  })

  it('is created once, with its current targets', async () => {
    const { status, body, headers } = await p.as('olga').post('/v1/intents', change(['eu1-web-01']))
    expect(status).toBe(201)
    expect(headers.get('location')).toBe(`/v1/intents/${body.intent_id}`)
    expect(body).toMatchObject({
      status: 'open',
      revision: 1,
      kind: 'change',
      targets_resolved: [{ resource_id: 'eu1-web-01', type_key: 'fleet.host', name: 'eu1-web-01', version: 1 }],
      requester: { kind: 'user', name: 'olga', roles: ['operator', 'planner'] },
      latest_plan_id: null,
      operation_id: null,
      allowed_actions: [{ action: 'preview', allowed: true }],
    })
    expect(must(await p.as('vic').get(`/v1/intents/${body.intent_id}`), 200).body).toMatchObject({
      intent_id: body.intent_id,
      allowed_actions: [{ action: 'preview', allowed: false, reason_code: 'permission_missing' }],
    })
    const [event] = await p.query(`select payload from operations.outbox where agg_id = $1`, [body.intent_id])
    expect(event?.payload).toMatchObject({ events: [{ type: 'intent.open', actor: { name: 'olga' } }] })
  })

  it('knows a resource that was just created in the catalog', async () => {
    catalog.put('eu1-web-99', { parent_id: 'eu1' })
    expect((await p.as('olga').post('/v1/intents', change(['eu1-web-99']))).status).toBe(201)
  })

  it('selects by type and condition, at most as many as its limit', async () => {
    const select = (selector: Record<string, unknown>) =>
      p.as('olga').post('/v1/intents', change([], { targets: [{ selector: { type_key: 'fleet.host', ...selector } }] }))
    const ids = async (selector: Record<string, unknown>) =>
      must(await select(selector), 201).body.targets_resolved.map(({ name }: { name: string }) => name)
    expect(await ids({ when: "target.scope.region_id == 'us1'" })).toEqual(['us1-web-01'])
    expect(await ids({ when: "target.name.startsWith('eu1-web-0')", limit: 2 })).toEqual(['eu1-web-01', 'eu1-web-02'])
    expect((await ids({ type_key: 'infra.host' })).length).toBeGreaterThanOrEqual(4)
    expect((await select({ when: "target.name == 'x'" })).body).toMatchObject({
      category: 'validation_error',
      code: 'no_targets',
    })
    expect((await select({ when: 'target.name ==' })).body).toMatchObject({
      code: 'expression_error',
      violations: [{ pointer: '/targets/0/selector/when' }],
    })
    expect((await select({ when: 'target.colour == 1' })).body.code).toBe('expression_error')
  })

  it('is previewed while typed: the next plan without a row; a refusal is part of the answer', async () => {
    const rows = () =>
      p.query(`select (select count(*) from operations.intents) + (select count(*) from operations.plans)
        + (select count(*) from operations.outbox) as count`)
    const body = change([], {
      targets: [{ selector: { type_key: 'fleet.host', when: "target.name == 'eu1-web-01'" } }],
    })
    const before = await rows()
    const ahead = (more: object) =>
      p
        .as('olga')
        .post('/v1/intents', { ...body, dry_run: true, preview: true, ...more })
        .then((reply) => must(reply, 200))
    const { effect } = (await ahead({})).body
    expect((await ahead({ change: { op: 'update', desired_state_patch: { no: 1 } } })).body.effect).toMatchObject({
      targets_resolved: [{ resource_id: 'eu1-web-01' }],
      plan: { refused: { code: 'unsupported_change', violations: [{ pointer: '/targets/eu1-web-01' }] } },
    })
    expect(must(await p.as('olga').post('/v1/intents', { ...body, dry_run: true }), 200).body.effect.plan).toBe(
      undefined,
    )
    expect(await rows()).toEqual(before)
    const { intent_id } = must(await p.as('olga').post('/v1/intents', body), 201).body
    const plan = must(await p.as('olga').post(`/v1/intents/${intent_id}/plan-preview`, {}), 201).body
    for (const name of ['counts', 'risk', 'estimates', 'gates']) expect(effect.plan[name]).toEqual(plan[name])
    expect(effect.plan.diff).toMatchObject(
      plan.diff.map(({ resource_id }: { resource_id: string }) => ({ resource_id })),
    )
    // That plan is now in the way of another of the same targets.
    expect(effect.plan.conflicts).toEqual([])
    const rival = { kind: 'plan', id: plan.plan_id }
    expect((await ahead({})).body.effect.plan.conflicts).toMatchObject([rival])
  })

  it('of more than 200 targets is not previewed while typed, and says how many it has', async () => {
    const ahead = async (limit: number) => {
      const selector = { type_key: 'fleet.host', when: "target.name.startsWith('big-')", limit }
      const body = change([], { targets: [{ selector }], dry_run: true, preview: true })
      return must(await p.as('olga').post('/v1/intents', body), 200).body.effect
    }
    const large = await ahead(201)
    expect(large.targets_resolved).toHaveLength(201)
    expect(large.plan.refused).toEqual({
      code: 'too_many_targets',
      detail: '201 targets: at most 200 are previewed without a plan. Create the intent and its plan.',
      violations: [],
    })
    expect((await ahead(200)).plan.refused?.code).not.toBe('too_many_targets')
  })

  it('is answered once per key: the same bytes again, and no second intent', async () => {
    const key = randomUUID()
    const before = await counted()
    const first = await p.as('olga').post('/v1/intents', change(['eu1-web-01']), { key })
    const again = await Promise.all(
      Array.from({ length: 5 }, () => p.as('olga').post('/v1/intents', change(['eu1-web-01']), { key })),
    )
    for (const reply of again) {
      expect([reply.status, reply.text]).toEqual([201, first.text])
      expect(reply.headers.get('idempotency-replayed')).toBe('true')
    }
    expect(await counted()).toBe((before ?? 0) + 1)
    expect(await p.as('olga').post('/v1/intents', change(['eu1-web-02']), { key })).toMatchObject({
      status: 422,
      body: { code: 'idempotency_key_reused' },
    })
    expect((await p.as('both').post('/v1/intents', change(['eu1-web-02']), { key })).status).toBe(201)
  })

  it('is planned only for targets in scope, also where its selector finds others than when it was created', async () => {
    const selector = { type_key: 'fleet.host', when: "target.labels.?fit.orValue('') == 'now'" }
    catalog.put('us1-web-01', { parent_id: 'us1', labels: { fit: 'now' } })
    await p.deps.projection.catchUp()
    const intent = change([], { targets: [{ selector }] })
    const { intent_id } = must(await p.as('far').post('/v1/intents', intent), 201).body
    const preview = () => p.as('far').post(`/v1/intents/${intent_id}/plan-preview`, {})
    const { plan_id, plan_hash } = must(await preview(), 201).body
    catalog.put('eu1-web-01', { parent_id: 'eu1', labels: { fit: 'now' } })
    await p.deps.projection.catchUp()
    // For its maker there is no such resource, whoever plans it. The limit is no part of the request.
    expect(must(await preview(), 200).body.plan_id).toBe(plan_id)
    const again = await p.as('olga').post(`/v1/intents/${intent_id}/plan-preview`, {})
    expect(must(again, 200).body.plan_id).toBe(plan_id)
    expect(must(await p.as('far').get(`/v1/intents/${intent_id}`), 200).body.request).toEqual(intent)
    expect(
      (await p.as('far').get(`/v1/plans/${plan_id}`)).body.diff.map(({ resource_id }: never) => resource_id),
    ).toEqual(['us1-web-01'])
    // A plan from before the rule.
    await p.query(
      `update operations.plans set document = jsonb_set(document, '{catalog_pins,1}', '{"resource_id": "eu1-web-01", "version": 1}') where plan_id = $1`,
      [plan_id],
    )
    expect(await p.as('far').post(`/v1/plans/${plan_id}/start`, { reviewed_plan_hash: plan_hash })).toMatchObject({
      status: 403,
      body: { category: 'policy_denied', code: 'out_of_scope' },
    })
  })

  it('keeps the targets that it names when they move out of the reach of its maker', async () => {
    catalog.put('us1-web-09', { parent_id: 'us1' })
    await p.deps.projection.catchUp()
    const { intent_id } = must(await p.as('far').post('/v1/intents', change(['us1-web-09'])), 201).body
    catalog.put('us1-web-09', { parent_id: 'eu1' })
    await p.deps.projection.catchUp()
    const preview = (who: 'far' | 'olga') => p.as(who).post(`/v1/intents/${intent_id}/plan-preview`, {})
    expect((await preview('far')).status).toBe(403)
    expect(must(await preview('olga'), 201).body.catalog_pins).toMatchObject([{ resource_id: 'us1-web-09' }])
  })

  it('is not stored by a dry run', async () => {
    const before = await counted()
    const { status, body } = await p.as('olga').post('/v1/intents', change(['eu1-web-01'], { dry_run: true }))
    expect([status, body.effect.targets_resolved.length]).toEqual([200, 1])
    expect(await counted()).toBe(before)
  })

  it('is only for targets that the roles cover, and others see only intents about their part or their own', async () => {
    const away = async () => p.as('far').post('/v1/intents', change(['eu1-web-01']))
    const outside = { status: 403, body: { category: 'policy_denied', code: 'out_of_scope' } }
    // Who may read it learns that the roles do not cover it.
    p.people.far.scopes = { viewer: {} }
    await until(async () => (await away()).status === 403)
    expect(await away()).toMatchObject(outside)
    delete p.people.far.scopes
    await until(async () => (await away()).status === 422)
    const both = must(await p.as('olga').post('/v1/intents', change(['eu1-web-01', 'us1-web-01'])), 201).body
    const eu = must(await p.as('olga').post('/v1/intents', change(['eu1-web-01'])), 201).body
    const own = must(await p.as('far').post('/v1/intents', change(['us1-web-01'])), 201).body
    expect((await p.as('far').get(`/v1/intents/${both.intent_id}`)).status).toBe(200)
    expect(await p.as('far').get(`/v1/intents/${eu.intent_id}`)).toMatchObject({
      status: 404,
      body: { code: 'intent' },
    })
    const { items } = must(await p.as('far').get('/v1/intents?page_size=500'), 200).body
    const listed = items.map(({ intent_id }: { intent_id: string }) => intent_id)
    expect(listed).toContain(both.intent_id)
    expect(listed).toContain(own.intent_id)
    expect(listed).not.toContain(eu.intent_id)
    const [denied] = await p.query(`select actor, outcome from operations.audit where reason = 'out_of_scope'`)
    expect(denied).toEqual({ actor: `user:${p.people.far.id}`, outcome: 'denied' })
  })

  it('is refused for targets that its maker may not read as for those that do not exist', async () => {
    const refused = async (body: Record<string, unknown>) => {
      const reply = await p.as('far').post('/v1/intents', { ...body, dry_run: true })
      const { status, body: problem } = reply
      return [status, problem.code, problem.detail, problem.violations?.map(({ message }: never) => message)]
    }
    const node = (target_id: string) => ({ node_id: 'n', executor: 'noop', target_id })
    const named = (id: string) => [change([id]), graph([node(id)])]
    for (const [i, body] of named('eu1-web-01').entries()) {
      const unknown = JSON.stringify(await refused(named('eu1-web-77')[i] as never))
      expect(JSON.stringify(await refused(body))).toBe(unknown.replaceAll('eu1-web-77', 'eu1-web-01'))
    }
    const selected = (when: string) => change([], { targets: [{ selector: { type_key: 'fleet.host', when } }] })
    const none = await refused(selected("target.resource_id == 'nowhere'"))
    expect(none.slice(0, 2)).toEqual([422, 'no_targets'])
    for (const when of [
      "target.resource_id == 'eu1-web-01'",
      "target.resource_id == 'eu1-web-01' && target.version > 0",
      // It cannot be judged on a host elsewhere.
      "target.resource_id == 'eu1-web-01' && target.nothing == 1",
    ])
      expect([when, await refused(selected(when))]).toEqual([when, none])
  })

  it('takes a graph of 2,000 nodes in one request', async () => {
    const nodes = Array.from({ length: 2000 }, (_, i) => ({
      node_id: `n${i}`,
      executor: 'noop',
      with: { delay_ms: 0 },
      depends_on: i === 0 ? [] : [`n${i - 1}`],
    }))
    expect((await p.as('olga').post('/v1/intents', graph(nodes))).status).toBe(201)
  })
})

describe('the list of intents', () => {
  it('is walked page by page, each once, the newest first', async () => {
    for (let i = 0; i < 5; i++) must(await p.as('both').post('/v1/intents', change(['eu1-web-01'])), 201)
    const seen: { intent_id: string; created_at: string }[] = []
    let page = ''
    do {
      const { body } = must(await p.as('both').get(`/v1/intents?requester=me&page_size=2${page}`), 200)
      seen.push(...body.items)
      page = body.next_page_token === null ? '' : `&page_token=${encodeURIComponent(body.next_page_token)}`
    } while (page)
    expect(new Set(seen.map(({ intent_id }) => intent_id)).size).toBe(seen.length)
    expect(seen.map(({ created_at }) => created_at)).toEqual(
      seen
        .map(({ created_at }) => created_at)
        .toSorted()
        .toReversed(),
    )
    expect(seen.length).toBeGreaterThanOrEqual(5)
  })

  it('filters, and refuses a token of another list', async () => {
    const list = (query: string) => p.as('olga').get(`/v1/intents?${query}`)
    const kinds = must(await list('kind=graph&page_size=500'), 200).body.items.map(({ kind }: { kind: string }) => kind)
    expect(new Set(kinds)).toEqual(new Set(['graph']))
    expect(must(await list('status=fulfilled&status=expired'), 200).body.items).toEqual([])
    const { next_page_token } = must(await list('kind=change&page_size=1'), 200).body
    expect((await list(`kind=graph&page_size=1&page_token=${encodeURIComponent(next_page_token)}`)).body.code).toBe(
      'page_token_mismatch',
    )
    expect((await list('page_token=made.up')).body.code).toBe('page_token_invalid')
    // By a part of title or ticket, and by the end of its own id or of its newest plan's.
    const named = { title: 'Move the Ledger', ticket: 'CHG-4711' }
    const made = must(await p.as('olga').post('/v1/intents', change(['eu1-web-01'], named)), 201).body
    const { plan_id } = must(await p.as('olga').post(`/v1/intents/${made.intent_id}/plan-preview`, {}), 201).body
    for (const q of ['the ledg', 'chg-47', made.intent_id.slice(-6), plan_id.slice(-8).toUpperCase()])
      expect([q, must(await list(`q=${encodeURIComponent(q)}`), 200).body.items[0]?.intent_id]).toEqual([
        q,
        made.intent_id,
      ])
    for (const q of ['%', made.intent_id.slice(0, 8)])
      expect((await list(`q=${encodeURIComponent(q)}`)).body.items).toEqual([])
    expect((await list('q=')).status).toBe(400)
  })
})

describe('bad input changes nothing', () => {
  const body = change(['eu1-web-01'])
  const cases: [string, unknown, number, string, string?][] = [
    ['unknown field', { ...body, colour: 1 }, 400, 'schema_violation', '/colour'],
    ['wrong type', { ...body, title: 7 }, 400, 'schema_violation', '/title'],
    ['unknown kind', { ...body, kind: 'dance' }, 400, 'schema_violation', '/kind'],
    ['a kind without its part', { ...body, kind: 'action', change: undefined }, 400, 'schema_violation', '/action'],
    ['a part of another kind', { ...body, action: { action_key: 'restart' } }, 400, 'schema_violation', '/action'],
    [
      'an update without patch',
      { ...body, change: { op: 'update' } },
      400,
      'schema_violation',
      '/change/desired_state_patch',
    ],
    [
      'a patch that is no update',
      { ...body, change: { op: 'delete', desired_state_patch: {} } },
      400,
      'schema_violation',
      '/change/desired_state_patch',
    ],
    ['no title', { ...body, title: '' }, 400, 'schema_violation', '/title'],
    ['no reason', { ...body, reason: undefined }, 400, 'schema_violation', '/reason'],
    [
      'a label whose name does not fit',
      { ...body, labels: { 'Not A Name': { deep: true } } },
      400,
      'schema_violation',
      '/labels/Not A Name',
    ],
    [
      'too many labels',
      { ...body, labels: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`l${i}`, 'x'])) },
      400,
      'schema_violation',
      '/labels',
    ],
    ['an unknown constraint', { ...body, constraints: { speed: 9 } }, 400, 'schema_violation', '/constraints/speed'],
    ['no targets', { ...body, targets: [] }, 422, 'no_targets', '/targets'],
    [
      'an unknown target',
      { ...body, targets: [{ resource_id: 'nowhere' }] },
      422,
      'target_not_found',
      '/targets/0/resource_id',
    ],
    [
      'an unknown target of a node',
      graph([{ node_id: 'a', executor: 'noop', target_id: 'nowhere' }]),
      422,
      'target_not_found',
      '/graph/nodes/0/target_id',
    ],
    ['a graph without nodes', graph([]), 400, 'schema_violation', '/graph/nodes'],
    [
      'a node id that is none',
      graph([{ node_id: 'A B', executor: 'noop' }]),
      400,
      'schema_violation',
      '/graph/nodes/0/node_id',
    ],
    ...['\u200b', '\u202eGo on?', 'Go\non?'].map((question): [string, unknown, number, string, string] => [
      `a question of ${JSON.stringify(question)}`,
      graph([{ node_id: 'a', executor: 'noop' }], [{ gate_id: 'go', policy: 'cutover', question, guards: ['a'] }]),
      400,
      'schema_violation',
      '/graph/gates/0/question',
    ]),
  ]
  it.each(cases)('%s', async (_, given, status, code, pointer) => {
    const before = await counted()
    const reply = await p.as('olga').post('/v1/intents', given)
    expect(reply).toMatchObject({
      status,
      body: { category: 'validation_error', code, request_id: expect.any(String), hint: expect.any(String) },
    })
    expect(reply.headers.get('content-type')).toContain('application/problem+json')
    if (pointer)
      expect(reply.body.violations.map((violation: { pointer: string }) => violation.pointer)).toContain(pointer)
    expect(await counted()).toBe(before)
  })

  it('of the request itself', async () => {
    const post = (options: Record<string, unknown>, who: 'olga' | 'vic' | 'nobody' = 'olga') =>
      p.as(who).post('/v1/intents', body, options)
    const before = await counted()
    expect(await post({ key: null })).toMatchObject({ status: 400, body: { code: 'idempotency_key_required' } })
    expect(await post({ content_type: 'text/plain' })).toMatchObject({
      status: 415,
      body: { category: 'validation_error' },
    })
    expect(await post({ raw: '{"kind":' })).toMatchObject({ status: 400, body: { category: 'validation_error' } })
    expect(await post({ raw: '{"kind":"change","kind":"graph"}' })).toMatchObject({ status: 400 })
    expect(await post({ raw: JSON.stringify({ ...body, reason: 'x'.repeat(5_000_000) }) })).toMatchObject({
      status: 413,
      body: { category: 'validation_error' },
    })
    expect(await post({ headers: { authorization: '' } })).toMatchObject({
      status: 401,
      body: { category: 'policy_denied', code: 'invalid_token' },
    })
    expect(await post({ headers: { 'x-user-id': randomUUID() } })).toMatchObject({ status: 401 })
    expect(await post({}, 'vic')).toMatchObject({
      status: 403,
      body: { category: 'policy_denied', code: 'permission_missing' },
    })
    expect(await p.as('nobody').get('/v1/intents')).toMatchObject({ status: 403 })
    expect(await p.as('olga').get(`/v1/intents/${randomUUID()}`)).toMatchObject({
      status: 404,
      body: { category: 'not_found', code: 'intent' },
    })
    expect(await p.as('olga').get('/v1/intents/seven')).toMatchObject({
      status: 400,
      body: { code: 'schema_violation' },
    })
    expect(await p.as('olga').get('/v1/intents?status=sleepy')).toMatchObject({ status: 400 })
    expect(await p.as('olga').get('/v1/intents?colour=1')).toMatchObject({ status: 400 })
    expect(await counted()).toBe(before)
  })
})
