import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadOperationsConfig } from '../../apps/operations/config.ts'
import { exportEvidence, verifyEvidence } from '../../apps/shared/evidence/verify.ts'
import { expireArtifacts } from '../../db/operations/agents/artifacts.ts'
import { brokenLink, hashOf } from '../../db/operations/facts/state.ts'
import { archiveLogs, expireLogs } from '../../db/operations/history/archive.ts'
import { type LogRef, wholeLog } from '../../db/operations/history/logs.ts'
import { until } from '../support/until.ts'
import { gated, must, type Platform, person, startPlatform } from './support/platform.ts'

let p: Platform
beforeAll(async () => {
  p = await startPlatform()
  await p.query(`insert into operations.catalog_resources (resource_id, type_key, type_version, name, parent_id, version, lifecycle_status, labels, annotations, desired_state, observed_state)
    values ('eu1', 'topology.region', 1, 'eu1', null, 1, 'active', '{}', '{}', '{}', '{}'),
           ('us1', 'topology.region', 1, 'us1', null, 1, 'active', '{}', '{}', '{}', '{}'),
           ('eu1-web-01', 'fleet.host', 1, 'eu1-web-01', 'eu1', 1, 'active', '{}', '{}', '{}', '{}'),
           ('us1-web-01', 'fleet.host', 1, 'us1-web-01', 'us1', 1, 'active', '{}', '{}', '{}', '{}')`)
})
afterAll(() => p.stop())

/** Gives an operation targets after the fact: places decide who sees it. */
const onTargets = (operation_id: string, ...ids: string[]) =>
  p.query('update operations.operations set resource_ids = $2 where operation_id = $1', [operation_id, ids])
type Item = { operation_id: string; title: string; created_at: string }
const idsOf = (body: { items: Item[] }) => body.items.map(({ operation_id }) => operation_id)

describe('lists', () => {
  it('continue page by page in order, by a token that fits only this list', async () => {
    for (let n = 0; n < 5; n++) await p.startOperation(gated())
    for (const sort of ['-created_at', '-updated_at', 'title']) {
      const found: string[] = []
      let token: string | null = ''
      while (token !== null) {
        const page = must(
          await p.as('vic').get(`/v1/operations?page_size=2&sort=${sort}${token && `&page_token=${token}`}`),
          200,
        )
        found.push(...idsOf(page.body))
        token = page.body.next_page_token
      }
      const whole = must(await p.as('vic').get(`/v1/operations?page_size=500&sort=${sort}`), 200).body
      expect(found).toEqual(idsOf(whole))
      expect(whole.as_of).toEqual({
        time: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/),
        seq: expect.stringMatching(/^\d+$/),
      })
    }
    const intents = must(await p.as('vic').get('/v1/intents?page_size=1'), 200).body
    expect(intents.as_of).toEqual({
      time: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/),
      seq: expect.stringMatching(/^[1-9]\d*$/),
    })
    const { body } = await p.as('vic').get('/v1/operations?page_size=1')
    expect(
      await p.as('vic').get(`/v1/operations?page_size=1&kind=graph&page_token=${body.next_page_token}`),
    ).toMatchObject({ status: 400, body: { category: 'validation_error', code: 'page_token_mismatch' } })
  })

  it('narrow by every filter', async () => {
    const { operation_id } = await p.startOperation(gated(), {
      more: { title: 'Rotate 100% of keys, ÄRGERLICH', ticket: 'OPS-7', labels: { environment: 'prod', team: 'web' } },
    })
    await p.query(`update operations.operations set failed = 1, engine_status = 'blocked' where operation_id = $1`, [
      operation_id,
    ])
    await onTargets(operation_id, 'eu1-web-01')
    await p.openGate(operation_id, 'go')
    const only = async (query: string, who: 'vic' | 'pia' | 'eva' | 'ivo' = 'vic') =>
      idsOf(must(await p.as(who).get(`/v1/operations?${query}`), 200).body).includes(operation_id)
    for (const query of [
      'q=100%25',
      'q=ops-7',
      `q=${encodeURIComponent('ärger')}`,
      'label=team',
      'label=team=web',
      'status=blocked',
      'status=blocked&status=failed',
      'status_group=open',
      'status_group=needs_attention',
      'kind=graph',
      'requester=Pia',
      `requester=${p.people.pia.id}`,
      'environment=prod',
      'resource_id=eu1-web-01',
      'created_after=2020-01-01T00:00:00Z',
    ])
      expect([query, await only(query)]).toEqual([query, true])
    for (const query of [
      'q=1000',
      'label=team=net',
      'status=failed',
      'status_group=ended',
      'kind=change',
      'requester=olga',
      'environment=dev',
      'resource_id=eu1',
      'created_before=2020-01-01T00:00:00Z',
      'requester=me',
    ])
      expect([query, await only(query)]).toEqual([query, false])
    expect(await only('requester=me', 'pia')).toBe(true)
    expect(await only('gate_for=me', 'eva')).toBe(true)
    expect(await only('gate_for=me', 'ivo')).toBe(false)
    // The group alone gives no vote: like the inbox, it asks for the right to decide, on every target.
    p.people.vic.groups.push('netops')
    p.people.eva.scope = { regionId: 'us1' }
    await until(async () => !(await only('gate_for=me', 'eva')))
    expect(await only('gate_for=me', 'vic')).toBe(false)
    p.people.vic.groups.pop()
    delete p.people.eva.scope
    await until(() => only('gate_for=me', 'eva'))
    expect(idsOf(must(await p.as('vic').get('/v1/resources/eu1-web-01/operations'), 200).body)).toContain(operation_id)
  })
})

