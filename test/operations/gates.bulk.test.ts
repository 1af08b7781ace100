import { randomUUID } from 'node:crypto'
import { Value } from 'typebox/value'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Preview } from '../../apps/shared/contracts/client/preview.ts'
import { listRebound } from '../../db/operations/gates/bind.ts'
import { gated, must, type Platform, startPlatform } from './support/platform.ts'

/** console.md 5.2: gates that one person decides together, each with its own command. */
let p: Platform
beforeAll(async () => {
  p = await startPlatform()
})
afterAll(() => p.stop())

const batch = { id: randomUUID(), size: 3 }
const waiting = async (policy?: Record<string, unknown>) => {
  const { operation_id } = await p.startOperation(gated(policy))
  await p.openGate(operation_id, 'go')
  const path = `/v1/operations/${operation_id}/gates/go`
  const seen = await p.seen(operation_id, 'go')
  const vote = (verdict: 'approve' | 'reject', more: object = { batch }, on = p) =>
    on
      .as('eva')
      .post(
        `${path}/${verdict}`,
        verdict === 'approve' ? { ...seen, ...more } : { round: seen.round, comment: 'no', ...more },
      )
  const set = (column: string, value: string) =>
    column === 'kind'
      ? p.query('update operations.gates set kind = $2 where operation_id = $1', [operation_id, value])
      : p.query('update operations.operations set risk_level = $2 where operation_id = $1', [operation_id, value])
  const alone = async () => {
    const { items } = must(await p.as('eva').get('/v1/gates?for=all&page_size=500'), 200).body
    return items.find((item: { operation_id: string }) => item.operation_id === operation_id)?.alone
  }
  const status = async () => (await p.as('eva').get(path)).body.status
  return { operation_id, vote, set, alone, status }
}
const REFUSED = { status: 403, body: { category: 'policy_denied', code: 'bulk_not_allowed' } }

describe('gates decided together', () => {
  it('are approved and rejected one by one, and the evidence of each names the batch', async () => {
    const gates = [await waiting(), await waiting(), await waiting()]
    for (const gate of gates) expect(await gate.alone()).toEqual({ approve: null, reject: null })
    const replies = await Promise.all(gates.map((gate, at) => gate.vote(at === 2 ? 'reject' : 'approve')))
    expect(replies.map(({ body }) => body.status)).toEqual(['approved', 'approved', 'rejected'])
    expect(new Set(replies.map(({ body }) => body.command.command_id)).size).toBe(3)
    for (const { operation_id } of gates) {
      const { records } = must(await p.as('vic').get(`/v1/operations/${operation_id}/evidence`), 200).body
      const vote = records.find(({ kind }: { kind: string }) => kind === 'vote')
      expect(vote.statement).toMatch(/^eva (approved|rejected) gate go, round 1, one of 3 decided together$/)
      expect(vote.subject.batch).toEqual(batch)
    }
  })

  it.each([
    [
      'whose policy asks for a passkey',
      { approvals: { groups: [{ group: 'netops', min: 1 }], signature: 'required' } },
      'signature',
      'signature',
    ],
    ['whose policy says so', { bulk: false }, 'policy', null],
    [
      'whose policy asks for a comment',
      { approvals: { groups: [{ group: 'netops', min: 1 }], comment_on_approve: true } },
      'comment',
      null,
    ],
  ])('exclude a gate %s', async (_which, policy, approve, reject) => {
    const gate = await waiting(policy)
    expect(await gate.alone()).toEqual({ approve, reject })
    expect(await gate.vote('approve', { batch, comment: 'fine' })).toMatchObject(REFUSED)
    expect(await gate.status()).toBe('waiting')
    const rejected = await gate.vote('reject')
    if (reject) expect(rejected).toMatchObject(REFUSED)
    else expect(rejected.body.status).toBe('rejected')
  })

  it('exclude every kind of gate but approvals, and a forged batch leaves such a gate waiting', async () => {
    const gate = await waiting()
    for (const kind of ['freeze', 'policy_override']) {
      await gate.set('kind', kind)
      expect(await gate.alone()).toEqual({ approve: 'kind', reject: 'kind' })
      for (const verdict of ['approve', 'reject'] as const) expect(await gate.vote(verdict)).toMatchObject(REFUSED)
    }
    expect(await gate.status()).toBe('waiting')
  })

  it('are of low risk, unless they are rejected; each can still be approved alone', async () => {
    const gates = [await waiting(), await waiting()]
    for (const gate of gates) await gate.set('risk', 'medium')
    const [approved, rejected] = gates
    expect(await approved?.alone()).toEqual({ approve: 'risk', reject: null })
    expect(await approved?.vote('approve')).toMatchObject(REFUSED)
    expect((await approved?.vote('approve', {}))?.body.status).toBe('approved')
    expect((await rejected?.vote('reject'))?.body.status).toBe('rejected')
  })

  it('never bypass a gate, and are at most twenty', async () => {
    const gate = await waiting()
    const broken = { batch, break_glass: { reason: 'the site is down' } }
    expect(await gate.vote('approve', broken)).toMatchObject({ status: 403 })
    for (const size of [0, 21, 1.5])
      expect((await gate.vote('approve', { batch: { ...batch, size } })).body).toMatchObject({
        ...{ category: 'validation_error', code: 'schema_violation' },
      })
    expect(await gate.status()).toBe('waiting')
  })
})

