import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { must, type Platform, startPlatform } from './support/platform.ts'

/** What waits for a person besides gates: patches to vote on, and failures that hold an operation. */
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
type Who = 'olga' | 'eva' | 'ivo' | 'vic' | 'ada'
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
  const fail = (operation_id: string, more = '') =>
    p.query(
      `update operations.nodes set state = 'failed', error = '{"class": "remote_error", "message": "It says no."}' ${more}
       where operation_id = $1 and node_id = 'a'`,
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

  it('excludes failures that the plan tolerates', async () => {
    const { operation_id } = await p.startOperation(graph)
    await fail(operation_id, `, spec = spec || '{"on_failure": "tolerate"}'`)
    expect((await waiting('olga', 'all', operation_id)).failures).toEqual([])
  })
})
