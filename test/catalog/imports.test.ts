import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inOrder } from '../../apps/catalog/imports/results.ts'
import { until } from '../support/until.ts'
import { type Ask, type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 0)
})
afterAll(() => c.stop())

type Item = Record<string, unknown> & { external_id: string }
const source = (name = `s-${randomUUID()}`) => ({ kind: 'test', name })
const send = (from: { kind: string; name: string }, items: Item[], options = {}, ask: Ask & { query?: string } = {}) =>
  c.as('ada').post(`/v1/resources:import${ask.query ?? ''}`, { source: from, items, options }, ask)
const outcomes = (reply: { body: { results: { outcome: string }[] } }) =>
  reply.body.results.map(({ outcome }) => outcome)
const service = (external_id: string, over: Record<string, unknown> = {}): Item => ({
  external_id,
  type_key: 'infra.service',
  name: `${external_id}-${randomUUID().slice(0, 8)}`,
  desired_state: { port: 80 },
  ...over,
})
const calls = (target_external_id: string) => ({ type_key: 'depends_on', target_external_id })

describe('import', () => {
  it('creates what is new, finds it unchanged the second time, and updates only what the item says', async () => {
    const from = source()
    const items = [
      service('a', { relationships: [calls('b')] }),
      service('b', { labels: { tier: 'gold' }, lifecycle_status: 'active' }),
    ]
    const first = await send(from, items)
    expect(first).toMatchObject({ status: 200, body: { counts: { created: 2, updated: 0, unchanged: 0 } } })
    const [a, b] = first.body.results
    expect(a.diff).toContainEqual({ path: `/relationships/depends_on/${b.resource_id}`, after: 'added' })
    const before = await c.traces()
    expect(outcomes(await send(from, items))).toEqual(['unchanged', 'unchanged'])
    const after = await c.traces()
    expect({ ...after, command_log: 0 }).toEqual({ ...before, command_log: 0 })

    const changed = await send(from, [
      { ...(items[1] as Item), desired_state: { protocol: 'http' }, labels: { env: 'lab' } },
    ])
    expect(changed.body.results[0]).toMatchObject({
      outcome: 'updated',
      version: 2,
      diff: [
        { path: '/desired_state/protocol', after: 'http' },
        { path: '/labels/env', after: 'lab' },
      ],
    })
    const { body } = await c.as('vic').get(`/v1/resources/${b.resource_id}`)
    expect(body).toMatchObject({ desired_state: { port: 80, protocol: 'http' }, labels: { tier: 'gold', env: 'lab' } })
  })

  it('finds an item that the source states as retired unchanged once it has ended', async () => {
    const from = source()
    const items = [service('peer'), service('old', { relationships: [calls('peer')], parent_id: 'eu1-a-web' })]
    await send(from, items)
    const ended = { ...(items[1] as Item), lifecycle_status: 'retired' }
    expect(outcomes(await send(from, [ended]))).toEqual(['updated'])
    const before = await c.traces()
    for (const options of [{}, { complete_fields: true, complete_relationships: true }]) {
      expect(await send(from, [ended], options)).toMatchObject({
        body: { results: [{ outcome: 'unchanged', version: 2, diff: [] }] },
      })
      expect(await send(from, [ended], options, { query: '?validate_only=true', key: null })).toMatchObject({
        body: { counts: { unchanged: 1 } },
      })
    }
    expect({ ...(await c.traces()), command_log: 0 }).toEqual({ ...before, command_log: 0 })
    // Notes of an ended resource may still change; its state may not.
    expect(outcomes(await send(from, [{ ...ended, labels: { shelf: 'b4' } }]))).toEqual(['updated'])
    expect(await send(from, [{ ...ended, desired_state: { port: 81 } }])).toMatchObject({
      body: { results: [{ outcome: 'refused', problem: { code: 'resource_terminal' } }] },
    })
    // An id that the source uses again is a new resource, and one that never existed here cannot begin as retired.
    expect(outcomes(await send(from, [items[1] as Item]))).toEqual(['created'])
    for (const _ of [1, 2])
      expect(await send(from, [service('never', { lifecycle_status: 'retired' })])).toMatchObject({
        body: { results: [{ outcome: 'refused', problem: { code: 'lifecycle_transition' } }] },
      })
  })

  it('follows the state that the source reports, also past states that it never showed', async () => {
    const from = source()
    const host = (lifecycle_status: string) => ({
      ...service('live', { parent_id: 'eu1-a-web', lifecycle_status, desired_state: { hostname: 'live' } }),
      ...{ type_key: 'infra.host', name: 'live' },
    })
    for (const [state, outcome] of [
      ...[
        ['planned', 'created'],
        ['active', 'updated'],
        ['failed', 'updated'],
        ['active', 'updated'],
      ],
      ...[
        ['planned', 'updated'],
        ['deprovisioning', 'updated'],
        ['planned', 'updated'],
        ['active', 'updated'],
        ['retired', 'updated'],
        ['retired', 'unchanged'],
      ],
    ] as [string, string][])
      expect([state, outcomes(await send(from, [host(state)]))]).toEqual([state, [outcome]])
    expect(outcomes(await send(from, [host('planned'), host('planned')]))).toEqual(['created', 'unchanged'])
    // A person moves one step at a time.
    const { body } = await send(from, [
      { ...host('planned'), external_id: 'other', name: 'other', desired_state: { hostname: 'other' } },
    ])
    const path = `/v1/resources/${body.results[0].resource_id}?mode=record_only&expected_version=1`
    expect(await c.as('ada').patch(path, { lifecycle_status: 'active' })).toMatchObject({ status: 422 })
  })

  it('refuses contradictory items with one id, which no repeat would find unchanged', async () => {
    const from = source()
    const [one, other] = [service('twin'), service('single')]
    const twin = { ...one, labels: { tier: 'gold' } }
    const { body } = await send(from, [one, other, twin, one])
    expect(outcomes({ body })).toEqual(['refused', 'created', 'refused', 'refused'])
    expect(body.results.map(({ problem }: { problem?: { detail: string } }) => problem?.detail)).toEqual([
      '/external_id is also the id of item 2, which has other content.',
      undefined,
      '/external_id is also the id of item 0, which has other content.',
      '/external_id is also the id of item 2, which has other content.',
    ])
    expect(outcomes(await send(from, [one, other, one]))).toEqual(['created', 'unchanged', 'unchanged'])
  })

  it('refuses an item that lists one edge twice with contradictory properties', async () => {
    const from = source()
    const [a, b] = [service('a'), service('b')]
    const edge = (properties?: object) => ({ ...calls('b'), ...(properties && { properties }) })
    const twice = (...relationships: object[]) => [b as Item, { ...(a as Item), relationships }]
    const contradictory = twice(edge({ reason: 'x' }), edge({ reason: 'y' }))
    const problem = { violations: [{ pointer: '/relationships/1/properties' }] }
    const wrong = { body: { counts: { refused: 1 }, results: [{}, { outcome: 'refused', problem }] } }
    expect(await send(from, contradictory)).toMatchObject(wrong)
    expect(await send(from, twice(edge(), edge({ reason: 'y' })))).toMatchObject(wrong)
    const agreeing = twice(edge({ reason: 'x' }), edge({ reason: 'x' }))
    expect(outcomes(await send(from, agreeing))).toEqual(['unchanged', 'created'])
    expect(outcomes(await send(from, agreeing))).toEqual(['unchanged', 'unchanged'])
  })

  it('moves an item that states its container as an edge, and refuses two names of its container', async () => {
    const from = source()
    const item = service('moves')
    const inside = (to: object) => ({ ...item, relationships: [{ type_key: 'contained_in', ...to }] })
    const place = service('place', { type_key: 'topology.segment', parent_id: 'eu1-a-edge', desired_state: {} })
    const [first, { resource_id: parent_id }] = (await send(from, [inside({ target_id: 'eu1-a-web' }), place])).body
      .results
    const moved = inside({ target_external_id: 'place' })
    expect((await send(from, [moved])).body.results).toMatchObject([{ outcome: 'updated' }])
    expect(outcomes(await send(from, [moved]))).toEqual(['unchanged'])
    expect((await c.as('vic').get(`/v1/resources/${first.resource_id}`)).body).toMatchObject({ parent_id })
    // The place also decides who may create there, and which resource the item stands for.
    c.people.rover.grants = [{ role: 'admin', scope: { regionId: 'eu1' } }]
    const sendAs = (options = {}) =>
      c.as('rover').post('/v1/resources:import', { source: source(), items: [web], options })
    const web = { ...service('x'), relationships: [{ type_key: 'contained_in', target_id: 'eu1-a-web' }] }
    expect(outcomes(await sendAs())).toEqual(['created'])
    expect(outcomes(await sendAs())).toEqual(['conflict'])
    expect(outcomes(await sendAs({ adopt: true }))).toEqual(['unchanged'])
    const both = { ...service('both', { parent_external_id: 'moves' }), parent_id: 'eu1-a-web' }
    expect(await send(from, [both])).toMatchObject({
      body: { results: [{ outcome: 'refused', problem: { violations: [{ pointer: '/parent_id' }] } }] },
    })
  })

  it('predicts the result in a dry run, and stores nothing', async () => {
    const from = source()
    const items = [
      service('x', { relationships: [calls('y')] }),
      service('y', { relationships: [calls('x')] }),
      service('z', { desired_state: { port: 'none' } }),
    ]
    const before = await c.traces()
    const dry = await send(from, items, {}, { query: '?validate_only=true', key: null })
    expect(await c.traces()).toEqual(before)
    const done = await send(from, items)
    const shape = (reply: typeof dry) =>
      reply.body.results.map(({ outcome, diff }: { outcome: string; diff: { path: string }[] }) => ({
        outcome,
        paths: diff.map(({ path }) => path.replace(/(?<=^\/relationships\/\w+\/).*/, 'ID')),
      }))
    expect(shape(dry)).toEqual(shape(done))
    expect(outcomes(done)).toEqual(['created', 'created', 'refused'])
  })

  it('names missing resources as the source does, in refusals and in dry runs', async () => {
    const from = source()
    const host = (external_id: string, parent_external_id?: string): Item => ({
      external_id,
      type_key: 'fleet.host',
      name: external_id,
      lifecycle_status: 'active',
      desired_state: { hostname: 'h' },
      ...(parent_external_id !== undefined ? { parent_external_id } : {}),
    })
    const segment: Item = { external_id: 'vlan/7', type_key: 'topology.segment', name: 'v7', parent_id: 'eu1-a-edge' }
    const items = [
      segment,
      host('no place'),
      host('in/place', 'vlan/7'),
      { ...host('in/place', 'vlan/7'), external_id: 'again' },
      service('circle', { relationships: [calls('circle')] }),
    ]
    const dry = await send(from, items, {}, { query: '?validate_only=true', key: null })
    expect(outcomes(dry)).toEqual(['created', 'refused', 'created', 'conflict', 'created'])
    expect(dry.body.results[4].problem).toMatchObject({ code: 'cycle', instance: '/v1/resources:import' })
    expect(dry.text).not.toMatch(/res_[a-z2-7]{26}/)
    expect(dry.body.results[1].problem.detail).toContain('no place needs at least 1 contained_in')
    expect(dry.body.results[2].diff).toContainEqual({ path: '/parent_id', after: 'vlan/7' })
    expect(dry.body.results[3].problem.existing_external_id).toBe('in/place')

    const done = await send(from, items)
    expect(outcomes(done)).toEqual(outcomes(dry))
    expect(done.body.results[1].problem.violations).toEqual(dry.body.results[1].problem.violations)
    expect(done.body.results[3].resource_id).toBe(done.body.results[2].resource_id)
    expect(done.body.results[4]).toMatchObject({ resource_id: expect.stringMatching(/^res_/), version: 1 })
  })

  it('applies the good items when others are refused, and gives category, code and pointers of each', async () => {
    const from = source()
    const reply = await send(from, [
      service('good'),
      service('bad-state', { desired_state: { port: 'x', tier: 9 } }),
      service('bad-type', { type_key: 'no.such' }),
      service('bad-parent', { parent_external_id: 'nowhere' }),
      service('bad-edge', { relationships: [calls('nowhere')] }),
      service('bad-lifecycle', { lifecycle_status: 'retired' }),
      service('secret', {
        type_key: 'infra.database',
        parent_id: 'eu1-a-web',
        desired_state: { engine: 'pg', admin_password: 'hunter2' },
      }),
      service('last'),
    ])
    expect(outcomes(reply)).toEqual([
      'created',
      'refused',
      'refused',
      'refused',
      'created',
      'refused',
      'refused',
      'created',
    ])
    const problems = reply.body.results.map(({ problem }: { problem?: { code: string } }) => problem?.code)
    expect(problems).toEqual([
      undefined,
      'schema_violation',
      'unknown',
      'target_not_found',
      'target_not_found',
      'lifecycle_transition',
      'secret_reference_required',
      undefined,
    ])
    expect(reply.body.results[1].problem.violations.map(({ pointer }: { pointer: string }) => pointer).sort()).toEqual([
      '/desired_state/port',
      '/desired_state/tier',
    ])
    expect(reply.text).not.toContain('hunter2')
  })

  it.each([
    ['a label', { labels: { 'bad key!': 'x' } }, '/labels'],
    ['a name', { name: 'n'.repeat(254) }, '/name'],
    ['an owner', { owner: 5 }, '/owner'],
    ['a type', { type_key: 'BAD' }, '/type_key'],
    ['a state', { desired_state: [] }, '/desired_state'],
    ['a member', { colour: 'red' }, '/colour'],
    ['an id', { external_id: undefined }, '/external_id'],
    ['an edge', { relationships: [{ type_key: 'depends_on' }] }, '/relationships/0'],
    ['a target', { relationships: [{ ...calls('good'), target_id: 'eu1' }] }, '/relationships/0/target_id'],
  ])('refuses an item with %s of wrong form, and imports the others', async (_, wrong, pointer) => {
    const from = source()
    const items = [service('good'), { ...service('bad'), ...wrong } as Item, service('last')]
    const before = await c.traces()
    const dry = await send(from, items, {}, { query: '?validate_only=true', key: null })
    expect(await c.traces()).toEqual(before)
    for (const reply of [dry, await send(from, items)]) {
      expect(outcomes(reply)).toEqual(['created', 'refused', 'created'])
      const { index, external_id, problem } = reply.body.results[1]
      expect([index, external_id]).toEqual([1, 'external_id' in wrong ? '' : 'bad'])
      expect(problem).toMatchObject({ status: 400, category: 'validation_error' })
      expect(problem.violations[0].pointer).toContain(pointer)
    }
    expect(outcomes(await send(from, [items[1] as Item]))).toEqual(['refused'])
  })

  it('does not touch existing resources of others, unless it is told to adopt them', async () => {
    const name = `host-${randomUUID()}`
    const there = await c.as('ada').record(hostOf(name, 'eu1-a-web'))
    const item = {
      external_id: '1',
      type_key: 'fleet.host',
      name,
      parent_id: 'eu1-a-web',
      desired_state: { hostname: name },
    }
    const from = source()
    const refused = await send(from, [item])
    expect(refused.body.results[0]).toMatchObject({
      outcome: 'conflict',
      resource_id: there.resource_id,
      problem: { category: 'version_conflict', code: 'already_exists' },
    })
    expect(outcomes(await send(from, [item], { adopt: true }))).toEqual(['unchanged'])
    expect((await send(from, [{ ...item, type_key: 'infra.host' }])).body.results[0]).toMatchObject({
      outcome: 'conflict',
      problem: { category: 'version_conflict', code: 'type_changed' },
    })
  })

  it('removes only edges of types that the source lists completely, and moves items whose container changed', async () => {
    const from = source()
    const items = ['a', 'b', 'c'].map((id) => service(id))
    await send(from, [...items.slice(1), { ...(items[0] as Item), relationships: [calls('b'), calls('c')] }])
    const fewer = { ...(items[0] as Item), relationships: [calls('c')], parent_id: 'eu1-a-web' }
    expect(outcomes(await send(from, [fewer]))).toEqual(['updated'])
    const complete = await send(from, [fewer], { complete_relationship_types: ['depends_on'] })
    const { resource_id } = complete.body.results[0]
    const open = await c.as('vic').get(`/v1/resources/${resource_id}/relationships?direction=out`)
    const kinds = open.body.items.map(
      ({ relationship }: { relationship: { type_key: string } }) => relationship.type_key,
    )
    expect(kinds.sort()).toEqual(['contained_in', 'depends_on'])
  })

  it('names no hidden resource, and does not tell whether one exists', async () => {
    await seedRegion(c, 'us1', 0)
    const grants = (...places: string[]) => {
      c.people.rover.grants = places.map((regionId) => ({ role: 'admin', scope: { regionId } }))
    }
    const sendAs = (items: Item[], options = {}, from = source()) =>
      c.as('rover').post('/v1/resources:import', { source: from, items, options })
    const refusal = (reply: { body: { results: { outcome: string; problem?: { code: string } }[] } }) =>
      reply.body.results.map(({ outcome, problem }) => [outcome, problem?.code])
    const hidden = await c.as('ada').record({ ...service('far'), external_id: undefined, parent_id: 'us1-a-web' })
    grants('eu1')

    // A name below a hidden parent, taken or not.
    for (const options of [{}, { adopt: true }]) {
      const below = [hidden.name, `free-${randomUUID()}`].map((name) => service('x', { name, parent_id: 'us1-a-web' }))
      const replies = await Promise.all(below.map((item) => sendAs([item], options)))
      for (const reply of replies) {
        expect(refusal(reply)).toEqual([['refused', 'out_of_scope']])
        expect(reply.text).not.toContain(hidden.resource_id)
      }
    }

    // An edge to a hidden resource, which an item does not list, stays unnoticed.
    const own = await c
      .as('ada')
      .record({
        ...service('near'),
        external_id: undefined,
        parent_id: 'eu1-a-web',
        relationships: [{ type_key: 'depends_on', target_id: hidden.resource_id }],
      })
    const taken = await sendAs([service('near', { name: own.name, parent_id: 'eu1-a-web' })], {
      adopt: true,
      complete_relationship_types: ['depends_on'],
    })
    expect(outcomes(taken)).toEqual(['unchanged'])
    expect(taken.text).not.toContain(hidden.resource_id)

    // The source knows resources that its importer may no longer see: as itself, as a target, as a container.
    grants('eu1', 'us1')
    const from = source()
    const place = service('place', { parent_id: 'us1-a-web' })
    const [far] = (await sendAs([place], {}, from)).body.results
    grants('eu1')
    const again = await sendAs(
      [
        place,
        service('user', { parent_id: 'eu1-a-web', relationships: [calls('place')] }),
        service('inside', { parent_external_id: 'place' }),
      ],
      {},
      from,
    )
    expect(refusal(again)).toEqual([
      ['refused', 'resource'],
      ['created', 'target_not_found'],
      ['refused', 'target_not_found'],
    ])
    expect(again.text).not.toContain(far.resource_id)
    expect(again.body.results[0].problem.detail).toContain('place')
  })

  it('removes edges that the source stated and an item no longer lists; those of others stay', async () => {
    const [from, other] = [source(), source()]
    const [a, b, d, e] = ['a', 'b', 'd', 'e'].map((id) => service(id)) as [Item, Item, Item, Item]
    const machine = { ...service('vm'), type_key: 'infra.virtual_machine', desired_state: { hostname: 'vm' } }
    const host = (id: string) => ({ ...service(id), type_key: 'infra.host', desired_state: { hostname: id } })
    const on = (target_external_id: string) => ({ type_key: 'hosted_on', target_external_id })
    const listing = (...relationships: object[]) => ({ ...a, relationships })
    const whole = { complete_relationships: true }
    const [h1, h2] = [host('h1'), host('h2')]
    const stated = [{ ...e, relationships: [{ ...calls('a'), direction: 'in' }] }, h1, h2]
    const first = await send(
      from,
      [b, d, listing(calls('b'), calls('d')), ...stated, { ...machine, relationships: [on('h1')] }],
      whole,
    )
    expect(new Set(outcomes(first))).toEqual(new Set(['created']))
    const ids = Object.fromEntries(
      first.body.results.map((one: Record<string, string>) => [one.external_id, one.resource_id]),
    )
    const foreign = await send(other, [service('o', { relationships: [] })])
    const target_id = foreign.body.results[0].resource_id
    const [{ version }] = first.body.results.filter((one: Item) => one.external_id === 'a')
    const add = { relationship_changes: [{ op: 'add', type_key: 'depends_on', target_id }] }
    expect((await c.result(ids.a, { expected_version: version, changes: add })).status).toBe(200)
    expect(
      (
        await send(
          other,
          [{ ...service('x', { name: a.name }), relationships: [{ type_key: 'depends_on', target_id: ids.b }] }],
          { adopt: true },
        )
      ).status,
    ).toBe(200)

    const targets = async (id: string) =>
      (await c.as('vic').get(`/v1/resources/${ids[id]}/relationships?direction=out`)).body.items
        .map(({ peer }: { peer: { resource_id: string } }) => peer.resource_id)
        .sort()
    const again = await send(from, [listing(calls('b')), { ...machine, relationships: [on('h2')] }], whole)
    expect(outcomes(again)).toEqual(['updated', 'updated'])
    expect(await targets('a')).toEqual([ids.b, ids.e, target_id].sort())
    expect(await targets('vm')).toEqual([ids.h2])
    // An edge belongs to the item that lists it, whichever end of the edge that is.
    expect(outcomes(await send(from, [e], whole))).toEqual(['updated'])
    expect(await targets('a')).toEqual([ids.b, target_id].sort())
    // Without the option an item adds only.
    expect(outcomes(await send(from, [listing()]))).toEqual(['unchanged'])
    expect(outcomes(await send(from, [listing()], whole))).toEqual(['unchanged'])
    // The other source states it too, until it drops it.
    expect(await targets('a')).toEqual([ids.b, target_id].sort())
    expect(outcomes(await send(other, [service('x', { name: a.name })], whole))).toEqual(['updated'])
    expect(await targets('a')).toEqual([target_id])
    for (const [one, two] of [
      [h1, h2],
      [h2, h1],
    ] as const) {
      const relationships = [{ type_key: 'connects_to', target_external_id: two.external_id }]
      for (const [item, outcome] of [
        [{ ...one, relationships }, 'updated'],
        [two, 'unchanged'],
        [one, 'updated'],
      ] as const)
        expect([one.external_id, outcomes(await send(from, [item], whole))]).toEqual([one.external_id, [outcome]])
    }
  })

  it('adopts edges from before owners were stored, and removes the others only if asked', async () => {
    const from = source()
    const [a, b, d, e] = ['a', 'b', 'd', 'e'].map((id) => service(id)) as [Item, Item, Item, Item]
    const listing = (...targets: string[]) => ({ ...a, relationships: targets.map(calls) })
    const { results } = (await send(from, [b, d, e, listing('b', 'd', 'e')])).body
    const id = results[3].resource_id
    await c.rows(`update catalog.relationship set stated_by = null where stated_by = $1`, [`import:${from.name}`])
    const targets = async () =>
      (await c.as('vic').get(`/v1/resources/${id}/relationships?direction=out`)).body.items
        .map(({ peer }: { peer: { name: string } }) => peer.name[0])
        .sort()
        .join('')
    const whole = { complete_relationships: true }
    // A person confirms one of them, the source another.
    const add = { op: 'add', type_key: 'depends_on', target_id: results[1].resource_id }
    expect(await c.result(id, { expected_version: 1, changes: { relationship_changes: [add] } })).toMatchObject({
      body: { applied: false, version: 1 },
    })
    expect(outcomes(await send(from, [listing('b')], whole))).toEqual(['unchanged'])
    expect(await targets()).toBe('bde')
    const unowned = { ...whole, unowned_relationships: true }
    const dry = await send(from, [listing('b')], unowned, { query: '?validate_only=true' })
    expect(dry.body.results[0].diff).toEqual([
      { path: `/relationships/depends_on/${results[2].resource_id}`, before: 'there' },
    ])
    expect(outcomes(await send(from, [listing('b')], unowned))).toEqual(['updated'])
    expect(await targets()).toBe('bd')
    expect(outcomes(await send(from, [listing()], unowned))).toEqual(['updated'])
    expect(await targets()).toBe('d')
  })

  it('runs once per key: equal requests at once give one answer, and a repeat its bytes', async () => {
    const from = source()
    const items = [service('a'), service('b')]
    const key = randomUUID()
    const replies = await Promise.all(Array.from({ length: 8 }, () => send(from, items, {}, { key })))
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1)
    expect(outcomes(replies[0] as (typeof replies)[0])).toEqual(['created', 'created'])
    expect(await send(from, [service('other')], {}, { key })).toMatchObject({
      status: 422,
      body: { code: 'idempotency_key_reused' },
    })
  })

  it('creates each item once when two imports of one source run at once', async () => {
    const from = source()
    const items = [service('a'), service('b'), service('c')]
    const replies = await Promise.all(
      Array.from({ length: 6 }, (_, i) => send(from, i % 2 ? [...items].reverse() : items)),
    )
    for (const reply of replies) expect(reply.status).toBe(200)
    const rows = await c.rows(`select name from catalog.resource where name = any($1)`, [items.map(({ name }) => name)])
    expect(rows).toHaveLength(3)
  })

  /** While this runs, the database is slow to insert each new resource of this source. */
  const slowly = async <T>(prefix: string, seconds: number, run: () => Promise<T>): Promise<T> => {
    await c.rows(`create or replace function public.take_time() returns trigger language plpgsql as
      $$ begin perform pg_sleep(tg_argv[0]::float); return new; end $$`)
    await c.rows(`create trigger take_time before insert on catalog.resource for each row
      when (new.name like '${prefix}%') execute function public.take_time(${seconds})`)
    return run().finally(() => c.rows('drop trigger take_time on catalog.resource'))
  }
  const within = (ms: number, key: string): Ask => ({ key, once: true, headers: { 'x-request-deadline': String(ms) } })
  const stored = (items: readonly Item[]) =>
    c.rows('select name from catalog.resource where name = any($1)', [items.map(({ name }) => name)])

  it('answers in time with the items that it finished; the rest is deferred and accepted when sent again', async () => {
    const from = source()
    const items = Array.from({ length: 8 }, (_, i) =>
      service(`tardy${i}`, { relationships: [calls(i === 0 ? 'tardy1' : `tardy${8 - i}`)] }),
    )
    const key = randomUUID()
    const part = await slowly('tardy', 0.3, () => send(from, items, {}, within(2500, key)))
    expect(part.status).toBe(200)
    const { created, deferred } = part.body.counts
    expect(created).toBeGreaterThan(0)
    expect(deferred).toBeGreaterThan(0)
    expect(outcomes(part)).toEqual([...Array(created).fill('created'), ...Array(deferred).fill('deferred')])
    expect(await stored(items)).toHaveLength(created)

    const repeat = await send(from, items, {}, { key })
    expect(repeat.headers.get('idempotency-replayed')).toBe('true')
    expect(repeat.text).toBe(part.text)
    expect(await stored(items)).toHaveLength(created)
    const rest = await send(from, items)
    expect(rest.body.counts).toMatchObject({ created: deferred, deferred: 0, refused: 0, conflict: 0 })
    expect(await stored(items)).toHaveLength(items.length)
  })

  it('defers what follows a deferred item, also what it would refuse, so that a client may continue there', () => {
    const result = (index: number, outcome: 'created' | 'refused' | 'deferred') => ({
      ...{ index, outcome, external_id: `${index}`, diff: [] },
    })
    const refused = new Map([0, 3].map((index) => [index, result(index, 'refused')]))
    const results = [result(0, 'created'), result(1, 'deferred'), result(2, 'deferred')]
    expect(inOrder(5, refused, results).map(({ index, outcome }) => [index, outcome])).toEqual([
      [0, 'refused'],
      [1, 'created'],
      ...[2, 3, 4].map((index) => [index, 'deferred']),
    ])
  })

  it('keeps nothing after it told its caller that it took too long; the repeat counts as new', async () => {
    const from = source()
    const items = [service('late'), service('later')]
    const key = randomUUID()
    const before = await c.traces()
    await slowly('late', 1, async () => {
      expect(await send(from, items, {}, within(500, key))).toMatchObject({
        status: 503,
        body: { category: 'internal_error', code: 'unavailable', retryable: true },
      })
      const busy = () =>
        c.rows(`select 1 from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`)
      const held = () =>
        c.rows(`select 1 from pg_locks join pg_database d on d.oid = database
          where datname = current_database() and locktype = 'advisory'`)
      await until(async () => (await busy()).length === 0, { what: 'the slow moment to end' })
      // A repeat waits until the first request releases the key.
      await until(async () => (await held()).length === 0, { what: 'the first request to end' })
    })
    expect(await c.traces()).toEqual(before)
    const again = await send(from, items, {}, { key })
    expect(again.headers.get('idempotency-replayed')).toBeNull()
    expect(again.body.counts).toMatchObject({ created: 2 })
    expect(await stored(items)).toHaveLength(2)
  })

  it('needs catalog:record, a key and items within bounds', async () => {
    const request = { source: source(), items: [service('a')] }
    const before = await c.traces()
    expect(await c.as('vic').post('/v1/resources:import', request)).toMatchObject({ status: 403 })
    expect((await c.traces()).resource).toBe(before.resource)
    const at = async (body: unknown, ask: Ask = {}) => {
      const { status, body: problem } = await c.as('ada').post('/v1/resources:import', body, ask)
      return [status, problem.code]
    }
    expect(await at(request, { key: null })).toEqual([400, 'idempotency_key_required'])
    expect(await at({ ...request, items: [] })).toEqual([400, 'schema_violation'])
    expect(await at({ ...request, items: Array.from({ length: 201 }, (_, i) => service(`i${i}`)) })).toEqual([
      400,
      'schema_violation',
    ])
    expect(await at({ ...request, surprise: 1 })).toEqual([400, 'unknown_field'])
    expect(await at({ ...request, source: { kind: 'x', name: 'Not A Name' } })).toEqual([400, 'schema_violation'])
    expect(await at(undefined, { raw: `{"source":${'['.repeat(40)}` })).toEqual([400, 'schema_violation'])
    expect((await c.traces()).resource).toBe(before.resource)
  })
})

