import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inArray } from 'drizzle-orm'
import Type from 'typebox'
import { listDeliveries, listNotices } from '../../../db/operations/notifications/deliveries.ts'
import { getRules } from '../../../db/operations/notifications/destinations.ts'
import { readAsOf } from '../../../db/operations/operations/read.ts'
import { notify_deliveries } from '../../../db/operations/tables/index.ts'
import { allow } from '../../shared/auth/http.ts'
import {
  DeliveryList,
  DeliveryListQuery,
  NotifyQuery,
  NotifyRules,
  RulesBody,
} from '../../shared/contracts/notifications/notifications.ts'
import { DryRunReply } from '../../shared/contracts/operations/common.ts'
import { CommandHeaders, errorReplies, sendStored } from '../../shared/http/app.ts'
import type { OperationsDeps } from '../deps.ts'
import { changeRules } from './commands.ts'
import { idsOf } from './messages/decisions.ts'
import { ownedBy, ownerOf } from './view.ts'

type Deps = Pick<OperationsDeps, 'channels' | 'clock' | 'db' | 'keys' | 'notifyKeys' | 'pages'>

/** How the caller is told of decisions, and each message (federation.md 9). */
export const notificationsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.get(
    '/v1/notifications/rules',
    {
      schema: {
        operationId: 'getNotificationRules',
        summary: 'Read your notification rules',
        description: 'What the caller is told, where and when; the defaults until they state their own.',
        tags: ['notifications'],
        querystring: NotifyQuery,
        response: { 200: NotifyRules, ...errorReplies },
      },
      preHandler: allow('self', { kind: 'R' }),
    },
    (req) => getRules(deps.db, ownerOf(req.caller, req.query.group)),
  )
  app.put(
    '/v1/notifications/rules',
    {
      schema: {
        operationId: 'setNotificationRules',
        summary: 'State your notification rules',
        description: 'Replaces the rules of the caller. Messages that are queued stay.',
        tags: ['notifications'],
        querystring: NotifyQuery,
        headers: CommandHeaders,
        body: RulesBody,
        response: { 200: Type.Union([NotifyRules, DryRunReply]), ...errorReplies },
      },
      preHandler: allow('self', { kind: 'W' }),
    },
    async (req, reply) => sendStored(reply, await changeRules(deps, ownedBy(deps, req), req.body)),
  )
  app.delete(
    '/v1/notifications/rules',
    {
      schema: {
        operationId: 'resetNotificationRules',
        summary: 'Reset your notification rules',
        description: 'Puts back the defaults: everything, to every active destination, at once.',
        tags: ['notifications'],
        querystring: NotifyQuery,
        headers: CommandHeaders,
        response: { 200: NotifyRules, ...errorReplies },
      },
      preHandler: allow('self', { kind: 'W' }),
    },
    async (req, reply) => sendStored(reply, await changeRules(deps, ownedBy(deps, req), undefined)),
  )
  app.get(
    '/v1/notifications/deliveries',
    {
      schema: {
        operationId: 'listNotificationDeliveries',
        summary: 'List your notifications',
        description:
          'Messages to the destinations of the caller, newest first, kept for 30 days. `dead` ones were given up.',
        tags: ['notifications'],
        querystring: DeliveryListQuery,
        response: { 200: DeliveryList, ...errorReplies },
      },
      preHandler: allow('self', { kind: 'R' }),
    },
    async ({ query, caller }) => {
      const { state, page_size = 50, page_token } = query
      const owner = ownerOf(caller, query.group)
      const list = { route: 'notifications', state, owner }
      const [created_at, id] = deps.pages.after(page_token, list) ?? []
      const rows = await listDeliveries(deps.db, {
        owner,
        where: state && inArray(notify_deliveries.state, state),
        after: created_at && id ? [created_at, id] : undefined,
        limit: page_size + 1,
      })
      const page = deps.pages.cut(rows, page_size, list, (row) => [row.created_at, row.delivery_id])
      const all = await listNotices(
        deps.db,
        page.items.map(({ delivery_id }) => delivery_id),
      )
      const noticesOf = (delivery_id: string) =>
        all
          .filter((notice) => notice.delivery_id === delivery_id)
          .map(({ delivery_id: _, object, urgent: __, ...notice }) => ({ ...notice, ...idsOf(object) }))
      return {
        ...page,
        items: page.items.map(({ fact, ...row }) => ({
          ...row,
          security_event: fact?.event ?? null,
          notices: noticesOf(row.delivery_id),
        })),
        as_of: await readAsOf(deps.db),
      }
    },
  )
}
