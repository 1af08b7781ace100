import { sql } from 'drizzle-orm'
import { uuidv7 } from '../../../apps/shared/ids.ts'
import type { Db, Tx } from '../../client.ts'
import { lockOperation, tellEngine } from '../commands/rows.ts'
import { bumpRevision, ENGINE, stateFacts, type TimelineEvent } from '../facts/state.ts'

const MAX_MESSAGE = 300
const WHAT_TO_DO =
  'Run a worker that can continue it, then resume; or terminate the workflow in the engine, and cancel the operation.'

/**
 * The engine cannot continue an operation because its code does not fit the operation's state (operations.md 2.3, 8).
 * The rows pause the operation as engine_mismatch, so no node starts, and state the remedy. The engine learns of the
 * pause in command order, once a suitable build runs. Every failed try of the engine calls this; a repeat only records
 * that the attempts in flight have ended. An operation that is being cancelled stays so.
 */
export const pauseOnMismatch = (db: Db, operation_id: string, message: string): Promise<void> =>
  db.transaction(async (tx) => {
    const operation = await lockOperation(tx, operation_id)
    const now = await readNow(tx, operation_id)
    if (!operation || !now || now.ended) return
    const why = `The workflow engine cannot continue: ${message}`.slice(0, MAX_MESSAGE).toWellFormed()
    const cancelling = operation.control === 'cancel'
    const events =
      cancelling || operation.pause_reason === 'engine_mismatch'
        ? []
        : await pauseMismatched(tx, operation_id, operation.control === 'run', why)
    const engine_status = cancelling || now.is_out ? operation.engine_status : 'paused'
    const blocked_on = [{ kind: 'engine' as const, id: operation_id, message: `${why} ${WHAT_TO_DO}` }]
    const known = now.blocked_by === blocked_on[0]?.message && engine_status === operation.engine_status
    if (events.length > 0 || !known) await stateFacts(tx, operation_id, { events, set: { blocked_on, engine_status } })
  })

/** Whether it has ended, whether an attempt of it may still have an effect, and the reported cause of its block. */
const readNow = async (tx: Tx, operation_id: string) => {
  const { rows } = await tx.execute<{ ended: boolean; is_out: boolean; blocked_by: string | null }>(sql`
    select c.ended, o.blocked_on -> 0 ->> 'message' as blocked_by,
      exists (select from operations.node_attempts a where a.operation_id = c.operation_id and a.phase in ('dispatched', 'running')) as is_out
    from operations.operation_control c join operations.operations o using (operation_id) where c.operation_id = ${operation_id}`)
  return rows[0]
}

/** Pauses the operation in the rows as engine_mismatch; `running`: in the engine as well. */
export const pauseMismatched = async (
  tx: Tx,
  operation_id: string,
  running: boolean,
  why: string,
): Promise<TimelineEvent[]> => {
  await tx.execute(sql`
    update operations.operation_control set control = 'pause', pause_reason = 'engine_mismatch' where operation_id = ${operation_id}`)
  const command_id = uuidv7()
  const said = { command_id, class: 'stop', actor: ENGINE, reason: why, decided: true } as const
  if (running) await tellEngine(tx, operation_id, 'pause', { reason: 'engine_mismatch' }, said)
  else await bumpRevision(tx, operation_id)
  const data = { pause_reason: 'engine_mismatch' }
  return [{ type: 'operation.pausing', actor: ENGINE, reason: why, ...(running && { command_id }), data }]
}
