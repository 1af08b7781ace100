import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 0)
})
afterAll(() => c.stop())

type Command = Record<string, unknown> & { command_id: string; idempotency_key: string; resource_id: string }
type Item = { kind: string; command: Record<string, unknown> }
type Result = { index: number; status: number; replayed?: boolean; body: Record<string, unknown> & { version: number } }

const PATH = '/resources:batch-apply'
const batch = async (items: Item[], mode = 'independent', ask = {}) => c.internally('POST', PATH, { mode, items }, ask)
const results = (reply: { body: { results: Result[] } }) => reply.body.results
const fresh = async (): Promise<string> => {
  const id = `h-${randomUUID()}`
  await c.as('ada').record(hostOf(id, 'eu1-a-web'))
  return id
}
const some = (n: number) => Promise.all(Array.from({ length: n }, fresh))
const result = (resource_id: string, over: Record<string, unknown> = {}): Command => ({
  command_id: randomUUID(),
  idempotency_key: randomUUID(),
  operation_id: randomUUID(),
  resource_id,
  expected_version: 1,
  changes: { observed_state_patch: { release: '2.0.0' } },
  ...over,
})
const apply = (command: Record<string, unknown>): Item => ({ kind: 'apply', command })
const read = async (id: string) => (await c.as('vic').get(`/v1/resources/${id}`)).body
const BOUND = new Set(['at', 'updated_at', 'created_at', 'relationship_id'])
/** What two resources that received the same commands must have in common: all rows, except ids, times and bindings. */
const told = async (id: string) =>
  JSON.parse(
    JSON.stringify(
      await c.rows(
        `select (select jsonb_agg(to_jsonb(v) - '{rid,command_id,operation_id,at}'::text[] order by version)
                 from catalog.revision v where v.rid = r.rid) as revisions,
                (select jsonb_agg(jsonb_build_object('type', type, 'agg_version', agg_version, 'payload',
                   payload - '{command_id,operation_id,resource_id}'::text[]) order by id)
                 from catalog.outbox where agg_id = r.resource_id) as events,
                (select jsonb_agg(jsonb_build_object('from', version_from, 'to', version_to) order by at, version_to)
                 from catalog.resource_operation o where o.rid = r.rid) as operations,
                (select jsonb_agg(ref order by id) from catalog.evidence_ref e where e.rid = r.rid) as evidence,
                (select jsonb_agg(jsonb_build_object('action', action, 'outcome', outcome, 'actor', actor) order by id)
                 from catalog.audit where object = 'resource:' || r.resource_id) as audits,
                to_jsonb(s) - '{rid,last_command_id,last_operation_id,last_operation_at,updated_at,drift_at,lifecycle_at,health_at}'::text[] as state,
                r.desired_state, r.type_version
         from catalog.resource r join catalog.resource_state s using (rid) where r.resource_id = $1`,
        [id],
      ),
    )
      .replaceAll(id, 'ID')
      .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID'),
    (name, value) => (BOUND.has(name) ? undefined : value),
  )

