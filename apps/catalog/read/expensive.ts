import { AppError } from '../../shared/errors.ts'

/** The refusal of a question that would take too much: 422, with how to ask for less. */
export const tooExpensive = (detail: string, hint: string, cause?: unknown): AppError =>
  new AppError('validation_error', 'query_too_expensive', detail, { hint, cause })
