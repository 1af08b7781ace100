import { unavailable } from '../../shared/errors.ts'

/**
 * Ends work that has outlived its request, whose caller has already received a timeout: throws a 503, so its
 * transaction rolls back. `ends_at` is the request's deadline in `performance.now()`.
 */
export const refuseLate = (ends_at: number): void => {
  if (performance.now() >= ends_at) throw unavailable('The request timed out; uncommitted changes were rolled back.')
}
