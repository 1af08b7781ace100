import { AppError } from '../errors.ts'
import type { AccessClaims } from '../jwt/claims.ts'
import type { Permission } from './permissions.ts'
import type { Principal } from './principals.ts'
import { type Grant, narrowed, permissionsIn } from './scope.ts'

/** Who sends a request of the public API, from the verified token and the current principal. */
export type Caller = {
  user_id: string
  username: string
  session_id: string
  kind: Principal['user']['kind']
  mode: AccessClaims['cm']
  /** Seconds since the epoch of the last proof of the password. */
  auth_time: number
  roles: string[]
  groups: string[]
  grants: Grant[]
  permissions: ReadonlySet<Permission>
} & Pick<Principal, 'memberships' | 'reset' | 'renewal_required' | 'behind'>

export const callerOf = (
  claims: AccessClaims,
  { user, roles, group_keys, grants, permissions, memberships, reset, renewal_required, behind }: Principal,
): Caller => ({
  kind: user.kind,
  user_id: user.id,
  username: user.username,
  session_id: claims.session_id,
  mode: claims.cm,
  auth_time: claims.auth_time,
  roles,
  groups: group_keys,
  ...rightsOf(claims, grants, permissions),
  memberships,
  reset,
  renewal_required,
  behind,
})

/** A person as of now, who sends no request: work is done in their name, with the rights that they have then. */
export const callerBy = ({ user, group_keys, ...rights }: Principal): Caller => ({
  user_id: user.id,
  username: user.username,
  kind: user.kind,
  session_id: '',
  mode: 'machine',
  auth_time: 0,
  groups: group_keys,
  ...rights,
})

/** Those of the account, and by a machine's credential no more than it permits. */
const rightsOf = ({ cm, scope = [], place }: AccessClaims, held: Grant[], permissions: ReadonlySet<Permission>) => {
  if (cm !== 'machine') return { grants: held, permissions }
  const grants = narrowed(held, scope, place)
  return { grants, permissions: permissionsIn(grants) }
}

/** The caller as commands, timeline and evidence name them. */
export const actorOfCaller = ({ user_id, username, roles, behind }: Caller) => ({
  kind: 'user' as const,
  id: user_id,
  name: username,
  roles,
  ...(behind.length > 0 && { behind }),
})

/** The refusal of an act that only people may do; undefined for a person. */
export const refuseMachine = ({ kind }: Pick<Caller, 'kind'>): AppError | undefined =>
  kind === 'person' ? undefined : new AppError('policy_denied', 'person_required', 'Only a person can do this.')

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

/** The scope of a session whose person must prove a second factor first: to set one up, and no more. */
export const ENROLMENT = 'enrolment'

/** Whether a person's token is of such a session. */
export const isEnrolling = ({ cm, scope }: Pick<AccessClaims, 'cm' | 'scope'>): boolean =>
  cm !== 'machine' && scope !== undefined

/** Of a request that such a session may not make. */
export const factorRequired = () =>
  new AppError(
    'policy_denied',
    'factor_required',
    'Your role needs a second factor, which this session has not proved.',
    { hint: 'Add a passkey or an authenticator app under /settings/passkeys, or confirm one; then renew the token.' },
  )
