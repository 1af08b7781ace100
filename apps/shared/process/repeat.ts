import { setTimeout as delay } from 'node:timers/promises'
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
export type Loop = { stop: () => Promise<void> }

/**
 * Runs an act now, and again this long after it ended, or at once if it returns true: there is more. Once stopped, it
 * lets a running act finish.
 */
export const startLoop = (
  name: string,
  act: () => Promise<unknown>,
  { every_ms, failed }: { every_ms: number; failed: (error: unknown) => void },
): Loop => {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  noteTurn(name)
  const turn = () => {
    let more: unknown
    running = act()
      .then((result) => {
        more = result
        noteTurn(name)
      })
      .catch(failed)
      .finally(() => {
        if (!stopped) timer = setTimeout(turn, more === true ? 0 : every_ms)
      })
  }
  turn()
  return {
    stop: async () => {
      stopped = true
      clearTimeout(timer)
      await running
      forgetLoop(name)
    },
  }
}
