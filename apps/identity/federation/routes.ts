import { listUnlinked, providerCounts, twinsOf } from '../../../db/identity/external.ts'
import { heldGrants } from '../../../db/identity/queries.ts'
import { allow } from '../../shared/auth/http.ts'
import type { Provider } from '../../shared/auth/providers.ts'
import {
  type ProviderView,
  ProviderViews,
  type UnlinkedUser,
  UnlinkedUsers,
} from '../../shared/contracts/identity/providers.ts'
import { PageQuery } from '../../shared/contracts/identity/users.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
import { createPages } from '../../shared/http/pages.ts'
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

  const pages = createPages(deps.keys.page)
  app.get('/v1/admin/unlinked-users', {
    operationId: 'listUnlinkedUsers',
    summary: 'List who is linked to no identity provider',
    description:
      'Active people whom none of the providers in force signs in or maintains, by name; none while there is no provider.',
    querystring: PageQuery,
    response: { 200: UnlinkedUsers },
    preHandler: allow('identity:read', { kind: 'R' }),
    handler: async ({ query: { page_size, page_token } }) => {
      const list = { route: 'unlinked-users' }
      const [after] = pages.after(page_token, list) ?? []
      const ids = deps.providers.list().map(({ id }) => id)
      const rows = ids.length === 0 ? [] : await listUnlinked(deps.db, ids, after ?? undefined, page_size + 1)
      const { items, next_page_token } = pages.cut(rows, page_size, list, ({ username }) => [username])
      return { items: await unlinkedOf(deps, ids, items), next_page_token, as_of: deps.clock.now().toISOString() }
    },
  })
})

const unlinkedOf = async (
  { db, config }: ChangeDeps,
  ids: readonly string[],
  rows: Awaited<ReturnType<typeof listUnlinked>>,
): Promise<UnlinkedUser[]> => {
  const [twins, held] = await Promise.all([twinsOf(db, ids, pluck(rows, 'stem')), heldGrants(db, pluck(rows, 'id'))])
  return rows.map(({ id, username, folded, enrolled, created_at, stem }) => ({
    ...{ id, username, enrolled },
    created_at: new Date(created_at).toISOString(),
    roles: [...new Set(held.flatMap(({ user_id, role }) => (user_id === id ? [role] : [])))].sort(),
    emergency: config.break_glass?.has(folded) ?? false,
    twins: twins.flatMap((twin) => (twin.stem === stem ? [pick(twin, 'id', 'username')] : [])),
  }))
}

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
