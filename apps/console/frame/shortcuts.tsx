import { useNavigate } from '@tanstack/react-router'
import { Suspense, useEffect, useRef, useState } from 'react'
import { display } from '../kit/prefs.ts'
import { lazyPart } from '../ui/lazy.ts'

const KeyList = lazyPart(() => import('./key-list.tsx').then((part) => ({ default: part.KeyList })))
const PAIR_MS = 1000

/** Single-key navigation. No key works inside a field, a dialog or a menu, and none makes a decision. */
export const Shortcuts = () => {
  const [listed, setListed] = useState(false)
  const navigate = useNavigate()
  /** When `g` was pressed, by the keyboard's clock, because a busy page handles keys late. */
  const pending = useRef(-PAIR_MS)
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (!display().shortcuts || event.ctrlKey || event.metaKey || event.altKey || inField(event.target)) return
      if (event.timeStamp - pending.current < PAIR_MS) {
        pending.current = -PAIR_MS
        if (event.key === 'i') return void navigate({ to: '/inbox', search: { for: 'me' } })
        if (event.key === 'o') return void navigate({ to: '/operations', search: { tab: 'running', q: '' } })
        if (event.key === 'n') return void navigate({ to: '/intents', search: { whose: 'mine' } })
        if (event.key === 'f') return void navigate({ to: '/admin/freezes' })
        if (event.key === 'p') return void navigate({ to: '/admin/packs' })
        if (event.key === 'r')
          return void navigate({ to: '/resources', search: { type: '', region: '', health: '', q: '' } })
      }
      if (event.key === 'g') pending.current = event.timeStamp
      else if (event.key === '?') setListed(true)
      else if (event.key === 'n')
        void navigate({ to: '/new', search: { kind: 'change', type: '', procedure: '', resource: '' } })
      else if (event.key === '/') focusSearch(event)
      else if (event.key === 'j' || event.key === 'k') moveRow(event.key === 'j' ? 1 : -1)
      else if (event.key === '[' || event.key === ']') moveTab(event.key === ']' ? 1 : -1)
    }
    window.addEventListener('keydown', hear)
    return () => window.removeEventListener('keydown', hear)
  }, [navigate])
  if (!listed) return null
  return (
    <Suspense fallback={null}>
      <KeyList close={() => setListed(false)} />
    </Suspense>
  )
}

const inField = (target: EventTarget | null): boolean =>
  target instanceof Element &&
  target.closest('input, textarea, select, [contenteditable], [role=dialog], [role=menu], .graph') !== null

const focusSearch = (event: KeyboardEvent): void => {
  const field = document.querySelector<HTMLInputElement>('main input[type=search]')
  if (field === null) return
  event.preventDefault()
  field.focus()
}

/** Moves between the links of rows. */
const moveRow = (step: 1 | -1): void => {
  const rows = [...document.querySelectorAll<HTMLElement>('main [data-row]')]
  const at = rows.indexOf(document.activeElement as HTMLElement)
  rows[at === -1 ? 0 : Math.max(0, Math.min(rows.length - 1, at + step))]?.focus()
}

const moveTab = (step: 1 | -1): void => {
  const tabs = [...document.querySelectorAll<HTMLElement>('main .tabs a')]
  const at = tabs.findIndex((tab) => tab.hasAttribute('aria-current'))
  tabs[at + step]?.click()
}
