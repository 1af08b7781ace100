import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 2)
  await seedRegion(c, 'us1', 1)
})
afterAll(() => c.stop())

const name = () => `n-${randomUUID()}`
const service = (over: Record<string, unknown> = {}) => ({
  type_key: 'infra.service',
  name: name(),
  desired_state: { tier: 1 },
  ...over,
})
const get = async (id: string) => (await c.as('vic').get(`/v1/resources/${id}`)).body
const eventsOf = (agg_type: string, agg_id: string) =>
  c.rows<{ type: string; agg_version: string; payload: Record<string, unknown> }>(
    `select type, agg_version, payload from catalog.outbox where agg_type = $1 and agg_id = $2 order by agg_version`,
    [agg_type, agg_id],
  )

describe('creating', () => {
  it('writes a record type at once, with Location, ETag and one event', async () => {
    const reply = await c.as('olga').post('/v1/resources', service({ labels: { 'team/a': 'x' }, owner: 'web' }))
    expect(reply.status).toBe(201)
    const { resource_id } = reply.body
    expect(resource_id).toMatch(/^res_[a-z2-7]{26}$/)
    expect(reply.headers.get('location')).toBe(`/v1/resources/${resource_id}`)
    expect(reply.headers.get('etag')).toBe('"1-0"')
    expect(reply.body).toMatchObject({
      version: 1,
      lifecycle_status: 'active',
      generation: 1,
      observed_generation: 0,
      health_status: 'unknown',
    })
    expect(await get(resource_id)).toEqual(reply.body)
    expect(await eventsOf('resource', resource_id)).toMatchObject([
      { type: 'resource.created', payload: { version: 1, previous_version: null } },
    ])
  })

  it('makes an operation type a planned resource and one intent, however often it is sent', async () => {
    const body = { type_key: 'infra.host', name: name(), parent_id: 'eu1-a-web', desired_state: { hostname: 'h' } }
    const key = randomUUID()
    const replies = await Promise.all(
      [1, 2, 3].map(() => c.as('olga').post('/v1/resources?reason=more%20room', body, { key })),
    )
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1)
    const { status, body: accepted, headers } = replies[0] as (typeof replies)[0]
    expect(status).toBe(202)
    expect(accepted.resource).toMatchObject({ lifecycle_status: 'planned', version: 1 })
    expect(headers.get('link')).toBe(`</v1/intents/${accepted.operation_ref.intent_id}>; rel="monitor"`)
    expect(await eventsOf('intent', accepted.operation_ref.intent_id)).toMatchObject([
      {
        type: 'intent.requested',
        agg_version: '1',
        payload: {
          op: 'create',
          resource_id: accepted.resource.resource_id,
          base_version: 1,
          desired_state_patch: {},
          requester: { kind: 'user', name: 'olga' },
          reason: 'more room',
        },
      },
    ])
  })

  it('names the intent of a resource whose long name is cut within a character', async () => {
    const body = { type_key: 'infra.host', name: `x${'\u{1F600}'.repeat(95)}`, parent_id: 'eu1-a-web' }
    const reply = await c.as('olga').post('/v1/resources', { ...body, desired_state: { hostname: 'h' } })
    expect(reply.status).toBe(202)
    const [event] = await eventsOf('intent', reply.body.operation_ref.intent_id)
    expect(event?.payload.title).toMatch(/\uFFFD$/)
  })

  it('states facts with record_only, which needs its own permission', async () => {
    const host = hostOf(name(), 'eu1-a-web')
    const denied = await c.as('olga').post('/v1/resources?mode=record_only', host)
    expect(denied).toMatchObject({
      status: 403,
      body: { category: 'policy_denied', code: 'permission_missing', permission: 'catalog:record' },
    })
    const reply = await c.as('ada').post('/v1/resources?mode=record_only', host)
    expect(reply).toMatchObject({
      status: 201,
      body: { lifecycle_status: 'active', observed_generation: 1, drift: { status: 'in_sync' } },
    })
    const [audited] = await c.rows(
      `select outcome, reason from catalog.audit where outcome = 'denied' order by id desc limit 1`,
    )
    expect(audited).toEqual({ outcome: 'denied', reason: 'permission_missing' })
  })

  it('lets an administrator record only directly written types without record_only', async () => {
    expect((await c.as('ada').post('/v1/resources', service())).status).toBe(201)
    expect((await c.as('ada').post('/v1/resources', hostOf(name(), 'eu1-a-web'))).status).toBe(403)
  })

  it('names the conflict: an existing id, or a name below one parent', async () => {
    const first = (await c.as('olga').post('/v1/resources', service({ resource_id: name() }))).body
    const same_id = await c.as('olga').post('/v1/resources', service({ resource_id: first.resource_id }))
    expect(same_id).toMatchObject({
      status: 409,
      body: { category: 'version_conflict', code: 'already_exists', existing_resource_id: first.resource_id },
    })
    const same_name = await c.as('olga').post('/v1/resources', service({ name: first.name }))
    expect(same_name.body).toMatchObject({
      code: 'already_exists',
      clash: 'name',
      existing_resource_id: first.resource_id,
    })
    expect(
      (await c.as('olga').post('/v1/resources', service({ name: first.name, parent_id: 'eu1-a-web' }))).status,
    ).toBe(201)
  })

  it('lets exactly one of 20 parallel creations of one name succeed', async () => {
    const body = service()
    const replies = await Promise.all(Array.from({ length: 20 }, () => c.as('olga').post('/v1/resources', body)))
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(replies.filter(({ status, body: problem }) => status === 409 && problem.existing_resource_id)).toHaveLength(
      19,
    )
  })

  it('relates a new resource to others, and refuses what the types do not allow', async () => {
    const target = (await c.as('olga').post('/v1/resources', service())).body.resource_id
    const made = await c
      .as('olga')
      .post('/v1/resources', service({ relationships: [{ type_key: 'depends_on', target_id: target }] }))
    expect(made.status).toBe(201)
    const edges = await c.as('vic').get(`/v1/resources/${made.body.resource_id}/relationships`)
    expect(edges.body.items).toMatchObject([
      { direction: 'out', relationship: { type_key: 'depends_on' }, peer: { resource_id: target } },
    ])
    const refused = [
      [{ parent_id: 'not-there' }, 'target_not_found', '/parent_id'],
      [{ parent_id: 'eu1' }, 'target_type_not_allowed', '/parent_id'],
      [{ relationships: [{ type_key: 'likes', target_id: target }] }, 'schema_violation', '/relationships/0/type_key'],
      [
        { relationships: [{ type_key: 'depends_on', target_id: target, properties: { reason: 7 } }] },
        'schema_violation',
        '/relationships/0/properties/reason',
      ],
    ] as const
    for (const [over, code, pointer] of refused) {
      const reply = await c.as('olga').post('/v1/resources', service(over))
      expect(reply).toMatchObject({
        status: 422,
        body: { category: 'validation_error', code, violations: [{ pointer }] },
      })
    }
    const homeless = await c
      .as('ada')
      .post('/v1/resources?mode=record_only', { ...hostOf(name(), 'x'), parent_id: undefined })
    expect(homeless).toMatchObject({ status: 422, body: { code: 'cardinality' } })
  })

  it('names a refused resource by its name if its id was not given', async () => {
    const { resource_id, ...host } = hostOf(name(), 'x')
    const homeless = { ...host, parent_id: undefined }
    for (const query of ['', '&validate_only=true']) {
      const refused = await c.as('ada').post(`/v1/resources?mode=record_only${query}`, homeless)
      expect(refused).toMatchObject({ status: 422, body: { code: 'cardinality' } })
      expect(refused.text).not.toMatch(/res_[a-z2-7]{26}/)
      expect(refused.body.detail).toContain(`${resource_id} needs at least 1 contained_in`)
    }
    const far = await c.as('far').post('/v1/resources', { type_key: 'infra.service', name: 'svc', desired_state: {} })
    expect(far).toMatchObject({ status: 403, body: { detail: 'Your grants of catalog:write do not cover svc.' } })
  })

  it('predicts the result with validate_only, and stores nothing', async () => {
    const count = () =>
      c.rows(
        `select (select count(*) from catalog.resource) r, (select count(*) from catalog.outbox) o, (select count(*) from catalog.audit) a`,
      )
    const before = await count()
    const body = { type_key: 'infra.host', name: name(), parent_id: 'eu1-a-web', desired_state: { hostname: 'h' } }
    const reply = await c.as('olga').post('/v1/resources?validate_only=true', body, { key: null })
    expect(reply).toMatchObject({
      status: 200,
      body: { would_create_intent: true, resource: { name: body.name, lifecycle_status: 'planned' } },
    })
    const wrong = await c
      .as('olga')
      .post('/v1/resources?validate_only=true', { ...body, desired_state: {} }, { key: null })
    expect(wrong).toMatchObject({ status: 422, body: { violations: [{ pointer: '/desired_state/hostname' }] } })
    expect(await count()).toEqual(before)
  })
})

