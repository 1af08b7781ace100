import { AppError } from '../../shared/errors.ts'
import { withRequestId } from '../../shared/rpc/client.ts'
import type { Uses } from '../deps.ts'
import { orCredentialProblem } from '../token/totp.ts'

/** Whether this person can sign in by password; only credential knows. */
export const hasPassword = async ({ credential }: Uses<'credential'>, userId: string, request_id: string) =>
  (await orCredentialProblem(credential.getTotp({ userId }, withRequestId(request_id)))).hasPassword

export const lastWayIn = () =>
  new AppError('version_conflict', 'last_way_in', "This is the account's only way in.", {
    hint: 'Add a passkey or link another provider first.',
  })
