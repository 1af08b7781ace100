import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../frame/lazy-page.tsx'
import { page, shell } from './root.tsx'
import { oneOf, text, texts, whole } from './search.ts'

const RESOURCE_TABS = ['overview', 'relations', 'impact', 'capabilities', 'operations', 'versions'] as const

type Shown = 'picture' | 'table'
/** Whether a picture or its table is shown; the available room decides unless this is set. */
const viewOf = (view: unknown): { view?: Shown } => (view === 'picture' || view === 'table' ? { view } : {})

type ResourceSearch = {
  tab: (typeof RESOURCE_TABS)[number]
  view?: Shown
  /** The version at which to show the resource, and the version to compare it with. */
  version?: number
  against?: number
  /** What becomes of the resource, on the impact tab. */
  assume?: string | undefined
}

const resources = createRoute({
  getParentRoute: () => shell,
  path: '/resources',
  validateSearch: (search) => ({
    type: text(search.type),
    region: text(search.region),
    health: text(search.health),
    q: text(search.q),
    ...texts(search, 'lifecycle', 'drift', 'sort'),
  }),
  component: lazyPage(() => import('../resources/list.tsx'), 'ResourcesPage'),
})

const resource = createRoute({
  getParentRoute: () => shell,
  path: '/resources/$resource_id',
  validateSearch: (search): ResourceSearch => {
    const [version, against] = [whole(search.version), whole(search.against)]
    return {
      tab: oneOf(search.tab, RESOURCE_TABS, 'overview'),
      ...viewOf(search.view),
      ...texts(search, 'assume'),
      ...(version ? { version } : {}),
      ...(version && against ? { against } : {}),
    }
  },
  component: lazyPage(() => import('../resources/page.tsx'), 'ResourcePage'),
})

const topology = createRoute({
  getParentRoute: () => shell,
  path: '/topology',
  validateSearch: (search) => ({ ...texts(search, 'region', 'datacenter', 'layer'), ...viewOf(search.view) }),
  component: lazyPage(() => import('../topology/page.tsx'), 'TopologyPage'),
})

const capabilities = createRoute({
  getParentRoute: () => shell,
  path: '/capabilities',
  validateSearch: (search) => texts(search, 'key'),
  component: lazyPage(() => import('../topology/capabilities.tsx'), 'CapabilitiesPage'),
})

const health = page('/health', () => import('../resources/health.tsx'), 'HealthPage')

/** The resources, their places, and their health. */
export const catalogRoutes = [resources, resource, topology, capabilities, health] as const
