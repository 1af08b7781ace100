import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Ballot, VoteSignature } from '../../apps/shared/contracts/operations/gates.ts'
import { exportEvidence, type Owns, verifyEvidence } from '../../apps/shared/evidence/verify.ts'
import { challengeOf } from '../../apps/shared/evidence/vote-signature.ts'
import { chainEvidence } from '../../db/operations/facts/state.ts'
import type { EvidenceRecord } from '../../db/operations/tables/evidence.ts'
import { ANYONES, type Authenticator, type Bend } from '../support/authenticator.ts'
import { gated, must, type Platform, startPlatform } from './support/platform.ts'

/** federation.md 8: an approval that a passkey signs, and what anyone can verify about it afterward. */

let p: Platform
let eva: Authenticator
beforeAll(async () => {
  p = await startPlatform()
  eva = p.enrol(p.people.eva.id)
})
afterAll(() => p.stop())

const SIGNED = { approvals: { groups: [{ group: 'netops', min: 1 }], signature: 'required' } }
const waiting = async (policy: object = SIGNED) => {
  const { operation_id } = await p.startOperation(gated(policy as Record<string, unknown>))
  await p.openGate(operation_id, 'go')
  const path = `/v1/operations/${operation_id}`
  const seen = await p.seen(operation_id, 'go')
  const ballot = async (changes: object = {}, who: 'eva' | 'ada' = 'eva') => {
    const body = { type: 'gate', id: 'go', round: seen.round, digest: seen.reviewed_digest, ...changes }
    const reply = must(await p.as(who).post(`${path}/ballots`, body), 200).body
    return reply as { ballot: Ballot; credential_ids: string[] }
  }
  const approve = (assertion?: object, who: 'eva' | 'ada' = 'eva', options = {}) =>
    p.as(who).post(`${path}/gates/go/approve`, { ...seen, ...(assertion && { assertion }) }, options)
  const sign = async (key: Authenticator, bend?: Bend, changes?: object) =>
    key.assert(challengeOf((await ballot(changes)).ballot), bend)
  const votes = async () => (await p.as('eva').get(`${path}/gates/go`)).body.votes as unknown[]
  return { operation_id, path, seen, ballot, approve, sign, votes }
}

const evidenceOf = async (path: string) => (await p.as('vic').get(`${path}/evidence`)).body.records as EvidenceRecord[]

/** The chain as a server could have written it, with other content: its hashes and its head are right. */
const verifyWith = (
  records: EvidenceRecord[],
  change: (signature: VoteSignature) => VoteSignature | undefined,
  owns?: Owns,
) => {
  const [first] = records
  if (!first) throw new Error('there are no records')
  const facts = records.map((record) => {
    const { signature, ...subject } = record.subject
    const changed = signature && change(signature)
    return { ...record, subject: { ...subject, ...(changed && { signature: changed }) } }
  })
  const chain = chainEvidence(first.operation_id, { seq: 0, hash: first.prev_hash }, facts)
  const { seq, hash } = chain.at(-1) as EvidenceRecord
  const head = {
    type: 'head',
    operation_id: first.operation_id,
    seq,
    hash,
    plan_hash: first.prev_hash,
    made_at: first.at,
  } as const
  const lines = chain.map((record) => ({ v: 1, ...record }))
  const jwk = createPublicKey(p.evidence_key.private_key).export({ format: 'jwk' })
  const keys = [{ ...jwk, kid: p.evidence_key.kid }] as JsonWebKey[]
  return verifyEvidence(Buffer.from(exportEvidence(lines, head, p.evidence_key)), keys, owns)
}

