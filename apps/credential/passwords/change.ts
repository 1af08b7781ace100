import { Code, ConnectError } from '@connectrpc/connect'
import type { Tx } from '../../../db/client.ts'
import {
  addCredential,
  endCredential,
  getCredential,
  getEnrolmentToken,
  rehashCredential,
  replaceCredential,
  supersedeEnrolmentTokens,
  useEnrolmentToken,
} from '../../../db/credential/queries.ts'
import { type EnrolmentTokenRow, outbox } from '../../../db/credential/tables.ts'
import { getTotp } from '../../../db/credential/totp.ts'
import { appendOutbox, wakeRelay } from '../../../db/outbox.ts'
import type {
  ChangePasswordRequest,
  SetPasswordRequest,
  VerifyPasswordRequest,
} from '../../shared/contracts/gen/auth_pb.ts'
import { isUuid, uuidv7 } from '../../shared/ids.ts'
import type { CredentialDeps } from '../deps.ts'
import { parseEnrolmentToken } from '../enrolment.ts'
import { isPasswordText, type PasswordViolation, passwordViolations } from './rules.ts'

const NOBODY = '00000000-0000-0000-0000-000000000000'
const PRODUCT = ['signalbox']

export type CallContext = { request_id: string; signal: AbortSignal }

const refuse = (message: string, code = Code.InvalidArgument) => new ConnectError(message, code)
const changedMeanwhile = () => refuse('the password was changed at the same time', Code.AlreadyExists)

/**
 * Whether this is the user's password. Every request costs one read and one full hash. A missing row, an empty id or a
 * text that cannot be a password hashes the dummy. Only a caller with the right password learns whether there is an
 * authenticator app.
 */
export const verifyPassword = async (
  deps: CredentialDeps,
  request: VerifyPasswordRequest,
  { signal }: CallContext,
): Promise<{ is_valid: boolean; password_version: number; totp: boolean }> => {
  const user_id = isUuid(request.userId) ? request.userId : NOBODY
  const row = await getCredential(deps.db, user_id)
  const possible = isPasswordText(request.password)
  const stored = possible ? row?.password_hash : undefined
  const asking = { key: request.queueKey, urgent: request.urgent, signal }
  const is_valid = await deps.hashing.verify(
    loginOf(request.userId, request.password),
    stored,
    possible ? request.password : '',
    asking,
  )
  if (is_valid && stored && deps.hashing.isOutdated(stored)) rehash(deps, user_id, stored, request.password)
  const totp = is_valid && (await getTotp(deps.db, user_id)) !== undefined
  return { is_valid, password_version: is_valid && row ? row.version : 0, totp }
}

const loginOf = (user_id: string, password: string): string => JSON.stringify([user_id, password])

/** Rehashes a password with current parameters without delaying the answer; on a full queue, the next login does it. */
const rehash = (
  { db, hashing, telemetry }: CredentialDeps,
  user_id: string,
  stored: string,
  password: string,
): void => {
  hashing
    .hash(password, { key: '' })
    .then((fresh) => rehashCredential(db, user_id, stored, fresh))
    .catch((err: unknown) => telemetry.log.warn({ err }, 'a hash could not be renewed'))
}

/**
 * Sets a password by a one-time enrolment token. A weak password is refused with the reasons and keeps the token;
 * repeating the applied change succeeds again.
 */
export const setPassword = async (
  deps: CredentialDeps,
  request: SetPasswordRequest,
  context: CallContext,
): Promise<{ violations: PasswordViolation[]; enrolment_change_id: string }> => {
  const { userId: user_id, newPassword, changeId: change_id, queueKey } = request
  if (!isPasswordText(newPassword)) throw refuse('the password is empty or too long')
  if (change_id === '') throw refuse('change_id is missing')
  const token = await openToken(deps, request)
  const enrolment_change_id = token.change_id
  if (token.used_by === change_id && (await isSet(deps, request, context)))
    return { violations: [], enrolment_change_id }
  if (token.used_at !== null) throw enrolmentRefused()

  const violations = passwordViolations(
    newPassword,
    await deps.strength.estimate(newPassword, [...PRODUCT, request.username]),
  )
  if (violations.length > 0) return { violations, enrolment_change_id }
  const password_hash = await deps.hashing.hash(newPassword, { key: queueKey, signal: context.signal })
  await deps.db.transaction(async (tx) => {
    const used = await useEnrolmentToken(tx, token.token_id, change_id)
    if (!used) throw enrolmentRefused()
    await supersedeEnrolmentTokens(tx, user_id)
    const version = await writeHash(tx, { user_id, password_hash, change_id })
    await announce(tx, 'password_set', user_id, version, context, {})
  })
  void wakeRelay(deps.db, 'credential')
  return { violations: [], enrolment_change_id }
}

