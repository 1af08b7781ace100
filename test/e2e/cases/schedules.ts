import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { PATIENCE_MS, people, stack, tabOf, takePictures } from '../desk.ts'

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

      const pause = await press('Pause', 'No further run begins.')
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

  it(
    'is made where everything new begins: an action by its conditions, when resources begin to meet them',
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
})
