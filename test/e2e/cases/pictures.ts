import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { observe } from '../../support/observe.ts'
import { until } from '../../support/until.ts'
import { PATIENCE_MS, people, stack, tabOf, takePictures } from '../desk.ts'

type Edge = [type_key: string, target_id: string]
const add = (resource_id: string, edges: Edge[] = []) =>
  people.ada.post('/v1/resources?mode=record_only', {
    ...{ resource_id, type_key: 'infra.generic', name: resource_id },
    desired_state: { provider: 'test', kind: 'thing' },
    relationships: edges.map(([type_key, target_id]) => ({ type_key, target_id })),
  })

/** A database in a rack; sites and a pool use it, one of them unhealthy. */
const build = async (): Promise<void> => {
  await add('pic-power')
  await add('pic-db', [['hosted_on', 'pic-power']])
  for (const site of ['pic-shop', 'pic-billing']) await add(site, [['depends_on', 'pic-db']])
  await add('pic-cache', [['hosted_on', 'pic-db']])
  await add('pic-mail', [['depends_on', 'pic-shop']])
  for (const id of ['pic-power', 'pic-db', 'pic-cache', 'pic-mail']) await observe(stack, id, 'healthy')
  await observe(stack, 'pic-shop', 'unhealthy')
  await observe(stack, 'pic-billing', 'degraded')
}

