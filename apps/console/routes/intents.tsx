import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../frame/lazy-page.tsx'
import { page, shell } from './root.tsx'
import { type DrawnSearch, drawnSearch, oneOf, text } from './search.ts'

const intents = createRoute({
  getParentRoute: () => shell,
  path: '/intents',
  validateSearch: (search) => ({ whose: oneOf(search.whose, ['mine', 'all'] as const, 'mine') }),
  component: lazyPage(() => import('../intents/list.tsx'), 'IntentsPage'),
})

type NewSearch = {
  kind: 'change' | 'action' | 'runbook'
  type: string
  procedure: string
  resource: string
  /** The operation to run again, or to roll back. */
  from?: string
  /** A resource of the part of the way back, empty for the first part; absent: run again. */
  back?: string
}
const intentNew = createRoute({
  getParentRoute: () => shell,
  path: '/new',
  validateSearch: (search): NewSearch => ({
    kind: oneOf(search.kind, ['change', 'action', 'runbook'] as const, 'change'),
    type: text(search.type),
    procedure: text(search.procedure),
    resource: text(search.resource),
    ...(search.from !== undefined && { from: text(search.from) }),
    ...(search.back !== undefined && { back: text(search.back) }),
  }),
  component: lazyPage(() => import('../intents/new.tsx'), 'NewPage'),
})

const schedules = page('/schedules', () => import('../schedules/list.tsx'), 'SchedulesPage')
const schedule = page('/schedules/$schedule_id', () => import('../schedules/page.tsx'), 'SchedulePage')

const plan = createRoute({
  getParentRoute: () => shell,
  path: '/plans/$plan_id',
  validateSearch: (search): DrawnSearch & { tab: 'changes' | 'graph' | 'gates' | 'checks' | 'rehearsal' } => ({
    tab: oneOf(search.tab, ['changes', 'graph', 'gates', 'checks', 'rehearsal'] as const, 'changes'),
    ...drawnSearch(search),
  }),
  component: lazyPage(() => import('../plans/page.tsx'), 'PlanPage'),
})

/** From an intent, or a schedule for it, to its plan. */
export const intentRoutes = [intents, intentNew, schedules, schedule, plan] as const
