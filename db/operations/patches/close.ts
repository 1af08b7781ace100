import { eq } from 'drizzle-orm'
import type { Tx } from '../../client.ts'
import { tellEngine } from '../commands/rows.ts'
import { bumpRevision, SYSTEM, stateFacts } from '../facts/state.ts'
import { operation_control } from '../tables/index.ts'
import { liftHolds, movePatch } from './rows.ts'

/**
 * Ends one open patch without a person's decision, because it expired or came too late. Its held nodes are released,
 * and the engine is informed. The caller's transaction may already hold the control row.
 */
export const closePatch = async (
  tx: Tx,
  operation_id: string,
  patch_id: string,
  status: 'expired' | 'not_applicable',
  why: string,
): Promise<boolean> => {
  const control = eq(operation_control.operation_id, operation_id)
  await tx.select({ revision: operation_control.revision }).from(operation_control).where(control).for('update')
  if (!(await movePatch(tx, operation_id, patch_id, 'awaiting_approval', { status, status_reason: why }))) return false
  await liftHolds(tx, operation_id, patch_id)
  await tellEngine(tx, operation_id, 'patch_closed', { patch_id }, { class: 'stop', reason: why })
  await bumpRevision(tx, operation_id)
  await stateFacts(tx, operation_id, { events: [{ type: `patch.${status}`, actor: SYSTEM, patch_id, data: { why } }] })
  return true
}