describe('patching', () => {
  const make = async (over: Record<string, unknown> = {}) =>
    (await c.as('olga').post('/v1/resources', service({ labels: { a: '1', b: '2' }, ...over }))).body

  it('merges a merge patch, and changes version, generation and tag only on real changes', async () => {
    const { resource_id: id } = await make()
    const reply = await c
      .as('olga')
      .patch(
        `/v1/resources/${id}`,
        { labels: { b: null, c: '3' }, desired_state: { port: 80 } },
        { headers: { 'if-match': '"1-0"' } },
      )
    expect(reply).toMatchObject({
      status: 200,
      body: { version: 2, generation: 2, labels: { a: '1', c: '3' }, desired_state: { tier: 1, port: 80 } },
    })
    const labels_only = await c.as('olga').patch(`/v1/resources/${id}`, { labels: { c: '4' }, expected_version: 2 })
    expect(labels_only.body).toMatchObject({ version: 3, generation: 2 })
    const [, , event] = await eventsOf('resource', id)
    expect(event?.payload.changed_paths).toEqual(['/labels/c'])
  })

  it('applies a JSON patch completely or not at all', async () => {
    const { resource_id: id } = await make()
    const type = 'application/json-patch+json'
    const failing = [
      { op: 'replace', path: '/labels/a', value: '9' },
      { op: 'test', path: '/labels/b', value: 'no' },
    ]
    const headers = { 'if-match': '"1-0"' }
    expect(await c.as('olga').patch(`/v1/resources/${id}`, failing, { type, headers })).toMatchObject({
      status: 409,
      body: { code: 'test_failed' },
    })
    const reply = await c
      .as('olga')
      .patch(`/v1/resources/${id}`, [{ op: 'add', path: '/desired_state/url', value: 'https://x.example' }], {
        type,
        headers,
      })
    expect(reply).toMatchObject({
      status: 200,
      body: { version: 2, labels: { a: '1' }, desired_state: { tier: 1, url: 'https://x.example' } },
    })
  })

  it('applies a JSON patch to the visible document: null is null, and a missing tested member is 409', async () => {
    const { resource_id: id } = await make()
    const tried = (...patch: object[]) =>
      c
        .as('olga')
        .patch(`/v1/resources/${id}?validate_only=true`, patch, {
          type: 'application/json-patch+json',
          headers: { 'if-match': '"1-0"' },
        })
    const { owner, type_key, created_by } = (await c.as('olga').get(`/v1/resources/${id}`)).body
    expect(owner).toBeNull()
    const taken = await tried(
      { op: 'test', path: '/owner', value: null },
      { op: 'test', path: '/type_key', value: type_key },
      { op: 'test', path: '/created_by', value: created_by },
      { op: 'replace', path: '/owner', value: 'netops' },
    )
    expect(taken).toMatchObject({ status: 200, body: { resource: { owner: 'netops' } } })
    for (const path of ['/labels/gone', '/desired_state/tier/deeper', '/labels/toString'])
      expect(await tried({ op: 'test', path, value: 'x' }), path).toMatchObject({
        status: 409,
        body: { category: 'version_conflict', code: 'test_failed' },
      })
    expect(await tried({ op: 'add', path: '/annotations/__proto__', value: 'x' })).toMatchObject({
      status: 422,
      body: { code: 'schema_violation', detail: expect.stringContaining('__proto__') },
    })
  })

  it('refuses blank or invisible names, display names and owners on every route', async () => {
    const wrong = [' \u00a0', 'a\u200bb', 'a\u202eb', '\u3164', 'a\u2028b', 'a\u0085b', '\ufeffa', '\u00ada', 'a\uffff']
    for (const text of wrong)
      for (const member of ['name', 'display_name', 'owner'])
        expect(
          await c.as('olga').post('/v1/resources', { ...service(), [member]: text }),
          `${member} ${escape(text)}`,
        ).toMatchObject({
          status: 400,
          body: {
            code: 'schema_violation',
            violations: [{ pointer: `/${member}`, message: expect.stringContaining('one visible line') }],
          },
        })
    const items = wrong.slice(0, 4).map((name, n) => ({ external_id: `x${n}`, type_key: 'infra.service', name }))
    const path = '/v1/resources:import'
    const { body } = await c.as('ada').post(path, { source: { kind: 'csv', name: 'hidden' }, items })
    for (const result of body.results)
      expect(result).toMatchObject({ outcome: 'refused', problem: { code: 'schema_violation' } })
    const { resource_id: id } = await make()
    const patched = await c.as('olga').patch(`/v1/resources/${id}?expected_version=1`, { owner: 'net\u200bops' })
    expect(patched).toMatchObject({ status: 422, body: { code: 'schema_violation' } })
    expect(patched.body.violations[0]).toMatchObject({ pointer: '/owner' })
    // Persian words and emoji are joined by invisible characters.
    const shown = {
      display_name: '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u{1f469}\u200d\u{1f4bb} \u2764\ufe0f',
    }
    expect((await make(shown)).display_name).toBe(shown.display_name)
  })

  it('accepts a name once, however its accents are written', async () => {
    const [one, two] = ['Z\u00fcrich-\u00e9', 'Zu\u0308rich-e\u0301']
    const made = await make({ name: two, display_name: two, owner: two })
    expect(made).toMatchObject({ name: one, display_name: one, owner: one })
    for (const test of [`name="${two}"`, `display_name:"${two}"`, `owner="${two}" AND NOT owner!="${two}"`]) {
      const { body } = await c.as('vic').get(`/v1/resources?filter=${encodeURIComponent(test)}`)
      expect(body.items, test).toMatchObject([{ resource_id: made.resource_id }])
    }
    for (const name of [one, two])
      expect(await c.as('olga').post('/v1/resources', { ...service(), name })).toMatchObject({
        status: 409,
        body: { code: 'already_exists', clash: 'name', existing_resource_id: made.resource_id },
      })
    const item = (external_id: string, name: string) => ({
      external_id,
      type_key: 'infra.service',
      name,
      ...(made.parent_id && { parent_id: made.parent_id }),
    })
    const path = '/v1/resources:import'
    const take = async (...items: object[]) =>
      (await c.as('ada').post(path, { source: { kind: 'csv', name: 'accents' }, items })).body.results
    expect(await take(item('a', two))).toMatchObject([{ outcome: 'conflict' }])
    expect(await take(item('b', `${two}2`))).toMatchObject([{ outcome: 'created' }])
    expect(await take(item('b', `${one}2`))).toMatchObject([{ outcome: 'unchanged' }])
    expect(await take(item('b', `${two}2`))).toMatchObject([{ outcome: 'unchanged' }])
  })

  it('keeps names that an earlier release accepted readable, and lets the rest change', async () => {
    const { resource_id: id } = await make()
    await c.rows("update catalog.resource set display_name = 'a\u200bb' where resource_id = $1", [id])
    expect(await get(id)).toMatchObject({ display_name: 'a\u200bb' })
    const path = `/v1/resources/${id}?expected_version=1`
    expect(await c.as('olga').patch(path, { labels: { kept: 'yes' } })).toMatchObject({
      status: 200,
      body: { version: 2 },
    })
  })

  it('needs the version that it was decided on: 428 without, 412 or 409 if it changed, 400 if two differ', async () => {
    const { resource_id: id } = await make()
    const patch = { labels: { a: '2' } }
    const path = `/v1/resources/${id}`
    expect(await c.as('olga').patch(path, patch)).toMatchObject({
      status: 428,
      body: { category: 'version_conflict', code: 'precondition_required' },
    })
    expect(await c.as('olga').patch(path, patch, { headers: { 'if-match': '*' } })).toMatchObject({ status: 428 })
    // What is wrong with the request itself comes first.
    expect(await c.as('olga').patch(path, { colour: 'red' })).toMatchObject({
      status: 400,
      body: { code: 'unknown_field' },
    })
    expect(await c.as('olga').patch(path, patch, { key: null })).toMatchObject({
      status: 400,
      body: { code: 'idempotency_key_required' },
    })
    expect(await c.as('olga').patch(path, patch, { headers: { 'if-match': '"7-0"' } })).toMatchObject({
      status: 412,
      body: { code: 'version_mismatch', current_version: 1, expected_version: 7 },
    })
    expect(await c.as('olga').patch(`${path}?expected_version=7`, patch)).toMatchObject({
      status: 409,
      body: { code: 'version_mismatch' },
    })
    expect(
      await c.as('olga').patch(`${path}?expected_version=7`, patch, { headers: { 'if-match': '"1-0"' } }),
    ).toMatchObject({ status: 400, body: { code: 'malformed' } })
    await c.observe(id)
    expect((await get(id)).health_revision).toBe(1)
    expect((await c.as('olga').patch(path, patch, { headers: { 'if-match': 'W/"1-0"' } })).status).toBe(200)
  })

  it('accepts a list of tags in If-Match, of which one must be the current one', async () => {
    const { resource_id: id } = await make()
    const path = `/v1/resources/${id}`
    const patch = (tags: string, a: string, query = '') =>
      c.as('olga').patch(`${path}${query}`, { labels: { a } }, { headers: { 'if-match': tags } })
    expect(await patch('"7-0", "1-0"', '2')).toMatchObject({ status: 200, body: { version: 2 } })
    expect(await patch(' "1" ,, "3-1x"', '3')).toMatchObject({
      status: 412,
      body: { code: 'version_mismatch', detail: expect.stringContaining('not 1 or 3') },
    })
    expect(await patch('"1", "2"', '3', '?expected_version=2')).toMatchObject({ status: 200, body: { version: 3 } })
    expect(await patch('"1", "2"', '4', '?expected_version=3')).toMatchObject({ status: 400 })
    // Apache adds the coding to a tag; such a one is as foreign as any.
    expect(await patch('"3-0-gzip"', '4')).toMatchObject({ status: 412, body: { code: 'version_mismatch' } })
    expect(await patch('"nope", x, "3"', '4')).toMatchObject({ status: 200, body: { version: 4 } })
  })

  it('applies exactly one of 50 parallel patches of one version', async () => {
    const { resource_id: id } = await make()
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        c.as('olga').patch(`/v1/resources/${id}`, { labels: { n: `${i}` }, expected_version: 1 }),
      ),
    )
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(replies.filter(({ status, body }) => status === 409 && body.code === 'version_mismatch')).toHaveLength(49)
  })

  it('becomes one intent whose name follows from the command, however many send it at once', async () => {
    const { body, key } = { body: { desired_state: { release: '7.7.7' } }, key: randomUUID() }
    const id = `host-${name()}`
    await c.as('ada').record(hostOf(id, 'eu1-a-web'))
    const send = () => c.as('olga').patch(`/v1/resources/${id}?expected_version=1`, body, { key })
    const replies = await Promise.all(Array.from({ length: 12 }, send))
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 202))
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1)
    const told = await c.rows<{ agg_id: string }>(
      `select agg_id from catalog.outbox where type = 'intent.requested' and payload->>'resource_id' = $1`,
      [id],
    )
    expect(told).toEqual([{ agg_id: replies[0]?.body.operation_ref.intent_id }])
    expect(told[0]?.agg_id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5/)
  })

  it('turns desired_state of an operation type into an intent, and writes its notes at once', async () => {
    const patch = { labels: { x: 'y' }, desired_state: { release: '2.0.0', os: 'linux' }, expected_version: 1 }
    const reply = await c.as('olga').patch('/v1/resources/eu1-web-01', patch)
    expect(reply).toMatchObject({
      status: 202,
      body: { resource: { version: 2, labels: { environment: 'test', x: 'y' }, desired_state: { release: '1.0.0' } } },
    })
    const { intent_id } = reply.body.operation_ref
    expect(await eventsOf('intent', intent_id)).toMatchObject([
      { payload: { op: 'update', base_version: 2, desired_state_patch: { release: '2.0.0', os: 'linux' } } },
    ])
    const fact = await c
      .as('ada')
      .patch('/v1/resources/eu1-web-01?mode=record_only', {
        desired_state: { release: '2.0.0' },
        observed_state: { release: '2.0.0' },
        expected_version: 2,
      })
    expect(fact).toMatchObject({
      status: 200,
      body: { version: 3, observed_generation: 2, drift: { status: 'in_sync' } },
    })
  })

  it('writes nothing if nothing changes', async () => {
    const { resource_id: id } = await make()
    const reply = await c.as('olga').patch(`/v1/resources/${id}`, { labels: { a: '1' }, expected_version: 1 })
    expect(reply).toMatchObject({ status: 200, body: { version: 1 } })
    expect(await eventsOf('resource', id)).toHaveLength(1)
  })

  it('refuses fixed, immutable and unknown members', async () => {
    const { resource_id: id } = await make()
    const patch = (body: unknown) => c.as('olga').patch(`/v1/resources/${id}?expected_version=1`, body)
    expect(await patch({ name: 'other' })).toMatchObject({ status: 422, body: { code: 'read_only_field' } })
    expect(await patch({ observed_state: {} })).toMatchObject({ status: 422, body: { code: 'read_only_field' } })
    expect(await patch({ nonsense: 1 })).toMatchObject({ status: 400, body: { code: 'unknown_field' } })
    expect(await patch({ labels: { a: 7 } })).toMatchObject({ status: 422, body: { code: 'schema_violation' } })
    const db = {
      type_key: 'infra.database',
      name: name(),
      parent_id: 'eu1-a-web',
      lifecycle_status: 'active',
      desired_state: { engine: 'pg' },
    }
    const database = await c.as('ada').record(db)
    const engine = await c
      .as('ada')
      .patch(`/v1/resources/${database.resource_id}?mode=record_only&expected_version=1`, {
        desired_state: { engine: 'my' },
      })
    expect(engine).toMatchObject({
      status: 422,
      body: { code: 'immutable_field', violations: [{ pointer: '/desired_state/engine' }] },
    })
  })

  it('accepts only secret references in sensitive fields, and never repeats what was sent', async () => {
    const db = {
      type_key: 'infra.database',
      name: name(),
      parent_id: 'eu1-a-web',
      desired_state: { engine: 'pg', admin_password: 'hunter2-plain' },
    }
    const reply = await c.as('olga').post('/v1/resources', db)
    expect(reply).toMatchObject({ status: 422, body: { code: 'secret_reference_required' } })
    expect(reply.text).not.toContain('hunter2')
    const reference = { ...db, desired_state: { engine: 'pg', admin_password: 'secret://vault/db/admin#3' } }
    expect((await c.as('olga').post('/v1/resources', reference)).status).toBe(202)
  })

  it('keeps every version unchanged', async () => {
    const { resource_id: id } = await make()
    const views = [await get(id)]
    for (let version = 1; version < 25; version++) {
      const patch = {
        labels: { n: `${version}` },
        desired_state: version % 3 === 0 ? { port: null } : { port: version },
        expected_version: version,
      }
      views.push((await c.as('olga').patch(`/v1/resources/${id}`, patch)).body)
    }
    for (const version of [1, 2, 20, 21, 22, 25]) {
      const then = (await c.as('vic').get(`/v1/resources/${id}?at_version=${version}`)).body
      const { health_status, health_revision, conditions, ...facts } = views[version - 1]
      expect(then).toMatchObject({ ...facts, historical: true })
    }
    expect((await c.as('vic').get(`/v1/resources/${id}?at_version=26`)).status).toBe(404)
    const versions = await c.as('vic').get(`/v1/resources/${id}/versions?page_size=20`)
    expect(versions.body.items).toHaveLength(20)
    const rest = await c
      .as('vic')
      .get(`/v1/resources/${id}/versions?page_size=20&page_token=${versions.body.next_page_token}`)
    expect(rest.body.items.map(({ version }: { version: number }) => version)).toEqual([5, 4, 3, 2, 1])
    const back = await c
      .as('vic')
      .get(`/v1/resources/${id}/versions?page_size=20&page_token=${rest.body.prev_page_token}`)
    expect(back.body.items).toEqual(versions.body.items)
    expect(back.body.prev_page_token).toBe(null)
  })

  it('gives a resource, its place and its edges as they were at a time', async () => {
    const peer = (await make()).resource_id
    const { resource_id: id } = (
      await c.as('olga').post('/v1/resources', service({ parent_id: 'eu1-a-web', labels: { n: '1' } }))
    ).body
    const edge = (op: string) => [{ op, type_key: 'depends_on', target_id: peer }]
    const evidence = [{ uri: 'https://ci.example/runs/1', kind: 'run' }]
    const step = async (expected_version: number, relationship_changes: unknown[], evidence_refs?: unknown) => {
      c.wait(1000)
      const reply = await c.result(id, { expected_version, changes: { relationship_changes }, evidence_refs })
      expect(reply.status).toBe(200)
      const { updated_at } = await get(id)
      c.wait(1000)
      return updated_at as string
    }
    const created = (await get(id)).created_at
    const tied = await step(1, edge('add'), evidence)
    const away = await step(2, [
      { op: 'remove', type_key: 'contained_in', target_id: 'eu1-a-web' },
      { op: 'add', type_key: 'contained_in', target_id: 'us1-a-web' },
    ])
    const loose = await step(3, edge('remove'))
    const then = async (at: string) => (await c.as('vic').get(`/v1/resources/${id}?at=${at}`)).body
    expect(await then(created)).toMatchObject({ version: 1, parent_id: 'eu1-a-web', scope: { region_id: 'eu1' } })
    expect(await then(tied)).toMatchObject({ version: 2, scope: { region_id: 'eu1', segment_id: 'eu1-a-web' } })
    expect(await then(away)).toMatchObject({ version: 3, parent_id: 'us1-a-web', scope: { region_id: 'us1' } })
    expect((await c.as('vic').get(`/v1/resources/${id}?at_version=1`)).body.scope.region_id).toBe('eu1')
    const edgesAt = async (at: string) => {
      const { body } = await c.as('vic').get(`/v1/resources/${id}/relationships?direction=out&at=${at}`)
      return body.items.map((item: { peer: { resource_id: string } }) => item.peer.resource_id)
    }
    expect(await edgesAt(created)).toEqual(['eu1-a-web'])
    expect(await edgesAt(tied)).toEqual(['eu1-a-web', peer])
    expect(await edgesAt(away)).toEqual(['us1-a-web', peer])
    expect(await edgesAt(loose)).toEqual(['us1-a-web'])
    const { items } = (await c.as('vic').get(`/v1/resources/${id}/versions`)).body
    expect(items).toMatchObject([
      { version: 4 },
      { version: 3 },
      { version: 2, evidence_refs: evidence },
      { version: 1, changed_paths: [] },
    ])
    expect(items[2].operation_id).not.toBe(null)

    expect((await c.as('vic').get(`/v1/resources/${id}?at_version=1&fields=labels`)).body).toEqual({
      resource_id: id,
      version: 1,
      labels: { n: '1' },
      historical: true,
    })

    const refused = async (query: string) => (await c.as('vic').get(`/v1/resources/${id}?${query}`)).body.code
    expect(await refused('at=2020-01-01T00:00:00Z')).toBe('version')
    expect(await refused('at=2099-01-01T00:00:00Z')).toBe('time_in_future')
    expect(await refused('at=2020-01-01T00:00:00Z&at_version=1')).toBe('malformed')
    await c.rows(
      'delete from catalog.revision where version < 3 and rid = (select rid from catalog.resource where resource_id = $1)',
      [id],
    )
    expect(await c.as('vic').get(`/v1/resources/${id}?at=${tied}`)).toMatchObject({
      status: 410,
      body: { code: 'history_pruned' },
    })
  })
})

