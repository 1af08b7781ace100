import { Code, ConnectError } from '@connectrpc/connect'
import { addEnrolmentToken, getCredential } from '../../db/credential/queries.ts'
import type { CreateEnrolmentTokenRequest } from '../shared/contracts/gen/auth_pb.ts'
import { isUuid, uuidv7 } from '../shared/ids.ts'
import type { CredentialDeps } from './deps.ts'
import { enrolmentTokenOf } from './enrolment.ts'

/** Makes a one-time token for a first or a forgotten password; the same change_id gives the same token again. */
export const createEnrolmentToken = async (
  { db, clock, enrolment_key, config }: CredentialDeps,
  { userId: user_id, changeId: change_id, onlyIfNoPassword }: CreateEnrolmentTokenRequest,
): Promise<{ token: string; expires_at: Date }> => {
  if (!isUuid(user_id) || change_id === '')
    throw new ConnectError('user_id and change_id must be given', Code.InvalidArgument)
  const now = clock.now()
  const row = await db.transaction(async (tx) => {
    if (onlyIfNoPassword && (await getCredential(tx, user_id))) {
      throw new ConnectError('the user has a password already', Code.FailedPrecondition)
    }
    return addEnrolmentToken(tx, {
      token_id: uuidv7(),
      user_id,
      change_id,
      created_at: now.toISOString(),
      expires_at: new Date(now.getTime() + config.CREDENTIAL__ENROLMENT__TTL_S * 1000).toISOString(),
    })
  })
  if (row?.user_id !== user_id) throw new ConnectError('this change_id belongs to another user', Code.InvalidArgument)
  return { token: enrolmentTokenOf(enrolment_key, user_id, row.token_id), expires_at: new Date(row.expires_at) }
}
