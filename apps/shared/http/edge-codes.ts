import type { Category, CodeOf } from '../errors.ts'

/** An area's names for the codes that the edge itself produces. */
export type EdgeCodes = {
  /** The closed list of this API. */
  categories: readonly Category[]
  outage: 'unavailable' | 'internal_error'
  unknown_field: CodeOf<'validation_error'>
  media_type: CodeOf<'validation_error'>
  too_large: CodeOf<'validation_error'>
  route: CodeOf<'not_found'>
  malformed: CodeOf<'validation_error'>
  /** For a path that cannot be read. */
  path: CodeOf<'validation_error'>
  /** For text that Postgres cannot store. */
  text: { code: CodeOf<'validation_error'>; status: 400 | 422 }
}
export const AUTH_CODES: EdgeCodes = {
  categories: [
    'validation_error',
    'invalid_credentials',
    'invalid_token',
    'policy_denied',
    'rate_limited',
    'unavailable',
    'not_found',
    'version_conflict',
    'internal_error',
  ],
  outage: 'unavailable',
  unknown_field: 'schema_violation',
  media_type: 'unsupported_media_type',
  too_large: 'body_too_large',
  route: 'not_found',
  malformed: 'malformed_json',
  path: 'bad_path',
  text: { code: 'schema_violation', status: 400 },
}
export const CATALOG_CODES: EdgeCodes = {
  categories: [
    'not_found',
    'version_conflict',
    'validation_error',
    'policy_denied',
    'unsupported_resource_type',
    'invalid_capability',
    'stale_projection',
    'internal_error',
  ],
  outage: 'internal_error',
  unknown_field: 'unknown_field',
  media_type: 'media_type',
  too_large: 'too_large',
  route: 'route',
  malformed: 'malformed',
  path: 'malformed',
  text: { code: 'invalid_text', status: 422 },
}
export const OPERATIONS_CODES: EdgeCodes = {
  categories: [
    'not_found',
    'invalid_state_transition',
    'plan_locked',
    'gate_not_waiting',
    'patch_not_applicable',
    'policy_denied',
    'stale_catalog_projection',
    'execution_result_rejected',
    'internal_error',
    'validation_error',
    'version_conflict',
  ],
  outage: 'internal_error',
  unknown_field: 'schema_violation',
  media_type: 'schema_violation',
  too_large: 'schema_violation',
  route: 'route',
  malformed: 'schema_violation',
  path: 'schema_violation',
  text: { code: 'schema_violation', status: 400 },
}
