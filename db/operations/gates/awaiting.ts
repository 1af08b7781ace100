import { and, eq, sql } from 'drizzle-orm'
import { pick } from '../../../apps/shared/data/pick.ts'
import { equals, first, type Queryable, type Tx, updateRows } from '../../client.ts'
import { NOW } from '../../rows.ts'
import { dispatchEnd, NEXT_SEQ } from '../commands/rows.ts'
import { eachText } from '../expressions.ts'
import { SYSTEM, type TimelineEvent } from '../facts/state.ts'
import { gates, operation_commands, operation_control } from '../tables/index.ts'

const INTERVENTION = 'intervention-'
/** The gate that asks a second person about the intervention of this command. */
export const gateOfIntervention = (command_id: string): string => INTERVENTION + command_id
export const commandOfGate = (gate_id: string): string => gate_id.slice(INTERVENTION.length)

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
    ...(payload === null ? { status: 'applied', outcome_at: NOW } : { status: 'pending', payload, not_after }),
  })
}

/** The second person refused it or no one decided: it never takes effect. */
export const withdrawAwaiting = (tx: Tx, command_id: string) =>
  updateRows(tx, { command_id, status: AWAITING }, operation_commands, { status: 'withdrawn', outcome_at: NOW })

/** The operation is cancelled or over, so no one needs to review them any longer. */
export const supersedeAwaiting = (tx: Tx, operation_id: string) =>
  updateRows(tx, { operation_id, status: AWAITING }, operation_commands, { status: 'superseded', outcome_at: NOW })

/** What a person who agrees to an intervention on node `n` has read of it. Waiting, it moves by itself. */
const NODE_READ = `jsonb_build_object('state', case when n.state in ('pending', 'gated', 'ready') then 'waiting' else n.state end,
  'generation', n.generation, 'attempt', n.attempt, 'spec_digest', n.spec_digest, 'outputs', md5(n.outputs::text))`

export type NodesRead = Record<string, { state: string; generation: number; attempt: number }>
export const readNodesRead = async (tx: Tx, operation_id: string, node_ids: readonly string[]): Promise<NodesRead> => {
  const { rows } = await tx.execute<{
    was: NodesRead
  }>(sql`select jsonb_object_agg(n.node_id, ${sql.raw(NODE_READ)}) as was
    from operations.nodes n where n.operation_id = ${operation_id} and n.node_id in ${eachText(node_ids)}`)
  return rows[0]?.was ?? {}
}

/** Whether nodes or the gate that a waiting intervention is about are no longer as its subject shows them. */
export const OUTDATED = sql<boolean>`${sql.raw(`case when gates.kind = 'intervention' and gates.status = 'waiting' then
  exists (select from jsonb_each(gates.subject #> '{intervention,payload,was}') w
    left join operations.nodes n on n.operation_id = gates.operation_id and n.node_id = w.key where w.value <> ${NODE_READ})
  or exists (select from operations.gates o where o.operation_id = gates.operation_id and gates.subject #> '{intervention,payload}' ? 'gate'
    and o.gate_id = gates.subject #>> '{intervention,payload,gate_id}'
    and gates.subject #> '{intervention,payload,gate}' <> jsonb_build_object('status', o.status, 'round', o.round, 'digest', o.digest))
  else false end`)}`

const OVERDUE = sql`${gates.deadline_at} <= clock_timestamp()`

/** Interventions that no one can approve any longer: not in time, or not as their subject shows it. */
export const listDeadInterventions = (db: Queryable, limit: number) =>
  db
    .select({ operation_id: gates.operation_id, gate_id: gates.gate_id })
    .from(gates)
    .where(and(equals(gates, { kind: 'intervention', status: 'waiting' }), sql`(${OVERDUE} or ${OUTDATED})`))
    .limit(limit)

/** Closes such an intervention. Returns no events if a person decided just before. */
export const closeIntervention = async (tx: Tx, operation_id: string, gate_id: string): Promise<TimelineEvent[]> => {
  const [closed] = await tx
    .update(gates)
    .set({ status: sql`case when ${OVERDUE} then 'expired' else 'cancelled' end`, decided_by: SYSTEM, decided_at: NOW })
    .where(and(equals(gates, { operation_id, gate_id, status: 'waiting' }), sql`(${OVERDUE} or ${OUTDATED})`))
    .returning(pick(gates, 'status', 'round', 'digest'))
  if (!closed) return []
  await withdrawAwaiting(tx, commandOfGate(gate_id))
  const { status, ...data } = closed
  const why = status === 'expired' ? 'no one reviewed the intervention in time' : CHANGED
  return [
    {
      type: `gate.${status}`,
      actor: SYSTEM,
      reason: status === 'expired' ? null : `Gate closed: ${why}.`,
      gate_id,
      data,
      evidence: {
        kind: 'gate_decision',
        statement: `Gate ${gate_id} is ${status}: ${why}`,
        subject: { type: 'gate', id: gate_id },
        subject_digest: data.digest,
      },
    },
  ]
}
const CHANGED = 'what the intervention is about has changed since it was requested'

/** An approved intervention that never took effect: its gate tells so, and a new one must be requested. */
export const cancelApproved = (tx: Tx, operation_id: string, command_id: string) =>
  tx
    .update(gates)
    .set({ status: 'cancelled', updated_at: NOW })
    .where(equals(gates, { operation_id, gate_id: gateOfIntervention(command_id), status: 'approved' }))
    .returning(pick(gates, 'gate_id', 'round'))