describe('single reads', () => {
  it('have a tag, and are not sent again to a client that has it', async () => {
    const { operation_id, plan_id, intent_id } = await p.startOperation(gated())
    const operation = `/v1/operations/${operation_id}`
    const change = { op: 'set_limits', max_parallel: 2 }
    const proposal = { base_revision: 1, changes: [change], reason: 'x' }
    const { patch_id } = must(await p.as('olga').post(`${operation}/patches`, proposal), 201).body
    const all = ['', '/graph', '/nodes/before', '/gates/go', `/patches/${patch_id}`].map((rest) => operation + rest)
    for (const path of [...all, `/v1/plans/${plan_id}`, `/v1/intents/${intent_id}`]) {
      const etag = must(await p.as('vic').get(path), 200).headers.get('etag')
      expect([path, etag]).toEqual([path, expect.stringMatching(/^"[\w-]+"$/)])
      const known = (tag: string) => p.as('vic').get(path, { headers: { 'if-none-match': tag } })
      expect(await known(`"other", ${etag}`)).toMatchObject({ status: 304, text: '' })
      expect((await known('"other"')).status).toBe(200)
    }
  })
})

describe('the brief of a gate', () => {
  it("names requester and reason, the targets' current state, the canary's result, and the irreversible changes", async () => {
    const more = { title: 'briefly', reason: 'because', ticket: 'OPS-9' }
    const { operation_id, plan_id } = await p.startOperation(gated(), { more })
    const gate = `/v1/operations/${operation_id}/gates/go`
    const brief = async (who: 'vic' | 'far') => must(await p.as(who).get(gate), 200).body.brief
    expect(await brief('vic')).toMatchObject({
      asked: { requester: { name: 'pia' }, ...more, plan_id },
      types: [],
      now: { count: 0, hidden: 0 },
      canary: null,
      undo: { possible: false, lasting_count: 0 },
      order: ['behind'],
      void_votes: [],
    })
    await p.query(
      `update operations.nodes set target_id = 'us1-web-01', attempt = 3, ended_at = clock_timestamp() where operation_id = $1 and node_id = 'before'`,
      [operation_id],
    )
    await p.query(
      `update operations.nodes set target_id = 'eu1-web-01', executor = 'http', group_id = '1', spec = spec || '{"with": {"request": {"method": "POST"}}}' where operation_id = $1 and node_id = 'behind'`,
      [operation_id],
    )
    await p.query(
      `update operations.gates set subject = jsonb_set(subject, '{releases,0,target_id}', '"eu1-web-01"') where operation_id = $1`,
      [operation_id],
    )
    await onTargets(operation_id, 'eu1-web-01', 'us1-web-01')
    await p.openGate(operation_id, 'go')
    const health = (id: string, status: string) =>
      p.query('update operations.catalog_resources set health_status = $2, name = $3 where resource_id = $1', [
        id,
        status,
        `name of ${id}`,
      ])
    await Promise.all([health('eu1-web-01', 'unhealthy'), health('us1-web-01', 'healthy')])
    expect(await brief('vic')).toMatchObject({
      names: { 'eu1-web-01': 'name of eu1-web-01' },
      types: [{ type_key: 'fleet.host', count: 1 }],
      regions: ['eu1'],
      batches: [1],
      now: {
        count: 1,
        hidden: 0,
        health: [{ status: 'unhealthy', count: 1 }],
        worst: [{ resource_id: 'eu1-web-01', name: 'name of eu1-web-01', health: 'unhealthy' }],
      },
      canary: {
        count: 1,
        health: [{ status: 'healthy', count: 1 }],
        worst: [],
        named: [{ resource_id: 'us1-web-01' }],
        retries: 2,
      },
      undo: { possible: false, lasting: [{ node_id: 'behind' }], lasting_count: 1 },
    })
    // A reader of only the other region learns that more exists, but not what.
    const narrow = await brief('far')
    expect(narrow).toMatchObject({ now: { count: 0, hidden: 1 }, canary: { count: 1 }, names: {} })
    await p.query(
      `update operations.nodes set spec = spec || '{"compensate": {"executor": "noop", "with": {}}}' where operation_id = $1 and node_id = 'behind'`,
      [operation_id],
    )
    expect((await brief('vic')).undo).toEqual({ possible: true, lasting: [], lasting_count: 0 })
    await Promise.all([health('eu1-web-01', 'unknown'), health('us1-web-01', 'unknown')])
  })

  it('of a patch names the failure that it repairs, and no other', async () => {
    const { operation_id } = await p.startOperation(gated())
    const failed = (node_id: string) =>
      p.query(
        `update operations.nodes set state = 'failed', attempt = 2, error = '{"class": "x", "message": "it broke", "retryable": false}' where operation_id = $1 and node_id = $2`,
        [operation_id, node_id],
      )
    const path = `/v1/operations/${operation_id}/patches`
    const mended = async (changes: object[]) => {
      const { patch_id } = must(await p.as('olga').post(path, { base_revision: 1, changes, reason: 'x' }), 201).body
      return must(await p.as('vic').get(`${path}/${patch_id}`), 200).body.mends
    }
    await failed('before')
    expect(await mended([{ op: 'set_limits', max_parallel: 2 }])).toEqual([])
    expect(await mended([{ op: 'remove_dependency', node_id: 'behind', depends_on: 'before' }])).toEqual([
      { node_id: 'before', name: 'before', state: 'failed', attempts: 2, message: 'it broke' },
    ])
  })
})

