import { desc } from 'drizzle-orm'
import Type from 'typebox'
import { auditMatches } from '../../../db/audit.ts'
import { auth_events } from '../../../db/session/tables.ts'
import { allow } from '../../shared/auth/http.ts'
import { PersonAuditQuery } from '../../shared/contracts/audit.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { pick } from '../../shared/data/pick.ts'
import { routes } from '../../shared/http/routes.ts'
import type { SessionDeps } from '../deps.ts'

const Nullable = Type.Union([Type.String(), Type.Null()])
const EventView = Type.Object({
  at: text('2026-01-31T12:00:00.000Z'),
  actor: text('user:0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
  action: text('login'),
  object: text('user:0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
  outcome: text('done'),
  reason: Nullable,
  request_id: Nullable,
})
const EventList = Type.Object({
  items: Type.Array(EventView),
  next_page_token: Nullable,
  as_of: text('2026-01-31T12:00:00.000Z'),
})

/** Logins with their true cause, locks, replays, revocations: the audit log that the relay fills from the stream. */
export const authEventsRoutes = routes<SessionDeps>('audit', (app, { deps }) => {
  app.get('/v1/admin/auth-events', {
    preHandler: allow('audit:read', { kind: 'R' }),
    operationId: 'listAuthEvents',
    summary: 'List sign-ins, lockouts and ended sessions',
    description: 'Lists sign-ins, lockouts, refusals and ended sessions, newest first.',
    querystring: PersonAuditQuery,
    response: { 200: EventList },
    handler: async (req) => {
      const { page_size, page_token, ...filter } = req.query
      const list = { route: 'auth-events', ...filter }
      const [before] = deps.pages.after(page_token, list) ?? []
      const rows = await deps.db
        .select()
        .from(auth_events)
        .where(auditMatches(auth_events, { ...filter, before }))
        .orderBy(desc(auth_events.id))
        .limit(page_size + 1)
      const { items, next_page_token } = deps.pages.cut(rows, page_size, list, ({ id }) => [String(id)])
      return { items: items.map(viewOf), next_page_token, as_of: deps.clock.now().toISOString() }
    },
  })
})

const viewOf = (row: typeof auth_events.$inferSelect) => ({
  at: new Date(row.at).toISOString(),
  ...pick(row, 'actor', 'action', 'object', 'outcome', 'reason', 'request_id'),
})
