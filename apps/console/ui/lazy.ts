import { type ComponentType, lazy } from 'react'

/** A part whose code loads on first display. Offline it waits for the network: React keeps a first failure forever. */
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
