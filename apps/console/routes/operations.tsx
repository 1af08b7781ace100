import { createRoute, redirect } from '@tanstack/react-router'
import { lazyPage } from '../frame/lazy-page.tsx'
import { OPERATIONS_TABS, type OperationsSearch, operationQuery } from '../queries/operations.ts'
import { page, pagesBelow, shell } from './root.tsx'
import { drawnSearch, oneOf, spanSearch, text, texts, timelineSearch, whole } from './search.ts'

const operations = createRoute({
  getParentRoute: () => shell,
  path: '/operations',
  validateSearch: (search): OperationsSearch => ({
    tab: oneOf(search.tab, OPERATIONS_TABS, 'running'),
    q: text(search.q),
    ...spanSearch(search),
    ...texts(search, 'kind', 'by', 'on', 'env', 'age'),
  }),
  component: lazyPage(() => import('../operations/list.tsx'), 'OperationsPage'),
})

const operation = createRoute({
  getParentRoute: () => shell,
  path: '/operations/$operation_id',
  loader: ({ context, params }) => void context.client.prefetchQuery(operationQuery(params.operation_id)),
  component: lazyPage(() => import('../operations/page.tsx'), 'OperationPage'),
})
const tab = pagesBelow(operation)

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
  component: lazyPage(() => import('../operations/graph.tsx'), 'OperationGraphPage'),
})

const timeline = createRoute({
  getParentRoute: () => operation,
  path: '/timeline',
  validateSearch: timelineSearch,
  component: lazyPage(() => import('../history/timeline.tsx'), 'OperationTimelinePage'),
})

const activity = createRoute({
  getParentRoute: () => operation,
  path: '/activity',
  validateSearch: (search): { who?: 'people' | 'system' | 'all' } =>
    search.who === 'system' || search.who === 'all' || search.who === 'people' ? { who: search.who } : {},
  component: lazyPage(() => import('../history/activity.tsx'), 'OperationActivityPage'),
})

const nodes = createRoute({
  getParentRoute: () => operation,
  path: '/nodes',
  validateSearch: (search) => texts(search, 'state', 'q'),
  component: lazyPage(() => import('../nodes/list.tsx'), 'OperationNodesPage'),
})

const patches = tab('/patches', () => import('../patches/list.tsx'), 'OperationPatchesPage')
const artifacts = tab('/artifacts', () => import('../proof/artifacts.tsx'), 'OperationArtifactsPage')
const evidence = tab('/evidence', () => import('../proof/evidence.tsx'), 'OperationEvidencePage')

const node = createRoute({
  getParentRoute: () => shell,
  path: '/operations/$operation_id/nodes/$node_id',
  validateSearch: (search): { attempt?: number; compare?: number; tab: 'summary' | 'logs' | 'io' | 'artifacts' } => {
    const [attempt, compare] = [whole(search.attempt), whole(search.compare)]
    return {
      ...(attempt === undefined ? {} : { attempt }),
      ...(compare === undefined ? {} : { compare }),
      tab: oneOf(search.tab, ['summary', 'logs', 'io', 'artifacts'] as const, 'summary'),
    }
  },
  component: lazyPage(() => import('../nodes/page.tsx'), 'NodePage'),
})

const gate = page('/operations/$operation_id/gates/$gate_id', () => import('../gates/page.tsx'), 'GatePage')

const patchNew = createRoute({
  getParentRoute: () => shell,
  path: '/operations/$operation_id/patches/new',
  validateSearch: (search) => texts(search, 'node', 'from'),
  component: lazyPage(() => import('../patches/new.tsx'), 'PatchNewPage'),
})

const patch = page('/operations/$operation_id/patches/$patch_id', () => import('../patches/page.tsx'), 'PatchPage')

/** Operations; and the tabs, nodes, gates and patches of one. */
export const operationRoutes = [
  operations,
  operation.addChildren([operationHome, graph, timeline, activity, nodes, patches, artifacts, evidence]),
  node,
  gate,
  patchNew,
  patch,
] as const
