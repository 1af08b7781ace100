import { and, eq, sql } from 'drizzle-orm'
import type { GateStatus, GateSubject } from '../../apps/shared/contracts/operations/graph.ts'
import type { Tx } from '../client.ts'
import type { RunningRows } from './patches.ts'
import { gates, nodes } from './tables.ts'
import type { TimelineEvent } from './timeline.ts'

export type NewSubject = { gate_id: string; subject: GateSubject; digest: string }
export type Asked = {
  /** Gates that moved, for the engine. */
  gates: Record<string, { status: GateStatus; round: number; deadline_at: string | null }>
  /** Gates that guard the node from now on. */
  guarded_by: string[]
  events: Omit<TimelineEvent, 'actor'>[]
  /** Rows as they were, for a withdrawal. */
  undo: Record<string, unknown>[]
}

/**
 * Binds gates to what they would release now (operations.md 2.5, "guarded thing changes"). One that waits or was decided
 * and not used asks again at once. One that was used asks again before the changed node begins, and guards it from then
 * on: whoever approved other inputs is not passed over. `node_id` nothing: only gates that are not used are concerned.
 */
export const askAgain = async (
  tx: Tx,
  operation_id: string,
  rows: RunningRows['gates'],
  now: readonly NewSubject[],
  node_id: string | null,
): Promise<Asked> => {
  const asked: Asked = { gates: {}, guarded_by: [], events: [], undo: [] }
  for (const { gate_id, subject, digest } of now) {
    const row = rows.find((candidate) => candidate.gate_id === gate_id)
    if (!row || row.digest === digest || row.status === 'cancelled') continue
    const passed = row.status === 'approved' || row.status === 'bypassed'
    const used = passed && row.consumed_at !== null
    if (used && node_id === null) continue
    const { kind: _kind, question: _question, policy, ...before } = row
    asked.undo.push(before)
    const again = row.status === 'waiting' || passed
    const status = used ? ('armed' as const) : ('waiting' as const)
    const guards = used && node_id !== null && !row.guards.includes(node_id) ? [...row.guards, node_id] : row.guards
    const [moved] = await tx
      .update(gates)
      .set({
        subject,
        digest,
        guards,
        updated_at: sql`clock_timestamp()` as never,
        ...(again && {
          ...ASKED_AGAIN,
          status,
          round: row.round + 1,
          ...(!used && {
            waiting_since: sql`clock_timestamp()` as never,
            deadline_at: sql`clock_timestamp() + make_interval(secs => ${policy.deadline_s})` as never,
            next_escalation_at: FIRST_ESCALATION as never,
          }),
        }),
      })
      .where(and(eq(gates.operation_id, operation_id), eq(gates.gate_id, gate_id)))
      .returning({ round: gates.round, deadline_at: sql<string | null>`operations.iso(${gates.deadline_at})` })
    if (!again || !moved) continue
    asked.gates[gate_id] = { status, ...moved }
    asked.events.push({ type: used ? 'gate.armed' : 'gate.reopened', gate_id, data: { round: moved.round, digest } })
    if (guards === row.guards || node_id === null) continue
    asked.guarded_by.push(gate_id)
    await tx
      .update(nodes)
      .set({ gate_ids: sql`array_append(${nodes.gate_ids}, ${gate_id})` as never })
      .where(and(eq(nodes.operation_id, operation_id), eq(nodes.node_id, node_id)))
  }
  return asked
}

/** When more people are asked about a gate that begins to wait now; null where its policy names nobody. */
export const FIRST_ESCALATION = sql`clock_timestamp() + make_interval(secs => (${gates.policy} #>> '{escalation,0,after_s}')::double precision)`

/** What a gate forgets when it is asked again. */
export const ASKED_AGAIN = {
  approved_digest: null,
  consumed_at: null,
  waiting_since: null,
  deadline_at: null,
  decided_by: null,
  decided_at: null,
  decided_command_id: null,
  escalation_level: 0,
  next_escalation_at: null,
}
