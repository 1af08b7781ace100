import { setTimeout as delay } from 'node:timers/promises'
import type { Masker } from '../../shared/data/mask.ts'
import { fitting } from './tools/picture.ts'
import type { Job, LogLine } from './tools/types.ts'

/** Lines of one message; its bytes are far below the accepted size, because escapes may multiply them. */
export const LINES = 500
const MAX_PART = 2_000_000
/** The job pauses above this many lines until the control plane accepts some. */
const HELD = 2000
const MAX_TEXT = 16_000
const GAP = 'Lines are missing here: the job had to stop, and the control plane did not accept its lines fast enough.'

type Line = { seq: number; time: string; text: string } & LogLine

/**
 * The log of an attempt that the control plane has not accepted yet: numbered, masked and bounded. A job that must stop
 * is not paused, because it could not end. Lines above the bound are dropped then, and one line marks the gap.
 */
export const createLog = (mask: Masker, stop: AbortSignal) => {
  const lines: Line[] = []
  let seq = 0
  let gap = false
  const put = (text: string, about: LogLine) => {
    seq += 1
    lines.push({ seq, time: new Date().toISOString(), ...about, text })
  }
  const add: Job['log'] = (text, { stream = 'log', level = 'info', cut = false } = {}) => {
    const full = stop.aborted && lines.length > HELD
    if (full && !gap) put(GAP, { stream: 'log', level: 'warn', cut: true })
    gap = full
    if (full) return
    const masked = mask(text, { cut })
    put(masked.slice(0, MAX_TEXT), { stream, level, ...((cut || masked.length > MAX_TEXT) && { cut: true }) })
  }
  return {
    lines,
    add,
    stored: async () => {
      while (lines.length > HELD && !stop.aborted) await delay(100)
    },
    /** The lines of the next message. */
    part: (): Line[] => {
      const fit = fitting(
        lines.slice(0, LINES).map(({ text }) => text),
        MAX_PART,
      )
      return lines.slice(0, Math.max(fit.length, 1))
    },
    /** The lines of a message were accepted. */
    done: (part: readonly Line[]) => void lines.splice(0, part.length),
  }
}
export type Log = ReturnType<typeof createLog>
