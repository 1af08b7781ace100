import { type Category, CODES, type CodeOf, type Entry } from './codes.ts'

const HINT = 'Read the object again to see which actions are possible now.'

/**
 * The closed set of error categories, each with its status, title and hint. A category names the kind of refusal
 * (spec/catalog-and-operations.md, "Errors", plus the four that the conventions add); a code names the exact one.
 */
const MEANING: Record<Category, readonly [status: number, title: string, hint?: string]> = {
  validation_error: [400, 'The request is not valid', 'Correct the named fields and send the request again.'],
  invalid_credentials: [401, 'The credentials are not valid', 'Check username and password.'],
  invalid_token: [401, 'A valid token is required', 'Sign in again, or refresh the access token.'],
  policy_denied: [403, 'Policy does not allow this', 'Ask for the missing permission, or ask someone who has it.'],
  rate_limited: [429, 'Too many requests', 'Wait for the time in Retry-After.'],
  unavailable: [503, 'A part of the service is not available'],
  not_found: [404, 'Not found', 'Check the path and the id.'],
  version_conflict: [
    409,
    'Conflict with the current version',
    'Read the object again and decide on its current version.',
  ],
  invalid_state_transition: [409, 'Not possible in this state'],
  plan_locked: [409, 'The plan is locked'],
  gate_not_waiting: [409, 'The gate does not wait for a decision'],
  patch_not_applicable: [409, 'The patch does not fit'],
  stale_catalog_projection: [409, 'The catalog has moved on'],
  execution_result_rejected: [409, 'The result is not accepted'],
  unsupported_resource_type: [422, 'This resource type is not supported'],
  invalid_capability: [422, 'The capability is not valid'],
  stale_projection: [503, 'The projection is behind'],
  internal_error: [
    500,
    'Something went wrong on our side',
    'Repeat the request; if it keeps failing, report the request id.',
  ],
}

export const CATEGORIES = Object.keys(MEANING) as Category[]

/** Returns the meaning of a category, for the reference. */
export const describeCategory = (category: Category): { status: number; title: string; hint: string } => {
  const [status, title, hint = HINT] = MEANING[category]
  return { status, title, hint }
}

/** Returns what the caller does next, and the statuses with which a code refuses. */
export const entryOf = <C extends Category>(category: C, code: CodeOf<C>) => {
  const [, remedy, ...statuses] = (CODES[category] as Record<string, Entry>)[code] as Entry
  return { remedy, statuses: statuses.length ? statuses : [MEANING[category][0]] }
}
