import { AppError } from '../../shared/errors.ts'

/** Refuses a query that would cost too much: 422, with how to narrow it. */
export const tooExpensive = (detail: string, hint: string, cause?: unknown): AppError =>
  new AppError('validation_error', 'query_too_expensive', detail, { hint, cause })
