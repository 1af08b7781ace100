import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ENGINE, stateFacts } from '../../db/operations/facts/state.ts'
import { recordChanges } from '../../db/operations/operations/record.ts'
import { gated, must, type Platform, startPlatform } from './support/platform.ts'

/** The history of an operation: what happened, who did it in which roles, why, and what proves it. */
let p: Platform
beforeAll(async () => {
  p = await startPlatform({ relay: false, env: { OPERATIONS__COMMANDS__WAIT_MS: '0' } })
})
afterAll(() => p.stop())

type Event = {
  seq: number
  type: string
  actor: { kind: string; name: string; roles?: string[] }
  reason: string | null
  gate_id: string | null
  evidence_seq: number | null
}
const engine = { namespace: 'default', workflow_id: 'w', run_id: 'r' }

describe('the timeline', () => {
  it('names who gave every command and why, and filters by type, person and place', async () => {
    const { operation_id } = await p.startOperation(gated())
    const path = `/v1/operations/${operation_id}`
    const olga = p.as('olga')
    // The engine has received the commands so far, and receives none that follow.
    await p.query(`update operations.operation_commands set status = 'applied', attempts = 1 where operation_id = $1`, [
      operation_id,
    ])
    await p.query(
      `update operations.nodes set state = 'failed', attempt = 1 where operation_id = $1 and node_id = 'before'`,
      [operation_id],
    )
    must(await olga.post(`${path}/pause`, { reason: 'look closer 🔍' }), 202)
    must(await olga.post(`${path}/resume`, { reason: 'seen' }), 202)
    must(await olga.post(`${path}/nodes/before/retry`, { reason: 'once more' }), 202)
    must(
      await olga.post(`${path}/interventions`, { type: 'skip', node_id: 'behind', payload: {}, reason: 'not needed' }),
      202,
    )
    const changes = [{ op: 'set_limits', max_parallel: 2 }]
    const patch = must(await olga.post(`${path}/patches`, { base_revision: 1, changes, reason: 'slower' }), 201).body
    must(await p.as('eva').post(`${path}/patches/${patch.patch_id}/reject`, { comment: 'it is slow already' }), 202)
    await p.openGate(operation_id, 'go')
    const seen = { ...(await p.seen(operation_id, 'go')), comment: 'the first is well' }
    must(await p.as('eva').post(`${path}/gates/go/approve`, seen), 202)
    must(await olga.post(`${path}/cancel`, { reason: 'enough' }), 202)

    const read = async (query = '') =>
      must(await p.as('vic').get(`${path}/timeline?limit=1000${query}`), 200).body.events as Event[]
    const events = await read()
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, n) => n + 1))
    const said = (type: string) =>
      events.filter((event) => event.type === type).map(({ actor, reason }) => `${actor.name}: ${reason}`)
    expect({
      pausing: said('operation.pausing'),
      resumed: said('operation.resumed'),
      reset: said('node.reset'),
      intervention: said('intervention.accepted'),
      proposed: said('patch.awaiting_approval'),
      patch_voted: said('patch.voted'),
      patch_rejected: said('patch.rejected'),
      gate_voted: said('gate.voted'),
      approved: said('gate.approved'),
      cancelling: said('operation.cancelling'),
    }).toEqual({
      pausing: ['olga: look closer 🔍'],
      resumed: ['olga: seen'],
      reset: ['olga: once more'],
      intervention: ['olga: not needed'],
      proposed: ['olga: slower'],
      patch_voted: ['eva: it is slow already'],
      patch_rejected: ['eva: it is slow already'],
      gate_voted: ['eva: the first is well'],
      approved: ['eva: the first is well'],
      cancelling: ['olga: enough'],
    })
    const voted = events.find(({ type }) => type === 'gate.voted')
    expect(voted?.actor).toMatchObject({ kind: 'user', roles: ['approver'] })
    const { records } = must(await p.as('vic').get(`${path}/evidence`), 200).body
    expect(records[(voted?.evidence_seq ?? 0) - 1]).toMatchObject({ kind: 'vote', actor: { name: 'eva' } })

    const types = async (query: string) => [...new Set((await read(query)).map(({ type }) => type))].sort()
    expect(await types('&types=gate.voted&types=patch.voted')).toEqual(['gate.voted', 'patch.voted'])
    const names = (await read(`&actor=${p.people.eva.id}`)).map(({ actor }) => actor.name)
    expect(new Set(names)).toEqual(new Set(['eva']))
    expect(await types('&node_id=before')).toEqual(expect.arrayContaining(['node.reset']))
    expect(await read('&node_id=behind&types=gate.voted')).toEqual([])
    const last = events.at(-1)?.seq ?? 0
    expect((await read(`&after_seq=${last - 2}`)).map(({ seq }) => seq)).toEqual([last - 1, last])
  })

  it('and the evidence have no head beyond what a reader has been told, while others write', async () => {
    const { operation_id } = await p.startOperation(gated())
    const path = `/v1/operations/${operation_id}`
    const evidence = {
      kind: 'command' as const,
      statement: 'x',
      subject: { type: 'operation', id: operation_id },
      subject_digest: 'sha256:0',
    }
    const fact = { type: 'operation.signalled', actor: ENGINE, data: {}, evidence }
    let writes = true
    const writing = (async () => {
      for (let n = 0; n < 400; n++)
        await p.deps.db.transaction((tx) => stateFacts(tx, operation_id, { events: [fact] }))
      writes = false
    })()
    for (let seen = 0; writes; ) {
      const { events, last_seq } = must(
        await p.as('vic').get(`${path}/timeline?after_seq=${seen}&limit=1000`),
        200,
      ).body
      if (events.length === 0) expect(last_seq).toBe(seen)
      seen = events.at(-1)?.seq ?? seen
      const { records, head } = must(await p.as('vic').get(`${path}/evidence?limit=1000`), 200).body
      expect(head.seq).toBe(records.at(-1).seq)
    }
    await writing
  })

  it('stores no reason without content', async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.openGate(operation_id, 'go')
    const path = `/v1/operations/${operation_id}`
    const seen = await p.seen(operation_id, 'go')
    const { round } = seen
    for (const blank of [' ', '\n\t', '\u00a0'])
      for (const [who, to, body, pointer] of [
        ['olga', '/pause', { reason: blank }, '/reason'],
        ['eva', '/gates/go/reject', { round, comment: blank }, '/comment'],
        ['eva', '/gates/go/approve', { ...seen, comment: blank }, '/comment'],
        ['both', '/gates/go/approve', { ...seen, break_glass: { reason: blank } }, '/break_glass/reason'],
      ] as const)
        expect(await p.as(who).post(path + to, body)).toMatchObject({
          status: 400,
          body: { category: 'validation_error', code: 'schema_violation', violations: [{ pointer }] },
        })
    expect((await p.as('vic').get(path)).body).toMatchObject({ status: 'blocked', open_gates: [{ gate_id: 'go' }] })
  })

  it('shows no attempt that a stop had overtaken: its claim is refused', async () => {
    const { operation_id } = await p.startOperation(gated())
    const path = `/v1/operations/${operation_id}`
    const record = (record_seq: number, attempt: number) => {
      const change = { t: 'node' as const, id: 'before', state: 'dispatched', at: Date.now(), generation: 1, attempt }
      const report = { engine_status: 'running', blocked_on: [], open_gates: 0 }
      return recordChanges(p.deps.db, operation_id, { record_seq, changes: [change], report } as never, engine)
    }
    const told = async () =>
      must(await p.as('vic').get(`${path}/timeline?node_id=before`), 200).body.events.map(({ type }: Event) => type)
    const first = await record(1, 1)
    // A repeat of the batch is answered from its row.
    expect(await record(1, 1)).toEqual(first)
    expect(await told()).toEqual(['node.dispatched'])
    must(await p.as('olga').post(`${path}/pause`, { reason: 'wait' }), 202)
    await record(2, 2)
    expect(await told()).toEqual(['node.dispatched'])
  })
})

