import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { confirm, dialogOf, PATIENCE_MS, press, sitDown, stack, start, tabOf, takePictures } from '../desk.ts'

describe('a saved view', () => {
  it(
    'keeps the filters of a list, opens from the list and from Ctrl-K, and takes new filters or a new name',
    async () => {
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/resources?health=unhealthy`)
      await press(page, 'Save view')
      const name = dialogOf(page).getByLabel('Name')
      expect(await accessibilityOf(page)).toEqual([])
      await name.fill('Broken things')
      await takePictures(page, 'view-save')
      await confirm(page, 'Save view')
      const views = page.getByRole('navigation', { name: 'Saved views' })
      const link = views.getByRole('link', { name: 'Broken things' })
      await link.waitFor()
      expect(await link.getAttribute('aria-current')).toBe('page')
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'views')

      await page.goto(`${stack.gateway_url}/resources?health=degraded`)
      await link.waitFor()
      expect(await link.getAttribute('aria-current')).toBe(null)
      await press(page, 'Save view')
      await name.fill('broken THINGS')
      await dialogOf(page).getByText('This replaces the filters of Broken things.').waitFor()
      await confirm(page, 'Replace view')
      await page.goto(`${stack.gateway_url}/operations?tab=failed`)
      await press(page, 'Save view')
      await name.fill('Failed ones')
      await confirm(page, 'Save view')
      await views.getByRole('link', { name: 'Failed ones' }).waitFor()

      await page.keyboard.press('Control+k')
      await page.keyboard.type('broken')
      const option = page.getByRole('option', { name: 'Broken things view of resources' })
      await option.waitFor()
      await takePictures(page, 'view-go-to')
      await page.keyboard.press('Enter')
      await page.waitForURL(/\/resources\?.*health=degraded/)
      await page.getByRole('heading', { level: 1, name: 'Resources' }).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'keeps the filters of operations: who requested them, their kind, age, environment and resource',
    async () => {
      await start('filtered by many')
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/operations?tab=all&kind=graph&by=olga&age=day`)
      await page.getByRole('link', { name: 'filtered by many' }).waitFor()
      await page.getByLabel('Requester, or me').fill('me')
      await page.getByText('No operations match.').waitFor()
      await page.waitForURL(/by=me/)
      await page.getByLabel('Requester, or me').fill('OLGA')
      await page.getByRole('link', { name: 'filtered by many' }).waitFor()
      await page.getByLabel('Kind').selectOption('Runbook')
      await page.getByText('No operations match.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'operations-filters')
      await press(page, 'Save view')
      await dialogOf(page).getByLabel('Name').fill('Runbooks by olga')
      await confirm(page, 'Save view')
      await page.getByRole('link', { name: 'Clear filters' }).click()
      await page.getByRole('link', { name: 'filtered by many' }).waitFor()
      await page.getByRole('link', { name: 'Runbooks by olga' }).click()
      await page.waitForURL(/kind=runbook.*by=OLGA|by=OLGA.*kind=runbook/)
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'is shared with a group: its members open it, and only its owner changes it',
    async () => {
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/resources?health=maintenance`)
      await press(page, 'Save view')
      await dialogOf(page).getByLabel('Name').fill('In repair')
      await dialogOf(page).getByLabel('Shown to').selectOption('netops')
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'view-share')
      await confirm(page, 'Save view')
      await page.getByRole('link', { name: 'In repair · netops' }).waitFor()

      const { context, page: other } = await sitDown('otto')
      await other.goto(`${stack.gateway_url}/resources`)
      await other.getByRole('link', { name: 'In repair · netops' }).click()
      await other.waitForURL(/health=maintenance/)
      expect(await other.getByRole('button', { name: /In repair|Save view/ }).count()).toBe(0)
      expect(await accessibilityOf(other)).toEqual([])
      await press(page, 'Change In repair')
      await dialogOf(page).getByLabel('Shown to').selectOption('Only me')
      await confirm(page, 'Change view')
      await page.getByRole('link', { name: 'In repair', exact: true }).waitFor()
      await other.reload()
      await other.getByRole('heading', { level: 1, name: 'Resources' }).waitFor()
      await other.getByRole('link', { name: 'In repair · netops' }).waitFor({ state: 'detached' })
      await context.close()
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'that another tab has renamed is not deleted unseen, and is finally gone from both',
    async () => {
      const [left, right] = [await tabOf('eva'), await tabOf('eva')]
      for (const page of [left, right]) await page.goto(`${stack.gateway_url}/inbox?for=all`)
      await press(left, 'Save view')
      await dialogOf(left).getByLabel('Name').fill('Everything')
      await confirm(left, 'Save view')
      await left.getByRole('link', { name: 'Everything' }).waitFor()
      await right.reload()
      await press(right, 'Delete Everything')
      await press(left, 'Change Everything')
      await dialogOf(left).getByLabel('Name').fill('All of it')
      await confirm(left, 'Change view')
      await left.getByRole('link', { name: 'All of it' }).waitFor()
      await confirm(right, 'Delete')
      await dialogOf(right).getByRole('alert').getByText('The current version is 2.').waitFor()
      expect(await accessibilityOf(right)).toEqual([])
      await dialogOf(right).locator('.button', { hasText: 'Close' }).click()
      await press(right, 'Delete All of it')
      await confirm(right, 'Delete')
      await right.getByRole('link', { name: 'All of it' }).waitFor({ state: 'detached' })
      for (const page of [left, right]) await page.close()
    },
    PATIENCE_MS,
  )
})
