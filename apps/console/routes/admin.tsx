import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../frame/lazy-page.tsx'
import { page, pagesBelow } from './root.tsx'
import { text, texts } from './search.ts'

const admin = page('/admin', () => import('../admin/frame.tsx'), 'AdminFrame')
const section = pagesBelow(admin)

// The frame opens the first page that this person may read.
const adminHome = createRoute({ getParentRoute: () => admin, path: '/' })

const users = createRoute({
  getParentRoute: () => admin,
  path: '/users',
  validateSearch: (search) => ({ q: text(search.q) }),
  component: lazyPage(() => import('../admin/users.tsx'), 'UsersPage'),
})

const user = section('/users/$user_id', () => import('../admin/user.tsx'), 'UserPage')
const groups = section('/groups', () => import('../admin/groups.tsx'), 'GroupsPage')
const grants = section('/grants', () => import('../admin/grants.tsx'), 'GrantsPage')
const machines = section('/service-accounts', () => import('../admin/machines.tsx'), 'MachinesPage')
const providers = createRoute({
  getParentRoute: () => admin,
  path: '/providers',
  validateSearch: (search) => texts(search, 'trial'),
  component: lazyPage(() => import('../providers/page.tsx'), 'ProvidersPage'),
})
const changes = section('/changes', () => import('../admin/changes.tsx'), 'ChangesPage')
const freezes = section('/freezes', () => import('../admin/freezes.tsx'), 'FreezesPage')
const agents = section('/agents', () => import('../agents/page.tsx'), 'AgentsPage')
const packs = section('/packs', () => import('../admin/packs.tsx'), 'PacksPage')

/** The administration pages; their frame decides who may read which. */
export const adminRoutes = [
  admin.addChildren([adminHome, users, user, groups, grants, machines, providers, changes, freezes, agents, packs]),
] as const
