import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { mail, PATIENCE_MS, people, press, sitDown, stack, start, tabOf } from '../desk.ts'

describe('a person', () => {
  it(
    'confirms a mail address, is notified of a new device and of a gate, opens it by a link without effect, and resends what was given up',
    async () => {
      const { page } = await sitDown('eva')
      await page.goto(`${stack.gateway_url}/inbox`)
      await page.getByRole('link', { name: 'Add an address' }).click()
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
      expect(await mailed('A new device signed in to your account.')).toContain(`${stack.gateway_url}/sign-out#so1.`)
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
      // Another message may be given up before it.
      await page.getByRole('button', { name: 'Send again: Test', exact: true }).waitFor()
      mail.state.refuse = undefined
      const tests = () =>
        mail.mails.filter(({ body }) => body.includes('Signalbox can reach you at this address.')).length
      expect(tests()).toBe(1)
      await press(page, 'Send again: Test')
      await page.getByText('The message is sent again.').waitFor()
      await until(() => tests() === 2, { what: 'the message that was given up' })
      type Rules = { events: string[]; min_risk: string; steps: object[]; quiet: object | null; digest_s: number }
      const rules = () => people.eva.get<Rules>('/v1/notifications/rules')
      await page.getByLabel('A patch that waits').uncheck()
      await page.getByLabel('From risk').selectOption('high')
      await page.getByLabel('No messages at these hours').check()
      await page.getByLabel('Time zone').selectOption('Europe/Berlin')
      await page.getByLabel('Sat', { exact: true }).uncheck()
      await page.getByLabel('Sun', { exact: true }).uncheck()
      await page.getByLabel('Notify eva@example.org').selectOption('never')
      await press(page, 'Save rules')
      await page.getByText('Notify at least one destination, or clear all events.').waitFor()
      await page.getByLabel('Notify eva@example.org').selectOption('if it still waits after 15\u00a0min')
      await press(page, 'Save rules')
      await page.getByText('Rules saved.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      expect(await rules()).toEqual({
        events: ['gate.waiting', 'gate.reopened', 'gate.escalated', 'operation.held', 'operation.failed'],
        min_risk: 'high',
        digest_s: 300,
        quiet: { timezone: 'Europe/Berlin', from: '22:00', to: '07:00', days: ['mon', 'tue', 'wed', 'thu', 'fri'] },
        steps: [{ destination_id: expect.any(String), after_s: 900 }],
      })
      await page.reload()
      expect(await page.getByLabel('A patch that waits').isChecked()).toBe(false)
      expect(await page.getByLabel('From', { exact: true }).inputValue()).toBe('22:00')
      await press(page, 'Restore defaults')
      await page.getByText('Defaults restored.').waitFor()
      expect(await rules()).toMatchObject({ min_risk: 'low', quiet: null, steps: [] })
      await press(page, 'Remove eva@example.org')
      await page.getByText('You have no destinations.').waitFor()
    },
    PATIENCE_MS,
  )

  it(
    'adds one destination, however often the button is pressed or the answer is lost',
    async () => {
      const { context, page } = await sitDown('olga')
      await page.goto(`${stack.gateway_url}/settings/notifications`)
      await page.getByText('You have no destinations.').waitFor()
      const keys: (string | undefined)[] = []
      page.on('request', (request) => {
        if (request.method() === 'POST' && request.url().endsWith('/destinations'))
          keys.push(request.headers()['idempotency-key'])
      })
      await page.route(
        '**/v1/notifications/destinations',
        async (route) => {
          await route.fetch()
          await route.abort()
        },
        { times: 1 },
      )
      await page.getByLabel('Mail address or URL').fill('olga@example.org')
      const add = page.getByRole('button', { name: 'Add a destination', exact: true })
      // Two presses in one turn, before the page is redrawn.
      await add.evaluate((button) => [1, 2].map(() => (button as unknown as { click: () => void }).click()))
      await page.getByText('The server did not answer.').waitFor()
      await add.click()
      await page.getByText('Destination added.').waitFor()
      expect(keys).toHaveLength(2)
      expect(keys[1]).toBe(keys[0])
      await page.getByRole('button', { name: 'Remove olga@example.org' }).click()
      await page.getByText('You have no destinations.').waitFor()
      await page.getByLabel('Mail address or URL').fill('olga@example.org')
      await add.click()
      await page.getByRole('button', { name: 'Remove olga@example.org' }).waitFor()
      // Each answer ends its command: the same address later is another one.
      expect(keys[2]).not.toBe(keys[0])
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'with rights over groups sets where and when a group is told, on the same page',
    async () => {
      const page = await tabOf('ada')
      await page.goto(`${stack.gateway_url}/settings/notifications`)
      await page.getByLabel('Notifications of').selectOption('netops')
      await page.getByText('netops is told of gates and patches that name it').waitFor()
      await page.getByLabel('From risk').selectOption('critical')
      await press(page, 'Save rules')
      await page.getByText('Rules saved.').waitFor()
      const risks = (query: string) =>
        people.ada.get<{ min_risk: string }>(`/v1/notifications/rules${query}`).then(({ min_risk }) => min_risk)
      expect(await Promise.all(['?group=netops', ''].map(risks))).toEqual(['critical', 'low'])
      // The address leads to the same group.
      await page.reload()
      await until(async () => (await page.getByLabel('From risk').inputValue()) === 'critical', { what: 'its rules' })
      await press(page, 'Restore defaults')
      await page.getByText('Defaults restored.').waitFor()
      await page.close()
      const { context, page: reader } = await sitDown('eva')
      await reader.goto(`${stack.gateway_url}/settings/notifications`)
      await reader.getByLabel('From risk').waitFor()
      expect(await reader.getByLabel('Notifications of').count()).toBe(0)
      await context.close()
    },
    PATIENCE_MS,
  )
})
