import { canonicalJson } from './canonical.ts'
import { digestOf } from './digest.ts'
import { createRecount, type Recounted } from './recount.ts'

/** The parts of an evidence record that checking needs; its hash covers the rest. */
export type ChainRecord = { seq: number; operation_id: string; prev_hash: string; hash: string }
export type Chain = {
  operation_id: string
  records: readonly ChainRecord[]
  /** What the first record must follow: the hash of the plan that was started. */
  plan_hash: string
  /** The operation's own statement about its chain, read separately from the records. */
  head: { seq: number; hash: string }
}
/** The first fault, and at which record (0: the chain as a whole). */
export type ChainFault = {
  seq: number
  code: 'number' | 'operation' | 'hash' | 'link' | 'head' | 'authority'
  expected: string
  found: string
}
export type ChainResult = ({ records: number; hash: string } & Recounted) | { fault: ChainFault }

/**
 * Recomputes a whole chain (operations.md 6.3): numbers from 1 without gaps, each hash as the digest of the record
 * without it, each link to the record before. The first links to the plan, the last to the head. Also checks by whose
 * right gates were passed (recount.ts). Uses WebCrypto for the browser; apps/shared/evidence/verify.ts checks files.
 */
export const verifyChain = async ({ operation_id, records, plan_hash, head }: Chain): Promise<ChainResult> => {
  let prev = plan_hash
  const recount = createRecount()
  for (const [index, record] of records.entries()) {
    const fault = (code: ChainFault['code'], expected: unknown, found: unknown): ChainResult => ({
      fault: { seq: index + 1, code, expected: String(expected), found: String(found) },
    })
    const { hash, ...rest } = record
    if (record.seq !== index + 1) return fault('number', index + 1, record.seq)
    if (record.operation_id !== operation_id) return fault('operation', operation_id, record.operation_id)
    if (record.prev_hash !== prev) return fault('link', prev, record.prev_hash)
    const computed = await digestOf(rest)
    if (computed !== hash) return fault('hash', computed, hash)
    prev = hash
    const unfounded = recount.take(record)
    if (unfounded !== undefined) return fault('authority', '', unfounded)
  }
  const found = { seq: records.length, hash: prev }
  const expected = { seq: head.seq, hash: head.hash === '' ? plan_hash : head.hash }
  if (canonicalJson(found) === canonicalJson(expected))
    return { records: records.length, hash: prev, ...recount.result() }
  const words = ({ seq, hash }: { seq: number; hash: string }) => `${seq} ${hash}`
  return { fault: { seq: 0, code: 'head', expected: words(expected), found: words(found) } }
}
