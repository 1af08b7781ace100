import type { Locator } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { startMany } from '../../support/many.ts'
import { until } from '../../support/until.ts'
import { PATIENCE_MS, people, stack, tabOf, takePictures } from '../desk.ts'

const HOSTS = 500
const MOST_ELEMENTS = 1500

describe('an operation of 2,000 nodes', () => {
  let operation_id: string
  beforeAll(async () => {
    operation_id = await startMany(people, HOSTS)
  }, 240_000)
  const url = (path: string) => `${stack.gateway_url}/operations/${operation_id}/${path}`

  it(
    'draws few elements of its matrix, wherever a key, a search or a link leads',
    async () => {
      const page = await tabOf('eva')
      const elements = () => page.locator('*').count()
      await page.goto(url('graph?view=matrix'))
      const grid = page.getByRole('grid', { name: 'Hosts by steps' })
      await grid.getByRole('gridcell', { name: 'drain many-001, Succeeded' }).waitFor()
      expect(await grid.getAttribute('aria-rowcount')).toBe(String(HOSTS + 1))
      expect(await elements()).toBeLessThanOrEqual(MOST_ELEMENTS)
      expect(await accessibilityOf(page)).toEqual([])

      // Beyond the drawn rows, and back: the cell has the focus and is in view, and its row states its position.
      const placeOf = async (cell: Locator) => {
        const [own, box, head] = await Promise.all(
          [cell, page.locator('.matrix-box'), grid.locator('thead')].map((part) => part.boundingBox()),
        )
        const seen =
          own && box && head && own.y >= head.y + head.height - 1 && own.y + own.height <= box.y + box.height + 1
        return [await cell.getAttribute('aria-label'), await cell.locator('..').getAttribute('aria-rowindex'), seen]
      }
      const focused = () => placeOf(grid.locator('td:focus'))
      await grid.locator('[tabindex="0"]').focus()
      for (let i = 0; i < 12; i++) await page.keyboard.press('PageDown')
      expect(await focused()).toEqual(['drain many-121, Succeeded', '122', true])
      for (const key of ['PageUp', 'ArrowUp', 'End']) await page.keyboard.press(key)
      expect(await focused()).toEqual(['undrain many-110, Not started', '111', true])
      expect(await elements()).toBeLessThanOrEqual(MOST_ELEMENTS)
      await takePictures(page, 'matrix-many')

      const field = page.getByRole('searchbox', { name: 'Find a node' })
      await field.fill('move many-487')
      await field.press('Enter')
      const found = grid.locator('[aria-selected=true]')
      const inView = async () => /^move many-487, .*,488,true$/.test((await placeOf(found)).join())
      await until(inView, { what: 'the found cell in view' })
      expect(await elements()).toBeLessThanOrEqual(MOST_ELEMENTS)
      // A deep link: the same cell is in view in a page that has just been opened.
      await page.reload()
      await found.waitFor()
      await until(inView, { what: 'the linked cell in view' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'reaches every event of its timeline beyond the first 1,000',
    async () => {
      type Page = { events: { seq: number }[] }
      const path = `/v1/operations/${operation_id}/timeline?limit=1000`
      const seqs: number[] = []
      for (let after = 0, more = true; more; after = seqs.at(-1) ?? 0) {
        const { events } = await people.eva.get<Page>(`${path}&after_seq=${after}`)
        seqs.push(...events.map(({ seq }) => seq))
        more = events.length > 0
      }
      expect(seqs.length).toBeGreaterThan(1000)
      const page = await tabOf('eva')
      await page.goto(url('timeline'))
      const events = page.getByRole('table', { name: /^Events/ })
      const whole = async () => (await events.getAttribute('aria-rowcount')) === String(seqs.length + 1)
      await until(whole, { what: 'every event in the table', timeout_ms: 30_000 })
      expect(await page.locator('*').count()).toBeLessThanOrEqual(MOST_ELEMENTS)
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'timeline-many')
      // The oldest is the last row, at the end of the page.
      const last = events.locator(`[aria-rowindex="${seqs.length + 1}"]`)
      await until(
        async () => {
          await page.keyboard.press('Control+End')
          return last.isVisible()
        },
        { what: 'the oldest event', timeout_ms: 30_000 },
      )
      expect(await page.locator('*').count()).toBeLessThanOrEqual(MOST_ELEMENTS)
      await takePictures(page, 'timeline-many-end')
      await page.setViewportSize({ width: 390, height: 844 })
      await takePictures(page, 'timeline-many-phone')
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'is complete on paper: with records that are not read yet, and events that are not drawn yet',
    async () => {
      const page = await tabOf('eva')
      await page.addInitScript('window.print = () => { window.printed = (window.printed ?? 0) + 1 }')
      await page.goto(url('evidence'))
      const rows = page.getByRole('table').locator('tbody tr')
      await until(async () => (await rows.count()) === 200, { what: 'the first page' })
      await page.emulateMedia({ media: 'print' })
      const partly = page.getByText(/^Records 1 to 200 of \d+\./)
      await partly.waitFor()
      const all = Number(/of (\d+)/.exec((await partly.textContent()) ?? '')?.[1])
      await page.emulateMedia({ media: 'screen' })
      await page.getByRole('button', { name: 'Print', exact: true }).click()
      await until(async () => (await page.evaluate('window.printed')) === 1, { what: 'the print', timeout_ms: 60_000 })
      expect(await rows.count()).toBe(all)

      await page.goto(url('activity?who=all'))
      const events = page.getByRole('table')
      await until(async () => Number(await events.getAttribute('aria-rowcount')) > 1000, { what: 'every event' })
      expect(await rows.count()).toBeLessThan(100)
      await page.emulateMedia({ media: 'print' })
      await until(async () => (await rows.count()) > 1000, { what: 'a row for each event', timeout_ms: 30_000 })
      await page.emulateMedia({ media: 'screen' })
      await until(async () => (await rows.count()) < 100, { what: 'the rows near the view', timeout_ms: 30_000 })
      await page.close()
    },
    PATIENCE_MS,
  )
})
