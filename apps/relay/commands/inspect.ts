import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import { operationQueue, STATE_QUERY, WORKFLOW_TYPE } from '../../../workflows/operation/messages.ts'
import type { RelayConfig } from '../config.ts'
import { connectEngine } from './temporal.ts'

const DEADLINE_MS = 10_000

/** How far a workflow is: the last command that it has taken, and the last facts that it has told. */
export type Progress = { last_seq: number; record_seq: number }

/** What a person asks of the engine beside its daily work, and does to a workflow that nobody owns. */
export const createInspection = (config: RelayConfig) => {
  const { connection, client } = connectEngine(config)
  const withDeadline = <T>(run: () => Promise<T>) => client.withDeadline(Date.now() + DEADLINE_MS, run)
  const handleOf = (operation_id: string) => client.workflow.getHandle(operation_id)

  return {
    /** Workflows of operations of this environment that are open, with their titles. */
    listRunning: async (): Promise<Map<string, string>> => {
      const queue = operationQueue(config.RELAY__TEMPORAL__QUEUE_PREFIX)
      const query = `WorkflowType = '${WORKFLOW_TYPE}' and TaskQueue = '${queue}' and ExecutionStatus = 'Running'`
      const running = new Map<string, string>()
      for await (const { workflowId, memo } of client.workflow.list({ query }))
        running.set(workflowId, String(memo?.title ?? ''))
      return running
    },

    /** Undefined when no worker answers for it. */
    progressOf: (operation_id: string): Promise<Progress | undefined> =>
      withDeadline(() => handleOf(operation_id).query<Progress>(STATE_QUERY)).catch(() => undefined),

    /** The history as the engine's own tools read it; its payloads as they are stored. */
    historyOf: async (operation_id: string): Promise<string> =>
      historyToJSON(await withDeadline(() => handleOf(operation_id).fetchHistory())),

    terminate: async (operation_id: string, reason: string): Promise<void> => {
      await withDeadline(() => handleOf(operation_id).terminate(reason))
    },

    close: () => connection.close(),
  }
}
export type Inspection = ReturnType<typeof createInspection>
