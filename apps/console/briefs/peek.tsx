import { useQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { type ComponentType, Suspense, useEffect, useState } from 'react'
import { createPortal } from 'react-dom'
import { display } from '../kit/prefs.ts'
import { meQuery, waitingQuery } from '../queries/me.ts'
import { lazyPart } from '../ui/lazy.ts'
import { ViewsRow } from '../views/row.tsx'
import { tListed } from '../words/frame/inbox-parts.ts'

const BRIEFS: Record<string, ComponentType<{ operation_id: string; id: string }> | undefined> = {
  gates: lazyPart(() => import('./gate.tsx').then((part) => ({ default: part.UnreadGate }))),
  patches: lazyPart(() => import('./patch.tsx').then((part) => ({ default: part.UnreadPatch }))),
  nodes: lazyPart(() => import('./node.tsx').then((part) => ({ default: part.UnreadNode }))),
}

/** These load after the rows of the inbox, because they are not urgent. */
export const AfterRows = () => (
  <>
    <ViewsRow list="inbox" />
    <NotListed />
    <BriefBySpace />
  </>
)

/** The server lists as many patches and failures, the oldest ones. */
const MOST_LISTED = 100

/** Which patches and failures are left out of a long list. Only those of this person are counted. */
const NotListed = () => {
  const whose = useSearch({ from: '/shell/inbox' }).for
  const { patches = [], failures = [] } = useQuery(waitingQuery(whose)).data ?? {}
  const counts = useQuery(meQuery()).data?.counts
  const all = whose === 'me' ? counts : undefined
  const isCut = (listed: number, of = Number.POSITIVE_INFINITY) => listed >= MOST_LISTED && of > listed
  return (
    <>
      {isCut(patches.length, all?.patches_mine) ? (
        <p className="text-muted">{tListed.patches(patches.length, all?.patches_mine)}</p>
      ) : null}
      {isCut(failures.length, all?.failures_mine) ? (
        <p className="text-muted">{tListed.failures(failures.length, all?.failures_mine)}</p>
      ) : null}
    </>
  )
}

/** Space on the link of a gate, a patch or a failed node opens its brief below, and closes it again. One is open at a time. */
const BriefBySpace = () => {
  const [link, setLink] = useState<HTMLAnchorElement>()
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      const { key, target } = event
      if (key !== ' ' || !display().shortcuts || !(target instanceof HTMLAnchorElement)) return
      if (briefOf(target) === undefined) return
      event.preventDefault()
      setLink((before) => (before === target ? undefined : target))
    }
    window.addEventListener('keydown', hear)
    return () => window.removeEventListener('keydown', hear)
  }, [])
  useEffect(() => {
    link?.setAttribute('aria-expanded', 'true')
    return () => link?.removeAttribute('aria-expanded')
  }, [link])
  const opened = link && briefOf(link)
  if (!opened) return null
  const { Brief, place, ...named } = opened
  return createPortal(
    // Above the link that covers a card.
    <div className="relative z-1 w-full" data-brief="">
      <Suspense fallback={null}>
        <Brief key={link.pathname} {...named} />
      </Suspense>
    </div>,
    place,
  )
}

/** The brief of the object that a link of the inbox leads to, and the card or line of the link. Links in a brief have none. */
const briefOf = (link: HTMLAnchorElement) => {
  const place = link.closest('[data-brief]') ? null : link.closest('.gate-card, [data-lines] > li')
  const [, , operation_id = '', noun = '', id = ''] = link.pathname.split('/')
  const Brief = BRIEFS[noun]
  return place && Brief ? { Brief, place, operation_id, id: decodeURIComponent(id) } : undefined
}
