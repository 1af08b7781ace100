import { activityInfo } from '@temporalio/activity'
import { type CloseInput, closeOperation } from '../db/operations/operations/close.ts'
import { loadGraph } from '../db/operations/operations/graph.ts'
import { type EngineRef, recordChanges } from '../db/operations/operations/record.ts'
import type { CloseResult, GraphPage, RecordBatch, RecordResult } from '../workflows/operation/state/events.ts'
import type { ActivityDeps } from './deps.ts'

/** Local activities: they run in the process that runs the workflow. */
export const createLocalActivities = ({ db, limits }: ActivityDeps) => ({
  load_graph: ({ operation_id, from }: { operation_id: string; from: number }): Promise<GraphPage> =>
    loadGraph(db, operation_id, from, limits),
})

/** Bookkeeping of an operation: each activity may be repeated without a second effect. */
export const createOperationActivities = ({ db, wake }: ActivityDeps) => ({
  record_changes: async ({
    operation_id,
    batch,
  }: {
    operation_id: string
    batch: RecordBatch
  }): Promise<RecordResult> => {
    const result = await recordChanges(db, operation_id, batch, engineRef(operation_id))
    wakeFor(wake, batch)
    return result
  },

  close_operation: async (input: { operation_id: string; batch?: RecordBatch } & CloseInput): Promise<CloseResult> => {
    const { operation_id, batch } = input
    const last = batch && { batch, engine_ref: engineRef(operation_id) }
    const result = await closeOperation(db, operation_id, input, last)
    wakeFor(wake, batch)
    return result
  },
})

const engineRef = (operation_id: string): EngineRef => {
  const { namespace, workflowExecution } = activityInfo()
  return {
    namespace: namespace ?? 'default',
    workflow_id: workflowExecution?.workflowId ?? operation_id,
    run_id: workflowExecution?.runId ?? '',
  }
}

const wakeFor = (wake: ActivityDeps['wake'], batch: RecordBatch | undefined): void => {
  wake('operations')
  if (batch?.changes.some((change) => change.t === 'command')) wake('operations_outcome')
}
