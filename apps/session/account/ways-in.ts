import type { Caller } from '../../shared/auth/caller.ts'
import { AppError } from '../../shared/errors.ts'
import { withRequestId } from '../../shared/rpc/client.ts'
import type { Uses } from '../deps.ts'
import { takesPassword } from '../token/password.ts'
import { orCredentialProblem } from '../token/totp.ts'

/** Whether this person can sign in by password: credential alone knows who has one. */
export const hasPassword = async (
  deps: Uses<'config' | 'credential'>,
  { user_id: userId, username }: Pick<Caller, 'user_id' | 'username'>,
  request_id: string,
) =>
  takesPassword(deps, username) &&
  (await orCredentialProblem(deps.credential.getTotp({ userId }, withRequestId(request_id)))).hasPassword

export const lastWayIn = () =>
  new AppError('version_conflict', 'last_way_in', "This is the account's only way in.", {
    hint: 'Add a passkey or link another provider first.',
  })
