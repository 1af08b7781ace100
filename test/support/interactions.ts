import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'

/** The browser reports no interaction shorter than this. */
const SHORTEST_MS = 16

export const slowDown = async (page: Page, rate: number): Promise<void> => {
  const session = await page.context().newCDPSession(page)
  await session.send('Emulation.setCPUThrottlingRate', { rate })
}

/**
 * Times from input to the next paint, in ms: call the result with acts of one interaction each. Each act gets the time
 * to end before the next begins.
 */
export const watchInteractions = async (page: Page) => {
  await page.evaluate(`void (globalThis.took = new Map(), new PerformanceObserver((list) => {
    for (const { interactionId, duration } of list.getEntries())
      if (interactionId) took.set(interactionId, Math.max(took.get(interactionId) ?? 0, duration))
  }).observe({ type: 'event', durationThreshold: ${SHORTEST_MS} }))`)
  return async (acts: (() => Promise<unknown>)[], rest_ms = 150): Promise<number[]> => {
    await page.evaluate('took.clear()')
    for (const act of acts) {
      await act()
      await delay(rest_ms)
    }
    await delay(500)
    const took = await page.evaluate<number[]>('[...took.values()]')
    while (took.length < acts.length) took.push(SHORTEST_MS)
    return took
  }
}
