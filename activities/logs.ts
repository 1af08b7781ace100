import type { LogLine } from '../db/operations/attempts.ts'

const MAX_LINE = 16 * 1024
const MAX_CHUNK = 64 * 1024
const MAX_LOG = 50 * 1024 * 1024

/** Lines of one attempt: numbered densely over all its slices, masked, bounded; one line says where the log was cut. */
export const createLog = (
  { lines, bytes }: { lines: number; bytes: number },
  mask: (text: string) => string,
  now: () => Date,
) => {
  let seq = lines
  let size = bytes
  let full = size > MAX_LOG
  const waiting: LogLine[] = []
  const push = (text: string, level: string, stream: string, cut: boolean) => {
    seq += 1
    size += Buffer.byteLength(text)
    waiting.push({ seq, time: now().toISOString(), stream, level, text, ...(cut && { cut }) })
  }
  return {
    add: (text: string, { level = 'info', stream = 'log' }: Partial<Pick<LogLine, 'level' | 'stream'>> = {}) => {
      if (full) return
      if (size > MAX_LOG) {
        full = true
        return push('The log is longer than 50 MiB; what follows is not kept.', 'warn', 'log', false)
      }
      const masked = mask(text)
      const cut = Buffer.byteLength(masked) > MAX_LINE
      push(cut ? Buffer.from(masked).subarray(0, MAX_LINE).toString('utf8') : masked, level, stream, cut)
    },
    waiting: () => waiting.length,
    /** The next lines to store, at most a chunk of them. */
    take: (): LogLine[] => {
      let taken = 0
      let total = 0
      for (const line of waiting) {
        total += Buffer.byteLength(line.text)
        if (taken > 0 && total > MAX_CHUNK) break
        taken += 1
      }
      return waiting.splice(0, taken)
    },
  }
}
export type AttemptLog = ReturnType<typeof createLog>
