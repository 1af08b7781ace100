import { createHash } from 'node:crypto'
import { AppError } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { type Client, whereOf } from '../browser/client.ts'
import type { SessionDeps } from '../deps.ts'
import { claimDevice, deviceCodeRefused, pollRefused } from '../device/grant.ts'
import { endSession } from '../sessions/end.ts'
import type { SessionKey, SignedIn } from '../store/flows.ts'
import type { Method } from '../store/store.ts'
import { byDevice, type Login, noteLogin, openSession } from './login.ts'

type Request = { client: Client; request_id: string }
/** The token by which we know the device, if it was sent. */
type FromDevice = Request & { device_token: string | undefined }
export type CodeGrant = { code: string; code_verifier: string; redirect_uri: string }

/** Opens the session of a person signed in by a provider; `undefined` if the account is no longer active. */
export const openFederated = async (
  deps: SessionDeps,
  { provider_id, groups_elsewhere, mfa, ...signed_in }: SignedIn,
  mode: 'json' | 'cookie',
  request: FromDevice,
): Promise<Login | undefined> => {
  // An app may hold the code of a provider that the file has lost since.
  if (!deps.providers.get(provider_id)) return undefined
  const metadata = JSON.stringify({ provider: provider_id })
  // A browser renews by its cookie before it asks for anything: an access token would be thrown away.
  const amr: Method[] = mfa ? ['fed', 'mfa'] : ['fed']
  const owner = { ...signed_in, mode, metadata, amr, provider_id, refresh_only: mode === 'cookie' }
  const opened = await openSession(deps, owner, request.client, request.request_id)
  if (!opened) return undefined
  const who = byDevice(deps, signed_in.user_id, signed_in.username, request.device_token)
  return noteLogin(deps, opened, who, request, { provider: provider_id, ...(groups_elsewhere && { groups_elsewhere }) })
}

/**
 * Exchanges the code that the browser brought to an app for tokens (RFC 6749 4.1.3, RFC 7636). If a code arrives twice,
 * even at the same moment, one of the two senders stole it, so the session that it created ends.
 */
export const redeemCode = async (deps: SessionDeps, grant: CodeGrant, request: FromDevice): Promise<Login> => {
  const mark = uuidv7()
  const found = await deps.flows.redeem(grant.code, mark)
  if (found && 'session_id' in found) await endStolen(deps, found, request)
  if (!found || !('redirect_uri' in found)) throw codeRefused()
  const { redirect_uri, code_challenge, ...signed_in } = found
  const proof = createHash('sha256').update(grant.code_verifier).digest('base64url')
  if (proof !== code_challenge || grant.redirect_uri !== redirect_uri) {
    const { user_id, provider_id: provider } = found
    const event = { action: 'login', outcome: 'denied', reason: 'invalid_grant', actor: 'system', user_id } as const
    await deps.audit({ ...event, ...whereOf(request), details: { provider } })
    throw codeRefused()
  }
  const opened = await openFederated(deps, signed_in, 'json', request)
  if (!opened) throw codeRefused()
  const session = { user_id: signed_in.user_id, session_id: opened.session_id }
  if (await deps.flows.spend(grant.code, mark, session)) return opened
  await endStolen(deps, session, request)
  throw codeRefused()
}

/** Ends the session of a code that was sent twice. */
const endStolen = (deps: SessionDeps, session: SessionKey, { request_id }: Request) =>
  endSession(deps, session, 'suspicious', { actor_type: 'system', request_id })

/**
 * Signs in a device that its person has approved (RFC 8628). Its session inherits from the approving one: the provider
 * and its logout, the person's authentication, and the end. If that session has ended, or has ended the others since, the
 * approval is void. A device code that was sent twice counts as stolen, like any other code.
 */
export const redeemDevice = async (
  deps: SessionDeps,
  { device_code, device_token }: { device_code: string; device_token: string | undefined },
  request: Request,
): Promise<Login> => {
  const opening = uuidv7()
  const claimed = await claimDevice(deps, device_code, opening)
  if (claimed.outcome === 'gone') {
    if (claimed.opened) await endStolen(deps, claimed.opened, request)
    throw deviceCodeRefused()
  }
  const opened = await openApproved(deps, { ...claimed, opening }, device_token, request).catch(
    async (error: unknown) => {
      await deps.deviceGrants.release(device_code).catch(() => {})
      throw error
    },
  )
  const alone = await deps.deviceGrants.spend(device_code)
  if (alone && opened) return opened
  if (opened) await endStolen(deps, opened, request)
  // Another poll may have ended the session before it had tokens.
  throw alone ? pollRefused('access_denied') : deviceCodeRefused()
}

const openApproved = async (
  deps: SessionDeps,
  {
    user_id,
    session_id,
    host,
    decided_at,
    opening,
  }: SessionKey & { host: string; decided_at: number; opening: string },
  device_token: string | undefined,
  request: Request,
): Promise<Login | undefined> => {
  const approver = async () => {
    const found = await deps.store.get(user_id, session_id)
    return found?.state === 'active' && (found.ended_others_at ?? -1) < decided_at ? found : undefined
  }
  const approving = await approver()
  const rest_s = Math.floor(((approving?.expires_at ?? 0) / 1000 - deps.clock.now().getTime()) / 1000)
  if (!approving || rest_s < 1) return undefined
  const { username, auth_time, amr, indexes, proved_at, password_version } = approving
  const metadata = { ...approving.metadata, host }
  const owner = {
    ...{ user_id, username, mode: 'json' as const, metadata: JSON.stringify(metadata), max_s: rest_s },
    ...{ auth_time, amr, session_id: opening, keep_session_id: session_id },
    ...(indexes && { indexes, proved_at: proved_at ?? 0 }),
    ...(password_version !== null && { password_version }),
  }
  const opened = await openSession(deps, owner, request.client, request.request_id)
  if (!opened) return undefined
  // What ended sessions before this one was in the store has missed it.
  if (!(await approver())) {
    await endSession(deps, { user_id, session_id: opened.session_id }, 'logout', {
      actor_type: 'system',
      request_id: request.request_id,
    })
    return undefined
  }
  const who = byDevice(deps, user_id, username, device_token)
  return noteLogin(deps, opened, who, request, { ...metadata, grant: 'device_code' })
}

const codeRefused = () =>
  new AppError('invalid_token', 'invalid_grant', 'The code is invalid, used or expired.', {
    headers: { 'www-authenticate': 'Bearer' },
  })