describe('who sees what', () => {
  it('shows an operation to those who may read one of its targets or requested it; for others it does not exist', async () => {
    const eu = (await p.startOperation(gated())).operation_id
    const us = (await p.startOperation(gated())).operation_id
    await onTargets(eu, 'eu1-web-01')
    await onTargets(us, 'eu1-web-01', 'us1-web-01')
    const listed = idsOf(must(await p.as('far').get('/v1/operations?page_size=500'), 200).body)
    expect([listed.includes(eu), listed.includes(us)]).toEqual([false, true])
    expect((await p.as('far').get(`/v1/operations/${us}`)).status).toBe(200)
    for (const rest of [
      '',
      '/graph',
      '/rollback',
      '/timeline',
      '/nodes',
      '/nodes/before',
      '/nodes/before/logs',
      '/gates',
      '/gates/go',
      '/evidence',
      '/artifacts',
      `/commands/${randomUUID()}`,
    ])
      expect([rest, await p.as('far').get(`/v1/operations/${eu}${rest}`)]).toMatchObject([
        rest,
        { status: 404, body: { category: 'not_found' } },
      ])
    // Visible, but the permission covers only one of two targets.
    expect(await p.as('far').post(`/v1/operations/${us}/pause`, { reason: 'x' })).toMatchObject({
      status: 403,
      body: { category: 'policy_denied', code: 'out_of_scope' },
    })
    await onTargets(us, 'us1-web-01')
    expect((await p.as('far').post(`/v1/operations/${us}/pause`, { reason: 'x' })).status).toBe(200)
  })

  it('gives the engine reference only to engineers', async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.query(
      `update operations.operations set engine_ref = '{"namespace":"default","workflow_id":"w","run_id":"r"}' where operation_id = $1`,
      [operation_id],
    )
    expect((await p.as('olga').get(`/v1/operations/${operation_id}`)).body.engine_ref).toBeUndefined()
    expect((await p.as('eng').get(`/v1/operations/${operation_id}`)).body.engine_ref).toEqual({
      namespace: 'default',
      workflow_id: 'w',
      run_id: 'r',
      ui_url: 'http://127.0.0.1:8233/namespaces/default/workflows/w/r/history',
    })
  })

  it('requires the stated permission on every route', async () => {
    const { authorizedRoutes } = await import('../../apps/shared/auth/http.ts')
    const { permissionsOf } = await import('../../apps/shared/auth/permissions.ts')
    const app = p.running[0]?.app
    const routes = authorizedRoutes(app as never)
    expect(routes.length).toBeGreaterThan(25)
    for (const { method, url, permissions } of routes) {
      // Reports of agents carry the token of their work instead of a person's.
      if (method === 'HEAD' || permissions.includes('none' as never)) continue
      const path = url.replace(/:[a-z_]+/g, (name) =>
        /operation_id|plan_id|intent_id|command_id|artifact_id/.test(name) ? randomUUID() : 'x1',
      )
      for (const who of ['vic', 'pia', 'olga', 'eva', 'eng', 'nobody'] as const) {
        const held = permissionsOf(p.people[who].roles)
        const may = permissions.some((wanted) => wanted === 'self' || held.has(wanted as never))
        if (may && url === '/v1/events') continue
        const reply = method === 'GET' ? await p.as(who).get(path) : await p.as(who).post(path, {})
        expect(
          [method, url, who, reply.status === 403 && reply.body.code === 'permission_missing'],
          reply.text,
        ).toEqual([method, url, who, may === false && reply.status !== 400])
        expect(reply.status, `${method} ${url}`).toBeLessThan(500)
      }
    }
  })
})

