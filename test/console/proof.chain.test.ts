import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { type ChainRecord, verifyChain } from '../../apps/shared/contracts/client/browser-chain.ts'
import { canonicalJson, digest } from '../../apps/shared/data/digest.ts'
import { exportEvidence, verifyEvidence } from '../../apps/shared/evidence/verify.ts'

const operation_id = '0195f0c2-0000-7000-8000-000000000001'
const plan_hash = digest('the plan')

type Record = ChainRecord & { v: 1; statement: string }
const chainOf = (facts: readonly object[]): Record[] => {
  const records: Record[] = []
  for (const [index, fact] of facts.entries()) {
    const seq = index + 1
    const prev_hash = records.at(-1)?.hash ?? plan_hash
    const rest = { v: 1 as const, operation_id, seq, statement: `step ${seq}`, ...fact, prev_hash }
    records.push({ ...rest, hash: digest(rest) })
  }
  return records
}
const chained = (count: number): Record[] => chainOf(Array.from({ length: count }, () => ({})))
const headOf = (records: readonly Record[]) => ({ seq: records.length, hash: records.at(-1)?.hash ?? plan_hash })
const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: 'k' }]
const fileOf = (records: readonly Record[], ...approved: object[]) => {
  const head = { type: 'head' as const, operation_id, plan_hash, made_at: '2026-01-31T12:00:00Z', ...headOf(records) }
  const file = exportEvidence(records, head, { kid: 'k', private_key: privateKey })
  return Buffer.from([file, ...approved.map((subject) => `${canonicalJson({ approved: subject })}\n`)].join(''))
}
const check = (records: readonly Record[], head = headOf(records)) =>
  verifyChain({ operation_id, records, plan_hash, head })

describe('the check of evidence in the browser', () => {
  it('agrees with the verification of the signed file, on a whole chain and on every broken one', async () => {
    const whole = chained(5)
    expect(await check(whole)).toMatchObject({ records: 5, hash: whole[4]?.hash, counted: false, ended: null })
    expect(verifyEvidence(fileOf(whole), keys)).toMatchObject({ records: 5 })

    const changed = whole.with(2, { ...(whole[2] as Record), statement: 'another' })
    const rehashed = whole.with(2, { ...(whole[2] as Record), hash: digest('another') })
    const [a, b, c, d, e] = whole as [Record, Record, Record, Record, Record]
    for (const [broken, seq, code] of [
      [changed, 3, 'hash'],
      [rehashed, 3, 'hash'],
      [[a, b, d, e], 3, 'number'],
      [[a, c, b, d, e], 2, 'number'],
      [[a, b, { ...c, operation_id: 'another' }, d, e], 3, 'operation'],
    ] as const) {
      expect(await check(broken)).toMatchObject({ fault: { seq, code } })
      expect(verifyEvidence(fileOf(broken), keys)).toMatchObject({ fault: { line: seq, what: 'record' } })
    }
  })

  it('finds a chain that was replaced from some record on, cut, or started from another plan', async () => {
    const whole = chained(4)
    const forged = chained(4).map((record, index) => {
      if (index < 2) return record
      const { hash: _, ...rest } = { ...record, statement: 'forged', prev_hash: 'sha256:0' }
      return { ...rest, hash: digest(rest) }
    })
    expect(await check(forged)).toMatchObject({ fault: { seq: 3, code: 'link' } })
    expect(await check(whole.slice(0, 3), headOf(whole))).toMatchObject({ fault: { seq: 0, code: 'head' } })
    expect(await check(whole, { seq: 4, hash: digest('another') })).toMatchObject({ fault: { seq: 0, code: 'head' } })
    const elsewhere = { operation_id, records: whole, plan_hash: digest('another plan'), head: headOf(whole) }
    expect(await verifyChain(elsewhere)).toMatchObject({ fault: { seq: 1, code: 'link' } })
    expect(await check([], { seq: 0, hash: '' })).toMatchObject({ records: 0, hash: plan_hash })
  })
})

describe('the programs that agents ran', () => {
  const [approved, other] = ['a'.repeat(64), 'b'.repeat(64)]
  const from = 'nodes/plan/outputs/preview'
  const subject = {
    gate_id: 'go',
    releases: [
      { node_id: 'apply', name: 'Apply', inputs: { job: 'opentofu.apply', inputs: { preview: { $from: from } } } },
    ],
    bound_outputs: [{ pointer: from, value: { plan: { sha256: other, content_sha256: approved } } }],
  }
  const at = '2026-01-31T12:00:00.000000Z'
  const gate = { gate_id: 'go', round: 1, digest: digest(subject), at, standing_at: at }
  const decided = { type: 'gate', id: 'go', round: 1, status: 'approved', digest: gate.digest }
  const ran = (content_sha256: string | undefined, id = 'apply') =>
    chainOf([
      { kind: 'gate_decision', at, actor: { kind: 'user' }, subject: decided },
      {
        ...{ kind: 'node_result', at, actor: { kind: 'engine' } },
        subject: {
          ...{ type: 'node', id, began_at: at, gates: [gate] },
          executed: { tool: 'tofu', exit: 0, ...(content_sha256 && { content_sha256 }) },
        },
      },
    ])

  it('are told by the file and by the browser, and each is part of the chain', async () => {
    const records = ran(approved)
    const executed = [{ id: 'apply', tool: 'tofu', exit: 0, content_sha256: approved, digests: [gate.digest] }]
    expect(await check(records)).toMatchObject({ executed })
    expect(verifyEvidence(fileOf(records), keys)).toMatchObject({ executed })
    const [first, last] = records as [Record, Record & { subject: object }]
    const edited = [first, { ...last, subject: { ...last.subject, executed: { tool: 'tofu', exit: 1 } } }]
    expect(verifyEvidence(fileOf(edited), keys)).toMatchObject({ fault: { line: 2, what: 'record' } })
    expect(verifyEvidence(fileOf(chained(2)), keys)).toMatchObject({ executed: [] })
  })

  it('carried out the saved plan that their approval shows, or the file names the node', () => {
    expect(verifyEvidence(fileOf(ran(approved), subject), keys)).toMatchObject({ shown: [{ gate_id: 'go' }] })
    expect(verifyEvidence(fileOf(ran(other), subject), keys)).toMatchObject({
      fault: { line: 4, why: 'the node "apply" ran another saved plan than the one that this approval shows' },
    })
    // Without the subject nobody can tell; a run without a plan, and a node with other inputs, have none to compare.
    expect(verifyEvidence(fileOf(ran(other)), keys)).toMatchObject({ records: 2 })
    expect(verifyEvidence(fileOf(ran(undefined), subject), keys)).toMatchObject({ records: 2 })
    expect(verifyEvidence(fileOf(ran(other, 'check'), subject), keys)).toMatchObject({ records: 2 })
  })
})
