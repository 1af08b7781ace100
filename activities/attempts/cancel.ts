import { ApplicationFailure } from '@temporalio/activity'
import { newestExecution } from '../../db/operations/agents/executions.ts'
import type { ActivityDeps } from '../deps.ts'
import { tellToStop } from '../executors/agents/doors.ts'

export type CancelInput = { operation_id: string; node_id: string; role: 'run' | 'undo'; attempt: number }

/**
 * Tells an external agent to stop its work (operations.md 7.4). The agent also learns this from the answer to its next
 * message. This call only speeds that up, so nobody waits for it, and it skips work that no agent has.
 */
export const createCancelActivities = ({ pool, policy, agents }: ActivityDeps) => ({
  cancel_attempt: async (input: CancelInput): Promise<void> => {
    const known = await newestExecution(pool, input)
    if (!known) return
    const { operation_id, node_id, attempt } = input
    const { generation, fence } = known
    const refused = await tellToStop(policy, agents, known.pool, { operation_id, node_id, attempt, generation, fence })
    if (refused !== undefined) throw ApplicationFailure.retryable(refused, 'not_told')
  },
})
