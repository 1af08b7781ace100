import type { QueryClient } from '@tanstack/react-query'
import { createRootRouteWithContext, createRoute, createRouter, Outlet, redirect } from '@tanstack/react-router'
import { BrokenPage, lazyPage } from './frame/lazy-page.tsx'
import { NotFound } from './frame/not-found.tsx'
import { Shell } from './frame/shell.tsx'
import { Unreachable } from './frame/unreachable.tsx'
import { type EndedIn, OPERATIONS_TABS, type OperationsTab, operationQuery } from './queries/operations.ts'
import type { OverviewDays } from './queries/overview.ts'
import { type DrawnSearch, drawnSearch, oneOf, spanSearch, text, texts, timelineSearch, whole } from './search.ts'
import { SessionAway, sessionPhase, startSession } from './session/token.ts'
import { Loading, Page } from './ui/page.tsx'

/** Every path of the console and the schema of its search parameters: the URL is the view. */
const root = createRootRouteWithContext<{ client: QueryClient }>()({ component: Outlet, notFoundComponent: NotFound })

const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  validateSearch: (search) => texts(search, 'next', 'error'),
  component: lazyPage(() => import('./account/login.tsx'), 'Login'),
})

const enrol = createRoute({
  getParentRoute: () => root,
  path: '/enrol',
  component: lazyPage(() => import('./account/enrol.tsx'), 'EnrolPage'),
})

const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  beforeLoad: async ({ location }) => {
    const { name } = sessionPhase()
    if (name === 'signed_in' || name === 'ended') return
    const outcome = await startSession()
    if (outcome === 'ok') return
    if (outcome === 'over') throw redirect({ to: '/login', search: { next: location.href }, replace: true })
    throw new SessionAway(outcome)
  },
  component: Shell,
  errorComponent: Unreachable,
  notFoundComponent: NotFound,
})

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/inbox', search: { for: 'me' }, replace: true })
  },
})

const inbox = createRoute({
  getParentRoute: () => shell,
  path: '/inbox',
  validateSearch: (search) => ({ for: oneOf(search.for, ['me', 'all'] as const, 'me') }),
  component: lazyPage(() => import('./inbox/page.tsx'), 'InboxPage'),
})

const overview = createRoute({
  getParentRoute: () => shell,
  path: '/overview',
  validateSearch: (search): { days: OverviewDays } => ({
    days: search.days === 30 || search.days === 90 ? search.days : 14,
  }),
  component: lazyPage(() => import('./overview/page.tsx'), 'OverviewPage'),
})

const operations = createRoute({
  getParentRoute: () => shell,
  path: '/operations',
  validateSearch: (search): { tab: OperationsTab; q: string } & EndedIn => ({
    tab: oneOf(search.tab, OPERATIONS_TABS, 'running'),
    q: text(search.q),
    ...spanSearch(search),
  }),
  component: lazyPage(() => import('./operations/list.tsx'), 'OperationsPage'),
})

const operation = createRoute({
  getParentRoute: () => shell,
  path: '/operations/$operation_id',
  loader: ({ context, params }) => void context.client.prefetchQuery(operationQuery(params.operation_id)),
  component: lazyPage(() => import('./operations/page.tsx'), 'OperationPage'),
})
const operationHome = createRoute({
  getParentRoute: () => operation,
  path: '/',
  beforeLoad: ({ params }) => {
    throw redirect({ to: '/operations/$operation_id/graph', params, search: {}, replace: true })
  },
})
const graph = createRoute({
  getParentRoute: () => operation,
  path: '/graph',
  validateSearch: (search) => ({ ...drawnSearch(search), ...texts(search, 'only') }),
  component: lazyPage(() => import('./operations/graph.tsx'), 'OperationGraphPage'),
})
const timeline = createRoute({
  getParentRoute: () => operation,
  path: '/timeline',
  validateSearch: timelineSearch,
  component: lazyPage(() => import('./history/timeline.tsx'), 'OperationTimelinePage'),
})
const activity = createRoute({
  getParentRoute: () => operation,
  path: '/activity',
  validateSearch: (search): { who?: 'people' | 'system' | 'all' } =>
    search.who === 'system' || search.who === 'all' || search.who === 'people' ? { who: search.who } : {},
  component: lazyPage(() => import('./history/activity.tsx'), 'OperationActivityPage'),
})
const nodes = createRoute({
  getParentRoute: () => operation,
  path: '/nodes',
  validateSearch: (search) => texts(search, 'state'),
  component: lazyPage(() => import('./nodes/list.tsx'), 'OperationNodesPage'),
})
const node = createRoute({
  getParentRoute: () => shell,
  path: '/operations/$operation_id/nodes/$node_id',
  validateSearch: (search): { attempt?: number; tab: 'summary' | 'logs' | 'io' | 'artifacts' } => {
    const attempt = whole(search.attempt)
    return {
      ...(attempt === undefined ? {} : { attempt }),
      tab: oneOf(search.tab, ['summary', 'logs', 'io', 'artifacts'] as const, 'summary'),
    }
  },
  component: lazyPage(() => import('./nodes/page.tsx'), 'NodePage'),
})
const gate = createRoute({
  getParentRoute: () => shell,
  path: '/operations/$operation_id/gates/$gate_id',
  component: lazyPage(() => import('./gates/page.tsx'), 'GatePage'),
})

