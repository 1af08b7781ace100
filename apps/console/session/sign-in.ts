import { codeOf, retryAfter, type SecondStep, secondStepOf } from './answer.ts'
import { post } from './cookie.ts'
import { accessToken, currentUser, renew, SIGNED_OUT, take } from './token.ts'

/** How a person proves who they are: to begin a session, or again during it. */
export type SignIn =
  | { ok: true }
  | { ok: false; status: number | null; code?: string; retry_after_ms: number; step?: SecondStep }

export const signIn = async (username: string, password: string): Promise<SignIn> => {
  const answer = await post('/v1/token?response_mode=cookie', { grant_type: 'password', username, password })
  const step = answer?.status === 403 ? await secondStepOf(answer.clone()) : undefined
  if (step === undefined) return entered(answer)
  // If an app is available, the person chooses; a passkey alone is requested at once.
  return step.factors.includes('totp')
    ? { ok: false, status: 403, retry_after_ms: 0, step }
    : signInByPasskey(step.factor_token)
}

/** Completes a sign-in with a code of the authenticator app. */
export const signInByCode = async ({ factor_token }: SecondStep, totp: string): Promise<SignIn> =>
  entered(await post('/v1/token?response_mode=cookie', { grant_type: 'second_factor', factor_token, totp }))

/** Signs in with a passkey: alone, or after the password whose answer contained this factor token. */
export const signInByPasskey = async (factor_token?: string): Promise<SignIn> => {
  const assertion = await provedKey()
  if (assertion === null) return { ok: false, status: 403, code: 'assertion_invalid', retry_after_ms: 0 }
  const grant = factor_token === undefined ? { grant_type: 'passkey' } : { grant_type: 'second_factor', factor_token }
  return entered(await post('/v1/token?response_mode=cookie', { ...grant, assertion }))
}

/** The passkey code loads on first use. */
const provedKey = () => import('./passkeys.ts').then(({ proveKey }) => proveKey()).catch(() => null)

const entered = async (answer: Response | null): Promise<SignIn> => {
  if (answer === null) return { ok: false, status: null, retry_after_ms: 0 }
  if (!answer.ok) {
    const code = await codeOf(answer)
    // No wait opens a name that is closed.
    const closed = code === 'login_locked' && !answer.headers.has('retry-after')
    return { ok: false, status: answer.status, retry_after_ms: closed ? 0 : retryAfter(answer), ...(code && { code }) }
  }
  localStorage.removeItem(SIGNED_OUT)
  const before = currentUser()?.user_id
  take(await answer.json())
  // A different person has signed in on this page: clear all data of the previous one.
  if (before !== undefined && before !== currentUser()?.user_id) location.reload()
  return { ok: true }
}

/** Proves one of the person's passkeys again. Returns whether it was accepted. */
export const confirmPasskey = async (): Promise<boolean> => {
  const assertion = await provedKey()
  const answer = assertion && (await postHeld('/v1/token/reauth', { assertion }))
  if (answer?.ok) take(await answer.json())
  return answer?.ok === true
}

/** Checks a password or a code and takes a token with a fresh authentication time. Returns the status, or null. */
export const confirmBy = async (proof: { password: string } | { totp: string }): Promise<number | null> => {
  const answer = await postHeld('/v1/token/reauth', proof)
  if (answer?.ok) take(await answer.json())
  return answer?.status ?? null
}

/** Posts with the session's token; one that the server refuses is renewed once. */
export const postHeld = async (path: string, body: object): Promise<Response | null> => {
  const token = accessToken()
  const answer = await post(path, body, { token })
  return answer?.status === 401 && (await renew(token)) === 'ok' ? post(path, body, { token: accessToken() }) : answer
}
