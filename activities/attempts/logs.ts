import { lineMaskerOf, type Masker } from '../../apps/shared/data/mask.ts'
import type { LogLine } from '../../db/operations/nodes/attempts.ts'

const MAX_LINE = 16 * 1024
/** Maximum text of one stored chunk. */
export const CHUNK_BYTES = 64 * 1024
const MAX_LOG = 50 * 1024 * 1024

/** An attempt's log lines: numbered without gaps across its slices, masked and bounded. One line marks a cut. */
export const createLog = ({ lines, bytes }: { lines: number; bytes: number }, mask: Masker, now: () => Date) => {
  let seq = lines
  let size = bytes
  let full = size > MAX_LOG
  const waiting: LogLine[] = []
  /** On its way to Postgres: until it is stored, it is sent again unchanged. */
  let chunk: LogLine[] = []
  let held = 0
  const masker = lineMaskerOf<{ stream: string; level: string; cut: boolean }>(mask, () => now().getTime())
  const push = (text: string, level: string, stream: string, cut: boolean) => {
    seq += 1
    const own = Buffer.byteLength(text)
    size += own
    held += own
    waiting.push({ seq, time: now().toISOString(), stream, level, text, ...(cut && { cut }) })
  }
  const put = ({ text, about: { level, stream, cut: begun } }: ReturnType<typeof masker.rest>[number]) => {
    const cut = Buffer.byteLength(text) > MAX_LINE
    push(cut ? Buffer.from(text).subarray(0, MAX_LINE).toString('utf8') : text, level, stream, cut || begun)
  }
  /** No line follows: none waits for the rest of a secret. */
  const settle = () => masker.rest().forEach(put)
  return {
    settle,
    add: (
      text: string,
      { level = 'info', stream = 'log', cut: begun = false }: Partial<Pick<LogLine, 'level' | 'stream' | 'cut'>> = {},
    ) => {
      if (full) return
      if (size > MAX_LOG) {
        full = true
        settle()
        return push('The log is longer than 50 MiB; the rest is not stored.', 'warn', 'log', false)
      }
      masker.add(text, { level, stream, cut: begun }).forEach(put)
    },
    /** Bytes not taken yet. */
    waiting: () => held,
    isSending: () => chunk.length > 0,
    /** The lines that the last `take` returned are stored. */
    done: () => {
      chunk = []
    },
    /** The next lines to store, at most one chunk; the same ones until they are `done`. */
    take: (): LogLine[] => {
      if (chunk.length > 0) return chunk
      // More than one chunk may hold the program up.
      masker.due(held > CHUNK_BYTES).forEach(put)
      let taken = 0
      let total = 0
      for (const line of waiting) {
        const own = Buffer.byteLength(line.text)
        if (taken > 0 && total + own > CHUNK_BYTES) break
        total += own
        taken += 1
      }
      held -= total
      chunk = waiting.splice(0, taken)
      return chunk
    },
  }
}
