import { setTimeout as delay } from 'node:timers/promises'
import { createExternal, type OutsideDeps } from './agents/external.ts'
import { createCommand } from './command/run.ts'
import { createHttp } from './http/run.ts'
import { createWatch } from './http/watch.ts'
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

/** Has no effect except the commits that every node makes; for tests and benchmarks. */
export const noop: Executor = {
  name: 'noop',
  run: async ({ with: values, signal }) => {
    const { delay_ms = 0, outputs = {} } = values as { delay_ms?: number; outputs?: Record<string, unknown> }
    if (delay_ms > 0) {
      try {
        await delay(delay_ms, undefined, { signal })
      } catch {
        return { status: 'failed', class: 'cancelled', message: 'It was told to stop.' }
      }
    }
    return { status: 'succeeded', raw: outputs }
  },
}
