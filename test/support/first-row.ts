import type { Page } from 'playwright-core'

/** Runs in the page. */
const LOOK = `new MutationObserver((_, look) => {
  if (document.querySelector('main [data-row]') === null) return
  window.first_row_at = Date.now()
  look.disconnect()
}).observe(document, { childList: true, subtree: true })`

/** Watches reloads of a list: which paths were asked until its first row was in the page, by the browser's own clock. */
export const watchFirstRow = async (page: Page): Promise<(reload: () => Promise<unknown>) => Promise<string[]>> => {
  await page.addInitScript(LOOK)
  const session = await page.context().newCDPSession(page)
  await session.send('Network.enable')
  let asked: { path: string; at: number }[] = []
  session.on('Network.requestWillBeSent', ({ request, wallTime }) => {
    if (request.url.startsWith('http')) asked.push({ path: new URL(request.url).pathname, at: wallTime * 1000 })
  })
  return async (reload) => {
    asked = []
    await reload()
    const row = await page.waitForFunction('window.first_row_at')
    const at = Number(await row.jsonValue())
    return asked.filter((one) => one.at <= at).map(({ path }) => path)
  }
}
