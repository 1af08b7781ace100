import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sweep } from '../../apps/operations/upkeep/sweeper.ts'
import { must, type Platform, startPlatform } from './support/platform.ts'

/** Decisions of a command that are taken back after people decided other things in between. No relay runs. */
let p: Platform
beforeAll(async () => {
  p = await startPlatform({ relay: false, env: { OPERATIONS__COMMANDS__WAIT_MS: '0' } })
})
afterAll(() => p.stop())

const reason = 'a test'
const graph = {
  nodes: [
    { node_id: 'a', executor: 'noop', with: {} },
    { node_id: 'b', executor: 'noop', with: { delay_ms: 1 }, depends_on: ['a'] },
  ],
  gates: [
    { gate_id: 'go', policy: { approvals: { quorum: 2, groups: [{ group: 'netops', min: 2 }] } }, guards: ['b'] },
  ],
}
const SET_INPUT = { type: 'set_input', node_id: 'b', payload: { input_overrides: { delay_ms: 7 } }, reason }
const waiting = async (policy: Record<string, unknown> = {}) => {
  const [go] = graph.gates
  const gates = [{ ...go, policy: { ...go?.policy, approvals: { ...go?.policy.approvals, ...policy } } }]
  const { operation_id } = await p.startOperation({ ...graph, gates })
  await p.openGate(operation_id, 'go')
  const path = `/v1/operations/${operation_id}`
  const gate = async () => must(await p.as('vic').get(`${path}/gates/go`), 200).body
  return {
    path,
    gate,
    approve: async (who: 'eva' | 'ada') =>
      must(await p.as(who).post(`${path}/gates/go/approve`, await p.seen(operation_id, 'go')), 200, 202).body,
    does: async (verb: string, body: Record<string, unknown>) => must(await p.as('olga').post(path + verb, body), 202),
    /** It expires before it is sent. */
    lapses: async (kind: string) => {
      await p.query(
        `update operations.operation_commands set not_after = clock_timestamp() - interval '1 s' where operation_id = $1 and kind = $2`,
        [operation_id, kind],
      )
      expect(await sweep(p.deps.db)).toBe(1)
    },
  }
}
const votesOf = (gate: { votes: { actor: { name: string } }[] }) => gate.votes.map(({ actor }) => actor.name)

describe('a command that is withdrawn', () => {
  it('as more time for a gate gives back only the time: a decision made meanwhile counts', async () => {
    const { gate, approve, does, lapses } = await waiting()
    const more = { type: 'extend_deadline', payload: { of: 'gate', id: 'go', add_s: 600 }, reason }
    const before = await gate()
    await does('/interventions', more)
    await lapses('intervene')
    expect(await gate()).toMatchObject({ status: 'waiting', round: 1, deadline_at: before.deadline_at })
    await does('/interventions', more)
    await approve('eva')
    expect(await approve('ada')).toMatchObject({ status: 'approved' })
    await lapses('intervene')
    expect(await gate()).toMatchObject({ status: 'approved', round: 1, decided: { by: { name: 'ada' } } })
  })

  it('as other inputs withdraws the approvals of those: they are asked in a round of its own', async () => {
    const { gate, approve, does, lapses } = await waiting()
    const before = await gate()
    await does('/interventions', SET_INPUT)
    await approve('eva')
    const agreed = await approve('ada')
    expect(agreed.status).toBe('approved')
    await lapses('intervene')
    expect(await gate()).toMatchObject({
      status: 'waiting',
      digest: before.digest,
      decided: null,
      round: agreed.round + 1,
    })
  })

  it.each([
    ['other inputs', 'intervene', SET_INPUT],
    ['a patch', 'patch_applied', undefined],
  ])('as %s leaves no vote behind for another subject', async (_what, kind, intervention) => {
    const { path, gate, approve, does, lapses } = await waiting()
    const before = await gate()
    if (intervention) await does('/interventions', intervention)
    else {
      const changes = [{ op: 'update_node', node_id: 'b', set: { with: { delay_ms: 7 } } }]
      const { body } = must(await p.as('both').post(`${path}/patches`, { base_revision: 1, changes, reason }), 201)
      const seen = { reviewed_digest: body.digest }
      must(await p.as('eva').post(`${path}/patches/${body.patch_id}/approve`, seen), 200)
      must(await p.as('ada').post(`${path}/patches/${body.patch_id}/approve`, seen), 202)
    }
    const asked = await gate()
    expect(asked.digest).not.toBe(before.digest)
    expect(votesOf(await approve('eva'))).toEqual(['eva'])
    await lapses(kind)
    const after = await gate()
    expect(after).toMatchObject({ status: 'waiting', digest: before.digest, missing: [{ group: 'netops', count: 2 }] })
    expect(votesOf(after)).toEqual([])
    expect(await approve('ada')).toMatchObject({ status: 'waiting', missing: [{ group: 'netops', count: 1 }] })
    expect(await approve('eva')).toMatchObject({ status: 'approved' })
    const { body } = await p.as('vic').get(`${path}/timeline?types=gate.reopened`)
    expect(body.events.at(-1)).toMatchObject({ gate_id: 'go', data: { round: after.round } })
    expect((await p.as('vic').get(path)).body.open_gates).toEqual([])
  })
})

describe('an approval that is withdrawn', () => {
  it('asks the others again with the full time, however late it was', async () => {
    const { path, gate, approve } = await waiting({ reject_rule: 'majority' })
    await approve('eva')
    await approve('ada')
    // It was decided in time, and that time is over now.
    await p.query(
      `update operations.gates set waiting_since = clock_timestamp() - interval '2 h', deadline_at = clock_timestamp() - interval '1 h', escalation_level = 1 where operation_id = $1`,
      [path.split('/').at(-1)],
    )
    const { round } = await gate()
    must(await p.as('eva').post(`${path}/gates/go/reject`, { round, comment: 'wait' }), 200, 202)
    const again = await gate()
    expect(again).toMatchObject({ status: 'waiting', round: round + 1, escalation: { level: 0 } })
    expect(votesOf(again).sort()).toEqual(['ada', 'ada', 'eva', 'eva'])
    expect(Date.parse(again.deadline_at) - Date.parse(again.waiting_since)).toBe(86_400_000)
    expect(Date.parse(again.deadline_at)).toBeGreaterThan(Date.now())
  })
})