it('an operation reports that it waits for the engine, which has not applied the decision', async () => {
  const { operation_id } = await p.startOperation(gated())
  const path = `/v1/operations/${operation_id}`
  const blocked = async () => must(await p.as('vic').get(path), 200).body.blocked_on
  expect(await blocked()).toEqual([])
  const age = `update operations.operation_commands set created_at = created_at - interval '10 s' where operation_id = $1`
  await p.query(age, [operation_id])
  expect(await blocked()).toMatchObject([{ kind: 'engine', id: operation_id, since: expect.any(String) }])
  const { items } = must(await p.as('vic').get('/v1/operations?page_size=500'), 200).body
  const row = items.find((item: { operation_id: string }) => item.operation_id === operation_id)
  expect(row.blocked_on).toMatchObject([{ kind: 'engine' }])
  await p.query(`update operations.operation_commands set status = 'delivered' where operation_id = $1`, [operation_id])
  expect(await blocked()).toMatchObject([{ kind: 'engine', id: operation_id }])
  await p.query(`update operations.operation_commands set status = 'applied' where operation_id = $1`, [operation_id])
  expect(await blocked()).toEqual([])
  must(await p.as('olga').post(`${path}/cancel`, { reason: 'enough' }), 202)
  await p.query(age, [operation_id])
  expect(await blocked()).toMatchObject([{ kind: 'engine' }])
})
