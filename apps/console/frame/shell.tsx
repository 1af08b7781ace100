import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { Ellipsis } from 'lucide-react'
import { Suspense, useEffect, useState } from 'react'
import { usePhase, useTopic } from '../api/hooks.ts'
import { useRecorded } from '../api/recorded.ts'
import { clockTime, fullTime, zoneWord } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
import { meQuery, waitingFor } from '../queries/me.ts'
import { lazyPart } from '../ui/lazy.ts'
import { useNow } from '../values/time.tsx'
import { t } from '../words/index.ts'
import { EnvironmentBadge } from './badge.tsx'
import { ConnectionBanner, ConnectionWord } from './connection.tsx'
import { GoTo, type PaletteList } from './go-to.tsx'
import { mayRead, PLACES } from './places.ts'
import { Shortcuts } from './shortcuts.tsx'
import { UserMenu } from './user-menu.tsx'

const SessionDialog = lazyPart(() => import('./session-dialog.tsx').then((part) => ({ default: part.SessionDialog })))

const LateRefusals = lazyPart(() => import('../ui/late.tsx').then((part) => ({ default: part.LateRefusals })))

/** The frame of every signed-in page: skip link, top bar, navigation, banner, and the dialog for an ended session. */
export const Shell = ({ Palette }: { Palette: PaletteList }) => {
  useTopic('me')
  useTopic('inbox')
  const phase = usePhase()
  const recorded = useRecorded()
  return (
    <>
      <a href="#main" className="skip button main">
        {t.skip}
      </a>
      <TopBar Palette={Palette} />
      <div className="frame">
        <Navigation />
        <main id="main" tabIndex={-1} className="min-w-0 flex-1 max-sm:pb-16">
          <ConnectionBanner />
          <div role="status">
            {recorded.length > 0 ? (
              <Suspense fallback={null}>
                <LateRefusals recorded={recorded} />
              </Suspense>
            ) : null}
          </div>
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

const TopBar = ({ Palette }: { Palette: PaletteList }) => (
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
    <GoTo Palette={Palette} />
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
    <span className="text-table text-muted tabular-nums max-md:hidden print:inline">
      <span className="print:hidden">
        {clockTime(now, zone)} {zoneWord(now, zone)}
      </span>
      <span className="hidden print:inline">{fullTime(now, zone)}</span>
    </span>
  )
}

const Navigation = () => {
  const me = useQuery(meQuery()).data
  const { pathname } = useLocation()
  const [more, setMore] = useState(false)
  // biome-ignore lint/correctness/useExhaustiveDependencies: whoever has gone somewhere needs the rest no longer
  useEffect(() => setMore(false), [pathname])
  return (
    <nav aria-label={t.nav.main} className="nav" data-more={more}>
      <ul>
        {PLACES.filter(({ reads }) => mayRead(me, reads)).map(({ link, word, Icon, further }) => (
          <li key={link.to} className={further ? 'further' : undefined}>
            <Link {...link} activeOptions={{ includeSearch: false }} title={word}>
              <Icon size={18} aria-hidden="true" />
              <span className="word">{word}</span>
              {link.to === '/inbox' ? <Waiting count={me ? waitingFor(me.counts) : 0} /> : null}
            </Link>
          </li>
        ))}
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

const Waiting = ({ count }: { count: number }) =>
  count === 0 ? null : (
    <span className="count">
      <span aria-hidden="true">{count}</span>
      <span className="sr-only">{t.nav.waiting(count)}</span>
    </span>
  )
