import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createServiceSigner } from '../../../apps/shared/service/tokens.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { PATIENCE_MS, people, stack, tabOf, takePictures } from '../desk.ts'

type Edge = [type_key: string, target_id: string]
const add = (resource_id: string, edges: Edge[] = []) =>
  people.ada.post('/v1/resources?mode=record_only', {
    ...{ resource_id, type_key: 'infra.generic', name: resource_id },
    desired_state: { provider: 'test', kind: 'thing' },
    relationships: edges.map(([type_key, target_id]) => ({ type_key, target_id })),
  })

const observe = async (resource_id: string, status: string): Promise<void> => {
  const key_file = stack.context.keys.serviceKeyFile('demo-control-plane')
  const token = createServiceSigner({ name: 'demo-control-plane', key_file })('catalog-internal')
  const reply = await fetch(`${stack.internal('catalog')}/internal/v1/resources/${resource_id}/health-observations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ command_id: randomUUID(), idempotency_key: randomUUID(), resource_id, source: 'test', check_key: 'http' },
      ...{ status, observed_at: new Date().toISOString(), ttl_s: 3600 },
    }),
  })
  expect(reply.status, await reply.text()).toBeLessThan(300)
}

/** A database in a rack; sites and a pool use it, one of them unhealthy. */
const build = async (): Promise<void> => {
  await add('pic-power')
  await add('pic-db', [['hosted_on', 'pic-power']])
  for (const site of ['pic-shop', 'pic-billing']) await add(site, [['depends_on', 'pic-db']])
  await add('pic-cache', [['hosted_on', 'pic-db']])
  await add('pic-mail', [['depends_on', 'pic-shop']])
  for (const id of ['pic-power', 'pic-db', 'pic-cache', 'pic-mail']) await observe(id, 'healthy')
  await observe('pic-shop', 'unhealthy')
  await observe('pic-billing', 'degraded')
}

describe('relations and impact of a resource', () => {
  it(
    'are pictures that can be walked by click and by keyboard, with the same content as tables',
    async () => {
      await build()
      const counted = async () =>
        (await people.eva.get<{ counts: { total: number } }>('/v1/resources/pic-db/impact')).counts.total
      await until(async () => (await counted().catch(() => 0)) === 4, { what: 'the impact', timeout_ms: 60_000 })
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

      await page.goto(`${stack.gateway_url}/resources/pic-power?tab=impact`)
      await boxes('If pic-power fails').first().waitFor()
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
      await page.getByRole('button', { name: 'Table', exact: true }).click()
      const mail = page.getByRole('row').filter({ hasText: 'pic-mail' })
      expect(await mail.textContent()).toContain('hosted on → pic-db, depends on → pic-shop, depends on → pic-mail')
      expect(await accessibilityOf(page)).toEqual([])
      await page.setViewportSize({ width: 390, height: 844 })
      await takePictures(page, 'impact-phone')
      await page.close()
    },
    PATIENCE_MS,
  )
})
