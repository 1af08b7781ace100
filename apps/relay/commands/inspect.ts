import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import { operationQueue, STATE_QUERY, WORKFLOW_TYPE } from '../../../workflows/operation/messages.ts'
import type { RelayConfig } from '../config.ts'
import { connectEngine } from './temporal.ts'

const DEADLINE_MS = 10_000

/** A workflow's progress: the last command that it has taken, and the last facts that it has recorded. */
export type Progress = { last_seq: number; record_seq: number }

/** A person's inspections of the engine beyond daily work, and actions on a workflow that nobody owns. */
export const createInspection = (config: RelayConfig) => {
  const { connection, client } = connectEngine(config)
  const withDeadline = <T>(run: () => Promise<T>) => client.withDeadline(Date.now() + DEADLINE_MS, run)
  const handleOf = (operation_id: string) => client.workflow.getHandle(operation_id)

  return {
    /** Returns the open workflows of this environment's operations, with their titles. */
    listRunning: async (): Promise<Map<string, string>> => {
      const queue = operationQueue(config.RELAY__TEMPORAL__QUEUE_PREFIX)
      const query = `WorkflowType = '${WORKFLOW_TYPE}' and TaskQueue = '${queue}' and ExecutionStatus = 'Running'`
      const running = new Map<string, string>()
      for await (const { workflowId, memo } of client.workflow.list({ query }))
        running.set(workflowId, String(memo?.title ?? ''))
      return running
    },

    /** `undefined` if no worker answers for it. */
    progressOf: (operation_id: string): Promise<Progress | undefined> =>
      withDeadline(() => handleOf(operation_id).query<Progress>(STATE_QUERY)).catch(() => undefined),

    /** Returns the history in the format of the engine's own tools; its payloads stay as stored. */
    historyOf: async (operation_id: string): Promise<string> =>
      historyToJSON(await withDeadline(() => handleOf(operation_id).fetchHistory())),

    terminate: async (operation_id: string, reason: string): Promise<void> => {
      await withDeadline(() => handleOf(operation_id).terminate(reason))
    },

    close: () => connection.close(),
  }
}
export type Inspection = ReturnType<typeof createInspection>
