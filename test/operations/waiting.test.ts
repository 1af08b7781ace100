import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { must, type Platform, startPlatform } from './support/platform.ts'

/** What waits for a person besides gates: patches to vote on, failures that hold an operation, and deadlines. */
let p: Platform
beforeAll(async () => {
  p = await startPlatform({ relay: false })
})
afterAll(() => p.stop())

const reason = 'The image is too old.'
const node = (node_id: string) => ({ node_id, executor: 'noop', with: {} })
const graph = {
  nodes: [node('a'), node('b')],
  gates: [{ gate_id: 'go', policy: { approvals: { groups: [{ group: 'netops', min: 1 }] } }, guards: ['b'] }],
}
type Who = 'pia' | 'olga' | 'eva' | 'ivo' | 'vic' | 'ada'
const waiting = async (who: Who, whose: 'me' | 'all', operation_id: string) => {
  const { patches, failures } = must(await p.as(who).get(`/v1/waiting?for=${whose}`), 200).body
  const of = (rows: { operation_id: string }[]) => rows.filter((row) => row.operation_id === operation_id)
  return { patches: of(patches), failures: of(failures) }
}
const counts = async (who: Who) => must(await p.as(who).get('/v1/me'), 200).body.counts

describe('a patch that awaits approval', () => {
  it('waits for those who may vote on it, until they have', async () => {
    const { operation_id } = await p.startOperation(graph)
    const path = `/v1/operations/${operation_id}`
    const before = await counts('eva')
    const changes = [{ op: 'update_node', node_id: 'b', set: { name: 'b again' } }]
    const { body } = must(await p.as('olga').post(`${path}/patches`, { base_revision: 1, reason, changes }), 201)
    const shown = {
      operation_id,
      patch_id: body.patch_id,
      reason,
      proposer: { name: 'olga' },
      change_count: 1,
      approvals: 0,
      quorum: 1,
    }
    expect(await waiting('eva', 'me', operation_id)).toMatchObject({ patches: [{ ...shown, mine: true }] })
    expect(await counts('eva')).toEqual({ ...before, patches_mine: before.patches_mine + 1 })
    // Its proposer, a member of another group and a reader see it, and it does not wait for them.
    for (const who of ['olga', 'ivo', 'vic'] as const) {
      expect((await waiting(who, 'me', operation_id)).patches, who).toEqual([])
      expect((await waiting(who, 'all', operation_id)).patches, who).toMatchObject([{ ...shown, mine: false }])
    }
    must(await p.as('eva').post(`${path}/patches/${body.patch_id}/approve`, { reviewed_digest: body.digest }), 202)
    expect((await waiting('eva', 'all', operation_id)).patches).toEqual([])
    expect(await counts('eva')).toEqual(before)
  })
})

