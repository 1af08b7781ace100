import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { mail, PATIENCE_MS, press, sitDown, stack, start } from '../desk.ts'

describe('a person', () => {
  it(
    'confirms a mail address, is told of a gate, and opens it by a link that decides nothing',
    async () => {
      const { page } = await sitDown('eva')
      await page.goto(`${stack.gateway_url}/settings/notifications`)
      await page.getByText('You have no destinations.').waitFor()
      await page.getByLabel('Mail address or URL').fill('eva@example.org')
      await press(page, 'Add a destination')
      await page.getByText('Destination added.').waitFor()
      const body = (at: number, what: string) => until(async () => mail.mails[at]?.body, { what, timeout_ms: 30_000 })
      const [code = ''] = /^[0-9]{8}$/m.exec(await body(0, 'the mail with the code')) ?? []
      expect(await accessibilityOf(page)).toEqual([])
      await page.getByLabel('Code sent to eva@example.org').fill(code)
      await press(page, 'Confirm')
      await page.getByText('Address confirmed.').waitFor()

      await press(page, 'Send a test to eva@example.org')
      expect(await body(1, 'the test')).toContain('Signalbox reaches you here.')
      await start('mailed')
      const told = await body(2, 'the mail about the gate')
      const link = told.split('\n').find((line) => line.includes('/gates/')) ?? ''
      await page.goto(link)
      await page.getByRole('button', { name: 'Approve' }).waitFor()

      await page.goto(`${stack.gateway_url}/settings/notifications`)
      await page.getByRole('cell', { name: 'Sent' }).first().waitFor()
      await press(page, 'Remove eva@example.org')
      await page.getByText('You have no destinations.').waitFor()
    },
    PATIENCE_MS,
  )
})
