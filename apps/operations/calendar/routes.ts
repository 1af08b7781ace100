import { listPutFreezes, type PutFreeze } from '../../../db/operations/plans/calendar.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import { allow } from '../../shared/auth/http.ts'
import { CalendarView } from '../../shared/contracts/operations/calendar.ts'
import { openingOf, openingsUntil } from '../../shared/data/calendar.ts'
import { routes } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import type { Library } from '../graph/types.ts'
import { libraryNow } from '../targets/calendar.ts'
import { itemOf } from './people.ts'

/** Windows and freezes of this deployment, as they apply to plans (operations.md 3.5). */
export const calendarRoutes = routes<Uses<'clock' | 'db' | 'library'>>('plans', (app, { deps }) => {
  app.get('/v1/calendar', {
    operationId: 'getCalendar',
    summary: 'Read the calendar',
    description:
      'Lists windows with their next openings, and current and future freezes. Both bind when a node starts, never when it ends.',
    response: { 200: CalendarView },
    preHandler: allow('operation:read', { kind: 'R' }),
    handler: async ({ caller }) => {
      const [library, put] = [await libraryNow(deps.db, deps.library), await listPutFreezes(deps.db)]
      return calendarAt(caller, library, put, deps.clock.now().getTime())
    },
  })
})

/** The console's calendar has 14 days, which begin at midnight and are an hour longer when clocks change. */
const AHEAD_MS = 15 * 86_400_000

const calendarAt = (caller: Caller, library: Library, put: readonly PutFreeze[], now: number) => ({
  windows: library.windows.map(({ applies, ...window }) => {
    const { opens_at, closes_at } = openingOf(window, now)
    return {
      ...window,
      applies: applies.source,
      open: opens_at === now,
      opens_at: instant(opens_at),
      closes_at: instant(closes_at),
      openings: openingsUntil(window, now, now + AHEAD_MS).map((span) => ({
        opens_at: new Date(span.opens_at).toISOString(),
        closes_at: new Date(span.closes_at).toISOString(),
      })),
    }
  }),
  freezes: library.freezes
    .filter(({ to }) => Date.parse(to) > now)
    .sort((a, b) => Date.parse(a.from) - Date.parse(b.from))
    .map((freeze) => {
      const put_by = put.find(({ freeze_id }) => freeze_id === freeze.freeze_id)?.put_by
      return itemOf(caller, { ...freeze, applies: freeze.applies.source, ...(put_by && { put_by }) }, now)
    }),
  as_of: new Date(now).toISOString(),
})

const instant = (at: number) => (Number.isFinite(at) ? new Date(at).toISOString() : null)