describe('a failure that holds an operation', () => {
  const fail = (operation_id: string, more = '', error = 'remote_error') =>
    p.query(
      `with n as (update operations.nodes set state = 'failed', error = '{"class": "${error}", "message": "It says no."}' ${more}
         where operation_id = $1 and node_id = 'a')
       update operations.operations set failed = 1 where operation_id = $1`,
      [operation_id],
    )

  it('waits for the requester of the operation until a patch is proposed', async () => {
    const { operation_id } = await p.startOperation(graph)
    const before = await counts('olga')
    await fail(operation_id)
    const row = { node_count: 1, nodes: [{ node_id: 'a', name: 'a', state: 'failed', message: 'It says no.' }] }
    expect((await waiting('olga', 'me', operation_id)).failures).toMatchObject([{ ...row, mine: true }])
    expect(await counts('olga')).toEqual({ ...before, failures_mine: before.failures_mine + 1 })
    expect((await waiting('vic', 'me', operation_id)).failures).toEqual([])
    expect((await waiting('vic', 'all', operation_id)).failures).toMatchObject([{ ...row, mine: false }])
    const changes = [{ op: 'add_node', node: node('repair') }]
    const path = `/v1/operations/${operation_id}/patches`
    must(await p.as('olga').post(path, { base_revision: 1, reason, changes }), 201)
    expect(await waiting('olga', 'all', operation_id)).toMatchObject({ failures: [], patches: [{ reason }] })
  })

  it('comes first if it waits longest, whichever operation is older', async () => {
    const [older, newer] = [await p.startOperation(graph), await p.startOperation(graph)]
    await fail(older.operation_id, `, ended_at = clock_timestamp() - interval '1 hour'`)
    await fail(newer.operation_id, `, ended_at = clock_timestamp() - interval '2 hours'`)
    const { failures } = must(await p.as('olga').get('/v1/waiting?for=all'), 200).body
    const ids = failures.map((row: { operation_id: string }) => row.operation_id)
    expect(ids.slice(0, 2)).toEqual([newer.operation_id, older.operation_id])
  })

  it.each(['tolerate', 'skip_dependents'])('excludes failures that the plan passes over: %s', async (on_failure) => {
    const { operation_id } = await p.startOperation(graph)
    await fail(operation_id, `, spec = spec || '{"on_failure": "${on_failure}"}'`)
    expect((await waiting('olga', 'all', operation_id)).failures).toEqual([])
  })

  it.each([
    ['a target that is not as planned', 'target_drifted', 'target_drift', 1],
    ['more failures than the plan allows', 'remote_error', 'failure_budget', 0],
  ])('includes what pauses it whatever the plan says of one failure: %s', async (_, error, pause_reason, rest) => {
    const { operation_id } = await p.startOperation(graph)
    const before = await counts('olga')
    await fail(operation_id, `, spec = spec || '{"on_failure": "skip_dependents"}'`, error)
    const control = (set: string) =>
      p.query(`update operations.operation_control set ${set} where operation_id = $1`, [operation_id])
    await control(`control = 'pause', pause_reason = '${pause_reason}'`)
    const row = { node_count: 1, nodes: [{ node_id: 'a', state: 'failed' }], mine: true }
    expect((await waiting('olga', 'me', operation_id)).failures).toMatchObject([row])
    expect(await counts('olga')).toEqual({ ...before, failures_mine: before.failures_mine + 1 })
    // Once it runs on, the failed target still needs a person; failures within a new budget do not.
    await control(`control = 'run', pause_reason = null`)
    expect((await waiting('olga', 'all', operation_id)).failures).toHaveLength(rest)
  })

  it('includes a pause because the catalog moved its targets, until it is resumed or ends', async () => {
    const { operation_id } = await p.startOperation(graph)
    const before = await counts('olga')
    await p.query(
      `update operations.operation_control set control = 'pause', pause_reason = 'catalog_drift' where operation_id = $1`,
      [operation_id],
    )
    const row = { operation_id, node_count: 0, nodes: [], waiting_since: expect.any(String) }
    expect((await waiting('olga', 'me', operation_id)).failures).toMatchObject([{ ...row, mine: true }])
    expect(await counts('olga')).toEqual({ ...before, failures_mine: before.failures_mine + 1 })
    expect((await waiting('vic', 'me', operation_id)).failures).toEqual([])
    expect((await waiting('vic', 'all', operation_id)).failures).toMatchObject([{ ...row, mine: false }])
    await p.query(`update operations.operations set ended_at = clock_timestamp() where operation_id = $1`, [
      operation_id,
    ])
    expect((await waiting('olga', 'all', operation_id)).failures).toEqual([])
  })
})

