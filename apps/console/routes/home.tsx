import { createRoute, redirect } from '@tanstack/react-router'
import { lazyPage, NotFound } from '../frame/lazy-page.tsx'
import { meQuery, waitingFor } from '../queries/me.ts'
import type { OverviewDays, OverviewWhere } from '../queries/overview.ts'
import { shell } from './root.tsx'
import { oneOf, text, texts } from './search.ts'

/** Leads to the inbox, or to the overview if no item there waits for the person. */
const home = createRoute({
  getParentRoute: () => shell,
  path: '/',
  beforeLoad: async ({ context: { client } }): Promise<void> => {
    const me = await client.ensureQueryData({ ...meQuery(), retry: false }).catch(() => undefined)
    if (me && waitingFor(me.counts) === 0) throw redirect({ to: '/overview', search: { days: 14 }, replace: true })
    throw redirect({ to: '/inbox', search: { for: 'me' }, replace: true })
  },
})

const inbox = createRoute({
  getParentRoute: () => shell,
  path: '/inbox',
  validateSearch: (search) => ({ for: oneOf(search.for, ['me', 'all'] as const, 'me') }),
  component: lazyPage(() => import('../inbox/page.tsx'), 'InboxPage'),
})

const overview = createRoute({
  getParentRoute: () => shell,
  path: '/overview',
  validateSearch: (search): { days: OverviewDays } & OverviewWhere => ({
    days: search.days === 30 || search.days === 90 ? search.days : 14,
    ...texts(search, 'env', 'region'),
  }),
  component: lazyPage(() => import('../overview/page.tsx'), 'OverviewPage'),
})

const audit = createRoute({
  getParentRoute: () => shell,
  path: '/audit',
  validateSearch: (search) => ({
    source: oneOf(search.source, ['operations', 'catalog', 'users', 'sign-ins'] as const, 'operations'),
    actor: text(search.actor),
    action: text(search.action),
    object: text(search.object),
    from: text(search.from),
    to: text(search.to),
  }),
  component: lazyPage(() => import('../proof/audit.tsx'), 'AuditPage'),
})

/** Any other address; signed-in people keep the navigation. */
const elsewhere = createRoute({ getParentRoute: () => shell, path: '$', component: NotFound })

/** Waiting decisions, running operations, and past actions. */
export const homeRoutes = [home, inbox, overview, audit, elsewhere] as const
