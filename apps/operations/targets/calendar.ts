import type { Queryable } from '../../../db/client.ts'
import { listPutFreezes } from '../../../db/operations/plans/calendar.ts'
import type { OperationCalendar } from '../../shared/data/calendar.ts'
import { digest } from '../../shared/data/digest.ts'
import { type CelProgram, compileCel } from '../../shared/expressions/cel.ts'
import type { Freeze, Library, Target } from '../graph/types.ts'
import { covers } from '../planner/gates.ts'
import { loadTargets } from './resolve.ts'

const MAX_PROGRAMS = 1000
const programs = new Map<string, CelProgram>()
const compiled = (source: string): CelProgram => {
  const known = programs.get(source)
  if (known) return known
  if (programs.size >= MAX_PROGRAMS) programs.clear()
  const program = compileCel(source, ['target'])
  programs.set(source, program)
  return program
}

/** The library with the freezes that control planes have put beside those of its files. */
export const libraryNow = async (db: Queryable, library: Library): Promise<Library> => {
  const put = await listPutFreezes(db)
  if (put.length === 0) return library
  const freezes = put.map(({ freeze_id, title, applies, from, to, approvers }): Freeze => {
    const given = { freeze_id, title, applies, from, to, approvers }
    return { ...given, applies: compiled(applies), digest: digest(given) }
  })
  return { ...library, freezes: [...library.freezes, ...freezes] }
}

/**
 * What the claims of an operation ask before a node starts (operations.md 3.5): the windows and freezes of the calendar
 * as it is now, for the targets as they are now, and the window that was asked for. Undefined if none applies.
 */
export const calendarOf = async (
  db: Queryable,
  { library: files }: { library: Library },
  { resource_ids, window_id }: { resource_ids: readonly string[]; window_id: unknown },
  now: number,
): Promise<OperationCalendar | null> => {
  const library = await libraryNow(db, files)
  if (library.windows.length + library.freezes.length === 0) return null
  return calendarFor(library, await loadTargets(db, resource_ids), window_id, now)
}

/** The same for targets that are at hand: a rehearsal asks what the claims will ask. */
export const calendarFor = (
  library: Pick<Library, 'windows' | 'freezes'>,
  targets: readonly Target[],
  window_id: unknown,
  now: number,
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
