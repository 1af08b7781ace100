import type { Route } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { approveGate, startOperation, waitForGate } from '../../../apps/platform/demo/operations.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { dialogOf, letGo, PATIENCE_MS, people, stack, start, tabOf, takePictures, target } from '../desk.ts'

type Ended = { status: string; ended_at: string | null; retry_of: string | null }

describe('an ended operation', () => {
  it(
    'is run again from its page: the form is filled as it was, hosts are resolved anew, and its gate asks again',
    async () => {
      const add = (resource_id: string, type_key: string, parent_id: string | undefined, desired_state: object) =>
        people.ada.post('/v1/resources?mode=record_only', {
          ...{ resource_id, type_key, name: resource_id, ...(parent_id && { parent_id }) },
          desired_state,
          ...(type_key === 'fleet.host' && { lifecycle_status: 'active', observed_state: { base_url: target.url } }),
        })
      const addHost = (name: string) =>
        add(name, 'fleet.host', 'again-d', { hostname: name, release: '2.3.9', traffic: 'in' })
      await add('again-r', 'topology.region', undefined, { code: 'again-r' })
      await add('again-d', 'topology.datacenter', 'again-r', { code: 'again-d' })
      for (const name of ['again-1', 'again-2']) await addHost(name)
      const rotate = {
        ...{ kind: 'action', title: 'rotate again', reason: 'The authority changed', ticket: 'CHG-7' },
        action: { action_key: 'rotate_certificate' },
        targets: [{ selector: { type_key: 'fleet.host', when: "target.name.contains('again-')" } }],
        constraints: { max_parallel: 2 },
      }
      const resolved = async (count: number) => {
        const { body } = await people.olga.post<{ effect: { targets_resolved: object[] } }>('/v1/intents', {
          ...rotate,
          dry_run: true,
        })
        return body.effect.targets_resolved.length === count
      }
      await until(() => resolved(2), { what: 'the hosts to be known' })
      const { operation_id } = await startOperation(people.olga, 'rotate again', rotate)
      await approveGate(people.eva, operation_id, await waitForGate(people.eva, operation_id), 'a test')
      await people.olga.post(`/v1/operations/${operation_id}/cancel`, { reason: 'a test', mode: 'graceful' })
      await addHost('again-3')
      const ended = async () => {
        letGo()
        return (await people.olga.get<Ended>(`/v1/operations/${operation_id}`)).ended_at !== null
      }
      await until(ended, { what: 'the first run to end' })

      const page = await tabOf('olga')
      await page.goto(`${stack.gateway_url}/operations/${operation_id}`)
      await page.getByRole('link', { name: 'Run again' }).waitFor()
      await takePictures(page, 'again-operation')
      await page.getByRole('link', { name: 'Run again' }).click()
      await page.getByText('Repeats operation').waitFor()
      expect(await page.getByLabel('Change, action or runbook').locator('option:checked').textContent()).toBe(
        'Rotate the certificate of a host',
      )
      const values = { Title: 'rotate again', Reason: 'The authority changed', Ticket: 'CHG-7' }
      for (const [label, value] of Object.entries(values))
        expect(await page.getByLabel(label).inputValue(), label).toBe(value)
      expect(await page.getByLabel('Expression (CEL)').inputValue()).toBe("target.name.contains('again-')")
      const preview = page.getByRole('region', { name: 'Preview' })
      await preview.getByText('3 resources').waitFor()
      await preview.getByText('1 more than last time.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'again')
      // While an answer is awaited, the last one is not shown as current.
      const held: Route[] = []
      await page.route('**/api/v1/intents', (route) => void held.push(route))
      const conditions = page.getByLabel('Expression (CEL)')
      await conditions.fill("target.name == 'again-1'")
      await until(() => held.length > 0, { what: 'the next preview' })
      await preview.getByText('Updating …').waitFor()
      expect(await preview.getByText('3 resources').count()).toBe(1)
      // The end of the interception lets go of those that still come.
      for (const route of held) await route.continue()
      await page.unroute('**/api/v1/intents')
      await preview.getByText('1 resource', { exact: true }).waitFor()
      expect(await preview.getByText('Updating …').count()).toBe(0)
      await conditions.fill("target.name.contains('again-')")
      await preview.getByText('3 resources').waitFor()

      await page.getByLabel('Reason').fill('Once more')
      await page.getByRole('button', { name: 'Create plan' }).click()
      await page.getByRole('heading', { level: 1, name: 'rotate again' }).waitFor()
      await page.getByRole('button', { name: 'Start', exact: true }).click()
      await dialogOf(page).getByRole('button', { name: 'Start operation' }).click()
      await page.waitForURL(/\/operations\//)
      const again_id = new URL(page.url()).pathname.split('/')[2] ?? ''
      expect(again_id).not.toBe(operation_id)
      // The approval of the first one is not an approval of this.
      const gate = await waitForGate(people.eva, again_id)
      expect(gate).toMatchObject({ status: 'waiting', votes: [] })
      const again = await people.eva.get<Ended>(`/v1/operations/${again_id}`)
      expect(again).toMatchObject({ retry_of: operation_id, ended_at: null })
      await page.getByText('Follows').waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'of a graph is repeated as it was; a reader has no such button',
    async () => {
      const { operation_id, url } = await start('graph again')
      await people.olga.post(`/v1/operations/${operation_id}/cancel`, { reason: 'a test', mode: 'graceful' })
      const page = await tabOf('olga')
      await page.goto(url)
      await page.getByRole('link', { name: 'Run again' }).click()
      const preview = page.getByRole('region', { name: 'Preview' })
      await preview.getByText('Go on with graph again?').waitFor()
      expect(await page.getByLabel('Change, action or runbook').locator('option:checked').textContent()).toBe(
        'As last time',
      )
      // Something else is no repetition.
      await page.getByLabel('Change, action or runbook').selectOption({ label: 'Rotate the certificate of a host' })
      await page.getByText('Repeats operation').waitFor({ state: 'detached' })
      await page.close()
      const reader = await tabOf('eva')
      await reader.goto(url)
      await reader
        .getByText(/^Canceled/)
        .first()
        .waitFor()
      expect(await reader.getByRole('link', { name: 'Run again' }).count()).toBe(0)
      await reader.close()
    },
    PATIENCE_MS,
  )

  it(
    'of a runbook is started by keyboard, on resources of a chosen type, and repeated with its conditions',
    async () => {
      const rack = { resource_id: 'edge-1', type_key: 'infra.generic', name: 'edge-1', lifecycle_status: 'active' }
      const desired_state = { provider: 'test', kind: 'rack' }
      expect((await people.ada.post('/v1/resources?mode=record_only', { ...rack, desired_state })).status).toBe(201)
      const page = await tabOf('olga')
      await page.goto(`${stack.gateway_url}/schedules`)
      await page.getByRole('heading', { level: 1, name: 'Schedules' }).waitFor()
      await until(
        async () => {
          await page.keyboard.press('n')
          return page.url().includes('/new')
        },
        { what: 'n to open the form', every_ms: 1000 },
      )
      const kind = page.getByLabel('Change, action or runbook')
      await kind.focus()
      await page.keyboard.type('Look at')
      await page.keyboard.press('Enter')
      await page.waitForURL(/kind=runbook/)
      const preview = page.getByRole('region', { name: 'Preview' })
      await preview.getByText('Choose a type.').waitFor()
      const type = page.getByLabel('Type', { exact: true })
      await type.focus()
      await page.keyboard.type('infra.generic')
      expect(await type.inputValue()).toBe('infra.generic')
      await page.getByLabel('Field', { exact: true }).selectOption('name')
      const value = page.getByLabel('Value', { exact: true })
      await value.fill('edge-')
      await value.press('Enter')
      await preview.getByText('1 resource', { exact: true }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await page.getByLabel('Title').fill('look at the edge')
      await page.getByLabel('Reason').fill('it hums')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'look at the edge' }).waitFor()
      const start = page.getByRole('button', { name: 'Start', exact: true })
      await start.focus()
      await page.keyboard.press('Enter')
      const go = dialogOf(page).getByRole('button', { name: 'Start operation' })
      // It can be pressed once the effect is known.
      await go.click({ trial: true })
      await go.press('Enter')
      await page.waitForURL(/\/operations\//)
      await page.getByRole('link', { name: 'Run again' }).click()
      await page.getByText('Repeats operation').waitFor()
      expect(await page.getByLabel('Type', { exact: true }).inputValue()).toBe('infra.generic')
      await preview.getByText('1 resource', { exact: true }).waitFor()
      await preview.getByText('The same resources as last time.').waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})
