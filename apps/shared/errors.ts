import { describeCategory, entryOf } from './contracts/categories.ts'
import type { Category, Code, CodeOf } from './contracts/codes.ts'
import type { RefusalCode } from './contracts/operations/graph.ts'

export type { Category, Code, CodeOf } from './contracts/codes.ts'

export type Violation = { pointer: string; code: string; message: string }

/** Options of a refusal besides its category, code and detail. `extra` members are sent unchanged. */
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

/** The only error class that crosses layers. Hint and single status default to the code's. The cause is never sent. */
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
    const [own, ...others] = entryOf(category, code).statuses
    this.status = options.status ?? (others.length === 0 && own !== undefined ? own : describeCategory(category).status)
    this.options = options
  }
}

/** The reason in an error; that of `fetch` says only "fetch failed" and has it as its cause. */
export const whyOf = (error: unknown): string => {
  const { message, cause } = error as Error
  const { message: inner, code } = (cause ?? {}) as NodeJS.ErrnoException
  return inner || code || message
}

/** Returns a 503 for an outage of a dependency; the request may be repeated with the same key (reliability.md 2.2). */
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

/** Another request holds or has just changed the same object. */
export const objectBusy = (cause?: unknown) =>
  new AppError('version_conflict', 'in_progress', 'Another request on the same object is still running.', {
    retryable: true,
    retry_after_ms: 1000,
    hint: 'Send the same request again.',
    cause,
  })

const SHED: readonly Code[] = ['overloaded', 'login_busy']
/**
 * Whether the log names it. A request that is shed under load is counted (`signalbox_priority_refused_total`,
 * `http_shed_total`) and has its access line. A line with a stack for each would cost more than the refusal.
 */
export const isFault = ({ status, code }: AppError): boolean => status >= 500 && !SHED.includes(code)

/** A rule's refusal, before it becomes an error. */
export const refusal = <C extends Category>(
  category: C,
  code: CodeOf<C>,
  detail: string,
  more: Pick<RefusalCode, 'extra' | 'status'> = {},
): RefusalCode => ({ category, code, detail, ...more })

type Wrong = ErrorOptions & { code?: CodeOf<'validation_error'>; detail?: string; as?: string }
/** Returns the error for a request with one fault. `as` names the fault if its code differs from the refusal's. */
export const wrongAt = (
  pointer: string,
  message: string,
  {
    code = 'schema_violation',
    detail = `${pointer} ${message.replace(/\.$/, '')}.`,
    as = code,
    ...options
  }: Wrong = {},
) => new AppError('validation_error', code, detail, { ...options, violations: [{ pointer, code: as, message }] })

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

export const problemOf = (error: AppError, request_id: string, instance: string): Problem => ({
  type: `/docs/errors/${error.category}`,
  title: describeCategory(error.category).title,
  status: error.status,
  detail: error.message,
  instance,
  category: error.category,
  code: error.code,
  request_id,
  retryable: error.options.retryable ?? false,
  hint: error.options.hint ?? entryOf(error.category, error.code as CodeOf<Category>).remedy,
  ...(error.options.violations && { violations: error.options.violations.slice(0, 100) }),
  ...(error.options.retry_after_ms !== undefined && { retry_after_ms: error.options.retry_after_ms }),
  ...error.options.extra,
})
