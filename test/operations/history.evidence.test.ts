import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyChain } from '../../apps/shared/contracts/client/browser-chain.ts'
import { digest } from '../../apps/shared/data/digest.ts'
import { exportEvidence, verifyEvidence } from '../../apps/shared/evidence/verify.ts'
import type { EvidenceRecord, EvidenceSubject } from '../../db/operations/tables/evidence.ts'
import { until } from '../support/until.ts'
import { must, type Platform, startPlatform } from './support/platform.ts'
import { startWorker } from './support/worker.ts'

let p: Platform
let worker: Awaited<ReturnType<typeof startWorker>>
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-evidence-'))
  const policy = join(folder, 'policy.yaml')
  const loopback = { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: ['1-65535'] }
  const pools = { default: { destinations: [loopback], secrets: [] } }
  writeFileSync(policy, JSON.stringify({ format: 'signalbox/executor-policy@1', pools }))
  p = await startPlatform({ env: { OPERATIONS__COMMANDS__WAIT_MS: '5000', WORKER__EXECUTORS__POLICY_FILE: policy } })
  worker = await startWorker(p, policy)
}, 90_000)
afterAll(async () => {
  await worker.stop()
  await p.stop()
  rmSync(folder, { recursive: true })
  await worker.end()
})

const reason = 'a test'
const noop = (node_id: string, ...depends_on: string[]) => ({ node_id, executor: 'noop', with: {}, depends_on })
/** It fails because nothing listens there. */
const failing = (node_id: string, ...depends_on: string[]) => ({
  node_id,
  executor: 'http',
  with: { request: { method: 'POST', url: 'http://127.0.0.1:9/' } },
  idempotent: true,
  depends_on,
})
const gate = (approvals: object, ...guards: string[]) => ({
  gate_id: 'go',
  policy: { approvals: { groups: [{ group: 'netops', min: 1 }], ...approvals } },
  guards,
})
type Name = keyof Platform['people']

const begin = async (graph: object) => {
  const { operation_id } = await p.startOperation(graph)
  const path = `/v1/operations/${operation_id}`
  const gateNow = async () => must(await p.as('vic').get(`${path}/gates/go`), 200).body
  const decide = async (who: Name, verb: 'approve' | 'reject' = 'approve') => {
    const seen = await p.seen(operation_id, 'go', who)
    const body = verb === 'approve' ? seen : { round: seen.round, comment: 'no' }
    return must(await p.as(who).post(`${path}/gates/go/${verb}`, body), 200, 202).body
  }
  return {
    operation_id,
    path,
    gateNow,
    decide,
    waits: (round = 1) =>
      until(
        async () => {
          const now = await gateNow()
          return now.status === 'waiting' && now.round === round
        },
        { what: `the gate waiting in round ${round}` },
      ),
    reaches: (status: string) =>
      until(async () => must(await p.as('vic').get(path), 200).body.status === status, {
        timeout_ms: 30_000,
        what: status,
      }),
    nodeIs: (node_id: string, state: string) =>
      until(async () => must(await p.as('vic').get(`${path}/nodes/${node_id}`), 200).body.state === state, {
        timeout_ms: 30_000,
        what: `${node_id} ${state}`,
      }),
    patch: async (changes: object[], who: Name) => {
      const { plan_revision } = must(await p.as('vic').get(path), 200).body
      const proposed = must(
        await p.as('olga').post(`${path}/patches`, { base_revision: plan_revision, changes, reason }),
        201,
        202,
      ).body
      must(
        await p.as(who).post(`${path}/patches/${proposed.patch_id}/approve`, { reviewed_digest: proposed.digest }),
        200,
        202,
      )
      return proposed.patch_id as string
    },
    retry: async (node_id: string) =>
      must(await p.as('olga').post(`${path}/nodes/${node_id}/retry`, { reason }), 200, 202),
  }
}

