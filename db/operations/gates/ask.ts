import { and, eq, gt, inArray, ne, sql } from 'drizzle-orm'
import type { GateStatus, GateSubject } from '../../../apps/shared/contracts/operations/graph.ts'
import { equals, type Tx } from '../../client.ts'
import { NOW } from '../../rows.ts'
import type { TimelineEvent } from '../facts/state.ts'
import { gates, nodes, operations } from '../tables/index.ts'
import { askedService, type RunningGate } from './rows.ts'

export type NewSubject = { gate_id: string; subject: GateSubject; digest: string }
export type Asked = {
  /** Gates that moved, for the engine. */
  gates: Record<string, { status: GateStatus; round: number; deadline_at: string | null }>
  /** Gates that now guard the changed node. */
  guarded_by: string[]
  /** The newly guarded nodes by gate, if several nodes have changed. */
  guarding: Record<string, string[]>
  events: Omit<TimelineEvent, 'actor'>[]
  /** The previous rows, for a withdrawal. */
  undo: Record<string, unknown>[]
}

/**
 * Binds gates to what they would release now (operations.md 2.5, "guarded thing changes"). A gate that waits, or was
 * decided but not used, asks again at once. A used gate asks again before the changed node starts, and guards it from
 * then on: people who approved other inputs are not bypassed. `changed` returns the changed nodes behind a gate; if it
 * returns none, only unused gates are affected.
 */
export const askAgain = async (
  tx: Tx,
  operation_id: string,
  rows: readonly RunningGate[],
  now: readonly NewSubject[],
  changed: (gate_id: string) => readonly string[],
): Promise<Asked> => {
  const asked: Asked = { gates: {}, guarded_by: [], guarding: {}, events: [], undo: [] }
  for (const { gate_id, subject, digest } of now) {
    const row = rows.find((candidate) => candidate.gate_id === gate_id)
    if (!row || row.digest === digest || row.status === 'cancelled') continue
    const passed = row.status === 'approved' || row.status === 'bypassed'
    const used = passed && row.consumed_at !== null
    const node_ids = changed(gate_id)
    if (used && node_ids.length === 0) continue
    const { kind: _kind, question: _question, policy, ...before } = row
    asked.undo.push(before)
    const again = row.status === 'waiting' || passed
    const status = used ? ('armed' as const) : ('waiting' as const)
    const added = used ? node_ids.filter((id) => !row.guards.includes(id)) : []
    const guards = [...row.guards, ...added]
    const [moved] = await tx
      .update(gates)
      .set({
        subject,
        digest,
        guards,
        updated_at: NOW,
        ...(again && { ...(used ? ASKED_AGAIN : afresh(policy.deadline_s)), status, round: row.round + 1 }),
      })
      .where(equals(gates, { operation_id, gate_id }))
      .returning({ round: gates.round, deadline_at: sql<string | null>`operations.iso(${gates.deadline_at})` })
    if (!again || !moved) continue
    asked.gates[gate_id] = { status, ...moved }
    const data = { round: moved.round, digest, ...(!used && askedService(policy)) }
    asked.events.push({ type: used ? 'gate.armed' : 'gate.reopened', gate_id, data })
    if (added.length === 0) continue
    asked.guarded_by.push(gate_id)
    asked.guarding[gate_id] = added
    await tx
      .update(nodes)
      .set({ gate_ids: sql`array_append(${nodes.gate_ids}, ${gate_id})` })
      .where(and(eq(nodes.operation_id, operation_id), inArray(nodes.node_id, added)))
  }
  return asked
}

/** The participants of an operation, these people among them from now on: they decide none of its four-eyes gates. */
export const involvedWith = (user_ids: readonly string[]) =>
  sql`(select array_agg(distinct u) from unnest(${operations.involved} || ${sql.param(user_ids)}::text[]) u)`

/** When a gate that starts waiting now asks more people; null if its policy names none. */
export const FIRST_ESCALATION = sql`clock_timestamp() + make_interval(secs => (${gates.policy} #>> '{escalation,0,after_s}')::double precision)`

/** The columns that a gate resets when it asks again. */
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

/** A gate that asks again at once gets its full time: that of the previous round may have expired. */
export const afresh = (deadline_s: number) => ({
  ...ASKED_AGAIN,
  waiting_since: NOW,
  deadline_at: sql`clock_timestamp() + make_interval(secs => ${deadline_s})`,
  next_escalation_at: FIRST_ESCALATION,
})

/** Gates that ask again or will do so, with all nodes they guard, for an engine that may have missed the reason. */
export const listAskedAgain = async (
  tx: Tx,
  operation_id: string,
): Promise<{ gates: Asked['gates']; guarding: Asked['guarding'] }> => {
  const rows = await tx
    .select({
      gate_id: gates.gate_id,
      status: sql<GateStatus>`${gates.status}`,
      round: gates.round,
      deadline_at: sql<string | null>`operations.iso(${gates.deadline_at})`,
      guards: gates.guards,
    })
    .from(gates)
    .where(
      and(
        eq(gates.operation_id, operation_id),
        ne(gates.kind, 'intervention'),
        gt(gates.round, 1),
        inArray(gates.status, ['armed', 'waiting']),
      ),
    )
  return {
    gates: Object.fromEntries(
      rows.map(({ gate_id, status, round, deadline_at }) => [gate_id, { status, round, deadline_at }]),
    ),
    guarding: Object.fromEntries(rows.map(({ gate_id, guards }) => [gate_id, guards])),
  }
}
