import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'

/** The browser reports no interaction shorter than this. */
const SHORTEST_MS = 16
const REST_MS = 150

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
  return async (acts: (() => Promise<unknown>)[], rest_ms = REST_MS): Promise<number[]> => {
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

/**
 * CPU of the page's own thread from an act until the next paint, in ms, for each act: how soon an input would be
 * answered if the page had a core of its own, which a test beside others never has. Not beside `slowDown`, which keeps
 * the thread busy itself.
 */
export const cpuOf = async (page: Page, acts: (() => Promise<unknown>)[], rest_ms = REST_MS): Promise<number[]> => {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable')
  const spent = async () => {
    const { metrics } = await session.send('Performance.getMetrics')
    return 1000 * (metrics.find(({ name }) => name === 'ThreadTime')?.value ?? Number.NaN)
  }
  const took: number[] = []
  for (const act of acts) {
    const before = await spent()
    await act()
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done)))')
    took.push((await spent()) - before)
    await delay(rest_ms)
  }
  return took
}
