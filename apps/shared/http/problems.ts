import type { ErrorObject } from 'ajv'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { ofItsKind, violationOf } from '../data/json-schema.ts'
import { AppError, isFault, objectBusy, problemOf, unavailable, type Violation } from '../errors.ts'
import { isDatabaseAway, isOutage, logFault, POOL_FULL } from '../process/outage.ts'
import type { EdgeCodes } from './edge-codes.ts'
import { otherMediaType } from './json-body.ts'

/** Sends a refusal as problem+json; the only place where an error becomes an answer. */
export const sendProblem = (req: FastifyRequest, reply: FastifyReply, error: AppError): FastifyReply => {
  if (isFault(error)) logFault(req.log, error, { route: req.routeOptions?.url })
  const body = problemOf(error, String(req.id), `${req.headers['x-forwarded-prefix'] ?? ''}${req.url.split('?')[0]}`)
  if (error.options.retry_after_ms !== undefined)
    reply.header('retry-after', Math.ceil(error.options.retry_after_ms / 1000))
  reply.headers({ 'cache-control': 'no-store', ...error.options.headers })
  // A string, so that no reply schema filters the members of the refusal.
  return reply.code(error.status).type('application/problem+json; charset=utf-8').serializer(JSON.stringify).send(body)
}

/** The error for a path that the router itself cannot parse. */
export const unreadablePath = (codes: EdgeCodes) =>
  new AppError('validation_error', codes.path, 'The path cannot be read: a part is too long or not valid UTF-8.', {
    status: 400,
    hint: 'Percent-encode each id as UTF-8; none is longer than 512 characters.',
  })

export const unreadableQuery = (codes: EdgeCodes) =>
  new AppError('validation_error', codes.malformed, 'The query is not percent-encoded UTF-8.', {
    status: 400,
    hint: 'Write % as %25, and other characters as the percent-encoded bytes of their UTF-8 form.',
  })

/** Server-side causes: a statement or transaction that took too long, a lost race. */
const TOO_BUSY = new Set(['57014', '25P03', '25P04', '40P01', '40001'])

/** Maps anything that a handler threw to an AppError: schema violations, Fastify's own refusals, database outages. */
export const toAppError = (error: unknown, codes: EdgeCodes, req?: FastifyRequest): AppError => {
  if (error instanceof AppError) return error
  // The end of the request's time, as reported by the connection that it cut.
  if ((error as Error).cause instanceof AppError) return (error as Error).cause as AppError
  const known = error as FastifyError & {
    cause?: { code?: string; message?: string }
    validation?: ErrorObject[]
    validationContext?: string
  }
  if (known.validation) return invalid(known.validation, known.validationContext ?? 'body', codes)
  if (known.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' && req) return otherMediaType(codes, req)
  if (known.code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new AppError('validation_error', codes.too_large, 'The body is too large.', {
      status: 413,
      hint: 'Send less in one request.',
    })
  if (typeof known.code === 'string' && known.code.startsWith('FST_') && (known.statusCode ?? 500) < 500) {
    return new AppError('validation_error', codes.malformed, known.message, { status: 400 })
  }
  const sql = known.cause?.code ?? known.code
  if (sql === '55P03') return objectBusy()
  if (sql === '22021' || sql === '22P05')
    return new AppError(
      'validation_error',
      'schema_violation',
      'A string contains a character that cannot be stored.',
      { hint: 'Leave out the NUL character and halves of surrogate pairs.', cause: error },
    )
  if (sql === '22003' || sql === '22P02')
    return new AppError(
      'validation_error',
      'schema_violation',
      'A number is too large, or a value has the wrong form.',
      { hint: 'Send numbers as this API returns them, and ids unchanged.', cause: error },
    )
  const full = [known.message, known.cause?.message].includes(POOL_FULL)
  if (full || TOO_BUSY.has(sql ?? '')) return unavailable('The database was too busy.', error, codes.outage)
  if (isDatabaseAway(error)) return unavailable('The database does not answer.', error, codes.outage)
  if (isOutage(error)) return unavailable('A part that this request needs does not answer.', error, codes.outage)
  return new AppError('internal_error', 'unexpected', 'Something went wrong on our side.', {
    cause: error,
    retryable: false,
  })
}

/** Returns the refusal of a value that does not fit its schema, with a pointer to every violation. */
export const invalid = (all: ErrorObject[], context: string, codes: EdgeCodes): AppError => {
  const errors = ofItsKind(all)
  const violations = errors.map((error): Violation => {
    const { pointer, code, message } = violationOf(error)
    return {
      pointer: `${context === 'body' ? '' : `/${context}`}${pointer}`,
      code,
      message: code === 'additionalProperties' ? 'is not a known field' : message,
    }
  })
  const code = errors.every((error) => error.keyword === 'additionalProperties')
    ? codes.unknown_field
    : 'schema_violation'
  const first = violations[0]
  const detail = first ? `${first.pointer || context} ${first.message}.` : 'The request does not fit its schema.'
  const missingKey = context === 'headers' && errors.some((error) => error.params.missingProperty === 'idempotency-key')
  if (missingKey)
    return new AppError('validation_error', 'idempotency_key_required', 'The header Idempotency-Key is missing.', {
      hint: 'Send a new random Idempotency-Key with each new command, and the same one when you repeat it.',
    })
  return new AppError('validation_error', code, detail, { status: 400, violations })
}

export const SCIM_JSON = 'application/scim+json'
export const SCIM_ERROR = 'urn:ietf:params:scim:api:messages:2.0:Error'
/** A refusal as directories read it (RFC 7644 3.12). */
export const scimBodyOf = ({ status, message, options: { extra, hint } }: AppError) => ({
  schemas: [SCIM_ERROR],
  status: String(status),
  ...extra,
  detail: hint ? `${message} ${hint}` : message,
})
