import { lazyRouteComponent } from '@tanstack/react-router'
import { type ComponentType, createElement } from 'react'
import { t } from '../words/index.ts'

type Load<T> = () => Promise<{ default: T }>

/**
 * A part whose code loads on first display, or earlier by `preload`; then it needs no fallback, which React would keep
 * for 300 ms. A failed `preload` is forgotten: the display loads again. Offline that waits for the network, because its
 * failure is kept. If a release has replaced the code, the part says so, and the page keeps its fields.
 */
// biome-ignore lint/suspicious/noExplicitAny: as React's own lazy
export const lazyPart = <T extends ComponentType<any>>(load: Load<T>) => {
  const part = lazyRouteComponent(() => withNetwork(load))
  const { preload } = part
  part.preload = () =>
    load().then(
      async () => preload?.(),
      () => {},
    )
  return part
}

const withNetwork = <T>(load: Load<T>): Promise<{ default: T }> =>
  load().catch(async () => {
    if (navigator.onLine) return { default: Away as unknown as T }
    await new Promise((resolve) => window.addEventListener('online', resolve, { once: true }))
    return withNetwork(load)
  })

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
