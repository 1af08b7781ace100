import { AppError } from '../errors.ts'
import type { AccessClaims } from '../jwt/claims.ts'
import type { Permission } from './permissions.ts'
import type { Principal } from './principals.ts'
import { type Grant, narrowed, permissionsIn } from './scope.ts'

/** The sender of a request to the public API, from the verified token and the current principal. */
export type Caller = {
  user_id: string
  username: string
  session_id: string
  kind: Principal['user']['kind']
  mode: AccessClaims['cm']
  /** When the password was last proved, in seconds since the epoch. */
  auth_time: number
  roles: string[]
  groups: string[]
  grants: Grant[]
  permissions: ReadonlySet<Permission>
} & Pick<Principal, 'memberships' | 'reset' | 'renewal_required' | 'behind' | 'version'>

export const callerOf = (
  claims: AccessClaims,
  { user, roles, group_keys, grants, permissions, memberships, reset, renewal_required, behind, version }: Principal,
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
  version,
})

/** Returns a person who sends no request, with current rights: work is done in their name. */
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

/** Returns the account's rights, limited for a machine to what its credential permits. */
const rightsOf = ({ cm, scope = [], place }: AccessClaims, held: Grant[], permissions: ReadonlySet<Permission>) => {
  if (cm !== 'machine') return { grants: held, permissions }
  const grants = narrowed(held, scope, place)
  return { grants, permissions: permissionsIn(grants) }
}

/** Returns the caller as commands, timeline and evidence name them. */
export const actorOfCaller = ({ user_id, username, roles, behind }: Caller) => ({
  kind: 'user' as const,
  id: user_id,
  name: username,
  roles,
  ...(behind.length > 0 && { behind }),
})

/** Returns the refusal of an act that only people may do; `undefined` for a person. */
export const refuseMachine = ({ kind }: Pick<Caller, 'kind'>): AppError | undefined =>
  kind === 'person' ? undefined : new AppError('policy_denied', 'person_required', 'Only a person can do this.')

/** Whether the caller signed in or confirmed it at most `max_age_s` ago. */
const isFresh = ({ auth_time }: Pick<Caller, 'auth_time'>, max_age_s: number, now: Date): boolean =>
  now.getTime() / 1000 - auth_time <= max_age_s

/** Not everyone has a password. */
export const REAUTH_HINT =
  'Send your password, an answer of your passkey or a code of your app to POST /v1/token/reauth, or confirm by POST /v1/sso/{provider}/start. Then repeat the request with the new access token.'

/** Returns the refusal of an act that needs a fresh sign-in; `undefined` if it is fresh. */
export const refuseStaleAuth = (
  caller: Pick<Caller, 'auth_time'>,
  max_age_s: number,
  now: Date,
): AppError | undefined =>
  isFresh(caller, max_age_s, now)
    ? undefined
    : new AppError('policy_denied', 'reauth_required', `This needs a sign-in within the last ${max_age_s / 60} min.`, {
        hint: REAUTH_HINT,
        extra: { max_age_s },
      })

/** The scope of a session whose person must first set up a second factor, and may do only that. */
export const ENROLMENT = 'enrolment'

/** Whether a person's token belongs to such a session. */
export const isEnrolling = ({ cm, scope }: Pick<AccessClaims, 'cm' | 'scope'>): boolean =>
  cm !== 'machine' && scope !== undefined

/** The error for a request that such a session must not make. */
export const factorRequired = () =>
  new AppError('policy_denied', 'factor_required', 'This needs a second factor, which this session has not proved.', {
    hint: 'Add a passkey or an authenticator app under /settings/passkeys, or confirm one; then renew the token.',
  })
