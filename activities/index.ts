import { createCatalogActivities } from './catalog.ts'
import type { ActivityDeps } from './deps.ts'
import { createExecutionActivities } from './execution.ts'
import { createOperationActivities } from './operation.ts'

/** Activities of the queue `bookkeeping`: what moves rows, and the catalog. */
export const createBookkeeping = (deps: ActivityDeps) => ({
  ...createOperationActivities(deps),
  ...createCatalogActivities(deps),
})

/** Activities of the queue `operation`, beside the workflows: the work of nodes. */
export const createExecution = createExecutionActivities

export type Bookkeeping = ReturnType<typeof createBookkeeping>
export type Execution = ReturnType<typeof createExecution>
