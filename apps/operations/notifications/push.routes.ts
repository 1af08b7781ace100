import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { DestinationView, PushBody, PushView } from '../../shared/contracts/notifications/notifications.ts'
import { DryRunReply } from '../../shared/contracts/operations/common.ts'
import { CommandHeaders, routes, sendStored } from '../../shared/http/routes.ts'
import { mutationOf } from '../command/mutate.ts'
import type { Uses } from '../deps.ts'
import { readPush, subscribe, unsubscribe } from './push.ts'

type Deps = Uses<'channels' | 'clock' | 'db' | 'keys' | 'notifyKeys'>

/** Web Push to the browser of the caller's session. */
export const pushRoutes = routes<Deps>('notifications', (app, { deps }) => {
  app.get('/v1/notifications/push', {
    operationId: 'getPush',
    summary: 'Read the push subscription of this browser',
    description: 'The key to subscribe with, and the subscription of your session, if any.',
    response: { 200: PushView },
    preHandler: allow('self', { kind: 'R' }),
    handler: (req) => readPush(deps, req.caller.session_id),
  })
  app.put('/v1/notifications/push', {
    operationId: 'subscribePush',
    summary: 'Subscribe this browser',
    description:
      'Decisions that wait for you are pushed to this browser until your session ends. Replaces the subscription of the session, and that of whoever had this browser before.',
    headers: CommandHeaders,
    body: PushBody,
    response: { 200: Type.Union([DestinationView, DryRunReply]) },
    preHandler: allow('self', { kind: 'W' }),
    handler: async (req, reply) => sendStored(reply, await subscribe(deps, mutationOf(deps, req), req.body)),
  })
  app.delete('/v1/notifications/push', {
    operationId: 'unsubscribePush',
    summary: 'Unsubscribe this browser',
    description: 'Ends the subscription of your session, if there is one.',
    headers: CommandHeaders,
    response: { 204: Type.Null() },
    preHandler: allow('self', { kind: 'W' }),
    handler: async (req, reply) => sendStored(reply, await unsubscribe(deps, mutationOf(deps, req))),
  })
})