describe('one operation', () => {
  it('has the same bytes while nothing changes, and 304 for a client that has them', async () => {
    const { operation_id } = await p.startOperation(gated())
    for (const rest of ['', '/graph', '/gates/go', '/nodes/before']) {
      const path = `/v1/operations/${operation_id}${rest}`
      const one = must(await p.as('vic').get(path), 200)
      const etag = String(one.headers.get('etag'))
      expect((await p.as('vic').get(path, { headers: { 'if-none-match': etag } })).status).toBe(304)
      expect((await p.as('vic').get(path, { headers: { 'if-none-match': '"0-0"' } })).status).toBe(200)
    }
    // The conflicts of a waiting gate change without any change of its operation.
    const waiting = await p.startOperation(gated())
    await p.openGate(waiting.operation_id, 'go')
    const gate = `/v1/operations/${waiting.operation_id}/gates/go`
    const tag = String(must(await p.as('vic').get(gate), 200).headers.get('etag'))
    expect((await p.as('vic').get(gate, { headers: { 'if-none-match': tag } })).status).toBe(200)
    const graph = must(await p.as('vic').get(`/v1/operations/${operation_id}/graph`), 200)
    expect((await p.as('vic').get(`/v1/operations/${operation_id}/graph`)).text).toBe(graph.text)
    expect(
      graph.body.nodes.map(({ node_id, state }: { node_id: string; state: string }) => `${node_id} ${state}`),
    ).toEqual(['before pending', 'behind pending'])
    expect(graph.body.gates).toMatchObject([{ gate_id: 'go', state: 'armed', guards: ['behind'] }])
    expect(await p.as('vic').get(`/v1/operations/${operation_id}/graph?revision=9`)).toMatchObject({
      status: 404,
      body: { category: 'not_found', code: 'plan' },
    })
    expect(await p.as('vic').get(`/v1/operations/${operation_id}/graph?revision=99999999999`)).toMatchObject({
      status: 400,
      body: { category: 'validation_error', violations: [{ pointer: '/querystring/revision' }] },
    })
  })

  it('has a graph with the time of each node, even of a month', async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.query(
      `insert into operations.node_attempts (operation_id, node_id, attempt, generation, fence, phase, executor, key, started_at, ended_at)
       values ($1, 'before', 1, 1, 1, 'succeeded', 'noop', 'key', now() - interval '720 hours', now())`,
      [operation_id],
    )
    const { body } = must(await p.as('vic').get(`/v1/operations/${operation_id}/graph`), 200)
    expect(body.nodes).toMatchObject([{ node_id: 'before', ran_ms: 720 * 3_600_000 }, { ran_ms: null }])
  })

  it('has a graph of one moment: a change between two of its statements is in all of them or in none', async () => {
    const { operation_id } = await p.startOperation(gated())
    const path = `/v1/operations/${operation_id}/graph`
    const before = must(await p.as('vic').get(path), 200).body
    const reading = await p.deps.db.transaction(async (tx) => {
      await tx.execute('lock table operations.gates in access exclusive mode')
      const read = p.as('vic').get(path)
      const waits = () => p.query(`select from pg_locks where not granted and relation = 'operations.gates'::regclass`)
      await until(async () => (await waits()).length > 0, { what: 'the read of the gates' })
      await tx.execute(
        sql`update operations.nodes set state = 'running' where operation_id = ${operation_id} and node_id = 'before'`,
      )
      await tx.execute(
        sql`update operations.operations set change_seq = change_seq + 1 where operation_id = ${operation_id}`,
      )
      return { read }
    })
    const { change_seq, nodes } = must(await reading.read, 200).body
    const state = nodes.find(({ node_id }: { node_id: string }) => node_id === 'before').state
    expect([change_seq - before.change_seq, state]).toEqual([0, 'pending'])
  })

  it('has a dense timeline, and evidence whose chain verifies', async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.as('olga').post(`/v1/operations/${operation_id}/pause`, { reason: 'look closer' })
    const { body } = must(await p.as('vic').get(`/v1/operations/${operation_id}/timeline`), 200)
    expect(body.events.map(({ seq }: { seq: number }) => seq)).toEqual(
      body.events.map((_: unknown, n: number) => n + 1),
    )
    expect(body.events.at(-1)).toMatchObject({
      type: 'operation.pausing',
      reason: 'look closer',
      actor: { kind: 'user', name: 'olga', roles: ['operator', 'planner'] },
    })
    expect(body.last_seq).toBe(body.events.length)
    const filtered = await p
      .as('vic')
      .get(`/v1/operations/${operation_id}/timeline?types=operation.pausing&after_seq=1`)
    expect(filtered.body.events).toHaveLength(1)

    const operation = (await p.as('vic').get(`/v1/operations/${operation_id}`)).body
    const { records, head } = (await p.as('vic').get(`/v1/operations/${operation_id}/evidence`)).body
    const chain = records.map(({ v: _, ...record }: { v: 1 }) => record)
    expect(brokenLink(operation.plan_hash, chain, head)).toBeUndefined()
    expect(operation.evidence_head).toEqual(head)
    chain[1].statement = 'something else'
    expect(brokenLink(operation.plan_hash, chain, head)).toMatchObject({ seq: 2, problem: 'hash' })
  })

  describe('exported', () => {
    let text: string
    let lines: string[]
    let keys: { kid: string }[]
    let operation_id: string
    beforeAll(async () => {
      operation_id = (await p.startOperation(gated())).operation_id
      await p.as('olga').post(`/v1/operations/${operation_id}/pause`, { reason: 'look closer, “twice”' })
      await p.as('olga').post(`/v1/operations/${operation_id}/resume`, { reason: 'seen' })
      const reply = must(await p.as('pia').get(`/v1/operations/${operation_id}/evidence?format=jsonl`), 200)
      text = reply.text
      lines = text.split('\n').slice(0, -1)
      keys = must(await p.as('vic').get('/v1/evidence/keys'), 200).body.keys
    })
    const verify = (file: string | Uint8Array, by = keys) => verifyEvidence(Buffer.from(file as string), by)
    const join = (parts: string[]) => parts.map((line) => `${line}\n`).join('')

    it('is for the requester and for auditors, verifies without a server, and its key is public', async () => {
      expect(lines.length).toBeGreaterThan(2)
      expect(verify(text)).toMatchObject({ records: lines.length - 1, head: { operation_id } })
      const path = `/v1/operations/${operation_id}/evidence?format=jsonl`
      expect(await p.as('vic').get(path)).toMatchObject({ status: 403, body: { code: 'permission_missing' } })
      expect((await p.as('aud').get(path)).status).toBe(200)
      expect(await p.as('pia').get(path.replace('jsonl', 'csv'))).toMatchObject({ status: 400 })
      expect(JSON.stringify(keys)).not.toContain('"d"')
      const { evidence_head, plan_hash } = (await p.as('vic').get(`/v1/operations/${operation_id}`)).body
      expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ ...evidence_head, plan_hash })
    })

    it('has every flipped byte of a record or the head named by its line', () => {
      const bytes = Buffer.from(text)
      let line = 1
      for (let at = 0; at < bytes.length; at++) {
        const was = bytes[at] as number
        for (const flip of [2, 4, 8, 0x80]) {
          bytes[at] = was ^ flip
          const verified = verify(bytes)
          expect(['fault' in verified && verified.fault.line, at]).toEqual([line, at])
        }
        bytes[at] = was
        if (was === 10) line += 1
      }
    })

    it('shows every removed, inserted, moved, cut or re-signed record', () => {
      const head = lines.at(-1) ?? ''
      const records = lines.slice(0, -1)
      const [first = '', second = '', ...rest] = records
      const lineOf = (file: string, by = keys) => {
        const verified = verify(file, by)
        return 'fault' in verified ? `${verified.fault.line} ${verified.fault.what}` : 'holds'
      }
      expect(lineOf(join([second, ...rest, head]))).toBe('1 record')
      expect(lineOf(join([first, ...rest, head]))).toBe(rest.length > 0 ? '2 record' : '2 head')
      expect(lineOf(join([second, first, ...rest, head]))).toBe('1 record')
      expect(lineOf(join([first, first, second, ...rest, head]))).toBe('2 record')
      expect(lineOf(join([...records.slice(0, -1), head]))).toBe(`${records.length} head`)
      expect(lineOf(join(records))).toBe(`${records.length} head`)
      expect(lineOf(join([head, head]))).toBe('1 record')
      expect(lineOf('')).toBe('1 file')
      expect(lineOf(text, [])).toBe(`${lines.length} head`)

      // A forger who knows the format rebuilds the chain: hashes and links hold, the head does not.
      let prev_hash = JSON.parse(first).prev_hash as string
      const forged = records.map((line, index) => {
        const { v: _, ...record } = JSON.parse(line)
        const next = { ...record, prev_hash, ...(index === 0 && { statement: 'Nothing happened' }) }
        prev_hash = hashOf(next)
        return { v: 1, ...next, hash: prev_hash }
      })
      const { kid, signature: _, ...told } = JSON.parse(head)
      const { privateKey } = generateKeyPairSync('ed25519')
      const anew = exportEvidence(forged, { ...told, hash: prev_hash }, { kid, private_key: privateKey })
      expect(lineOf(anew)).toBe(`${lines.length} head`)
      expect(lineOf(join([...anew.split('\n').slice(0, -2), head]))).toBe(`${lines.length} head`)
    })
  })

  it('answers a waiting reader of the timeline as soon as something happens', async () => {
    const { operation_id } = await p.startOperation(gated())
    const { last_seq } = (await p.as('vic').get(`/v1/operations/${operation_id}/timeline`)).body
    const waiting = p.as('vic').get(`/v1/operations/${operation_id}/timeline?after_seq=${last_seq}&wait_ms=5000`)
    await p.as('olga').post(`/v1/operations/${operation_id}/pause`, { reason: 'x' })
    expect((await waiting).body.events).toMatchObject([{ type: 'operation.pausing' }])
  })

  it('gives a reader whose position is ahead, as after a restore, no event before it', async () => {
    const { operation_id } = await p.startOperation(gated())
    const waiting = p.as('vic').get(`/v1/operations/${operation_id}/timeline?after_seq=1000&wait_ms=3000`)
    await p.as('olga').post(`/v1/operations/${operation_id}/pause`, { reason: 'x' })
    expect((await waiting).body.events).toEqual([])
  })

  it('tells the gateway by a 102 that a reader only waits from here on, and no one else', async () => {
    const { operation_id } = await p.startOperation(gated())
    const path = `/v1/operations/${operation_id}/timeline`
    const { last_seq } = (await p.as('vic').get(path)).body
    const asked = (query: string): Promise<string[]> =>
      new Promise((resolve, reject) => {
        const heard: string[] = []
        const headers = { authorization: `Bearer ${p.tokenOf(p.people.vic)}` }
        request(`${p.running[0]?.url}${path}?${query}`, { headers }, (res) => {
          heard.push(String(res.statusCode))
          res.resume().once('end', () => resolve(heard))
        })
          .on('information', ({ statusCode }) => heard.push(String(statusCode)))
          .on('error', reject)
          .end()
      })
    expect(await asked(`after_seq=${last_seq}&types=operation.pausing&wait_ms=700`)).toEqual(['102', '200'])
    expect(await asked(`after_seq=${last_seq}`)).toEqual(['200'])
    expect(await asked('after_seq=0&wait_ms=700')).toEqual(['200'])
  })
})

