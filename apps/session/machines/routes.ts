import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { MachineToken } from '../../shared/contracts/session/tokens.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { AppError } from '../../shared/errors.ts'
import { AUTH_CODES } from '../../shared/http/edge-codes.ts'
import { acceptForms, pointerToUnstorable } from '../../shared/http/json-body.ts'
import { toAppError } from '../../shared/http/problems.ts'
import { routes } from '../../shared/http/routes.ts'
import { clientOf } from '../browser/client.ts'
import type { SessionDeps } from '../deps.ts'
import { type Exchange, exchange } from './exchange.ts'

const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'
const JWT = 'urn:ietf:params:oauth:token-type:jwt'

const secret = (maxLength: number) => Type.Optional(Type.String({ minLength: 1, maxLength }))
const MachineGrant = Type.Object(
  {
    grant_type: text('client_credentials', { maxLength: 128, description: `client_credentials, or ${EXCHANGE}.` }),
    client_id: Type.Optional(text('machine:ci-deploy', { maxLength: 64 })),
    client_secret: secret(128),
    client_assertion_type: Type.Optional(Type.Literal(ASSERTION)),
    client_assertion: secret(8192),
    subject_token_type: Type.Optional(Type.Enum([JWT, 'urn:ietf:params:oauth:token-type:id_token'])),
    subject_token: secret(8192),
    requested_token_type: Type.Optional(Type.Literal(ACCESS)),
    scope: Type.Optional(text('operation:read intent:create', { maxLength: 1024 })),
  },
  // RFC 6749 (3.2): parameters that are unknown here are ignored.
  { additionalProperties: Type.Unknown(), examples: [{ grant_type: 'client_credentials', client_secret: 'sbk_…' }] },
)
/** Where machines get their tokens: RFC 6749 (4.4), RFC 7523 and RFC 8693. */
export const machineRoutes = routes<SessionDeps>('tokens', (app, { deps }) => {
  acceptForms(app.plain, AUTH_CODES, refusedForm)
  app.plain.setErrorHandler((raw, req) => {
    throw inWordsOfOAuth(toAppError(raw, AUTH_CODES, req))
  })
  app.post('/oauth/token', {
    preHandler: allow('none', { kind: 'W' }),
    operationId: 'createMachineToken',
    summary: 'Get an access token for a machine',
    'x-errors': [401],
    consumes: ['application/json', 'application/x-www-form-urlencoded'],
    description:
      'Exchanges an API key, a signed assertion or a trusted CI token for a short-lived access token. The key may also be the password of HTTP Basic, with the name of the machine.',
    body: MachineGrant,
    response: { 200: MachineToken },
    handler: async (req) => {
      const basic = basicOf(req.headers.authorization)
      const { client_id, scope: text } = req.body
      const twice = req.body.client_secret !== undefined || (client_id ?? basic?.client_id) !== basic?.client_id
      if (basic && twice) throw refusedForm('Send the credential either in the body or by HTTP Basic.')
      const scope = text?.split(' ').filter(Boolean)
      const scheme: Exchange['scheme'] = basic ? 'Basic' : 'Bearer'
      const about = { scope, scheme, client: clientOf(req), request_id: String(req.id) }
      return exchange(deps, {
        proof: proofOf({ ...req.body, ...basic }),
        client_id: basic?.client_id ?? client_id,
        ...about,
      })
    },
  })
})

const refusedForm = (detail: string, code: 'schema_violation' | 'unsupported_grant_type' = 'schema_violation') =>
  new AppError('validation_error', code, detail, {
    extra: { error: code === 'schema_violation' ? 'invalid_request' : code, error_description: detail },
  })

/** The fault of a request, also with its RFC 6749 (5.2) name. */
const inWordsOfOAuth = (error: AppError): AppError => {
  if (error.category === 'validation_error')
    error.options.extra ??= { error: 'invalid_request', error_description: error.message }
  return error
}

const DECODED = /^basic ([a-z0-9+/]+={0,2})$/i
/** The name and the key of HTTP Basic, each encoded as in a form (RFC 6749, 2.3.1). */
const basicOf = (header: string | undefined): { client_id: string; client_secret: string } | undefined => {
  if (!header || !/^basic /i.test(header)) return undefined
  const text = Buffer.from(DECODED.exec(header)?.[1] ?? '', 'base64').toString()
  // As RFC 6749 2.3.1 has it, or as curl -u sends it: names of machines have a colon, keys have none.
  const at = text.lastIndexOf(':')
  const [client_id, client_secret] = [text.slice(0, at), text.slice(at + 1)].map((part) =>
    new URLSearchParams(`v=${part.replaceAll('&', '%26')}`).get('v'),
  )
  if (at < 1 || !client_id || !client_secret || pointerToUnstorable({ client_id }) !== undefined)
    throw refusedForm('HTTP Basic needs the name of the machine and its key.')
  return { client_id, client_secret }
}

/** The single credential of a request. */
const proofOf = (body: Type.Static<typeof MachineGrant>): Exchange['proof'] => {
  const { grant_type, client_id, client_secret, client_assertion, subject_token } = body
  if (grant_type !== 'client_credentials' && grant_type !== EXCHANGE)
    throw refusedForm('The grant_type is unknown.', 'unsupported_grant_type')
  const given = [client_secret, client_assertion, subject_token].filter((one) => one !== undefined)
  if (given.length !== 1) throw refusedForm('Send client_secret, client_assertion or subject_token: one of them.')
  if ((grant_type === EXCHANGE) !== (subject_token !== undefined))
    throw refusedForm('A subject_token needs the token-exchange grant, and that grant needs a subject_token.')
  if (client_secret !== undefined) return { apiKey: client_secret }
  if (client_assertion !== undefined) return { clientAssertion: client_assertion }
  if (client_id === undefined) throw refusedForm('A CI token needs client_id: the name of the machine.')
  return { subjectToken: subject_token ?? '', machine: client_id }
}
