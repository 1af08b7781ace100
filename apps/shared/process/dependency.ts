import type { Telemetry } from '../telemetry.ts'
import { type Breaker, createBreaker } from './breaker.ts'

/** The result of a call: `failed` the dependency was away, `refused` it said no, `gone` the caller gave up. */
export type CallResult = 'ok' | 'refused' | 'failed' | 'gone'

export type WatchedDependency = {
  breaker: Breaker
  /** Counts a finished call and reports it to the breaker. `started` is from `performance.now()`. */
  called: (op: string, result: CallResult, started: number) => void
}

/** The breaker of one dependency with its metrics (reliability.md 2.4, 7). `op` is a closed set of names, never an id. */
export const watchDependency = (telemetry: Telemetry | undefined, dependency: string): WatchedDependency => {
  const state = telemetry?.gauge('signalbox_breaker_state', 'Whether the breaker of a dependency is open (1).', [
    'dependency',
  ])
  const calls = telemetry?.counter('signalbox_dependency_calls_total', 'Calls of other services.', [
    'dependency',
    'op',
    'result',
  ])
  const seconds = telemetry
    ?.histogram('signalbox_dependency_duration_seconds', 'Time of calls of other services.', ['dependency'])
    .labels({ dependency })
  state?.set({ dependency }, 0)
  const breaker = createBreaker({ onChange: (open) => state?.set({ dependency }, open ? 1 : 0) })
  return {
    breaker,
    called: (op, result, started) => {
      if (result !== 'gone') breaker.report(result !== 'failed')
      calls?.inc({ dependency, op, result })
      seconds?.observe((performance.now() - started) / 1000)
    },
  }
}
