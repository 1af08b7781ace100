import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../frame/lazy-page.tsx'
import { page, pagesBelow, resumeSession, root, shell } from './root.tsx'
import { text, texts } from './search.ts'

const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  validateSearch: (search) => texts(search, 'next', 'error'),
  component: lazyPage(() => import('../account/login.tsx'), 'Login'),
})

const enrol = pagesBelow(root)('/enrol', () => import('../account/links/enrol.tsx'), 'EnrolPage')

const signOut = pagesBelow(root)('/sign-out', () => import('../account/links/sign-out.tsx'), 'SignOutPage')

const secondFactor = createRoute({
  getParentRoute: () => root,
  path: '/second-factor',
  validateSearch: (search) => texts(search, 'next'),
  beforeLoad: resumeSession,
  component: lazyPage(() => import('../account/factors/first.tsx'), 'FirstFactorPage'),
})

const settings = page('/settings/display', () => import('../account/display.tsx'), 'DisplayPage')
const sessions = page('/settings/sessions', () => import('../account/sessions.tsx'), 'SessionsPage')
const passkeys = page('/settings/passkeys', () => import('../account/factors/passkeys.tsx'), 'PasskeysPage')
const machines = page('/settings/service-accounts', () => import('../machines/page.tsx'), 'OwnMachinesPage')
const password = page('/settings/password', () => import('../account/password.tsx'), 'PasswordPage')

const notifications = createRoute({
  getParentRoute: () => shell,
  path: '/settings/notifications',
  validateSearch: (search) => texts(search, 'group'),
  component: lazyPage(() => import('../notifications/page.tsx'), 'NotificationsPage'),
})

const device = createRoute({
  getParentRoute: () => shell,
  path: '/device',
  validateSearch: (search): { code?: string } => (text(search.code) === '' ? {} : { code: text(search.code) }),
  component: lazyPage(() => import('../devices/page.tsx'), 'DevicePage'),
})

/** The pages before sign-in. */
export const signInRoutes = [login, enrol, signOut, secondFactor] as const
/** The pages of the signed-in person. */
export const accountRoutes = [settings, sessions, passkeys, machines, password, notifications, device] as const
