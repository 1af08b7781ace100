import { randomBytes } from 'node:crypto'
import type { Provider } from '../../shared/auth/providers.ts'
import type { ResolveExternalResponse, User } from '../../shared/contracts/gen/auth_pb.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { AppError, type CodeOf } from '../../shared/errors.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import { type Client, whereOf } from '../browser/client.ts'
import type { SessionDeps, Uses } from '../deps.ts'
import { type Flow, indexOf, type SignedIn } from '../store/flows.ts'
import type { Method } from '../store/store.ts'
import { openFederated } from '../token/code.ts'
import type { TokenPair } from '../token/issue.ts'
import { type Claims, exchangeCode, refusedToken } from './foreign.ts'
import { callbackUrl, findProvider } from './start.ts'

export type Callback = {
  provider_id: string
  /** As received: the provider's `code`, `state`, `iss`, `error`. */
  query: Record<string, string>
  cookie: string | undefined
  client: Client
  request_id: string
}
/** How much older than its request a fresh proof may seem: a longer time would admit an earlier one. */
const PROOF_SKEW_S = 5
/** Where the browser goes next; with tokens if it has signed in. */
export type Finished = { location: string; pair?: TokenPair & { session_id: string } }

/**
 * Completes a sign-in that `startFlow` began. It first removes the state's row, so an answer counts once, whatever its
 * faults. A refusal creates and links no account, and writes one audit row.
 */
export const finishFlow = async (deps: SessionDeps, callback: Callback): Promise<Finished> => {
  const flow = await deps.flows.take(callback.query.state ?? '')
  try {
    const provider = findProvider(deps, callback.provider_id)
    const browser = deps.cookies.readFlow(callback.cookie)
    if (flow?.provider_id !== provider.id || browser === undefined || sha256Hex(browser) !== flow.browser)
      throw refusedToken('sign_in_expired')
    const claims = await claimsOf(deps, provider, flow, callback)
    if (flow.session) return await finishOwn(deps, provider, flow, claims, callback)
    return await finishSignIn(deps, provider, flow, claims, callback)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (flow?.purpose !== 'link' && flow?.purpose !== 'reauth') deps.counts.login_failures.inc({ cause: error.code })
    await note(deps, callback, flow, 'denied', error.code, flow?.session?.user_id)
    if (!flow?.native) throw error
    return { location: toApp(flow, { error: error.code }) }
  }
}

const claimsOf = async (deps: SessionDeps, provider: Provider, flow: Flow, { query }: Callback): Promise<Claims> => {
  const url = new URL(callbackUrl(deps, provider.id))
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const connection = await deps.connections.get(provider)
  const claims = await exchangeCode(connection, provider, url, { ...flow, state: query.state ?? '' })
  const asked = flow.purpose !== 'sign_in' || flow.native !== undefined
  const { auth_time } = claims
  if (asked && !(typeof auth_time === 'number' && auth_time >= flow.started_s - PROOF_SKEW_S))
    throw refused('reauth_failed', `${provider.title} did not ask for your credentials again.`)
  refuseEmail(provider, claims)
  refuseMethods(provider, claims)
  return claims
}

const refused = (code: CodeOf<'policy_denied'>, detail: string) => new AppError('policy_denied', code, detail)

/** An email address counts only if the provider has verified it; it never finds an account. */
const refuseEmail = (provider: Provider, claims: Claims): void => {
  const { allowed_domains, username_claim } = provider
  if (allowed_domains.length === 0 && username_claim !== 'email') return
  const { email, email_verified } = claims
  if (typeof email !== 'string' || email_verified !== true)
    throw refused('email_unverified', `${provider.title} has not verified your e-mail address.`)
  const domain = email.slice(email.lastIndexOf('@') + 1).toLowerCase()
  if (allowed_domains.length > 0 && !allowed_domains.includes(domain))
    throw refused('domain_not_allowed', `Accounts with an address at ${domain.slice(0, 64)} may not sign in here.`)
}

/** If the provider is responsible for the second factor, its claims must confirm it. */
const refuseMethods = ({ title, require_amr }: Provider, { amr }: Claims): void => {
  const methods: unknown[] = Array.isArray(amr) ? amr : []
  if (require_amr.length > 0 && !require_amr.some((method) => methods.includes(method)))
    throw refused('provider_factor_missing', `${title} did not ask for a second factor.`)
}

/** `refuseMethods` has checked the claims. The word of a provider that no one told to require a factor counts for none. */
const vouchesForTwo = ({ require_amr }: Provider): boolean => require_amr.length > 0

const finishSignIn = async (deps: SessionDeps, provider: Provider, flow: Flow, claims: Claims, callback: Callback) => {
  const user = await resolve(deps, provider, claims, callback)
  const sid = typeof claims.sid === 'string' ? [indexOf(provider.id, 'sid', claims.sid)] : []
  const signed_in: SignedIn = {
    user_id: user.id,
    username: user.username,
    provider_id: provider.id,
    groups_elsewhere: namesElsewhere(provider, claims),
    mfa: vouchesForTwo(provider),
    max_s: provider.session_max_s,
    auth_time: provedAt(deps, claims),
    proved_at: Math.floor(claims.iat),
    indexes: [...sid, indexOf(provider.id, 'sub', claims.sub)],
  }
  if (flow.native) {
    const code = randomBytes(32).toString('base64url')
    const { redirect_uri, code_challenge } = flow.native
    await deps.flows.offer(code, { ...signed_in, redirect_uri, code_challenge })
    await note(deps, callback, flow, 'noted', undefined, user.id)
    return { location: toApp(flow, { code }) }
  }
  const pair = await openFederated(deps, signed_in, 'cookie', callback)
  if (!pair) throw refused('account_disabled', 'The account was disabled during the sign-in.')
  return { location: flow.return_to, pair }
}

