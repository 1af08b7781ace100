import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 3)
})
afterAll(() => c.stop())

const fresh = async (): Promise<string> => {
  const id = `h-${randomUUID()}`
  await c.as('ada').record(hostOf(id, 'eu1-a-web'))
  return id
}
const release = (version: string) => ({ observed_state_patch: { release: version } })

/** What a refusal by policy leaves behind: the audit row of who tried it. */
const denied = (traces: Record<string, string>) => ({ ...traces, audit: String(Number(traces.audit) + 1) })

describe.each([
  {
    route: 'provided-capabilities',
    scope: 'fleet',
    right: { expected_version: 1, provided_capability_changes: [] as unknown[], mode: 'merge' },
    wrong: { provided_capability_changes: [{ op: 'add', capability_key: 'no.such', version: '1.0.0' }] },
    refusal: { status: 422, code: 'unknown' },
  },
  {
    route: 'health-observations',
    scope: 'operations',
    right: { source: 'test', check_key: 'order', status: 'healthy', observed_at: new Date().toISOString() },
    wrong: { observed_at: '2999-01-01T00:00:00Z' },
    refusal: { status: 400, code: 'observed_in_future' },
  },
])('the order of checks of $route', ({ route, scope, right, wrong, refusal }) => {
  it('is the same for every command, and a refused one leaves nothing behind', async () => {
    const [id, other] = [await fresh(), await fresh()]
    const report = (over: Record<string, unknown>, path_id = id, ask: Parameters<Catalog['internally']>[3] = {}) => {
      const ids = { command_id: randomUUID(), idempotency_key: randomUUID(), resource_id: path_id }
      return c.internally('POST', `/resources/${path_id}/${route}`, { ...ids, ...right, ...over }, ask)
    }
    const used = { command_id: randomUUID(), idempotency_key: randomUUID() }
    const first = await report(used)
    expect(first.status, first.text).toBe(200)
    const before = await c.traces()
    const late = { expected_version: 99 }
    const steps: [string, ReturnType<typeof report>, number, string][] = [
      ['token', report({ x: 1 }, id, { headers: { authorization: 'Bearer x.y.z' } }), 401, 'invalid_token'],
      ['scope', report({ x: 1 }, id, { service: scope }), 403, 'permission_missing'],
      ['media type', report({ x: 1 }, id, { type: 'text/plain' }), 415, 'media_type'],
      ['shape', report({ x: 1, ...late }), 400, 'unknown_field'],
      ['path', report({ ...used, resource_id: id }, other), 400, 'id_mismatch'],
      ['command_id', report({ ...used, ...late }), 422, 'command_id_reused'],
      ['key', report({ idempotency_key: used.idempotency_key, ...late }), 422, 'idempotency_key_reused'],
      ['existence', report(late, 'not-there'), 404, 'resource'],
      ['version', report(late), 409, 'version_mismatch'],
      ['content', report(wrong), refusal.status, refusal.code],
    ]
    const answers = await Promise.all(
      steps.map(async ([name, reply]) => [name, (await reply).status, (await reply).body.code]),
    )
    expect(answers).toEqual(steps.map(([name, , status, code]) => [name, status, code]))
    expect(await c.traces()).toEqual(denied(before))
    const again = await report(used)
    expect([again.text, again.headers.get('idempotency-replayed')]).toEqual([first.text, 'true'])
  })
})

describe('an act that a service may not perform', () => {
  it('is refused and leaves one audit row with its name', async () => {
    const id = await fresh()
    const before = await c.traces()
    expect(await c.result(id, { expected_version: 1 }, { service: 'fleet' })).toMatchObject({ status: 403 })
    expect(await c.traces()).toEqual(denied(before))
    const { body } = await c.as('ada').get('/v1/audit/catalog?actor=svc:fleet&page_size=1')
    expect(body.items).toMatchObject([
      {
        outcome: 'denied',
        reason: 'permission_missing',
        action: 'POST /internal/v1/resources/:resource_id/apply-operation-result',
        object: `resource:${id}`,
      },
    ])
  })
})

