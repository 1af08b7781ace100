import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { mail, PATIENCE_MS, press, sitDown, stack, start } from '../desk.ts'

describe('a person', () => {
  it(
    'confirms a mail address, is notified of a new device and of a gate, opens it by a link without effect, and resends what was given up',
    async () => {
      const { page } = await sitDown('eva')
      await page.goto(`${stack.gateway_url}/settings/notifications`)
      await page.getByText('You have no destinations.').waitFor()
      await page.getByLabel('Mail address or URL').fill('eva@example.org')
      await press(page, 'Add a destination')
      await page.getByText('Destination added.').waitFor()
      const mailed = (text: string) =>
        until(async () => mail.mails.find(({ body }) => body.includes(text))?.body, {
          what: `a mail that says: ${text}`,
          timeout_ms: 30_000,
        })
      const [code = ''] = /^[0-9]{8}$/m.exec(await mailed('confirm the address with this code')) ?? []
      expect(await accessibilityOf(page)).toEqual([])
      await page.getByLabel('Code sent to eva@example.org').fill(code)
      await press(page, 'Confirm')
      await page.getByText('Address confirmed.').waitFor()

      await press(page, 'Send a test to eva@example.org')
      await mailed('Signalbox can reach you at this address.')

      const { context } = await sitDown('eva')
      expect(await mailed('A new device signed in to your account.')).toContain(
        `${stack.gateway_url}/settings/sessions`,
      )
      await context.close()
      await start('mailed')
      const told = await mailed('/gates/')
      const link = told.split('\n').find((line) => line.includes('/gates/')) ?? ''
      await page.goto(link)
      await page.getByRole('button', { name: 'Approve' }).waitFor()

      await page.goto(`${stack.gateway_url}/settings/notifications`)
      await page.getByRole('cell', { name: 'Sent' }).first().waitFor()
      mail.state.refuse = 550
      await press(page, 'Send a test to eva@example.org')
      await page.getByRole('cell', { name: 'Given up' }).first().waitFor()
      mail.state.refuse = undefined
      const tests = () =>
        mail.mails.filter(({ body }) => body.includes('Signalbox can reach you at this address.')).length
      expect(tests()).toBe(1)
      await press(page, 'Send again: Test')
      await page.getByText('The message is sent again.').waitFor()
      await until(() => tests() === 2, { what: 'the message that was given up', timeout_ms: 30_000 })
      await press(page, 'Remove eva@example.org')
      await page.getByText('You have no destinations.').waitFor()
    },
    PATIENCE_MS,
  )

  it(
    'sets events, steps and quiet hours, is told which time is missing, and restores the defaults',
    async () => {
      const { page } = await sitDown('olga')
      await page.goto(`${stack.gateway_url}/settings/notifications`)
      const rules = async () => {
        const answer = page.waitForResponse((one) => one.url().endsWith('/notifications/rules') && one.ok())
        await page.reload()
        return (await answer).json()
      }
      await page.getByLabel('Mail address or URL').fill('https://chat.example.org/hook')
      await page.getByLabel('Kind').selectOption('slack')
      await press(page, 'Add a destination')
      await page.getByText('Destination added.').waitFor()
      await page.getByLabel('a gate asks again').uncheck()
      await page.getByLabel('From this risk on').selectOption('medium')
      await press(page, 'Add a step')
      await page.getByLabel('Minutes until step 1').fill('')
      await page.getByLabel('Hold messages back').check()
      await page.getByLabel('Until', { exact: true }).fill('06:30')
      await page.getByLabel('Time zone').selectOption('Europe/Berlin')
      expect(await accessibilityOf(page)).toEqual([])
      await press(page, 'Save')
      await page.getByText('Enter 0 to 10080 minutes.').waitFor()
      await page.getByLabel('Minutes until step 1').fill('15')
      await press(page, 'Save')
      await page.getByText('Rules saved.').waitFor()
      const set = await rules()
      expect(set).toMatchObject({
        events: ['gate.waiting', 'gate.escalated', 'patch.waiting'],
        min_risk: 'medium',
        steps: [{ after_s: 900 }],
        quiet: { timezone: 'Europe/Berlin', from: '22:00', to: '06:30' },
        digest_s: 300,
      })
      await expect.poll(() => page.getByLabel('Minutes until step 1').inputValue()).toBe('15')
      await press(page, 'Restore the defaults')
      await page.getByText('Defaults restored.').waitFor()
      await expect.poll(() => page.getByLabel('Minutes until step 1').count()).toBe(0)
      expect(await rules()).toMatchObject({ min_risk: 'low', steps: [], quiet: null })
      await press(page, 'Remove https://chat.example.org')
      await page.getByText('You have no destinations.').waitFor()
    },
    PATIENCE_MS,
  )
})