describe('what is about to expire', () => {
  const near = async (who: Who, whose: 'me' | 'all', title: string) =>
    must(await p.as(who).get(`/v1/waiting?for=${whose}`), 200).body.expiring.filter(
      (row: { title: string }) => row.title === title,
    )
  const kinds = async (who: Who, whose: 'me' | 'all', title: string) =>
    (await near(who, whose, title)).map(({ kind }: { kind: string }) => kind)
  const set = (table: string, column: string, minutes: number, operation_id: string) =>
    p.query(
      `update operations.${table} set ${column} = clock_timestamp() + make_interval(mins => $2) where operation_id = $1`,
      [operation_id, minutes],
    )
  const titled = async (title: string) => {
    const { operation_id } = await p.startOperation(graph, { more: { title } })
    await p.openGate(operation_id, 'go')
    await set('gates', 'deadline_at', 24 * 60, operation_id)
    return operation_id
  }

  it('is an operation an hour before its deadline: for its requester, and for readers who ask for all', async () => {
    const operation_id = await titled('due operation')
    await set('operations', 'deadline_at', 62, operation_id)
    expect(await near('olga', 'me', 'due operation')).toEqual([])
    await set('operations', 'deadline_at', 58, operation_id)
    const row = { kind: 'operation', operation_id, plan_id: null, gate_id: null, follows: 'graceful', mine: true }
    expect(await near('olga', 'me', 'due operation')).toMatchObject([row])
    expect(await near('eva', 'me', 'due operation')).toEqual([])
    expect(await near('eva', 'all', 'due operation')).toMatchObject([{ ...row, mine: false }])
    await p.query('update operations.operations set ended_at = now() where operation_id = $1', [operation_id])
    expect(await near('olga', 'all', 'due operation')).toEqual([])
  })

  it('is a gate four hours before its deadline, for the requester who cannot decide it', async () => {
    const operation_id = await titled('due gate')
    await set('gates', 'deadline_at', 4 * 60 + 2, operation_id)
    expect(await near('olga', 'me', 'due gate')).toEqual([])
    await set('gates', 'deadline_at', 4 * 60 - 2, operation_id)
    expect(await near('olga', 'me', 'due gate')).toMatchObject([
      { kind: 'gate', operation_id, gate_id: 'go', follows: 'reject', mine: true },
    ])
    // Eva has its card; whoever asks for all has the cards of all gates.
    expect(await near('eva', 'me', 'due gate')).toEqual([])
    expect(await near('olga', 'all', 'due gate')).toEqual([])
    await p.query(`update operations.gates set status = 'approved' where operation_id = $1`, [operation_id])
    expect(await near('olga', 'me', 'due gate')).toEqual([])
  })

  it('is a right to decide by delegation, for the person who has it', async () => {
    const operation_id = await titled('lent')
    const lend = (minutes: number) =>
      p.query(
        `update operations.gates set delegations = jsonb_build_array(jsonb_build_object('user_id', $2::text, 'until',
         operations.iso(clock_timestamp() + make_interval(mins => $3)))) where operation_id = $1`,
        [operation_id, p.people.ivo.id, minutes],
      )
    await lend(4 * 60 + 2)
    expect(await near('ivo', 'me', 'lent')).toEqual([])
    await lend(4 * 60 - 2)
    const row = { kind: 'delegation', operation_id, gate_id: 'go', follows: null, mine: true }
    for (const whose of ['me', 'all'] as const) expect(await near('ivo', whose, 'lent')).toMatchObject([row])
    expect(await near('eva', 'all', 'lent')).toEqual([])
    await lend(-1)
    expect(await near('ivo', 'me', 'lent')).toEqual([])
  })

  it('is a ready plan four hours before it expires, the nearest first', async () => {
    const operation_id = await titled('due plan')
    await set('operations', 'deadline_at', 50, operation_id)
    const stated = { kind: 'graph', title: 'due plan', reason, graph }
    const { intent_id } = must(await p.as('pia').post('/v1/intents', stated), 201).body
    const { plan_id } = must(await p.as('pia').post(`/v1/intents/${intent_id}/plan-preview`, {}), 201).body
    const expires = (minutes: number) =>
      p.query(
        'update operations.plans set expires_at = clock_timestamp() + make_interval(mins => $2) where plan_id = $1',
        [plan_id, minutes],
      )
    await expires(4 * 60 + 2)
    expect(await kinds('pia', 'me', 'due plan')).toEqual(['operation'])
    await expires(4 * 60 - 2)
    expect(await near('pia', 'me', 'due plan')).toMatchObject([
      { kind: 'operation' },
      { kind: 'plan', plan_id, operation_id: null, follows: null, mine: true },
    ])
    await expires(40)
    expect(await kinds('pia', 'me', 'due plan')).toEqual(['plan', 'operation'])
    expect(await near('vic', 'me', 'due plan')).toEqual([])
    expect(await near('vic', 'all', 'due plan')).toMatchObject([{ kind: 'plan', mine: false }, { kind: 'operation' }])
    await p.query(`update operations.plans set status = 'superseded' where plan_id = $1`, [plan_id])
    expect(await kinds('pia', 'me', 'due plan')).toEqual(['operation'])
  })
})
