import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { type ChainRecord, verifyChain } from '../../apps/shared/contracts/client/browser-chain.ts'
import { digest } from '../../apps/shared/data/digest.ts'
import { exportEvidence, verifyEvidence } from '../../apps/shared/evidence/verify.ts'

const operation_id = '0195f0c2-0000-7000-8000-000000000001'
const plan_hash = digest('the plan')

type Record = ChainRecord & { v: 1; statement: string }
const chained = (count: number): Record[] => {
  const records: Record[] = []
  for (let seq = 1; seq <= count; seq += 1) {
    const rest = {
      v: 1 as const,
      operation_id,
      seq,
      statement: `step ${seq}`,
      prev_hash: records.at(-1)?.hash ?? plan_hash,
    }
    records.push({ ...rest, hash: digest(rest) })
  }
  return records
}
const headOf = (records: readonly Record[]) => ({ seq: records.length, hash: records.at(-1)?.hash ?? plan_hash })
const check = (records: readonly Record[], head = headOf(records)) =>
  verifyChain({ operation_id, records, plan_hash, head })

describe('the check of evidence in the browser', () => {
  it('agrees with the verification of the signed file, on a whole chain and on every broken one', async () => {
    const whole = chained(5)
    expect(await check(whole)).toMatchObject({ records: 5, hash: whole[4]?.hash, counted: false, ended: null })
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const fileOf = (records: readonly Record[]) =>
      Buffer.from(
        exportEvidence(
          records,
          { type: 'head', operation_id, plan_hash, made_at: '2026-01-31T12:00:00Z', ...headOf(records) },
          { kid: 'k', private_key: privateKey },
        ),
      )
    const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: 'k' }]
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
