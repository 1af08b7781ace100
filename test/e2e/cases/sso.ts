import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { ensurePerson } from '../../../apps/platform/demo/accounts.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { codeAt } from '../../support/totp.ts'
import { until } from '../../support/until.ts'
import {
  accounts,
  confirm,
  dialogOf,
  PATIENCE_MS,
  people,
  press,
  sitDown,
  stack,
  tabOf,
  takePictures,
} from '../desk.ts'

/** A code counts once: each is of a later step, within the server's window. */
const codeNow = (secret: string, steps: number) => codeAt(secret, new Date(), steps)
/** Waits for 10 s of the current step, so that the code of the step before is still taken on a busy machine. */
const timeInStep = () =>
  until(() => Date.now() % STEP_MS <= STEP_MS - 10_000, { timeout_ms: STEP_MS, what: 'time within the step' })
const STEP_MS = 30_000

const throughCorp = async (page: Page) => {
  await page.getByRole('link', { name: 'Continue with Example Corp' }).click()
  await page.getByRole('link', { name: 'mia' }).click()
}
const signOut = async (page: Page) => {
  await page.getByRole('button', { name: /Signed in as mia/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByText(/^You are signed out/).waitFor()
}
const confirmByCode = async (page: Page, code: string) => {
  await press(page, 'Use a code')
  await page.getByLabel('Code of your authenticator app').fill(code)
  await press(page, 'Confirm')
}

describe('a session through a provider', () => {
  it(
    'outlives an earlier sign-out, and is confirmed by the second factor that its person has',
    async () => {
      const mia = { username: 'mia', password: 'tG6kx-wB4pd-qJ8ns-yF2vv', roles: ['viewer'] }
      await ensurePerson(stack.gateway_url, people.ada, mia, 'netops')
      accounts.set('mia', mia)
      // Another session of hers, which the sign-ins of this browser do not replace.
      await (await sitDown('mia')).context.close()
      const { context, page } = await sitDown('mia')
      await page.goto(`${stack.gateway_url}/settings/password`)
      await press(page, 'Link Example Corp')
      await page.getByRole('link', { name: 'mia' }).click()
      await page.getByRole('button', { name: 'Unlink Example Corp' }).waitFor()
      await page.goto(`${stack.gateway_url}/settings/passkeys`)
      await press(page, 'Set up an app')
      const secret = (await page.locator('code').textContent()) ?? ''
      await timeInStep()
      await page.getByLabel('Code that the app shows').fill(codeNow(secret, -1))
      await press(page, 'Turn on')
      await page.getByText('The authenticator app is on.').waitFor()

      // The server hears of the sign-out only with the next start, when the cookie is that of a newer session.
      await page.route('**/auth/logout', (route) => route.abort())
      await signOut(page)
      await page.getByText(/the server did not confirm it/).waitFor()
      await page.unroute('**/auth/logout')
      await throughCorp(page)
      await page.getByRole('button', { name: /Signed in as mia/ }).waitFor()
      await page.reload()
      await page.getByRole('button', { name: /Signed in as mia/ }).waitFor()
      expect(await page.evaluate('localStorage.getItem("signalbox.signed_out")')).toBe(null)

      // The provider proved only itself: the app proves the person before it is replaced.
      await page.goto(`${stack.gateway_url}/settings/passkeys`)
      await press(page, 'Replace the app')
      await page.getByText('Confirm by a second factor').waitFor()
      expect(await page.getByRole('button', { name: 'Confirm with Example Corp' }).count()).toBe(0)
      expect(await accessibilityOf(page)).toEqual([])
      await confirmByCode(page, codeNow(secret, 0))
      await page.getByText('Confirm by a second factor').waitFor({ state: 'detached' })
      await press(page, 'Replace the app')
      await page.getByRole('img', { name: 'Scan this with your authenticator app' }).waitFor()
      await press(page, 'Cancel')

      // A role that needs two factors: the next session through the provider begins with the second.
      const { items } = await people.ada.get<{ items: { id: string }[] }>('/v1/admin/users?q=mia')
      const subject = { subject_type: 'user', subject_id: items[0]?.id, role: 'auditor' }
      await people.ada.post('/v1/admin/grants', subject)
      await signOut(page)
      await page.goto(`${stack.gateway_url}/login?next=%2Fsettings%2Fsessions`)
      await throughCorp(page)
      await page.getByText('You have a second factor. Confirm with it to continue.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await confirmByCode(page, codeNow(secret, 1))
      await page.getByRole('heading', { level: 1, name: 'Active sessions' }).waitFor()

      // Too long ago: the provider, a passkey or a code; never a password.
      await page.route('**/api/v1/sessions/revoke-others', (route) =>
        route.fulfill({
          status: 403,
          contentType: 'application/problem+json',
          json: { category: 'policy_denied', code: 'reauth_required', title: 'Confirm', detail: 'Confirm.' },
        }),
      )
      await press(page, 'Sign out everywhere else')
      for (const way of ['Confirm with Example Corp', 'Use a passkey', 'Use a code'])
        await page.getByRole('button', { name: way, exact: true }).waitFor()
      expect(await page.getByLabel('Password', { exact: true }).count()).toBe(0)
      expect(await dialogOf(page).count()).toBe(0)
      const path = `/admin/users/${items[0]?.id}`

      // An administrator unlinks the identity on the page of the person.
      const admin = await tabOf('ada')
      await admin.goto(`${stack.gateway_url}${path}`)
      await admin.getByRole('cell', { name: 'Example Corp', exact: true }).waitFor()
      expect(await accessibilityOf(admin)).toEqual([])
      await takePictures(admin, 'identities')
      await press(admin, 'Unlink Example Corp')
      await confirm(admin, 'Unlink')
      await admin.getByText('No identity at a provider.').waitFor()
      expect(await people.ada.get(`/v1${path}/identities`)).toEqual({ items: [] })
      await admin.close()
      await context.close()
    },
    PATIENCE_MS,
  )
})
