import { useSyncExternalStore } from 'react'
import type { Zone } from './format.ts'

/** Display preferences of this browser's person, never data. theme.js reads the same key before the first paint. */
export type Display = {
  theme: 'system' | 'light' | 'dark'
  contrast: 'system' | 'more'
  density: 'comfortable' | 'compact'
  times: 'relative' | 'exact'
  zone: Zone
  shortcuts: boolean
  /** The three lines for newcomers in the inbox. */
  guide: boolean
}

const KEY = 'signalbox.display'
const DEFAULTS: Display = {
  theme: 'system',
  contrast: 'system',
  density: 'comfortable',
  times: 'relative',
  zone: 'utc',
  shortcuts: true,
  guide: true,
}
const listeners = new Set<() => void>()
let current = load()

export const display = (): Display => current

export const setDisplay = (change: Partial<Display>): void => {
  current = { ...current, ...change }
  localStorage.setItem(KEY, JSON.stringify(current))
  window.dispatchEvent(new Event('signalbox:display'))
  for (const listener of listeners) listener()
}

export const useDisplay = (): Display =>
  useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, display)

window.addEventListener('storage', (event) => {
  if (event.key !== KEY) return
  current = load()
  for (const listener of listeners) listener()
})

function load(): Display {
  try {
    return { ...DEFAULTS, ...(JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Display>) }
  } catch {
    return DEFAULTS
  }
}
