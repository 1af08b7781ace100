import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { FastifyRequest } from 'fastify'
import { factorRequired, REAUTH_HINT } from '../../shared/auth/caller.ts'
import type { Assertion } from '../../shared/contracts/session/passkeys.ts'
import { AppError } from '../../shared/errors.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import type { Client } from '../browser/client.ts'
import type { SessionDeps } from '../deps.ts'
import type { HalfSignedIn } from '../store/flows.ts'
import type { Method } from '../store/store.ts'
import { isSingleFactor } from './issue.ts'
import { factorsOf, finishLogin, type Login } from './login.ts'
import { provePasskey } from './passkeys.ts'
import { modeMismatch } from './refresh.ts'
import { BY_CODE, proveCode } from './totp.ts'

/** One of the two. */
export type SecondFactor = { assertion: Assertion } | { totp: string }
type Request = { client: Client; request_id: string; mode: 'json' | 'cookie' }

/** How many wrong codes are allowed before the password is required again. */
const MOST_TRIES = 5

/** Completes a sign-in after a correct password. */
export const completeLogin = async (
  deps: SessionDeps,
  factor_token: string,
  factor: SecondFactor,
  request: Request,
): Promise<Login> => {
  const half = await deps.flows.complete(factor_token)
  if (!half) throw startAgain()
  try {
    if (half.user.mode !== request.mode) throw modeMismatch(half.user.mode)
    const { amr, details } = await prove(deps, half, factor, request)
    const done = await finishLogin(deps, half, request, ['pwd', ...amr], details)
    if (!done) throw startAgain()
    return done
  } catch (error) {
    const left = leftAfter(half, error)
    if (left) await deps.flows.halve(factor_token, left)
    throw error
  }
}

const startAgain = () =>
  new AppError('version_conflict', 'challenge_expired', 'The sign-in has expired or was used.', {
    hint: 'Start again with your password.',
  })

/**
 * The sign-in as it is after this error; `undefined` if the password must be proved again, as after a refused passkey. A
 * mistyped code may be retried a few times. An outage, a limit or the wrong mode has proved or refuted no factor.
 */
const leftAfter = (half: HalfSignedIn, error: unknown): HalfSignedIn | undefined => {
  if (!(error instanceof AppError)) return undefined
  if (error.code === 'totp_invalid') return half.tries + 1 < MOST_TRIES ? { ...half, tries: half.tries + 1 } : undefined
  const open = error.category === 'unavailable' || error.category === 'rate_limited'
  return open || error.code === 'session_mode_mismatch' ? half : undefined
}

const prove = async (
  deps: SessionDeps,
  { user: { user_id } }: HalfSignedIn,
  factor: SecondFactor,
  request: Request,
): Promise<{ amr: Method[]; details: Record<string, string> }> => {
  if ('assertion' in factor) {
    const { passkey, amr } = await provePasskey(deps, factor.assertion, request, 'login', user_id)
    return { amr, details: { passkey: passkey.id } }
  }
  await proveCode(deps, factor.totp, request, 'login', user_id)
  return { amr: BY_CODE, details: { factor: 'totp' } }
}

/**
 * Refuses to change a way in for a session that proved one factor alone, if a sign-in by password now also takes a
 * second one: a thief of the password may still have a session from before. The first factor needs no other. Factors
 * that were proved before the account was reset count no more, also until the relay has ended the session.
 */
export const refuseHalfProved = async (deps: SessionDeps, { caller, id }: Pick<FastifyRequest, 'caller' | 'id'>) => {
  const { user_id, session_id } = caller
  const proved = await deps.store.get(user_id, session_id)
  if (proved && !isSingleFactor(proved.amr)) {
    const asked = deps.identity.getPrincipal({ userId: user_id }, withRequestId(String(id)))
    const { principal } = await asked.catch(throwFromRpc('identity'))
    const reset_at = principal?.reset?.at
    // An auth_time is in whole seconds.
    if (!reset_at || Math.floor(timestampDate(reset_at).getTime() / 1000) <= caller.auth_time) return
    throw new AppError('policy_denied', 'reauth_required', 'The account was reset after this sign-in.', {
      hint: REAUTH_HINT,
    })
  }
  const request = { userId: user_id }
  const { totp } = await deps.credential.getTotp(request, withRequestId(String(id))).catch(throwFromRpc('credential'))
  if ((await factorsOf(deps, user_id, totp !== undefined, String(id))).length > 0) throw factorRequired()
}
