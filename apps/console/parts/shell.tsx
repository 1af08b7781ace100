import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { Boxes, Ellipsis, Goal, HeartPulse, Inbox, Network, Plug, ScrollText, Workflow } from 'lucide-react'
import { lazy, Suspense, useEffect, useState } from 'react'
import { clockTime, zoneWord } from '../api/format.ts'
import { usePhase, useTopic } from '../api/hooks.ts'
import { useDisplay } from '../api/prefs.ts'
import { meQuery } from '../api/queries.ts'
import { t } from '../i18n/index.ts'
import { ConnectionBanner, ConnectionWord } from './connection.tsx'
import { EnvironmentBadge } from './environment-badge.tsx'
import { GoTo } from './go-to.tsx'
import { Shortcuts } from './shortcuts.tsx'
import { useNow } from './time-text.tsx'
import { UserMenu } from './user-menu.tsx'

const SessionDialog = lazy(() => import('./session-dialog.tsx').then((part) => ({ default: part.SessionDialog })))

/** What every signed-in page stands in: skip link, top bar, navigation, banner, and the dialog of an ended session. */
export const Shell = () => {
  useTopic('me')
  useTopic('inbox')
  const phase = usePhase()
  return (
    <>
      <a href="#main" className="skip button main">
        {t.skip}
      </a>
      <TopBar />
      <div className="frame">
        <Navigation />
        <main id="main" tabIndex={-1} className="min-w-0 flex-1 max-sm:pb-16">
          <ConnectionBanner />
          <Outlet />
        </main>
      </div>
      <Shortcuts />
      {phase.name === 'ended' ? (
        <Suspense fallback={null}>
          <SessionDialog />
        </Suspense>
      ) : null}
    </>
  )
}

const TopBar = () => (
  <header className="topbar">
    <Link
      to="/inbox"
      search={{ for: 'me' }}
      className="flex min-h-8 items-center gap-2 font-semibold text-text no-underline"
    >
      <Mark />
      <span className="max-sm:sr-only">{t.product}</span>
    </Link>
    <EnvironmentBadge />
    <GoTo />
    <Clock />
    <ConnectionWord />
    <UserMenu />
  </header>
)

export const Mark = () => (
  <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true" className="text-accent">
    <rect width="32" height="32" rx="7" fill="currentColor" />
    <path d="M9 25V7" stroke="var(--surface)" strokeWidth="3" strokeLinecap="round" />
    <path d="M9 9h11l4 4-4 4H9z" fill="var(--surface)" />
  </svg>
)

const Clock = () => {
  const now = useNow()
  const { zone } = useDisplay()
  return (
    <span className="text-table text-muted tabular-nums max-md:hidden">
      {clockTime(now, zone)} {zoneWord(now, zone)}
    </span>
  )
}

const Navigation = () => {
  const waiting = useQuery(meQuery()).data?.counts.gates_mine ?? 0
  const { pathname } = useLocation()
  const [more, setMore] = useState(false)
  // biome-ignore lint/correctness/useExhaustiveDependencies: whoever has gone somewhere needs the rest no longer
  useEffect(() => setMore(false), [pathname])
  return (
    <nav aria-label={t.nav.main} className="nav" data-more={more}>
      <ul>
        <li>
          <Link to="/inbox" search={{ for: 'me' }} activeOptions={{ includeSearch: false }} title={t.nav.inbox}>
            <Inbox size={18} aria-hidden="true" />
            <span className="word">{t.nav.inbox}</span>
            {waiting > 0 ? (
              <span className="count">
                <span aria-hidden="true">{waiting}</span>
                <span className="sr-only">{t.nav.waiting(waiting)}</span>
              </span>
            ) : null}
          </Link>
        </li>
        <li>
          <Link
            to="/operations"
            search={{ tab: 'running', q: '' }}
            activeOptions={{ includeSearch: false }}
            title={t.nav.operations}
          >
            <Workflow size={18} aria-hidden="true" />
            <span className="word">{t.nav.operations}</span>
          </Link>
        </li>
        <li className="further">
          <Link to="/intents" search={{ whose: 'mine' }} activeOptions={{ includeSearch: false }} title={t.nav.intents}>
            <Goal size={18} aria-hidden="true" />
            <span className="word">{t.nav.intents}</span>
          </Link>
        </li>
        <li>
          <Link
            to="/resources"
            search={{ type: '', region: '', health: '', q: '' }}
            activeOptions={{ includeSearch: false }}
            title={t.nav.resources}
          >
            <Boxes size={18} aria-hidden="true" />
            <span className="word">{t.nav.resources}</span>
          </Link>
        </li>
        <li className="further">
          <Link to="/topology" activeOptions={{ includeSearch: false }} title={t.nav.topology}>
            <Network size={18} aria-hidden="true" />
            <span className="word">{t.nav.topology}</span>
          </Link>
        </li>
        <li className="further">
          <Link to="/capabilities" activeOptions={{ includeSearch: false }} title={t.nav.capabilities}>
            <Plug size={18} aria-hidden="true" />
            <span className="word">{t.nav.capabilities}</span>
          </Link>
        </li>
        <li className="further">
          <Link to="/health" title={t.nav.health}>
            <HeartPulse size={18} aria-hidden="true" />
            <span className="word">{t.nav.health}</span>
          </Link>
        </li>
        <li className="further">
          <Link
            to="/audit"
            search={{ source: 'operations', actor: '', action: '', object: '', from: '', to: '' }}
            activeOptions={{ includeSearch: false }}
            title={t.nav.audit}
          >
            <ScrollText size={18} aria-hidden="true" />
            <span className="word">{t.nav.audit}</span>
          </Link>
        </li>
        <li className="phone">
          <button type="button" aria-expanded={more} onClick={() => setMore(!more)}>
            <Ellipsis size={18} aria-hidden="true" />
            <span className="word">{t.nav.more}</span>
          </button>
        </li>
      </ul>
    </nav>
  )
}
