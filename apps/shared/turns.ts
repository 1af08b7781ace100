import type { Telemetry } from './telemetry.ts'

/** When each loop of this process last completed a turn, by `performance.now()`. */
const ended = new Map<string, number>()

/** Records that a turn of a loop succeeded, or that the loop begins. */
export const noteTurn = (loop: string): void => {
  ended.set(loop, performance.now())
}

/** A loop that was stopped in order no longer counts as late. */
export const forgetLoop = (loop: string): void => {
  ended.delete(loop)
}

/** Reports how long ago each loop last completed a turn: the age of a failing or hanging loop grows. */
export const measureTurns = (telemetry: Telemetry): void => {
  const gauge = telemetry.gauge('signalbox_loop_age_seconds', 'Since a loop ended a turn well.', ['loop'])
  Object.assign(gauge, {
    collect: () => {
      gauge.reset()
      for (const [loop, at] of ended) gauge.set({ loop }, (performance.now() - at) / 1000)
    },
  })
}
