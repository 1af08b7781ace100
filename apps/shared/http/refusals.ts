import { CATEGORIES, describeCategory } from '../contracts/categories.ts'
import { CODES, type Entry } from '../contracts/codes.ts'
import { AppError, type Category, type Code, problemOf } from '../errors.ts'

/** The refusals of the API by status: what the document calls each, what it means, and one that was sent. */
type Refusal = { name: string; description: string; example: [category: Category, code: Code, detail: string] }

const REFUSALS: Record<number, Refusal> = {
  400: {
    name: 'BadRequest',
    description: 'The request does not fit its description.',
    example: ['validation_error', 'schema_violation', '/title must be string.'],
  },
  401: {
    name: 'Unauthorized',
    description: 'The token is missing, has expired or is refused.',
    example: ['invalid_token', 'invalid_token', 'The access token is not valid.'],
  },
  403: {
    name: 'Forbidden',
    description: 'The caller may not do this.',
    example: ['policy_denied', 'permission_missing', 'This needs the permission gate:decide.'],
  },
  404: {
    name: 'NotFound',
    description: 'No such object, or none that the caller may see.',
    example: ['not_found', 'gate', 'No gate "go", or you may not see it.'],
  },
  409: {
    name: 'Conflict',
    description: 'Not possible in the current state.',
    example: ['version_conflict', 'in_progress', 'Another request on the same object is still running.'],
  },
  410: {
    name: 'Gone',
    description: 'This data is past its retention period.',
    example: ['not_found', 'gone', 'This log is past its retention period.'],
  },
  412: {
    name: 'PreconditionFailed',
    description: 'If-Match names another version.',
    example: ['version_conflict', 'revision_moved', 'The object has changed.'],
  },
  413: {
    name: 'ContentTooLarge',
    description: 'The body is too large.',
    example: ['validation_error', 'body_too_large', 'The body is too large.'],
  },
  414: {
    name: 'UriTooLong',
    description: 'The path has more than 2,048 or the query more than 8,192 characters, percent-encoded.',
    example: ['validation_error', 'uri_too_long', 'The request target is too long.'],
  },
  415: {
    name: 'UnsupportedMediaType',
    description: 'The content type is not accepted here.',
    example: ['validation_error', 'unsupported_media_type', 'This content type is not accepted here.'],
  },
  416: {
    name: 'RangeNotSatisfiable',
    description: 'The Range is outside the content.',
    example: ['validation_error', 'schema_violation', 'The Range is outside the log.'],
  },
  422: {
    name: 'UnprocessableContent',
    description: 'The request is well-formed and cannot be carried out.',
    example: ['validation_error', 'idempotency_key_reused', 'This Idempotency-Key belongs to another request.'],
  },
  428: {
    name: 'PreconditionRequired',
    description: 'If-Match is missing.',
    example: ['version_conflict', 'precondition_required', 'If-Match is missing.'],
  },
  429: {
    name: 'TooManyRequests',
    description: 'A limit of the gateway is used up.',
    example: ['rate_limited', 'rate_limited', 'Too many requests.'],
  },
  431: {
    name: 'HeadersTooLarge',
    description: 'Request target and headers have more than 16,384 bytes together.',
    example: ['validation_error', 'headers_too_large', 'The request is not valid HTTP.'],
  },
  500: {
    name: 'InternalError',
    description: 'A fault of the service. Report the request id.',
    example: ['internal_error', 'unexpected', 'Something went wrong on our side.'],
  },
  502: {
    name: 'BadGateway',
    description: 'A part of the service could not be reached.',
    example: ['unavailable', 'upstream_failed', 'The catalog service could not be reached.'],
  },
  503: {
    name: 'Unavailable',
    description: 'A part of the service is away or overloaded. Repeat the same request later.',
    example: ['unavailable', 'overloaded', 'The service is overloaded.'],
  },
  504: {
    name: 'GatewayTimeout',
    description: 'A part of the service did not answer in time. It is unknown whether the request was carried out.',
    example: ['unavailable', 'upstream_timeout', 'The operations service did not answer in time.'],
  },
}

/** Refers to the named answer of a status. */
export const refusalOf = (status: number): { $ref: string } => {
  const refusal = REFUSALS[status]
  if (!refusal) throw new Error(`no route may refuse with ${status}: describe it in refusals.ts`)
  return { $ref: `#/components/responses/${refusal.name}` }
}

/** The named answers of a document. */
export const refusals = (): Record<string, object> =>
  Object.fromEntries(
    Object.entries(REFUSALS).map(
      ([
        status,
        {
          name,
          description,
          example: [category, code, detail],
        },
      ]) => {
        const error = new AppError(category, code, detail, {
          status: Number(status),
          retryable: category === 'unavailable' || category === 'rate_limited',
        })
        const example = problemOf(error, '0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10', '/api/v1/example')
        const headers = Object.fromEntries(
          [
            'x-request-id',
            ...(/^(429|50[234])$/.test(status) ? ['retry-after'] : []),
            ...(status === '401' ? ['www-authenticate'] : []),
          ].map((header) => [header, { $ref: `#/components/headers/${header}` }]),
        )
        const schema = { $ref: `#/components/schemas/${name}Problem` }
        const content = { 'application/problem+json': { schema, example } }
        return [name, { description, headers, content }]
      },
    ),
  )

/** The problem of each named answer: with the categories that refuse with its status. */
export const problemSchemas = (): Record<string, object> =>
  Object.fromEntries(
    Object.entries(REFUSALS).map(
      ([
        status,
        {
          name,
          example: [category],
        },
      ]) => {
        const narrowed = { properties: { category: { enum: categoriesOf(Number(status), category) } } }
        return [`${name}Problem`, { allOf: [{ $ref: '#/components/schemas/Problem' }, narrowed] }]
      },
    ),
  )

/** The categories that refuse with a status: by their own, by that of a code, or as the example does. */
const categoriesOf = (status: number, example: Category): Category[] =>
  CATEGORIES.filter(
    (category) =>
      category === example ||
      describeCategory(category).status === status ||
      Object.values<Entry>(CODES[category]).some(([, , ...statuses]) => statuses.includes(status)),
  )
