import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { confirm, dialogOf, goByKeys, PATIENCE_MS, people, press, stack, tabOf, takePictures } from '../desk.ts'

type Calendar = { freezes: { title: string; put_by: string; applies: string; to: string }[] }
const freezes = async () => (await people.eva.get<Calendar>('/v1/calendar')).freezes

describe('a freeze', () => {
  it(
    'is found by the palette, created after its reach was shown, and ended only by its approvers',
    async () => {
      const page = await tabOf('olga')
      await page.goto(`${stack.gateway_url}/inbox`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.keyboard.press('Control+k')
      await page.keyboard.type('freez')
      // At once, before any answer: the first one opens once it is known.
      await page.keyboard.press('Enter')
      await page.getByText('No freeze is in force or planned.').waitFor()

      await press(page, 'New freeze')
      const dialog = dialogOf(page)
      await dialog.getByLabel('Title: why changes must stop').fill('Stock-taking in eu1')
      await dialog.getByLabel('Approver groups, by key').fill('netops')
      await dialog.getByLabel(/^Until/).fill('2099-01-01T00:00')
      await dialog.getByLabel('Expression (CEL)').fill('target.')
      // The server's own words.
      await dialog.getByText(/is not valid/).waitFor()
      await dialog.getByLabel('Expression (CEL)').fill("target.name == 'no-such-host'")
      await dialog.getByText('It covers no resource now.').waitFor()
      // Without a typed beginning it begins now.
      await dialog.getByText(/^From .*202\d, .*, until 1 Jan 2099, /).waitFor()
      expect(await freezes()).toEqual([])
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'freeze-new')
      await confirm(page, 'Create freeze')
      await page.getByRole('cell', { name: 'Stock-taking in eu1' }).waitFor()
      expect(await freezes()).toMatchObject([{ put_by: 'user:olga', applies: "target.name == 'no-such-host'" }])
      // She does not approve gates: the reason appears where others have the button.
      expect(await page.getByRole('button', { name: /^End/ }).count()).toBe(0)
      await page.getByText('This needs the permission gate:decide (role approver).').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'freezes')
      await page.close()

      const hers = await tabOf('eva')
      await hers.goto(`${stack.gateway_url}/inbox`)
      await hers.getByRole('heading', { level: 1 }).waitFor()
      await goByKeys(hers, 'f', '/admin/freezes')
      // First it loses most of its time; a time that is not complete cannot be sent.
      await hers.getByRole('button', { name: 'End: Stock-taking in eu1' }).click()
      await dialogOf(hers).getByLabel('It ends').selectOption('later')
      const shorten = dialogOf(hers).getByRole('button', { name: 'Shorten' })
      expect(await shorten.getAttribute('aria-disabled')).toBe('true')
      await dialogOf(hers)
        .getByLabel(/^New end/)
        .fill('2099-02-01T00:00')
      await dialogOf(hers)
        .getByText('Choose a time after its beginning and before its planned end, not in the past.')
        .waitFor()
      await dialogOf(hers)
        .getByLabel(/^New end/)
        .fill('2098-01-01T00:00')
      await dialogOf(hers).getByText('The freeze then ends at').waitFor()
      expect(await accessibilityOf(hers)).toEqual([])
      await takePictures(hers, 'freeze-shorten')
      await shorten.click()
      await until(async () => (await freezes())[0]?.to.startsWith('2098-01-01'), { what: 'the earlier end' })
      await dialogOf(hers).waitFor({ state: 'detached' })
      await hers.getByRole('button', { name: 'End: Stock-taking in eu1' }).click()
      await dialogOf(hers).getByText('Nodes that it held start by themselves.').waitFor()
      expect(await accessibilityOf(hers)).toEqual([])
      await takePictures(hers, 'freeze-end')
      await confirm(hers, 'End')
      await hers.getByText('No freeze is in force or planned.').waitFor()
      expect(await freezes()).toEqual([])
      await hers.close()
    },
    PATIENCE_MS,
  )
})

describe('packs', () => {
  it(
    'are listed with their versions, procedures and use, and a procedure leads to a new intent',
    async () => {
      const page = await tabOf('olga')
      await page.goto(`${stack.gateway_url}/admin/packs`)
      const fleet = page.getByRole('region', { name: 'fleet' })
      await fleet.getByText('Current: new plans use it').waitFor()
      await fleet
        .getByRole('row', { name: /Roll out a release/ })
        .getByText('drain http', { exact: true })
        .waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'packs')
      await fleet.getByRole('link', { name: 'Rotate the certificate of a host' }).click()
      await page.waitForURL(/\/new\?.*procedure=fleet(%2F|\/)rotate/)
      await page.getByRole('heading', { level: 1, name: 'New' }).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})
