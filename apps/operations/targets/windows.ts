import type { OperationCalendar } from '../../shared/data/calendar.ts'
import type { Covers, Freeze, Library, Target } from '../graph/types.ts'
import { askCovers, createCovers } from '../planner/gates.ts'

type Calendar = Pick<Library, 'windows' | 'freezes'>
const lasting = (freezes: readonly Freeze[], now: number): Freeze[] => freezes.filter(({ to }) => Date.parse(to) > now)

/** Asks which targets the calendar covers. Freezes that have not ended come first: what is left unasked holds nodes. */
export const askCalendar = ({ windows, freezes }: Calendar, targets: readonly Target[], now: number): Promise<Covers> =>
  askCovers([...lasting(freezes, now), ...windows], targets)

/** The calendar of targets already loaded: a rehearsal uses the calendar that the claims will use. */
export const calendarFor = (
  library: Calendar,
  targets: readonly Target[],
  window_id: unknown,
  now: number,
  covers: Covers = createCovers(),
): OperationCalendar | null => {
  const asked = library.windows.find((window) => window.window_id === window_id)
  const freezes = lasting(library.freezes, now)
  const covering = targets.map((target) => ({
    target,
    windows: library.windows.filter((window) => covers(window, target)),
    freezes: freezes.filter((freeze) => covers(freeze, target)),
  }))
  const used = new Set(covering.flatMap((found) => [...found.windows, ...found.freezes]))
  if (used.size === 0 && !asked) return null
  return {
    windows: Object.fromEntries(
      library.windows
        .filter((window) => used.has(window) || window === asked)
        .map(({ window_id: id, timezone, days, from, to }) => [id, { timezone, days, from, to }]),
    ),
    freezes: Object.fromEntries(
      freezes
        .filter((freeze) => used.has(freeze))
        .map(({ freeze_id, from, to, approvers }) => [freeze_id, { from, to, approvers }]),
    ),
    asked: asked?.window_id ?? null,
    targets: Object.fromEntries(
      covering
        .filter((found) => found.windows.length + found.freezes.length > 0)
        .map((found) => [
          found.target.resource_id,
          {
            windows: found.windows.map((window) => window.window_id),
            freezes: found.freezes.map((freeze) => freeze.freeze_id),
          },
        ]),
    ),
  }
}
