import { providerCounts } from '../../../db/identity/external.ts'
import { allow } from '../../shared/auth/http.ts'
import type { Provider } from '../../shared/auth/providers.ts'
import { type ProviderView, ProviderViews } from '../../shared/contracts/identity/providers.ts'
import { routes } from '../../shared/http/routes.ts'
import type { ChangeDeps } from '../deps.ts'

/** The identity providers. Their file is the deployer's: no route changes one, for who could would sign in as anyone. */
export const providersRoutes = routes<ChangeDeps>('sso', (app, { deps }) => {
  app.get('/v1/admin/providers', {
    operationId: 'listProviderSettings',
    summary: 'List the identity providers with their settings',
    description: 'The providers in force: whom they let in, what their groups grant, and how many people they have.',
    response: { 200: ProviderViews },
    preHandler: allow('identity:read', { kind: 'R' }),
    handler: async () => {
      const countsOf = await providerCounts(deps.db)
      const items = deps.providers.all().map((provider) => viewOf(provider, countsOf(provider.id)))
      return { items, fault: deps.providers.fault() }
    },
  })
})

type Counts = ReturnType<Awaited<ReturnType<typeof providerCounts>>>
const viewOf = (provider: Provider, { people, directory }: Counts): ProviderView => {
  const { id, title, enabled, issuer, max_role, session_max_s, jit, scim, groups } = provider
  return {
    ...{ id, title, enabled, issuer, max_role, session_max_s, people },
    creates_accounts: jit.enabled,
    requires: requirementsOf(provider),
    groups_claim: groups?.claim ?? null,
    map: Object.entries(groups?.map ?? {}).map(([name, { groups = [], roles = [] }]) => ({ name, groups, roles })),
    scim: scim ? { ...scim, ...directory } : null,
  }
}

const requirementsOf = ({ jit, allowed_domains, require_amr }: Provider): ProviderView['requires'] => [
  ...(jit.require_group ?? []).map((value) => ({ kind: 'group' as const, value })),
  ...Object.entries(jit.require_claims ?? {}).map((pair) => ({ kind: 'claim' as const, value: pair.join('=') })),
  ...allowed_domains.map((value) => ({ kind: 'domain' as const, value })),
  ...require_amr.map((value) => ({ kind: 'method' as const, value })),
]
