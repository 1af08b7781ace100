import { hostname } from 'node:os'
import { describe, expect, it } from 'vitest'
import { tokensByDevice } from '../../../apps/cli/session/device.ts'
import { createSignalbox } from '../../../apps/client/index.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { PATIENCE_MS, press, sitDown, stack, takePictures } from '../desk.ts'

/** A terminal that waits: its code and link, and how its sign-in ends. */
const atTerminal = () => {
  const signalbox = createSignalbox({ url: stack.gateway_url, repeats: { times: 0 } })
  let done: Promise<string> = Promise.resolve('')
  const shown = new Promise<{ user_code: string; verification_uri_complete: string }>((show) => {
    done = tokensByDevice(signalbox, show, { remember_device: true }).then(
      ({ access_token }) => access_token,
      (error: Error) => error.message,
    )
  })
  return { shown, done: () => done }
}

describe('a device without a browser', () => {
  it(
    'is signed in by a button on a page that names it, and never by its link alone (ASVS 7.6.2, 10.4.9, 10.7.1, 10.7.2, 10.7.3)',
    async () => {
      const { context, page } = await sitDown('eva')
      const terminal = atTerminal()
      const { verification_uri_complete, user_code } = await terminal.shown
      await page.goto(verification_uri_complete)
      const request = page.getByRole('region', { name: /Sign-in of/ })
      await request.getByText(user_code).waitFor()
      expect(await request.textContent()).toContain(hostname().replace(/[^A-Za-z0-9._-]/g, '-'))
      expect(await request.textContent()).toContain('Approve only if you have just started this sign-in')
      expect(await request.textContent()).toContain('127.0.0.1')
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'device')
      await press(page, 'Approve')
      await page.getByText(/signs in as eva/).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      const token = await terminal.done()
      const me = () => fetch(`${stack.gateway_url}/api/v1/users/me`, { headers: { authorization: `Bearer ${token}` } })
      expect(await (await me()).json()).toMatchObject({ username: 'eva', session: { mode: 'json' } })
      await page.getByRole('link', { name: 'Active sessions' }).click()
      const listed = page.getByRole('row', { name: new RegExp(`on ${hostname()}`) })
      await listed.getByRole('button', { name: /^Sign out/ }).click()
      await page.getByText('Session signed out.').waitFor()
      expect((await me()).status).toBe(401)
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'is refused by a button; a typed code is found in any case, and a wrong one is reported',
    async () => {
      const { context, page } = await sitDown('eva')
      const terminal = atTerminal()
      const { user_code } = await terminal.shown
      await page.goto(`${stack.gateway_url}/device`)
      await press(page, 'Continue')
      await page.getByText('Enter the code.').waitFor()
      await page.getByLabel('Code').fill('BBBB-BBBB')
      await press(page, 'Continue')
      await page
        .getByRole('alert')
        .getByText(/at the device/)
        .waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await page.getByLabel('Code').fill(user_code.toLowerCase())
      await press(page, 'Continue')
      await press(page, 'Refuse')
      await page.getByText('Refused. The device gets no session.').waitFor()
      expect(await terminal.done()).toMatch(/The sign-in was refused/)
      await context.close()
    },
    PATIENCE_MS,
  )
})
