import { createHmac, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { faultInCron } from '../../apps/operations/schedules/cron.ts'
import { fireDue } from '../../apps/operations/schedules/fire.ts'
import { watchConditions } from '../../apps/operations/schedules/watch.ts'
import { nextTime, nextTimes, refuseWhen } from '../../apps/operations/schedules/when.ts'
import { endRun, leaseRun, pruneHookDeliveries } from '../../db/operations/plans/schedules.ts'
import { readDocument } from '../contract/documents.ts'
import { siteFolder } from '../support/site.ts'
import { type CatalogLog, catalogLog } from './support/catalog.ts'
import { types } from './support/planner.ts'
import { must, type Platform, person, problem, startPlatform } from './support/platform.ts'

const at = (text: string) => Date.parse(text)

describe('the next time', () => {
  it('lies in the future, and is the first one, for every interval', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 60, max: 31_536_000 }),
        fc.nat(10 ** 12),
        fc.nat(10 ** 12),
        (every_s, made, later) => {
          const after = made + later
          const next = nextTime({ every_s }, made, after) as number
          expect(next).toBeGreaterThan(after)
          expect(next - Math.max(after, made)).toBeLessThanOrEqual(every_s * 1000)
          expect((next - made) % (every_s * 1000)).toBe(0)
        },
      ),
    )
  })

  it('keeps the local hour through daylight saving', () => {
    const when = { cron: '0 22 * * *', timezone: 'Europe/Berlin' }
    const times = nextTimes(when, 0, at('2026-10-23T12:00:00Z'), 4).map((ms) => new Date(ms).toISOString().slice(0, 16))
    expect(times).toEqual(['2026-10-23T20:00', '2026-10-24T20:00', '2026-10-25T21:00', '2026-10-26T21:00'])
  })

  it('lies in the future in a repeated hour, and occurs once', () => {
    const when = { cron: '*/15 * * * *', timezone: 'Europe/Berlin' }
    for (let after = at('2026-10-24T23:00:00Z'); after < at('2026-10-25T03:00:00Z'); after += 60_000)
      expect(nextTime(when, 0, after)).toBeGreaterThan(after)
    expect(nextTime({ ...when, cron: '30 2 * * *' }, 0, at('2026-10-25T01:05:00Z'))).toBe(at('2026-10-26T01:30:00Z'))
  })

  it('is the first one after the repeated hour, whatever the minute', () => {
    for (const [cron, first] of [
      ['* * * * *', '2026-10-25T02:00:00Z'],
      ['3 3 * * *', '2026-10-25T02:03:00Z'],
      ['*/5 * * * *', '2026-10-25T02:00:00Z'],
    ] as const)
      for (let after = at('2026-10-25T01:05:30Z'); after < at('2026-10-25T02:00:00Z'); after += 60_000)
        expect(nextTime({ cron, timezone: 'Europe/Berlin' }, 0, after), cron).toBe(at(first))
  })

  it('comes once on a day whose clocks skip it', () => {
    const times = nextTimes({ cron: '30 2 * * *', timezone: 'Europe/Berlin' }, 0, at('2026-03-28T00:00:00Z'), 3)
    expect(times.map((ms) => new Date(ms).toISOString().slice(0, 16))).toEqual([
      '2026-03-28T01:30',
      '2026-03-29T01:30',
      '2026-03-30T00:30',
    ])
  })

  it('takes ? in a day field for *', () => {
    for (const cron of ['0 0 ? * MON', '0 0 * * MON']) {
      const times = nextTimes({ cron, timezone: 'UTC' }, 0, at('2026-01-01T12:00:00Z'), 2)
      expect(times.map((ms) => new Date(ms).toISOString().slice(0, 10))).toEqual(['2026-01-05', '2026-01-12'])
    }
    expect(nextTime({ cron: '0 0 1 * ?', timezone: 'UTC' }, 0, at('2026-01-01T12:00:00Z'))).toBe(
      at('2026-02-01T00:00:00Z'),
    )
  })

  it('comes from every form that the document names, and any other is refused for its fault', () => {
    const refused = (cron: string) => {
      try {
        refuseWhen({ cron, timezone: 'UTC' }, at('2026-01-01T00:00:00Z'))
      } catch (error) {
        return (error as Error).message
      }
    }
    for (const cron of ['*/15 8-18/2 1,15 JAN-jun ?', '0 0 * * FRI-SUN', '0 0 * * 5-7', ' 0  0 */2 * MON,3 '])
      expect(refused(cron), cron).toBeUndefined()
    for (const [cron, fault] of [
      ['60 * * * *', /"60" as minute; it takes numbers from 0 to 59/],
      ['*/0 * * * *', /the step 0 as minute/],
      ['5-1 * * * *', /range 5-1 as minute, which must rise/],
      ['5/10 * * * *', /such as 5-59\/10/],
      ['? * * * *', /"\?" as minute/],
      ['0 0 L * *', /"L" as day of month/],
      ['0 0 15W * *', /"15W" as day of month/],
      ['0 0 * * 1#2', /"1#2" as day of week/],
      ['1,,3 * * * *', /"" as minute/],
      ['0 0 * FOO *', /"FOO" as month; .*names such as FEB/],
      ['@daily', /must have five fields/],
      ['0 0 * * * *', /must have five fields/],
    ] as const)
      expect(refused(cron), cron).toMatch(fault)
  })

  it('comes on the days of a range that begins or ends on a Sunday, however that is written', () => {
    const after = at('2026-01-01T12:00:00Z')
    for (const [days, wanted] of [
      ['5-00', [0, 5, 6]],
      ['5-0', [0, 5, 6]],
      ['FRI-sun', [0, 5, 6]],
      ['5-7', [0, 5, 6]],
      ['5-SUN/2', [0, 5]],
      ['MON,6-0', [0, 1, 6]],
      ['0-0', [0]],
      ['SUN-SUN', [0]],
      ['00-SUN/2', [0]],
      ['7-0', [0]],
      ['07-7', [0]],
      ['SUN-TUE', [0, 1, 2]],
      ['0-6', [0, 1, 2, 3, 4, 5, 6]],
      ['0-7', [0, 1, 2, 3, 4, 5, 6]],
    ] as const) {
      const cron = `0 0 * * ${days}`
      expect(faultInCron(cron), cron).toBeUndefined()
      const week = nextTimes({ cron, timezone: 'UTC' }, 0, after, 7).filter((ms) => ms < after + 7 * 86_400_000)
      expect(week.map((ms) => new Date(ms).getUTCDay()).sort(), cron).toEqual(wanted)
    }
    // A range of another field stays as it is.
    const minutes = nextTimes({ cron: '0-0,30 * * * *', timezone: 'UTC' }, 0, after, 3)
    expect(minutes.map((ms) => new Date(ms).getUTCMinutes())).toEqual([30, 0, 30])
  })

  it('is understood by the clock of schedules in every form that is taken', () => {
    const days = fc.constantFrom('0', '00', '7', '07', 'SUN', 'sun', '5', '06', 'FRI')
    const item = fc.oneof(
      fc.constantFrom(
        '*',
        '?',
        '*/2',
        '*/7',
        'L',
        'MON',
        'sun',
        'JAN',
        '1-5/2',
        '0',
        '7',
        '12',
        '24',
        '31',
        '32',
        '60',
      ),
      fc.tuple(fc.nat(60), fc.nat(60)).map(([a, b]) => `${a}-${b}`),
      fc.tuple(days, days).map(([a, b]) => `${a}-${b}`),
      fc.tuple(days, days).map(([a, b]) => `${a}-${b}/2,${b}`),
      fc.array(fc.nat(60), { minLength: 1, maxLength: 3 }).map((list) => list.join()),
    )
    fc.assert(
      fc.property(fc.tuple(item, item, item, item, item), (fields) => {
        const cron = fields.join(' ')
        if (faultInCron(cron) === undefined) nextTime({ cron, timezone: 'UTC' }, 0, at('2026-01-01T00:00:00Z'))
      }),
      { numRuns: 500 },
    )
  })

  it('ends when the schedule is over', () => {
    expect(nextTime({ at: '2026-01-01T00:00:00Z' }, 0, at('2026-01-01T00:00:00Z'))).toBeUndefined()
    expect(nextTimes({ cron: '0 0 30 2 *', timezone: 'UTC' }, 0, 0, 3)).toEqual([])
  })
})

