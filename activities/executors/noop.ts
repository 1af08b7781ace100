import { setTimeout as delay } from 'node:timers/promises'
import type { Executor } from './types.ts'

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
