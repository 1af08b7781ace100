import { ApplicationFailure } from '@temporalio/activity'
import { newestExecution } from '../../db/operations/agents/executions.ts'
import type { ActivityDeps } from '../deps.ts'
import { tellToStop } from '../executors/agents/doors.ts'

export type CancelInput = { operation_id: string; node_id: string; role: 'run' | 'undo'; attempt: number }

/**
 * Tells an agent outside that its work is to stop (operations.md 7.4). It also hears so in the answer to its next word;
 * this only makes it hear sooner, so nobody waits for it, and work that no agent has is passed over.
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
