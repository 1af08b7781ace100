import { eq, inArray } from 'drizzle-orm'
import Type from 'typebox'
import { listDeliveries } from '../../../db/operations/notifications/deliveries.ts'
import { readAsOf } from '../../../db/operations/operations/read.ts'
import { notify_deliveries } from '../../../db/operations/tables/index.ts'
import { allow } from '../../shared/auth/http.ts'
import {
  DeliveryList,
  DeliveryListQuery,
  DeliveryParams,
  DeliveryView,
  NotifyQuery,
  Redelivery,
} from '../../shared/contracts/notifications/notifications.ts'
import { DryRunReply } from '../../shared/contracts/operations/common.ts'
import { CommandHeaders, routes, sendStored } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import { redeliver } from './commands.ts'
import { deliveryViews, ownedBy, ownerOf } from './view.ts'

type Deps = Uses<'channels' | 'clock' | 'config' | 'db' | 'keys' | 'notifyKeys' | 'pages' | 'trust'>

/** The caller's messages, and another try for one that was given up. */
export const deliveriesRoutes = routes<Deps>('notifications', (app, { deps }) => {
  app.get('/v1/notifications/deliveries', {
    operationId: 'listNotificationDeliveries',
    summary: 'List your notifications',
    description: 'Messages to your destinations, newest first, kept for 30 days. Those in state `dead` were given up.',
    querystring: DeliveryListQuery,
    response: { 200: DeliveryList },
    preHandler: allow('self', { kind: 'R' }),
    handler: async ({ query, caller }) => {
      const { state, page_size = 50, page_token } = query
      const owner = ownerOf(caller, query.group)
      const list = { route: 'notifications', state, owner }
      const where = [eq(notify_deliveries.owner, owner), state && inArray(notify_deliveries.state, state)]
      const after = deps.pages.after(page_token, list)
      const rows = await listDeliveries(deps.db, { where, after, limit: page_size + 1 })
      const page = deps.pages.cut(rows, page_size, list, (row) => [row.created_at, row.delivery_id])
      return { ...page, items: await deliveryViews(deps.db, page.items), as_of: await readAsOf(deps.db) }
    },
  })
  app.post('/v1/notifications/deliveries/:delivery_id/redeliver', {
    operationId: 'redeliverNotification',
    summary: 'Send a notification again',
    description:
      'Retries a message in state `dead` at once, under the same id. A message that is past its time gets this one retry. Decisions that no longer wait are left out.',
    querystring: NotifyQuery,
    params: DeliveryParams,
    headers: CommandHeaders,
    body: Redelivery,
    response: { 200: Type.Union([DeliveryView, DryRunReply]) },
    preHandler: allow('self', { kind: 'W' }),
    handler: async (req, reply) => sendStored(reply, await redeliver(deps, ownedBy(deps, req), req.params.delivery_id)),
  })
})
