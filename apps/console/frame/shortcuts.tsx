import { useNavigate } from '@tanstack/react-router'
import { Suspense, useEffect, useState } from 'react'
import { display } from '../kit/prefs.ts'
import { lazyPart } from '../ui/lazy.ts'

const KeyList = lazyPart(() => import('./key-list.tsx').then((part) => ({ default: part.KeyList })))

const loadPress = () => import('../kit/press.ts')
const ignore = () => {}
const AFTER_PAGE_MS = 3000

/** Single-key navigation. No key works inside a field, a dialog or a menu, and none makes a decision. */
export const Shortcuts = () => {
  const [listed, setListed] = useState(false)
  const navigate = useNavigate()
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (!display().shortcuts || event.ctrlKey || event.metaKey || event.altKey || inField(event.target)) return
      // At once: the next keys belong into the field.
      if (event.key === '/') focusSearch(event)
      else void loadPress().then(({ press }) => press(event, navigate, () => setListed(true)), ignore)
    }
    window.addEventListener('keydown', hear)
    const timer = setTimeout(() => void loadPress().catch(ignore), AFTER_PAGE_MS)
    return () => {
      window.removeEventListener('keydown', hear)
      clearTimeout(timer)
    }
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