describe('an importer of one region', () => {
  it('cannot tell a hidden id of its source from one that does not exist', async () => {
    const from = source()
    await seedRegion(c, 'eu7', 0)
    await send(from, [service('hid', { parent_id: 'eu1-a-web' })])
    c.people.rover.grants = [{ role: 'admin', scope: { regionId: 'eu7' } }]
    const ask = async (name: string, over: Record<string, unknown>) => {
      const items = [service('x', { name: 'x', parent_id: 'eu7-a-web', ...over })]
      const reply = await c.as('rover').post('/v1/resources:import?validate_only=true', { source: from, items })
      return JSON.stringify(reply.body.results)
        .replaceAll(name, 'that')
        .replace(/"(request_id|instance)":"[^"]*"/g, '')
    }
    const edges = (name: string) => ask(name, { relationships: [calls(name)] })
    expect(await edges('hid')).toBe(await edges('nohid'))
    expect(await edges('hid')).toContain('created')
    const parents = (name: string) => ask(name, { parent_id: undefined, parent_external_id: name })
    expect(await parents('hid')).toBe(await parents('nohid'))
  })
})

describe('the audit list', () => {
  it('shows writes and refusals to auditors, newest first, in pages, by actor, action and object', async () => {
    const id = `h-${randomUUID()}`
    await c.as('ada').record(hostOf(id, 'eu1-a-web'))
    await c.result(id, { expected_version: 1, changes: { observed_state_patch: { release: '2.0.0' } } })
    await c.as('vic').patch(`/v1/resources/${id}?expected_version=2`, { labels: { a: 'b' } })
    const { body } = await c.as('ada').get(`/v1/audit/catalog?object=resource:${id}`)
    expect(
      body.items.map(({ actor, outcome }: { actor: string; outcome: string }) => [actor.split(':')[0], outcome]),
    ).toEqual([
      ['user', 'denied'],
      ['svc', 'applied'],
      ['user', 'applied'],
    ])
    expect(body.items[1].before_hash).toBe(body.items[2].after_hash)
    const denied = await c.as('ada').get(`/v1/audit/catalog?actor=user:${c.people.vic.id}&page_size=1`)
    expect(denied.body.items[0]).toMatchObject({
      outcome: 'denied',
      reason: 'permission_missing',
      object: `resource:${id}`,
    })
    await c
      .as('vic')
      .post('/v1/resources:bulk?mode=record_only', {
        items: [{ op: 'create', change: hostOf(`${id}-2`, 'eu1-a-web') }],
      })
    const bulk = await c.as('ada').get(`/v1/audit/catalog?action=${encodeURIComponent('POST /v1/resources:bulk')}`)
    expect(bulk.body.items[0]).toMatchObject({ actor: `user:${c.people.vic.id}`, outcome: 'denied' })
    expect(bulk.body.items[0].object).toBe('/v1/resources:bulk')
    c.people.rover.grants = [{ role: 'admin', scope: { regionId: 'us1' } }]
    const from = source()
    const taken = await send(from, [service('theirs', { parent_id: 'eu1-a-web' })])
    const refused = [service('theirs', { display_name: 'x' }), service('new', { parent_id: 'eu1-a-web' })]
    const [theirs] = taken.body.results
    const key = randomUUID()
    for (const _ of [1, 2])
      await c.as('rover').post('/v1/resources:import', { source: from, items: [refused[1]] }, { key })
    const tried = await c
      .as('rover')
      .post('/v1/resources:import?validate_only=true', { source: from, items: [refused[1]] })
    expect(tried.body.results).toMatchObject([{ outcome: 'refused', problem: { code: 'out_of_scope' } }])
    const objects = await c
      .as('ada')
      .get(`/v1/audit/catalog?actor=user:${c.people.rover.id}&object=import:${from.name}/new`)
    expect(objects.body.items.map(({ reason }: { reason: string }) => reason)).toEqual(['out_of_scope', 'out_of_scope'])
    const changes = [{ op: 'update', change: { resource_id: 'eu1-a-web', expected_version: 1, patch: { owner: 'x' } } }]
    c.people.rover.grants = [
      { role: 'admin', scope: { regionId: 'us1' } },
      { role: 'viewer', scope: {} },
    ]
    await c.as('rover').post('/v1/resources:bulk', { items: changes })
    await c.as('rover').post('/v1/resources:import', { source: from, items: [refused[0]] })
    for (const object of ['resource:eu1-a-web', `resource:${theirs.resource_id}`])
      expect(
        (await c.as('ada').get(`/v1/audit/catalog?actor=user:${c.people.rover.id}&object=${object}`)).body.items,
      ).toMatchObject([{ outcome: 'denied', reason: 'out_of_scope' }])
    const next = await c
      .as('ada')
      .get(
        `/v1/audit/catalog?page_size=1&page_token=${(await c.as('ada').get('/v1/audit/catalog?page_size=1')).body.next_page_token}`,
      )
    expect(next.body.items).toHaveLength(1)
    expect(await c.as('vic').get('/v1/audit/catalog')).toMatchObject({ status: 403 })
    for (const times of ['from=yesterday', 'from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z'])
      expect(await c.as('ada').get(`/v1/audit/catalog?${times}`)).toMatchObject({
        status: 400,
        body: { violations: [{ pointer: '/querystring/from' }] },
      })
    expect(await c.as('ada').get('/v1/audit/catalog?page_token=x.y')).toMatchObject({
      status: 400,
      body: { code: 'page_token_invalid' },
    })
  })
})
