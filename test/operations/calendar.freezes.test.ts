import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { passOverFreezes } from '../../apps/operations/calendar/over.ts'
import { createDriftWatch, rethrow } from '../../apps/operations/upkeep/drift.ts'
import { verifyEvidence } from '../../apps/shared/evidence/verify.ts'
import { compileCel } from '../../apps/shared/expressions/cel.ts'
import { until } from '../support/until.ts'
import { must, type Platform, problem, startPlatform } from './support/platform.ts'
import { operationOn } from './support/targets.ts'

/** operations.md 3.5: freezes that people make and end. */
let p: Platform
beforeAll(async () => {
  p = await startPlatform({ relay: false })
  await p.query(`insert into operations.catalog_resources (resource_id, type_key, type_version, name, parent_id, version, lifecycle_status, labels, annotations, desired_state, observed_state)
    values ('us1', 'topology.region', 1, 'us1', null, 1, 'active', '{}', '{}', '{}', '{}'), ('far-host', 't', 1, 'far-host', 'us1', 1, 'active', '{}', '{}', '{}', '{}')`)
})
afterAll(() => p.stop())

const freeze = (freeze_id: string, more: Record<string, unknown> = {}) => ({
  freeze_id,
  title: 'The rack is rebuilt',
  applies: "target.name == 'rack'",
  from: '2020-01-01T00:00:00Z',
  to: '2100-01-01T00:00:00Z',
  approvers: ['netops'],
  ...more,
})
const end = (freeze_id: string) => `/v1/freezes/${freeze_id}/end`
const known = async (freeze_id: string, who: 'vic' | 'eva' | 'far' = 'vic') =>
  must(await p.as(who).get('/v1/calendar'), 200).body.freezes.find(
    (one: { freeze_id: string }) => one.freeze_id === freeze_id,
  )

