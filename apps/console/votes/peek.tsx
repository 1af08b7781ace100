import { Suspense, useEffect, useState } from 'react'
import { createPortal } from 'react-dom'
import { display } from '../kit/prefs.ts'
import { lazyPart } from '../ui/lazy.ts'
import { ViewsRow } from '../views/row.tsx'

const UnreadBrief = lazyPart(() => import('./gate-brief.tsx').then((part) => ({ default: part.UnreadBrief })))

/** These load after the rows of the inbox, because they are not urgent. */
export const AfterRows = () => (
  <>
    <ViewsRow list="inbox" />
    <BriefBySpace />
  </>
)

/** Space on the link of a gate opens its brief at the end of its card, and closes it again. One is open at a time. */
const BriefBySpace = () => {
  const [link, setLink] = useState<HTMLAnchorElement>()
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      const { key, target } = event
      if (key !== ' ' || !display().shortcuts || !(target instanceof HTMLAnchorElement)) return
      if (!target.matches('.gate-card .card-link')) return
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
  const card = link?.closest('article')
  if (!link || !card) return null
  const [, , operation_id = '', , gate_id = ''] = link.pathname.split('/').map(decodeURIComponent)
  return createPortal(
    // Above the link that covers the card.
    <div className="relative z-1">
      <Suspense fallback={null}>
        <UnreadBrief key={link.pathname} operation_id={operation_id} gate_id={gate_id} />
      </Suspense>
    </div>,
    card,
  )
}
