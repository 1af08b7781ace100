import { randomBytes } from 'node:crypto'
import type { Provider } from '../../shared/auth/providers.ts'
import type { ProviderTrial } from '../../shared/contracts/session/sso.ts'
import { AppError } from '../../shared/errors.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import type { Uses } from '../deps.ts'
import type { Flow } from '../store/flows.ts'
import { externalOf, readClaims, refuseClaims, userOf, vouchesForTwo } from './claims.ts'
import type { Claims } from './foreign.ts'

type Deps = Uses<'config' | 'connections' | 'flows' | 'identity'>
type Answer = { query: Record<string, string>; request_id: string }

/**
 * A test sign-in: finds out whom the claims would sign in and with which rights, and stores that for an administrator
 * to read. It opens no session; identity undoes all that it did. Returns the name of the trial.
 */
export const tryClaims = async (deps: Deps, provider: Provider, flow: Flow, answer: Answer): Promise<string> => {
  const trial: ProviderTrial = {
    provider: provider.id,
    claims: null,
    second_factor: vouchesForTwo(provider),
    outcome: 'refused',
    account: null,
    groups: [],
    roles: [],
    refusal: null,
  }
  try {
    const claims = await readClaims(deps, provider, flow, answer.query)
    const { external, creates } = externalOf(provider, claims)
    trial.claims = statedIn(provider, claims, external)
    refuseClaims(provider, claims)
    const preview = deps.identity.previewExternal(external, withRequestId(answer.request_id))
    const { resolved, outcome, principal } = await preview.catch(throwFromRpc('identity'))
    trial.account = userOf(resolved ?? { refused: '' }, creates).username
    trial.outcome = outcome as ProviderTrial['outcome']
    trial.groups = principal?.memberships.map(({ groupKey }) => groupKey) ?? []
    trial.roles = [...new Set(principal?.grants.map(({ role }) => role))]
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    trial.refusal = { code: error.code, detail: error.message }
  }
  const name = randomBytes(32).toString('base64url')
  await deps.flows.keepTrial(name, trial)
  return name
}

/** The claims that count here, under the names of the file. */
const statedIn = (
  provider: Provider,
  claims: Claims,
  external: ReturnType<typeof externalOf>['external'],
): NonNullable<ProviderTrial['claims']> => {
  const username = claims[provider.username_claim]
  const { email, email_verified, amr, auth_time } = claims
  const proved = new Date(typeof auth_time === 'number' ? auth_time * 1000 : Number.NaN)
  return {
    subject: claims.sub,
    username: typeof username === 'string' ? username : null,
    email: typeof email === 'string' ? email : null,
    email_verified: email_verified === true,
    groups: external.groupsKnown ? external.groups : null,
    methods: Array.isArray(amr) ? amr.filter((method) => typeof method === 'string') : [],
    auth_time: Number.isNaN(proved.getTime()) ? null : proved.toISOString(),
    directory_id: external.externalId || null,
  }
}
