import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { watchWire } from '../support/wire.ts'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog({ linked: true })
  await seedRegion(c, 'eu1', 3)
})
afterAll(() => c.stop())

const read = async (id: string) => (await c.as('vic').get(`/v1/resources/${id}`)).body
const fresh = async (): Promise<string> => {
  const id = `h-${randomUUID()}`
  await c.as('ada').record(hostOf(id, 'eu1-a-web'))
  return id
}
const release = (version: string) => ({ observed_state_patch: { release: version } })

describe('apply-operation-result', () => {
  it('writes the result, one version, the reference to the operation, evidence, an audit row and one event', async () => {
    const id = await fresh()
    const operation_id = randomUUID()
    const command_id = randomUUID()
    const evidence_refs = [{ uri: 'https://evidence.example/1', kind: 'log', label: 'deploy' }]
    const reply = await c.result(id, {
      command_id,
      operation_id,
      expected_version: 1,
      changes: { desired_state_patch: { release: '1.1.0' }, ...release('1.1.0') },
      evidence_refs,
    })
    expect(reply).toMatchObject({
      status: 200,
      body: { resource_id: id, version: 2, previous_version: 1, applied: true, ignored: [] },
    })
    expect(reply.headers.get('etag')).toMatch(/^"2-0-[0-9a-f]{1,8}"$/)
    expect(await read(id)).toMatchObject({
      version: 2,
      generation: 2,
      observed_generation: 2,
      desired_state: { release: '1.1.0' },
      drift: { status: 'in_sync' },
      last_operation: { operation_id, command_id },
      updated_by: 'svc:demo-control-plane',
    })
    const [event] = await c.rows<{ payload: Record<string, unknown>; type: string }>(
      `select type, payload from catalog.outbox where agg_type = 'resource' and agg_id = $1 and agg_version = 2`,
      [id],
    )
    expect(event).toMatchObject({
      type: 'resource.updated',
      payload: {
        previous_version: 1,
        changed_paths: ['/desired_state/release', '/observed_state/release'],
        evidence_refs,
        document: { version: 2, observed_state: { release: '1.1.0' } },
      },
    })
    expect(
      await c.rows(`select version_from, version_to from catalog.resource_operation where operation_id = $1`, [
        operation_id,
      ]),
    ).toEqual([{ version_from: 1, version_to: 2 }])
    const [audited] = await c.rows(
      `select action, outcome, length(mac) as mac from catalog.audit where command_id = $1`,
      [command_id],
    )
    expect(audited).toEqual({
      action: 'POST /internal/v1/resources/:resource_id/apply-operation-result',
      outcome: 'applied',
      mac: 64,
    })
  })

  it('applies exactly one of 50 parallel commands with one expected_version, and versions stay dense', async () => {
    const id = await fresh()
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) => c.result(id, { expected_version: 1, changes: release(`2.0.${i}`) })),
    )
    const applied = replies.filter(({ status }) => status === 200)
    expect(applied).toHaveLength(1)
    for (const { status, body } of replies) {
      if (status !== 200)
        expect(body).toMatchObject({
          status: 409,
          category: 'version_conflict',
          current_version: 2,
          expected_version: 1,
        })
    }
    const versions = await c.rows<{ version: number }>(
      `select v.version from catalog.revision v join catalog.resource r using (rid) where r.resource_id = $1 order by 1`,
      [id],
    )
    expect(versions.map(({ version }) => version)).toEqual([1, 2])
  })

  it('answers 50 parallel deliveries of one command with the same bytes and applies it once', async () => {
    const id = await fresh()
    const ids = { command_id: randomUUID(), idempotency_key: randomUUID(), operation_id: randomUUID() }
    const replies = await Promise.all(
      Array.from({ length: 50 }, () => c.result(id, { ...ids, expected_version: 1, changes: release('3.0.0') })),
    )
    expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    // An answer that was lost to a timeout comes back as a replay, so at most one is the first.
    expect(replies.filter(({ headers }) => headers.get('idempotency-replayed') === null).length).toBeLessThanOrEqual(1)
    expect((await read(id)).version).toBe(2)
    const operations = await c.rows(`select 1 from catalog.resource_operation where operation_id = $1`, [
      ids.operation_id,
    ])
    expect(operations).toHaveLength(1)
  })

  it('replays the first answer byte for byte, whatever has changed since', async () => {
    const id = await fresh()
    const command = {
      command_id: randomUUID(),
      idempotency_key: 'once',
      operation_id: randomUUID(),
      expected_version: 1,
      changes: release('4.0.0'),
    }
    const first = await c.result(id, command)
    expect((await c.result(id, { expected_version: 2, changes: release('4.0.1') })).status).toBe(200)
    const again = await c.result(id, { ...command, changes: { observed_state_patch: { release: '4.0.0' } } })
    expect(again.text).toBe(first.text)
    expect(again.status).toBe(200)
    expect(again.headers.get('etag')).toBe(first.headers.get('etag'))
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(again.headers.get('catalog-current-version')).toBe('3')
    expect((await read(id)).observed_state.release).toBe('4.0.1')
  })

  it('refuses a used command_id or key with other content, and changes nothing', async () => {
    const id = await fresh()
    const command = {
      command_id: randomUUID(),
      idempotency_key: randomUUID(),
      expected_version: 1,
      changes: release('5.0.0'),
    }
    await c.result(id, command)
    const before = await c.traces()
    const other_content = await c.result(id, { ...command, changes: release('5.0.1') })
    expect(other_content).toMatchObject({
      status: 422,
      body: { category: 'validation_error', code: 'command_id_reused' },
    })
    const other_key = await c.result(id, { ...command, idempotency_key: randomUUID() })
    expect(other_key).toMatchObject({ status: 422, body: { code: 'command_id_reused' } })
    const other_id = await c.result(id, { ...command, command_id: randomUUID(), changes: release('5.0.2') })
    expect(other_id).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } })
    expect(await c.traces()).toEqual(before)
  })

  it.each(['catalog.audit', 'catalog.revision', 'catalog.outbox'])(
    'never succeeds if its row in %s cannot be written, and leaves nothing behind',
    async (table) => {
      const [id, marked] = [await fresh(), randomUUID()]
      await c.rows(`create function public.no_room() returns trigger language plpgsql as
        $$ begin if to_jsonb(new)::text like '%${marked}%' then raise exception 'no room'; end if; return new; end $$`)
      await c.rows(`create trigger no_room before insert on ${table} for each row execute function public.no_room()`)
      try {
        const before = await c.traces()
        const reply = await c.result(id, { command_id: marked, expected_version: 1, changes: release('9.1.1') })
        expect(reply.status).toBe(500)
        expect(reply.text).not.toContain('no room')
        expect(await c.traces()).toEqual(before)
      } finally {
        await c.rows(`drop trigger no_room on ${table}`)
        await c.rows('drop function public.no_room()')
      }
      const again = await c.result(id, { command_id: marked, expected_version: 1, changes: release('9.1.1') })
      expect(again).toMatchObject({ status: 200, body: { version: 2, applied: true } })
    },
  )

  it('costs two round trips: begin, claim, lock and read; then all writes, the answer and the commit', async () => {
    if (!c.link) throw new Error('the link was asked for')
    const id = await fresh()
    const wire = watchWire(c.link, /pub_seq|select pg_(try_)?advisory/)
    const counted = async (work: () => Promise<{ status: number }>) => {
      const { trips, statements } = await wire.during(async () => expect((await work()).status).toBe(200))
      return { trips, statements: statements.length }
    }
    const few = { trips: 2, statements: 5 }
    expect(await counted(() => c.result(id, { expected_version: 1, changes: release('2.0.0') }))).toEqual(few)
    const evidence_refs = [{ uri: 'https://ci.example/1', kind: 'run' }]
    const proved = { expected_version: 2, changes: release('2.1.0'), evidence_refs }
    expect(await counted(() => c.result(id, proved))).toEqual(few)
    const patch = () => c.as('olga').patch(`/v1/resources/${id}?expected_version=3`, { labels: { a: 'b' } })
    expect(await counted(patch)).toEqual(few)
    expect((await counted(() => c.observe(id))).trips).toBeLessThanOrEqual(5)
  })

  it('a command that waited for the lock changes the current resource, completely', async () => {
    const id = await fresh()
    await c.rows(`create or replace function public.take_time() returns trigger language plpgsql as
      $$ begin perform pg_sleep(0.5); return new; end $$`)
    await c.rows(`create trigger take_time before insert on catalog.revision for each row
      when (new.doc -> 'labels' ->> 'first' = 'yes') execute function public.take_time()`)
    try {
      const patch = (version: number, labels: object) =>
        c.as('olga').patch(`/v1/resources/${id}?expected_version=${version}`, { labels })
      const first = patch(1, { first: 'yes' })
      await until(async () => (await c.rows(`select from pg_stat_activity where wait_event = 'PgSleep'`)).length > 0, {
        what: 'the first to hold the lock',
      })
      const second = await patch(2, { second: 'yes' })
      expect(await first).toMatchObject({ status: 200, body: { version: 2 } })
      expect(second).toMatchObject({ status: 200, body: { version: 3 } })
      expect((await read(id)).labels).toEqual({ environment: 'test', first: 'yes', second: 'yes' })
    } finally {
      await c.rows('drop trigger take_time on catalog.revision')
    }
  })

  it('keeps the keys of two callers apart', async () => {
    const [one, two] = [await fresh(), await fresh()]
    const key = randomUUID()
    expect((await c.result(one, { idempotency_key: key, expected_version: 1, changes: release('6.0.0') })).status).toBe(
      200,
    )
    const other = await c.result(
      two,
      { idempotency_key: key, expected_version: 1, changes: release('6.1.0') },
      { service: 'worker' },
    )
    expect(other).toMatchObject({ status: 200, body: { resource_id: two, applied: true } })
  })

  it('does not store refusals: a corrected command may use its ids again', async () => {
    const id = await fresh()
    const ids = { command_id: randomUUID(), idempotency_key: randomUUID(), operation_id: randomUUID() }
    expect((await c.result(id, { ...ids, expected_version: 7, changes: release('7.0.0') })).status).toBe(409)
    expect(await c.result(id, { ...ids, expected_version: 1, changes: release('7.0.0') })).toMatchObject({
      status: 200,
      body: { version: 2 },
    })
  })

  it('answers applied false if nothing changes, and still keeps the reference and the evidence', async () => {
    const id = await fresh()
    const operation_id = randomUUID()
    const before = await read(id)
    const evidence_refs = [{ uri: 'urn:evidence:1', kind: 'check' }]
    const reply = await c.result(id, { operation_id, expected_version: 1, changes: release('1.0.0'), evidence_refs })
    expect(reply.body).toMatchObject({ applied: false, code: 'no_change', version: 1, previous_version: 1 })
    expect(await read(id)).toEqual(before)
    expect(await c.rows(`select 1 from catalog.evidence_ref where operation_id = $1`, [operation_id])).toHaveLength(1)
    expect(
      await c.rows(`select version_from, version_to from catalog.resource_operation where operation_id = $1`, [
        operation_id,
      ]),
    ).toEqual([{ version_from: 1, version_to: 1 }])
  })

  it('moves the lifecycle only as the type allows, and names the possible states', async () => {
    const id = await fresh()
    const wrong = await c.result(id, { expected_version: 1, changes: { lifecycle_status: 'retired' } })
    expect(wrong).toMatchObject({
      status: 422,
      body: { code: 'lifecycle_transition', allowed: ['updating', 'maintenance', 'deprovisioning'] },
    })
    const reply = await c.result(id, { expected_version: 1, changes: { lifecycle_status: 'maintenance' } })
    expect(reply.body).toMatchObject({ version: 2, applied: true, health_revision: 1 })
    expect(await read(id)).toMatchObject({ lifecycle_status: 'maintenance', health_status: 'maintenance' })
  })

  it('changes relationships in order, and reports those that already existed', async () => {
    const [one, two] = [await fresh(), await fresh()]
    const changes = {
      relationship_changes: [
        { op: 'add', type_key: 'depends_on', target_id: two, properties: { reason: 'calls' } },
        { op: 'add', type_key: 'depends_on', target_id: two, properties: { reason: 'calls' } },
        { op: 'remove', type_key: 'connects_to', target_id: two },
      ],
    }
    const reply = await c.result(one, { expected_version: 1, changes })
    expect(reply.body).toMatchObject({
      version: 2,
      ignored: [
        { pointer: '/changes/relationship_changes/1', code: 'already_there' },
        { pointer: '/changes/relationship_changes/2', code: 'not_there' },
      ],
    })
    expect((await read(two)).version).toBe(1)
    const [event] = await c.rows<{ payload: { relationship_changes: unknown[] } }>(
      `select payload from catalog.outbox where agg_type = 'resource' and agg_id = $1 and agg_version = 2`,
      [one],
    )
    expect(event?.payload.relationship_changes).toMatchObject([
      { op: 'added', rev: 1, type_key: 'depends_on', from_id: one, to_id: two },
    ])
  })

  it('refuses health of a resource that has ended, except in the result that ends it', async () => {
    const id = await fresh()
    const ends = { lifecycle_status: 'deprovisioning' }
    expect((await c.result(id, { expected_version: 1, changes: ends })).status).toBe(200)
    const last = { lifecycle_status: 'retired', health_status: 'unknown' }
    expect((await c.result(id, { expected_version: 2, changes: last })).status).toBe(200)
    const before = await c.traces()
    for (const reply of [
      await c.result(id, { expected_version: 3, changes: { health_status: 'healthy' } }),
      await c.observe(id, { status: 'healthy' }),
    ])
      expect(reply).toMatchObject({ status: 422, body: { code: 'resource_terminal' } })
    expect({ ...(await c.traces()), audit: 0 }).toEqual({ ...before, audit: 0 })
  })

  it('leaves no offer at the resource that it ends', async () => {
    const id = await fresh()
    const add = { op: 'add', capability_key: 'compute.slots', version: '1.0.0', attributes: {}, capacity: { total: 4 } }
    const offers = { provided_capability_changes: [add] }
    const ends = { lifecycle_status: 'deprovisioning', ...offers }
    expect((await c.result(id, { expected_version: 1, changes: ends })).status).toBe(200)
    const last = { lifecycle_status: 'retired', provided_capability_changes: [{ ...add, priority: 7 }] }
    expect((await c.result(id, { expected_version: 2, changes: last })).status).toBe(200)
    const open = await c.rows(
      `select from catalog.provider p join catalog.resource r using (rid) where r.resource_id = $1 and p.withdrawn_at is null`,
      [id],
    )
    expect(open).toHaveLength(0)
  })

  it('treats health_status as an observation: it changes health, never the version', async () => {
    const id = await fresh()
    const reply = await c.result(id, { expected_version: 1, changes: { health_status: 'degraded' } })
    expect(reply.body).toMatchObject({ applied: true, version: 1, health_revision: 1 })
    expect(await read(id)).toMatchObject({ version: 1, health_status: 'degraded' })
  })

  it('accepts capabilities that the type may provide, with attributes that match their schema', async () => {
    const id = await fresh()
    const add = {
      op: 'add',
      capability_key: 'compute.slots',
      version: '1.0.0',
      attributes: { cpu_cores: 8 },
      capacity: { total: 4, used: 1 },
    }
    expect(
      (await c.result(id, { expected_version: 1, changes: { provided_capability_changes: [add] } })).body,
    ).toMatchObject({ version: 2, applied: true })
    expect(
      (await c.result(id, { expected_version: 2, changes: { provided_capability_changes: [add] } })).body,
    ).toMatchObject({ applied: false })
    const wrong = await c.result(id, {
      expected_version: 2,
      changes: { provided_capability_changes: [{ ...add, capability_key: 'storage.sql' }] },
    })
    expect(wrong).toMatchObject({ status: 422, body: { category: 'invalid_capability', code: 'not_allowed_for_type' } })
    const all = await c.result(id, {
      expected_version: 2,
      changes: {
        provided_capability_changes: [
          { ...add, capability_key: 'no.such' },
          add,
          { ...add, version: '9.0.0' },
          { ...add, attributes: { cpu_cores: 'many', memory_mib: 0 } },
        ],
      },
    })
    expect(all.status).toBe(422)
    const at = (pointer: string, code: string) => ({ pointer: `/provided_capability_changes/${pointer}`, code })
    expect(all.body.violations).toMatchObject([
      at('0/capability_key', 'unknown'),
      at('2/version', 'version'),
      at('3/attributes/cpu_cores', 'attributes'),
      at('3/attributes/memory_mib', 'attributes'),
    ])
    expect((await c.as('vic').get(`/v1/resources?filter=provides=compute.slots&ids=${id}`)).body.items).toHaveLength(1)
  })
})
