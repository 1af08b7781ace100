import { AppError } from '../../shared/errors.ts'
import { withRequestId } from '../../shared/rpc/client.ts'
import type { Uses } from '../deps.ts'
import { orCredentialProblem } from '../token/totp.ts'

/** Whether this person can sign in by password: credential alone knows. */
export const hasPassword = async ({ credential }: Uses<'credential'>, userId: string, request_id: string) =>
  (await orCredentialProblem(credential.getTotp({ userId }, withRequestId(request_id)))).hasPassword

export const lastWayIn = () =>
  new AppError('version_conflict', 'last_way_in', 'No other way in is left.', {
    hint: 'Add a passkey or link another provider first.',
  })
