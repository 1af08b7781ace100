import { and, eq, sql } from 'drizzle-orm'
import { equals, first, type Queryable, type Tx, updateRows } from '../../client.ts'
import { dispatchEnd, NEXT_SEQ } from '../commands/rows.ts'
import { SYSTEM, type TimelineEvent } from '../facts/state.ts'
import { gates, operation_commands, operation_control } from '../tables/index.ts'

/**
 * Commands that a second person must review first (operations.md 5.4): status `awaiting`. They have a number, but are
 * sent under a later one once they pass; until then they have no effect.
 */
const AWAITING = 'awaiting'

export const getAwaiting = (tx: Tx, command_id: string) =>
  tx
    .select()
    .from(operation_commands)
    .where(equals(operation_commands, { command_id, status: AWAITING }))
    .for('update')
    .then(first)

type Passed = { payload: Record<string, unknown> | null; undo: Record<string, unknown> | null; deadline_s: number }

/** Queues a command for the relay; applies here one that is complete in Postgres. The caller holds the control row. */
export const passAwaiting = async (
  tx: Tx,
  { command_id, operation_id }: { command_id: string; operation_id: string },
  { payload, undo, deadline_s }: Passed,
): Promise<void> => {
  const [numbered] = await tx
    .update(operation_control)
    .set({ command_seq: NEXT_SEQ })
    .where(eq(operation_control.operation_id, operation_id))
    .returning({ seq: operation_control.command_seq })
  const not_after = sql`case when ${operation_commands.class} = 'start' then ${dispatchEnd(operation_id, deadline_s)} end`
  await updateRows(tx, { command_id }, operation_commands, {
    seq: numbered?.seq ?? 0,
    undo,
    ...(payload === null
      ? { status: 'applied', outcome_at: sql`clock_timestamp()` as never }
      : { status: 'pending', payload, not_after: not_after as never }),
  })
}

/** The second person refused it or no one decided: it never takes effect. */
export const withdrawAwaiting = (tx: Tx, command_id: string) =>
  updateRows(tx, { command_id, status: AWAITING }, operation_commands, {
    status: 'withdrawn',
    outcome_at: sql`clock_timestamp()` as never,
  })

/** The operation is cancelled or over, so no one needs to review them any longer. */
export const supersedeAwaiting = (tx: Tx, operation_id: string) =>
  updateRows(tx, { operation_id, status: AWAITING }, operation_commands, {
    status: 'superseded',
    outcome_at: sql`clock_timestamp()` as never,
  })

export const listOverdueInterventions = (db: Queryable, limit: number) =>
  db
    .select({ operation_id: gates.operation_id, gate_id: gates.gate_id })
    .from(gates)
    .where(
      and(equals(gates, { kind: 'intervention', status: 'waiting' }), sql`${gates.deadline_at} <= clock_timestamp()`),
    )
    .limit(limit)

/** Expires an intervention that no one decided in time. Returns no events if a person decided just before. */
export const expireIntervention = async (tx: Tx, operation_id: string, gate_id: string): Promise<TimelineEvent[]> => {
  const [expired] = await tx
    .update(gates)
    .set({ status: 'expired', decided_by: SYSTEM, decided_at: sql`clock_timestamp()` as never })
    .where(
      and(equals(gates, { operation_id, gate_id, status: 'waiting' }), sql`${gates.deadline_at} <= clock_timestamp()`),
    )
    .returning({ round: gates.round, digest: gates.digest })
  if (!expired) return []
  await withdrawAwaiting(tx, gate_id.slice('intervention-'.length))
  return [
    {
      type: 'gate.expired',
      actor: SYSTEM,
      gate_id,
      data: expired,
      evidence: {
        kind: 'gate_decision',
        statement: `Gate ${gate_id} expired: no one reviewed the intervention in time`,
        subject: { type: 'gate', id: gate_id },
        subject_digest: expired.digest,
      },
    },
  ]
}
