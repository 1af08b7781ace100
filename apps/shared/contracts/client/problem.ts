import type { Code as KnownCode } from '../codes.ts'

/** A code of the closed table of /docs/errors; any other text comes from a proxy, or from a newer release. */
export type Code = KnownCode | (string & {})

/** The body of an application/problem+json answer, as a client receives it (RFC 9457; platform.md section 7). */
export type Problem = {
  type: string
  title: string
  status: number
  detail: string
  instance?: string
  category: string
  code: Code
  request_id?: string
  retryable?: boolean
  hint?: string
  violations?: { pointer: string; code: string; message: string }[]
  retry_after_ms?: number
  [member: string]: unknown
}

/** A client that was told to come back next year asks again after an hour. */
const LONGEST_WAIT_MS = 3_600_000

/** Returns how long Retry-After asks to wait, in seconds or as a date (RFC 9110, 10.2.3); `undefined` if neither. */
export const retryAfterMs = (header: string | null | undefined, now = Date.now()): number | undefined => {
  const said = header?.trim() ?? ''
  const wait = /^\d+(\.\d+)?$/.test(said) ? Number(said) * 1000 : httpDate(said) - now
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), LONGEST_WAIT_MS)
}

/** The three date formats of RFC 9110 begin with the day of the week and mean GMT; one of them does not say so. */
const httpDate = (said: string): number =>
  /^[A-Z][a-z]{2,8},? /.test(said) ? Date.parse(said.endsWith('GMT') ? said : `${said} GMT`) : Number.NaN

/** Reads any answer of a server or a proxy as a problem; an answer that is none becomes one that names the status. */
export const problemFrom = (status: number, body: unknown, retryAfter: string | null = null): Problem => {
  const given = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
  const text = (member: string) => (typeof given[member] === 'string' ? given[member] : undefined)
  const wait = Number(given.retry_after_ms ?? retryAfterMs(retryAfter))
  const code = text('code')
  return {
    ...(code !== undefined && given),
    type: text('type') ?? 'about:blank',
    title: text('title') ?? `Status ${status}`,
    status,
    detail: text('detail') ?? `The server answered with status ${status} and no explanation.`,
    category: text('category') ?? (status >= 500 ? 'internal_error' : 'validation_error'),
    code: code ?? `status_${status}`,
    ...(Number.isFinite(wait) && { retry_after_ms: wait }),
  }
}

/** What a client may conclude from the answer to a command (console.md section 6). */
export type CommandAnswer = 'applied' | 'accepted' | 'unknown' | 'wait' | 'refused'

/** How clients retry: `unknown` and `wait` with the same key and body, `refused` never; a corrected request is new. */
export const answerOf = (status: number | null, problem?: Pick<Problem, 'category' | 'code'>): CommandAnswer => {
  if (status === null) return 'unknown'
  if (status === 202) return 'accepted'
  if (status < 300) return 'applied'
  if (status === 429 || status === 503) return 'wait'
  if (status === 409 && problem?.category === 'version_conflict' && problem.code === 'in_progress') return 'wait'
  return status >= 500 ? 'unknown' : 'refused'
}