const patches = createRoute({
  getParentRoute: () => operation,
  path: '/patches',
  component: lazyPage(() => import('./patches/list.tsx'), 'OperationPatchesPage'),
})
const artifacts = createRoute({
  getParentRoute: () => operation,
  path: '/artifacts',
  component: lazyPage(() => import('./proof/artifacts.tsx'), 'OperationArtifactsPage'),
})
const evidence = createRoute({
  getParentRoute: () => operation,
  path: '/evidence',
  component: lazyPage(() => import('./proof/evidence.tsx'), 'OperationEvidencePage'),
})
const patchNew = createRoute({
  getParentRoute: () => shell,
  path: '/operations/$operation_id/patches/new',
  validateSearch: (search) => texts(search, 'node', 'from'),
  component: lazyPage(() => import('./patches/new.tsx'), 'PatchNewPage'),
})
const patch = createRoute({
  getParentRoute: () => shell,
  path: '/operations/$operation_id/patches/$patch_id',
  component: lazyPage(() => import('./patches/page.tsx'), 'PatchPage'),
})

const intents = createRoute({
  getParentRoute: () => shell,
  path: '/intents',
  validateSearch: (search) => ({ whose: oneOf(search.whose, ['mine', 'all'] as const, 'mine') }),
  component: lazyPage(() => import('./intents/list.tsx'), 'IntentsPage'),
})
const intentNew = createRoute({
  getParentRoute: () => shell,
  path: '/new',
  validateSearch: (search) => ({
    kind: oneOf(search.kind, ['change', 'action', 'runbook'] as const, 'change'),
    type: text(search.type),
    procedure: text(search.procedure),
    resource: text(search.resource),
  }),
  component: lazyPage(() => import('./intents/new.tsx'), 'NewPage'),
})

const schedules = createRoute({
  getParentRoute: () => shell,
  path: '/schedules',
  component: lazyPage(() => import('./schedules/list.tsx'), 'SchedulesPage'),
})
const schedule = createRoute({
  getParentRoute: () => shell,
  path: '/schedules/$schedule_id',
  component: lazyPage(() => import('./schedules/page.tsx'), 'SchedulePage'),
})

const plan = createRoute({
  getParentRoute: () => shell,
  path: '/plans/$plan_id',
  validateSearch: (search): DrawnSearch & { tab: 'changes' | 'graph' | 'gates' | 'checks' | 'rehearsal' } => ({
    tab: oneOf(search.tab, ['changes', 'graph', 'gates', 'checks', 'rehearsal'] as const, 'changes'),
    ...drawnSearch(search),
  }),
  component: lazyPage(() => import('./plans/page.tsx'), 'PlanPage'),
})

const resources = createRoute({
  getParentRoute: () => shell,
  path: '/resources',
  validateSearch: (search) => ({
    type: text(search.type),
    region: text(search.region),
    health: text(search.health),
    q: text(search.q),
  }),
  component: lazyPage(() => import('./resources/list.tsx'), 'ResourcesPage'),
})
const RESOURCE_TABS = ['overview', 'relations', 'impact', 'capabilities', 'operations'] as const
const resource = createRoute({
  getParentRoute: () => shell,
  path: '/resources/$resource_id',
  validateSearch: (search): { tab: (typeof RESOURCE_TABS)[number]; view?: 'picture' | 'table' } => ({
    tab: oneOf(search.tab, RESOURCE_TABS, 'overview'),
    ...(search.view === 'picture' || search.view === 'table' ? { view: search.view } : {}),
  }),
  component: lazyPage(() => import('./resources/page.tsx'), 'ResourcePage'),
})

