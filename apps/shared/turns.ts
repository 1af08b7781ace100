import type { Telemetry } from './telemetry.ts'

/** When each loop of this process last came to the end of a turn, by `performance.now()`. */
const ended = new Map<string, number>()

/** Notes that a turn of a loop ended well, or that the loop begins. */
export const noteTurn = (loop: string): void => {
  ended.set(loop, performance.now())
}

/** A loop that was stopped in order is late no more. */
export const forgetLoop = (loop: string): void => {
  ended.delete(loop)
}

/** Tells how long ago each loop ended a turn well: one that fails or hangs grows old. */
export const measureTurns = (telemetry: Telemetry): void => {
  const gauge = telemetry.gauge('signalbox_loop_age_seconds', 'Since a loop ended a turn well.', ['loop'])
  Object.assign(gauge, {
    collect: () => {
      gauge.reset()
      for (const [loop, at] of ended) gauge.set({ loop }, (performance.now() - at) / 1000)
    },
  })
}
