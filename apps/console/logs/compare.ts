import { diffArrays } from 'diff'
import { runsOf } from './ansi.ts'

type Numbered = { seq: number; text: string }
/** A line of either log beside its counterpart in the other; `same` if only times, durations and ids differ. */
export type Pair = { before?: Numbered; after?: Numbered; same: boolean }

/** Longer logs, and those whose differences take longer to find, are paired by line number. */
const MOST = 20_000
const TIME_MS = 5000
const TIMES =
  /\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?|\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?/g
const DURATIONS = /\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|sec|min|m|h)\b/g
const IDS = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{8,}\b/gi

/** A line as it is compared: plain text in which every time, duration and id reads the same. */
const masked = (line: string): string =>
  runsOf(line)
    .map(({ text }) => text)
    .join('')
    .replace(TIMES, '⌚')
    .replace(IDS, '#')
    .replace(DURATIONS, '⌛')

/** The lines of two logs side by side, in the order of both. */
export const pairsOf = (before: readonly string[], after: readonly string[]): Pair[] => {
  const [left, right] = [before.map(masked), after.map(masked)]
  const pair = (b: number | undefined, a: number | undefined): Pair => ({
    ...(b !== undefined && { before: { seq: b + 1, text: before[b] ?? '' } }),
    ...(a !== undefined && { after: { seq: a + 1, text: after[a] ?? '' } }),
    same: b !== undefined && a !== undefined && left[b] === right[a],
  })
  const long = Math.max(left.length, right.length) > MOST
  const changes = (long ? undefined : diffArrays(left, right, { timeout: TIME_MS })) ?? [
    { removed: true, added: false, count: left.length },
    { removed: false, added: true, count: right.length },
  ]
  const pairs: Pair[] = []
  let [b, a, gone, come] = [0, 0, 0, 0]
  const flush = () => {
    for (let n = 0; n < Math.max(gone, come); n += 1)
      pairs.push(pair(n < gone ? b + n : undefined, n < come ? a + n : undefined))
    b += gone
    a += come
    gone = come = 0
  }
  for (const { removed, added, count } of changes) {
    if (removed) gone += count
    else if (added) come += count
    else {
      flush()
      for (let n = 0; n < count; n += 1) pairs.push(pair(b++, a++))
    }
  }
  flush()
  return pairs
}
