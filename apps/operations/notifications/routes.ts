import Type from 'typebox'
import { getRules } from '../../../db/operations/notifications/destinations.ts'
import { allow } from '../../shared/auth/http.ts'
import { NotifyQuery } from '../../shared/contracts/notifications/notifications.ts'
import { NotifyRules, RulesBody } from '../../shared/contracts/notifications/rules.ts'
import { DryRunReply } from '../../shared/contracts/operations/common.ts'
import { CommandHeaders, routes, sendStored } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import { changeRules } from './commands.ts'
import { ownedBy, ownerOf } from './view.ts'

type Deps = Uses<'channels' | 'clock' | 'config' | 'db' | 'keys' | 'notifyKeys' | 'trust'>

/** How the caller is told about decisions. */
export const notificationsRoutes = routes<Deps>('notifications', (app, { deps }) => {
  app.get('/v1/notifications/rules', {
    operationId: 'getNotificationRules',
    summary: 'Read your notification rules',
    description: 'Which events notify you, where and when; the defaults until you set your own.',
    querystring: NotifyQuery,
    response: { 200: NotifyRules },
    preHandler: allow('self', { kind: 'R' }),
    handler: (req) => getRules(deps.db, ownerOf(req.caller, req.query.group)),
  })
  app.put('/v1/notifications/rules', {
    operationId: 'setNotificationRules',
    summary: 'Set your notification rules',
    description: 'Replaces your rules. Messages that are already queued are still sent.',
    querystring: NotifyQuery,
    headers: CommandHeaders,
    body: RulesBody,
    response: { 200: Type.Union([NotifyRules, DryRunReply]) },
    preHandler: allow('self', { kind: 'W' }),
    handler: async (req, reply) => sendStored(reply, await changeRules(deps, ownedBy(deps, req), req.body)),
  })
  app.delete('/v1/notifications/rules', {
    operationId: 'resetNotificationRules',
    summary: 'Reset your notification rules',
    description: 'Restores the defaults: every event, to every active destination, at once.',
    querystring: NotifyQuery,
    headers: CommandHeaders,
    response: { 200: NotifyRules },
    preHandler: allow('self', { kind: 'W' }),
    handler: async (req, reply) => sendStored(reply, await changeRules(deps, ownedBy(deps, req), undefined)),
  })
})
