import { describe, expect, it } from 'vitest'
import { ensurePerson } from '../../../apps/platform/demo/accounts.ts'
import { signIn } from '../../../apps/platform/demo/client.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { accounts, nodesOf, PATIENCE_MS, people, sitDown, stack, start, takePictures } from '../desk.ts'

describe('the display settings', () => {
  it(
    'belong to the person: another device shows them from its first page on',
    async () => {
      const nora = { username: 'nora', password: 'mV6qd-uR2xs-bK9yh-eW3fj', roles: ['viewer'] }
      await ensurePerson(stack.gateway_url, people.ada, nora, 'netops')
      accounts.set('nora', nora)
      const hers = await signIn(stack.gateway_url, nora)
      const kept = () => hers.get<Record<string, unknown>>('/v1/users/me/preferences')
      const { context, page } = await sitDown('nora')
      await page.goto(`${stack.gateway_url}/settings/display`)
      await page.getByRole('radio', { name: 'Dark' }).check()
      await page.getByRole('radio', { name: 'Exact (12:04:31 UTC)' }).check()
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
      const time = row.locator('time').first()
      const exact = /^\d\d:\d\d:\d\d GMT\+9$/
      expect(await time.textContent()).toMatch(exact)
      // A key and a tap turn them: neither reaches a tooltip.
      const turned = (isExact: boolean) =>
        until(async () => exact.test((await time.textContent()) ?? '') === isExact, { what: `exact: ${isExact}` })
      await other.page.keyboard.press('t')
      await turned(false)
      await time.click()
      await turned(true)

      // A setting that does not reach the server is reported, and stays here.
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

describe('a device whose clock is wrong', () => {
  it(
    'shows and compares times by the server’s clock',
    async () => {
      const { context, page } = await sitDown('eva')
      // No two zones differ by as much.
      await page.clock.install({ time: Date.now() - 25 * 60_000 })
      await page.goto((await start('late clock')).url)
      await page.getByRole('heading', { level: 1, name: 'late clock' }).waitFor()
      const minutes = () => [0, 60_000].map((ago) => new Date(Date.now() - ago).toISOString().slice(13, 16))
      const clock = page.locator('.topbar').getByText(/^\d\d:\d\d /)
      await until(async () => minutes().includes((await clock.textContent())?.slice(2, 5) ?? ''), {
        what: 'the time',
        timeout_ms: 60_000,
      })
      const times = await page.getByRole('main').locator('time').allTextContents()
      expect(times.length).toBeGreaterThan(0)
      expect(times.filter((text) => /in 2\d/.test(text))).toEqual([])
      await context.close()
    },
    PATIENCE_MS,
  )
})

describe('the evidence on paper', () => {
  it(
    'is black on white without controls, with every digest in full and the time; forced colors show the open tab',
    async () => {
      const { context, page } = await sitDown('eva')
      const { operation_id, url } = await start('printed')
      await until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })
      await page.goto(`${url}/evidence`)
      await page.getByRole('table').locator('code[title]').first().waitFor()
      await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
      expect(await page.getByRole('navigation').count()).toBe(0)
      expect(await page.getByRole('main').getByRole('button').count()).toBe(0)
      const styleOf = (name: string, of = '') =>
        `[...document.querySelectorAll('main code[title]')].map((one) => getComputedStyle(one, '${of}')['${name}'])`
      const [id, ...digests] = await page.evaluate<string[]>(styleOf('content', '::after'))
      expect(id).toBe(JSON.stringify(operation_id))
      expect(digests.length).toBeGreaterThan(1)
      for (const digest of digests) expect(digest).toMatch(/^"(sha256:)?[0-9a-f]{64}"$/)
      const [, ...colors] = await page.evaluate<string[]>(styleOf('color'))
      expect(new Set(colors)).toEqual(new Set(['rgb(0, 0, 0)']))
      // At paper width: who printed it, and when.
      await page.setViewportSize({ width: 703, height: 900 })
      await page
        .locator('.topbar')
        .getByText(/^\d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC$/)
        .waitFor()
      // Unfolded, and without any request about the reader's rights.
      const folded = page.locator('main details')
      expect(await folded.count()).toBeGreaterThan(1)
      await page.getByText(`signalbox evidence export ${operation_id}`).waitFor()
      expect(await page.getByText('What can’t I do here?').isVisible()).toBe(false)
      // On a screen with the person's own colors, one tab still differs from the others.
      await page.emulateMedia({ media: 'screen', forcedColors: 'active' })
      const grounds = `[...document.querySelectorAll('.tabs a')].map((tab) => getComputedStyle(tab).backgroundColor)`
      expect(new Set(await page.evaluate<string[]>(grounds)).size).toBe(2)
      await context.close()
    },
    PATIENCE_MS,
  )
})
