import type { Queryable } from '../../../db/client.ts'
import { listPutFreezes } from '../../../db/operations/plans/calendar.ts'
import type { OperationCalendar } from '../../shared/data/calendar.ts'
import { digest } from '../../shared/data/digest.ts'
import { type CelProgram, compileCel } from '../../shared/expressions/cel.ts'
import type { Freeze, Library } from '../graph/types.ts'
import { loadTargets } from './resolve.ts'
import { askCalendar, calendarFor } from './windows.ts'

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

/** Returns the library with the freezes of its files and those that control planes have put. */
export const libraryNow = async (db: Queryable, library: Library): Promise<Library> => {
  const put = await listPutFreezes(db)
  if (put.length === 0) return library
  const freezes = put.map(({ freeze_id, title, applies, from, to, approvers, within }): Freeze => {
    const given = { freeze_id, title, applies, from, to, approvers, ...(within && { within }) }
    return { ...given, applies: compiled(applies), digest: digest(given) }
  })
  return { ...library, freezes: [...library.freezes, ...freezes] }
}

/**
 * Returns the calendar that an operation's claims check before a node starts (operations.md 3.5): current windows and
 * freezes for the current targets, and the requested window. `undefined` if none applies.
 */
export const calendarOf = async (
  db: Queryable,
  { library: files }: { library: Library },
  { resource_ids, window_id }: { resource_ids: readonly string[]; window_id: unknown },
  now: number,
): Promise<OperationCalendar | null> => {
  const library = await libraryNow(db, files)
  if (library.windows.length + library.freezes.length === 0) return null
  const targets = await loadTargets(db, resource_ids)
  return calendarFor(library, targets, window_id, now, await askCalendar(library, targets, now))
}
