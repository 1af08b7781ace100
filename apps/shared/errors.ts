import { type Category, CODES, type Code, type CodeOf, type Entry } from './contracts/codes.ts'

export type { Category, Code, CodeOf } from './contracts/codes.ts'

/**
 * The closed set of error categories. A category says what kind of refusal it is (spec/catalog-and-operations.md,
 * "Errors", plus the four that the conventions add); a code says which one exactly.
 */
const STATUS = {
  validation_error: 400,
  invalid_credentials: 401,
  invalid_token: 401,
  policy_denied: 403,
  rate_limited: 429,
  unavailable: 503,
  not_found: 404,
  version_conflict: 409,
  invalid_state_transition: 409,
  plan_locked: 409,
  gate_not_waiting: 409,
  patch_not_applicable: 409,
  stale_catalog_projection: 409,
  execution_result_rejected: 409,
  unsupported_resource_type: 422,
  invalid_capability: 422,
  stale_projection: 503,
  internal_error: 500,
} as const satisfies Record<Category, number>

export const CATEGORIES = Object.keys(STATUS) as Category[]

const TITLES: Record<Category, string> = {
  validation_error: 'The request is not valid',
  invalid_credentials: 'The credentials are not valid',
  invalid_token: 'A valid token is required',
  policy_denied: 'Policy does not allow this',
  rate_limited: 'Too many requests',
  unavailable: 'A part of the service is not available',
  not_found: 'Not found',
  version_conflict: 'Conflict with the current version',
  invalid_state_transition: 'Not possible in this state',
  plan_locked: 'The plan is locked',
  gate_not_waiting: 'The gate does not wait for a decision',
  patch_not_applicable: 'The patch does not fit',
  stale_catalog_projection: 'The catalog has moved on',
  execution_result_rejected: 'The result is not accepted',
  unsupported_resource_type: 'This resource type is not supported',
  invalid_capability: 'The capability is not valid',
  stale_projection: 'The projection is behind',
  internal_error: 'Something went wrong on our side',
}

export type Violation = { pointer: string; code: string; message: string }

/** What a refusal may carry beside its category, code and detail. `extra` members are sent as they are. */
export type ErrorOptions = {
  status?: number
  hint?: string
  retryable?: boolean
  retry_after_ms?: number
  violations?: Violation[]
  extra?: Record<string, unknown>
  headers?: Record<string, string>
  cause?: unknown
}

/** The one error class that crosses a layer. The cause is for the log and never sent. */
export class AppError<C extends Category = Category> extends Error {
  readonly category: Category
  readonly code: Code
  readonly status: number
  readonly options: ErrorOptions

  constructor(category: C, code: CodeOf<C>, detail: string, options: ErrorOptions = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'AppError'
    this.category = category
    this.code = code
    this.status = options.status ?? STATUS[category]
    this.options = options
  }
}

/** Outage of something we need: 503, may be repeated with the same key (reliability.md 2.2). */
export const unavailable = (
  detail: string,
  cause?: unknown,
  category: 'unavailable' | 'internal_error' = 'internal_error',
) =>
  new AppError(category, category === 'unavailable' ? 'dependency_down' : 'unavailable', detail, {
    status: 503,
    retryable: true,
    retry_after_ms: 2000 + Math.floor(Math.random() * 3000),
    hint: 'Repeat the same request with the same Idempotency-Key after the time in Retry-After.',
    cause,
  })

/** The service is overloaded: 503 before the body is read (reliability.md 2.5). */
export const overloaded = (category: 'unavailable' | 'internal_error' = 'unavailable') =>
  new AppError(category, 'overloaded', 'The service is overloaded.', {
    status: 503,
    retryable: true,
    retry_after_ms: 2000 + Math.floor(Math.random() * 3000),
    hint: 'Repeat the same request with the same Idempotency-Key after the time in Retry-After.',
  })

/** Too many passwords are being checked: 503, no attempt charged (auth.md 8). `wait_ms` is measured. */
export const loginBusy = (wait_ms: number, cause?: unknown) => {
  const retry_after_ms = Math.min(Math.max(wait_ms, 1000), 30_000)
  return new AppError(
    'unavailable',
    'login_busy',
    `The server is busy. Try again in ${Math.ceil(retry_after_ms / 1000)} s.`,
    { retryable: true, retry_after_ms, hint: 'Repeat the request after the time in Retry-After.', cause },
  )
}

const SHED: readonly Code[] = ['overloaded', 'login_busy']
/**
 * Whether the log names it. A request that is shed under load is counted (`signalbox_priority_refused_total`, `http_shed_total`) and
 * has its access line: a line with a stack for each would cost more than the refusal.
 */
export const isFault = ({ status, code }: AppError): boolean => status >= 500 && !SHED.includes(code)

type NotFound = {
  (what: CodeOf<'not_found'>, id: string): AppError
  (what: string, id: string, code: CodeOf<'not_found'>): AppError
}
export const notFound: NotFound = (what: string, id: string, code?: CodeOf<'not_found'>) =>
  new AppError('not_found', code ?? (what as CodeOf<'not_found'>), `No ${what} "${id}", or you may not see it.`, {
    hint: 'Check the id, and that your roles cover this object.',
  })

/** The body of an answer of type application/problem+json (RFC 9457). */
export type Problem = {
  type: string
  title: string
  status: number
  detail: string
  instance: string
  category: Category
  code: Code
  request_id: string
  retryable: boolean
  hint: string
  violations?: Violation[]
  retry_after_ms?: number
  [member: string]: unknown
}

const HINTS: Partial<Record<Category, string>> = {
  validation_error: 'Correct the named fields and send the request again.',
  invalid_token: 'Sign in again, or refresh the access token.',
  invalid_credentials: 'Check username and password.',
  policy_denied: 'Ask for the missing permission, or ask someone who has it.',
  rate_limited: 'Wait for the time in Retry-After.',
  not_found: 'Check the path and the id.',
  version_conflict: 'Read the object again and decide on its current version.',
  internal_error: 'Repeat the request; if it keeps failing, report the request id.',
}

const HINT = 'Read the object again to see what is possible now.'

/** What a category means, for the reference. */
export const describeCategory = (category: Category): { status: number; title: string; hint: string } => ({
  status: STATUS[category],
  title: TITLES[category],
  hint: HINTS[category] ?? HINT,
})

/** The statuses that a code refuses with. */
export const statusesOf = <C extends Category>(category: C, code: CodeOf<C>): readonly number[] => {
  const [, , ...statuses] = (CODES[category] as Record<string, Entry>)[code] as Entry
  return statuses.length ? statuses : [STATUS[category]]
}

/** Maps any AppError to its problem document. */
export const problemOf = (error: AppError, request_id: string, instance: string): Problem => ({
  type: `/docs/errors/${error.category}`,
  title: TITLES[error.category],
  status: error.status,
  detail: error.message,
  instance,
  category: error.category,
  code: error.code,
  request_id,
  retryable: error.options.retryable ?? false,
  hint: error.options.hint ?? HINTS[error.category] ?? HINT,
  ...(error.options.violations && { violations: error.options.violations.slice(0, 100) }),
  ...(error.options.retry_after_ms !== undefined && { retry_after_ms: error.options.retry_after_ms }),
  ...error.options.extra,
})
