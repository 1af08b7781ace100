import { setTimeout as delay } from 'node:timers/promises'
import { lineMaskerOf, type Masker } from '../../shared/data/mask.ts'
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
export const createLog = (mask: Masker, stop: AbortSignal, now?: () => number) => {
  const lines: Line[] = []
  let seq = 0
  let gap = false
  const masker = lineMaskerOf<LogLine>(mask, now)
  const put = (text: string, about: LogLine) => {
    seq += 1
    const cut = about.cut || text.length > MAX_TEXT
    lines.push({ seq, time: new Date().toISOString(), ...about, text: text.slice(0, MAX_TEXT), ...(cut && { cut }) })
  }
  /** No line follows: none waits for the rest of a secret. */
  const settle = () => {
    for (const { text, about } of masker.rest()) put(text, about)
  }
  const add: Job['log'] = (text, { stream = 'log', level = 'info', cut = false } = {}) => {
    const full = stop.aborted && lines.length > HELD
    if (full && !gap) {
      settle()
      put(GAP, { stream: 'log', level: 'warn', cut: true })
    }
    gap = full
    if (!full) for (const line of masker.add(text, { stream, level, ...(cut && { cut }) })) put(line.text, line.about)
  }
  return {
    lines,
    add,
    settle,
    stored: async () => {
      while (lines.length > HELD && !stop.aborted) await delay(100)
    },
    /** The lines of the next message; more than one of them hold the program up. */
    part: (): Line[] => {
      for (const { text, about } of masker.due(lines.length >= LINES)) put(text, about)
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
