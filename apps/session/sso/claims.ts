import type { Provider } from '../../shared/auth/providers.ts'
import type { ResolveExternalResponse, User } from '../../shared/contracts/gen/auth_pb.ts'
import { AppError, type CodeOf } from '../../shared/errors.ts'
import type { Uses } from '../deps.ts'
import type { Flow } from '../store/flows.ts'
import { type Claims, exchangeCode } from './foreign.ts'
import { callbackUrl } from './start.ts'

/** How much older than its request a fresh proof may seem: a longer time would admit an earlier one. */
const PROOF_SKEW_S = 5

/** The verified claims of the provider's answer; to confirm, to link, or for an app they must be of a fresh sign-in. */
export const readClaims = async (
  deps: Uses<'config' | 'connections'>,
  provider: Provider,
  flow: Flow,
  query: Record<string, string>,
): Promise<Claims> => {
  const url = new URL(callbackUrl(deps, provider.id))
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const connection = await deps.connections.get(provider)
  const claims = await exchangeCode(connection, provider, url, { ...flow, state: query.state ?? '' })
  const asked = flow.purpose !== 'trial' && (flow.purpose !== 'sign_in' || flow.native !== undefined)
  const { auth_time } = claims
  if (asked && !(typeof auth_time === 'number' && auth_time >= flow.started_s - PROOF_SKEW_S))
    throw refused('reauth_failed', `${provider.title} did not ask for your credentials again.`)
  return claims
}

/** Whom the file lets in, by the claims alone. */
export const refuseClaims = (provider: Provider, claims: Claims): void => {
  refuseEmail(provider, claims)
  refuseMethods(provider, claims)
}

export const refused = (code: CodeOf<'policy_denied'>, detail: string) => new AppError('policy_denied', code, detail)

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
export const vouchesForTwo = ({ require_amr }: Provider): boolean => require_amr.length > 0

/** Whom the claims name, as identity reads it; with `make`, a new person too if the provider creates accounts. */
export const externalOf = (provider: Provider, claims: Claims, make = true) => {
  const named = claims[provider.groups?.claim ?? '']
  const username = claims[provider.username_claim]
  const required = Object.entries(provider.jit.require_claims ?? {})
  const creates = make && required.every(([name, value]) => claims[name] === value)
  const external = {
    providerId: provider.id,
    subject: claims.sub,
    username: creates && typeof username === 'string' ? username : '',
    groups: [named].flat().filter((name) => typeof name === 'string'),
    groupsKnown: !namesElsewhere(provider, claims),
    externalId: make ? externalIdOf(provider, claims) : '',
  }
  return { external, creates }
}

/** The claim by which the provider's directory names the person; empty without one. */
export const externalIdOf = ({ scim }: Provider, claims: Claims): string => String(claims[scim?.match ?? ''] ?? '')

const REFUSED: Record<string, string> = {
  no_account: 'You have no account here yet.',
  account_disabled: 'The account is disabled.',
  username_missing: 'The provider gives no username for you.',
  username_invalid: 'No account here can have the name that the provider gives you.',
  username_taken: 'Your username is taken by another account here.',
  subject_changed: 'The provider names a different person than before.',
  identity_linked: 'This identity belongs to another account.',
}

/** The user in the response; throws its refusal. Whom the file does not let in lacks an account, not a name. */
export const userOf = (
  { user, refused: given }: Pick<ResolveExternalResponse, 'user' | 'refused'>,
  creates = true,
): User => {
  if (user) return user
  const code = given === 'username_missing' && !creates ? 'no_account' : given
  const detail = REFUSED[code] ?? 'The sign-in is refused.'
  throw code === 'username_taken' || code === 'identity_linked'
    ? new AppError('version_conflict', code, detail)
    : refused(code as CodeOf<'policy_denied'>, detail)
}

/** For a long list of groups Entra sends a reference instead: that does not mean "no groups". */
export const namesElsewhere = ({ groups }: Provider, { _claim_names }: Claims): boolean =>
  (_claim_names as Record<string, unknown> | undefined)?.[groups?.claim ?? ''] !== undefined
