import type { QueryClient } from '@tanstack/react-query'
import {
  type AnyRoute,
  createRootRouteWithContext,
  createRoute,
  Outlet,
  type RouteComponent,
  redirect,
} from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { lazyPage } from '../frame/lazy-page.tsx'
import { Shell } from '../frame/shell.tsx'
import { Unreachable } from '../frame/unreachable.tsx'
import { isEnrolling, SessionAway, sessionPhase, startSession } from '../session/token.ts'
import { lazyPart } from '../ui/lazy.ts'

/** The list below the go-to field includes pages of every area. */
const Palette = lazyPart(() => import('../palette/list.tsx').then((part) => ({ default: part.Palette })))

export const root = createRootRouteWithContext<{ client: QueryClient }>()({ component: Outlet })

/** Runs before each page that needs a session. */
export const resumeSession = async ({ location }: { location: { href: string } }): Promise<void> => {
  const { name } = sessionPhase()
  if (name === 'signed_in' || name === 'ended') return
  const outcome = await startSession()
  if (outcome === 'ok') return
  if (outcome === 'over') throw redirect({ to: '/login', search: { next: location.href }, replace: true })
  throw new SessionAway(outcome)
}

/** The frame of every page that needs a session. */
export const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  beforeLoad: async (at) => {
    await resumeSession(at)
    if (isEnrolling()) throw redirect({ to: '/second-factor', search: { next: at.location.href }, replace: true })
  },
  component: () => <Shell Palette={Palette} />,
  errorComponent: Unreachable,
})

/** Makes the pages below a route that have neither search parameters nor a loader. */
export const pagesBelow =
  <Parent extends AnyRoute>(parent: Parent) =>
  <const Path extends string, Name extends string>(
    path: Path,
    load: () => Promise<{ [K in Name]: () => ReactNode }>,
    name: Name,
  ) =>
    createRoute({ getParentRoute: () => parent, path, component: lazyPage(load, name) as RouteComponent })
export const page = pagesBelow(shell)