describe('a site', () => {
  it.each([
    ['off', 'low', 403],
    ['medium', 'medium', 200],
    ['medium', 'high', 403],
  ])('whose setting is %s answers an approval of %s risk with %i', async (most, risk, status) => {
    const own = await startPlatform({ env: { OPERATIONS__GATES__BULK_APPROVE: most } })
    try {
      const { operation_id } = await own.startOperation(gated())
      await own.openGate(operation_id, 'go')
      const seen = await own.seen(operation_id, 'go')
      await own.query('update operations.operations set risk_level = $2 where operation_id = $1', [operation_id, risk])
      const reply = await own.as('eva').post(`/v1/operations/${operation_id}/gates/go/approve`, { ...seen, batch })
      expect(reply.status).toBe(status)
    } finally {
      await own.stop()
    }
  })
})

describe('patches decided together', () => {
  const proposed = async (policy?: Record<string, unknown>) => {
    const { operation_id } = await p.startOperation(gated(policy))
    await p.openGate(operation_id, 'go')
    const path = `/v1/operations/${operation_id}/patches`
    const change = { op: 'update_node', node_id: 'behind', set: { tags: ['slow'] } }
    const { patch_id, digest } = must(
      await p.as('olga').post(path, { base_revision: 1, changes: [change], reason: 'to see' }),
      201,
      202,
    ).body
    const vote = (verdict: 'approve' | 'reject', more: object = { batch }) =>
      p
        .as('eva')
        .post(`${path}/${patch_id}/${verdict}`, {
          ...(verdict === 'approve' ? { reviewed_digest: digest } : { comment: 'no' }),
          ...more,
        })
    const alone = async () =>
      must(await p.as('eva').get('/v1/waiting?for=all'), 200).body.patches.find(
        (one: { patch_id: string }) => one.patch_id === patch_id,
      )?.alone
    const status = async () => must(await p.as('eva').get(`${path}/${patch_id}`), 200).body.status
    return { operation_id, vote, alone, status }
  }

  it('are voted on one by one, and the evidence of each names the batch', async () => {
    const [one, two] = [await proposed(), await proposed()]
    expect(await one.alone()).toEqual({ approve: null, reject: null })
    must(await one.vote('approve'), 200, 202)
    must(await two.vote('reject'), 200, 202)
    for (const { operation_id } of [one, two]) {
      const { records } = must(await p.as('vic').get(`/v1/operations/${operation_id}/evidence`), 200).body
      const vote = records.find(({ kind }: { kind: string }) => kind === 'vote')
      expect(vote.statement).toMatch(/one of 3 decided together$/)
      expect(vote.subject.batch).toEqual(batch)
    }
  })

  it('exclude a patch whose risk or policy requires a separate vote, even if the batch is forged', async () => {
    const risky = await proposed()
    await p.query(`update operations.operations set risk_level = 'high' where operation_id = $1`, [risky.operation_id])
    expect(await risky.alone()).toEqual({ approve: 'risk', reject: null })
    const kept = await proposed({ bulk: false })
    expect(await kept.alone()).toEqual({ approve: 'policy', reject: null })
    for (const patch of [risky, kept]) {
      expect(await patch.vote('approve')).toMatchObject(REFUSED)
      expect(await patch.status()).toBe('awaiting_approval')
      must(await patch.vote('approve', {}), 200, 202)
    }
  })
})

