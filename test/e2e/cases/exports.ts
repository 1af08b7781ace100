import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { startOperation } from '../../../apps/platform/demo/operations.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { PATIENCE_MS, people, stack, start, tabOf, takePictures, untilFound } from '../desk.ts'

/** The lines of the file that the page saves. */
const savedBy = async (page: Page): Promise<string[]> => {
  const press = page.getByRole('button', { name: 'Export as CSV' }).click()
  const [saved] = await Promise.all([page.waitForEvent('download'), press])
  const text = readFileSync(await saved.path(), 'utf8')
  expect(text.startsWith('\uFEFF')).toBe(true)
  return text.slice(1).trimEnd().split('\r\n')
}

describe('a list as a file', () => {
  it(
    'holds the operations that the filters show, on pages that are not on the screen too, and no formula',
    async () => {
      const hostile = '=HYPERLINK("http://x.example","exported")'
      const titles = [hostile, ...Array.from({ length: 51 }, (_, n) => `exported ${n}`)]
      const nodes = [{ node_id: 'only', executor: 'noop', with: {} }]
      for (const title of [...titles, 'shown elsewhere'])
        await startOperation(people.olga, title, { kind: 'graph', title, reason: 'a test', graph: { nodes } })
      const page = await tabOf('olga')
      await page.goto(`${stack.gateway_url}/operations?tab=all&q=exported`)
      await page.getByRole('button', { name: 'Load more' }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      const [heads, ...rows] = await savedBy(page)
      expect(heads).toMatch(/^operation_id,title,status,/)
      expect(rows).toHaveLength(titles.length)
      expect(rows.filter((row) => row.includes(`,"'${hostile.replaceAll('"', '""')}",`))).toHaveLength(1)
      await page.getByText('Saved 52 rows.').waitFor()
      await takePictures(page, 'export-operations')
      // The next page belongs to the moment that the first one was asked with.
      await page.goto(`${stack.gateway_url}/operations?tab=all&q=exported&age=day`)
      await page.getByRole('button', { name: 'Load more' }).click()
      await page.getByRole('button', { name: 'Load more' }).waitFor({ state: 'detached', timeout: 20_000 })
      expect(await page.getByRole('alert').count()).toBe(0)
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'holds the resources of a filter or a search, and the nodes of a state',
    async () => {
      const add = (resource_id: string, name: string) =>
        people.ada.post('/v1/resources?mode=record_only', {
          ...{ resource_id, name, type_key: 'infra.generic', labels: { exported: 'yes' } },
          desired_state: { provider: 'test', kind: 'thing' },
        })
      for (const n of [1, 2, 3]) await add(`csv-${n}`, `csv ${n}, of 3`)
      await untilFound('csv', 3)
      const page = await tabOf('olga')
      for (const q of ['labels.exported=yes', 'csv']) {
        await page.goto(`${stack.gateway_url}/resources?q=${encodeURIComponent(q)}`)
        await page.getByRole('cell', { name: /csv 3/ }).waitFor()
        const [heads, ...rows] = await savedBy(page)
        expect(heads).toMatch(/^resource_id,name,/)
        expect(rows.sort().map((row) => row.slice(0, 19))).toEqual([1, 2, 3].map((n) => `csv-${n},"csv ${n}, of 3"`))
      }
      await takePictures(page, 'export-resources')
      const { url } = await start('exported nodes')
      await page.goto(`${url}/nodes?q=second`)
      await page.getByRole('link', { name: 'task second' }).waitFor()
      expect((await savedBy(page)).map((row) => row.split(',')[0])).toEqual(['node_id', 'second'])
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'export-nodes')
      await page.close()
    },
    PATIENCE_MS,
  )
})