/** Another password under the key of an applied change is no repeat: it must not be reported as set. */
const isSet = async (
  deps: CredentialDeps,
  { userId, newPassword, queueKey }: SetPasswordRequest,
  { signal }: CallContext,
) =>
  deps.hashing.verify(
    loginOf(userId, newPassword),
    (await getCredential(deps.db, userId))?.password_hash,
    newPassword,
    { key: queueKey, signal },
  )

const enrolmentRefused = () => refuse('the enrolment token is unknown, used or expired', Code.FailedPrecondition)

const openToken = async (deps: CredentialDeps, request: SetPasswordRequest): Promise<EnrolmentTokenRow> => {
  const ids = parseEnrolmentToken(deps.enrolment_key, request.enrolmentToken)
  const row = ids && ids.user_id === request.userId ? await getEnrolmentToken(deps.db, ids.token_id) : undefined
  const expired = row && new Date(row.expires_at) <= deps.clock.now()
  if (!row || row.user_id !== request.userId || (expired && row.used_at === null)) throw enrolmentRefused()
  return row
}

const writeHash = async (
  tx: Tx,
  row: { user_id: string; password_hash: string; change_id: string },
): Promise<number> => {
  const had = await getCredential(tx, row.user_id)
  const written = had ? await replaceCredential(tx, row, had.version) : await addCredential(tx, row)
  if (!written) throw changedMeanwhile()
  return written.version
}

/** Ends the password, if there is one: only a new one, set by an enrolment token, signs in again. */
export const endPassword = async ({ db }: Pick<CredentialDeps, 'db'>, user_id: string) => {
  if (!isUuid(user_id)) throw refuse('user_id must be given')
  await endCredential(db, user_id)
  return {}
}

const announce = (tx: Tx, type: string, user_id: string, version: number, { request_id }: CallContext, more: object) =>
  appendOutbox(tx, outbox, {
    event_id: uuidv7(),
    agg_type: 'credential',
    agg_id: user_id,
    agg_version: version,
    type,
    payload: { user_id, actor: { type: 'user', id: user_id }, ...more },
    request_id,
  })

/** `password_version`: of the new password; 0 if unchanged. */
export type ChangeOutcome = { current_is_valid: boolean; violations: PasswordViolation[]; password_version: number }

/** Changes a password after verifying the current one. Repeating the last change succeeds if its result is current. */
export const changePassword = async (
  deps: CredentialDeps,
  request: ChangePasswordRequest,
  context: CallContext,
): Promise<ChangeOutcome> => {
  const { userId: user_id, currentPassword, newPassword, changeId: change_id, queueKey } = request
  if (!isUuid(user_id) || change_id === '') throw refuse('user_id and change_id must be given')
  if (!isPasswordText(newPassword)) throw refuse('the new password is empty or too long')
  const row = await getCredential(deps.db, user_id)
  const asking = { key: queueKey, urgent: true, signal: context.signal }
  const isTheirs = (password: string) => {
    const possible = isPasswordText(password)
    const stored = possible ? row?.password_hash : undefined
    return deps.hashing.verify(loginOf(user_id, password), stored, possible ? password : '', asking)
  }
  if (row?.change_id === change_id && (await isTheirs(newPassword)))
    return { current_is_valid: true, violations: [], password_version: row.version }
  const current_is_valid = await isTheirs(currentPassword)
  if (!current_is_valid || !row) return { current_is_valid: false, violations: [], password_version: 0 }

  const violations = passwordViolations(
    newPassword,
    await deps.strength.estimate(newPassword, [...PRODUCT, request.username]),
  )
  if (violations.length > 0) return { current_is_valid, violations, password_version: 0 }
  const password_hash = await deps.hashing.hash(newPassword, asking)
  const password_version = await deps.db.transaction(async (tx) => {
    const written = await replaceCredential(tx, { user_id, password_hash, change_id }, row.version)
    if (!written) throw changedMeanwhile()
    await supersedeEnrolmentTokens(tx, user_id)
    await announce(tx, 'password_changed', user_id, written.version, context, {
      keep_session_id: request.keepSessionId,
    })
    return written.version
  })
  void wakeRelay(deps.db, 'credential')
  return { current_is_valid, violations, password_version }
}
