import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { dialogOf, PATIENCE_MS, people, stack, tabOf, takePictures } from '../desk.ts'

describe('a schedule', () => {
  it(
    'is found in the list, run now by its owner, paused with a reason, and ended',
    async () => {
      const task = { node_id: 'only', name: 'renew', kind: 'task', executor: 'noop', with: {}, idempotent: true }
      const intent = {
        ...{ kind: 'graph', title: 'Renew the certificates', reason: 'They end in 30 days', targets: [] },
        graph: { nodes: [task] },
      }
      const when = { cron: '0 22 * * 1-5', timezone: 'Europe/Berlin' }
      await people.olga.post('/v1/schedules', { when, intent, proceed: 'start' })

      const page = await tabOf('olga')
      await page.goto(`${stack.gateway_url}/inbox`)
      await page.getByRole('link', { name: 'Schedules' }).click()
      await page.getByRole('cell', { name: '0 22 * * 1-5 (Europe/Berlin)' }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'schedules')
      await page.getByRole('link', { name: 'Renew the certificates' }).click()
      await page.getByText('It has not run yet.').waitFor()

      const press = async (name: string, effect: string) => {
        await page.getByRole('button', { name, exact: true }).click()
        const dialog = page.getByRole('dialog')
        await dialog.getByText(effect).waitFor()
        return dialog
      }
      const run = await press('Run now', 'It runs once now')
      await run.getByRole('button', { name: 'Run now' }).click()
      await page.getByRole('link', { name: 'Open the operation' }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'schedule')

      const pause = await press('Pause', 'No further run begins by itself.')
      expect(await accessibilityOf(page)).toEqual([])
      await pause.getByRole('textbox').fill('The authority is closed')
      await pause.getByRole('button', { name: 'Pause' }).click()
      await page.getByText('The authority is closed').waitFor()
      await page.getByRole('button', { name: 'Resume', exact: true }).waitFor()
      const end = await press('End', 'It never runs again.')
      await end.getByRole('button', { name: 'End' }).click()
      await page.getByText('Ended').waitFor()
      expect(await page.getByRole('button', { name: 'Run now' }).count()).toBe(0)
      await page.close()
    },
    PATIENCE_MS,
  )

  it.each([
    ['olga', 'No schedules yet. Select New, or run: signalbox schedule create -f FILE.'],
    ['eva', 'No schedules yet.'],
  ] as const)(
    'is advised by an empty list to people who have the button for it: %s',
    async (name, words) => {
      const page = await tabOf(name)
      const empty = { items: [], next_page_token: null, as_of: { time: new Date().toISOString(), seq: '1' } }
      await page.route('**/api/v1/schedules?*', (route) => route.fulfill({ json: empty }))
      await page.goto(`${stack.gateway_url}/schedules`)
      await page.getByText(words, { exact: true }).waitFor()
      expect(await page.getByRole('link', { name: 'New', exact: true }).count()).toBe(words.includes('New') ? 1 : 0)
      await page.unrouteAll({ behavior: 'wait' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'is created on the form for new changes: an action by its conditions, when resources start to meet them',
    async () => {
      const page = await tabOf('olga')
      await page.goto(`${stack.gateway_url}/schedules`)
      await page.getByRole('link', { name: 'New', exact: true }).click()
      await page.getByLabel('Change, action or runbook').selectOption({ label: 'Rotate the certificate of a host' })
      await page.waitForURL(/kind=action/)
      await page.getByRole('button', { name: 'By cron' }).click()
      await page.getByLabel(/^Minute, hour/).fill('0 30 * * *')
      await page.getByLabel('Title').fill('Rotate what drifted')
      await page.getByLabel('Reason').fill('Certificates follow the release')
      await page.getByRole('button', { name: 'Create schedule' }).click()
      // The server's own words, at the field that it names.
      await page.getByRole('alert').getByText('/when/cron').first().waitFor()
      await page.getByRole('button', { name: 'On a condition' }).click()
      await page.getByRole('button', { name: 'Create schedule' }).click()
      await page.getByRole('alert').getByText('Enter conditions for the resources.').waitFor()
      const preview = page.getByRole('region', { name: 'Preview' })
      await page.getByLabel('Expression (CEL)').fill('false')
      await preview.getByText('The selectors match no resource.').waitFor()
      await page.getByLabel('Expression (CEL)').fill('target.observed_state.release != target.desired_state.release')
      expect(await accessibilityOf(page)).toEqual([])
      await page.getByRole('button', { name: 'Create schedule' }).click()
      await page.getByRole('heading', { level: 1, name: 'Rotate what drifted' }).waitFor()
      await page.getByText('Plans only: a person starts each plan.').waitFor()
      await page.getByText(/when a fleet.host starts to match/).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'waits for a webhook, whose secret is shown once and rotated; a signed delivery runs it',
    async () => {
      const page = await tabOf('olga')
      const add = (resource_id: string, type_key: string, parent_id: string | undefined, desired_state: object) =>
        people.ada.post('/v1/resources?mode=record_only', {
          ...{ resource_id, type_key, name: resource_id, ...(parent_id && { parent_id }) },
          ...{ desired_state, ...(type_key === 'fleet.host' && { lifecycle_status: 'active' }) },
        })
      await add('hook-r', 'topology.region', undefined, { code: 'hook-r' })
      await add('hook-d', 'topology.datacenter', 'hook-r', { code: 'hook-d' })
      const state = { hostname: 'hooked', release: '2.3.9', traffic: 'in' }
      expect((await add('hooked', 'fleet.host', 'hook-d', state)).status).toBe(201)
      await page.goto(`${stack.gateway_url}/new?kind=action`)
      await page.getByLabel('Change, action or runbook').selectOption({ label: 'Rotate the certificate of a host' })
      await page.getByRole('button', { name: 'On a webhook' }).click()
      await page.getByLabel('Signature').selectOption('forge')
      await page.getByLabel('Only if (CEL over body), may stay empty').fill("body.ref == 'main'")
      await page.getByLabel('Expression (CEL)').fill("target.name == 'hooked'")
      await page.getByRole('region', { name: 'Preview' }).getByText('1 resource').waitFor()
      await page.getByLabel('Title').fill('Rotate on a push')
      await page.getByLabel('Reason').fill('The forge says so')
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'webhook-new')
      await page.getByRole('button', { name: 'Create schedule' }).click()
      await page.getByRole('heading', { level: 1, name: 'Rotate on a push' }).waitFor()

      const hook = page.getByRole('region', { name: 'Webhook' })
      await hook.getByText('No delivery is accepted before you create a secret.').waitFor()
      const url = ((await hook.getByText(/^POST /).textContent()) ?? '').replace('POST ', '')
      expect(url).toMatch(new RegExp(`^${stack.gateway_url}/api/v1/hooks/[0-9a-f-]{36}$`))
      const make = async (verb: string) => {
        await hook.getByRole('button', { name: verb }).click()
        await dialogOf(page).getByRole('button', { name: verb }).click()
        const secret =
          (await dialogOf(page)
            .getByText(/^whsec_/)
            .textContent()) ?? ''
        expect(secret.length).toBeGreaterThan(30)
        expect(await accessibilityOf(page)).toEqual([])
        await takePictures(page, 'webhook-secret')
        await dialogOf(page).getByRole('button', { name: 'Close', exact: true }).click()
        expect(await page.content()).not.toContain(secret)
        return secret
      }
      const deliver = async (secret: string, body: string) => {
        const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
        const headers = { 'content-type': 'application/json', 'x-hub-signature-256': signature }
        return (await fetch(url, { method: 'POST', headers, body })).status
      }
      const first = await make('Create secret')
      expect(await deliver('whsec_wrong', '{"ref":"main"}')).toBe(401)
      await hook.getByText('No delivery with a valid signature has arrived yet.').waitFor()
      const second = await make('Rotate secret')
      expect(second).not.toBe(first)
      await hook.getByText('The previous secret ends').waitFor()
      expect(await deliver(first, '{"ref":"other"}')).toBe(200)
      await hook.getByRole('listitem').waitFor()
      await page.getByText('It has not run yet.').waitFor()
      expect(await deliver(second, '{"ref":"main"}')).toBe(200)
      await page.getByRole('region', { name: 'Runs' }).getByRole('row').nth(1).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'webhook')
      await page.close()
    },
    PATIENCE_MS,
  )
})
