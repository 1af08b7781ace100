import type { FastifyReply } from 'fastify'
import { TOKEN_KINDS } from '../../shared/jwt/claims.ts'
import type { SessionDeps } from '../deps.ts'
import type { Mode } from './grants.ts'
import type { TokenPair } from './issue.ts'

/** Lifetime of an access token in seconds. */
export const EXPIRES_IN = TOKEN_KINDS.access.lifetime_s

/** The reply in the session's mode: the refresh token in the body, or in the cookie along with a CSRF token. */
export const tokensOf = (
  deps: SessionDeps,
  reply: FastifyReply,
  pair: TokenPair & { session_id: string },
  mode: Mode,
) => {
  const bearer = { access_token: pair.access_token, token_type: 'Bearer' as const, expires_in: EXPIRES_IN }
  if (mode === 'json') return { ...bearer, refresh_token: pair.refresh_token }
  const csrf_token = deps.csrf.make(pair.session_id)
  reply.headers({ 'x-csrf-token': csrf_token, vary: 'Origin' })
  reply.header('set-cookie', deps.cookies.refresh(pair.refresh_token))
  return { ...bearer, csrf_token }
}

/** Sends the reply of a login or refresh; a device token goes where the mode stores it. */
export const sendTokens = (
  deps: SessionDeps,
  reply: FastifyReply,
  pair: TokenPair & { session_id: string },
  mode: Mode,
  device?: string,
) => {
  const body = tokensOf(deps, reply, pair, mode)
  if (device === undefined) return body
  if (mode === 'json') return { ...body, device_token: device }
  reply.header('set-cookie', deps.cookies.device(device))
  return body
}
