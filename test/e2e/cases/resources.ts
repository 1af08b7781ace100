import { describe, expect, it } from 'vitest'
import { accessibilityOf, overlapsOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { PATIENCE_MS, people, press, stack, tabOf, takePictures, untilFound } from '../desk.ts'

describe('the list of resources', () => {
  it(
    'filters and orders by facts of the catalog, gives the number of matches, and draws few rows of many',
    async () => {
      const items = Array.from({ length: 130 }, (_, at) => ({
        op: 'create',
        change: {
          ...{ resource_id: `listed-${1000 + at}`, type_key: 'infra.generic', name: `listed ${1000 + at}` },
          ...{ desired_state: { provider: 'test', kind: 'thing' }, labels: { listed: 'yes' } },
        },
      }))
      await people.ada.post('/v1/resources:bulk?mode=record_only', { items })
      const listed = async () =>
        (await people.eva.get<{ count: { value: number } }>('/v1/resources?filter=labels.listed%3Dyes&count=capped'))
          .count
      await until(async () => (await listed()).value === 130, { what: 'the projected resources' })
      const page = await tabOf('eva')
      // The filter offers the regions of further pages too.
      await page.route('**/api/v1/topology/regions?*', async (route) => {
        const url = route.request().url()
        const answer = await route.fetch({ url: url.replace(/&page_token=[^&]*/, '') })
        const next = { items: [], next_page_token: 'more' }
        const last = { items: [{ resource_id: 'region-101' }], next_page_token: '' }
        await route.fulfill({ json: { ...(await answer.json()), ...(url.includes('page_token=') ? last : next) } })
      })
      await page.goto(`${stack.gateway_url}/resources?q=labels.listed%3Dyes`)
      await page.locator('option[value=region-101]').waitFor({ state: 'attached' })
      await page.getByText('130 resources', { exact: true }).waitFor()
      const names = page.getByRole('table').locator('tbody td:first-child')
      const first = (name: string) => until(async () => (await names.first().textContent()) === name, { what: name })
      await first('listed 1000')
      await page.getByRole('button', { name: 'Name' }).click()
      await page.getByRole('button', { name: 'Name' }).click()
      await first('listed 1129')
      expect(await page.getByRole('columnheader', { name: 'Name' }).getAttribute('aria-sort')).toBe('descending')
      await page.reload()
      await first('listed 1129')
      await press(page, 'Load more')
      await until(async () => (await page.getByRole('table').getAttribute('aria-rowcount')) === '131')
      expect(await names.count()).toBeLessThan(100)
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'resources')

      await page.getByLabel('Lifecycle').selectOption('retired')
      await page.getByText('No resources match.').waitFor()
      await page.getByLabel('Lifecycle').selectOption('active')
      await page.getByLabel('Type').selectOption('infra.generic')
      await page.getByLabel('Drift').selectOption('unknown')
      await page.getByText('130 resources', { exact: true }).waitFor()
      // Words keep every filter that is set.
      await untilFound('listed', 20)
      const field = page.getByRole('searchbox')
      await field.fill('listed 1007')
      await page.getByRole('link', { name: 'listed 1007' }).waitFor()
      await page.getByLabel('Drift').selectOption('drifted')
      await page.getByText('No resources match.').waitFor()
      await page.getByLabel('Drift').selectOption('')
      await page.getByLabel('Lifecycle').selectOption('retired')
      await page.getByText('No resources match.').waitFor()
      await page.getByLabel('Drift').selectOption('unknown')
      await page.getByLabel('Lifecycle').selectOption('active')
      await field.fill('labels.listed=yes')
      await page.getByText('130 resources', { exact: true }).waitFor()
      // On a phone a row has two lines.
      await page.setViewportSize({ width: 360, height: 740 })
      const heights = await page.locator('tbody tr').evaluateAll((rows) => rows.map((row) => row.clientHeight))
      expect(Math.max(...heights.slice(0, 20))).toBeLessThanOrEqual(72)
      await until(async () => (await overlapsOf(page.locator('tbody tr'))) === 0, { what: 'rows without overlap' })
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
      await takePictures(page, 'resources-phone')
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('the page of a resource', () => {
  it(
    'names who manages its fields, and since when',
    async () => {
      const made = await people.ada.post('/v1/resources?mode=record_only&manager=netbox', {
        ...{ resource_id: 'managed', type_key: 'infra.generic', name: 'managed' },
        desired_state: { provider: 'test', kind: 'thing' },
      })
      expect(made.status).toBe(201)
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/resources/managed?tab=overview`)
      const table = page.getByRole('table', { name: 'Who manages its fields' })
      await table.waitFor()
      // An operation may have changed the thing since then.
      await page.getByText(/^Version \d+, recorded .*\d\d:\d\d/).waitFor()
      expect(await table.getByRole('row').nth(1).textContent()).toMatch(/All other fields(manager:)?netbox.*\d\d:\d\d/)
      expect(await accessibilityOf(page)).toEqual([])
      await page.close()

      // Another manager's field is changed knowingly or not at all.
      const form = await tabOf('olga')
      await form.goto(`${stack.gateway_url}/new?kind=change&resource=managed`)
      await until(async () => (await form.getByLabel('kind', { exact: true }).inputValue()) === 'thing')
      await form.getByLabel('kind', { exact: true }).fill('other')
      const faults = form.getByRole('alert').filter({ hasText: 'This cannot be planned yet' })
      await press(form, 'Create plan')
      await faults.getByText('confirm that you take them over').waitFor()
      expect(await form.locator('[role=alert]:focus').count()).toBe(1)
      await form.getByLabel('Take over the changed fields from netbox').check()
      await until(async () => (await faults.textContent()) === 'This cannot be planned yet:Enter a reason.')
      expect(await accessibilityOf(form)).toEqual([])
      await form.close()
    },
    PATIENCE_MS,
  )

  it(
    'lists its versions by author and time, shows a past one, and compares any two by link',
    async () => {
      const of = '/v1/resources/aged'
      await people.ada.post('/v1/resources?mode=record_only', {
        ...{ resource_id: 'aged', type_key: 'infra.generic', name: 'aged', labels: { tier: 'silver' } },
        desired_state: { provider: 'test', kind: 'thing' },
      })
      for (const tier of ['gold', 'iron']) {
        const { version } = await people.ada.get<{ version: number }>(of)
        const change = { resource_id: 'aged', expected_version: version, patch: { labels: { tier } } }
        await people.ada.post('/v1/resources:bulk?mode=record_only', { items: [{ op: 'update', change }] })
      }
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/resources/aged?tab=versions`)
      const row = (version: number) => page.getByRole('row', { name: new RegExp(`^Version ${version} `) })
      expect(await row(3).textContent()).toMatch(/ada.*labels.tier/)
      expect(await row(1).textContent()).toMatch(/ada.*created/)
      await page.getByRole('link', { name: 'Version 3' }).click()
      const shown = page.getByRole('region', { name: 'Version 3', exact: true })
      await until(async () => (await shown.locator('.diff').textContent()) === 'labels.tiergold→iron')
      await shown.getByLabel('Compare with').selectOption('version 1')
      await until(async () => (await shown.locator('.diff').textContent()) === 'labels.tiersilver→iron')
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'versions')
      // The link shows another person the same, in a fresh tab.
      const link = page.url()
      await page.goto(`${stack.gateway_url}/inbox`)
      await page.goto(link)
      await until(async () => (await shown.locator('.diff').textContent()) === 'labels.tiersilver→iron')
      await page.goto(`${stack.gateway_url}/resources/aged?tab=versions&version=1`)
      await page.getByText('This is the first version.').waitFor()
      await page
        .getByRole('table', { name: /Desired and observed/ })
        .getByText('thing')
        .waitFor()
      await page.goto(`${stack.gateway_url}/resources/aged?tab=versions&version=99`)
      await page
        .getByRole('alert')
        .getByText(/no version 99/)
        .waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('a catalog that is behind', () => {
  it(
    'is named on each page that shows its replies',
    async () => {
      await people.ada.post('/v1/resources?mode=record_only', {
        ...{ resource_id: 'late', type_key: 'topology.region', name: 'late', desired_state: { code: 'late' } },
      })
      const page = await tabOf('eva')
      const read = /^\/api\/v1\/(topology\/\w+|resources|resources\/late\/impact)$/
      await page.route(
        ({ pathname }) => read.test(pathname),
        async (route) => {
          const response = await route.fetch()
          const json = await response.json()
          await route.fulfill({ response, json: { ...json, as_of: { ...json.as_of, lag_ms: 40_000 } } })
        },
      )
      for (const path of [
        '/topology?view=table',
        '/topology?view=picture',
        '/resources',
        '/resources/late?tab=impact',
        '/health',
      ]) {
        await page.goto(`${stack.gateway_url}${path}`)
        await page.getByText('The catalog is 40\u00a0s behind.').waitFor()
        expect(await accessibilityOf(page)).toEqual([])
      }
      await page.unrouteAll({ behavior: 'ignoreErrors' })
      await page.close()
    },
    PATIENCE_MS,
  )
})
