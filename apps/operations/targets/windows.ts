import type { OperationCalendar } from '../../shared/data/calendar.ts'
import type { Covers, Library, Target } from '../graph/types.ts'
import { createCovers } from '../planner/gates.ts'

/** The same for targets already loaded: a rehearsal uses the calendar that the claims will use. */
export const calendarFor = (
  library: Pick<Library, 'windows' | 'freezes'>,
  targets: readonly Target[],
  window_id: unknown,
  now: number,
  covers: Covers = createCovers(),
): OperationCalendar | null => {
  const asked = library.windows.find((window) => window.window_id === window_id)
  const freezes = library.freezes.filter(({ to }) => Date.parse(to) > now)
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
