import { activityInfo } from '@temporalio/activity'
import { type CloseInput, closeOperation } from '../db/operations/close.ts'
import { loadGraph } from '../db/operations/graph.ts'
import { recordChanges } from '../db/operations/record.ts'
import type { CloseResult, GraphPage, RecordBatch, RecordResult } from '../workflows/operation/state/types.ts'
import type { ActivityDeps } from './deps.ts'

/** Local activities: they run in the process that runs the workflow. */
export const createLocalActivities = ({ db, limits }: ActivityDeps) => ({
  load_graph: ({ operation_id, from }: { operation_id: string; from: number }): Promise<GraphPage> =>
    loadGraph(db, operation_id, from, limits),
})

/** Bookkeeping of an operation: each may be repeated, the second time changes nothing. */
export const createOperationActivities = ({ db, wake }: ActivityDeps) => ({
  record_changes: async (input: { operation_id: string; batch: RecordBatch }): Promise<RecordResult> => {
    const { namespace, workflowExecution } = activityInfo()
    const result = await recordChanges(db, input.operation_id, input.batch, {
      namespace: namespace ?? 'default',
      workflow_id: workflowExecution?.workflowId ?? input.operation_id,
      run_id: workflowExecution?.runId ?? '',
    })
    wake('operations')
    if (input.batch.changes.some((change) => change.t === 'command')) wake('operations_outcome')
    return result
  },

  close_operation: async (input: { operation_id: string } & CloseInput): Promise<CloseResult> => {
    const result = await closeOperation(db, input.operation_id, input)
    wake('operations')
    return result
  },
})
