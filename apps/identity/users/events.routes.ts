import Type from 'typebox'
import { listUserEvents } from '../../../db/identity/queries.ts'
import type { user_events } from '../../../db/identity/tables.ts'
import { allow } from '../../shared/auth/http.ts'
import { EventView, PageQuery, pageOf } from '../../shared/contracts/identity/users.ts'
import { pick } from '../../shared/data/pick.ts'
import { createPages } from '../../shared/http/pages.ts'
import { routes } from '../../shared/http/routes.ts'
import type { ReadDeps } from '../deps.ts'

const EventsQuery = Type.Object({
  ...PageQuery.properties,
  user_id: Type.Optional(
    Type.String({
      format: 'uuid',
      description: 'Only events about this user, also those of their grants and memberships.',
    }),
  ),
  type: Type.Optional(Type.String({ maxLength: 64, description: 'An action, such as user.disabled.' })),
  from: Type.Optional(Type.String({ format: 'date-time' })),
  to: Type.Optional(Type.String({ format: 'date-time' })),
})

export const userEventsRoutes = routes<ReadDeps>('audit', (app, { deps }) => {
  const pages = createPages(deps.keys.page)

  app.get('/v1/admin/user-events', {
    operationId: 'listUserEvents',
    summary: 'List changes of users, groups and grants',
    description: 'Lists changes of users, groups and grants, and refused attempts, newest first.',
    querystring: EventsQuery,
    response: { 200: pageOf(EventView) },
    preHandler: allow('audit:read', { kind: 'R' }),
    handler: async (req) => {
      const { page_size, page_token, ...filter } = req.query
      const list = { route: 'user-events', ...filter }
      const [before] = pages.after(page_token, list) ?? []
      const rows = await listUserEvents(deps.db, { ...filter, before }, page_size + 1)
      const { items, next_page_token } = pages.cut(rows, page_size, list, ({ id }) => [String(id)])
      return { items: items.map(viewOf), next_page_token, as_of: deps.clock.now().toISOString() }
    },
  })
})

const viewOf = (row: typeof user_events.$inferSelect) => ({
  at: new Date(row.at).toISOString(),
  ...pick(row, 'actor', 'roles', 'action', 'object', 'outcome', 'reason', 'request_id'),
  details: (JSON.parse(row.body) as { details?: Record<string, unknown> }).details ?? null,
})
