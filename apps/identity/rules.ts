import type { UserRow } from '../../db/identity/tables.ts'
import { ROLES_OF, type Role, UNSCOPED_ROLES } from '../shared/auth/permissions.ts'
import { foldUsername } from '../shared/auth/username.ts'
import { canonicalJson } from '../shared/data/digest.ts'
import { AppError, type CodeOf, wrongAt } from '../shared/errors.ts'
import { tagsOf } from '../shared/http/routes.ts'

/** Identity's own rules (auth.md 9): pure functions that return the refusal or `undefined`. */

const denied = (code: CodeOf<'policy_denied'>, detail: string, hint: string) =>
  new AppError('policy_denied', code, detail, { hint })
const conflict = (code: CodeOf<'version_conflict'>, detail: string, hint: string) =>
  new AppError('version_conflict', code, detail, { hint })

/** No one disables, deletes, enrols or unlocks themselves. */
export const refuseSelfAction = (caller_id: string, user_id: string, what: string) =>
  caller_id === user_id
    ? denied('self_action', `You cannot ${what} yourself.`, 'Ask another administrator.')
    : undefined

/** No one grants to themselves or to a group they are in, and no one adds themselves to a group. */
export const refuseSelfGrant = (requester: string, accounts: readonly string[]) =>
  accounts.includes(requester)
    ? denied('self_grant', 'You cannot give rights to yourself or to a group you are in.', 'Ask another administrator.')
    : undefined

type WantedGrant = { role: string; scope?: object; expires_at?: string }

/** A grant that could never apply is a mistake. */
export const refuseGrant = ({ role, scope = {}, expires_at }: WantedGrant, now: Date, at = '') => {
  if (UNSCOPED_ROLES.has(role as Role) && Object.keys(scope).length > 0)
    return new AppError(
      'validation_error',
      'scope_not_allowed',
      `The role ${role} applies everywhere and takes no scope.`,
    )
  return expires_at !== undefined && Date.parse(expires_at) <= now.getTime()
    ? wrongAt(`${at}/expires_at`, 'is in the past', {
        status: 422,
        hint: 'Send a time in the future, or leave it out for a grant that does not end.',
      })
    : undefined
}

/** A role is granted once for each scope, whenever it ends. */
export const refuseRepeatedGrant = (wanted: readonly WantedGrant[]) => {
  const names = wanted.map(({ role, scope = {} }) => canonicalJson({ role, scope }))
  const second = names.findIndex((name, index) => names.indexOf(name) < index)
  return second < 0
    ? undefined
    : wrongAt(`/grants/${second}`, 'repeats an earlier grant', {
        status: 422,
        hint: 'Send each role once for each scope.',
      })
}

/** A machine holds no role that decides or administers, not even by a group; a person holds no control-plane role. */
export const refuseRolesOf = (accounts: readonly Pick<UserRow, 'username' | 'kind'>[], roles: readonly string[]) => {
  for (const { username, kind } of accounts) {
    const role = roles.find((one) => !ROLES_OF[kind].has(one))
    if (role === undefined) continue
    const code = kind === 'machine' ? 'machine_role_refused' : 'person_role_refused'
    return new AppError('validation_error', code, `${username} is a ${kind} and cannot be ${role}.`, {
      hint: `A ${kind} can be ${[...ROLES_OF[kind]].join(', ')}.`,
    })
  }
  return undefined
}

/** The last active administrator must remain; `after` lists those that would be left. */
export const refuseLastAdmin = (before: readonly string[], after: readonly string[]) =>
  before.length > 0 && after.length === 0
    ? conflict(
        'last_admin',
        'This would leave no one who can administer.',
        'Make another person an administrator first. It counts once that person can sign in.',
      )
    : undefined

/** A change must be confirmed by an administrator who neither requested it nor is its subject. */
export const refuseSecondAdmin = (own: boolean) =>
  own
    ? denied('second_admin', 'You requested this change, or it concerns you.', 'Another administrator must confirm it.')
    : undefined

/** If one administrator can sign in as an account, it gets no right until its person alone knows the credential. */
export const refuseShownLink = (usernames: readonly string[]) =>
  usernames.length > 0
    ? denied(
        'renewal_required',
        `A single administrator has seen the enrolment link of ${usernames.join(', ')}.`,
        'Renew that credential first: request a new enrolment link.',
      )
    : undefined

export const refuseOthersChange = (own: boolean) =>
  own ? undefined : denied('not_your_change', 'You have no part in this change.', 'Ask the requester, or reject it.')

/** The requester of a change must still be an administrator when it is made. */
export const refuseRequester = (administers: boolean) =>
  administers
    ? undefined
    : conflict(
        'change_closed',
        'The requester of this change is no longer an administrator.',
        'Reject it and request it yourself.',
      )

export const refuseClosed = (state: string) =>
  state === 'pending'
    ? undefined
    : conflict('change_closed', `The change is ${state}.`, 'Request it again if it is still needed.')

/** The digest covers the request and the account or group, so the change made is the one reviewed. */
export const refuseDigest = (reviewed: string, current: string) =>
  reviewed === current
    ? undefined
    : new AppError('version_conflict', 'digest_moved', 'The account or group has changed since you read it.', {
        hint: 'Read the change again and review it.',
        extra: { current_digest: current },
      })

/** Halves are available only for the newest link of an active account. */
export const refuseHalf = (open: boolean, pending = false) =>
  open
    ? undefined
    : pending
      ? conflict(
          'change_pending',
          'This change still waits for another administrator.',
          'Ask again once it is confirmed.',
        )
      : conflict('change_closed', 'This change no longer yields a link.', 'Request a new enrolment link.')

