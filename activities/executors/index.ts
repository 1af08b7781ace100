import { createExternal, type OutsideDeps } from './external.ts'
import { createHttp } from './http.ts'
import { noop } from './noop.ts'
import type { ExecutorPolicy } from './policy.ts'
import type { Executor } from './types.ts'

/** The executors of this installation by name. */
export const createExecutors = (policy: ExecutorPolicy, outside: OutsideDeps): ReadonlyMap<string, Executor> =>
  new Map([createHttp(policy), createExternal(policy, outside), noop].map((executor) => [executor.name, executor]))