/** A selector over hundreds of workspaces asks one person about all their previews. */
it('shows the first previews of very many, and its digest covers every one', async () => {
  const ids = Array.from({ length: 300 }, (_, n) => `plan.w${String(n).padStart(3, '0')}`)
  const nodes = ids.map((node_id) => ({ node_id, executor: 'noop' }))
  const guarded = { node_id: 'apply', executor: 'noop', depends_on: ids }
  const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
  const gates = [{ gate_id: 'go', guards: ['apply'], question: 'Apply all?', policy }]
  const { operation_id } = await p.startOperation({ nodes: [...nodes, guarded], gates })
  const targets = ids.slice(0, 50).map((id) => `module.network.aws_route53_record.${id}`)
  const digest = `sha256:${'0'.repeat(64)}`
  const preview = {
    ...{ format: 'signalbox/preview@1', binding: 'exact', tool: 'opentofu', source_digest: digest, digest },
    ...{ changes_count: 1, counts: { update: 1 }, unknowns: 0, drift: 0, no_change: false },
    changes: [{ id: 'a.b', action: 'update', fields: [{ path: '/x', before: null, after: 'x'.repeat(100_000) }] }],
    ...{ targets, base: { lineage: null, serial: 1 }, plan: { sha256: digest, content_sha256: digest } },
  }
  await p.query('update operations.nodes set outputs = $2 where operation_id = $1 and node_id <> $3', [
    ...[operation_id, JSON.stringify({ preview }), 'apply'],
  ])
  await p.query(
    `update operations.gates set policy = policy || '{"binds": ["nodes/plan/outputs/preview"]}' where operation_id = $1`,
    [operation_id],
  )
  const bound = async () => {
    const [next] = await listRebound(p.deps.db, operation_id, { gate_id: 'go' })
    if (!next) throw new Error('the subject has not changed')
    return next
  }
  const { subject, digest: before } = await bound()
  expect(JSON.stringify(subject).length).toBeLessThan(4_500_000)
  expect(subject.bound_outputs.map(({ pointer }) => pointer)).toEqual(ids.map((id) => `nodes/${id}/outputs/preview`))
  const values = subject.bound_outputs.map(({ value }) => value as Preview & { whole?: string })
  expect(values.filter(({ changes }) => changes.length > 0)).toHaveLength(38)
  expect(values[0]).toEqual(preview)
  // One that is cut is still a preview, of the same plan, however many targets that names.
  const { targets: _, ...short } = preview
  expect(values[299]).toEqual({ ...short, changes: [], whole: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) })
  expect(Value.Check(Preview, values[299])).toBe(true)
  expect((await bound()).digest).toBe(before)
  await p.query(
    `update operations.nodes set outputs = jsonb_set(outputs, '{preview,changes,0,fields,0,path}', '"/y"')
     where operation_id = $1 and node_id = $2`,
    [operation_id, ids[299]],
  )
  expect((await bound()).digest).not.toBe(before)
})
