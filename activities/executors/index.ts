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
    [
      ...[createHttp(policy), createWatch(policy), createCommand(policy, env)].map(checked),
      noop,
      createExternal(policy, outside),
    ].map((executor) => [executor.name, executor]),
  )

/**
 * Inputs may come from outputs of other nodes, which the plan could not check. Only values that no executor takes are
 * refused; the outcome of work that may have begun is then unknown.
 */
export const checked = (executor: Executor): Executor => ({
  ...executor,
  run: async (context) => {
    const faults = context.resume ? [] : faultsInStep(executor.name, context.with)
    const fault = faults.find(({ taken }) => !taken)
    if (!fault) return executor.run(context)
    const message = `The inputs of the step do not fit: ${fault.pointer} ${fault.message}.`
    return context.repeated
      ? { status: 'unknown', class: 'refused', message: `${message} An earlier try may have begun.`, final: true }
      : failed('refused', `${message} No work has begun.`)
  },
})
