import { and, eq, gt, notInArray, sql } from 'drizzle-orm'
import type { OperationEnd } from '../../../apps/shared/contracts/operations/graph.ts'
import { digest } from '../../../apps/shared/data/digest.ts'
import type { CloseResult, RecordBatch } from '../../../workflows/operation/state/events.ts'
import { type Db, type Tx, together, transact, updateRows } from '../../client.ts'
import { ENGINE, lockHead, stateFacts } from '../facts/state.ts'
import { cancelGates } from '../gates/rows.ts'
import { closePatches } from '../patches/rows.ts'
import { operationClosed } from '../plans/rows.ts'
import { operation_commands, operation_control, operations } from '../tables/index.ts'
import { type EngineRef, recordBatch } from './record.ts'

export type CloseInput = { status: OperationEnd; end_reason: string | null; last_seq: number }

/**
 * Ends an operation under its control row, and only if no accepted command is unprocessed, so that none is lost in a
 * closing workflow (operations.md 2.3). Otherwise returns `not_yet` with the number to wait for. A repeat returns the
 * stored end. The reducer's last facts are recorded once in either case.
 */
export const closeOperation = (
  db: Db,
  operation_id: string,
  input: CloseInput,
  last?: { batch: RecordBatch; engine_ref: EngineRef },
): Promise<CloseResult> =>
  transact(db, async (tx, later) => {
    const [control] = await tx
      .select({ ended: operation_control.ended })
      .from(operation_control)
      .where(eq(operation_control.operation_id, operation_id))
      .for('update')
    if (!control) throw new Error(`no operation ${operation_id}`)
    if (control.ended) return { status: 'ended', evidence_head: await headOf(tx, operation_id) }
    if (last) await recordBatch(tx, operation_id, last.batch, last.engine_ref, later)
    const seq = await unprocessed(tx, operation_id, input.last_seq)
    if (seq > input.last_seq) return { status: 'not_yet', seq }
    return { status: 'ended', evidence_head: await end(tx, operation_id, input) }
  })

const unprocessed = async (tx: Tx, operation_id: string, last_seq: number): Promise<number> => {
  const [row] = await tx
    .select({ seq: sql<number | null>`max(${operation_commands.seq})::int` })
    .from(operation_commands)
    .where(
      and(
        eq(operation_commands.operation_id, operation_id),
        gt(operation_commands.seq, last_seq),
        notInArray(operation_commands.status, ['awaiting', 'applied', 'refused', 'expired', 'withdrawn', 'superseded']),
      ),
    )
  return row?.seq ?? 0
}

const end = async (tx: Tx, operation_id: string, { status, end_reason }: CloseInput) => {
  const ended = updateRows(tx, { operation_id }, operation_control, {
    ended: true,
    revision: sql`${operation_control.revision} + 1`,
  })
  const [, gates, patches, versions] = await together(
    ended,
    cancelGates(tx, operation_id),
    closePatches(tx, operation_id, 'operation_ended'),
    versionsOf(tx, operation_id),
    operationClosed(tx, operation_id, status),
  )
  const said = { actor: ENGINE, ...(end_reason !== null && { reason: end_reason }) }
  const head = await lockHead(tx, operation_id)
  const { evidence_head } = await stateFacts(tx, operation_id, {
    head,
    events: [
      ...patches.map((fact) => ({ ...said, ...fact })),
      ...gates.map(({ gate_id, round }) => ({ ...said, type: 'gate.cancelled', gate_id, data: { round } })),
      {
        ...said,
        type: `operation.${status}`,
        data: { status, end_reason },
        evidence: {
          kind: 'end',
          statement: `The operation ended: ${status}${end_reason === null ? '' : ` (${end_reason})`}`,
          subject: { type: 'operation', id: operation_id, status },
          subject_digest: digest({ operation_id, status, end_reason }),
        },
      },
    ],
    // The head is stated after the chain is complete, so that a truncated chain is detected.
    last: (evidence_head) => ({
      ...said,
      type: 'operation.ended',
      data: { status, end_reason, versions, evidence_head },
    }),
    set: { engine_status: status, end_reason, ended_at: head.at, blocked_on: [], open_gates: 0 },
  })
  return evidence_head
}

/** The resulting versions of the targets, from the operation's own writes. */
const versionsOf = async (tx: Tx, operation_id: string): Promise<Record<string, number>> => {
  const { rows } = await tx.execute<{ target_id: string; version: number }>(sql`
    select target_id, max((catalog ->> 'version')::int) as version from operations.nodes
    where operation_id = ${operation_id} and target_id is not null and catalog ->> 'version' is not null group by target_id`)
  return Object.fromEntries(rows.map(({ target_id, version }) => [target_id, version]))
}

const headOf = async (tx: Tx, operation_id: string) => {
  const [row] = await tx
    .select({ seq: operations.evidence_seq, hash: operations.evidence_hash })
    .from(operations)
    .where(eq(operations.operation_id, operation_id))
  return row ?? { seq: 0, hash: '' }
}
