import { createHash } from 'node:crypto'
import { AppError } from '../../shared/errors.ts'
import type { Client } from '../browser/client.ts'
import type { SessionDeps } from '../deps.ts'
import { endSession } from '../sessions/end.ts'
import type { SignedIn } from '../store/flows.ts'
import type { TokenPair } from './issue.ts'
import { openSession } from './login.ts'

type Request = { client: Client; request_id: string }
export type CodeGrant = { code: string; code_verifier: string; redirect_uri: string }
type Opened = TokenPair & { session_id: string }

/** Opens the session of a person whom a provider has signed in; undefined if the account stopped being active. */
export const openFederated = async (
  deps: SessionDeps,
  { provider_id, ...signed_in }: SignedIn,
  mode: 'json' | 'cookie',
  { client, request_id }: Request,
): Promise<Opened | undefined> => {
  const metadata = JSON.stringify({ provider: provider_id })
  const owner = { ...signed_in, mode, metadata, amr: ['fed' as const] }
  const opened = await openSession(deps, owner, client, request_id)
  if (!opened) return undefined
  deps.counts.logins.inc()
  await deps.audit({
    action: 'login',
    outcome: 'done',
    actor: `user:${signed_in.user_id}`,
    user_id: signed_in.user_id,
    session_id: opened.session_id,
    request_id,
    ip_address: client.ip_address,
    user_agent: client.user_agent,
    details: { provider: provider_id },
  })
  return opened
}

/**
 * Gives an app its tokens for the code that the browser brought it (RFC 6749 4.1.3, RFC 7636). A code that comes twice
 * was stolen by one of the two: the session that it made ends.
 */
export const redeemCode = async (deps: SessionDeps, grant: CodeGrant, request: Request): Promise<Opened> => {
  const offer = await deps.flows.redeem(grant.code)
  if (!offer) {
    const spent = await deps.flows.spent(grant.code)
    if (spent) await endSession(deps, spent, 'suspicious', { actor_type: 'system', request_id: request.request_id })
    throw codeRefused()
  }
  const { redirect_uri, code_challenge, ...signed_in } = offer
  const proof = createHash('sha256').update(grant.code_verifier).digest('base64url')
  if (proof !== code_challenge || grant.redirect_uri !== redirect_uri) throw codeRefused()
  const opened = await openFederated(deps, signed_in, 'json', request)
  if (!opened) throw codeRefused()
  await deps.flows.spend(grant.code, { user_id: signed_in.user_id, session_id: opened.session_id })
  return opened
}

const codeRefused = () =>
  new AppError('invalid_token', 'invalid_grant', 'The code is not valid, was used, or has ended.', {
    headers: { 'www-authenticate': 'Bearer' },
  })
