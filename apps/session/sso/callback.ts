import { randomBytes } from 'node:crypto'
import type { Provider } from '../../shared/auth/providers.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { AppError } from '../../shared/errors.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import { type Client, whereOf } from '../browser/client.ts'
import type { SessionDeps, Uses } from '../deps.ts'
import { type Flow, indexOf, type SignedIn } from '../store/flows.ts'
import type { Method } from '../store/store.ts'
import { openFederated } from '../token/code.ts'
import type { Login } from '../token/login.ts'
import {
  externalIdOf,
  externalOf,
  namesElsewhere,
  readClaims,
  refuseClaims,
  refused,
  userOf,
  vouchesForTwo,
} from './claims.ts'
import { type Claims, refusedToken } from './foreign.ts'
import { findProvider } from './start.ts'
import { tryClaims } from './trial.ts'

export type Callback = {
  provider_id: string
  /** As received: the provider's `code`, `state`, `iss`, `error`. */
  query: Record<string, string>
  cookie: string | undefined
  device_token: string | undefined
  client: Client
  request_id: string
}
const PROVIDERS_PAGE = '/admin/providers'
/** Where the browser goes next; with tokens if it has signed in. */
export type Finished = { location: string; login?: Login }

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
    if (flow.purpose === 'trial') {
      const trial = await tryClaims(deps, provider, flow, callback)
      return { location: flow.native ? toApp(flow, { code: trial }) : `${PROVIDERS_PAGE}?trial=${trial}` }
    }
    const claims = await readClaims(deps, provider, flow, callback.query)
    refuseClaims(provider, claims)
    if (flow.session) return await finishOwn(deps, provider, flow, claims, callback)
    return await finishSignIn(deps, provider, flow, claims, callback)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (!flow || flow.purpose === 'sign_in') deps.counts.login_failures.inc({ cause: error.code })
    await note(deps, callback, flow, 'denied', error.code, flow?.session?.user_id)
    if (!flow?.native) throw error
    return { location: toApp(flow, { error: error.code }) }
  }
}

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
  const login = await openFederated(deps, signed_in, 'cookie', callback)
  if (!login) throw refused('account_disabled', 'The account was disabled during the sign-in.')
  return { location: flow.return_to, login }
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

/** The account of these claims; with `make`, a new one if the provider creates accounts. */
const resolve = async (
  deps: SessionDeps,
  provider: Provider,
  claims: Claims,
  { request_id }: Callback,
  make = true,
) => {
  const { external, creates } = externalOf(provider, claims, make)
  const answer = deps.identity.resolveExternal(external, withRequestId(request_id))
  return userOf(await answer.catch(throwFromRpc('identity')), creates)
}

/** Confirms or links in the session in which the flow began. */
const finishOwn = async (deps: SessionDeps, provider: Provider, flow: Flow, claims: Claims, callback: Callback) => {
  const { user_id, session_id } = flow.session ?? { user_id: '', session_id: '' }
  if (!(await deps.store.get(user_id, session_id))) throw refusedToken('sign_in_expired')
  if (flow.purpose === 'link') {
    const theirs = { subject: claims.sub, externalId: externalIdOf(provider, claims) }
    const request = { userId: user_id, providerId: provider.id, ...theirs }
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

const ACTIONS = { sign_in: 'login', reauth: 'reauth', link: 'link_identity', trial: 'provider_trial' } as const

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
