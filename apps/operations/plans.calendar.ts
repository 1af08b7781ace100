import type { Queryable } from '../../db/client.ts'
import type { Plan } from '../../db/operations/plans.ts'
import type { OperationCalendar } from '../shared/calendar.ts'
import type { OperationsDeps } from './deps.ts'
import { covers } from './planner/gates.ts'
import { loadTargets } from './targets.ts'

/**
 * What the claims of an operation ask before a node starts (operations.md 3.5): the windows and freezes of the calendar
 * as it is at the start, for the targets as they are then, and the window that was asked for. Nothing where none applies.
 */
export const calendarOf = async (
  db: Queryable,
  { library }: Pick<OperationsDeps, 'library'>,
  { catalog_pins, constraints }: Plan['document'],
  window_id: string | undefined,
  now: number,
): Promise<OperationCalendar | null> => {
  const wanted = window_id ?? constraints.window_id
  const asked = library.windows.find((window) => window.window_id === wanted)
  const freezes = library.freezes.filter(({ to }) => Date.parse(to) > now)
  if (library.windows.length + freezes.length === 0) return null
  const targets = await loadTargets(
    db,
    catalog_pins.map(({ resource_id }) => resource_id),
  )
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
