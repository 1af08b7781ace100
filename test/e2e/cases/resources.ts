import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { PATIENCE_MS, people, stack, tabOf } from '../desk.ts'

describe('the page of a resource', () => {
  it(
    'says who manages its fields, and since when',
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
      expect(await table.getByRole('row').nth(1).textContent()).toMatch(/All other fields(manager:)?netbox.*\d\d:\d\d/)
      expect(await accessibilityOf(page)).toEqual([])
      await page.close()
    },
    PATIENCE_MS,
  )
})