/** When the person typed their credentials; a provider that omits the time proves no fresh sign-in. */
const provedAt = ({ clock }: Uses<'clock'>, { auth_time }: Claims): number =>
  typeof auth_time === 'number' ? Math.floor(Math.min(auth_time, clock.now().getTime() / 1000)) : 0

const toApp = ({ native }: Flow, answer: Record<string, string>): string => {
  const url = new URL(native?.redirect_uri ?? '')
  for (const [name, value] of Object.entries({ ...answer, state: native?.state ?? '' }))
    url.searchParams.set(name, value)
  return url.href
}

const REFUSED: Record<string, string> = {
  no_account: 'You have no account here yet.',
  account_disabled: 'The account is disabled.',
  username_missing: 'The provider gives no username for you.',
  username_invalid: 'No account here can have the name that the provider gives you.',
  username_taken: 'Your username is taken by another account here.',
  subject_changed: 'The provider names a different person than before.',
  identity_linked: 'This identity belongs to another account.',
}

/** The user in the response; throws its refusal. */
const userOf = ({ user, refused: code }: Pick<ResolveExternalResponse, 'user' | 'refused'>): User => {
  if (user) return user
  const detail = REFUSED[code] ?? 'The sign-in is refused.'
  throw code === 'username_taken' || code === 'identity_linked'
    ? new AppError('version_conflict', code, detail)
    : refused(code as CodeOf<'policy_denied'>, detail)
}

/** For a long list of groups Entra sends a reference instead: that does not mean "no groups". */
const namesElsewhere = ({ groups }: Provider, { _claim_names }: Claims): boolean =>
  (_claim_names as Record<string, unknown> | undefined)?.[groups?.claim ?? ''] !== undefined

/** The account of these claims; with `make`, a new one if the provider creates accounts. */
const resolve = async (
  deps: SessionDeps,
  provider: Provider,
  claims: Claims,
  { request_id }: Callback,
  make = true,
) => {
  const named = claims[provider.groups?.claim ?? '']
  const username = claims[provider.username_claim]
  const required = Object.entries(provider.jit.require_claims ?? {})
  const creates = make && required.every(([name, value]) => claims[name] === value)
  const { user, refused } = await deps.identity
    .resolveExternal(
      {
        providerId: provider.id,
        subject: claims.sub,
        username: creates && typeof username === 'string' ? username : '',
        groups: [named].flat().filter((name) => typeof name === 'string'),
        groupsKnown: !namesElsewhere(provider, claims),
        externalId: make ? String(claims[provider.scim?.match ?? ''] ?? '') : '',
      },
      withRequestId(request_id),
    )
    .catch(throwFromRpc('identity'))
  return userOf({ ...(user && { user }), refused: creates || refused !== 'username_missing' ? refused : 'no_account' })
}

/** Confirms or links in the session in which the flow began. */
const finishOwn = async (deps: SessionDeps, provider: Provider, flow: Flow, claims: Claims, callback: Callback) => {
  const { user_id, session_id } = flow.session ?? { user_id: '', session_id: '' }
  if (!(await deps.store.get(user_id, session_id))) throw refusedToken('sign_in_expired')
  if (flow.purpose === 'link') {
    const request = { userId: user_id, providerId: provider.id, subject: claims.sub }
    userOf(
      await deps.identity.linkExternal(request, withRequestId(callback.request_id)).catch(throwFromRpc('identity')),
    )
  } else {
    const another = refused('subject_changed', 'The provider signed in another person.')
    const user = await resolve(deps, provider, claims, callback, false).catch((error: AppError) => {
      throw error.code === 'no_account' ? another : error
    })
    if (user.id !== user_id) throw another
    const session = { user_id, session_id }
    const by: Method[] = vouchesForTwo(provider) ? ['fed', 'mfa'] : []
    const proved_at = Math.max(flow.started_s, provedAt(deps, claims))
    if (!(await deps.store.touchAuthTime(session, proved_at, by, callback.client)))
      throw refusedToken('sign_in_expired')
    await deps.store.endOlder({ ...session, before: flow.started_s })
  }
  await note(deps, callback, flow, 'done', undefined, user_id)
  return { location: flow.return_to }
}

const ACTIONS = { sign_in: 'login', reauth: 'reauth', link: 'link_identity' } as const

const note = (
  deps: SessionDeps,
  callback: Callback,
  flow: Flow | undefined,
  outcome: 'done' | 'noted' | 'denied',
  reason: string | undefined,
  user_id: string | undefined,
) =>
  deps.audit({
    action: ACTIONS[flow?.purpose ?? 'sign_in'],
    outcome,
    ...(reason && { reason }),
    actor: user_id && outcome !== 'denied' ? `user:${user_id}` : 'system',
    user_id,
    session_id: flow?.session?.session_id,
    ...whereOf(callback),
    details: { provider: callback.provider_id },
  })
