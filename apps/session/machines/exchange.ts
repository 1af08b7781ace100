import { timestampDate } from '@bufbuild/protobuf/wkt'
import { foldUsername } from '../../shared/auth/username.ts'
import { UserStatus } from '../../shared/contracts/gen/auth_pb.ts'
import { AppError } from '../../shared/errors.ts'
import { TOKEN_KINDS } from '../../shared/jwt/claims.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import { addressKey } from '../../shared/web/addresses.ts'
import { rateLimited } from '../../shared/web/rates.ts'
import { type Client, whereOf } from '../browser/client.ts'
import type { Uses } from '../deps.ts'

/** A machine's request: one of the three credentials, and the share of its rights that it asks for. */
export type Exchange = {
  proof: { apiKey: string } | { clientAssertion: string } | { subjectToken: string; machine: string }
  /** The machine that the request names besides its credential. */
  client_id: string | undefined
  scope: readonly string[] | undefined
  client: Client
  request_id: string
  /** How the machine proves itself; the answer to a wrong credential names it. */
  scheme: 'Basic' | 'Bearer'
}
type Deps = Uses<'identity' | 'issuer' | 'store' | 'audit' | 'clock' | 'config' | 'nameOf'>

/** How far our clock may be from that of Redis. */
const SKEW_MS = 5000
const LIFETIME_S = TOKEN_KINDS.access.lifetime_s

/**
 * Exchanges a machine's credential for a short-lived access token. Its session carries the credential's id, so ending
 * the session also ends the credential's tokens. A refusal does not state its cause; the audit log does.
 */
export const exchange = async (deps: Deps, { proof, client_id, scope, client, request_id, scheme }: Exchange) => {
  const trace = withRequestId(request_id)
  const asked_ms = deps.clock.now().getTime() - SKEW_MS
  const proved = await deps.identity
    .authenticateMachine({ ...proof, address: client.ip_address ?? '' }, trace)
    .catch(throwFromRpc('identity'))
  const ci = 'subjectToken' in proof
  const details = {
    credential_id: proved.credentialId,
    ...(proved.claim && { claim: proved.claim }),
    ...('machine' in proof && { machine: proof.machine }),
  }
  // A refused credential proves no machine: the refusal concerns the one that it names, which did not act.
  const named = proved.machineId || undefined
  const refuse = (cause: string) =>
    refused(deps, { client, request_id, cause, ci, scheme, details, user_id: proved.user?.id, named })
  const { user, credentialId: session_id } = proved
  if (proved.cause === 'network') throw await elsewhere(deps, { client, request_id, named }, details)
  if (!user) throw await refuse(proved.cause)
  if (client_id !== undefined && foldUsername(client_id) !== foldUsername(user.username))
    throw await refuse('client_id')
  const permissions = [...new Set(scope ?? proved.permissions)]
  if (permissions.length === 0 || permissions.some((wanted) => !proved.permissions.includes(wanted)))
    throw await beyondScope(deps, { client, request_id, user_id: user.id }, details)
  const { ip_address, user_agent } = client
  const opened = await deps.store.openMachine({
    session_id,
    user_id: user.id,
    username: user.username,
    asked_ms,
    ip_address,
    user_agent,
  })
  if (!opened) throw await refuse('revoked')
  // The account may have been disabled meanwhile; a later disable finds the session.
  const now = await deps.identity.getUser({ id: user.id }, trace).catch(throwFromRpc('identity'))
  if (now.user?.status !== UserStatus.ACTIVE) throw await refuse('machine_disabled')
  const issued = Math.floor(deps.clock.now().getTime() / 1000)
  const access_token = await deps.issuer.machine({ ...proved, permissions }, issued, request_id)
  const ends = proved.expiresAt ? Math.floor(timestampDate(proved.expiresAt).getTime() / 1000) : issued
  // A token has whole seconds, so the last part of one gives none; nor does a clock, of token or ours, that is ahead.
  if (access_token === undefined || ends <= issued) throw await refuse('expired')
  await note(
    deps,
    { client, request_id, user_id: user.id },
    { outcome: 'done', session_id, details: { method: proved.method, credential_id: session_id } },
  )
  return {
    access_token,
    token_type: 'Bearer' as const,
    expires_in: Math.min(LIFETIME_S, ends - issued),
    scope: permissions.join(' '),
    ...(ci && { issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' as const }),
  }
}

type About = { client: Client; request_id: string; user_id?: string | undefined; named?: string | undefined }

const note = (
  deps: Deps,
  about: About,
  event: { outcome: 'done' | 'denied'; reason?: string; session_id?: string; details?: Record<string, unknown> },
) => {
  const { user_id, named } = about
  const actor = user_id ? `user:${user_id}` : 'unknown'
  return deps.audit({ action: 'machine_token', actor, user_id: user_id ?? named, ...whereOf(about), ...event })
}

type Refusal = Pick<Exchange, 'scheme'> & { cause: string; ci: boolean; details: Record<string, string> }
/**
 * One answer for every cause. Addresses with too many refusals are told to wait, and leave no further rows in the audit
 * log: a flood of them must not push out others that still wait in Redis.
 */
const refused = async (deps: Deps, { cause, ci, scheme, details, ...about }: About & Refusal): Promise<AppError> => {
  const address = deps.nameOf(`address:${addressKey(about.client.ip_address ?? '')}`)
  const wait = await deps.store.limit([{ key: `machine_failed:${address}`, rate: deps.config.limits.machine_failures }])
  if (wait !== undefined) return rateLimited(wait)
  await note(deps, about, { outcome: 'denied', reason: cause, details })
  const code = ci ? 'invalid_grant' : 'invalid_client'
  const detail = 'The credential of the machine is not valid.'
  return new AppError('invalid_token', code, detail, {
    headers: { 'www-authenticate': scheme === 'Basic' ? 'Basic realm="signalbox"' : scheme },
    hint: 'Its owners find the cause by signalbox machine refusals NAME, administrators and auditors on its page.',
    extra: { error: code, error_description: detail },
  })
}

/** The credential is valid, so its holder learns the fault: the network. */
const elsewhere = async (deps: Deps, about: About, details: Record<string, string>): Promise<AppError> => {
  await note(deps, about, { outcome: 'denied', reason: 'network', details })
  const error_description = 'The credential may not be used from this address.'
  return new AppError('policy_denied', 'network_refused', error_description, {
    extra: { error: 'unauthorized_client', error_description },
  })
}

const beyondScope = async (deps: Deps, about: About, details: Record<string, string>): Promise<AppError> => {
  await note(deps, about, { outcome: 'denied', reason: 'scope', details })
  const detail = 'The credential does not permit this scope.'
  return new AppError('validation_error', 'invalid_scope', detail, {
    extra: { error: 'invalid_scope', error_description: detail },
  })
}
