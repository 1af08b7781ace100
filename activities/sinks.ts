import type { InjectedSinks } from '@temporalio/worker'
import { pauseOnMismatch } from '../db/operations/nodes/mismatch.ts'
import type { OperationSinks } from '../workflows/operation/messages.ts'
import type { ActivityDeps } from './deps.ts'

type Deps = Pick<ActivityDeps, 'db' | 'log' | 'wake'>

/** What workflows tell the worker past their history: at each try again, so that the rows have it in the end. */
export const createSinks = ({ db, log, wake }: Deps): InjectedSinks<OperationSinks> => ({
  engine: {
    mismatch: {
      callDuringReplay: true,
      fn: async ({ workflowId }, message) => {
        log.error({ operation_id: workflowId, why: message }, 'the workflow cannot carry this operation on')
        await pauseOnMismatch(db, workflowId, message)
        wake('operations')
      },
    },
  },
})
