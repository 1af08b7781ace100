import { setTimeout as delay } from 'node:timers/promises'
import { createSleeper } from '../sleep.ts'
import { forgetLoop, noteTurn } from '../turns.ts'

const FIRST_MS = 500
const LONGEST_MS = 10_000

/** Repeats an act until success or signal, pausing up to 10 s: one slow answer has no lasting effect. Never rejects. */
export const repeatUntilDone = async (
  act: () => Promise<void>,
  signal: AbortSignal,
  failed: (error: Error) => void,
): Promise<void> => {
  for (let pause = FIRST_MS; !signal.aborted; pause = Math.min(2 * pause, LONGEST_MS)) {
    try {
      return await act()
    } catch (error) {
      if (signal.aborted) return
      failed(error as Error)
      await delay(pause, undefined, { signal, ref: false }).catch(() => {})
    }
  }
}
export type Loop = { wake: () => void; stop: () => Promise<void> }

/**
 * Runs an act now, and again this long after it ended or when woken, or at once if it returns true: there is more. After
 * failures in a row it waits for `pause`, and no one wakes it. Once stopped, it lets a running act finish.
 */
export const startLoop = (
  name: string,
  act: () => Promise<unknown>,
  {
    every_ms,
    failed,
    pause = () => every_ms,
  }: { every_ms: number; failed: (error: unknown) => void; pause?: (failures: number) => number },
): Loop => {
  let stopped = false
  let woken = false
  let failures = 0
  const { sleep, wake } = createSleeper()
  noteTurn(name)
  const run = async () => {
    while (!stopped) {
      woken = false
      try {
        const more = await act()
        noteTurn(name)
        failures = 0
        if (more === true) continue
      } catch (error) {
        failures += 1
        failed(error)
      }
      if (stopped || (woken && failures === 0)) continue
      await sleep(failures > 0 ? pause(failures) : every_ms)
    }
  }
  const done = run()
  return {
    wake: () => {
      woken = true
      if (failures === 0) wake()
    },
    stop: async () => {
      stopped = true
      wake()
      await done
      forgetLoop(name)
    },
  }
}
