import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { DeviceAuthorization, DeviceCode, DeviceRequestView } from '../../shared/contracts/session/devices.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { routes } from '../../shared/http/routes.ts'
import { clientOf } from '../browser/client.ts'
import type { SessionDeps } from '../deps.ts'
import { beginDevice, decideDevice, findDevice } from './grant.ts'

const DeviceBody = Type.Object(
  {
    client_id: Type.Enum(['signalbox-cli']),
    // The person reads it before approving, so it must not hold a persuasive sentence.
    host: text('ci-7', { minLength: 1, pattern: '^[A-Za-z0-9._-]{1,64}$', description: 'The name of the machine.' }),
  },
  { additionalProperties: false, examples: [{ client_id: 'signalbox-cli', host: 'ci-7' }] },
)

/** Sign-in of a device without a browser, which its person approves in another one (RFC 8628; federation.md 4). */
export const deviceRoutes = routes<SessionDeps>('devices', (app, { deps }) => {
  app.post('/v1/device', {
    preHandler: allow('none', { kind: 'R' }),
    operationId: 'createDeviceAuthorization',
    summary: 'Begin the sign-in of a device',
    'x-errors': [403],
    description: 'The codes of RFC 8628: the device polls POST /v1/token, the person approves at /device.',
    body: DeviceBody,
    response: { 200: DeviceAuthorization },
    handler: (req) => beginDevice(deps, req.body, clientOf(req)),
  })

  const asked = { preHandler: allow('self', { kind: 'W' }) }
  app.post('/v1/device/find', {
    ...asked,
    operationId: 'findDeviceRequest',
    summary: 'Look up the code of a device',
    'x-errors': [403, 404],
    description: 'Returns which device asks, from where and since when.',
    body: DeviceCode,
    response: { 200: DeviceRequestView },
    handler: (req) => findDevice(deps, contextOf(req, req.body)),
  })
  for (const [act, decision, operationId, description] of DECISIONS)
    app.post(`/v1/device/${act}`, {
      ...asked,
      operationId,
      summary: `${act === 'approve' ? 'Approve' : 'Refuse'} the sign-in of a device`,
      'x-errors': [403, 404, 409],
      description,
      body: DeviceCode,
      response: { 204: Type.Null() },
      handler: async (req, reply) => {
        await decideDevice(deps, contextOf(req, req.body), decision)
        return reply.code(204).send(null)
      },
    })
})

const DECISIONS = [
  [
    'approve',
    'approved',
    'approveDeviceRequest',
    'Signs the device in as the caller, who must have signed in within the last 5 minutes.',
  ],
  ['deny', 'denied', 'denyDeviceRequest', 'Refuses the device.'],
] as const

const contextOf = (req: FastifyRequest, { user_code }: { user_code: string }) => ({
  user_code,
  caller: req.caller,
  client: clientOf(req),
  request_id: String(req.id),
})
