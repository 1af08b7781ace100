import type { GateRules } from '../../../apps/shared/contracts/client/votes.ts'
import type { Executed } from '../../../apps/shared/contracts/operations/common.ts'
import type { VoteSignature } from '../../../apps/shared/contracts/operations/gates.ts'
import type { Actor } from '../../../apps/shared/contracts/operations/graph.ts'

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
 * The subject of a record. A decided gate states its round and the digest on which it decided; a node that ran states
 * when it started and on which approvals. So anyone can check one against the other offline
 * (apps/shared/evidence/verify.ts).
 */
export type EvidenceSubject = {
  type: string
  id: string
  round?: number
  status?: string
  digest?: string
  /** For a node that ran behind gates: when each gate let it start, and when the gate's voters were last proved. */
  began_at?: string
  gates?: { gate_id: string; round: number; digest: string; at?: string; standing_at?: string | null }[]
  /** For a node that an agent ran: its program, and the digest of the saved plan that it carried out. */
  executed?: Executed
  /** For a vote: `void` if it no longer counts; for a vote on a patch, also the voter's groups. */
  decision?: 'approve' | 'reject' | 'void'
  voter?: string
  group?: string | null
  groups?: readonly string[]
  /** For an approval: the signature of the voter's passkey over a ballot that contains the digest. */
  signature?: VoteSignature
  why?: string
  /** For a gate that asks again: whose votes carry over into this round. */
  kept?: string[]
  /** For a used gate approved for a patch's changes: the patch, and whose votes for it counted. */
  patch_id?: string
  votes?: { voter: string; group: string | null }[]
  /** Rules of gates: all for the start, the added ones for a patch, its own for an intervention. */
  rules?: GateRules[]
  /** For the start and each change of the calendar: the ends of the freezes that hold the operation, by id. */
  freezes?: Record<string, string>
  /** For a gate that was passed by the end of a freeze. */
  freeze_id?: string
  /** For the start: this chain suffices to count its decisions again. */
  authority?: 1
  requester?: string
  starter?: string
  /** For the start, the participants; for a command that supplies a node's inputs or outputs, its author joins them. */
  involved?: string[]
  /** For a patch: its proposer, and the rules that it had to satisfy. */
  proposer?: string
  required?: GateRules[]
}

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