describe('rights', () => {
  it('hide resources outside the reader’s scope as if they did not exist', async () => {
    expect((await c.as('far').get('/v1/resources/eu1-web-01')).status).toBe(404)
    expect((await c.as('far').get('/v1/resources/us1-web-01')).status).toBe(200)
    expect((await c.as('hosts').get('/v1/resources/eu1-web-01')).status).toBe(200)
    expect((await c.as('hosts').get('/v1/resources/eu1')).status).toBe(404)
    expect((await c.as('nobody').get('/v1/resources/eu1')).status).toBe(403)
    const ids = (await c.as('far').get('/v1/resources?page_size=500')).body.items.map(
      ({ resource_id }: { resource_id: string }) => resource_id,
    )
    expect(ids).toContain('us1-a')
    expect(ids.filter((id: string) => id.startsWith('eu1'))).toEqual([])
  })

  it('refuse a write to a visible resource outside the writer’s scope', async () => {
    const loose = (await c.as('olga').post('/v1/resources', service())).body
    expect((await c.as('far').get(`/v1/resources/${loose.resource_id}`)).status).toBe(200)
    const reply = await c
      .as('far')
      .patch(`/v1/resources/${loose.resource_id}`, { labels: { a: 'b' }, expected_version: 1 })
    expect(reply).toMatchObject({ status: 403, body: { category: 'policy_denied', code: 'out_of_scope' } })
    expect((await c.as('far').post('/v1/resources', service())).status).toBe(403)
    expect((await c.as('far').post('/v1/resources', service({ parent_id: 'us1-a-web' }))).status).toBe(201)
    expect((await c.as('vic').post('/v1/resources', service())).status).toBe(403)
  })

  it('refuse user tokens inside and service tokens outside', async () => {
    const bearer = c.tokenOf(c.people.olga)
    expect(
      (await c.internally('GET', '/resources/eu1', undefined, { headers: { authorization: `Bearer ${bearer}` } }))
        .status,
    ).toBe(401)
    const service_token = await c.internally('GET', '/resources/eu1', undefined, {
      headers: { 'x-user-id': c.people.olga.id },
    })
    expect(service_token.status).toBeGreaterThanOrEqual(400)
    expect((await c.internally('GET', '/resources/eu1')).status).toBe(200)
  })
})