describe('batch-apply', () => {
  it('has exactly the same effect as its commands one by one', async () => {
    const [one, two] = (await some(2)) as [string, string]
    const evidence_refs = [{ uri: 'urn:evidence:1', kind: 'log' }]
    const steps = [
      { expected_version: 1, changes: { observed_state_patch: { release: '2.0.0' } }, evidence_refs },
      { expected_version: 2, changes: { desired_state_patch: { release: '2.0.0' } } },
      { expected_version: 3, changes: { observed_state_patch: { release: '2.0.0' } } },
      { expected_version: 9, changes: { observed_state_patch: { release: '9.0.0' } } },
      {
        expected_version: 3,
        changes: { desired_state_patch: { traffic: 'out' }, observed_state_patch: { traffic: 'out' } },
      },
    ]
    const alone = []
    for (const step of steps) alone.push(await c.result(one, step))
    const set = results(await batch(steps.map((step) => apply(result(two, step)))))
    const plain = (body: unknown) => JSON.parse(JSON.stringify(body).replaceAll(one, 'ID').replaceAll(two, 'ID'))
    const { change_token: _, last_changed_by: __, instance: ___, request_id: ____, ...first } = alone[3]?.body ?? {}
    expect(set.map(({ status }) => status)).toEqual(alone.map(({ status }) => status))
    expect(plain(set[3]?.body)).toMatchObject(plain(first))
    for (const at of [0, 1, 2, 4])
      expect(plain({ ...set[at]?.body, change_token: '' })).toEqual(plain({ ...alone[at]?.body, change_token: '' }))
    expect(await told(two)).toEqual(await told(one))
    expect((await read(two)).drift).toEqual({ status: 'in_sync', paths: [] })
  })

  it('answers every item separately, in the order of its checks, and the refused ones leave nothing behind', async () => {
    const [good, other] = (await some(2)) as [string, string]
    const used = result(other)
    await batch([apply(used)])
    const before = await c.traces()
    const bad: [Item, number, string][] = [
      [apply({ ...result(good), surprise: 1 }), 400, 'unknown_field'],
      [apply({ resource_id: good }), 400, 'schema_violation'],
      [apply(result(good, { changes: {} })), 400, 'schema_violation'],
      [apply({ ...used, expected_version: 7 }), 422, 'command_id_reused'],
      [apply(result('not-there', { idempotency_key: used.idempotency_key })), 422, 'idempotency_key_reused'],
      [apply(result('not-there')), 404, 'resource'],
      [apply(result(other, { changes: { desired_state_patch: { release: 7 } } })), 409, 'version_mismatch'],
      [apply(result(good, { changes: { desired_state_patch: { release: 7 } } })), 422, 'schema_violation'],
      [apply(result(good, { changes: { observed_state_patch: { a: { b: [null] } } } })), 422, 'null_in_state'],
      [{ kind: 'health', command: { ...result(good), operation_id: undefined } }, 400, 'schema_violation'],
      [
        {
          kind: 'capabilities',
          command: {
            command_id: randomUUID(),
            idempotency_key: 'k',
            resource_id: good,
            expected_version: 1,
            provided_capability_changes: [{ op: 'add', capability_key: 'no.such', version: '1.0.0' }],
          },
        },
        422,
        'unknown',
      ],
    ]
    const reply = await batch(bad.map(([item]) => item))
    expect(reply.status).toBe(200)
    expect(results(reply).map(({ index, status, body }) => [index, status, body.code])).toEqual(
      bad.map(([, status, code], index) => [index, status, code]),
    )
    for (const { body } of results(reply))
      expect(body).toMatchObject({ category: expect.any(String), hint: expect.any(String) })
    expect(await c.traces()).toEqual(before)
    expect(results(await batch([...bad.map(([item]) => item), apply(result(good))])).at(-1)?.status).toBe(200)
  })

  it('repeats the first bytes, even for a single command, and applies it once', async () => {
    const ids = await some(20)
    const items = ids.map((id) => apply(result(id)))
    const first = await batch(items)
    const before = await c.traces()
    const again = await batch(items)
    expect(again.text.replaceAll('"replayed":true,', '')).toBe(first.text)
    expect(results(again).every(({ replayed }) => replayed === true)).toBe(true)
    const alone = await c.internally('POST', `/resources/${ids[3]}/apply-operation-result`, items[3]?.command)
    expect(first.text).toContain(alone.text)
    expect(alone.headers.get('idempotency-replayed')).toBe('true')
    expect(await c.traces()).toEqual(before)
  })

  it('applies each command of twenty equal parallel batches exactly once, with one answer for all', async () => {
    const ids = await some(30)
    const items = ids.map((id) => apply(result(id)))
    const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => batch(i % 2 ? [...items].reverse() : items)))
    const answers = new Map<string, Set<string>>()
    for (const reply of replies) {
      expect(reply.status).toBe(200)
      for (const { status, body } of results(reply)) {
        const seen = answers.get(String(body.resource_id)) ?? new Set()
        answers.set(String(body.resource_id), seen.add(`${status} ${JSON.stringify(body)}`))
      }
    }
    expect([...answers.values()].map(({ size }) => size)).toEqual(ids.map(() => 1))
    for (const id of ids) expect((await read(id)).version).toBe(2)
  })

  it('lets one of many different commands on one version win, in one batch and across batches', async () => {
    const id = await fresh()
    const rival = (i: number) => apply(result(id, { changes: { observed_state_patch: { release: `3.${i}` } } }))
    const replies = await Promise.all([0, 1, 2, 3].map((n) => batch([0, 1, 2, 3, 4].map((i) => rival(n * 5 + i)))))
    const statuses = replies.flatMap((reply) => results(reply).map(({ status }) => status))
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(statuses.filter((status) => status === 409)).toHaveLength(19)
  })

  it('accepts every kind, and orders edges and lifecycle between plain results of one resource', async () => {
    const [one, two] = (await some(2)) as [string, string]
    const reply = await batch([
      apply(result(one)),
      apply(result(one, { expected_version: 2, changes: { lifecycle_status: 'maintenance' } })),
      apply(
        result(one, {
          expected_version: 3,
          changes: { relationship_changes: [{ op: 'add', type_key: 'depends_on', target_id: two }] },
        }),
      ),
      apply(result(one, { expected_version: 4, changes: { observed_state_patch: { release: '2.1.0' } } })),
      {
        kind: 'health',
        command: {
          command_id: randomUUID(),
          idempotency_key: 'h',
          resource_id: two,
          source: 'test',
          check_key: 'http',
          status: 'degraded',
          observed_at: new Date().toISOString(),
        },
      },
    ])
    expect(results(reply).map(({ status, body }) => [status, body.version])).toEqual([
      [200, 2],
      [200, 3],
      [200, 4],
      [200, 5],
      [200, 1],
    ])
    expect(await read(one)).toMatchObject({
      version: 5,
      lifecycle_status: 'maintenance',
      observed_state: { release: '2.1.0' },
    })
    expect(await read(two)).toMatchObject({ health_status: 'degraded' })
  })

  it('applies all or nothing if atomic; the first refusal answers with its index and pointers into the body', async () => {
    const [one, two, three] = (await some(3)) as [string, string, string]
    const edge = { relationship_changes: [{ op: 'add', type_key: 'depends_on', target_id: 'not-there' }] }
    for (const [last, status, code, pointer] of [
      [result(two, { expected_version: 4 }), 409, 'version_mismatch', undefined],
      [
        result(two, { changes: { desired_state_patch: { release: 7 } } }),
        422,
        'schema_violation',
        '/items/1/command/desired_state/release',
      ],
      [
        result(two, { changes: edge }),
        422,
        'target_not_found',
        '/items/1/command/changes/relationship_changes/0/target_id',
      ],
      [{ ...result(two), surprise: 1 }, 400, 'unknown_field', '/items/1/command/surprise'],
    ] as const) {
      const before = await c.traces()
      const reply = await batch([apply(result(one)), apply(last), apply(result('not-there'))], 'atomic')
      expect(reply).toMatchObject({ status, body: { code, index: 1 } })
      if (pointer) expect(reply.body.violations[0].pointer).toBe(pointer)
      expect(await c.traces()).toEqual(before)
    }
    const items = [
      apply(result(one)),
      apply(result(two)),
      apply(result(three, { changes: { lifecycle_status: 'maintenance' } })),
    ]
    const done = await batch(items, 'atomic')
    expect(results(done).map(({ status, body }) => [status, body.version])).toEqual([
      [200, 2],
      [200, 2],
      [200, 2],
    ])
    expect((await batch(items, 'atomic')).text.replaceAll('"replayed":true,', '')).toBe(done.text)
  })

  it.each(['independent', 'atomic'])(
    '%s: stops after its caller was told that it took too long; a repeat is exact',
    async (mode) => {
      const ids = await some(12)
      const items = ids.map((id) => apply(result(id, { changes: { lifecycle_status: 'maintenance' } })))
      const applied = async () =>
        (
          await c.rows(
            'select 1 from catalog.revision join catalog.resource using (rid) where resource_id = any($1) and version = 2',
            [ids],
          )
        ).length
      await c.rows(`create or replace function public.take_time() returns trigger language plpgsql as
        $$ begin perform pg_sleep(0.3); return new; end $$`)
      await c.rows(`create trigger take_time before insert on catalog.revision for each row
        when (new.version = 2) execute function public.take_time()`)
      try {
        const late = { once: true, headers: { 'x-request-deadline': '450' } }
        expect(await batch(items, mode, late)).toMatchObject({ status: 503, body: { retryable: true } })
        const working = () =>
          c.rows(`select 1 from pg_stat_activity where datname = current_database() and xact_start is not null
            and query like '%catalog.%' and pid <> pg_backend_pid() and application_name = 'catalog'`)
        await until(async () => (await working()).length === 0 && (await working()).length === 0, {
          what: 'the batch to end',
        })
      } finally {
        await c.rows('drop trigger take_time on catalog.revision')
      }
      const kept = await applied()
      if (mode === 'atomic') expect(kept).toBe(0)
      else expect(kept).toBeLessThan(12)
      const again = results(await batch(items, mode))
      expect(again.map(({ status, body }) => [status, body.version])).toEqual(ids.map(() => [200, 2]))
      expect(again.filter(({ replayed }) => replayed === true)).toHaveLength(kept)
      expect(await applied()).toBe(12)
    },
  )

  it('needs the scope of its kind for each item, and one of them for the whole', async () => {
    const id = await fresh()
    const health = {
      kind: 'health',
      command: {
        command_id: randomUUID(),
        idempotency_key: 'h',
        resource_id: id,
        source: 'test',
        check_key: 'http',
        status: 'healthy',
        observed_at: new Date().toISOString(),
      },
    }
    const reply = await batch([apply(result(id)), health], 'independent', { service: 'fleet' })
    expect(results(reply)).toMatchObject([
      { status: 403, body: { category: 'policy_denied', code: 'permission_missing' } },
      { status: 200 },
    ])
    const { body } = await c.as('ada').get(`/v1/audit/catalog?object=resource:${id}&page_size=1&actor=svc:fleet`)
    expect(body.items).toMatchObject([{ outcome: 'denied', reason: 'permission_missing' }])
    expect(await batch([apply(result(id)), health], 'atomic', { service: 'fleet' })).toMatchObject({
      status: 403,
      body: { index: 0 },
    })
    expect(await batch([health], 'independent', { service: 'operations' })).toMatchObject({ status: 403 })
  })

  it('bounds the number and size of its items, and refuses other bodies', async () => {
    const id = await fresh()
    const before = await c.traces()
    const many = Array.from({ length: 501 }, () => apply(result(id)))
    expect(await batch(many)).toMatchObject({ status: 400, body: { category: 'validation_error' } })
    const members = Object.fromEntries(Array.from({ length: 1100 }, (_, i) => [`m${i}`, i]))
    const wide = apply(result(id, { changes: { observed_state_patch: members } }))
    expect(await batch([wide])).toMatchObject({ status: 400, body: { code: 'schema_violation' } })
    const text = 'x'.repeat(60_000)
    const large = Array.from({ length: 150 }, () => apply(result(id, { changes: { observed_state_patch: { text } } })))
    expect(await batch(large)).toMatchObject({ status: 413, body: { code: 'too_large' } })
    expect(await c.internally('POST', PATH, { mode: 'independent', items: [] })).toMatchObject({ status: 400 })
    expect(await c.internally('POST', PATH, { mode: 'sometimes', items: [wide] })).toMatchObject({ status: 400 })
    expect(await c.internally('POST', PATH, { mode: 'atomic', items: [{ kind: 'burn', command: {} }] })).toMatchObject({
      status: 400,
    })
    expect(await c.traces()).toEqual(before)
  })
})