describe('a freeze that a person makes', () => {
  it('states its reach beforehand, holds the next claim, and ends when one of its approvers ends it', async () => {
    const running = await operationOn(p, 'rack')
    const dry = must(await p.as('olga').post('/v1/freezes', { ...freeze('rebuild'), dry_run: true }), 200).body
    expect(dry).toMatchObject({ dry_run: true, effect: { targets: 1, operations: 1 } })
    expect(await known('rebuild')).toBeUndefined()
    expect(must(await p.as('olga').post('/v1/freezes', freeze('rebuild')), 201).body).toMatchObject({
      ...{ freeze_id: 'rebuild', in_force: true, put_by: 'user:olga' },
      allowed_actions: [{ action: 'end', allowed: false, reason_code: 'permission_missing' }],
    })
    expect(await running.claim()).toBe('frozen rebuild')
    const told = (await p.as('vic').get(`/v1/operations/${running.operation_id}/timeline?types=calendar.changed`)).body
    expect(told.events).toMatchObject([{ actor: { kind: 'user', name: 'olga' }, data: { freezes_held: ['rebuild'] } }])
    expect((await known('rebuild', 'eva')).allowed_actions).toMatchObject([{ action: 'end', allowed: true }])
    expect(must(await p.as('eva').post(end('rebuild'), { dry_run: true }), 200).body.dry_run).toBe(true)
    expect(await running.claim()).toBe('frozen rebuild')
    // All members of this command are optional, so it needs no body.
    must(await p.as('eva').post(end('rebuild')), 200)
    expect(await known('rebuild')).toBeUndefined()
    const late = await p.as('both').post(end('rebuild'))
    expect([problem(late), late.body.detail]).toEqual([
      '409 invalid_state_transition/freeze_ended',
      expect.stringMatching(/^The freeze was ended at 20.*Z\.$/),
    ])
    expect(problem(await p.as('both').post(end('never-was')))).toBe('404 not_found/freeze')
    expect(await running.claim()).toBe('granted')
    const audit = await p.query(
      `select actor, action from operations.audit where object = 'freeze:rebuild' and outcome = 'done' order by at`,
    )
    expect(audit.map(({ action }) => action)).toEqual(['freeze.put', 'freeze.withdraw'])
    expect(audit.every(({ actor }) => String(actor).startsWith('user:'))).toBe(true)
    await running.release()
  })

  it('passes the gates that asked about it once it is ended, or its time is over', async () => {
    // The sweeper of this platform may be faster, also in the middle of ours.
    const pass = () => passOverFreezes(p.deps, () => undefined)
    const overs = {
      ended: () => p.as('eva').post(end('ended'), {}),
      // An operation stays as it is once the freeze that was overridden for it ends.
      overridden: async (operation_id: string) => {
        const asked = { type: 'override_freeze', payload: { freeze_id: 'overridden' }, reason: 'a test' }
        must(await p.as('both').post(`/v1/operations/${operation_id}/interventions`, asked), 201, 202)
        must(await p.as('eva').post(end('overridden'), {}), 200)
      },
      past: async () => {},
    }
    for (const [freeze_id, over] of Object.entries(overs)) {
      const soon = new Date(Date.now() + 10_000).toISOString()
      const made = freeze(freeze_id, freeze_id === 'past' ? { to: soon } : {})
      must(await p.as('olga').post('/v1/freezes', made), 201)
      const running = await operationOn(p, 'rack')
      const { operation_id } = running
      const [{ gate_id }] = (await p.query('select gate_id from operations.gates where operation_id = $1', [
        operation_id,
      ])) as [{ gate_id: string }]
      await p.openGate(operation_id, gate_id)
      const read = async () => must(await p.as('vic').get(`/v1/operations/${operation_id}/gates/${gate_id}`), 200).body
      if (freeze_id !== 'past') expect([await pass(), (await read()).status]).toEqual([0, 'waiting'])
      await over(operation_id)
      await until(async () => {
        await pass()
        return (await read()).status === 'approved'
      })
      expect(await read()).toMatchObject({ status: 'approved', decided: { by: { kind: 'system' } }, votes: [] })
      expect(must(await p.as('vic').get(`/v1/operations/${operation_id}`), 200).body.open_gates).toEqual([])
      const { events } = must(
        await p.as('vic').get(`/v1/operations/${operation_id}/timeline?types=gate.approved`),
        200,
      ).body
      expect(events).toMatchObject([{ reason: `The freeze ${freeze_id} is over.`, data: { freeze_id } }])
      expect(await running.claim()).toBe('granted')
      const sent = await p.query(
        `select payload ->> 'status' as status from operations.operation_commands where operation_id = $1 and kind = 'gate_decided'`,
        [operation_id],
      )
      expect(sent).toEqual([{ status: 'approved' }])
      const file = must(await p.as('aud').get(`/v1/operations/${operation_id}/evidence?format=jsonl`), 200).text
      const { keys } = must(await p.as('vic').get('/v1/evidence/keys'), 200).body
      expect(verifyEvidence(Buffer.from(file), keys)).toMatchObject({ counted: true, decisions: 1 })
      await running.release()
    }
  })

  it('keeps its gates where a process does not know it, or has a clock that is ahead', async () => {
    const { freezes } = p.deps.library
    const applies = compileCel("target.name == 'rack'", ['target'])
    freezes.push({ ...freeze('filed'), applies, digest: 'filed' })
    const running = await operationOn(p, 'rack')
    const { operation_id } = running
    const [{ gate_id }] = (await p.query('select gate_id from operations.gates where operation_id = $1', [
      operation_id,
    ])) as [{ gate_id: string }]
    await p.openGate(operation_id, gate_id)
    const before = { ...p.deps, library: { ...p.deps.library, freezes: [] } }
    const ahead = { ...p.deps, clock: { now: () => new Date('2101-01-01T00:00:00Z') } }
    for (const deps of [before, ahead]) expect(await passOverFreezes(deps, rethrow)).toBe(0)
    const read = async () => must(await p.as('vic').get(`/v1/operations/${operation_id}/gates/${gate_id}`), 200).body
    expect(await read()).toMatchObject({ status: 'waiting' })
    await p.query(
      `update operations.operation_control set calendar = calendar #- '{freezes,filed}' where operation_id = $1`,
      [operation_id],
    )
    expect(await passOverFreezes(before, rethrow)).toBe(1)
    expect(await read()).toMatchObject({ status: 'approved' })
    freezes.pop()
    await running.release()
  })

  it('passes its gate later in the same round if it was found to last', async () => {
    must(await p.as('olga').post('/v1/freezes', freeze('lasting')), 201)
    const running = await operationOn(p, 'rack')
    const { operation_id } = running
    const [{ gate_id }] = (await p.query('select gate_id from operations.gates where operation_id = $1', [
      operation_id,
    ])) as [{ gate_id: string }]
    await p.openGate(operation_id, gate_id)
    await p.query(
      `update operations.operation_control set calendar = calendar #- '{freezes,lasting}' where operation_id = $1`,
      [operation_id],
    )
    // The decision looks by the clock of Postgres.
    const ahead = { ...p.deps, clock: { now: () => new Date('2101-01-01T00:00:00Z') } }
    expect(await passOverFreezes(ahead, rethrow)).toBe(0)
    const audit = () =>
      p.query('select action from operations.audit where object = $1', [`gate:${operation_id}/${gate_id}`])
    expect(await audit()).toEqual([])
    must(await p.as('eva').post(end('lasting'), {}), 200)
    await until(async () => {
      await passOverFreezes(p.deps, rethrow)
      return (await p.as('vic').get(`/v1/operations/${operation_id}/gates/${gate_id}`)).body.status === 'approved'
    })
    expect(await audit()).toEqual([{ action: 'gate_decided' }])
    await running.release()
  })

  it('holds a running operation whose target moves under it, and lets it go when it moves away', async () => {
    const running = await operationOn(p, 'rack')
    must(await p.as('olga').post('/v1/freezes', freeze('moving', { applies: "target.scope.region_id == 'us1'" })), 201)
    const watch = createDriftWatch(p.deps)
    const moves = async (parent_id: string | null) => {
      await p.query(
        `update operations.catalog_resources set parent_id = $2, version = version + 1, change_seq = nextval('operations.catalog_change_seq')
         where resource_id = $1`,
        ['rack', parent_id],
      )
      await watch()
    }
    const [{ parent_id }] = (await p.query(
      `select parent_id from operations.catalog_resources where resource_id = 'rack'`,
    )) as [{ parent_id: string | null }]
    await moves('us1')
    expect(await running.claim()).toBe('frozen moving')
    await moves(parent_id)
    expect(await running.claim()).toBe('granted')
    must(await p.as('eva').post(end('moving'), {}), 200)
    await running.release()
  })

  it('has one creator of several at the same moment, and one answer for each key', async () => {
    const key = randomUUID()
    const answers = await Promise.all(
      [key, key, randomUUID(), randomUUID()].map((one, instance) =>
        p
          .as('olga')
          .post('/v1/freezes', freeze('race', { title: instance < 2 ? 'first' : `other ${instance}` }), { key: one }),
      ),
    )
    const made = answers.filter(({ status }) => status === 201)
    expect(new Set(made.map(({ text }) => text)).size).toBe(1)
    for (const { status, body } of answers.filter((one) => one.status !== 201))
      expect([status, body.category]).toEqual([409, 'version_conflict'])
    must(await p.as('eva').post(end('race'), {}), 200)
    expect(await p.as('eva').post(end('race'), {})).toMatchObject({ status: 409, body: { code: 'freeze_ended' } })
  })

  it('has told running operations when its creation is repeated after a crash', async () => {
    const create = () => p.as('olga').post('/v1/freezes', freeze('crash'), { key })
    const key = randomUUID()
    const running = await operationOn(p, 'rack')
    must(await create(), 201)
    await p.query(`update operations.calendar_entries set revision = revision + 1 where freeze_id = 'crash'`)
    await p.query('update operations.operation_control set calendar = null where operation_id = $1', [
      running.operation_id,
    ])
    must(await create(), 201)
    expect(await running.claim()).toBe('frozen crash')
    must(await p.as('eva').post(end('crash'), {}), 200)
    await running.release()
  })

  it('covers, now and later, only targets where its creator may control operations', async () => {
    const dry = async (who: 'far' | 'olga', applies: string) =>
      must(await p.as(who).post('/v1/freezes', { ...freeze('all', { applies }), dry_run: true }), 200).body.effect
    const [row] = await p.query('select count(*)::int as all from operations.catalog_resources')
    expect((await dry('far', 'true')).targets).toBe(2)
    expect((await dry('olga', 'true')).targets).toBe(row?.all)
    // The answer is the same, whatever is true of a target elsewhere.
    const asked = [`target.name == 'rack'`, `target.name == 'rack' && target.version == 99`, `target.name == 'none'`]
    for (const applies of asked) expect(await dry('far', applies)).toMatchObject({ targets: 0, operations: 0 })
    const [running, elsewhere] = [await operationOn(p, 'rack'), await operationOn(p, 'far-host')]
    // One of the same condition, made without a scope, has its own reach.
    must(
      await p.as('olga').post('/v1/freezes', freeze('later', { applies: 'true', from: '2099-01-01T00:00:00Z' })),
      201,
    )
    expect(must(await p.as('far').post('/v1/freezes', freeze('all', { applies: 'true' })), 201).body).toMatchObject({
      within: [{ region_id: 'us1' }],
    })
    expect(await known('later')).toMatchObject({ within: null })
    expect(await running.claim()).toBe('granted')
    expect(await elsewhere.claim()).toBe('frozen all')
    expect(await p.as('vic').post('/v1/freezes', freeze('viewer'))).toMatchObject({
      ...{ status: 403, body: { code: 'permission_missing' } },
    })
    for (const id of ['all', 'later']) must(await p.as('eva').post(end(id), {}), 200)
    await running.release()
    await elsewhere.release()
  })

  it('names as approvers only groups with an active member, and beforehand those who may end it', async () => {
    const mistyped = freeze('mistyped', { approvers: ['netops', 'netopps'] })
    for (const dry_run of [true, false])
      expect(await p.as('olga').post('/v1/freezes', { ...mistyped, dry_run })).toMatchObject({
        status: 422,
        body: { code: 'unknown_reference', violations: [{ pointer: '/approvers/1', code: 'unknown_reference' }] },
      })
    const dry = must(await p.as('olga').post('/v1/freezes', { ...freeze('told'), dry_run: true }), 200).body
    expect(dry.effect.may_end).toEqual(['ada', 'both', 'eva'])
    // A freeze that exists already: an administrator makes the group and adds someone.
    await p.query(
      `insert into operations.calendar_entries (freeze_id, entry, put_by) values ('stuck', $1, 'user:olga')`,
      [JSON.stringify({ ...freeze('stuck', { approvers: ['netopps'] }), freeze_id: undefined })],
    )
    const refused = await p.as('eva').post(end('stuck'), {})
    expect(refused).toMatchObject({ status: 403, body: { code: 'not_eligible' } })
    expect(refused.body.detail).toContain('an administrator can add')
    p.people.eva.groups.push('netopps')
    await until(async () => (await p.as('eva').post(end('stuck'), {})).status === 200)
    p.people.eva.groups.pop()
  })

  it('is made while identity is away: a stop waits for nobody', async () => {
    must(await p.as('olga').get('/v1/me'), 200)
    p.identity.away = true
    p.deps.trust.approvers.drop()
    const hasMembers = p.deps.trust.hasMembers
    try {
      must(await p.as('olga').post('/v1/freezes', freeze('dark')), 201)
      const dry = must(await p.as('olga').post('/v1/freezes', { ...freeze('darker'), dry_run: true }), 200).body
      expect(dry.effect.may_end).toBeNull()
      p.deps.trust.hasMembers = () => new Promise(() => {})
      const asked = performance.now()
      must(await p.as('olga').post('/v1/freezes', { ...freeze('darkest'), dry_run: true }), 200)
      expect(performance.now() - asked).toBeLessThan(10_000)
    } finally {
      p.deps.trust.hasMembers = hasMembers
      p.identity.away = false
      p.deps.trust.approvers.drop()
    }
    must(await p.as('eva').post(end('dark'), {}), 200)
  })

  it('is ended only by its own approvers, and one of a control plane only by that', async () => {
    const plane = p.service('demo-control-plane')
    const { freeze_id: _, ...entry } = freeze('theirs')
    must(await plane.put('/internal/v1/freezes/theirs', entry), 200)
    must(await p.as('olga').post('/v1/freezes', freeze('ours')), 201)
    const refused = async (who: 'ivo' | 'eva' | 'olga', freeze_id: string, code: string) =>
      expect(await p.as(who).post(end(freeze_id), {})).toMatchObject({ status: 403, body: { code } })
    await refused('ivo', 'ours', 'not_eligible')
    await refused('olga', 'ours', 'permission_missing')
    await refused('eva', 'theirs', 'freeze_elsewhere')
    for (const answer of [
      await plane.put('/internal/v1/freezes/ours', entry),
      await plane.delete('/internal/v1/freezes/ours'),
    ])
      expect(answer).toMatchObject({ status: 422, body: { code: 'parameters_invalid' } })
    expect(await known('ours')).toMatchObject({ put_by: 'user:olga' })
    expect(await known('theirs')).toMatchObject({ put_by: 'demo-control-plane' })
    must(await plane.delete('/internal/v1/freezes/theirs'), 200)
    must(await p.as('eva').post(end('ours'), {}), 200)
  })

  it('is made only if an approver may decide wherever it holds', async () => {
    p.people.far.groups.push('us-leads')
    await until(async () => (await p.as('far').get('/v1/me')).body.groups.includes('us-leads'))
    const ours = (dry_run: boolean) => ({ ...freeze('unended', { approvers: ['us-leads'] }), dry_run })
    for (const dry_run of [true, false])
      expect(await p.as('olga').post('/v1/freezes', ours(dry_run))).toMatchObject({
        ...{ status: 422, body: { code: 'unknown_reference', violations: [{ pointer: '/approvers' }] } },
      })
    expect(await known('unended')).toBeUndefined()
    must(await p.as('far').post('/v1/freezes', ours(false)), 201)
    must(await p.as('far').post(end('unended'), {}), 200)
    p.people.far.groups.pop()
  })

  it('is ended only by approvers who may decide wherever it holds', async () => {
    must(await p.as('olga').post('/v1/freezes', freeze('everywhere', { applies: 'true' })), 201)
    expect(await p.as('far').post(end('everywhere'), {})).toMatchObject({
      ...{ status: 403, body: { category: 'policy_denied', code: 'out_of_scope' } },
    })
    expect((await known('everywhere', 'far')).allowed_actions).toMatchObject([
      { action: 'end', allowed: false, reason_code: 'out_of_scope' },
    ])
    must(await p.as('far').post('/v1/freezes', freeze('there')), 201)
    // A narrower place, and one beyond the region of this approver.
    const within = (scopes: object[]) =>
      p.query(
        `update operations.calendar_entries set entry = entry || jsonb_build_object('within', $1::jsonb) where freeze_id = 'there'`,
        [JSON.stringify(scopes)],
      )
    await within([{ region_id: 'us1', type_key: 'fleet.*' }, { region_id: 'eu1' }])
    expect((await known('there', 'far')).allowed_actions).toMatchObject([{ action: 'end', allowed: false }])
    await within([{ region_id: 'us1', type_key: 'fleet.*' }])
    must(await p.as('far').post(end('there'), {}), 200)
    must(await p.as('eva').post(end('everywhere'), {}), 200)
  })

  it('is shortened by its approvers: its end is earlier, and who has overridden it stays free', async () => {
    const [held, free] = [await operationOn(p, 'rack'), await operationOn(p, 'rack-2')]
    const racks = freeze('shorter', { applies: "target.name.startsWith('rack')" })
    must(await p.as('olga').post('/v1/freezes', racks), 201)
    const asked = { type: 'override_freeze', payload: { freeze_id: 'shorter' }, reason: 'a test' }
    must(await p.as('both').post(`/v1/operations/${free.operation_id}/interventions`, asked), 201, 202)
    const ends = async () => (await known('shorter')).to
    const refused = async (at: string, code = 'parameters_invalid', status = 422) =>
      expect(await p.as('eva').post(end('shorter'), { at })).toMatchObject({ status, body: { code } })
    await refused('2100-01-01T00:00:00Z')
    await refused('2021-01-01T00:00:00Z')
    await refused('soon', 'schema_violation', 400)
    expect(await p.as('ivo').post(end('shorter'), { at: '2090-01-01T00:00:00Z' })).toMatchObject({ status: 403 })
    must(await p.as('eva').post(end('shorter'), { at: '2090-01-01T00:00:00Z', dry_run: true }), 200)
    expect(await ends()).toBe('2100-01-01T00:00:00Z')
    must(await p.as('eva').post(end('shorter'), { at: '2090-01-01T00:00:00Z' }), 200)
    expect(await ends()).toBe('2090-01-01T00:00:00.000Z')
    expect(await held.claim()).toBe('frozen shorter')
    expect(await free.claim()).toBe('granted')
    const [row] = await p.query(
      `select calendar #>> '{freezes,shorter,to}' as "to" from operations.operation_control where operation_id = $1`,
      [held.operation_id],
    )
    expect(row).toEqual({ to: '2090-01-01T00:00:00.000Z' })
    const audit = await p.query(
      `select action, before_hash = after_hash as same from operations.audit
       where object = 'freeze:shorter' and outcome = 'done' order by at`,
    )
    expect(audit.at(-1)).toEqual({ action: 'freeze.put', same: false })
    must(await p.as('eva').post(end('shorter'), {}), 200)
    expect(await held.claim()).toBe('granted')
    for (const one of [held, free]) await one.release()
  })

  it('is refused with the place of the fault if it is not valid', async () => {
    const refused = async (more: Record<string, unknown>, status: number, code: string) =>
      expect(await p.as('olga').post('/v1/freezes', freeze('wrong', more))).toMatchObject({
        ...{ status, body: { category: 'validation_error', code } },
      })
    await refused({ to: '2019-01-01T00:00:00Z' }, 422, 'parameters_invalid')
    await refused({ to: '2021-01-01T00:00:00Z' }, 422, 'parameters_invalid')
    await refused({ applies: 'target.' }, 422, 'expression_error')
    await refused({ applies: '"1"' }, 422, 'expression_error')
    await refused({ approvers: [] }, 400, 'schema_violation')
    await refused({ freeze_id: 'Wrong!' }, 400, 'schema_violation')
    expect(await known('wrong')).toBeUndefined()
  })
})