describe('a gate that requires a passkey', () => {
  it('refuses an approval without one, and names the next step; a rejection and a dry run need none', async () => {
    const { path, seen, approve } = await waiting()
    const refused = await approve()
    expect(refused).toMatchObject({ status: 403, body: { code: 'signature_required' } })
    expect(refused.body.hint).toContain('console')
    expect((await p.as('eva').post(`${path}/gates/go/approve`, { ...seen, dry_run: true })).status).toBe(200)
    must(await p.as('eva').post(`${path}/gates/go/reject`, { round: seen.round, comment: 'no' }), 200, 202)
  })

  it.each([[['pwd', 'otp', 'mfa']], [['fed', 'mfa']], [['hwk', 'mfa']], [['pwd', 'otp', 'hwk', 'mfa', 'fed']]])(
    'accepts no sign-in as a signature, however strong it was (%j)',
    async (amr) => {
      const { path, seen, votes } = await waiting()
      const signed_in = { ...p.people.eva, amr }
      const approve = (more: object) => p.as(signed_in).post(`${path}/gates/go/approve`, { ...seen, ...more })
      expect(await approve({})).toMatchObject({ status: 403, body: { code: 'signature_required' } })
      for (const code of [{ totp: '287082' }, { assertion: { totp: '287082' } }, { assertion: '287082' }])
        expect(await approve(code)).toMatchObject({ status: 400, body: { code: 'schema_violation' } })
      expect(await votes()).toEqual([])
    },
  )

  it.each(['ES256', 'EdDSA', 'RS256'] as const)(
    'is approved by it, and the chain proves it offline (%s)',
    async (kind) => {
      const key = p.enrol(p.people.ada.id, kind)
      const { path, approve, ballot, votes } = await waiting()
      const { ballot: own, credential_ids } = await ballot({}, 'ada')
      expect(credential_ids).toContain(key.credential_id)
      const assertion = key.assert(challengeOf(own))
      const options = { key: `signed-by-${kind}-0123456789` }
      const done = await approve(assertion, 'ada', options)
      expect(done).toMatchObject({ status: 200, body: { status: 'approved' } })
      // A repeat of the same request is answered, not judged again.
      expect(await approve(assertion, 'ada', options)).toMatchObject({ status: 200, body: { status: 'approved' } })
      expect(await votes()).toHaveLength(1)
      const records = await evidenceOf(path)
      const vote = records.find((record) => record.kind === 'vote')
      expect(vote?.subject.signature).toMatchObject({ ballot: own, credential_id: key.credential_id, jwk: key.jwk() })
      expect(verifyWith(records, (signature) => signature)).toMatchObject({ signed: 1, unsigned: [], decisions: 1 })
    },
  )

  it('accepts a signature where none is required', async () => {
    const { path, approve, sign } = await waiting({ approvals: { groups: [{ group: 'netops', min: 1 }] } })
    must(await approve(await sign(eva)), 200, 202)
    expect(verifyWith(await evidenceOf(path), (signature) => signature)).toMatchObject({ signed: 1 })
  })

  it('counts an answer once, in time', async () => {
    const policy = { approvals: { ...SIGNED.approvals, quorum: 2 } }
    const { operation_id, approve, sign, votes } = await waiting(policy)
    const assertion = await sign(eva)
    const expired = { status: 409, body: { code: 'challenge_expired' } }
    const raced = await Promise.all([1, 2, 3].map(() => approve(assertion)))
    const [won, ...lost] = raced.sort((a, b) => a.status - b.status)
    expect(won?.status).toBe(200)
    // A late request finds the authenticator's counter advanced, or the ballot spent.
    for (const one of lost) expect(['assertion_invalid', 'challenge_expired']).toContain(one.body.code)
    expect(await votes()).toHaveLength(1)
    const late = await sign(eva)
    await p.query(`update operations.ballots set expires_at = clock_timestamp() where ballot ->> 'operation_id' = $1`, [
      operation_id,
    ])
    expect(await approve(late)).toMatchObject(expired)
    expect(await approve(eva.assert(Buffer.alloc(32, 1).toString('base64url')))).toMatchObject(expired)
  })

  it.each<[string, Bend, object]>([
    ['another origin', { origin: 'https://evil.test' }, {}],
    ['another relying party', { rp_id: 'evil.test' }, {}],
    ['no verified person', { flags: 1 }, {}],
    ['another signature', { tamper: true }, {}],
    ['a counter that goes back', { counter: 0 }, {}],
    ['another digest', {}, { digest: `sha256:${'0'.repeat(64)}` }],
    ['another gate', {}, { id: 'other' }],
    ['another round', {}, { round: 7 }],
    ['a patch', {}, { type: 'patch' }],
  ])('refuses %s, and records no vote', async (_name, bend, changes) => {
    const { approve, sign, votes } = await waiting()
    expect(await approve(await sign(eva, bend, changes))).toMatchObject({
      status: 403,
      body: { code: 'assertion_invalid' },
    })
    expect(await votes()).toEqual([])
  })

  it('refuses the passkey and the ballot of another person', async () => {
    const { approve, ballot, sign } = await waiting()
    const ada = p.enrol(p.people.ada.id)
    const refused = { status: 403, body: { code: 'assertion_invalid' } }
    expect(await approve(await sign(ada))).toMatchObject(refused)
    expect(await approve(eva.assert(challengeOf((await ballot({}, 'ada')).ballot)))).toMatchObject(refused)
    expect(await approve(ada.assert(challengeOf((await ballot({}, 'ada')).ballot)), 'eva')).toMatchObject(refused)
  })
})

