import { AppError } from '../errors.ts'
import type { AccessClaims } from '../jwt/claims.ts'
import type { Permission } from './permissions.ts'
import type { Principal } from './principals.ts'
import type { Grant } from './scope.ts'

/** Who sends a request of the public API, from the verified token and the current principal. */
export type Caller = {
  user_id: string
  username: string
  session_id: string
  mode: 'json' | 'cookie'
  /** Seconds since the epoch of the last proof of the password. */
  auth_time: number
  roles: string[]
  groups: string[]
  grants: Grant[]
  permissions: ReadonlySet<Permission>
} & Pick<Principal, 'memberships' | 'reset' | 'renewal_required'>

export const callerOf = (
  claims: AccessClaims,
  { user, roles, group_keys, grants, permissions, memberships, reset, renewal_required }: Principal,
): Caller => ({
  user_id: user.id,
  username: user.username,
  session_id: claims.session_id,
  mode: claims.cm,
  auth_time: claims.auth_time,
  roles,
  groups: group_keys,
  grants,
  permissions,
  memberships,
  reset,
  renewal_required,
})

/** Whether the caller proved the password no longer than `max_age_s` ago. */
export const isFresh = ({ auth_time }: Pick<Caller, 'auth_time'>, max_age_s: number, now: Date): boolean =>
  now.getTime() / 1000 - auth_time <= max_age_s

/** The refusal of an act that needs a fresh proof of the password; undefined if it is fresh. */
export const refuseStaleAuth = (
  caller: Pick<Caller, 'auth_time'>,
  max_age_s: number,
  now: Date,
): AppError | undefined =>
  isFresh(caller, max_age_s, now)
    ? undefined
    : new AppError(
        'policy_denied',
        'reauth_required',
        `This needs your password, proved within the last ${max_age_s / 60} min.`,
        {
          hint: 'Send your password to POST /v1/token/reauth and repeat the request with the new access token.',
          extra: { max_age_s },
        },
      )
