import { createExternal, type OutsideDeps } from './agents/external.ts'
import { createCommand } from './command/run.ts'
import { createHttp } from './http/run.ts'
import { createWatch } from './http/watch.ts'
import { noop } from './noop.ts'
import type { ExecutorPolicy } from './policy.ts'
import type { Executor } from './types.ts'

/** The executors of this installation by name. */
export const createExecutors = (
  policy: ExecutorPolicy,
  { env, ...outside }: OutsideDeps & { env: NodeJS.ProcessEnv },
): ReadonlyMap<string, Executor> =>
  new Map(
    [createHttp(policy), createWatch(policy), createCommand(policy, env), createExternal(policy, outside), noop].map(
      (executor) => [executor.name, executor],
    ),
  )
