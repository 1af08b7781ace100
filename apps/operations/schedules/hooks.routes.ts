import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { DryRunReply } from '../../shared/contracts/operations/common.ts'
import {
  HookDeliveryView,
  HookHeaders,
  HookSecretBody,
  HookSecretView,
  ScheduleParams,
} from '../../shared/contracts/operations/schedules.ts'
import { CommandHeaders, markReplayed, routes } from '../../shared/http/routes.ts'
import { mutationOf } from '../command/mutate.ts'
import type { Uses } from '../deps.ts'
import { makeSecret, takeDelivery } from './hooks.ts'

type Deps = Uses<'clock' | 'db' | 'keys' | 'notifyKeys'>

/** Webhooks that trigger schedules (operations.md 3.6). */
export const hooksRoutes = routes<Deps>('schedules', (app, { deps }) => {
  app.post('/v1/schedules/:schedule_id/secret', {
    operationId: 'makeScheduleSecret',
    summary: 'Make the secret of a webhook',
    description: 'Returns a new secret, once. The previous one stays valid until `previous_until`.',
    params: ScheduleParams,
    headers: CommandHeaders,
    body: HookSecretBody,
    response: { 200: Type.Union([HookSecretView, DryRunReply]) },
    preHandler: allow('intent:create', { kind: 'W' }),
    handler: async (req, reply) => {
      const { schedule_id } = req.params
      const answer = await makeSecret(deps, mutationOf(deps, req), schedule_id, req.body.overlap_s ?? 86_400)
      markReplayed(reply, answer)
      const made = JSON.parse(answer.body.toString('utf8'))
      if (made.dry_run) return made
      reply.header('cache-control', 'no-store')
      const [secret = ''] = deps.notifyKeys.hookSecrets(schedule_id, made.secret_number)
      return { schedule_id, url: `/api/v1/hooks/${schedule_id}`, secret, previous_until: made.previous_until }
    },
  })
  app.plain.register(deliveryRoute, { deps })
})

const deliveryRoute = routes<Deps>('schedules', (app, { deps }) => {
  // The signature covers the bytes.
  app.plain.addHook('onRequest', (req, _reply, done) => {
    // Fastify refuses a type that is empty or malformed, whatever parser there is.
    req.raw.headers['content-type'] = 'application/octet-stream'
    done()
  })
  app.plain.removeAllContentTypeParsers()
  app.plain.addContentTypeParser('*', { parseAs: 'buffer' }, (_req, body, done) => done(null, body))
  app.post('/v1/hooks/:schedule_id', {
    bodyLimit: 1_048_576,
    operationId: 'takeWebhook',
    summary: 'Deliver a webhook',
    description:
      'Begins a run of a schedule with `when: {webhook}`. Signed as in Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature) or as code forges do (X-Hub-Signature-256), as the schedule demands. A delivery counts once; if an operation of the schedule is running, the delivery waits for its end.',
    'x-errors': [401],
    params: ScheduleParams,
    headers: HookHeaders,
    consumes: ['application/json', 'application/octet-stream'],
    body: Type.Unknown({
      examples: [{ ref: 'refs/heads/main' }],
      description: 'Any bytes of any content type, a form too: they are signed. `if` of the schedule reads JSON.',
    }),
    response: { 200: HookDeliveryView },
    preHandler: allow('none', { kind: 'W' }),
    handler: (req) => {
      const body = Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0)
      return takeDelivery(deps, req.params.schedule_id, { headers: req.headers, body })
    },
  })
})
