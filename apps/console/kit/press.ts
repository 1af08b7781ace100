import type { UseNavigateResult } from '@tanstack/react-router'
import { display, setDisplay } from './prefs.ts'

type Navigate = UseNavigateResult<string>
const PAIR_MS = 1000

/** When `g` was pressed, by the keyboard's clock, because a busy page handles keys late. */
let pending = -PAIR_MS

/** What a single key does; loaded later, because no page needs it to open. `list` opens the list of keys. */
export const press = (event: KeyboardEvent, navigate: Navigate, list: () => void): void => {
  const { key } = event
  if (event.timeStamp - pending < PAIR_MS) {
    pending = -PAIR_MS
    if (key === 'i') return void navigate({ to: '/inbox', search: { for: 'me' } })
    if (key === 'o') return void navigate({ to: '/operations', search: { tab: 'running', q: '' } })
    if (key === 'n') return void navigate({ to: '/intents', search: { whose: 'mine' } })
    if (key === 'f') return void navigate({ to: '/admin/freezes' })
    if (key === 'p') return void navigate({ to: '/admin/packs' })
    if (key === 'r') return void navigate({ to: '/resources', search: { type: '', region: '', health: '', q: '' } })
  }
  if (key === 'g') pending = event.timeStamp
  else if (key === '?') list()
  else if (key === 'n') void navigate({ to: '/new', search: { kind: 'change', type: '', procedure: '', resource: '' } })
  else if (key === 't') turnTimes()
  else if (key === 'j' || key === 'k') moveRow(key === 'j' ? 1 : -1)
  else if (key === '[' || key === ']') moveTab(key === ']' ? 1 : -1)
}

/** Exact times instead of relative ones, or the reverse: a tooltip reaches neither a keyboard nor a finger. */
const turnTimes = (): void => setDisplay({ times: display().times === 'exact' ? 'relative' : 'exact' })
window.addEventListener('click', ({ target }) => {
  if (target instanceof Element && target.closest('time') && !target.closest('a, button, label, summary')) turnTimes()
})

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
