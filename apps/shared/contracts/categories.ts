import { type Category, CODES, type CodeOf, type Entry } from './codes.ts'

/**
 * The closed set of error categories. A category says what kind of refusal it is (spec/catalog-and-operations.md,
 * "Errors", plus the four that the conventions add); a code says which one exactly.
 */
export const STATUS = {
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

export const TITLES: Record<Category, string> = {
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

/** What the caller does next, and the statuses that a code refuses with. */
export const entryOf = <C extends Category>(category: C, code: CodeOf<C>) => {
  const [, remedy, ...statuses] = (CODES[category] as Record<string, Entry>)[code] as Entry
  return { remedy, statuses: statuses.length ? statuses : [STATUS[category]] }
}
