import { faultsInStep } from '../../apps/shared/steps/inputs.ts'
import { createExternal, type OutsideDeps } from './agents/external.ts'
import { createCommand } from './command/run.ts'
import { createHttp } from './http/run.ts'
import { failed } from './http/send.ts'
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
    [createHttp(policy), createWatch(policy), createCommand(policy, env), createExternal(policy, outside), noop]
      .map(checked)
      .map((executor) => [executor.name, executor]),
  )

/** Inputs may come from outputs of other nodes, which the plan could not check. Work that has begun is not refused. */
export const checked = (executor: Executor): Executor => ({
  ...executor,
  run: async (context) => {
    const [fault] = context.resume ? [] : faultsInStep(executor.name, context.with)
    return fault
      ? failed('refused', `The inputs of the step do not fit: ${fault.pointer} ${fault.message}. No work has begun.`)
      : executor.run(context)
  },
})
