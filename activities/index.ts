import { createCancelActivities } from './attempts/cancel.ts'
import { createExecutionActivities } from './attempts/execution.ts'
import { createCatalogActivities } from './catalog.ts'
import type { ActivityDeps } from './deps.ts'
import { createLocalActivities, createOperationActivities } from './operation.ts'

/** Activities of the queue `bookkeeping`: rows and the catalog; graphs if begun without the patch `local-graph`. */
export const createBookkeeping = (deps: ActivityDeps) => ({
  ...createLocalActivities(deps),
  ...createOperationActivities(deps),
  ...createCatalogActivities(deps),
})

/** Activities of the queue `operation`, which also runs the workflows: the work of nodes. */
export const createExecution = (deps: ActivityDeps) => ({
  ...createExecutionActivities(deps),
  ...createCancelActivities(deps),
})

/** Activities that run in the workflow's own process, without a queue. */
export const createLocal = createLocalActivities

export type Bookkeeping = ReturnType<typeof createBookkeeping>
export type Execution = ReturnType<typeof createExecution>
export type Local = ReturnType<typeof createLocal>
