import { createHttp } from './http.ts'
import { noop } from './noop.ts'
import type { ExecutorPolicy } from './policy.ts'
import type { Executor } from './types.ts'

/** The executors of this installation by name. */
export const createExecutors = (policy: ExecutorPolicy): ReadonlyMap<string, Executor> =>
  new Map([createHttp(policy), noop].map((executor) => [executor.name, executor]))
