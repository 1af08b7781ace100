import { createSleeper } from '../shared/sleep.ts'
import type { Logger } from '../shared/telemetry.ts'
import { forgetLoop, noteTurn } from '../shared/turns.ts'

export type Loop = { wake: () => void; stop: () => Promise<void> }

/**
 * Runs `turn` repeatedly: at once while it reports work, otherwise after `idle_ms` or when woken. A failing turn is
 * logged once per kind of failure and retried with backoff; it never ends the loop.
 */
export const startLoop = (name: string, log: Logger, idle_ms: number, turn: () => Promise<boolean>): Loop => {
  let stopped = false
  let woken = false
  const { sleep, wake } = createSleeper()
  let backoff = 0
  let lastError = ''
  noteTurn(name)
  const run = async () => {
    while (!stopped) {
      try {
        woken = false
        const more = await turn()
        noteTurn(name)
        if (lastError) log.info({ loop: name }, 'going on')
        lastError = ''
        backoff = 0
        if (more || woken || stopped) continue
        await sleep(idle_ms)
      } catch (error) {
        const message = (error as Error).message
        if (message !== lastError) log.warn({ loop: name, err: error }, 'turn failed; trying again')
        lastError = message
        backoff = Math.min(Math.max(backoff * 2, 100), 5000)
        await sleep(backoff)
      }
    }
  }
  const done = run()
  return {
    wake: () => {
      woken = true
      if (backoff === 0) wake()
    },
    stop: async () => {
      stopped = true
      wake()
      await done
      forgetLoop(name)
    },
  }
}
