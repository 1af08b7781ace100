import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../frame/lazy-page.tsx'
import { resumeSession, root, shell } from './root.tsx'
import { text, texts } from './search.ts'

const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  validateSearch: (search) => texts(search, 'next', 'error'),
  component: lazyPage(() => import('../account/login.tsx'), 'Login'),
})

const enrol = createRoute({
  getParentRoute: () => root,
  path: '/enrol',
  component: lazyPage(() => import('../account/enrol.tsx'), 'EnrolPage'),
})

const secondFactor = createRoute({
  getParentRoute: () => root,
  path: '/second-factor',
  validateSearch: (search) => texts(search, 'next'),
  beforeLoad: resumeSession,
  component: lazyPage(() => import('../account/factors/first.tsx'), 'FirstFactorPage'),
})

const settings = createRoute({
  getParentRoute: () => shell,
  path: '/settings/display',
  component: lazyPage(() => import('../account/display.tsx'), 'DisplayPage'),
})

const sessions = createRoute({
  getParentRoute: () => shell,
  path: '/settings/sessions',
  component: lazyPage(() => import('../account/sessions.tsx'), 'SessionsPage'),
})

const passkeys = createRoute({
  getParentRoute: () => shell,
  path: '/settings/passkeys',
  component: lazyPage(() => import('../account/factors/passkeys.tsx'), 'PasskeysPage'),
})

const password = createRoute({
  getParentRoute: () => shell,
  path: '/settings/password',
  component: lazyPage(() => import('../account/password.tsx'), 'PasswordPage'),
})

const notifications = createRoute({
  getParentRoute: () => shell,
  path: '/settings/notifications',
  component: lazyPage(() => import('../notifications/page.tsx'), 'NotificationsPage'),
})

const device = createRoute({
  getParentRoute: () => shell,
  path: '/device',
  validateSearch: (search): { code?: string } => (text(search.code) === '' ? {} : { code: text(search.code) }),
  component: lazyPage(() => import('../devices/page.tsx'), 'DevicePage'),
})

/** The pages before sign-in. */
export const signInRoutes = [login, enrol, secondFactor] as const
/** The pages of the signed-in person. */
export const accountRoutes = [settings, sessions, passkeys, password, notifications, device] as const
