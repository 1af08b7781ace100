import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Kind } from './routes.ts'

const SAMPLE_MS = 1000
/** A delay counts once it lasted for so many samples: one slow second is no overload. */
const SAMPLES = 5

/**
 * Sheds load before bodies are read (reliability.md 2.5), by requests under way and event loop delay: level 1, above a bound, refuses what arms and writes, level 2, above twice that, reads too.
 * Stopping is never shed; a login is kept as long as reads, since one must log in to stop.
 */
export const createPressure = (
  { in_flight: most, delay_ms }: { in_flight: number; delay_ms: number },
  onShed: (kind: Kind) => void,
) => {
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  let in_flight = 0
  const p99s: number[] = []
  const timer = setInterval(() => {
    p99s.push(delay.percentile(99) / 1e6)
    if (p99s.length > SAMPLES) p99s.shift()
    delay.reset()
  }, SAMPLE_MS).unref()
  const lasting_ms = () => (p99s.length < SAMPLES ? 0 : Math.min(...p99s))
  const level = () => Math.max(levelOf(in_flight, most), levelOf(lasting_ms(), delay_ms))
  return {
    enter: () => {
      in_flight += 1
    },
    leave: () => {
      in_flight -= 1
    },
    inFlight: () => in_flight,
    /** Whether a request of this kind is refused now. */
    sheds: (kind: Kind): boolean => {
      const now = kind === 'S' ? 0 : level()
      const shed = now >= 2 || (now === 1 && kind !== 'R')
      if (shed) onShed(kind)
      return shed
    },
    close: () => {
      clearInterval(timer)
      delay.disable()
    },
  }
}
export type Pressure = ReturnType<typeof createPressure>

const levelOf = (value: number, bound: number) => (value > 2 * bound ? 2 : value > bound ? 1 : 0)