/** A look at each host, and a change of each that takes its time. */
const LOOKS = `
format: signalbox/pack@1
pack: looks
version: 1.0.0
title: Looks
owners: [netops]
procedures:
  - { key: look, kind: runbook, title: Look at each host, match: { when: 'true' }, lease: { mode: shared, ancestors: shared }, steps: [{ id: look, executor: noop }] }
  - { key: change, kind: runbook, title: Change each host, match: { when: 'true' }, lease: { mode: exclusive, ancestors: shared }, steps: [{ id: change, executor: noop }] }
`
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
      OPERATIONS__PACKS__DIR: siteFolder({ 'looks.yaml': LOOKS }),
    },
  })
})
afterAll(async () => {
  await p.stop()
  await catalog.close()
})

let number = 0
let hosts: string[]
beforeEach(() => {
  number += 1
  hosts = ['01', '02'].map((n) => `s${number}-${n}`)
  for (const id of hosts) catalog.put(id, { parent_id: 'eu1', name: id })
})

const bodyOf = (more: Record<string, unknown> = {}) => ({
  when: { every_s: 3600 },
  intent: {
    kind: 'change',
    title: `web 2.4.0 by ${number}`,
    reason: 'a new release, at night',
    targets: hosts.map((resource_id) => ({ resource_id })),
    change: { op: 'update', desired_state_patch: { release: '2.4.0' }, parameters: { drain_s: 1 } },
  },
  ...more,
})
const create = (more: Record<string, unknown> = {}, who: Parameters<Platform['as']>[0] = 'olga', options = {}) =>
  p.as(who).post('/v1/schedules', bodyOf(more), options)
const made = async (more?: Record<string, unknown>) => must(await create(more), 201).body
const read = async (id: string) => must(await p.as('olga').get(`/v1/schedules/${id}`), 200).body
const act = (id: string, name: string, who: Parameters<Platform['as']>[0] = 'olga', body = {}) =>
  p.as(who).post(`/v1/schedules/${id}/${name}`, body)
/** Makes the schedule due, as if its time had come a moment ago. */
const due = (id: string) =>
  p.query(`update operations.schedules set next_at = clock_timestamp() - interval '1 s' where schedule_id = $1`, [id])
const fire = () => Promise.all(p.running.map(({ deps }) => fireDue(deps)))
const runsOf = async (id: string) => (await read(id)).runs