const MOVES: Record<UserRow['status'], UserRow['status'][]> = {
  ACTIVE: ['DISABLED', 'DELETED'],
  DISABLED: ['ACTIVE', 'DELETED'],
  DELETED: [],
}

/** ACTIVE and DISABLED change into each other; both can end in DELETED. */
export const refuseStatus = (user: UserRow, to: UserRow['status']) =>
  user.status === to || MOVES[user.status].includes(to) ? undefined : refuseDeleted(user)

export const refuseDeleted = ({ status, username }: Pick<UserRow, 'status' | 'username'>) =>
  status === 'DELETED'
    ? conflict('user_deleted', `${username} was deleted; that is final.`, 'Create a new user with another name.')
    : undefined

/** An account created by a provider has no password, so it gets no link to set one. */
export const refusePassword = ({ provider, username }: Pick<UserRow, 'provider' | 'username'>) =>
  provider === null
    ? undefined
    : conflict(
        'provider_account',
        `${username} signs in through ${provider}.`,
        'Reset the password there; POST …/recovery ends lost passkeys and the app.',
      )

/** Taken away here, such a right would return with the person's next sign-in. */
export const refuseGivenRight = (giver: string) =>
  conflict(
    'group_managed',
    `${giver} gives this right by its groups, so it would come back.`,
    'Remove the person from the group there. To end it at once, disable the account.',
  )

/** With AUTH__LOCAL__LOGIN=break_glass a link would lead to a password that signs no one in. */
export const refuseClosedLogin = (names: ReadonlySet<string> | undefined, username: string) =>
  names === undefined || names.has(foldUsername(username))
    ? undefined
    : denied(
        'local_login_closed',
        `AUTH__LOCAL__USERS does not name ${username}, whose password signs no one in.`,
        'A new person signs in through a provider, which creates the account. Or name this one in AUTH__LOCAL__USERS.',
      )

/** Whether it must outlast every provider: no directory sees or changes it, also if it had adopted it before. */
export const isEmergency = (
  { AUTH__LOCAL__USERS }: { AUTH__LOCAL__USERS: readonly string[] },
  { provider, folded }: Pick<UserRow, 'provider' | 'folded'>,
) => provider === null && AUTH__LOCAL__USERS.some((name) => foldUsername(name) === folded)

/** If-Match is the version in quotes; without it the change always applies. */
export const refuseVersion = ({ version }: { version: number }, if_match: string | undefined) =>
  if_match === undefined || tagsOf(if_match).some((tag) => tag === '*' || tag === `"${version}"`)
    ? undefined
    : new AppError('version_conflict', 'version_mismatch', `The current version is ${version}.`, {
        status: 412,
        extra: { current_version: version },
      })

const USERNAME = /^[\p{L}\p{M}\p{Nd}._@+-]{1,64}$/u
/** As directories name people: O'Brien, guests (`#EXT#`), principal names of up to 113 characters. */
const PROVIDED = /^[\p{L}\p{M}\p{Nd}._@+'!#^~&-]{1,128}$/u

/**
 * The stored form of a name must itself be a valid name: NFKC turns some characters into several or into others. A
 * `provided` one comes from a provider, where no one here can change it.
 */
export const refuseUsername = (username: string, { provided = false } = {}) =>
  (provided ? PROVIDED : USERNAME).test(username)
    ? undefined
    : wrongAt('/username', 'needs 1 to 64 letters, marks, digits or ._-@+', {
        detail: 'The username is not valid.',
        as: 'pattern',
      })

/** A path drops the dots, and history calls other actors by the words. */
const RESERVED = /^(\.\.?|system|machine)$/i
const refuseReserved = (username: string) =>
  RESERVED.test(username)
    ? wrongAt('/username', 'is reserved', { detail: 'The username is reserved; choose another.', as: 'pattern' })
    : undefined

/** The rules for a new name. An account that is older than one of them keeps its name, and signs in by it. */
export const refuseNewName = (username: string, from: { provided?: boolean } = {}) =>
  refuseUsername(username, from) ?? refuseReserved(username) ?? refuseMixedScripts(username)

/** Scripts in common use (Unicode UTS 31, table 5), and combinations written together (UTS 39, highly restrictive). */
const SCRIPTS = [
  ...'Arabic Armenian Bengali Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Hebrew Kannada Khmer'.split(
    ' ',
  ),
  ...'Lao Latin Malayalam Myanmar Oriya Sinhala Tamil Telugu Thaana Thai Tibetan'.split(' '),
]
const TOGETHER = [
  ['Han', 'Hiragana', 'Katakana'],
  ['Han', 'Hangul'],
  ['Han', 'Bopomofo'],
]
const ONE_SCRIPT = [...SCRIPTS.map((script) => [script]), ...TOGETHER].map(
  (scripts) =>
    new RegExp(`^[\\p{scx=Common}\\p{scx=Inherited}${scripts.map((script) => `\\p{scx=${script}}`).join('')}]*$`, 'u'),
)

/** People decide by names, so no name may look like another: a new name must stay within one script. */
const refuseMixedScripts = (username: string) =>
  ONE_SCRIPT.some((script) => script.test(username))
    ? undefined
    : wrongAt('/username', 'must use letters of one script', { detail: 'The username mixes scripts.', as: 'pattern' })

export const throwIf = (error: AppError | undefined): void => {
  if (error) throw error
}

/**
 * Whether a passkey or an identity at a provider may be added. A lost app proves a factor until credential has ended it:
 * a way in that it added would outlive the recovery.
 */
export const mayGainWayIn = (user: UserRow | undefined): user is UserRow =>
  user?.status === 'ACTIVE' && user.kind === 'person' && !user.recovering && !user.factors_ended_at
