import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Overview, PlannedTick } from '../../apps/shared/contracts/overview/overview.ts'
import { gated, must, type Platform, startPlatform } from './support/platform.ts'

/** console.md 5.6: past, running and coming operations. */
let p: Platform
beforeAll(async () => {
  p = await startPlatform({ relay: false })
  await p.query(`insert into operations.catalog_resources (resource_id, type_key, type_version, name, parent_id, version, lifecycle_status, labels, annotations, desired_state, observed_state)
    values ('eu1', 'topology.region', 1, 'eu1', null, 1, 'active', '{}', '{}', '{}', '{}'),
           ('us1', 'topology.region', 1, 'us1', null, 1, 'active', '{}', '{}', '{}', '{}')`)
})
afterAll(() => p.stop())

const DAY_MS = 86_400_000
const read = async (who: 'vic' | 'far' = 'vic', days = 14) =>
  must(await p.as(who).get(`/v1/overview?days=${days}`), 200).body as Overview
/** An operation that ended `days_ago` days ago, at noon, after `ran_s` seconds. */
const ended = async (status: string, days_ago: number, ran_s: number, resource_id?: string) => {
  const { operation_id } = await p.startOperation(gated())
  await p.query(
    `update operations.operations set engine_status = $2, resource_ids = coalesce($5::text[], resource_ids),
       ended_at = date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' - make_interval(days => $3) + interval '12 h',
       started_at = date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' - make_interval(days => $3, secs => $4) + interval '12 h'
     where operation_id = $1`,
    [operation_id, status, days_ago, ran_s, resource_id ? [resource_id] : null],
  )
  return operation_id
}

