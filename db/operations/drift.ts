import { eq } from 'drizzle-orm'
import type { Actor } from '../../apps/shared/contracts/operations/graph.ts'
import { digest } from '../../apps/shared/digest.ts'
import { uuidv7 } from '../../apps/shared/ids.ts'
import type { Tx } from '../client.ts'
import { appendCommand } from './commands.ts'
import { repinTargets } from './pins.ts'
import { operation_control, operations } from './tables.ts'
import type { TimelineEvent } from './timeline.ts'

/**
 * Pauses an operation whose nodes that have not begun would meet other versions of their targets than were planned
 * (operations.md 3.4), and tells the engine. Nothing where none would, or it is not running, or drift is to be ignored.
 * The caller holds the control row and states the facts.
 */
export const pauseOnDrift = async (tx: Tx, operation_id: string, actor: Actor): Promise<TimelineEvent[]> => {
  const [row] = await tx
    .select({
      control: operation_control.control,
      pins: operations.pins,
      constraints: operations.constraints,
    })
    .from(operation_control)
    .innerJoin(operations, eq(operations.operation_id, operation_control.operation_id))
    .where(eq(operation_control.operation_id, operation_id))
  if (row?.control !== 'run' || row.constraints.on_drift === 'ignore') return []
  const { node_ids } = await repinTargets(tx, operation_id, row.pins)
  if (node_ids.length === 0) return []
  const command_id = uuidv7()
  await tx
    .update(operation_control)
    .set({ control: 'pause', pause_reason: 'catalog_drift' })
    .where(eq(operation_control.operation_id, operation_id))
  await appendCommand(tx, {
    command_id,
    operation_id,
    kind: 'catalog_drift',
    class: 'stop',
    payload: { node_ids },
    actor,
    reason: null,
    request_id: null,
    trace: null,
    undo: null,
    deadline_s: 0,
    decided: true,
  })
  return [
    {
      type: 'operation.drifted',
      actor,
      command_id,
      data: { node_ids },
      evidence: {
        kind: 'command',
        statement: `${node_ids.length} node(s) would meet other versions of their targets than were planned`,
        subject: { type: 'operation', id: operation_id },
        subject_digest: digest({ command_id, kind: 'catalog_drift', node_ids }),
      },
    },
  ]
}