const keys = async () => must(await p.as('vic').get('/v1/evidence/keys'), 200).body.keys
const chainOf = async (operation_id: string) => {
  const path = `/v1/operations/${operation_id}`
  const file = must(await p.as('aud').get(`${path}/evidence?format=jsonl`), 200).text
  const { records } = must(await p.as('vic').get(`${path}/evidence?limit=1000`), 200).body
  const { plan_hash, evidence_head } = must(await p.as('vic').get(path), 200).body
  return {
    records: records as EvidenceRecord[],
    file,
    verified: verifyEvidence(Buffer.from(file), await keys()),
    inBrowser: await verifyChain({ operation_id, records, plan_hash, head: evidence_head }),
  }
}

/** The verdict on a chain that a holder of the key has changed, relinked and signed again. */
const forge = async (
  { records, file }: { records: EvidenceRecord[]; file: string },
  change: (record: EvidenceRecord, all: EvidenceRecord[]) => EvidenceRecord | undefined,
) => {
  let prev_hash = records[0]?.prev_hash ?? ''
  const changed = records.flatMap((record) => change(structuredClone(record), records) ?? [])
  const linked = changed.map((record, i) => {
    const { hash: _, ...rest } = { ...record, seq: i + 1, prev_hash }
    prev_hash = digest(rest)
    return { ...rest, hash: prev_hash }
  })
  const { kid: _kid, signature: _signature, ...head } = JSON.parse(file.trimEnd().split('\n').at(-1) ?? '')
  const made = exportEvidence(linked, { ...head, seq: linked.length, hash: prev_hash }, p.deps.trust.evidence_key)
  const verified = verifyEvidence(Buffer.from(made), await keys())
  const inBrowser = await verifyChain({
    operation_id: head.operation_id,
    records: linked as never,
    plan_hash: head.plan_hash,
    head: { seq: linked.length, hash: prev_hash },
  })
  expect('fault' in inBrowser).toBe('fault' in verified)
  return 'fault' in verified ? verified.fault.why : verified
}
const inSubject = (record: EvidenceRecord, more: Partial<EvidenceSubject>): EvidenceRecord => ({
  ...record,
  subject: { ...record.subject, ...more },
})