describe('a patch that touches such a gate', () => {
  const proposed = async () => {
    const { operation_id, path, seen } = await waiting()
    const changes = [{ op: 'update_node', node_id: 'behind', set: { with: { delay_ms: 1 } } }]
    const made = await p.as('olga').post(`${path}/patches`, { base_revision: 1, reason: 'a test', changes })
    const { patch_id: id, digest, required } = must(made, 201).body
    const ballot = async (changed: object = {}, who: 'eva' | 'ada' = 'eva') => {
      const body = { type: 'patch', id, round: null, digest, ...changed }
      return challengeOf(must(await p.as(who).post(`${path}/ballots`, body), 200).body.ballot as Ballot)
    }
    const approve = (assertion?: object, options = {}) =>
      p.as('eva').post(`${path}/patches/${id}/approve`, { reviewed_digest: digest, assertion }, options)
    const votes = async () => (await p.as('eva').get(`${path}/patches/${id}`)).body.votes as unknown[]
    return { operation_id, path, seen, required, ballot, approve, votes }
  }
  const invalid = { status: 403, body: { code: 'assertion_invalid' } }

  it('requires a signature as the gate does, and records it: an altered one is named offline', async () => {
    const { path, required, ballot, approve, votes } = await proposed()
    expect(required).toMatchObject({ policies: ['go'], signature: 'required' })
    expect(await approve()).toMatchObject({ status: 403, body: { code: 'signature_required' } })
    const assertion = eva.assert(await ballot())
    const options = { key: 'signed-patch-0123456789' }
    must(await approve(assertion, options), 200, 202)
    // A repeat of the same request is answered; the same passkey answer in another request no longer counts.
    must(await approve(assertion, options), 200, 202)
    expect((await approve(assertion)).status).toBeGreaterThanOrEqual(400)
    expect(await votes()).toHaveLength(1)
    const records = await evidenceOf(path)
    expect(verifyWith(records, (signature) => signature)).toMatchObject({ signed: 1 })
    const digest = `sha256:${'0'.repeat(64)}`
    const moved = verifyWith(records, (s) => ({ ...s, ballot: { ...s.ballot, digest } }))
    expect(moved).toMatchObject({ fault: { why: expect.stringMatching(/names a different digest/) } })
    expect(verifyWith(records, (s) => ({ ...s, jwk: p.enrol('x').jwk() }))).toMatchObject({
      fault: { why: expect.stringMatching(/is not valid/) },
    })
  })

  it.each<[string, Bend, object]>([
    ['another signature', { tamper: true }, {}],
    ['another origin', { origin: 'https://evil.test' }, {}],
    ['no verified person', { flags: 1 }, {}],
    ['another digest', {}, { digest: `sha256:${'0'.repeat(64)}` }],
    ['another patch', {}, { id: '0195f0c2-0000-7000-8000-000000000001' }],
  ])('refuses %s, and records no vote', async (_name, bend, changed) => {
    const { ballot, approve, votes } = await proposed()
    expect(await approve(eva.assert(await ballot(changed), bend))).toMatchObject(invalid)
    expect(await votes()).toEqual([])
  })

  it('refuses a ballot of its gate, of another person, of another operation, and one that has expired', async () => {
    const { operation_id, seen, ballot, approve, votes } = await proposed()
    const of_gate = await ballot({ type: 'gate', id: 'go', round: seen.round, digest: seen.reviewed_digest })
    expect(await approve(eva.assert(of_gate))).toMatchObject(invalid)
    expect(await approve(eva.assert(await ballot({}, 'ada')))).toMatchObject(invalid)
    const elsewhere = await proposed()
    expect(await approve(eva.assert(await elsewhere.ballot()))).toMatchObject(invalid)
    const late = eva.assert(await ballot())
    await p.query(`update operations.ballots set expires_at = clock_timestamp() where ballot ->> 'operation_id' = $1`, [
      operation_id,
    ])
    expect(await approve(late)).toMatchObject({ status: 409, body: { code: 'challenge_expired' } })
    expect(await votes()).toEqual([])
  })
})

