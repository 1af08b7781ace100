import { type ComponentType, Suspense, useEffect, useState } from 'react'
import { createPortal } from 'react-dom'
import { display } from '../kit/prefs.ts'
import { lazyPart } from '../ui/lazy.ts'
import { ViewsRow } from '../views/row.tsx'

const BRIEFS: Record<string, ComponentType<{ operation_id: string; id: string }> | undefined> = {
  gates: lazyPart(() => import('./gate.tsx').then((part) => ({ default: part.UnreadGate }))),
  patches: lazyPart(() => import('./patch.tsx').then((part) => ({ default: part.UnreadPatch }))),
  nodes: lazyPart(() => import('./node.tsx').then((part) => ({ default: part.UnreadNode }))),
}

/** These load after the rows of the inbox, because they are not urgent. */
export const AfterRows = () => (
  <>
    <ViewsRow list="inbox" />
    <BriefBySpace />
  </>
)

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
