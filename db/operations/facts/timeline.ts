import type { Actor } from '../../../apps/shared/contracts/operations/graph.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import type { EvidenceFact } from '../tables/evidence.ts'

/** One fact of an operation's history (operations.md 6.2): `<noun>.<state>`, the actor, the reason, and the subject. */
export type TimelineEvent = {
  type: string
  actor: Actor
  /** RFC 3339; defaults to the time of the transaction. Node events carry their attempt's times. */
  at?: string | undefined
  on_behalf_of?: string | null | undefined
  reason?: string | null | undefined
  node_id?: string | null | undefined
  gate_id?: string | null | undefined
  patch_id?: string | null | undefined
  command_id?: string | null | undefined
  data?: Record<string, unknown>
  /** The evidence for this fact; its time is the transaction's. */
  evidence?: EvidenceFact | undefined
}

export type TimelineRow = Required<Omit<TimelineEvent, 'evidence' | 'on_behalf_of' | 'reason'>> & {
  operation_id: string
  seq: number
  on_behalf_of: string | null
  reason: string | null
  evidence_seq: number | null
}

export const ENGINE: Actor = { kind: 'engine', id: 'engine', name: 'Workflow engine' }
export const SYSTEM: Actor = { kind: 'system', id: 'system', name: 'Signalbox' }

/** Numbers events densely after `seq`; evidence takes the next numbers of its own chain in the same order. */
export const timelineRows = (
  operation_id: string,
  head: { seq: number; evidence_seq: number; at: string },
  events: readonly TimelineEvent[],
): TimelineRow[] => {
  let { seq, evidence_seq } = head
  return events.map((event) => ({
    operation_id,
    seq: ++seq,
    at: event.at ?? head.at,
    ...pick(event, 'type', 'actor'),
    on_behalf_of: event.on_behalf_of ?? null,
    reason: event.reason ?? null,
    node_id: event.node_id ?? null,
    gate_id: event.gate_id ?? null,
    patch_id: event.patch_id ?? null,
    command_id: event.command_id ?? null,
    data: event.data ?? {},
    evidence_seq: event.evidence ? ++evidence_seq : null,
  }))
}