describe('relations and impact of a resource', () => {
  it(
    'are pictures that can be walked by click and by keyboard, with the same content as tables',
    async () => {
      await build()
      const counted = async () =>
        (await people.eva.get<{ counts: { total: number } }>('/v1/resources/pic-db/impact')).counts.total
      await until(async () => (await counted().catch(() => 0)) === 4, { what: 'the impact' })
      const page = await tabOf('eva')
      const boxes = (about: string) => page.getByRole('group', { name: about }).getByRole('link')
      const words = async (about: string) =>
        (await boxes(about).allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' ').trim())

      await page.goto(`${stack.gateway_url}/resources/pic-db?tab=relations`)
      await boxes('Relations of pic-db').first().waitFor()
      expect(await words('Relations of pic-db')).toEqual([
        ...['pic-db Healthy', 'pic-power Healthy'],
        ...['pic-shop Unhealthy', 'pic-billing Degraded', 'pic-cache Healthy'],
      ])
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'relations')

      // One tab stop, on the resource itself; arrows follow the lines, and Enter goes there.
      const stops = page.getByRole('group', { name: 'Relations of pic-db' }).locator('a[tabindex="0"]')
      expect(await stops.count()).toBe(1)
      await stops.focus()
      for (const key of ['ArrowRight', 'ArrowLeft', 'ArrowLeft']) await page.keyboard.press(key)
      expect(await page.locator(':focus').textContent()).toContain('pic-billing')
      for (const key of ['ArrowUp', 'Enter']) await page.keyboard.press(key)
      await page.getByRole('heading', { level: 1, name: 'pic-shop' }).waitFor()
      await boxes('Relations of pic-shop').filter({ hasText: 'pic-mail' }).click()
      await page.getByRole('heading', { level: 1, name: 'pic-mail' }).waitFor()
      await page.goBack()
      await page.getByRole('heading', { level: 1, name: 'pic-shop' }).waitFor()
      await page.getByRole('button', { name: 'Table', exact: true }).click()
      const related = page.getByRole('table', { name: 'Relations' })
      expect(await related.getByRole('link').allInnerTexts()).toEqual(expect.arrayContaining(['pic-db', 'pic-mail']))

      const asked: string[] = []
      page.on('request', (request) => {
        if (request.url().includes('/impact?')) asked.push(new URL(request.url()).search)
      })
      await page.goto(`${stack.gateway_url}/resources/pic-power?tab=impact`)
      await boxes('If pic-power fails').first().waitFor()
      // A server that is older than the console refuses the parameter.
      expect([...new Set(asked)]).toEqual(['?limit=200'])
      await page.getByText('2 become unhealthy, 3 become degraded.').waitFor()
      expect((await words('If pic-power fails')).toSorted()).toEqual([
        'pic-billing Degraded',
        'pic-cache Healthy → unhealthy',
        'pic-db Healthy → unhealthy',
        'pic-mail Healthy → degraded',
        'pic-power Healthy',
        'pic-shop Unhealthy → degraded',
      ])
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'impact')
      // Gone, its dependents prevent its retirement; in maintenance it passes on no health. The address keeps the choice.
      await page.getByRole('button', { name: 'is gone' }).click()
      await boxes('If pic-power is gone').first().waitFor()
      await page.getByText('It meets no need. One resource prevents its retirement.').waitFor()
      await page.route('**/impact?assume=gone*', async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        await route.fulfill({ response: answer, json: { ...json, without: { ...json.without, hidden: 1 } } })
      })
      await page.reload()
      await page.getByText('You may not see one resource that uses it. One resource prevents its retirement.').waitFor()
      expect(await page.getByText('It meets no need.').count()).toBe(0)
      await page.getByRole('button', { name: 'is in maintenance' }).click()
      await page.getByText('Maintenance passes on no health: no other resource changes.').waitFor()
      const need = {
        resource_id: 'pic-mail',
        name: 'pic-mail',
        requirement_key: 'slot',
        capability_key: 'compute.slots',
      }
      await page.route('**/impact?assume=maintenance*', async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        const without = { ...json.without, needs: [{ ...need, needed: 2, left: 1 }], unmet: 1 }
        await route.fulfill({ response: answer, json: { ...json, without } })
      })
      await page.reload()
      const needs = page.getByRole('table', { name: 'Needs that it meets' })
      await needs.getByRole('row', { name: 'pic-mail compute.slots 2 needed, 1 left' }).waitFor()
      await page.getByText('It meets one need; unmet without it: 1.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'impact-maintenance')
      await page.getByRole('button', { name: 'fails', exact: true }).click()
      await boxes('If pic-power fails').first().waitFor()
      await page.getByRole('button', { name: 'Table', exact: true }).click()
      const mail = page.getByRole('row').filter({ hasText: 'pic-mail' })
      expect(await mail.textContent()).toContain('hosted on → pic-db, depends on → pic-shop, depends on → pic-mail')
      expect(await accessibilityOf(page)).toEqual([])
      await page.goBack()
      await boxes('If pic-power fails').first().waitFor()
      await page.goForward()
      await mail.waitFor()
      await page.setViewportSize({ width: 390, height: 844 })
      await takePictures(page, 'impact-phone')
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('a capability', () => {
  it(
    'is drawn between the resources that need it and those that provide it, unmet needs with the reason',
    async () => {
      await people.ada.post('/v1/resources?mode=record_only', {
        ...{ resource_id: 'pic-orders', type_key: 'infra.database', name: 'pic-orders' },
        desired_state: { engine: 'postgres', engine_version: '18' },
      })
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/capabilities?key=storage.block`)
      const picture = page.getByRole('group', { name: 'Who needs and provides Block storage' })
      await picture.getByRole('link', { name: 'pic-orders no provider' }).waitFor()
      await picture.getByText('not met', { exact: true }).waitFor()
      // The walk begins at the capability, which is no resource.
      await picture.getByRole('note').focus()
      await page.keyboard.press('ArrowLeft')
      expect(await page.locator(':focus').textContent()).toContain('pic-orders')
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'needs')
      await page.close()
    },
    PATIENCE_MS,
  )
})

const IN_GRID = 300
/** A data center with one segment of many resources. */
const buildGrid = async (): Promise<void> => {
  const place = (type: string, resource_id: string, parent_id: string | undefined, desired_state: object) =>
    people.ada.post('/v1/resources?mode=record_only', {
      ...{ resource_id, type_key: `topology.${type}`, name: resource_id, desired_state },
      ...(parent_id !== undefined && { parent_id }),
    })
  await place('region', 'grid', undefined, { code: 'grid' })
  await place('datacenter', 'grid-a', 'grid', { code: 'grid-a' })
  await place('layer', 'grid-edge', 'grid-a', { layer_kind: 'edge' })
  await place('segment', 'grid-web', 'grid-edge', {})
  for (let from = 0; from < IN_GRID; from += 100) {
    const items = Array.from({ length: 100 }, (_, i) => `square-${String(from + i).padStart(3, '0')}`).map((name) => ({
      op: 'create',
      change: {
        ...{ resource_id: name, type_key: 'infra.generic', name, parent_id: 'grid-web' },
        desired_state: { provider: 'test', kind: 'thing' },
      },
    }))
    await people.ada.post('/v1/resources:bulk?mode=record_only', { items })
  }
}

describe('a data center', () => {
  it(
    'shows each of its resources as a square, which is named, opened, and follows its health',
    async () => {
      await buildGrid()
      const page = await tabOf('eva')
      const squares = page.getByRole('application', { name: `grid-web: ${IN_GRID} resources` })
      const drawn = async (health: string) =>
        (
          await squares
            .locator(`path[data-health=${health}]`)
            .evaluateAll((all) => all.map((one) => one.getAttribute('d')))
        )
          .join('')
          .match(/M/g)?.length ?? 0
      const open = async () => {
        await page.goto(`${stack.gateway_url}/topology?region=grid&datacenter=grid-a`)
        await squares.waitFor({ timeout: 3000 })
        return true
      }
      await until(() => open().catch(() => false), { what: 'the resources in the graph' })
      expect(await drawn('unknown')).toBe(IN_GRID)
      expect(await accessibilityOf(page)).toEqual([])

      // Any point of a square names its resource.
      const said = page.locator('.places [role=status]')
      const box = await squares.boundingBox()
      if (box === null) throw new Error('no picture')
      const [across, cell] = [16, 12]
      for (let n = 0; n < 40; n++) {
        const at = Math.floor(Math.random() * IN_GRID)
        const inside = () => 1 + Math.random() * 8
        await page.mouse.move(
          box.x + (at % across) * cell + inside(),
          box.y + Math.floor(at / across) * cell + inside(),
        )
        expect(await said.textContent()).toBe(`square-${String(at).padStart(3, '0')}, unknown`)
      }
      await observe(stack, 'square-018', 'unhealthy')
      await until(async () => (await drawn('unhealthy')) === 1, { what: 'the news' })
      expect(await drawn('unknown')).toBe(IN_GRID - 1)
      await takePictures(page, 'squares')
      await page.mouse.move(0, 0)
      await squares.focus()
      for (const key of ['ArrowRight', 'ArrowDown', 'ArrowRight']) await page.keyboard.press(key)
      expect(await said.textContent()).toBe('square-018, unhealthy')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'square-018' }).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})
