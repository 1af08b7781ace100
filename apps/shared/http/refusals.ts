import { CATEGORIES, describeCategory } from '../contracts/categories.ts'
import { CODES, type Entry } from '../contracts/codes.ts'
import { AppError, type Category, type Code, problemOf } from '../errors.ts'

/** The refusals of the API by status: the name in the document, and the meaning. */
const NAMED: Record<number, readonly [name: string, description: string]> = {
  400: ['BadRequest', 'The request does not fit its description.'],
  401: ['Unauthorized', 'The token is missing, has expired or is refused.'],
  403: ['Forbidden', 'The caller may not do this.'],
  404: ['NotFound', 'No such object, or none that the caller may see.'],
  408: ['RequestTimeout', 'The body did not arrive in time. Send the same request again, with all of its body.'],
  409: ['Conflict', 'Not possible in the current state.'],
  410: ['Gone', 'This data is past its retention period.'],
  412: [
    'PreconditionFailed',
    'The version, hash, digest or round that the caller has read is no longer the current one.',
  ],
  413: ['ContentTooLarge', 'The body is too large.'],
  414: ['UriTooLong', 'The path has more than 2,048 or the query more than 8,192 characters, percent-encoded.'],
  415: ['UnsupportedMediaType', 'The content type is not accepted here.'],
  416: ['RangeNotSatisfiable', 'The Range is outside the content.'],
  422: ['UnprocessableContent', 'The request is well-formed and cannot be carried out.'],
  428: ['PreconditionRequired', 'If-Match is missing.'],
  429: ['TooManyRequests', 'A limit of requests, sign-ins or codes is exhausted. Retry-After says when to repeat.'],
  431: ['HeadersTooLarge', 'Request target and headers have more than 16,384 bytes together.'],
  500: ['InternalError', 'A fault of the service. Report the request id.'],
  502: ['BadGateway', 'A part of the service could not be reached.'],
  503: ['Unavailable', 'A part of the service is unavailable or overloaded. Repeat the same request later.'],
  504: [
    'GatewayTimeout',
    'A part of the service did not answer in time. It is unknown whether the request was carried out.',
  ],
}
/** An example of each refusal. */
const SENT: Record<number, readonly [category: Category, code: Code, detail: string]> = {
  400: ['validation_error', 'schema_violation', '/title must be string.'],
  401: ['invalid_token', 'invalid_token', 'The access token is not valid.'],
  403: ['policy_denied', 'permission_missing', 'This needs the permission gate:decide.'],
  404: ['not_found', 'gate', 'No gate "go", or you may not see it.'],
  408: ['validation_error', 'body_too_slow', 'The body did not arrive in time.'],
  409: ['version_conflict', 'in_progress', 'Another request on the same object is still running.'],
  410: ['not_found', 'gone', 'This log is past its retention period.'],
  412: ['version_conflict', 'revision_moved', 'The object has changed.'],
  413: ['validation_error', 'body_too_large', 'The body is too large.'],
  414: ['validation_error', 'uri_too_long', 'The request target is too long.'],
  415: ['validation_error', 'unsupported_media_type', 'This content type is not accepted here.'],
  416: ['validation_error', 'schema_violation', 'The Range is outside the log.'],
  422: ['validation_error', 'idempotency_key_reused', 'This Idempotency-Key belongs to another request.'],
  428: ['version_conflict', 'precondition_required', 'If-Match is missing.'],
  429: ['rate_limited', 'rate_limited', 'Too many requests.'],
  431: ['validation_error', 'headers_too_large', 'The path and headers of the request are too long.'],
  500: ['internal_error', 'unexpected', 'Something went wrong on our side.'],
  502: ['unavailable', 'upstream_failed', 'The catalog service could not be reached.'],
  503: ['unavailable', 'overloaded', 'The service is overloaded.'],
  504: [
    'unavailable',
    'upstream_timeout',
    'The operations service did not answer in time. It is unknown whether the request was carried out.',
  ],
}
const ALL = Object.entries(NAMED).map(([text, [name, description]]) => {
  const status = Number(text)
  const [category, code, detail] = SENT[status] ?? (['internal_error', 'unexpected', ''] as const)
  return { status, name, description, category, code, detail }
})

/** Refers to the named answer of a status. */
export const refusalOf = (status: number): { $ref: string } => {
  const [name] = NAMED[status] ?? []
  if (!name) throw new Error(`no route may refuse with ${status}: describe it in refusals.ts`)
  return { $ref: `#/components/responses/${name}` }
}

export const refusals = (): Record<string, object> =>
  Object.fromEntries(
    ALL.map(({ status, name, description, category, code, detail }) => {
      const retryable = category === 'unavailable' || category === 'rate_limited' || code === 'body_too_slow'
      const error = new AppError(category, code, detail, { status, retryable })
      const example = problemOf(error, '0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10', '/api/v1/example')
      const named = [
        'x-request-id',
        ...([429, 502, 503, 504].includes(status) ? ['retry-after'] : []),
        ...(status === 401 ? ['www-authenticate'] : []),
      ]
      const headers = Object.fromEntries(named.map((header) => [header, { $ref: `#/components/headers/${header}` }]))
      const schema = { $ref: `#/components/schemas/${name}Problem` }
      return [name, { description, headers, content: { 'application/problem+json': { schema, example } } }]
    }),
  )

/** Returns the problem schema of each named answer, with the categories that refuse with its status. */
export const problemSchemas = (): Record<string, object> =>
  Object.fromEntries(
    ALL.map(({ status, name, category }) => {
      const narrowed = { properties: { category: { enum: categoriesOf(status, category) } } }
      return [`${name}Problem`, { allOf: [{ $ref: '#/components/schemas/Problem' }, narrowed] }]
    }),
  )

/** Returns the categories that refuse with a status: by their own, by that of a code, or as in the example. */
const categoriesOf = (status: number, example: Category): Category[] =>
  CATEGORIES.filter(
    (category) =>
      category === example ||
      describeCategory(category).status === status ||
      Object.values<Entry>(CODES[category]).some(([, , ...statuses]) => statuses.includes(status)),
  )
