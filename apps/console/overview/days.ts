import type { PlannedTick } from '../../shared/contracts/overview/overview.ts'
import { format, type Zone } from '../kit/format.ts'

/** A time span of a freeze or an open window, in milliseconds. */
export type Band = { id: string; kind: 'freeze' | 'window'; title: string; from: number; to: number }
type Calendar = {
  freezes: { freeze_id: string; title: string; from: string; to: string }[]
  /** A server that is older than the console tells no openings. */
  windows: { window_id: string; openings?: { opens_at: string; closes_at: string }[] }[]
}

/** All freezes, and every opening of each window. */
export const bandsOf = ({ freezes, windows }: Calendar): Band[] => [
  ...freezes.map(({ freeze_id, title, from, to }) => ({
    ...{ id: `freeze ${freeze_id}`, kind: 'freeze' as const, title, from: Date.parse(from), to: Date.parse(to) },
  })),
  ...windows.flatMap(({ window_id, openings = [] }) =>
    openings.map(({ opens_at, closes_at }) => ({
      ...{ id: `window ${window_id}`, kind: 'window' as const, title: window_id },
      ...{ from: Date.parse(opens_at), to: Date.parse(closes_at) },
    })),
  ),
]

/** The freezes and windows between two moments, each once: a window over midnight opens and closes on the same day. */
export const bandsIn = (bands: readonly Band[], from: number, to: number): Band[] => [
  ...new Map(bands.filter((band) => band.from < to && band.to > from).map((band) => [band.id, band])).values(),
]

/** The planned events from one moment until before another. */
export const ticksOf = (planned: readonly PlannedTick[], from: number, to: number): PlannedTick[] =>
  planned.filter(({ at }) => Date.parse(at) >= from && Date.parse(at) < to)

/** The starts of today and the days after it, in milliseconds: one more than `days`, for the end of the last. */
export const dayStarts = (now: number, zone: Zone, days: number): number[] => {
  const today = Math.floor((now + aheadAt(now, zone)) / DAY_MS) * DAY_MS
  return Array.from({ length: days + 1 }, (_, n) => {
    const midnight = today + n * DAY_MS
    // The clocks may change between the guess and midnight.
    const guess = midnight - aheadAt(midnight, zone)
    const start = midnight - aheadAt(guess, zone)
    // Where the clocks skip midnight, the day begins when they do.
    return start + aheadAt(start, zone) < midnight ? guess : start
  })
}
const DAY_MS = 86_400_000

/** How far the zone's clocks are ahead of UTC at this moment. */
const aheadAt = (at: number, zone: Zone): number => {
  const parts = format(zone, CLOCK).formatToParts(at)
  const [year = 0, month = 1, ...rest] = ['year', 'month', 'day', 'hour', 'minute', 'second'].map((type) =>
    Number(parts.find((part) => part.type === type)?.value),
  )
  return Date.UTC(year, month - 1, ...rest) - Math.floor(at / 1000) * 1000
}
const CLOCK: Intl.DateTimeFormatOptions = {
  ...{ year: 'numeric', month: 'numeric', day: 'numeric' },
  ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
}
