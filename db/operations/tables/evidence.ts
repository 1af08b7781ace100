import type { GateRules } from '../../../apps/shared/contracts/client/votes.ts'
import type { VoteSignature } from '../../../apps/shared/contracts/operations/gates.ts'
import type { Actor, PlanGate } from '../../../apps/shared/contracts/operations/graph.ts'
import { digest } from '../../../apps/shared/data/digest.ts'
import { pick } from '../../../apps/shared/data/pick.ts'

/** Kinds of evidence (operations.md 6.3). */
export type EvidenceKind =
  | 'plan'
  | 'policy_result'
  | 'rehearsal'
  | 'start'
  | 'command'
  | 'vote'
  | 'gate_decision'
  | 'patch'
  | 'node_result'
  | 'catalog_result'
  | 'artifact'
  | 'exception'
  | 'end'

/**
 * What a record is about. A decided gate says its round and the digest that was decided on; a node that ran says when
 * it began and on which approvals. So anyone can check the one against the other offline
 * (apps/shared/evidence/verify.ts).
 */
export type EvidenceSubject = {
  type: string
  id: string
  round?: number
  status?: string
  digest?: string
  /** Of a node that ran behind gates: when each let it start, and when its voters were last proved. */
  began_at?: string
  gates?: { gate_id: string; round: number; digest: string; at?: string; standing_at?: string | null }[]
  /** Of a vote: `void` where it no longer counts; of a patch with the groups that the voter was in. */
  decision?: 'approve' | 'reject' | 'void'
  voter?: string
  group?: string | null
  groups?: readonly string[]
  /** Of an approval: the voter's passkey over a ballot that holds the digest. */
  signature?: VoteSignature
  why?: string
  /** Of a gate that asks again: whose votes carry over into this round. */
  kept?: string[]
  /** Of a used gate that stands for what a patch changes: by whose votes for that patch. */
  patch_id?: string
  votes?: { voter: string; group: string | null }[]
  /** Rules of gates: of the start all, of a patch those that it brings, of an intervention its own. */
  rules?: GateRules[]
  /** Of the start: that its decisions can be counted again by this chain. */
  authority?: 1
  requester?: string
  starter?: string
  involved?: string[]
  /** Of a patch: who proposed it, and the rules that it had to satisfy. */
  proposer?: string
  required?: GateRules[]
}

/** The rules of a gate as evidence states them: what is needed to count its votes again. */
export const rulesOf = ({ gate_id, kind, policy }: Pick<PlanGate, 'gate_id' | 'kind' | 'policy'>): GateRules => ({
  gate_id,
  kind,
  ...pick(policy, 'quorum', 'groups'),
  more_groups: [...new Set(policy.escalation.flatMap(({ add_groups }) => add_groups))],
  ...pick(policy, 'four_eyes', 'reject_rule', 'on_timeout'),
  ...(policy.on_voter_loss && { on_voter_loss: policy.on_voter_loss }),
  ...(policy.check && { service: policy.check.service }),
  ...(policy.signature && { signature: policy.signature }),
})

/** What a fact proves. `subject_digest` covers the whole object: the plan, the vote, the outputs. */
export type EvidenceFact = { kind: EvidenceKind; statement: string; subject: EvidenceSubject; subject_digest: string }

export type EvidenceRecord = EvidenceFact & {
  operation_id: string
  seq: number
  actor: Actor
  at: string
  prev_hash: string
  hash: string
}

/** Head of a chain; before the first record it is `{ seq: 0, hash: plan_hash }`. */
export type EvidenceHead = { seq: number; hash: string }

/** Digest of a record without its own hash: what `hash` must be. */
export const hashOf = ({ hash: _, ...record }: EvidenceRecord): string => digest({ v: 1, ...record })

/** Links facts to the head of their operation's chain, in order. */
export const chainEvidence = (
  operation_id: string,
  head: EvidenceHead,
  facts: readonly (EvidenceFact & { actor: Actor; at: string })[],
): EvidenceRecord[] => {
  let { seq, hash } = head
  return facts.map(({ kind, statement, subject, subject_digest, actor, at }) => {
    seq += 1
    const record = { operation_id, seq, kind, statement, subject, subject_digest, actor, at, prev_hash: hash, hash: '' }
    hash = hashOf(record)
    return { ...record, hash }
  })
}

/** The first record that is edited, missing or out of place, or undefined if the chain holds from plan to head. */
export const brokenLink = (
  plan_hash: string,
  records: readonly EvidenceRecord[],
  head: EvidenceHead,
): { seq: number; problem: 'missing' | 'link' | 'hash' | 'head' } | undefined => {
  let prev = plan_hash
  for (const [index, record] of records.entries()) {
    if (record.seq !== index + 1) return { seq: index + 1, problem: 'missing' }
    if (record.prev_hash !== prev) return { seq: record.seq, problem: 'link' }
    if (hashOf(record) !== record.hash) return { seq: record.seq, problem: 'hash' }
    prev = record.hash
  }
  if (head.seq !== records.length || head.hash !== prev) return { seq: head.seq, problem: 'head' }
  return undefined
}
