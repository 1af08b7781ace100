import { describe, expect, it } from 'vitest'
import { ensurePerson } from '../../../apps/platform/demo/accounts.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { codeAt } from '../../support/totp.ts'
import { accounts, browser, openTab, PATIENCE_MS, people, press, sitDown, stack } from '../desk.ts'

/** A code counts once: each is of a later step, within the server's window. */
const soon = (secret: string, steps: number) => codeAt(secret, new Date(), steps)

describe('an authenticator app', () => {
  it(
    'is set up by its first code, required at the sign-in, and removed',
    async () => {
      const { context, page } = await sitDown('otto')
      await page.goto(`${stack.gateway_url}/settings/passkeys`)
      await page.getByText('You have no authenticator app.').waitFor()
      await press(page, 'Set up an app')
      await page.getByRole('img', { name: 'Scan this with your authenticator app' }).waitFor()
      const secret = (await page.locator('code').textContent()) ?? ''
      expect(secret).toMatch(/^[A-Z2-7]{32}$/)
      const field = page.getByLabel('Code that the app shows')
      expect(await field.getAttribute('autocomplete')).toBe('one-time-code')
      expect(await field.getAttribute('inputmode')).toBe('numeric')
      expect(await accessibilityOf(page)).toEqual([])
      await field.fill('12')
      await press(page, 'Turn on')
      await page.getByText('Enter the 6 digits that the app shows.').waitFor()
      await field.fill(soon(secret, 0))
      await press(page, 'Turn on')
      await page.getByText('The authenticator app is on.').waitFor()

      await page.getByRole('button', { name: /Signed in as otto/ }).click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      await page.getByLabel('Username').fill('otto')
      await page.getByLabel('Password', { exact: true }).fill(accounts.get('otto')?.password ?? '')
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      const code = page.getByLabel('Code of your authenticator app')
      await code.waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await code.fill('000000')
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByText('The code is wrong or was already used.').waitFor()
      await code.fill(soon(secret, 1).replace(/^.{3}/, '$& '))
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByRole('button', { name: /Signed in as otto/ }).waitFor()

      await page.goto(`${stack.gateway_url}/settings/passkeys`)
      await press(page, 'Remove the app')
      await page.getByText('The authenticator app is removed.').waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'is the only thing open to a person whose role needs a second factor, until it is set up (ASVS 6.3.3)',
    async () => {
      const ines = { username: 'ines', password: 'Winter-Otter-88-Lantern', roles: ['auditor'] }
      await ensurePerson(stack.gateway_url, people.ada, ines, 'netops')
      const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, reducedMotion: 'reduce' })
      const page = await openTab(context)
      await page.goto(`${stack.gateway_url}/login?next=%2Fsettings%2Fsessions`)
      await page.getByLabel('Username').fill(ines.username)
      await page.getByLabel('Password', { exact: true }).fill(ines.password)
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByText('Your role needs a second factor.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await page.goto(`${stack.gateway_url}/operations`)
      await page.waitForURL(/\/second-factor\?next=/)
      await press(page, 'Set up an app')
      await page.getByRole('img', { name: 'Scan this with your authenticator app' }).waitFor()
      const secret = (await page.locator('code').textContent()) ?? ''
      await page.getByLabel('Code that the app shows').fill(soon(secret, 0))
      await press(page, 'Turn on')
      await page.getByRole('heading', { level: 1, name: 'Operations' }).waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )
})
