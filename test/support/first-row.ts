import type { Page } from 'playwright-core'
import { until } from './until.ts'

/** Runs in the page. */
const LOOK = `new MutationObserver((_, look) => {
  if (document.querySelector('main [data-row]') === null) return
  window.first_row_at = Date.now()
  look.disconnect()
}).observe(document, { childList: true, subtree: true })`

/** Watches reloads of a list: the paths requested until its first row was in the page, by the browser's own clock. */
export const watchFirstRow = async (page: Page): Promise<(reload: () => Promise<unknown>) => Promise<string[]>> => {
  await page.addInitScript(LOOK)
  const session = await page.context().newCDPSession(page)
  await session.send('Network.enable')
  let asked: { path: string; at: number; loaderId: string }[] = []
  let newest = ''
  session.on('Network.requestWillBeSent', ({ request, wallTime, loaderId, type }) => {
    if (type === 'Document') newest = loaderId
    if (request.url.startsWith('http'))
      asked.push({ path: new URL(request.url).pathname, at: wallTime * 1000, loaderId })
  })
  return async (reload) => {
    asked = []
    await reload()
    // The page's own policy forbids evaluating text in it; the browser may do so on our behalf.
    const at = await until(() => page.evaluate<number | undefined>('window.first_row_at').catch(() => undefined), {
      what: 'the first row',
    })
    // The page before may still ask for something.
    return asked.filter((one) => one.loaderId === newest && one.at <= at).map(({ path }) => path)
  }
}