describe('nodes and logs', () => {
  const withLog = async (chunks = 10) => {
    const { operation_id } = await p.startOperation(gated())
    await p.query(
      `update operations.nodes set state = 'failed', attempt = 1, error = '{"class":"refused","message":"no","retryable":false}' where operation_id = $1 and node_id = 'behind'`,
      [operation_id],
    )
    await p.query(
      `insert into operations.node_attempts (operation_id, node_id, attempt, generation, fence, fences, phase, executor, key, log_complete)
       values ($1, 'behind', 1, 1, 5, '{5}', 'failed', 'noop', 'k', true)`,
      [operation_id],
    )
    for (let chunk = 0; chunk < chunks; chunk++) {
      const lines = Array.from({ length: 100 }, (_, n) => ({
        seq: chunk * 100 + n + 1,
        time: '2026-01-01T00:00:00.000000Z',
        stream: 'stdout',
        level: n % 50 === 0 ? 'error' : 'info',
        text: `line ${chunk * 100 + n + 1}${n === 7 ? ' Needle' : ''}`,
      }))
      await p.query(
        `insert into operations.log_chunks (operation_id, node_id, attempt, chunk, lines) values ($1, 'behind', 1, $2, $3)`,
        [operation_id, chunk, JSON.stringify(lines)],
      )
      await p.query(
        `insert into operations.operation_job_log_index (operation_id, node_id, attempt, chunk, generation, first_seq, last_seq, first_at, last_at, lines, bytes)
         values ($1, 'behind', 1, $2, 1, $3, $4, now(), now(), 100, 1000)`,
        [operation_id, chunk, chunk * 100 + 1, chunk * 100 + 100],
      )
    }
    return `/v1/operations/${operation_id}/nodes`
  }

  it('come in rank order, or failures first', async () => {
    const path = await withLog()
    const ids = (body: { items: { node_id: string }[] }) => body.items.map(({ node_id }) => node_id)
    expect(ids(must(await p.as('vic').get(path), 200).body)).toEqual(['before', 'behind'])
    expect(ids((await p.as('vic').get(`${path}?failed_first=true`)).body)).toEqual(['behind', 'before'])
    expect(ids((await p.as('vic').get(`${path}?state=failed`)).body)).toEqual(['behind'])
    const first = (await p.as('vic').get(`${path}?failed_first=true&page_size=1`)).body
    expect(
      ids((await p.as('vic').get(`${path}?failed_first=true&page_size=1&page_token=${first.next_page_token}`)).body),
    ).toEqual(['before'])
    const { body } = must(await p.as('olga').get(`${path}/behind`), 200)
    expect(body).toMatchObject({
      error_class: 'refused',
      gates: [{ gate_id: 'go', status: 'armed' }],
      attempts: [{ attempt: 1, phase: 'failed', fences: ['5'] }],
    })
    expect(body.allowed_actions.find(({ action }: { action: string }) => action === 'retry').allowed).toBe(true)
    expect(await p.as('olga').get(`${path}/behind?attempt=4`)).toMatchObject({ status: 404, body: { code: 'attempt' } })
    expect(await p.as('olga').get(`${path}/nowhere`)).toMatchObject({ status: 404, body: { code: 'node' } })
  })

  it('move to the archive after their time and read the same; after retention they are gone, and say so', async () => {
    const nodes = await withLog()
    const operation_id = nodes.split('/')[3]
    const path = `${nodes}/behind/logs`
    const queries = [
      ...['limit=3', 'after_seq=98&limit=5', 'before_seq=301&limit=2', 'tail=true&limit=2', 'level=error&limit=7'],
      ...['level=error&tail=true&limit=3', 'stream=stderr', 'q=needle', 'q=LINE 10&limit=1'],
    ]
    const readAll = async () => {
      const pages = await Promise.all(queries.map((query) => p.as('vic').get(`${path}?${query}`)))
      const raw = await p.as('vic').get(`${path}/raw`, { headers: { range: 'bytes=100-300' } })
      return { pages: pages.map((page) => must(page, 200).body), raw: must(raw, 206).text }
    }
    const artifact_id = randomUUID()
    await p.query(
      `insert into operations.operation_artifact_index (artifact_id, operation_id, node_id, attempt, name, kind, media_type, size, sha256, status, content)
       values ($1, $2, 'behind', 1, 'x', 'file', 'text/plain', 1, 'x', 'stored', 'x')`,
      [artifact_id, operation_id],
    )
    const turn = async (days: { hot: number; kept: number }) => {
      await archiveLogs(p.deps.db, days.hot)
      await expireLogs(p.deps.db, days.kept)
      await expireArtifacts(p.deps.db, days.kept, async () => {})
    }
    const hot = await readAll()
    await turn({ hot: 0, kept: 0 })
    expect(await readAll()).toEqual(hot)
    await p.query('update operations.operations set ended_at = clock_timestamp() where operation_id = $1', [
      operation_id,
    ])
    await turn({ hot: 1, kept: 1 })
    expect(await readAll()).toEqual(hot)
    await turn({ hot: 0, kept: 1 })
    const archived = await readAll()
    expect(archived.pages.map(({ storage }) => storage)).toEqual(queries.map(() => 'archive'))
    expect(archived).toEqual({ ...hot, pages: hot.pages.map((page) => ({ ...page, storage: 'archive' })) })
    const [bodies] = await p.query(
      `select sum(length(lines::text))::int as lines, sum(length(packed))::int as packed from operations.log_chunks where operation_id = $1`,
      [operation_id],
    )
    expect(bodies?.packed).toBeGreaterThan(0)
    expect(bodies?.lines).toBe(10 * '[]'.length)
    const content = () => p.as('vic').get(`${nodes.replace('/nodes', '')}/artifacts/${artifact_id}/content`)
    expect((await content()).status).toBe(200)
    await turn({ hot: 0, kept: 0 })
    const gone = { status: 410, body: { category: 'not_found', code: 'gone' } }
    expect(await p.as('vic').get(path)).toMatchObject(gone)
    expect(await p.as('vic').get(`${path}/raw`)).toMatchObject(gone)
    expect(await content()).toMatchObject(gone)
    expect(must(await p.as('vic').get(nodes), 200).body.items).toHaveLength(2)
  })

  it('are read forwards, backwards, from the end, by level and by text', async () => {
    const path = `${await withLog()}/behind/logs`
    const read = async (query: string) => must(await p.as('vic').get(`${path}?${query}`), 200).body
    expect(await read('limit=3')).toMatchObject({
      first_seq: 1,
      last_seq: 3,
      total_lines: 1000,
      total_bytes: 10_000,
      complete: true,
    })
    expect(await read('after_seq=98&limit=5')).toMatchObject({ first_seq: 99, last_seq: 103 })
    expect(await read('before_seq=301&limit=2')).toMatchObject({ first_seq: 299, last_seq: 300 })
    expect(await read('tail=true&limit=2')).toMatchObject({ first_seq: 999, last_seq: 1000 })
    expect(await read('after_seq=299&before_seq=303')).toMatchObject({ first_seq: 300, last_seq: 302 })
    expect(await read('after_seq=998&tail=true&limit=5')).toMatchObject({ first_seq: 999, last_seq: 1000 })
    expect(await read('after_seq=303&before_seq=301')).toMatchObject({ lines: [] })
    expect((await read('after_seq=51&level=error&tail=true&before_seq=150')).lines).toMatchObject([{ seq: 101 }])
    expect(await p.as('vic').get(`${path}?level=foo`)).toMatchObject({
      status: 400,
      body: { code: 'schema_violation' },
    })
    expect((await read('level=error&limit=3')).lines.map(({ seq }: { seq: number }) => seq)).toEqual([1, 51, 101])
    expect((await read('level=error&tail=true&limit=2')).lines.map(({ seq }: { seq: number }) => seq)).toEqual([
      901, 951,
    ])
    expect((await read('q=nEEdle&limit=1')).matches).toEqual({
      count: 10,
      seqs: [8, 108, 208, 308, 408, 508, 608, 708, 808, 908],
    })
    expect((await read('q=needle&limit=1&match_before_seq=408')).matches).toEqual({
      count: 10,
      seqs: [308, 208, 108, 8],
    })
    expect((await read('q=line&limit=1&match_before_seq=1001')).matches.seqs).toEqual(
      Array.from({ length: 200 }, (_, n) => 1000 - n),
    )
    expect((await read('q=%25%25&limit=1')).matches).toEqual({ count: 0, seqs: [] })
    expect(await p.as('nobody').get(path)).toMatchObject({ status: 403, body: { permission: 'log:read' } })
    expect(await read('attempt=1&limit=1')).toMatchObject({ attempt: 1 })
    expect(await p.as('vic').get(`${path}?attempt=3`)).toMatchObject({ status: 404, body: { code: 'attempt' } })
  })

  it('are hidden from someone who may read logs elsewhere only', async () => {
    const nodes = await withLog()
    const wide = { ...person('wide', ['admin', 'viewer']), scopes: { viewer: { regionId: 'elsewhere' } } }
    Object.assign(p.people, { wide })
    must(await p.as(wide).get(`${nodes}/behind`), 200)
    for (const path of [`${nodes}/behind/logs`, `${nodes}/behind/logs/raw`])
      expect(await p.as(wide).get(path)).toMatchObject({ status: 404, body: { code: 'operation' } })
  })

  it('are searched in any case of any language', async () => {
    const nodes = await withLog()
    await p.query(
      `update operations.log_chunks set lines = jsonb_set(lines, '{3,text}', '"ÄRGER, ПУТЬ, 🚀🚀"') where operation_id = $1 and chunk = 2`,
      [nodes.split('/')[3]],
    )
    for (const q of ['ärger', 'путь', 'ЛУТЬ', '🚀🚀']) {
      const { body } = must(await p.as('vic').get(`${nodes}/behind/logs?limit=1&q=${encodeURIComponent(q)}`), 200)
      expect([q, body.matches.seqs]).toEqual([q, q === 'ЛУТЬ' ? [] : [204]])
    }
  })

  it('are downloaded whole or by a range', async () => {
    const path = `${await withLog()}/behind/logs/raw`
    const whole = must(await p.as('vic').get(path), 200)
    expect(whole.text.split('\n')).toHaveLength(1001)
    expect(whole.headers.get('content-disposition')).toContain('attachment')
    const part = await p.as('vic').get(path, { headers: { range: 'bytes=0-5' } })
    expect([part.status, part.text, part.headers.get('content-range')]).toEqual([
      206,
      'line 1',
      `bytes 0-5/${Buffer.byteLength(whole.text)}`,
    ])
    expect((await p.as('vic').get(path, { headers: { range: 'bytes=99999999-' } })).status).toBe(416)
    expect((await p.as('vic').get(path, { headers: { range: 'bytes=5-2' } })).status).toBe(200)
  })

  it('are never in memory as a whole, also for a search: large ones would end the app', async () => {
    const nodes = await withLog(40)
    const ref: LogRef = { operation_id: String(nodes.split('/')[3]), node_id: 'behind', role: 'run', attempt: 1 }
    const parts: number[] = []
    for await (const lines of wholeLog(p.deps.db, ref)) parts.push(lines.length)
    expect(parts).toEqual([1600, 1600, 800])
    const { text } = must(await p.as('vic').get(`${nodes}/behind/logs/raw`), 200)
    expect(text.split('\n')).toHaveLength(4001)
    for (const [from, to] of [
      [0, 30_000],
      [18_000, 18_100],
      [text.length - 5, text.length - 1],
    ] as const) {
      const part = await p.as('vic').get(`${nodes}/behind/logs/raw`, { headers: { range: `bytes=${from}-${to}` } })
      expect([part.status, part.text]).toEqual([206, text.slice(from, to + 1)])
    }
  })

  it('reach a reader who takes longer than an answer may take', async () => {
    const nodes = await withLog(40)
    await p.query(
      `update operations.log_chunks set lines = jsonb_build_array(jsonb_set(lines->0, '{text}', to_jsonb(repeat('x', 1000000)))) where operation_id = $1`,
      [nodes.split('/')[3]],
    )
    const headers = { authorization: `Bearer ${p.tokenOf(p.people.vic)}`, 'x-request-deadline': '500' }
    const size = await new Promise((resolve, reject) => {
      request(`${p.running[0]?.url}${nodes}/behind/logs/raw`, { headers }, (res) => {
        let size = 0
        res.on('error', reject).on('end', () => resolve(size))
        setTimeout(() => res.on('data', (chunk: Buffer) => (size += chunk.length)), 1500)
      })
        .on('error', reject)
        .end()
    })
    expect(size).toBe(40 * 1_000_001)
  })

  it('keep artifacts that a browser never runs', async () => {
    const { operation_id } = await p.startOperation(gated())
    const artifact_id = randomUUID()
    await p.query(
      `insert into operations.operation_artifact_index (artifact_id, operation_id, node_id, attempt, name, kind, media_type, size, sha256, status, content)
       values ($1, $2, 'before', 1, 'a"b.html', 'report', 'text/html', 3, 'x', 'stored', $3)`,
      [artifact_id, operation_id, Buffer.from('<b>')],
    )
    const { body } = must(await p.as('vic').get(`/v1/operations/${operation_id}/artifacts`), 200)
    expect(body.items).toMatchObject([{ artifact_id, name: 'a"b.html', size: 3 }])
    const content = must(await p.as('vic').get(`/v1/operations/${operation_id}/artifacts/${artifact_id}/content`), 200)
    expect(content.text).toBe('<b>')
    expect(content.headers.get('content-type')).toBe('application/octet-stream')
    expect(content.headers.get('content-security-policy')).toBe('sandbox')
    expect(await p.as('vic').get(`/v1/operations/${operation_id}/artifacts/${randomUUID()}/content`)).toMatchObject({
      status: 404,
      body: { category: 'not_found', code: 'artifact' },
    })
  })
})

