import { describe, expect, it } from 'vitest'
import { ensurePerson } from '../../../apps/platform/demo/accounts.ts'
import { signIn } from '../../../apps/platform/demo/client.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { accounts, PATIENCE_MS, people, sitDown, stack, start, takePictures } from '../desk.ts'

describe('the display settings', () => {
  it(
    'belong to the person: another device shows the same from its first page on',
    async () => {
      const nora = { username: 'nora', password: 'mV6qd-uR2xs-bK9yh-eW3fj', roles: ['viewer'] }
      await ensurePerson(stack.gateway_url, people.ada, nora, 'netops')
      accounts.set('nora', nora)
      const hers = await signIn(stack.gateway_url, nora)
      const kept = () => hers.get<Record<string, unknown>>('/v1/users/me/preferences')
      const { context, page } = await sitDown('nora')
      await page.goto(`${stack.gateway_url}/settings/display`)
      await page.getByRole('radio', { name: 'Dark' }).check()
      await page.getByRole('radio', { name: 'Exact (12:04:31)' }).check()
      await page.getByLabel('Another zone').selectOption('Asia/Tokyo')
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'display')
      await page.getByRole('radio', { name: 'Deutsch' }).check()
      await page.locator('html[lang=de]').waitFor()
      expect(await kept()).toMatchObject({ theme: 'dark', times: 'exact', zone: 'Asia/Tokyo', language: 'de' })

      const other = await sitDown('nora')
      await other.page.locator('html[lang=de][data-theme=dark]').waitFor()
      await other.page.getByText('GMT+9').first().waitFor()
      await start('exact times')
      await other.page.goto(`${stack.gateway_url}/operations`)
      const row = other.page.getByRole('row').filter({ hasText: 'exact times' })
      expect(await row.locator('time').first().textContent()).toMatch(/^\d\d:\d\d:\d\d$/)

      // What the server did not get is said, and stays here.
      await page.route('**/api/v1/users/me/preferences', (route) => route.abort())
      await page.getByRole('radio', { name: 'Hell' }).check()
      await page.getByRole('status').getByText('Für andere Geräte nicht gespeichert').waitFor()
      await page.locator('html[data-theme=light]').waitFor()
      expect((await kept()).theme).toBe('dark')
      for (const one of [context, other.context]) await one.close()
    },
    PATIENCE_MS,
  )
})
