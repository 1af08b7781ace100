import { sql } from 'drizzle-orm'
import type { Actor } from '../../../apps/shared/contracts/operations/graph.ts'
import { digest } from '../../../apps/shared/data/digest.ts'
import { AppError } from '../../../apps/shared/errors.ts'
import type { Tx } from '../../client.ts'
import { NOW } from '../../rows.ts'
import type { TimelineEvent } from '../facts/state.ts'
import { operations } from '../tables/index.ts'
import { type GateRow, swapGate } from './rows.ts'

type Alone = {
  /** Who decides, on which operation and why. */
  command: { operation_id: string; actor: Actor; reason: string | null }
  command_id: string
  row: GateRow
  status: 'approved' | 'rejected'
  statement: string
  data: Record<string, unknown>
  /** The freeze whose end decides. */
  freeze_id?: string
}

/** The decision of a waiting gate by one that needs no vote: a service, or the end of a freeze. */
export const decideAlone = async (tx: Tx, { command, command_id, row, status, statement, data, freeze_id }: Alone) => {
  const { gate_id, round, digest: subject } = row.gate
  const swapped = await swapGate(tx, {
    operation_id: command.operation_id,
    gate_id,
    from: { status: 'waiting', round },
    set: {
      status,
      approved_digest: status === 'approved' ? subject : null,
      decided_by: command.actor,
      decided_at: NOW,
      decided_command_id: command_id,
    },
  })
  if (!swapped) throw new AppError('gate_not_waiting', 'already_decided', 'The gate was decided a moment ago.')
  const decision: TimelineEvent = {
    ...{ actor: command.actor, gate_id, command_id, reason: command.reason, data },
    type: `gate.${status}`,
    evidence: {
      kind: 'gate_decision',
      statement,
      subject: { type: 'gate', id: gate_id, round, status, digest: subject, ...(freeze_id && { freeze_id }) },
      subject_digest: digest(data),
    },
  }
  return {
    payload: { gate_id, round, status, digest: subject },
    events: [decision],
    set: { open_gates: sql`greatest(${operations.open_gates} - 1, 0)` },
  }
}
