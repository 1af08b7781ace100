import type { FastifyRequest } from 'fastify'
import { type Caller, factorRequired } from '../../shared/auth/caller.ts'
import { AppError } from '../../shared/errors.ts'
import { withRequestId } from '../../shared/rpc/client.ts'
import type { SessionDeps, Uses } from '../deps.ts'
import { factorsOf } from '../token/login.ts'
import { takesPassword } from '../token/password.ts'
import { orCredentialProblem } from '../token/totp.ts'

/**
 * Refuses to change a way in for a session that proved the password alone, if a sign-in by password now also takes a
 * second factor: a thief of the password may still have a session from before. The first factor needs no other.
 */
export const refuseHalfProved = async (deps: SessionDeps, { caller, id }: Pick<FastifyRequest, 'caller' | 'id'>) => {
  const { user_id, session_id } = caller
  const proved = await deps.store.get(user_id, session_id)
  if (proved?.amr.some((method) => method !== 'pwd')) return
  const request = { userId: user_id }
  const { totp } = await orCredentialProblem(deps.credential.getTotp(request, withRequestId(String(id))))
  if ((await factorsOf(deps, user_id, totp !== undefined, String(id))).length > 0) throw factorRequired()
}

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