describe('me', () => {
  it("gives the caller's rights and the numbers of waiting items", async () => {
    const before = (await p.as('eva').get('/v1/me')).body
    const { operation_id } = await p.startOperation(gated())
    await p.openGate(operation_id, 'go')
    const { body } = must(await p.as('eva').get('/v1/me'), 200)
    expect(body).toMatchObject({
      username: 'eva',
      groups: ['netops'],
      roles: ['approver'],
      degraded: expect.any(Array),
    })
    expect(body.permissions).toContain('gate:decide')
    expect(body.counts).toEqual({
      ...before.counts,
      gates_mine: before.counts.gates_mine + 1,
      gates_all: before.counts.gates_all + 1,
    })
    expect((await p.as('nobody').get('/v1/me')).status).toBe(200)
    expect(body.tickets).toBeNull()
  })

  it('names the ticket system only by an address whose host no ticket can change', () => {
    const load = (url: string, pattern = '[A-Z]+-[0-9]+') =>
      loadOperationsConfig({
        OPERATIONS__DATABASE__URL: 'postgresql://a@localhost/a',
        OPERATIONS__NATS__URL: 'nats://localhost:4222',
        OPERATIONS__SECRET__KEYS: JSON.stringify([Buffer.alloc(32, 1).toString('base64')]),
        OPERATIONS__TICKETS__URL: url,
        OPERATIONS__TICKETS__PATTERN: pattern,
      })
    expect(() => load('https://tickets.example/{ticket}')).not.toThrow()
    for (const url of [
      'http://tickets.example/{ticket}',
      'https://{ticket}/',
      'https://tickets.example{ticket}/x',
      'https://t/',
    ])
      expect(() => load(url), url).toThrow('OPERATIONS__TICKETS__URL')
    expect(() => load('https://tickets.example/{ticket}', '(')).toThrow('OPERATIONS__TICKETS__PATTERN')
  })
})

describe('the list of nodes', () => {
  it('counts the artifacts of each node without reading those of the others', async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.query(
      `insert into operations.operation_artifact_index (artifact_id, operation_id, node_id, attempt, name, kind, media_type, size, sha256, status)
       select gen_random_uuid(), $1, 'other' || n % 2000, 1, 'a' || n, 'log', 'text/plain', 1, repeat('0', 64), 'stored' from generate_series(1, 6000) n`,
      [operation_id],
    )
    await p.query('analyze operations.operation_artifact_index')
    const [row] = await p.query<{ 'QUERY PLAN': unknown }>(
      `explain (analyze, format json) select artifacts from operations.operation_node_run_summary where operation_id = $1`,
      [operation_id],
    )
    const plan = JSON.stringify(row?.['QUERY PLAN'])
    expect(plan).toContain('operation_artifact_index')
    expect(plan).not.toMatch(/"Rows Removed by Filter":[1-9]\d{3}/)
  }, 60_000)
})