describe('evidence', () => {
  it('names the votes and rules behind the operation, and every forgery of them', async () => {
    const o = await begin({ nodes: [noop('a'), noop('b', 'a')], gates: [gate({ quorum: 2 }, 'b')] })
    await o.waits()
    await o.decide('eva')
    await o.decide('ada')
    await o.reaches('succeeded')
    const chain = await chainOf(o.operation_id)
    const held = { counted: true, decisions: 1, starts: 1, ended: { status: 'succeeded' } }
    expect(chain.verified).toMatchObject({ records: chain.records.length, ...held })
    expect(chain.inBrowser).toMatchObject({ records: chain.records.length, ...held })
    const start = chain.records.find(({ kind }) => kind === 'start')
    expect(start?.subject).toMatchObject({
      authority: 1,
      requester: p.people.pia.id,
      starter: p.people.olga.id,
      rules: [{ gate_id: 'go', quorum: 2, groups: [{ group: 'netops', min: 1 }], four_eyes: true }],
    })

    const isVote = ({ kind }: EvidenceRecord) => kind === 'vote'
    expect(chain.verified).toMatchObject({ signed: 0, unsigned: chain.records.filter(isVote).map(({ seq }) => seq) })
    const by = (name: Name) => ({ kind: 'user', id: p.people[name].id, name }) as const
    expect(await forge(chain, (record) => record)).toMatchObject(held)
    // No votes; one too few; one vote twice.
    expect(await forge(chain, (record) => (isVote(record) ? undefined : record))).toMatch(/approved by 0 of 2 votes/)
    expect(await forge(chain, (r) => (isVote(r) && r.actor.name === 'eva' ? undefined : r))).toMatch(/by 1 of 2 votes/)
    expect(
      await forge(chain, (r) => (isVote(r) ? { ...inSubject(r, { voter: p.people.eva.id }), actor: by('eva') } : r)),
    ).toMatch(/by 1 of 2 votes/)
    // The starter as voter.
    expect(
      await forge(chain, (r) =>
        isVote(r) && r.actor.name === 'eva' ? { ...inSubject(r, { voter: p.people.olga.id }), actor: by('olga') } : r,
      ),
    ).toMatch(/by 1 of 2 votes \(olga takes part in the operation\)/)
    // A vote for something else, of another round, of another group, cast by another person.
    for (const more of [{ digest: 'x' }, { round: 7 }, { decision: 'reject' as const }])
      expect(await forge(chain, (r) => (isVote(r) ? inSubject(r, more) : r))).toMatch(/by 0 of 2 votes/)
    expect(await forge(chain, (r) => (isVote(r) ? inSubject(r, { group: 'storage' }) : r))).toMatch(
      /by 0 of 2 votes \(eva is in none of its groups, ada is in none/,
    )
    expect(await forge(chain, (r) => (isVote(r) ? { ...r, actor: by('ivo') } : r))).toMatch(/cast by another person/)
    // A gate without recorded rules; a node on another digest, before the decision, or without fresh proof of voters.
    expect(await forge(chain, (r) => (r.kind === 'gate_decision' ? inSubject(r, { id: 'gone' }) : r))).toMatch(
      /no record gives the rules/,
    )
    const began = (more: object) => (r: EvidenceRecord) =>
      r.subject.gates ? inSubject(r, { gates: r.subject.gates.map((g) => ({ ...g, ...more })) }) : r
    expect(await forge(chain, began({ digest: 'x' }))).toMatch(/no earlier record approves on that digest/)
    expect(await forge(chain, began({ at: '2020-01-01T00:00:00.000000Z' }))).toMatch(/no earlier record approves/)
    expect(await forge(chain, began({ standing_at: null }))).toMatch(/voters were not verified just before/)
    expect(await forge(chain, began({ standing_at: '2020-01-01T00:00:00.000000Z' }))).toMatch(
      /not verified just before/,
    )
    // Weaker rules later on change nothing.
    const rules = [{ ...start?.subject.rules?.[0], quorum: 1 }] as never
    expect(
      await forge(chain, (r) => (isVote(r) ? (r.actor.name === 'eva' ? inSubject(r, { rules }) : undefined) : r)),
    ).toMatch(/by 1 of 2 votes/)
    // Cut where it could be signed: it holds, but is not complete.
    expect(await forge(chain, (r) => (r.kind === 'end' ? undefined : r))).toMatchObject({ ended: null, counted: true })
    // A chain without the members that an older build did not write is reported for that.
    expect(
      await forge(chain, (r) =>
        r.kind === 'start' ? { ...r, subject: { type: r.subject.type, id: r.subject.id } } : r,
      ),
    ).toMatchObject({ counted: false, decisions: 0 })
  }, 90_000)

  it('counts no vote of a person who had changed the inputs behind the gate', async () => {
    const o = await begin({ nodes: [noop('a')], gates: [gate({}, 'a')] })
    await o.waits()
    const change = { type: 'set_input', node_id: 'a', payload: { input_overrides: { delay_ms: 1 } }, reason }
    must(await p.as('both').post(`${o.path}/interventions`, change), 201, 202)
    await o.waits(2)
    await o.decide('eva')
    await o.reaches('succeeded')
    const chain = await chainOf(o.operation_id)
    expect(chain.verified).toMatchObject({ counted: true, decisions: 1, starts: 1 })
    const { id, name } = p.people.both
    const own = (record: EvidenceRecord): EvidenceRecord =>
      record.kind === 'vote'
        ? inSubject({ ...record, actor: { ...record.actor, id, name } }, { voter: id })
        : { ...record, actor: record.actor.name === 'eva' ? { ...record.actor, id, name } : record.actor }
    expect(await forge(chain, own)).toMatch(/both takes part in the operation/)
  }, 60_000)

  it('counts a vote by delegation and that of the person who delegated as one', async () => {
    const o = await begin({
      nodes: [noop('a')],
      gates: [gate({ quorum: 2, groups: [{ group: 'netops', min: 2 }] }, 'a')],
    })
    await o.waits()
    const until = new Date(Date.now() + 3_600_000).toISOString()
    const payload = { gate_id: 'go', to_user: p.people.ivo.id, until }
    must(await p.as('both').post(`${o.path}/interventions`, { type: 'delegate_gate', payload, reason }), 201)
    await o.decide('ivo')
    await o.decide('eva')
    await o.reaches('succeeded')
    const chain = await chainOf(o.operation_id)
    for (const checked of [chain.verified, chain.inBrowser])
      expect(checked).toMatchObject({ counted: true, decisions: 1, starts: 1 })
    const { id, name } = p.people.both
    const own = (record: EvidenceRecord): EvidenceRecord =>
      record.kind === 'vote' && record.actor.name === 'eva'
        ? inSubject({ ...record, actor: { ...record.actor, id, name } }, { voter: id })
        : record
    expect(await forge(chain, own)).toMatch(/by 1 of 2 votes \(ivo voted in the place of someone/)
  }, 60_000)

  it('of an older build verifies as before, and its missing parts are named', async () => {
    const o = await begin({ nodes: [noop('a')], gates: [gate({}, 'a')] })
    await o.waits()
    await o.decide('eva')
    await o.reaches('succeeded')
    const chain = await chainOf(o.operation_id)
    /** As records were written before they stated by whose right. */
    const older = ({ kind, subject, ...record }: EvidenceRecord): EvidenceRecord => {
      const { type, id, round, status, digest: decided, began_at, gates } = subject
      const bound = gates?.map(({ gate_id, round, digest }) => ({ gate_id, round, digest }))
      const said = kind === 'gate_decision' ? { round, status, digest: decided } : {}
      return { kind, ...record, subject: { type, id, ...said, ...(bound && { began_at, gates: bound }) } as never }
    }
    expect(await forge(chain, older)).toMatchObject({ counted: false, decisions: 0, ended: { status: null } })
    expect(await forge(chain, (r) => (r.kind === 'gate_decision' ? undefined : older(r)))).toMatch(
      /"a" started behind the gate "go", which no earlier record approves on that digest/,
    )
  }, 90_000)

  it('is not ended while the operation runs', async () => {
    const o = await begin({ nodes: [noop('a')], gates: [gate({}, 'a')] })
    await o.waits()
    expect((await chainOf(o.operation_id)).verified).toMatchObject({ ended: null, counted: true })
    must(await p.as('olga').post(`${o.path}/cancel`, { reason }), 200, 202)
    await o.reaches('cancelled')
    expect((await chainOf(o.operation_id)).verified).toMatchObject({ ended: { status: 'cancelled' } })
  }, 90_000)

  it('verifies if an approval was withdrawn, its voter was lost, or the gate was bypassed', async () => {
    const o = await begin({ nodes: [noop('a')], gates: [gate({ quorum: 2 }, 'a')] })
    await o.waits()
    must(await p.as('olga').post(`${o.path}/pause`, { reason }), 200, 202)
    await o.decide('eva')
    await o.decide('ada')
    const taken = await p.as('eva').post(`${o.path}/gates/go/reject`, { round: 1, comment: 'no' })
    expect(must(taken, 200, 202).body).toMatchObject({ status: 'rejected', round: 2 })
    must(await p.as('olga').post(`${o.path}/resume`, { reason }), 200, 202)
    await o.nodeIs('a', 'failed')
    await o.retry('a')
    await o.waits(3)
    must(await p.as('olga').post(`${o.path}/pause`, { reason }), 200, 202)
    await o.decide('eva')
    await o.decide('ada')
    p.people.eva.disabled = true
    must(await p.as('olga').post(`${o.path}/resume`, { reason }), 200, 202)
    await o.waits(4)
    delete p.people.eva.disabled
    await o.decide('both')
    await o.reaches('succeeded')
    const { verified, records } = await chainOf(o.operation_id)
    expect(verified).toMatchObject({ counted: true, decisions: 3, starts: 1, ended: { status: 'succeeded' } })
    const chain = await chainOf(o.operation_id)
    // The void vote cannot be kept in place of the one that followed.
    const last = records.findLast(({ kind, actor }) => kind === 'vote' && actor.name === 'both')
    expect(await forge(chain, (r) => (r.seq === last?.seq ? undefined : r))).toMatch(/by 1 of 2 votes/)

    const glass = await begin({ nodes: [noop('a')], gates: [gate({}, 'a')] })
    await glass.waits()
    const seen = await p.seen(glass.operation_id, 'go', 'both')
    must(await p.as('both').post(`${glass.path}/gates/go/approve`, { ...seen, break_glass: { reason } }), 200, 202)
    await glass.reaches('succeeded_with_exceptions')
    expect((await chainOf(glass.operation_id)).verified).toMatchObject({ decisions: 1, starts: 1 })
  }, 120_000)
})

describe('a gate that was used before a patch changes what it releases', () => {
  const add = (node_id: string, after: string) => ({ op: 'add_node', node: noop(node_id, after) })

  it('passes those changes by the votes for the patch, and only by these', async () => {
    const o = await begin({ nodes: [failing('b')], gates: [gate({}, 'b')] })
    await o.waits()
    await o.decide('eva')
    await o.nodeIs('b', 'failed')
    const before = await o.gateNow()
    const patch_id = await o.patch([add('x', 'b')], 'ada')
    const after = await o.gateNow()
    expect(after).toMatchObject({ status: 'approved', round: 2, decided: { by: { name: 'ada' } } })
    expect(after.digest).not.toBe(before.digest)
    await o.retry('b')
    await o.nodeIs('b', 'failed')
    const { events: all } = must(await p.as('vic').get(`${o.path}/timeline?types=gate.approved`), 200).body
    // This excludes the patch's own gate, which guards the nodes that it adds.
    const events = all.filter(({ gate_id }: { gate_id: string }) => gate_id === 'go')
    expect(events).toMatchObject([{ data: { round: 1 } }, { patch_id, data: { round: 2, digest: after.digest } }])
    must(await p.as('olga').post(`${o.path}/cancel`, { reason }), 200, 202)
    await o.reaches('cancelled')

    const chain = await chainOf(o.operation_id)
    expect(chain.verified).toMatchObject({ counted: true, decisions: 3, starts: 2 })
    const stands = ({ subject }: EvidenceRecord) => subject.patch_id !== undefined && subject.id === 'go'
    expect(await forge(chain, (r) => (stands(r) ? undefined : r))).toMatch(/no earlier record approves on that digest/)
    expect(await forge(chain, (r) => (stands(r) ? inSubject(r, { votes: [] }) : r))).toMatch(/by 0 of 1 votes/)
    const forEva = [{ voter: p.people.eva.id, group: 'netops' }]
    expect(await forge(chain, (r) => (stands(r) ? inSubject(r, { votes: forEva }) : r))).toMatch(
      /a vote that no one gave for its patch/,
    )
    const patchVote = ({ kind, subject }: EvidenceRecord) => kind === 'vote' && subject.type === 'patch'
    expect(await forge(chain, (r) => (patchVote(r) ? undefined : r))).toMatch(/approved by no one but its proposer/)
    const proposer = { voter: p.people.olga.id }
    expect(
      await forge(chain, (r) =>
        patchVote(r) ? { ...inSubject(r, proposer), actor: { ...r.actor, id: p.people.olga.id } } : r,
      ),
    ).toMatch(/approved by no one but its proposer/)
    expect(await forge(chain, (r) => (patchVote(r) ? inSubject(r, { groups: ['storage'] }) : r))).toMatch(
      /approved against the rules of a gate that it touches/,
    )
  }, 90_000)

  it('asks again when a voter for the patch loses the right', async () => {
    const o = await begin({ nodes: [failing('b')], gates: [gate({}, 'b')] })
    await o.waits()
    await o.decide('eva')
    await o.nodeIs('b', 'failed')
    await o.patch([add('x', 'b')], 'ada')
    p.people.ada.disabled = true
    await p.query('update operations.gates set standing_at = null where operation_id = $1', [o.operation_id])
    await o.retry('b')
    await o.waits(3)
    delete p.people.ada.disabled
    must(await p.as('olga').post(`${o.path}/cancel`, { reason }), 200, 202)
    await o.reaches('cancelled')
    expect((await chainOf(o.operation_id)).verified).toMatchObject({ counted: true, starts: 1 })
  }, 90_000)

  it('continues with the remaining votes for the patch if one of them is lost', async () => {
    const o = await begin({ nodes: [failing('b')], gates: [gate({ quorum: 2 }, 'b')] })
    await o.waits()
    await o.decide('eva')
    await o.decide('both')
    await o.nodeIs('b', 'failed')
    const patch_id = await o.patch([add('x', 'b')], 'ada')
    const { digest: reviewed_digest } = must(await p.as('vic').get(`${o.path}/patches/${patch_id}`), 200).body
    must(await p.as('eva').post(`${o.path}/patches/${patch_id}/approve`, { reviewed_digest }), 200, 202)
    expect(await o.gateNow()).toMatchObject({ status: 'approved', round: 2 })
    p.people.ada.disabled = true
    await p.query('update operations.gates set standing_at = null where operation_id = $1', [o.operation_id])
    await o.retry('b')
    await o.waits(3)
    delete p.people.ada.disabled
    await o.decide('both')
    await until(async () => (await o.gateNow()).status === 'approved', { what: 'the gate approved' })
    must(await p.as('olga').post(`${o.path}/cancel`, { reason }), 200, 202)
    await o.reaches('cancelled')
    const chain = await chainOf(o.operation_id)
    expect(chain.verified).toMatchObject({ counted: true, decisions: 4 })
    // Eva's vote for the patch carries over to round 3 and completes the quorum there.
    const voted = ({ kind, subject, actor }: EvidenceRecord) =>
      kind === 'vote' && subject.type === 'patch' && actor.name === 'eva'
    expect(await forge(chain, (r) => (voted(r) ? undefined : r))).toMatch(/by 1 of 2 votes|against the rules/)
    const reopened = ({ subject }: EvidenceRecord) => subject.round === 3 && subject.kept !== undefined
    expect(await forge(chain, (r) => (reopened(r) ? inSubject(r, { kept: [] }) : r))).toMatch(/by 1 of 2 votes/)
  }, 90_000)

  it('asks its external service again before an added node starts', async () => {
    const check = { gate_id: 'go', policy: { check: { service: 'demo-control-plane', timeout_s: 600 } }, guards: ['b'] }
    const o = await begin({ nodes: [failing('b'), noop('z')], gates: [check] })
    await o.waits()
    const answer = async (round: number) =>
      must(
        await p
          .service('demo-control-plane')
          .post(`/internal/v1/workflow-signals/${o.operation_id}`, {
            signal_id: crypto.randomUUID(),
            type: 'external_check_result',
            body: { gate_id: 'go', round, verdict: 'passed' },
          }),
        202,
      )
    await answer(1)
    await o.nodeIs('b', 'failed')
    await o.patch([{ op: 'add_node', node: { ...noop('x', 'b'), join: 'settled' } }], 'ada')
    expect(await o.gateNow()).toMatchObject({ status: 'armed', round: 2, guards: ['b', 'x'] })
    must(
      await p.as('olga').post(`${o.path}/interventions`, { type: 'skip', node_id: 'b', payload: {}, reason }),
      200,
      201,
      202,
    )
    await o.waits(2)
    await answer(2)
    await o.reaches('succeeded_with_exceptions')
    expect((await chainOf(o.operation_id)).verified).toMatchObject({ counted: true, starts: 2 })
  }, 90_000)
})