describe('the offline verifier', () => {
  it('asks whose key signed a vote, and names the vote of another key', async () => {
    const { path, approve, sign } = await waiting()
    must(await approve(await sign(eva)), 200)
    const records = await evidenceOf(path)
    const asked: unknown[] = []
    const known = verifyWith(
      records,
      (signature) => signature,
      (...one) => asked.push(one) > 0,
    )
    expect(known).toMatchObject({ signed: 1 })
    expect(asked).toEqual([[p.people.eva.id, eva.jwk(), 'eva']])
    const why = expect.stringMatching(/the vote of "eva" on "go" is by a key that the list of people does not name/)
    expect(
      verifyWith(
        records,
        (signature) => signature,
        () => false,
      ),
    ).toMatchObject({ fault: { why } })
  })

  const other = { digest: `sha256:${'0'.repeat(64)}` }
  it.each<[string, (signature: VoteSignature) => VoteSignature | undefined, RegExp]>([
    ['no signature', () => undefined, /did not sign with a passkey/],
    ['another key', (s) => ({ ...s, jwk: p.enrol('x').jwk() }), /vote of "eva" on "go" does not fit: it is not valid/],
    ['a key for which anyone can sign', (s) => ({ ...s, jwk: ANYONES }), /exponent 1, .*it proves no owner/],
    ['another digest in its ballot', (s) => ({ ...s, ballot: { ...s.ballot, ...other } }), /names a different digest/],
    ['another voter', (s) => ({ ...s, ballot: { ...s.ballot, user_id: 'x' } }), /names a different user_id/],
    ['another nonce', (s) => ({ ...s, ballot: { ...s.ballot, nonce: 'x' } }), /it belongs to another ballot/],
    ['another site', (s) => ({ ...s, ballot: { ...s.ballot, rp_id: 'evil.test' } }), /to another ballot/],
    ['changed data', (s) => ({ ...s, authenticator_data: changed(s.authenticator_data) }), /it is not valid/],
    [
      'a person who was not verified',
      (s) => ({ ...s, authenticator_data: bend(s.authenticator_data) }),
      /not verified/,
    ],
    ['no readable client data', (s) => ({ ...s, client_data: 'AAAA' }), /cannot be read/],
  ])('names a vote with %s', async (_name, change, why) => {
    const { path, approve, sign } = await waiting()
    must(await approve(await sign(eva)), 200)
    expect(verifyWith(await evidenceOf(path), change)).toMatchObject({ fault: { why: expect.stringMatching(why) } })
  })
})

const changed = (data: string): string => data.replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A'))
const bend = (data: string): string => {
  const bytes = Buffer.from(data, 'base64url')
  bytes[32] = 1
  return bytes.toString('base64url')
}
