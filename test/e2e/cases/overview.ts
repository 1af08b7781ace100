import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { nodesOf, PATIENCE_MS, people, stack, start, tabOf, takePictures } from '../desk.ts'

describe('the overview', () => {
  it(
    'shows what ended, is open and is planned, and each number leads to the list that makes it up',
    async () => {
      const [done, open] = await Promise.all([start('sums done'), start('sums open')])
      const path = `/v1/operations/${done.operation_id}`
      await until(async () => (await nodesOf(done.operation_id)).second === 'gated', { what: 'the gate to ask' })
      const { digest, round } = await people.eva.get<{ digest: string; round: number }>(`${path}/gates/go`)
      await people.eva.post(`${path}/gates/go/approve`, { reviewed_digest: digest, round })
      await until(async () => (await people.eva.get<{ status: string }>(path)).status === 'succeeded', {
        ...{ what: 'the end of the operation', timeout_ms: 60_000 },
      })
      const graph = { nodes: [{ node_id: 'only', executor: 'noop', with: {} }] }
      const intent = { kind: 'graph', title: 'Nightly look', reason: 'a test', graph }
      await people.olga.post('/v1/schedules', { when: { every_s: 86_400 }, intent })

      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/inbox`)
      await page.getByRole('link', { name: 'Overview', exact: true }).click()
      await page.getByRole('img', { name: /^Ended operations by day\. Busiest day: \d+$/ }).waitFor()
      const calendar = page.getByRole('region', { name: 'Next 14 days' })
      await calendar.getByRole('link', { name: 'Nightly look' }).first().waitFor()
      await calendar.getByRole('link', { name: 'sums open' }).waitFor()
      expect(await calendar.locator('.day-cell').count()).toBe(14)
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'overview')
      await page.getByText('As a table').click()
      expect(await accessibilityOf(page)).toEqual([])

      const trends = page.getByRole('region', { name: 'Trends' })
      const number = trends
        .getByRole('row', { name: /^Succeeded/ })
        .getByRole('link')
        .first()
      const count = Number(await number.textContent())
      await number.click()
      await page.waitForURL(/\/operations\?.*tab=succeeded/)
      await page.getByRole('link', { name: 'sums done' }).waitFor()
      expect(await page.locator('tbody tr').count()).toBe(count)
      expect(await page.getByRole('link', { name: 'sums open' }).count()).toBe(0)
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'overview-list')
      await page.getByRole('link', { name: 'Any time' }).click()
      await page.waitForURL((url) => !url.searchParams.has('from'))
      expect((await people.eva.get<{ status: string }>(`/v1/operations/${open.operation_id}`)).status).not.toBe(
        'succeeded',
      )
      await page.close()
    },
    PATIENCE_MS,
  )
})
