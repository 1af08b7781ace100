import { lazyRouteComponent } from '@tanstack/react-router'
import { type ComponentType, createElement } from 'react'
import { t } from '../words/index.ts'

/**
 * A part whose code loads on first display, or earlier by `preload`; then it needs no fallback, which React would keep
 * for 300 ms. Offline it waits for the network: a first failure is kept forever. If a release has replaced the code, the
 * part says so, and the page keeps its fields.
 */
// biome-ignore lint/suspicious/noExplicitAny: as React's own lazy
export const lazyPart = <T extends ComponentType<any>>(load: () => Promise<{ default: T }>) =>
  lazyRouteComponent(() => withNetwork(load))

const withNetwork = async <T>(load: () => Promise<{ default: T }>): Promise<{ default: T }> => {
  for (;;) {
    try {
      return await load()
    } catch {
      if (navigator.onLine) return { default: Away as unknown as T }
      await new Promise((resolve) => window.addEventListener('online', resolve, { once: true }))
    }
  }
}

const Away = () =>
  createElement(
    'div',
    { className: 'banner', role: 'alert' },
    t.problem.code_away.text,
    createElement(
      'button',
      { type: 'button', className: 'button', onClick: () => location.reload() },
      t.connection.reload,
    ),
  )
