import type { Page } from 'playwright-core'

/** Watches reloads of a list: which paths were asked until its first row was in the page, by the browser's own clock. */
export const watchFirstRow = async (page: Page): Promise<(reload: () => Promise<unknown>) => Promise<string[]>> => {
  await page.addInitScript(() => {
    const look = new MutationObserver(() => {
      if (document.querySelector('main [data-row]') === null) return
      Object.assign(window, { first_row_at: Date.now() })
      look.disconnect()
    })
    look.observe(document, { childList: true, subtree: true })
  })
  const session = await page.context().newCDPSession(page)
  await session.send('Network.enable')
  let asked: { path: string; at: number }[] = []
  session.on('Network.requestWillBeSent', ({ request, wallTime }) => {
    if (request.url.startsWith('http')) asked.push({ path: new URL(request.url).pathname, at: wallTime * 1000 })
  })
  return async (reload) => {
    asked = []
    await reload()
    const row = await page.waitForFunction(() => (window as { first_row_at?: number }).first_row_at)
    const at = (await row.jsonValue()) ?? 0
    return asked.filter((one) => one.at <= at).map(({ path }) => path)
  }
}
