import './styles/base.css'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { nextPath } from '../shared/contracts/client/next-path.ts'
import { applyLive } from './api/apply.ts'
import { ProblemError } from './api/client.ts'
import { startLive } from './api/live.ts'
import './kit/install.ts'
import { forgetOpened } from './kit/recent.ts'
import { createConsoleRouter } from './routes.tsx'
import { onPhase, sessionPhase } from './session/token.ts'
import { t } from './words/index.ts'

const TRIES = 3

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5000,
      refetchOnWindowFocus: false,
      // Retries only safe reads: after no answer, or an outage that allows it.
      retry: (failures, thrown) =>
        failures < TRIES &&
        thrown instanceof ProblemError &&
        (thrown.problem.status === 0 || thrown.problem.status === 503),
      retryDelay: (failures, thrown) =>
        (thrown instanceof ProblemError && thrown.problem.retry_after_ms) || 500 * 2 ** failures,
    },
  },
})
const isReadable = (path: string): boolean => {
  try {
    return decodeURIComponent(path) !== ''
  } catch {
    return false
  }
}
// The router has no frame around an address that cannot be decoded: it loses its percent signs.
if (!isReadable(location.pathname)) history.replaceState(null, '', location.pathname.replaceAll('%', ''))
const router = createConsoleRouter(client)

const followPhase = (): void => {
  const phase = sessionPhase()
  if (phase.name === 'signed_in') {
    startLive()
    followPush()
    const { pathname, search } = router.state.location
    if (pathname === '/login') {
      const next = nextPath((search as { next?: unknown }).next, location.origin)
      // On a new device, the first page already looks as on the person's other devices.
      void import('./queries/kept.ts')
        .then(({ takeKept }) => takeKept())
        .catch(() => false)
        .then((foreign) => (foreign ? location.replace(next) : router.history.replace(next)))
    }
  }
  if (phase.name === 'signed_out') {
    client.clear()
    forgetOpened()
    if (phase.reason !== 'none') followPush()
    // Who signed out has left the page; anyone else comes back to it.
    const away = phase.reason === 'signed_out' || phase.reason === 'not_told'
    void router.navigate({ to: '/login', search: away ? {} : { next: router.state.location.href }, replace: true })
  }
}

/** Moves a browser's push subscription to the new session, and removes it after a sign-out. */
const followPush = () =>
  void navigator.serviceWorker
    ?.getRegistration()
    .then((worker) => worker && import('./notifications/push.ts').then((push) => push.followPush()))
    .catch(() => {})

onPhase(followPhase)
applyLive(client)
// A page from the back-forward cache may belong to a session that has ended.
window.addEventListener('pageshow', (event) => event.persisted && location.reload())

const place = document.getElementById('root')
if (place !== null) {
  createRoot(place).render(
    <StrictMode>
      {window.isSecureContext ? (
        <QueryClientProvider client={client}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      ) : (
        <p className="p-6">{t.problem.insecure}</p>
      )}
    </StrictMode>,
  )
}
