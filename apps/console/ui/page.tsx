import { useQuery } from '@tanstack/react-query'
import { useLocation, useMatch } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { shown } from '../kit/format.ts'
import { markWaiting } from '../kit/mark.ts'
import { noteOpened } from '../kit/recent.ts'
import { meQuery, waitingFor } from '../queries/me.ts'
import { sessionPhase } from '../session/token.ts'
import { t } from '../words/index.ts'

/** The path of the last heading, and how many there were: at the first, the browser has put the focus. */
let lastPath: string | undefined
let paths = 0

/** The only `h1` of the page. It takes the focus after a change of page, so that a screen reader announces the page. */
export const Heading = ({ children, title }: { children: React.ReactNode; title: string }) => {
  const heading = useRef<HTMLHeadingElement>(null)
  const { pathname, href } = useLocation()
  const inside = sessionPhase().name === 'signed_in'
  const counts = useQuery({ ...meQuery(), enabled: inside }).data?.counts
  const waiting = counts ? waitingFor(counts) : 0
  useEffect(() => {
    document.title = t.title(title, waiting)
  }, [title, waiting])
  useEffect(() => markWaiting(waiting), [waiting])
  useEffect(() => {
    // The page to sign in is still shown when the session begins.
    if (inside && pathname !== '/login') noteOpened(title, { href, pathname })
  }, [inside, title, href, pathname])
  // Its own path: the location is ahead of the page, whose heading would take the focus with it.
  const path = useMatch({ strict: false, shouldThrow: false, select: (match) => match.pathname })
  useEffect(() => {
    const moved = lastPath !== path
    lastPath = path
    if (moved) paths += 1
    // A later heading of the same page takes it too, but from no field: the palette may be open.
    if (paths > 1 && (moved || !document.activeElement?.matches('input,textarea,select')))
      heading.current?.focus({ preventScroll: true })
  }, [path])
  return (
    <h1 ref={heading} tabIndex={-1} className="min-w-0 text-h1 font-semibold wrap-anywhere">
      {typeof children === 'string' ? shown(children) : children}
    </h1>
  )
}

/** The name of a page and one sentence about it. */
export const PageHead = ({ title, note }: { title: string; note: string }) => (
  <div>
    <Heading title={title}>{title}</Heading>
    <p className="text-muted">{note}</p>
  </div>
)

export const Page = ({ children, wide = false }: { children: React.ReactNode; wide?: boolean }) => (
  <div className={`mx-auto flex w-full flex-col gap-4 p-4 sm:p-6 ${wide ? '' : 'max-w-page'}`}>{children}</div>
)

/** Gray blocks of about the final size, shown after 200 ms. */
export const Loading = ({ rows = 3 }: { rows?: number }) => (
  <div className="late flex flex-col gap-3" role="status">
    <span className="sr-only">{t.loading}</span>
    {Array.from({ length: rows }, (_, at) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: placeholders have no identity
      <div key={at} className="block h-16" />
    ))}
  </div>
)

export const Empty = ({ children, next }: { children: React.ReactNode; next?: React.ReactNode }) => (
  <div className="flex flex-col items-center gap-3 px-4 py-12 text-center text-muted">
    <p>{children}</p>
    {next}
  </div>
)