describe('the order of checks', () => {
  const steps: {
    name: string
    ask: (id: string) => Promise<{ status: number; body: { code: string } }>
    status: number
    code: string
  }[] = []
  const bad = {
    shape: { unknown_field: true },
    version: { expected_version: 99 },
    fields: { changes: { lifecycle_status: 'nowhere' } },
  }
  const used = { command_id: randomUUID(), idempotency_key: randomUUID() }
  steps.push(
    {
      name: 'token before all',
      status: 401,
      code: 'invalid_token',
      ask: (id) => c.result(id, { ...bad.shape, ...bad.version }, { headers: { authorization: 'Bearer x.y.z' } }),
    },
    {
      name: 'scope before the shape',
      status: 403,
      code: 'permission_missing',
      ask: (id) => c.result(id, { ...bad.shape, ...bad.version }, { service: 'fleet' }),
    },
    {
      name: 'media type before the shape',
      status: 415,
      code: 'media_type',
      ask: (id) => c.result(id, { ...bad.shape }, { type: 'text/plain' }),
    },
    {
      name: 'shape before the version',
      status: 400,
      code: 'unknown_field',
      ask: (id) => c.result(id, { ...bad.shape, ...bad.version }),
    },
    {
      name: 'path id before the claim',
      status: 400,
      code: 'id_mismatch',
      ask: (id) => c.result(id, { ...used, ...bad.version, ...bad.fields }, { path_id: 'eu1-web-02' }),
    },
    {
      name: 'claim before existence',
      status: 422,
      code: 'command_id_reused',
      ask: () => c.result('not-there', { ...used, ...bad.version, ...bad.fields }),
    },
    {
      name: 'existence before the version',
      status: 404,
      code: 'resource',
      ask: () => c.result('not-there', { ...bad.version, ...bad.fields }),
    },
    {
      name: 'version before the fields',
      status: 409,
      code: 'version_mismatch',
      ask: (id) => c.result(id, { ...bad.version, ...bad.fields }),
    },
    {
      name: 'lifecycle before desired state',
      status: 422,
      code: 'lifecycle_transition',
      ask: (id) =>
        c.result(id, { expected_version: 1, changes: { ...bad.fields.changes, desired_state_patch: { release: 7 } } }),
    },
    {
      name: 'desired before observed',
      status: 422,
      code: 'schema_violation',
      ask: (id) =>
        c.result(id, {
          expected_version: 1,
          changes: { desired_state_patch: { release: 7 }, observed_state_patch: { release: null, traffic: 'up' } },
        }),
    },
    {
      name: 'states before relationships',
      status: 422,
      code: 'schema_violation',
      ask: (id) =>
        c.result(id, {
          expected_version: 1,
          changes: {
            desired_state_patch: { release: 7 },
            relationship_changes: [{ op: 'add', type_key: 'depends_on', target_id: 'not-there' }],
          },
        }),
    },
    {
      name: 'relationships before capabilities',
      status: 422,
      code: 'target_not_found',
      ask: (id) =>
        c.result(id, {
          expected_version: 1,
          changes: {
            relationship_changes: [{ op: 'add', type_key: 'depends_on', target_id: 'not-there' }],
            provided_capability_changes: [{ op: 'add', capability_key: 'x.y', version: '1.0.0' }],
          },
        }),
    },
  )

  it.each(steps)('$name: the earlier step answers and nothing is left behind', async ({ ask, status, code }) => {
    const id = await fresh()
    if ((await c.rows(`select 1 from catalog.command_log where command_id = $1`, [used.command_id])).length === 0) {
      expect((await c.result(await fresh(), { ...used, expected_version: 1, changes: release('9.9.9') })).status).toBe(
        200,
      )
    }
    const before = await c.traces()
    const reply = await ask(id)
    expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code })
    expect(await c.traces()).toEqual(status === 403 ? denied(before) : before)
  })
})

describe('a change of a read-only field', () => {
  const wish = { name: 'other' }
  type Told = { status: number; body: Record<string, unknown> }
  const alone = (who: 'olga' | 'far', id: string, expected_version: number, patch: object = wish, key?: string) =>
    c.as(who).patch(`/v1/resources/${id}`, { ...patch, expected_version }, { ...(key && { key }) })
  const bulk = async (
    who: 'olga' | 'far',
    resource_id: string,
    expected_version: number,
    patch: object = wish,
    key?: string,
  ) => {
    const items = [{ op: 'update', change: { resource_id, expected_version, patch } }]
    const reply = await c.as(who).post('/v1/resources:bulk', { items }, { ...(key && { key }) })
    return reply.status === 200 ? (reply.body.results[0] as Told) : reply
  }

  it.each([
    ['alone', alone],
    ['in bulk', bulk],
  ])('%s is refused after key, existence, scope and version, and leaves no trace but the 403', async (_, change) => {
    const body = { type_key: 'infra.service', name: `s-${randomUUID()}`, desired_state: { tier: 1 } }
    const id = String((await c.as('ada').record(body)).resource_id)
    const key = randomUUID()
    expect(await change('olga', id, 1, { labels: { a: 'b' } }, key)).toMatchObject({ status: 200 })
    const before = await c.traces()
    const steps: [Promise<Told>, number, string][] = [
      [change('olga', id, 99, { ...wish, nonsense: 1 }), 400, 'unknown_field'],
      [change('olga', id, 99, wish, key), 422, 'idempotency_key_reused'],
      [change('olga', 'not-there', 99), 404, 'resource'],
      [change('far', id, 99), 403, 'out_of_scope'],
      [change('olga', id, 99), 409, 'version_mismatch'],
      [change('olga', id, 2), 422, 'read_only_field'],
    ]
    const answers = await Promise.all(steps.map(async ([reply]) => [(await reply).status, (await reply).body.code]))
    expect(answers).toEqual(steps.map(([, status, code]) => [status, code]))
    expect(await c.traces()).toEqual(denied(before))
  })

  it('is refused after the version for what only mode=record_only may do in bulk', async () => {
    const id = await fresh()
    const relationship_changes = [{ op: 'add', type_key: 'depends_on', target_id: 'eu1-web-01' }]
    for (const [op, more] of [
      ['relate', { relationship_changes }],
      ['retire', {}],
    ] as const)
      for (const [version, code] of [
        [99, 'version_mismatch'],
        [1, 'read_only_field'],
      ] as const) {
        const items = [{ op, change: { resource_id: id, expected_version: version, ...more } }]
        const reply = await c.as('olga').post('/v1/resources:bulk', { items })
        expect([op, reply.body.results[0].body.code]).toEqual([op, code])
      }
  })
})
