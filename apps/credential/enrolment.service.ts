import { Code, ConnectError } from '@connectrpc/connect'
import { addEnrolmentToken, getCredential, supersedeEnrolmentTokens } from '../../db/credential/queries.ts'
import type { CreateEnrolmentTokenRequest } from '../shared/contracts/gen/auth_pb.ts'
import { isUuid, uuidv7 } from '../shared/ids.ts'
import type { CredentialDeps } from './deps.ts'
import { enrolmentHalfOf, enrolmentTokenOf } from './enrolment.ts'

/**
 * Creates a one-time token for a first or a forgotten password; the same change_id returns the same token. Halves live
 * longer than a whole token: two people hand them over, and neither half works alone.
 */
export const createEnrolmentToken = async (
  { db, clock, enrolment_key, config }: CredentialDeps,
  { userId: user_id, changeId: change_id, onlyIfNoPassword, half, endsOlder }: CreateEnrolmentTokenRequest,
): Promise<{ token: string; expires_at: Date }> => {
  if (!isUuid(user_id) || change_id === '')
    throw new ConnectError('user_id and change_id must be given', Code.InvalidArgument)
  if (half !== 0 && half !== 1 && half !== 2) throw new ConnectError('half must be 0, 1 or 2', Code.InvalidArgument)
  const now = clock.now()
  const lives_s = half === 0 ? config.CREDENTIAL__ENROLMENT__TTL_S : config.CREDENTIAL__ENROLMENT__SPLIT_TTL_S
  const row = await db.transaction(async (tx) => {
    if (onlyIfNoPassword && (await getCredential(tx, user_id))?.password_hash) {
      throw new ConnectError('the user has a password already', Code.FailedPrecondition)
    }
    const made = await addEnrolmentToken(tx, {
      token_id: uuidv7(),
      user_id,
      change_id,
      created_at: now.toISOString(),
      expires_at: new Date(now.getTime() + lives_s * 1000).toISOString(),
    })
    if (endsOlder && made) await supersedeEnrolmentTokens(tx, user_id, made)
    return made
  })
  if (row?.user_id !== user_id) throw new ConnectError('this change_id belongs to another user', Code.InvalidArgument)
  const token =
    half === 0
      ? enrolmentTokenOf(enrolment_key, user_id, row.token_id)
      : enrolmentHalfOf(enrolment_key, user_id, row.token_id, half)
  return { token, expires_at: new Date(row.expires_at) }
}
