import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { PATIENCE_MS, stack, tabOf, takePictures } from '../desk.ts'

/** It comes first: later cases leave their objects behind. */
describe('an empty installation', () => {
  it.each([
    ['/operations?tab=all', 'To start one, run: npm run demo'],
    ['/operations?tab=running', 'See all operations'],
    ['/intents?whose=all', 'No intents yet. Select New, or run: signalbox intent create -f FILE.'],
    ['/schedules', 'No schedules yet. Select New, or run: signalbox schedule create -f FILE.'],
    ['/resources', 'Import or register some on the command line.'],
    ['/topology', 'Import or register some on the command line.'],
    ['/inbox', 'Your inbox is empty.'],
  ])(
    'names the next step: %s',
    async (path, words) => {
      const page = await tabOf('olga')
      await page.goto(`${stack.gateway_url}${path}`)
      await page.getByText(words, { exact: true }).waitFor()
      if (!path.startsWith('/topology') && !path.startsWith('/inbox'))
        await page.getByRole('link', { name: 'New', exact: true }).first().waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, `empty-${path.slice(1).replaceAll(/\W/g, '-')}`)
      await page.close()
    },
    PATIENCE_MS,
  )
})