const sessions = createRoute({
  getParentRoute: () => shell,
  path: '/settings/sessions',
  component: lazyPage(() => import('./account/sessions.tsx'), 'SessionsPage'),
})
const passkeys = createRoute({
  getParentRoute: () => shell,
  path: '/settings/passkeys',
  component: lazyPage(() => import('./account/factors/passkeys.tsx'), 'PasskeysPage'),
})
const device = createRoute({
  getParentRoute: () => shell,
  path: '/device',
  validateSearch: (search): { code?: string } => (text(search.code) === '' ? {} : { code: text(search.code) }),
  component: lazyPage(() => import('./devices/page.tsx'), 'DevicePage'),
})
const notifications = createRoute({
  getParentRoute: () => shell,
  path: '/settings/notifications',
  component: lazyPage(() => import('./notifications/page.tsx'), 'NotificationsPage'),
})
const password = createRoute({
  getParentRoute: () => shell,
  path: '/settings/password',
  component: lazyPage(() => import('./account/password.tsx'), 'PasswordPage'),
})
const topology = createRoute({
  getParentRoute: () => shell,
  path: '/topology',
  validateSearch: (search) => texts(search, 'region', 'datacenter', 'layer'),
  component: lazyPage(() => import('./topology/page.tsx'), 'TopologyPage'),
})
const capabilities = createRoute({
  getParentRoute: () => shell,
  path: '/capabilities',
  validateSearch: (search) => texts(search, 'key'),
  component: lazyPage(() => import('./topology/capabilities.tsx'), 'CapabilitiesPage'),
})

const health = createRoute({
  getParentRoute: () => shell,
  path: '/health',
  component: lazyPage(() => import('./resources/health.tsx'), 'HealthPage'),
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
  component: lazyPage(() => import('./proof/audit.tsx'), 'AuditPage'),
})

const settings = createRoute({
  getParentRoute: () => shell,
  path: '/settings/display',
  component: lazyPage(() => import('./account/display.tsx'), 'DisplayPage'),
})

const admin = createRoute({
  getParentRoute: () => shell,
  path: '/admin',
  component: lazyPage(() => import('./admin/frame.tsx'), 'AdminFrame'),
})
const adminHome = createRoute({
  getParentRoute: () => admin,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/admin/users', search: { q: '' }, replace: true })
  },
})
const users = createRoute({
  getParentRoute: () => admin,
  path: '/users',
  validateSearch: (search) => ({ q: text(search.q) }),
  component: lazyPage(() => import('./admin/users.tsx'), 'UsersPage'),
})
const user = createRoute({
  getParentRoute: () => admin,
  path: '/users/$user_id',
  component: lazyPage(() => import('./admin/user.tsx'), 'UserPage'),
})
const groups = createRoute({
  getParentRoute: () => admin,
  path: '/groups',
  component: lazyPage(() => import('./admin/groups.tsx'), 'GroupsPage'),
})
const grants = createRoute({
  getParentRoute: () => admin,
  path: '/grants',
  component: lazyPage(() => import('./admin/grants.tsx'), 'GrantsPage'),
})
const machines = createRoute({
  getParentRoute: () => admin,
  path: '/service-accounts',
  component: lazyPage(() => import('./admin/machines.tsx'), 'MachinesPage'),
})
const changes = createRoute({
  getParentRoute: () => admin,
  path: '/changes',
  component: lazyPage(() => import('./admin/changes.tsx'), 'ChangesPage'),
})

const routeTree = root.addChildren([
  home,
  login,
  enrol,
  shell.addChildren([
    inbox,
    overview,
    operations,
    operation.addChildren([operationHome, graph, timeline, activity, nodes, patches, artifacts, evidence]),
    node,
    gate,
    patchNew,
    patch,
    intents,
    intentNew,
    schedules,
    schedule,
    plan,
    resources,
    resource,
    sessions,
    passkeys,
    device,
    notifications,
    password,
    topology,
    capabilities,
    health,
    audit,
    settings,
    admin.addChildren([adminHome, users, user, groups, grants, machines, changes]),
  ]),
])

export const createConsoleRouter = (client: QueryClient) =>
  createRouter({
    routeTree,
    context: { client },
    defaultPreload: 'intent',
    defaultPreloadStaleTime: 0,
    scrollRestoration: false,
    defaultPendingMs: 200,
    defaultPendingComponent: () => (
      <Page>
        <Loading />
      </Page>
    ),
    defaultNotFoundComponent: NotFound,
    defaultErrorComponent: BrokenPage,
  })

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createConsoleRouter>
  }
}
