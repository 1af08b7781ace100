import type { FastifyReply, FastifyRequest } from 'fastify'
import { AppError, isFault, overloaded } from '../../shared/errors.ts'
import { AUTH_CODES } from '../../shared/http/edge-codes.ts'
import { SCIM_JSON, scimBodyOf, toAppError } from '../../shared/http/problems.ts'

/** A refusal with the error name from RFC 7644 (3.12). */
export const scimError = (status: 400 | 409, scimType: string, detail: string) =>
  new AppError('validation_error', 'schema_violation', detail, { status, extra: { scimType } })

/** Sends every refusal below /scim/v2 in the form that directories read. */
export const sendScimError = (raw: unknown, req: FastifyRequest, reply: FastifyReply) => {
  const known = toAppError(raw, AUTH_CODES, req)
  // For a directory 409 is a conflict of values, which it does not repeat.
  const error = known.code === 'in_progress' ? overloaded() : known
  if (isFault(error)) req.log.error({ err: error, cause: error.cause }, error.message)
  const { headers, retry_after_ms: wait } = error.options
  return reply
    .code(error.status)
    .headers({ ...headers, ...(wait !== undefined && { 'retry-after': Math.ceil(wait / 1000) }) })
    .type(`${SCIM_JSON}; charset=utf-8`)
    .serializer(JSON.stringify)
    .send(scimBodyOf(error))
}
