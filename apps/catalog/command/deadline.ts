import { unavailable } from '../../shared/errors.ts'

/**
 * Ends long work whose caller has been told that it took too long: 503, rolled back with the transaction it is in.
 * `ends_at` is that of the request, in `performance.now()`.
 */
export const refuseLate = (ends_at: number): void => {
  if (performance.now() >= ends_at)
    throw unavailable('The time of this request is over; what was not committed is not kept.')
}
