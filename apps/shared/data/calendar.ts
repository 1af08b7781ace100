import type { Closure } from '../contracts/operations/graph.ts'

/**
 * Windows and freezes (operations.md 3.5): when nodes may start. Pure; times are milliseconds since 1970. With several
 * windows, one open is enough; without windows it is always open. A freeze closes every window.
 */
export type WindowHours = {
  timezone: string
  /** Days on which it opens: mon … sun. */
  days: readonly string[]
  /** `HH:MM` of local time; `to` not after `from` means the next day. */
  from: string
  to: string
}
export type FrozenSpan = { from: string; to: string }

/** The limits on an operation's starts: windows and freezes by id, and which of them cover a target. */
export type OperationCalendar = {
  windows: Record<string, WindowHours>
  /**
   * Any of the listed groups may override a freeze; if there are none, anyone who may intervene. `regained`: it reaches
   * further than the freeze of this name that a gate of the operation asked about, so that approval does not count.
   */
  freezes: Record<string, FrozenSpan & { approvers: string[]; regained?: true }>
  /** The requested window, which applies to every node. */
  asked: string | null
  targets: Record<string, { windows: string[]; freezes: string[] }>
}

const DAY_MS = 86_400_000
/** A window that does not open again is checked once a week, because people may change the calendar. */
const LOOK_AGAIN_MS = 7 * DAY_MS
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
/** A window opens at least once a week; one more day on each side covers time zones and windows over midnight. */
const DAYS_AHEAD = 9

/** Returns `at` itself while one of the windows is open, else the next opening. */
export const nextOpening = (windows: readonly WindowHours[], at: number): number =>
  windows.length === 0 ? at : Math.min(...windows.map((window) => openingOf(window, at).opens_at))

/** Returns the span of a window that contains `at`, or the next one. */
export const openingOf = (window: WindowHours, at: number): { opens_at: number; closes_at: number } => {
  const today = Math.floor((at + offsetAt(window.timezone, at)) / DAY_MS)
  const overnight = window.to <= window.from ? 1 : 0
  for (let day = today - 1; day <= today + DAYS_AHEAD; day++) {
    if (!window.days.includes(DAYS[(((day + 4) % 7) + 7) % 7] ?? '')) continue
    const opens = instantOf(window.timezone, day * DAY_MS + clock(window.from), 'first')
    const closes_at = instantOf(window.timezone, (day + overnight) * DAY_MS + clock(window.to), 'last')
    // In a night when clocks go forward, a window inside the gap has no minute.
    if (closes_at > Math.max(opens, at)) return { opens_at: Math.max(opens, at), closes_at }
  }
  return { opens_at: Number.POSITIVE_INFINITY, closes_at: Number.POSITIVE_INFINITY }
}

/** Returns the spans of a window that are open after `at` and open before `until`, in order. */
export const openingsUntil = (window: WindowHours, at: number, until: number): ReturnType<typeof openingOf>[] => {
  const openings = []
  for (let next = openingOf(window, at); next.opens_at < until; next = openingOf(window, next.closes_at))
    openings.push(next)
  return openings
}

/** Returns when the last of the freezes in force at `at` ends; `at` if none is in force. */
const thawOf = (freezes: readonly FrozenSpan[], at: number): number =>
  freezes.reduce(
    (until, { from, to }) => (Date.parse(from) <= at && at < Date.parse(to) ? Math.max(until, Date.parse(to)) : until),
    at,
  )

/**
 * Returns what keeps a node of this target from starting at `at`, if anything. Freezes that `passed` at a gate do not,
 * unless they have regained their force.
 */
export const closureOf = (
  calendar: OperationCalendar,
  target_id: string | null,
  passed: readonly string[],
  at: number,
): Closure | undefined => {
  const { windows = [], freezes = [] } = calendar.targets[target_id ?? ''] ?? {}
  const frozen = freezes
    .filter((id) => !passed.includes(id) || calendar.freezes[id]?.regained)
    .map((id) => until('freeze', id, thawOf(pick(calendar.freezes, id), at)))
  const freeze = frozen.sort((a, b) => b.until - a.until)[0]
  if (freeze && freeze.until > at) return freeze
  const openings = (ids: readonly string[]) =>
    ids
      .map((id) => until('window', id, nextOpening(pick(calendar.windows, id), at)))
      .sort((a, b) => a.until - b.until)[0]
  const asked = calendar.asked === null ? undefined : openings([calendar.asked])
  const window = [openings(windows), asked].find((opening) => opening !== undefined && opening.until > at)
  return window && { ...window, until: Math.min(window.until, at + LOOK_AGAIN_MS) }
}

/** The ends of the freezes that hold an operation, by id, as its evidence states them. */
export const freezeEnds = (calendar: OperationCalendar | null): Record<string, string> =>
  Object.fromEntries(Object.entries(calendar?.freezes ?? {}).map(([id, { to }]) => [id, to]))

export const isFrozen = (freeze: FrozenSpan, at: number): boolean => thawOf([freeze], at) > at

const until = (kind: Closure['kind'], id: string, time: number): Closure => ({ kind, id, until: time })
const pick = <T>(all: Record<string, T>, id: string): T[] => (all[id] === undefined ? [] : [all[id]])

const clock = (time: string): number => {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  return (hours * 60 + minutes) * 60_000
}

/**
 * Returns the instant of a local time. A time that does not exist (clocks go forward) gives the end of the gap. A time
 * that exists twice gives the first for an opening and the last for a closing, so no window is shorter than stated.
 */
const instantOf = (timezone: string, local: number, which: 'first' | 'last'): number => {
  const before = offsetAt(timezone, local - DAY_MS)
  const after = offsetAt(timezone, local + DAY_MS)
  const found = [local - before, local - after].filter((instant) => instant + offsetAt(timezone, instant) === local)
  if (found.length > 0) return which === 'first' ? Math.min(...found) : Math.max(...found)
  return changeBetween(timezone, local - Math.max(before, after), local - Math.min(before, after))
}

/** Returns the moment in (low, high] at which the clocks of a time zone change, to the minute. */
const changeBetween = (timezone: string, low: number, high: number): number => {
  const old = offsetAt(timezone, low)
  let [early, late] = [Math.floor(low / 60_000), Math.ceil(high / 60_000)]
  while (late - early > 1) {
    const middle = Math.floor((early + late) / 2)
    if (offsetAt(timezone, middle * 60_000) === old) early = middle
    else late = middle
  }
  return late * 60_000
}

const formats = new Map<string, Intl.DateTimeFormat>()
/** Returns by how many milliseconds local time is ahead of UTC at an instant. */
const offsetAt = (timezone: string, instant: number): number => {
  let format = formats.get(timezone)
  if (!format) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: timezone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    formats.set(timezone, format)
  }
  const part = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]))
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(instant / 1000) * 1000
}

export const isTimezone = (timeZone: string): boolean => {
  try {
    // Intl also takes an offset, which no summer time follows.
    return !/^[+-]/.test(timeZone) && Boolean(new Intl.DateTimeFormat('en', { timeZone }))
  } catch {
    return false
  }
}
