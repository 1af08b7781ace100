import type { InjectedSinks } from '@temporalio/worker'
import { pauseOnMismatch } from '../db/operations/nodes/mismatch.ts'
import type { OperationSinks } from '../workflows/operation/messages.ts'
import type { ActivityDeps } from './deps.ts'

type Deps = Pick<ActivityDeps, 'db' | 'log' | 'wake'>

/** Messages from workflows to the worker outside their history. Each replay sends them again, so none is lost. */
export const createSinks = ({ db, log, wake }: Deps): InjectedSinks<OperationSinks> => ({
  engine: {
    mismatch: {
      callDuringReplay: true,
      fn: async ({ workflowId }, message) => {
        log.error({ operation_id: workflowId, why: message }, 'the workflow cannot continue this operation')
        await pauseOnMismatch(db, workflowId, message)
        wake('operations')
      },
    },
  },
})
