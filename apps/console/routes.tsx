import type { QueryClient } from '@tanstack/react-query'
import { type AnyRoute, createRouter } from '@tanstack/react-router'
import { BrokenPage, NotFound } from './frame/lazy-page.tsx'
import { accountRoutes, signInRoutes } from './routes/account.tsx'
import { adminRoutes } from './routes/admin.tsx'
import { catalogRoutes } from './routes/catalog.tsx'
import { homeRoutes } from './routes/home.tsx'
import { intentRoutes } from './routes/intents.tsx'
import { operationRoutes } from './routes/operations.tsx'
import { root, shell } from './routes/root.tsx'
import { Loading, Page } from './ui/page.tsx'

/** Every path of the console by area. The URL is the view: a path and the schema of its search parameters. */
const routeTree = root.addChildren([
  ...signInRoutes,
  shell.addChildren([
    ...homeRoutes,
    ...operationRoutes,
    ...intentRoutes,
    ...catalogRoutes,
    ...adminRoutes,
    ...accountRoutes,
  ]),
])

export const createConsoleRouter = (client: QueryClient) => {
  const router = createRouter({
    routeTree,
    context: { client },
    defaultPreload: 'intent',
    defaultPreloadStaleTime: 0,
    scrollRestoration: false,
    // A page about another object is another page: no dialog and no typed text moves over to it.
    defaultRemountDeps: ({ params }) => params,
    defaultPendingMs: 200,
    defaultPendingComponent: () => (
      <Page>
        <Loading />
      </Page>
    ),
    defaultNotFoundComponent: NotFound,
    defaultErrorComponent: BrokenPage,
  })
  for (const { options } of Object.values<AnyRoute>(router.routesById)) {
    const read = options.validateSearch
    if (typeof read === 'function')
      options.validateSearch = (search: object) => ({ ...without(search), ...read(search) })
  }
  return router
}

/** Unsets all parameters: the router keeps those that a reader leaves out, but a page sees only its reader's. */
const without = (search: object) => Object.fromEntries(Object.keys(search).map((name) => [name, undefined]))

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createConsoleRouter>
  }
}