describe('the overview', () => {
  it('counts ended operations by day, compared with the period before, and each number is a list', async () => {
    for (const [status, ago, ran_s] of [
      ['succeeded', 1, 10],
      ['succeeded', 1, 20],
      ['succeeded_with_exceptions', 3, 30],
      ['failed', 1, 500],
      ['timed_out', 13, 500],
      ['cancelled', 2, 500],
      ['succeeded', 14, 100],
      ['failed', 27, 500],
      ['failed', 28, 500],
    ] as const)
      await ended(status, ago, ran_s)
    const { days, period, before } = await read()
    expect(days.length).toBe(14)
    expect(period).toMatchObject({ succeeded: 3, failed: 2, cancelled: 1, duration: { p50_s: 20, p90_s: 28 } })
    expect(before).toMatchObject({ succeeded: 1, failed: 1, cancelled: 0, duration: { p50_s: 100, p90_s: 100 } })
    expect(before.to).toBe(period.from)
    const dayOf = (ago: number) => new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10)
    expect(days.find(({ day }) => day === dayOf(1))).toEqual({ day: dayOf(1), succeeded: 2, failed: 1, cancelled: 0 })
    expect(days.at(-1)?.day).toBe(dayOf(0))
    expect((await read('vic', 30)).period).toMatchObject({ succeeded: 4, failed: 4 })

    const listed = async (statuses: string[], from: string, to: string) => {
      const query = new URLSearchParams({ ended_after: from, ended_before: to, page_size: '500' })
      for (const status of statuses) query.append('status', status)
      return must(await p.as('vic').get(`/v1/operations?${query}`), 200).body.items.length
    }
    expect(await listed(['failed', 'timed_out'], period.from, period.to)).toBe(period.failed)
    expect(await listed(['succeeded', 'succeeded_with_exceptions'], before.from, before.to)).toBe(before.succeeded)
    const open = must(await p.as('vic').get('/v1/operations?status_group=open&page_size=500'), 200).body
    const { now } = await read()
    expect(now.open).toBe(open.items.length)
  })

  it('gives the time that gates waited for people', async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.openGate(operation_id, 'go')
    expect((await read()).now.needs_attention).toBeGreaterThan(0)
    await p.query(`update operations.gates set waiting_since = now() - interval '90 s' where operation_id = $1`, [
      operation_id,
    ])
    must(
      await p.as('eva').post(`/v1/operations/${operation_id}/gates/go/approve`, await p.seen(operation_id, 'go')),
      200,
      202,
    )
    const { approval } = (await read()).period
    expect(approval?.p50_s).toBeGreaterThanOrEqual(90)
    expect(approval?.p50_s).toBeLessThan(120)
  })

  it('lists the runs of schedules and the deadlines of the next 14 days, the earliest first, and at most 200', async () => {
    const intent = { kind: 'graph', title: 'nightly', reason: 'a test', graph: gated() }
    const made = must(await p.as('pia').post('/v1/schedules', { when: { every_s: 86_400 }, intent }), 201).body
    const { operation_id } = await p.startOperation(gated({ deadline_s: 3600 }))
    await p.openGate(operation_id, 'go')
    await p.query(`update operations.operations set deadline_at = now() + interval '2 days' where operation_id = $1`, [
      operation_id,
    ])
    const { planned, planned_more } = await read()
    const of = (id: string) => planned.filter((tick) => tick.schedule_id === id || tick.operation_id === id)
    expect(of(made.schedule_id).map(({ kind, title }) => `${kind} ${title}`)).toEqual(
      Array(14).fill('schedule nightly'),
    )
    expect(of(operation_id).map(({ kind, gate_id }) => [kind, gate_id])).toEqual([
      ['gate', 'go'],
      ['operation', null],
    ])
    expect(planned.map(({ at }: PlannedTick) => at)).toEqual([...planned.map(({ at }) => at)].sort())
    expect(planned_more).toBe(false)
    must(await p.as('pia').post('/v1/schedules', { when: { every_s: 3600 }, intent }), 201)
    const many = await read()
    expect(many.planned.length).toBeLessThanOrEqual(200)
    expect(many.planned_more).toBe(true)
  })

  it('holds only what the caller may see', async () => {
    const [near, all] = [await read('far', 90), await read('vic', 90)]
    await ended('failed', 1, 5, 'eu1')
    await ended('cancelled', 1, 5, 'us1')
    expect((await read('vic', 90)).period).toMatchObject({
      ...{ failed: all.period.failed + 1, cancelled: all.period.cancelled + 1 },
    })
    const { period, days, now, planned } = await read('far', 90)
    expect(period).toMatchObject({ failed: 0, cancelled: near.period.cancelled + 1, succeeded: 0, approval: null })
    expect(days.at(-2)).toMatchObject({ failed: 0, cancelled: 1 })
    expect([now, planned]).toEqual([{ open: 0, needs_attention: 0 }, []])
    expect(await p.as('nobody').get('/v1/overview')).toMatchObject({
      status: 403,
      body: { code: 'permission_missing' },
    })
  })

  it('counts what waits by the groups that may decide, the longest wait first', async () => {
    const of = async (group: string | null) => (await read()).waiting.find((row) => row.group === group)
    const before = [await of('netops'), await of('netops-leads')]
    const { operation_id } = await p.startOperation(gated(), { more: { title: 'asks two' } })
    const escalation = JSON.stringify([{ after_s: 60, add_groups: ['netops-leads'] }])
    const policy = `update operations.gates set policy = policy || jsonb_build_object('escalation', $2::jsonb) where operation_id = $1`
    await p.query(policy, [operation_id, escalation])
    await p.openGate(operation_id, 'go')
    const longAgo = `update operations.gates set waiting_since = now() - interval '3 days' where operation_id = $1`
    await p.query(longAgo, [operation_id])
    const mine = { operation_id, title: 'asks two' }
    expect(await of('netops')).toMatchObject({ gates: (before[0]?.gates ?? 0) + 1, oldest: mine })
    expect(await of('netops-leads')).toEqual(before[1])
    await p.query('update operations.gates set escalation_level = 1 where operation_id = $1', [operation_id])
    expect(await of('netops-leads')).toMatchObject({ gates: (before[1]?.gates ?? 0) + 1, oldest: mine })
    const changes = [{ op: 'set_limits', max_parallel: 1 }]
    const patch = { base_revision: 1, changes, reason: 'slower' }
    must(await p.as('olga').post(`/v1/operations/${operation_id}/patches`, patch), 201, 202)
    const { waiting } = await read()
    expect(waiting.reduce((sum, { patches }) => sum + patches, 0)).toBeGreaterThan(0)
    const since = waiting.map(({ oldest }) => oldest.since)
    expect(since).toEqual([...since].sort())
    // Of operations elsewhere they see none.
    await p.query(`update operations.operations set resource_ids = '{eu1}' where operation_id = $1`, [operation_id])
    expect(JSON.stringify((await read('far')).waiting)).not.toContain(operation_id)
  })

  it('counts open operations and their waiting gates by region, as far as the caller may see them', async () => {
    const placed = async (...resource_ids: string[]) => {
      const { operation_id } = await p.startOperation(gated())
      await p.query('update operations.operations set resource_ids = $2 where operation_id = $1', [
        operation_id,
        resource_ids,
      ])
      return operation_id
    }
    const of = async (who: 'vic' | 'far', region: string) =>
      (await read(who)).regions.find(({ region_id }) => region_id === region) ?? {
        open: 0,
        needs_attention: 0,
        gates: 0,
      }
    const before = await of('vic', 'eu1')
    const [both] = [await placed('eu1', 'us1'), await placed('us1')]
    expect(await of('vic', 'eu1')).toMatchObject({ open: before.open + 1, gates: before.gates })
    await p.openGate(both, 'go')
    expect(await of('vic', 'eu1')).toMatchObject({ open: before.open + 1, gates: before.gates + 1 })
    expect(await of('vic', 'us1')).toMatchObject({ open: 2, gates: 1 })
    expect(await of('far', 'us1')).toMatchObject({ open: 2, gates: 1 })
  })

  it.each(['days=15', 'days=0', 'days=x', 'day=14'])('refuses %s', async (query) => {
    expect(await p.as('vic').get(`/v1/overview?${query}`)).toMatchObject({
      ...{ status: 400, body: { category: 'validation_error', code: 'schema_violation' } },
    })
  })

  it('is about an environment or a region alone if asked, with lists that say the same', async () => {
    const here = async (environment: string, resource_id: string) => {
      const more = { title: `in ${environment}`, labels: { environment } }
      const { operation_id } = await p.startOperation(gated(), { more })
      await p.openGate(operation_id, 'go')
      const set = `resource_ids = $2, deadline_at = now() + interval '1 day', engine_status = 'running'`
      await p.query(`update operations.operations set ${set} where operation_id = $1`, [operation_id, [resource_id]])
      return operation_id
    }
    const [one, two] = [await here('stage', 'eu1'), await here('stage', 'us1')]
    await here('prod', 'eu1')
    const of = async (query: string) => must(await p.as('vic').get(`/v1/overview?${query}`), 200).body as Overview
    const shown = ({ now, planned, waiting }: Overview) => [
      now.open,
      new Set(planned.map(({ operation_id }) => operation_id)),
      waiting.reduce((sum, { gates }) => sum + gates, 0),
    ]
    expect(shown(await of('environment=stage'))).toEqual([2, new Set([one, two]), 2])
    expect(shown(await of('environment=stage&region_id=eu1'))).toEqual([1, new Set([one]), 1])
    expect(shown(await of('environment=none'))).toEqual([0, new Set(), 0])
    const intent = {
      kind: 'graph',
      title: 'staged',
      reason: 'a test',
      graph: gated(),
      labels: { environment: 'stage' },
    }
    must(await p.as('pia').post('/v1/schedules', { when: { every_s: 86_400 }, intent }), 201)
    const runs = async (query: string) => (await of(query)).planned.filter(({ title }) => title === 'staged').length
    expect([await runs('environment=stage'), await runs('environment=prod'), await runs('region_id=eu1')]).toEqual([
      ...[14, 0, 0],
    ])
    const list = async (query: string) =>
      must(await p.as('vic').get(`/v1/operations?environment=stage&${query}`), 200).body.items.map(
        ({ operation_id }: { operation_id: string }) => operation_id,
      )
    expect(await list('region_id=us1')).toEqual([two])
    await p.query(`update operations.operations set failed = 1 where operation_id = any($1::uuid[])`, [[one, two]])
    await p.query(`update operations.nodes set state = 'outcome_unknown' where operation_id = any($1::uuid[])`, [
      [one, two],
    ])
    const { failures } = must(await p.as('vic').get('/v1/waiting?for=all&environment=stage&region_id=eu1'), 200).body
    expect(failures.map(({ operation_id }: { operation_id: string }) => operation_id)).toEqual([one])
  })
})