describe('a schedule', () => {
  it('plans at its time, once, however many processes look', async () => {
    const schedule = await made()
    expect(schedule).toMatchObject({ status: 'active', proceed: 'plan', owner: { name: 'olga' }, runs: [] })
    expect(schedule.upcoming).toHaveLength(5)
    // The first time is one of those that are counted from its beginning: else it would come twice.
    expect(Date.parse(schedule.next_at) - Date.parse(schedule.created_at)).toBe(3_600_000)
    expect(Date.parse(schedule.upcoming[0])).toBe(Date.parse(schedule.next_at))
    await fire()
    expect(await runsOf(schedule.schedule_id)).toEqual([])
    await due(schedule.schedule_id)
    await Promise.all([fire(), fire(), fire()])
    const runs = await runsOf(schedule.schedule_id)
    expect(runs).toMatchObject([{ state: 'planned', detail: null, operation_id: null }])
    const plan = must(await p.as('olga').get(`/v1/plans/${runs[0].plan_id}`), 200).body
    expect(plan).toMatchObject({ status: 'ready', intent_id: runs[0].intent_id, operation_id: null })
    const [row] = await p.query('select count(*)::int as n from operations.intents where title = $1', [schedule.title])
    expect(row?.n).toBe(1)
    expect(Date.parse((await read(schedule.schedule_id)).next_at)).toBeGreaterThan(Date.now())
  })

  it('starts its plan if configured: the owner is the requester, and a gate still asks another person', async () => {
    const { schedule_id, title } = await made({ proceed: 'start' })
    await due(schedule_id)
    await fire()
    const [run] = await runsOf(schedule_id)
    expect(run).toMatchObject({ state: 'started' })
    const operation = must(await p.as('olga').get(`/v1/operations/${run.operation_id}`), 200).body
    expect(operation).toMatchObject({ requester: { name: 'olga' }, plan_id: run.plan_id })
    const { items } = must(await p.as('olga').get(`/v1/operations/${run.operation_id}/gates`), 200).body
    expect(items.length).toBeGreaterThan(0)
    // It still runs when the next time comes.
    await due(schedule_id)
    await fire()
    expect((await runsOf(schedule_id))[0]).toMatchObject({ state: 'skipped', detail: `${title} is still running.` })
  })

  it('skips its times as long as its operation runs, however many, and drops no run that waits', async () => {
    const { schedule_id, title } = await made({ proceed: 'start' })
    await due(schedule_id)
    await fire()
    await p.query(
      `update operations.schedule_runs set due_at = due_at - interval '1 day' where schedule_id = $1 and state = 'started'`,
      [schedule_id],
    )
    await due(schedule_id)
    await fire()
    expect((await runsOf(schedule_id))[0]).toMatchObject({ state: 'skipped', detail: `${title} is still running.` })
    const many = (state: string, after: string) =>
      p.query(
        `insert into operations.schedule_runs (schedule_id, due_at, state, leased_until)
         select $1, clock_timestamp() + $3::interval + make_interval(secs => n), $2, 'infinity' from generate_series(1, 120) n`,
        [schedule_id, state, after],
      )
    await many('begun', '-2 hours')
    await many('skipped', '-1 hour')
    await many('skipped', '-30 minutes')
    const counts = () =>
      p.query<{ state: string; n: number }>(
        'select state, count(*)::int as n from operations.schedule_runs where schedule_id = $1 group by state order by state',
        [schedule_id],
      )
    must(await act(schedule_id, 'run'), 200)
    expect(await counts()).toEqual([
      { state: 'begun', n: 121 },
      { state: 'skipped', n: 100 },
      { state: 'started', n: 1 },
    ])
    // It has ended: its run is as old as any.
    await p.query(
      `update operations.operations set ended_at = clock_timestamp() where operation_id in
       (select operation_id from operations.schedule_runs where schedule_id = $1)`,
      [schedule_id],
    )
    must(await act(schedule_id, 'run'), 200)
    expect((await counts()).map(({ state }) => state)).toEqual(['begun', 'skipped'])
    await p.query('delete from operations.schedule_runs where schedule_id = $1', [schedule_id])
    await due(schedule_id)
    await fire()
    expect((await runsOf(schedule_id))[0]).toMatchObject({ state: 'started' })
  })

  it('continues after its process died between two steps: nothing twice', async () => {
    const { schedule_id } = await made({ proceed: 'start' })
    await due(schedule_id)
    await fire()
    const [first] = await runsOf(schedule_id)
    await p.query(
      `update operations.schedule_runs set state = 'begun', leased_until = null, intent_id = null, plan_id = null, operation_id = null
       where schedule_id = $1`,
      [schedule_id],
    )
    await p.query(`update operations.operations set ended_at = clock_timestamp() where operation_id = $1`, [
      first.operation_id,
    ])
    await fire()
    expect(await runsOf(schedule_id)).toEqual([first])
  })

  it('starts nothing after a pause that came while it was planned', async () => {
    const { schedule_id } = await made({ proceed: 'start' })
    await due(schedule_id)
    // The pause, at that moment.
    await p.query(`create function operations.pause_now() returns trigger language plpgsql as $$ begin
      update operations.schedule_runs set state = 'skipped' where state = 'begun'; return new; end $$`)
    await p.query(`create trigger pause_now after insert on operations.plans execute function operations.pause_now()`)
    try {
      await fire()
    } finally {
      await p.query('drop function operations.pause_now cascade')
    }
    expect(await runsOf(schedule_id)).toMatchObject([{ state: 'skipped', operation_id: null }])
    const [{ count }] = (await p.query(`select count(*)::int from operations.operations where title = $1`, [
      bodyOf().intent.title,
    ])) as [{ count: number }]
    expect(count).toBe(0)
  })

  it('keeps trying for a while from its first try, however late that is', async () => {
    const { schedule_id } = await made({ proceed: 'start' })
    await p.query(`update operations.schedules set next_at = now() - interval '1 hour' where schedule_id = $1`, [
      schedule_id,
    ])
    await p.query(`create function operations.fail_now() returns trigger language plpgsql as $$ begin
      raise exception 'away'; end $$`)
    await p.query(`create trigger fail_now before insert on operations.intents execute function operations.fail_now()`)
    try {
      await fire()
    } finally {
      await p.query('drop function operations.fail_now cascade')
    }
    expect(await runsOf(schedule_id)).toMatchObject([{ state: 'begun' }])
    await p.query('update operations.schedule_runs set leased_until = null where schedule_id = $1', [schedule_id])
    await fire()
    expect(await runsOf(schedule_id)).toMatchObject([{ state: 'started' }])
  })

  it('has the current rights of its owner when it runs', async () => {
    const { schedule_id } = await made({ proceed: 'start' })
    const { olga } = p.people
    const { roles } = olga
    olga.roles = ['viewer']
    try {
      await new Promise((resolve) => setTimeout(resolve, 100))
      await due(schedule_id)
      await fire()
    } finally {
      olga.roles = roles
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    expect(await runsOf(schedule_id)).toMatchObject([{ state: 'refused', detail: expect.stringContaining('cover') }])
  })

  it("is paused if its owner's account is closed", async () => {
    const { schedule_id } = await made()
    const { olga } = p.people
    olga.disabled = true
    try {
      await new Promise((resolve) => setTimeout(resolve, 100))
      await due(schedule_id)
      await fire()
    } finally {
      olga.disabled = false
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    const schedule = await read(schedule_id)
    expect(schedule).toMatchObject({ status: 'paused', status_reason: 'The account of olga is no longer active.' })
    expect(schedule.runs).toMatchObject([{ state: 'refused', intent_id: null }])
  })

  it("is paused at the first run on its condition if its owner's account is closed", async () => {
    const { schedule_id } = await watching('closed')
    must(await act(schedule_id, 'run'), 200)
    const { olga } = p.people
    olga.disabled = true
    for (const { deps } of p.running) deps.trust.principals.drop('all')
    try {
      await fire()
    } finally {
      olga.disabled = false
      for (const { deps } of p.running) deps.trust.principals.drop('all')
    }
    const schedule = await read(schedule_id)
    expect(schedule).toMatchObject({ status: 'paused', status_reason: 'The account of olga is no longer active.' })
    expect(schedule.runs).toMatchObject([{ state: 'refused', intent_id: null }])
  })

  it('refuses a run at once if its condition can no longer be evaluated', async () => {
    const { schedule_id, on } = await watching('unreadable')
    must(await act(schedule_id, 'run'), 200)
    await p.query('update operations.schedules set "when" = $2::jsonb where schedule_id = $1', [
      schedule_id,
      JSON.stringify({ on: { ...on, when: 'target.' } }),
    ])
    await fire()
    expect(await runsOf(schedule_id)).toMatchObject([
      { state: 'refused', detail: expect.stringContaining('/targets/0/selector/when') },
    ])
    await act(schedule_id, 'end')
  })

  it('is paused, resumed, run now and ended by its owner', async () => {
    const { schedule_id } = await made()
    expect(must(await act(schedule_id, 'pause', 'olga', { reason: 'hold it' }), 200).body).toMatchObject({
      ...{ status: 'paused', status_reason: 'hold it', next_at: null, upcoming: [] },
    })
    await fire()
    expect(await runsOf(schedule_id)).toEqual([])
    expect(must(await act(schedule_id, 'resume'), 200).body.status).toBe('active')
    must(await act(schedule_id, 'run'), 200)
    await fire()
    expect(await runsOf(schedule_id)).toMatchObject([{ state: 'planned' }])
    expect(must(await act(schedule_id, 'end'), 200).body.status).toBe('ended')
    expect(problem(await act(schedule_id, 'resume'))).toBe('409 invalid_state_transition/schedule_ended')
    expect(problem(await p.as('olga').post(`/v1/schedules/${schedule_id}/secret`, {}))).toBe(
      '409 invalid_state_transition/no_webhook',
    )
    const listed = must(await p.as('olga').get('/v1/schedules?status=ended'), 200).body
    expect(listed.items.map((row: { schedule_id: string }) => row.schedule_id)).toContain(schedule_id)
  })

  it('that is active already keeps the time that is due when it is resumed', async () => {
    const { schedule_id } = await made()
    await due(schedule_id)
    must(await act(schedule_id, 'resume', 'olga', { reason: 'go' }), 200)
    await fire()
    expect(await runsOf(schedule_id)).toMatchObject([{ state: 'planned' }])
    must(await act(schedule_id, 'pause', 'olga', { reason: 'hold it' }), 200)
    const again = must(await act(schedule_id, 'pause', 'olga', { reason: 'another' }), 200).body
    expect(again).toMatchObject({ status: 'paused', status_reason: 'hold it' })
  })

  it("that has ended stays so if its owner's account is closed", async () => {
    const { schedule_id } = await made({ when: { at: new Date(Date.now() + 3_600_000).toISOString() } })
    const past = JSON.stringify({ at: new Date().toISOString() })
    await p.query('update operations.schedules set "when" = $2 where schedule_id = $1', [schedule_id, past])
    await due(schedule_id)
    const { olga } = p.people
    olga.disabled = true
    for (const { deps } of p.running) deps.trust.principals.drop('all')
    try {
      await fire()
    } finally {
      olga.disabled = false
      for (const { deps } of p.running) deps.trust.principals.drop('all')
    }
    expect(await read(schedule_id)).toMatchObject({ status: 'ended', runs: [{ state: 'refused' }] })
  })

  it('can be paused by others, but not resumed', async () => {
    const { schedule_id } = await made()
    expect(problem(await act(schedule_id, 'run', 'eva'))).toBe('403 policy_denied/permission_missing')
    expect(problem(await act(schedule_id, 'resume', 'pia'))).toBe('403 policy_denied/not_your_schedule')
    expect(problem(await act(schedule_id, 'pause', 'pia'))).toBe('403 policy_denied/permission_missing')
    expect(must(await act(schedule_id, 'pause', 'both'), 200).body.status).toBe('paused')
    expect(problem(await act(schedule_id, 'pause', 'far'))).toBe('404 not_found/schedule')
  })

  const stated = (procedure: string, ids: string[]) => ({
    ...{ kind: 'runbook', title: `${procedure} ${number}`, reason: 'each hour' },
    ...{ runbook: { pack: 'looks', procedure }, targets: ids.map((resource_id) => ({ resource_id })) },
  })
  const change = async (ids: string[]) => {
    const { intent_id } = must(await p.as('olga').post('/v1/intents', stated('change', ids)), 201).body
    const plan = must(await p.as('olga').post(`/v1/intents/${intent_id}/plan-preview`, {}), 201).body
    const start = { reviewed_plan_hash: plan.plan_hash }
    return must(await p.as('olga').post(`/v1/plans/${plan.plan_id}/start`, start), 202).body
  }

  it('that only looks leaves out what is being changed, so that it holds up no other change', async () => {
    await p.deps.projection.catchUp()
    const [one, two] = hosts as [string, string]
    expect((await change([one])).blocked_on).toEqual([])
    const { schedule_id } = await made({ proceed: 'start', intent: stated('look', hosts) })
    await due(schedule_id)
    await fire()
    const [run] = await runsOf(schedule_id)
    expect(run).toMatchObject({ state: 'started', detail: 'Left out, as others hold them: 1 of 2 resources.' })
    const looks = must(await p.as('olga').get(`/v1/operations/${run.operation_id}`), 200).body
    expect(looks).toMatchObject({ blocked_on: [], plan_id: run.plan_id })
    const { catalog_pins } = must(await p.as('olga').get(`/v1/plans/${run.plan_id}`), 200).body
    expect(catalog_pins).toMatchObject([{ resource_id: two }])
    await p.query('delete from operations.leases where operation_id = $1', [run.operation_id])
    await p.query('update operations.operations set ended_at = clock_timestamp() where operation_id = $1', [
      run.operation_id,
    ])
    // It waits for the first host, so the second one is taken as well.
    expect((await change(hosts)).blocked_on).toMatchObject([{ kind: 'lease', id: one }])
    await due(schedule_id)
    await fire()
    expect((await runsOf(schedule_id))[0]).toMatchObject({
      ...{ state: 'skipped', detail: 'Left out, as others hold them: 2 of 2 resources.', operation_id: null },
    })
  })

  it('that only looks skips a time from which it would wait: others may hold its resources by then', async () => {
    await p.deps.projection.catchUp()
    const not_before = new Date(Date.now() + 3_600_000).toISOString()
    const intent = { ...stated('look', hosts), constraints: { not_before } }
    const { schedule_id } = await made({ proceed: 'start', intent })
    await due(schedule_id)
    await fire()
    expect(await runsOf(schedule_id)).toMatchObject([
      { state: 'skipped', detail: `It may begin only at ${not_before}.`, operation_id: null },
    ])
  })

  it('that only looks leaves out at each try what is held then', async () => {
    await p.deps.projection.catchUp()
    const [one, two] = hosts as [string, string]
    const { operation_id } = await change([one])
    const { schedule_id } = await made({ proceed: 'start', intent: stated('look', hosts) })
    await due(schedule_id)
    const again = () =>
      p.query('update operations.schedule_runs set leased_until = null where schedule_id = $1', [schedule_id])
    await p.query(`create function operations.fail_now() returns trigger language plpgsql as $$ begin
      raise exception 'away'; end $$`)
    await p.query(
      `create trigger fail_now before insert on operations.operations execute function operations.fail_now()`,
    )
    try {
      await fire()
      await p.query('delete from operations.leases where operation_id = $1', [operation_id])
      await again()
      await fire()
    } finally {
      await p.query('drop function operations.fail_now cascade')
    }
    expect(await runsOf(schedule_id)).toMatchObject([{ state: 'begun' }])
    await change([two])
    await again()
    await fire()
    const [run] = await runsOf(schedule_id)
    expect(run).toMatchObject({ state: 'started', detail: 'Left out, as others hold them: 1 of 2 resources.' })
    const { catalog_pins } = must(await p.as('olga').get(`/v1/plans/${run.plan_id}`), 200).body
    expect(catalog_pins).toMatchObject([{ resource_id: one }])
  })

  it('that is not valid is refused with the place of the fault, and leaves nothing behind', async () => {
    const [before] = await p.query('select count(*)::int as n from operations.schedules')
    const wrong = async (more: Record<string, unknown>) => {
      const { status, body } = await create(more)
      return [status, body.violations?.[0].pointer]
    }
    expect(await wrong({ when: { cron: '61 * * * *', timezone: 'UTC' } })).toEqual([400, '/when/cron'])
    expect(await wrong({ when: { cron: '* * * * * *', timezone: 'UTC' } })).toEqual([400, '/when/cron'])
    for (const cron of ['0 0 30 2 *', '0 0 31 4,6,9,11 *'])
      expect(await wrong({ when: { cron, timezone: 'UTC' } })).toEqual([400, '/when/cron'])
    expect(() => refuseWhen({ cron: '0 0 31 2 *', timezone: 'UTC' }, Date.now())).toThrow(/no month has/)
    expect(await wrong({ when: { cron: '0 0 * * *', timezone: 'Mars/Base' } })).toEqual([400, '/when/timezone'])
    expect(await wrong({ when: { at: '2020-01-01T00:00:00Z' } })).toEqual([400, '/when/at'])
    expect((await create({ when: { every_s: 1 } })).status).toBe(400)
    const { intent } = bodyOf()
    expect((await create({ intent: { ...intent, targets: [{ resource_id: 'not-there' }] } })).status).toBe(422)
    expect((await create({ intent: { ...intent, retry_of: randomUUID() } })).status).toBe(400)
    expect(problem(await create({ proceed: 'start' }, 'pia'))).toBe('403 policy_denied/permission_missing')
    expect((await create({}, 'vic')).status).toBe(403)
    const bot = person('machine:bot', ['planner'])
    bot.machine = { permissions: ['operation:read', 'intent:create'], behind: [p.people.olga.id] }
    Object.assign(p.people, { bot })
    expect(problem(await create({}, bot))).toBe('403 policy_denied/person_required')
    const tried = await create({ dry_run: true })
    expect([tried.status, tried.body.effect.upcoming.length]).toEqual([200, 5])
    const [after] = await p.query('select count(*)::int as n from operations.schedules')
    expect(after).toEqual(before)
  })

  it('is refused above the number that one person may own', async () => {
    const { schedule_id } = await made()
    await p.query(
      `insert into operations.schedules (schedule_id, owner, requester_id, "when", intent, proceed, resource_ids)
       select gen_random_uuid(), owner, requester_id, "when", intent, proceed, resource_ids
       from operations.schedules, generate_series(1, 200) where schedule_id = $1`,
      [schedule_id],
    )
    expect(problem(await create())).toBe('422 validation_error/too_many_schedules')
    await p.query(`update operations.schedules set status = 'ended', next_at = null where schedule_id not in
       (select schedule_id from operations.schedules where status <> 'ended' limit 196)`)
    const several = await Promise.all(Array.from({ length: 10 }, () => create()))
    expect(several.filter(({ status }) => status === 201)).toHaveLength(4)
    await p.query(`update operations.schedules set status = 'ended', next_at = null`)
    expect((await create()).status).toBe(201)
  })

  it('runs for resources that start to meet its condition, once each time, and only for these', async () => {
    const { targets: _, ...intent } = bodyOf().intent
    const [one, two] = hosts as [string, string]
    const when = { on: { type_key: 'fleet.host', when: `target.labels.?drifts.orValue('') == 'yes${number}'` } }
    expect((await create({ when, intent: { ...intent, targets: [] } })).body.violations[0].pointer).toBe(
      '/intent/targets',
    )
    for (const condition of ['target.(', '1+1']) {
      const broken = { on: { type_key: 'fleet.host', when: condition } }
      const refused = await create({ when: broken, intent })
      expect(problem(refused)).toBe('422 validation_error/expression_error')
      expect(refused.body.violations[0].pointer).toBe('/when/on/when')
      expect(refused.body.detail).toMatch(/^\/when\/on\/when: /)
    }
    const runbook = { kind: 'runbook', title: 'r', reason: 'r', runbook: { pack: 'no', procedure: 'such' } }
    for (const [lost, pointer] of [
      [{ ...intent, constraints: { window_id: 'no-window' } }, '/intent/constraints/window_id'],
      [runbook, '/intent/runbook/procedure'],
    ] as const)
      expect((await create({ when, intent: lost })).body.violations[0].pointer).toBe(pointer)
    // No run could resolve these.
    const unknown = { on: { type_key: 'no.such', when: 'true' } }
    const graph = { kind: 'graph', title: 'g', reason: 'r', graph: { nodes: [{ node_id: 'a', executor: 'nosuch' }] } }
    for (const dry_run of [true, false]) {
      const refused = [
        await create({ when: unknown, intent, dry_run }),
        await create({ when: { every_s: 3600 }, intent: graph, dry_run }),
      ]
      expect(refused.map(({ status, body }) => [status, body.code, body.violations[0].pointer])).toEqual([
        [422, 'unknown_reference', '/when/on/type_key'],
        [422, 'unknown_executor', '/intent/graph/nodes/0/executor'],
      ])
    }
    const lost = { ...bodyOf().intent, targets: [{ resource_id: 'not-there' }] }
    expect((await create({ intent: lost })).body.violations[0].pointer).toBe('/intent/targets/0/resource_id')
    const { schedule_id } = must(await create({ when, intent }), 201).body
    const look = async () => {
      await p.deps.projection.catchUp()
      await fire()
      return (await runsOf(schedule_id)).map(({ targets, state }: Record<string, unknown>) => [targets, state])
    }
    const drifts = (id: string, drifts: string) => catalog.put(id, { parent_id: 'eu1', name: id, labels: { drifts } })
    expect(await look()).toEqual([])
    drifts(one, `yes${number}`)
    expect(await look()).toEqual([[[one], 'planned']])
    drifts(two, `yes${number}`)
    expect(await look()).toEqual([
      [[two], 'planned'],
      [[one], 'planned'],
    ])
    drifts(one, 'no')
    expect(await look()).toHaveLength(2)
    drifts(one, `yes${number}`)
    expect((await look())[0]).toEqual([[one], 'planned'])
    expect(await look()).toHaveLength(3)
  })

  it('waits for a type that was just loaded', async () => {
    const { targets: _, ...intent } = bodyOf().intent
    const when = { on: { type_key: 'fleet.printer', when: 'true' } }
    expect(problem(await create({ when, intent }))).toBe('422 validation_error/unknown_reference')
    const [known] = types
    if (known) types.push({ ...known, type_key: 'fleet.printer' })
    catalog.loadTypes(2)
    must(await create({ when, intent }), 201)
    types.pop()
  })

  it('runs for a resource whose change is committed after a later one', async () => {
    const { targets: _, ...intent } = bodyOf().intent
    const [one, two] = hosts as [string, string]
    const when = { on: { type_key: 'fleet.host', when: `target.labels.?slow.orValue('') == 'yes'` } }
    const { schedule_id } = must(await create({ when, intent }), 201).body
    await p.deps.projection.catchUp()
    await fire()
    const change = `update operations.catalog_resources set labels = labels || $2, change_seq = nextval('operations.catalog_change_seq') where resource_id = $1`
    const late = await p.deps.pool.connect()
    await late.query('begin')
    await late.query(change, [one, { slow: 'yes' }])
    await p.query(change, [two, { slow: 'no' }])
    await fire()
    expect(await runsOf(schedule_id)).toEqual([])
    await late.query('commit')
    late.release()
    await fire()
    expect(await runsOf(schedule_id)).toMatchObject([{ targets: [one] }])
  })

  it('runs once the operation has ended that ran as resources began to meet its condition, unless it is paused', async () => {
    const { targets: _, ...intent } = bodyOf().intent
    const when = { on: { type_key: 'fleet.host', when: `target.labels.?late.orValue('') == 'yes${number}'` } }
    const { schedule_id } = must(await create({ when, intent, proceed: 'start' }), 201).body
    const drifts = async (id: string, late: string) => {
      catalog.put(id, { parent_id: 'eu1', name: id, labels: { late } })
      await p.deps.projection.catchUp()
      await fire()
    }
    const states = async () => (await runsOf(schedule_id)).map(({ state }: { state: string }) => state)
    const ends = async () => {
      await p.query(
        `update operations.operations set ended_at = clock_timestamp() where operation_id in
         (select operation_id from operations.schedule_runs where schedule_id = $1)`,
        [schedule_id],
      )
      await p.query('update operations.schedule_runs set leased_until = null where schedule_id = $1', [schedule_id])
      await fire()
    }
    const [one, two] = hosts as [string, string]
    await drifts(one, `yes${number}`)
    await drifts(two, `yes${number}`)
    expect(await states()).toEqual(['begun', 'started'])
    await ends()
    expect(await states()).toEqual(['started', 'started'])
    await drifts(one, 'no')
    await drifts(one, `yes${number}`)
    expect(await states()).toEqual(['begun', 'started', 'started'])
    must(await act(schedule_id, 'pause'), 200)
    await ends()
    expect(await states()).toEqual(['skipped', 'started', 'started'])
  })

  /** A schedule for hosts whose label is on; `look` catches up and fires, and `labels` changes a host. */
  const watching = async (label: string, more: Record<string, unknown> = {}) => {
    const { targets: _, ...intent } = bodyOf().intent
    const on = { type_key: 'fleet.host', when: `target.labels.?${label}.orValue('') == 'yes${number}'` }
    const { schedule_id } = must(await create({ when: { on }, intent, ...more }), 201).body
    const look = async () => {
      await p.deps.projection.catchUp()
      await fire()
      const { runs } = await read(schedule_id)
      return runs.map(({ targets, state }: Record<string, unknown>) => [targets, state])
    }
    const labels = (id: string, is_on: boolean) =>
      catalog.put(id, { parent_id: 'eu1', name: id, labels: { [label]: is_on ? `yes${number}` : 'no' } })
    return { schedule_id, on, look, labels }
  }

  it('makes one waiting run of all that happens while its operation runs, and acts only on what still meets it', async () => {
    const { schedule_id, look, labels } = await watching('flaps', { proceed: 'start' })
    const [one, two] = hosts as [string, string]
    labels(one, true)
    expect(await look()).toEqual([[[one], 'started']])
    for (const is_on of [false, true, false, true]) {
      labels(one, is_on)
      await look()
    }
    labels(two, true)
    expect(await look()).toEqual([
      [[one, two].sort(), 'begun'],
      [[one], 'started'],
    ])
    labels(one, false)
    labels(two, false)
    await p.query(
      `update operations.operations set ended_at = clock_timestamp() where operation_id in
       (select operation_id from operations.schedule_runs where schedule_id = $1)`,
      [schedule_id],
    )
    await p.query('update operations.schedule_runs set leased_until = null where schedule_id = $1', [schedule_id])
    expect((await look())[0]).toEqual([[one, two].sort(), 'skipped'])
    expect((await runsOf(schedule_id))[0].detail).toBe('Its resources no longer meet the condition.')
  })

  it('runs now on the resources that meet its condition now, although it was paused meanwhile', async () => {
    const { schedule_id, look, labels } = await watching('now', { proceed: 'start' })
    const [one, two] = hosts as [string, string]
    labels(one, true)
    expect(await look()).toEqual([[[one], 'started']])
    await p.query(
      `update operations.operations set ended_at = clock_timestamp() where operation_id in
       (select operation_id from operations.schedule_runs where schedule_id = $1)`,
      [schedule_id],
    )
    must(await act(schedule_id, 'pause'), 200)
    labels(one, false)
    labels(two, true)
    await p.deps.projection.catchUp()
    must(await act(schedule_id, 'run'), 200)
    await fire()
    expect((await runsOf(schedule_id))[0]).toMatchObject({ state: 'started', targets: [two] })
  })

  it('leaves out of a run that waited what its owner may no longer read, and acts on the others', async () => {
    const { targets: _, ...intent } = bodyOf().intent
    const on = { type_key: 'fleet.host', when: `target.labels.?gone.orValue('') == 'yes${number}'` }
    const { schedule_id } = must(await create({ when: { on }, intent, proceed: 'start' }, 'far'), 201).body
    const [one, two] = hosts as [string, string]
    const look = async () => {
      await p.deps.projection.catchUp()
      await fire()
      return must(await p.as('far').get(`/v1/schedules/${schedule_id}`), 200).body.runs[0]
    }
    const put = (id: string, parent_id: string, gone: string) =>
      catalog.put(id, { parent_id, name: id, labels: { gone: `${gone}${number}` } })
    catalog.put('us1', { type_key: 'topology.region' })
    put(one, 'us1', 'yes')
    expect(await look()).toMatchObject({ state: 'started', targets: [one] })
    put(one, 'us1', 'no')
    await look()
    for (const id of [one, two]) put(id, 'us1', 'yes')
    expect(await look()).toMatchObject({ state: 'begun', targets: [one, two].sort() })
    // It belongs to another region now.
    put(one, 'eu1', 'yes')
    await p.deps.projection.catchUp()
    await p.query(
      `update operations.operations set ended_at = clock_timestamp() where operation_id in
       (select operation_id from operations.schedule_runs where schedule_id = $1)`,
      [schedule_id],
    )
    await p.query('update operations.schedule_runs set leased_until = null where schedule_id = $1', [schedule_id])
    expect(await look()).toMatchObject({ state: 'started', targets: [two] })
    put(two, 'eu1', 'no')
  })

  it('makes one run at a time, however many processes look', async () => {
    const { schedule_id } = await made({ proceed: 'start' })
    await p.query(
      `insert into operations.schedule_runs (schedule_id, due_at)
       select $1, clock_timestamp() - make_interval(secs => n) from generate_series(1, 2) n`,
      [schedule_id],
    )
    const { db } = p.deps
    const leased = (await Promise.all([leaseRun(db), leaseRun(db)])).flatMap((run) => run ?? [])
    expect(leased).toMatchObject([{ schedule_id }])
    expect(await leaseRun(db)).toBeUndefined()
    const [first] = leased
    if (!first) throw new Error('no run')
    // It only waits for its next try: another one need not wait for it.
    await endRun(db, first, 'begun', { detail: 'later' })
    const other = await leaseRun(db)
    expect(other).toMatchObject({ schedule_id })
    expect(other?.due_at).not.toBe(first.due_at)
    await p.query('delete from operations.schedule_runs where schedule_id = $1', [schedule_id])
  })

  it('is created although a resource lacks a member of its condition, and names that resource', async () => {
    const { targets: _, ...intent } = bodyOf().intent
    await p.deps.projection.catchUp()
    const when = { on: { type_key: 'fleet.host', when: `target.labels.lacks${number} == 'yes'` } }
    expect((await create({ when, intent, dry_run: true })).status).toBe(200)
    const { schedule_id } = must(await create({ when, intent }), 201).body
    await fire()
    expect(await read(schedule_id)).toMatchObject({
      status: 'active',
      status_reason: expect.stringMatching(/^The condition cannot be judged on \S+/),
    })
    await act(schedule_id, 'end')
  })

  it('judges and names only resources that its owner may read', async () => {
    const { targets: _, ...intent } = bodyOf().intent
    const own = `far-${number}`
    catalog.put('us1', { type_key: 'topology.region' })
    catalog.put(own, { parent_id: 'us1', name: own })
    await p.deps.projection.catchUp()
    const when = { on: { type_key: 'fleet.host', when: `target.labels.lacks${number} == 'yes'` } }
    const { schedule_id } = must(await create({ when, intent }, 'far'), 201).body
    const reason = async () => must(await p.as('far').get(`/v1/schedules/${schedule_id}`), 200).body.status_reason
    await fire()
    expect(await reason()).toMatch(new RegExp(`^The condition cannot be judged on ${own}: `))
    await act(schedule_id, 'end', 'far')
  })

  it('begins no run for resources that met it before a right was lost and came back', async () => {
    const { targets: _, ...intent } = bodyOf().intent
    const { far } = p.people
    const roles = [...far.roles]
    const [one] = hosts as [string, string]
    const own = `far-${number}`
    catalog.put('us1', { type_key: 'topology.region' })
    const put = (id: string, lost: string) =>
      catalog.put(id, { parent_id: id === one ? 'eu1' : 'us1', name: id, labels: { lost } })
    const look = async (held: string[], scopes?: typeof far.scopes) => {
      far.roles = held
      if (scopes) far.scopes = scopes
      else delete far.scopes
      for (const { deps } of p.running) deps.trust.principals.drop('all')
      await p.deps.projection.catchUp()
      await fire()
      const { status, status_reason, runs } = await read(schedule_id)
      return [status, status_reason, runs.map(({ targets }: Record<string, unknown>) => targets)]
    }
    const when = { on: { type_key: 'fleet.host', when: `target.labels.?lost.orValue('') == 'yes${number}'` } }
    const { schedule_id } = must(await create({ when, intent }, 'far'), 201).body
    for (const id of [own, one]) put(id, `yes${number}`)
    const first = [one, own].sort()
    expect(await look(roles, { viewer: {} })).toEqual(['active', null, [first]])
    put(`${own}-b`, 'no')
    expect(await look(roles)).toEqual(['active', null, [first]])
    put(`${own}-c`, 'no')
    expect(await look([])).toEqual(['active', expect.stringContaining('may read no resource'), [first]])
    await p.query(`update operations.schedules set updated_at = now() - interval '2 min' where schedule_id = $1`, [
      schedule_id,
    ])
    expect(await look(roles, { viewer: {} })).toEqual(['active', null, [first]])
    put(`${own}-b`, `yes${number}`)
    expect(await look(roles)).toEqual(['active', null, [[`${own}-b`], first]])
    await act(schedule_id, 'end')
  })

  it('stays active while too many resources meet its condition, and runs when fewer do', async () => {
    const { schedule_id, look, labels } = await watching('many')
    for (const id of hosts) labels(id, true)
    await p.deps.projection.catchUp()
    await watchConditions({ ...p.deps, config: { ...p.deps.config, OPERATIONS__LIMITS__TARGETS: 1 } })
    const reason = expect.stringMatching(/^Too many .* tried again each minute/)
    expect(await read(schedule_id)).toMatchObject({ status: 'active', status_reason: reason, runs: [] })
    await p.query(`update operations.schedules set updated_at = now() - interval '2 min' where schedule_id = $1`, [
      schedule_id,
    ])
    expect(await look()).toEqual([[[...hosts].sort(), 'planned']])
    expect((await read(schedule_id)).status_reason).toBeNull()
  })

  it('says once per pass that the rights of owners cannot be read, and is judged afterwards', async () => {
    const { look, labels } = await watching('dark')
    const lines: unknown[][] = []
    const telemetry = { log: { warn: (...line: unknown[]) => void lines.push(line) } }
    labels(hosts[0] as string, true)
    await p.deps.projection.catchUp()
    p.deps.trust.principals.drop('all')
    p.identity.away = true
    try {
      await watchConditions({ ...p.deps, telemetry } as never)
    } finally {
      p.identity.away = false
    }
    expect(lines.map(([, text]) => text)).toEqual(['the rights of owners could not be read'])
    expect(await look()).toMatchObject([[[hosts[0]], 'planned']])
  })

  it('counts a resource that it cannot judge as not met and names it; a broken one holds up no other', async () => {
    const broken = await watching('broken')
    const { schedule_id, on, look, labels } = await watching('judged')
    const [one] = hosts as [string, string]
    const set = (id: string, when: unknown) =>
      p.query('update operations.schedules set "when" = $2::jsonb where schedule_id = $1', [
        id,
        JSON.stringify({ on: { ...on, when } }),
      ])
    await set(broken.schedule_id, 5)
    await set(schedule_id, `target.labels.judged == 'yes${number}'`)
    labels(one, true)
    expect(await look()).toEqual([[[one], 'planned']])
    expect(await read(schedule_id)).toMatchObject({
      status: 'active',
      status_reason: expect.stringMatching(/^The condition cannot be judged on \S+ and \d+ others: /),
    })
    await act(broken.schedule_id, 'end')
  })

  it('is created once per key', async () => {
    const key = randomUUID()
    const replies = await Promise.all([1, 2, 3].map(() => create({}, 'olga', { key })))
    const ids = replies.filter(({ status }) => status === 201).map(({ body }) => body.schedule_id)
    expect(new Set(ids).size).toBe(1)
  })
  it('answers a late repeat with the first answer, whatever a new request would get', async () => {
    const key = randomUUID()
    const when = { at: new Date(Date.now() + 1500).toISOString() }
    const first = must(await create({ when }, 'olga', { key }), 201)
    await new Promise((resolve) => setTimeout(resolve, 1600))
    expect(problem(await create({ when }))).toBe('400 validation_error/schema_violation')
    expect((await create({ when }, 'olga', { key })).text).toBe(first.text)
  })
})

describe('a schedule that waits for a webhook', () => {
  const hooked = (webhook: Record<string, unknown> = { signature: 'standard' }) => made({ when: { webhook } })
  const secretOf = async (id: string, body = {}, options = {}) =>
    await p
      .as('olga')
      .post(`/v1/schedules/${id}/secret`, body, options)
      .then((reply) => {
        expect(reply.headers.get('cache-control')).toBe('no-store')
        return must(reply, 200).body
      })
  const bytes = (secret: string) => Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const deliver = async (id: string, body: string, headers: Record<string, string>) => {
    const url = `${p.running[0]?.url}/v1/hooks/${id}`
    const response = await fetch(url, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
    const reply = (await response.json()) as Record<string, string>
    return response.ok ? reply.status : `${response.status} ${reply.category}/${reply.code}`
  }
  const standard = (secret: string, body: string, id: string = randomUUID(), at = Date.now()) => {
    const timestamp = String(Math.floor(at / 1000))
    const signature = createHmac('sha256', bytes(secret)).update(`${id}.${timestamp}.${body}`).digest('base64')
    return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,other v1,${signature}` }
  }
  const refused = '401 policy_denied/signature_invalid'

  it("runs once for each signed delivery, with its owner's rights, however often and wherever it arrives", async () => {
    const { schedule_id } = await hooked()
    const { secret, url, previous_until } = await secretOf(schedule_id)
    expect([url, previous_until]).toEqual([`/api/v1/hooks/${schedule_id}`, null])
    const headers = standard(secret, '{"ref":"a"}')
    const answers = await Promise.all([1, 2, 3, 4].map(() => deliver(schedule_id, '{"ref":"a"}', headers)))
    expect(answers.toSorted()).toEqual(['accepted', 'duplicate', 'duplicate', 'duplicate'])
    await fire()
    expect(await runsOf(schedule_id)).toMatchObject([{ state: 'planned' }])
    // The same id under another time and signature is the same delivery.
    const again = standard(secret, '{"ref":"a"}', headers['webhook-id'])
    expect(await deliver(schedule_id, '{"ref":"a"}', again)).toBe('duplicate')
    const stored = await p.query(
      `select key from operations.idempotency where position(convert_to($1, 'utf8') in body) > 0`,
      [secret],
    )
    expect(stored).toEqual([])
  })

  it('refuses unsigned, old and foreign deliveries, all alike', async () => {
    const { schedule_id } = await hooked()
    const body = '{"a":1}'
    expect(await deliver(schedule_id, body, standard('whsec_AAAA', body))).toBe(refused)
    const { secret } = await secretOf(schedule_id)
    const other = await hooked()
    await secretOf(other.schedule_id)
    expect(await deliver(other.schedule_id, body, standard(secret, body))).toBe(refused)
    expect(await deliver(randomUUID(), body, standard(secret, body))).toBe(refused)
    const plain = await made()
    expect(await deliver(plain.schedule_id, body, standard(secret, body))).toBe(refused)
    expect(await deliver(schedule_id, '{"a":2}', standard(secret, body))).toBe(refused)
    for (const minutes of [-6, 6])
      expect(await deliver(schedule_id, body, standard(secret, body, 'm', Date.now() + minutes * 60_000))).toBe(refused)
    expect(await deliver(schedule_id, body, {})).toBe(refused)
    const forge = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
    expect(await deliver(schedule_id, body, { 'x-hub-signature-256': forge })).toBe(refused)
    expect(problem(await p.as('both').post(`/v1/schedules/${schedule_id}/secret`, {}))).toBe(
      '403 policy_denied/not_your_schedule',
    )
    await fire()
    expect(await runsOf(schedule_id)).toEqual([])
    expect(await deliver(schedule_id, body, standard(secret, body))).toBe('accepted')
  })

  it("accepts a forge's signature over the body, each body once, and only bodies that meet its condition", async () => {
    const { schedule_id } = await hooked({ signature: 'forge', if: "body.ref == 'refs/heads/main'" })
    const { secret } = await secretOf(schedule_id)
    const push = (ref: string) => send(JSON.stringify({ ref }))
    const send = (body: string, delivery = randomUUID()) => {
      const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
      return deliver(schedule_id, body, { 'x-hub-signature-256': signature, 'x-github-delivery': delivery })
    }
    expect(await push('refs/heads/other')).toBe('ignored')
    expect(await push('refs/heads/main')).toBe('accepted')
    expect(await push('refs/heads/main')).toBe('duplicate')
    expect(await send('\0not JSON')).toBe('ignored')
    await fire()
    expect(await runsOf(schedule_id)).toHaveLength(1)
    expect((await read(schedule_id)).hook.deliveries).toEqual([
      {
        at: expect.any(String),
        status: 'ignored',
        detail: expect.stringMatching(/^The body cannot be read: .*\uFFFD/),
      },
      { at: expect.any(String), status: 'accepted', detail: null },
      { at: expect.any(String), status: 'ignored', detail: "The body does not meet body.ref == 'refs/heads/main'." },
    ])
    for (const condition of ['body.(', "'yes'"]) {
      const broken = await create({ when: { webhook: { signature: 'forge', if: condition } } })
      expect([broken.status, broken.body.violations[0].pointer]).toEqual([400, '/when/webhook/if'])
      expect(broken.body.detail).not.toMatch(/\.\.$/)
    }
  })

  it('takes signed bytes of any content type, and the document names its headers', async () => {
    const { schedule_id } = await hooked()
    const { secret } = await secretOf(schedule_id)
    const form = 'payload=%7B%7D'
    for (const type of ['application/x-www-form-urlencoded', 'application/octet-stream', 'text/plain', '', 'text'])
      expect(await deliver(schedule_id, form, { ...standard(secret, form), 'content-type': type })).toBe('accepted')
    // `fetch` names no type for bytes.
    const bare = await fetch(`${p.running[0]?.url}/v1/hooks/${schedule_id}`, {
      ...{ method: 'POST', headers: standard(secret, form), body: Buffer.from(form) },
    })
    expect(bare.status).toBe(200)
    const operation = readDocument('public').paths['/api/v1/hooks/{schedule_id}']?.post
    const headers = operation?.parameters?.filter((parameter) => parameter.in === 'header').map(({ name }) => name)
    expect(headers).toEqual([...Object.keys(standard(secret, form)), 'x-hub-signature-256'])
    expect(Object.keys(operation?.requestBody?.content ?? {})).toEqual(['application/json', 'application/octet-stream'])
  })

  it('has a new secret beside the old one for the stated time, and none of it when paused', async () => {
    const { schedule_id } = await hooked()
    const key = randomUUID()
    const first = await secretOf(schedule_id, {}, { key })
    expect(await secretOf(schedule_id, {}, { key })).toEqual(first)
    const second = await secretOf(schedule_id, { overlap_s: 60 })
    for (const { secret } of [first, second])
      expect(await deliver(schedule_id, '{}', standard(secret, '{}'))).toBe('accepted')
    const third = await secretOf(schedule_id, { overlap_s: 0 })
    expect(await deliver(schedule_id, '{}', standard(second.secret, '{}'))).toBe(refused)
    must(await act(schedule_id, 'pause'), 200)
    expect(await deliver(schedule_id, '{}', standard(third.secret, '{}'))).toBe('ignored')
    must(await act(schedule_id, 'resume'), 200)
    expect(await deliver(schedule_id, '{}', standard(third.secret, '{}'))).toBe('accepted')
    for (let n = 0; n < 60; n++) await deliver(schedule_id, '{}', standard(third.secret, '{}'))
    expect(await deliver(schedule_id, '{}', standard(third.secret, '{}'))).toBe('429 internal_error/overloaded')
  })

  it('forgets an old delivery only when it can no longer count', async () => {
    const standardOne = await hooked()
    const forge = await hooked({ signature: 'forge' })
    const push = async (secret: string) => {
      const signature = `sha256=${createHmac('sha256', secret).update('{}').digest('hex')}`
      return deliver(forge.schedule_id, '{}', { 'x-hub-signature-256': signature })
    }
    const db = () => p.running[0]?.deps.db as never
    const kept = async ({ schedule_id }: { schedule_id: string }) => {
      await p.query(
        `update operations.schedule_deliveries set at = at - interval '31 days' where schedule_id = $1 and at > now() - interval '1 day'`,
        [schedule_id],
      )
      await pruneHookDeliveries(db())
      return (await read(schedule_id)).hook.deliveries.length
    }
    const { secret } = await secretOf(standardOne.schedule_id)
    expect(await deliver(standardOne.schedule_id, '{}', standard(secret, '{}'))).toBe('accepted')
    await pruneHookDeliveries(db())
    expect((await read(standardOne.schedule_id)).hook.deliveries).toHaveLength(1)
    expect(await kept(standardOne)).toBe(0)
    const first = await secretOf(forge.schedule_id)
    expect(await push(first.secret)).toBe('accepted')
    expect(await kept(forge)).toBe(1)
    await secretOf(forge.schedule_id, { overlap_s: 60 })
    expect(await kept(forge)).toBe(1)
    expect(await push(first.secret)).toBe('duplicate')
    await secretOf(forge.schedule_id, { overlap_s: 0 })
    expect(await kept(forge)).toBe(0)
    expect(await push(first.secret)).toBe(refused)
  })

  it('waits for the end of the running operation, and makes one run of all deliveries meanwhile', async () => {
    const { schedule_id } = must(
      await create({ when: { webhook: { signature: 'standard' } }, proceed: 'start' }),
      201,
    ).body
    const { secret } = await secretOf(schedule_id)
    const send = () => deliver(schedule_id, '{}', standard(secret, '{}'))
    await send()
    await fire()
    const [run] = await runsOf(schedule_id)
    expect(run.state).toBe('started')
    await send()
    await fire()
    await send()
    expect((await runsOf(schedule_id)).map(({ state }: { state: string }) => state)).toEqual(['begun', 'started'])
    await p.query('update operations.operations set ended_at = clock_timestamp() where operation_id = $1', [
      run.operation_id,
    ])
    await p.query(`update operations.schedule_runs set leased_until = null where schedule_id = $1`, [schedule_id])
    await fire()
    expect((await runsOf(schedule_id))[0]).toMatchObject({ state: 'started', detail: null })
  })
})
