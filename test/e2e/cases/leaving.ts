import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { confirm, dialogOf, PATIENCE_MS, press, stack, start, tabOf, takePictures } from '../desk.ts'

describe('a page with entries that were not sent', () => {
  it(
    'asks before it is left: a new change, a patch, and notification rules',
    async () => {
      const { url } = await start('left')
      const page = await tabOf('olga')
      const overview = page.getByRole('link', { name: 'Overview' })
      const forms = [
        [
          `${stack.gateway_url}/new?kind=change&type=infra.generic`,
          async () => {
            await page.getByLabel('Title').fill('Half a change')
            // Another choice stays on the page.
            const choice = page.getByLabel('Change, action or runbook')
            await choice.selectOption({ label: 'Rotate the certificate of a host' })
            await page.waitForURL(/procedure=fleet/)
          },
        ],
        [
          `${url}/patches/new`,
          async () => {
            await page.getByLabel('Step', { exact: true }).selectOption('task second')
            await press(page, 'Add to the patch')
          },
        ],
        [
          `${stack.gateway_url}/settings/notifications`,
          async () => void (await page.getByLabel('From risk').selectOption('high')),
        ],
      ] as const
      for (const [address, fill] of forms) {
        await page.goto(address)
        await page.getByRole('heading', { level: 1 }).waitFor()
        await fill()
        const there = page.url()
        await overview.click()
        await dialogOf(page).getByText('Your entries will be lost.').waitFor()
        expect(await accessibilityOf(page)).toEqual([])
        await takePictures(page, 'leaving')
        await confirm(page, 'Stay')
        await dialogOf(page).waitFor({ state: 'detached' })
        expect(page.url()).toBe(there)
        await overview.click()
        await confirm(page, 'Leave')
        await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
      }
      // Without entries it does not ask.
      await page.goto(`${stack.gateway_url}/new?kind=change&type=infra.generic`)
      await page.getByLabel('Title').waitFor()
      await overview.click()
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})
