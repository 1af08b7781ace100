import Type from 'typebox'
import { getDestination, listDestinations } from '../../../db/operations/notifications/destinations.ts'
import { allow } from '../../shared/auth/http.ts'
import {
  ConfirmBody,
  DestinationBody,
  DestinationList,
  DestinationParams,
  DestinationTest,
  DestinationView,
  NotifyQuery,
  SecretBody,
  SecretView,
} from '../../shared/contracts/notifications/notifications.ts'
import { DryRunReply } from '../../shared/contracts/operations/common.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { CommandHeaders, type Router, routes, sendStored } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import {
  addDestination,
  confirmDestination,
  destinationView,
  makeSecret,
  removeDestination,
  testDestination,
} from './commands.ts'
import { ownedBy, ownerOf } from './view.ts'

type Deps = Uses<'channels' | 'clock' | 'config' | 'db' | 'keys' | 'notifyKeys' | 'trust'>

/** The destinations at which the caller is reached. */
export const destinationsRoutes = routes<Deps>('notifications', (app, { deps }) => {
  readRoutes(app, deps)
  changeRoutes(app, deps)
  const changed = { 200: Type.Union([DestinationView, DryRunReply]) }
  app.post('/v1/notifications/destinations/:destination_id/confirm', {
    operationId: 'confirmNotificationDestination',
    summary: 'Confirm an email address',
    description:
      'Takes the code that was sent to the address, within 24 h. After five wrong codes, add the address again.',
    querystring: NotifyQuery,
    params: DestinationParams,
    headers: CommandHeaders,
    body: ConfirmBody,
    response: changed,
    preHandler: allow('self', { kind: 'W' }),
    handler: async (req, reply) => {
      const { destination_id } = req.params
      return sendStored(reply, await confirmDestination(deps, ownedBy(deps, req), destination_id, req.body.code))
    },
  })
  app.post('/v1/notifications/destinations/:destination_id/secret', {
    operationId: 'makeNotificationSecret',
    summary: 'Make the next secret of a webhook',
    description:
      'Until `previous_until` messages carry two signatures: with the new secret and with the previous one. Needs a recent sign-in. Read the new secret afterwards.',
    querystring: NotifyQuery,
    params: DestinationParams,
    headers: CommandHeaders,
    body: SecretBody,
    response: changed,
    preHandler: allow('self', { kind: 'W' }),
    handler: async (req, reply) => {
      const { destination_id } = req.params
      const overlap_s = req.body.overlap_s ?? 86_400
      return sendStored(reply, await makeSecret(deps, ownedBy(deps, req), destination_id, overlap_s))
    },
  })
  app.post('/v1/notifications/destinations/:destination_id/test', {
    operationId: 'testNotificationDestination',
    summary: 'Send a test',
    description: 'Sends a test message. Its delivery shows whether it arrived.',
    querystring: NotifyQuery,
    params: DestinationParams,
    headers: CommandHeaders,
    body: DestinationTest,
    response: changed,
    preHandler: allow('self', { kind: 'W' }),
    handler: async (req, reply) =>
      sendStored(reply, await testDestination(deps, ownedBy(deps, req), req.params.destination_id)),
  })
})

const changeRoutes = (app: Router, deps: Deps) => {
  app.post('/v1/notifications/destinations', {
    operationId: 'addNotificationDestination',
    summary: 'Add a destination',
    description:
      'An email address, which is sent a code to confirm it, or the https URL of a webhook outside private networks. The URL is stored encrypted and never shown again. An active destination of this address is returned as it is. Needs a recent sign-in; your other destinations are told.',
    querystring: NotifyQuery,
    headers: CommandHeaders,
    body: DestinationBody,
    response: { 201: DestinationView, 200: DryRunReply },
    preHandler: allow('self', { kind: 'W' }),
    handler: async (req, reply) => sendStored(reply, await addDestination(deps, ownedBy(deps, req), req.body)),
  })
  app.delete('/v1/notifications/destinations/:destination_id', {
    operationId: 'removeNotificationDestination',
    summary: 'Remove a destination',
    description:
      'No further decision is sent there. Needs a recent sign-in; your other destinations are told, and a mail address still hears of events of your account for seven days.',
    querystring: NotifyQuery,
    params: DestinationParams,
    headers: CommandHeaders,
    response: { 204: Type.Null() },
    preHandler: allow('self', { kind: 'W' }),
    handler: async (req, reply) =>
      sendStored(reply, await removeDestination(deps, ownedBy(deps, req), req.params.destination_id)),
  })
}

const readRoutes = (app: Router, deps: Deps) => {
  app.get('/v1/notifications/destinations', {
    operationId: 'listNotificationDestinations',
    summary: 'List your destinations',
    description: 'Where you are notified.',
    querystring: NotifyQuery,
    response: { 200: DestinationList },
    preHandler: allow('self', { kind: 'R' }),
    handler: async ({ caller, query }) => ({
      items: (await listDestinations(deps.db, ownerOf(caller, query.group))).map(destinationView),
    }),
  })
  app.get('/v1/notifications/destinations/:destination_id/secret', {
    operationId: 'getNotificationSecret',
    summary: 'Read the secret of a webhook',
    description: 'The receiver verifies messages with it. Webhooks of Slack and Teams have none.',
    querystring: NotifyQuery,
    params: DestinationParams,
    response: { 200: SecretView },
    preHandler: allow('self', { kind: 'R' }),
    handler: async ({ caller, query, params: { destination_id } }, reply) => {
      reply.header('cache-control', 'no-store')
      const found = await getDestination(deps.db, destination_id)
      if (found?.owner !== ownerOf(caller, query.group) || !found.secret) throw notFound('destination', destination_id)
      const secret = deps.notifyKeys.open(destination_id, found.secret)
      if (secret !== undefined) return { secret }
      throw new AppError('not_found', 'destination', 'The secret was sealed with a key that no longer exists.', {
        hint: 'Remove the destination and add it again.',
      })
    },
  })
}
