import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { listPutFreezes, type PutFreeze } from '../../../db/operations/plans/calendar.ts'
import { allow } from '../../shared/auth/http.ts'
import { CalendarView } from '../../shared/contracts/operations/calendar.ts'
import { openingOf } from '../../shared/data/calendar.ts'
import { errorReplies } from '../../shared/http/app.ts'
import type { OperationsDeps } from '../deps.ts'
import type { Library } from '../graph/types.ts'
import { libraryNow } from '../targets/calendar.ts'

/** Windows and freezes of this deployment, as plans meet them (operations.md 3.5). */
export const calendarRoutes: FastifyPluginAsyncTypebox<{
  deps: Pick<OperationsDeps, 'clock' | 'db' | 'library'>
}> = async (app, { deps }) => {
  app.get(
    '/v1/calendar',
    {
      schema: {
        operationId: 'getCalendar',
        summary: 'Read the calendar',
        description:
          'Windows with their next opening and freezes that are not over. Both bind when nodes start, never when they end.',
        tags: ['plans'],
        response: { 200: CalendarView, ...errorReplies },
      },
      preHandler: allow('operation:read', { kind: 'R' }),
    },
    async () => {
      const [library, put] = [await libraryNow(deps.db, deps.library), await listPutFreezes(deps.db)]
      return calendarAt(library, put, deps.clock.now().getTime())
    },
  )
}

const calendarAt = (library: Library, put: readonly PutFreeze[], now: number) => ({
  windows: library.windows.map(({ applies, ...window }) => {
    const { opens_at, closes_at } = openingOf(window, now)
    return {
      ...window,
      applies: applies.source,
      open: opens_at === now,
      opens_at: instant(opens_at),
      closes_at: instant(closes_at),
    }
  }),
  freezes: library.freezes
    .filter(({ to }) => Date.parse(to) > now)
    .sort((a, b) => Date.parse(a.from) - Date.parse(b.from))
    .map(({ applies, digest: _, ...freeze }) => ({
      ...freeze,
      applies: applies.source,
      in_force: Date.parse(freeze.from) <= now,
      put_by: put.find(({ freeze_id }) => freeze_id === freeze.freeze_id)?.put_by ?? null,
    })),
  as_of: new Date(now).toISOString(),
})

const instant = (at: number) => (Number.isFinite(at) ? new Date(at).toISOString() : null)
