import { type ComponentType, lazy } from 'react'

/**
 * A part whose code comes when it is first shown. Without a network it comes with the network: React keeps the first
 * failure for good, so offline there must be none.
 */
// biome-ignore lint/suspicious/noExplicitAny: as React's own lazy
export const lazyPart = <T extends ComponentType<any>>(load: () => Promise<{ default: T }>) =>
  lazy(() => withNetwork(load))

const withNetwork = async <T>(load: () => Promise<T>): Promise<T> => {
  for (;;) {
    try {
      return await load()
    } catch (error) {
      if (navigator.onLine) throw error
      await new Promise((resolve) => window.addEventListener('online', resolve, { once: true }))
    }
  }
}
