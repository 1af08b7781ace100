import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../frame/lazy-page.tsx'
import { shell } from './root.tsx'
import { text } from './search.ts'

const admin = createRoute({
  getParentRoute: () => shell,
  path: '/admin',
  component: lazyPage(() => import('../admin/frame.tsx'), 'AdminFrame'),
})

// The frame opens the first page that this person may read.
const adminHome = createRoute({ getParentRoute: () => admin, path: '/' })

const users = createRoute({
  getParentRoute: () => admin,
  path: '/users',
  validateSearch: (search) => ({ q: text(search.q) }),
  component: lazyPage(() => import('../admin/users.tsx'), 'UsersPage'),
})

const user = createRoute({
  getParentRoute: () => admin,
  path: '/users/$user_id',
  component: lazyPage(() => import('../admin/user.tsx'), 'UserPage'),
})

const groups = createRoute({
  getParentRoute: () => admin,
  path: '/groups',
  component: lazyPage(() => import('../admin/groups.tsx'), 'GroupsPage'),
})

const grants = createRoute({
  getParentRoute: () => admin,
  path: '/grants',
  component: lazyPage(() => import('../admin/grants.tsx'), 'GrantsPage'),
})

const machines = createRoute({
  getParentRoute: () => admin,
  path: '/service-accounts',
  component: lazyPage(() => import('../admin/machines.tsx'), 'MachinesPage'),
})

const changes = createRoute({
  getParentRoute: () => admin,
  path: '/changes',
  component: lazyPage(() => import('../admin/changes.tsx'), 'ChangesPage'),
})

const freezes = createRoute({
  getParentRoute: () => admin,
  path: '/freezes',
  component: lazyPage(() => import('../admin/freezes.tsx'), 'FreezesPage'),
})

const packs = createRoute({
  getParentRoute: () => admin,
  path: '/packs',
  component: lazyPage(() => import('../admin/packs.tsx'), 'PacksPage'),
})

/** The administration pages; their frame decides who may read which. */
export const adminRoutes = [
  admin.addChildren([adminHome, users, user, groups, grants, machines, changes, freezes, packs]),
] as const
