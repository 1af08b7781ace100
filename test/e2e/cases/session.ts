import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { ensurePerson } from '../../../apps/platform/demo/accounts.ts'
import { type Account, signIn } from '../../../apps/platform/demo/client.ts'
import { accessibilityOf, signInAs } from '../../support/browser.ts'
import { signOutTokenFor } from '../../support/sign-out.ts'
import { until } from '../../support/until.ts'
import {
  accounts,
  browser,
  confirm,
  dialogOf,
  endSession,
  nodesOf,
  openTab,
  PATIENCE_MS,
  people,
  press,
  sitDown,
  stack,
  start,
} from '../desk.ts'

describe('a lost network', () => {
  it(
    'leaves the console running: a page whose code is not loaded says so, and appears when the network is back',
    async () => {
      const { context, page } = await sitDown('eva')
      await context.setOffline(true)
      await page.getByText(/^You are offline/).waitFor()
      await page.getByRole('link', { name: 'Capabilities' }).click()
      await page.getByRole('heading', { level: 1, name: 'This page could not be loaded' }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await context.setOffline(false)
      await page.getByRole('heading', { level: 1, name: 'Capabilities' }).waitFor()
      await page.getByRole('link', { name: 'Room for machines' }).waitFor()
      const kept = await page.evaluate<string[]>('Object.keys(sessionStorage)')
      expect(kept).toEqual(['csrf_token'])
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'and a silent server at the start of a tab: no one is signed out, and the page continues by itself',
    async () => {
      const { context, page } = await sitDown('eva')
      await context.route('**/v1/token**', (route) => route.fulfill({ status: 429, headers: { 'retry-after': '3' } }))
      await page.reload()
      await page.getByRole('heading', { level: 1, name: 'Too many pages were opened in a short time' }).waitFor()
      await page.getByText(/^You are still signed in\. This page retries automatically at /).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await context.unroute('**/v1/token**')
      await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )
})

/** A person's page, and a second tab in which they sign out. */
const inTwoTabs = async (username: string) => {
  const { context, page } = await sitDown(username)
  const other = await openTab(context)
  await other.goto(`${stack.gateway_url}/settings/display`)
  await other.getByRole('heading', { level: 1, name: 'Display settings' }).waitFor()
  return {
    ...{ context, page },
    /** Leads to a path without loading the page anew. */
    open: (path: string) =>
      page.evaluate(`history.pushState({}, '', '${path}'); dispatchEvent(new PopStateEvent('popstate'))`),
    signOut: async () => {
      await other.getByRole('button', { name: /^Signed in as/ }).click()
      await other.getByRole('menuitem', { name: 'Sign out' }).click()
      await page.getByText(/^You are signed out/).waitFor()
    },
    enter: async (name: string) => {
      const { password } = accounts.get(name) as Account
      await page.getByLabel('Username').fill(name)
      await page.getByLabel('Password', { exact: true }).fill(password)
      await press(page, 'Sign in')
      await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor()
    },
  }
}

describe('a session in the browser', () => {
  it(
    "starts with a link that works once: live password rules, the server's messages, then the first sign-in (ASVS 6.2.6, 6.2.7)",
    async () => {
      type Made = { user: { id: string }; enrolment: { token: string; url: string } }
      const grants = [{ role: 'viewer', scope: {} }]
      const { body } = await people.ada.post<Made>('/v1/admin/users', { username: 'enno', grants })
      const link = `${stack.gateway_url}/enrol#${body.enrolment.token}`
      expect(new URL(body.enrolment.url).hash).toBe(`#${body.enrolment.token}`)
      const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, reducedMotion: 'reduce' })
      const page = await openTab(context)
      await page.goto(link)
      await page.getByRole('heading', { level: 1, name: 'Set your password' }).waitFor()
      // The token opens an account, so the address bar drops it.
      await page.waitForURL(`${stack.gateway_url}/enrol`)
      const field = page.getByLabel('New password')
      const missing = page.getByRole('listitem').filter({ hasText: 'missing' })
      const choose = async (password: string) => {
        await field.fill(password)
        await press(page, 'Set password')
      }
      expect(await field.getAttribute('autocomplete')).toBe('new-password')
      expect(await field.getAttribute('type')).toBe('password')
      await press(page, 'Show password')
      expect(await field.getAttribute('type')).toBe('text')
      await press(page, 'Hide password')
      expect(await field.getAttribute('type')).toBe('password')
      const paste = `document.querySelector('input[autocomplete=new-password]')
        .dispatchEvent(new ClipboardEvent('paste', { bubbles: true, cancelable: true }))`
      expect(await page.evaluate(paste), 'no script holds a paste back').toBe(true)
      await field.fill('enno')
      await missing.filter({ hasText: 'An uppercase letter' }).waitFor()
      expect(await missing.count()).toBe(4)
      await press(page, 'Set password')
      for (const words of ['needs at least 8 characters', 'needs an uppercase letter', 'needs a digit'])
        await page.getByRole('alert').getByText(words).waitFor()
      await choose('Qwertyuiop1!')
      expect(await missing.count()).toBe(0)
      await page.getByRole('alert').getByText('This is similar to a commonly used password').waitFor()
      expect(await accessibilityOf(page)).toEqual([])

      const account = { username: 'enno', password: 'zR6pd-uW2ns-kF9vb-qA3mm', roles: ['viewer'] }
      await choose(account.password)
      await page.getByText('Your password is set').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await signInAs(page, stack.gateway_url, account)
      await context.close()

      const again = await openTab(await browser.newContext({ reducedMotion: 'reduce' }))
      await again.goto(link)
      await again.getByLabel('New password').fill(`${account.password}-too`)
      await press(again, 'Set password')
      await again.getByText('This enrolment link is invalid, used or expired.').waitFor()
      await again.getByLabel('Enrollment token').waitFor()
      expect(await accessibilityOf(again)).toEqual([])
      await again.context().close()
    },
    PATIENCE_MS,
  )

  it(
    "ends by the link of a security message: opening it ends none, a click all of its person's",
    async () => {
      const { context, page } = await sitDown('olga')
      const { id } = await people.olga.get<{ id: string }>('/v1/users/me')
      const token = await signOutTokenFor(stack, id)
      const link = `${stack.gateway_url}/sign-out#${token}`
      const stranger = await openTab(await browser.newContext({ reducedMotion: 'reduce' }))
      await stranger.goto(link)
      await stranger.getByRole('heading', { level: 1, name: 'End all your sessions' }).waitFor()
      await stranger.waitForURL(`${stack.gateway_url}/sign-out`)
      expect(await accessibilityOf(stranger)).toEqual([])
      await page.reload()
      await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor()
      // Only a page that is followed live learns who ended its session.
      await page.getByText('Live', { exact: true }).waitFor()
      // Another fault than that of the link does not show its token.
      await stranger.route('**/v1/sessions/sign-out', (route) => route.fulfill({ status: 429 }), { times: 1 })
      await press(stranger, 'End all sessions')
      await stranger.getByRole('alert').waitFor()
      expect(await stranger.getByLabel('Token').count()).toBe(0)
      await press(stranger, 'End all sessions')
      await stranger.getByRole('heading', { level: 1, name: 'All your sessions have ended' }).waitFor()
      expect(await accessibilityOf(stranger)).toEqual([])
      await page.getByText('Your session was ended elsewhere. Sign in again.').waitFor()
      await stranger.goto('about:blank')
      await stranger.goto(link)
      await press(stranger, 'End all sessions')
      await stranger.getByText('This link is invalid, used or expired.').waitFor()
      await stranger.getByLabel('Token').waitFor()
      await stranger.context().close()
      await context.close()
      people.olga = (await stack.people()).olga
    },
    PATIENCE_MS,
  )

  it(
    'survives a reload, keeps its access token in memory only, and ends in every tab at once (ASVS 7.4.4, 10.1.1)',
    async () => {
      const { context, page } = await sitDown('eva')
      const other = await openTab(context)
      await page.reload()
      await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor()
      await other.goto(`${stack.gateway_url}/resources`)
      await other.getByRole('heading', { level: 1, name: 'Resources' }).waitFor()
      const kept = await page.evaluate<string>(
        'JSON.stringify([{ ...localStorage }, Object.keys(sessionStorage), document.cookie])',
      )
      expect(JSON.parse(kept).slice(1)).toEqual([['csrf_token'], ''])
      expect(kept).not.toContain('eyJ')
      const cookie = (await context.cookies()).find(({ name }) => name === 'refresh_token')
      expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', secure: true, path: '/v1/token' })

      await page.getByRole('button', { name: /Signed in as eva/ }).click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      for (const tab of [page, other]) await tab.getByText(/^You are signed out/).waitFor()
      await other.goto(`${stack.gateway_url}/inbox`)
      await other.getByLabel('Username').waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'is signed out only when the server has ended it: a refused token is renewed, and another answer remembered',
    async () => {
      const { context, page } = await sitDown('otto')
      const signOut = async () => {
        await page.getByRole('button', { name: /Signed in as otto/ }).click()
        await page.getByRole('menuitem', { name: 'Sign out' }).click()
        await page.getByText(/^You are signed out/).waitFor()
      }
      const mark = () => page.evaluate('localStorage.getItem("signalbox.signed_out")')
      const once = { times: 1 }
      await page.route(
        '**/auth/logout',
        (route) => route.continue({ headers: { ...route.request().headers(), authorization: 'Bearer stale' } }),
        once,
      )
      await signOut()
      await page.getByText('You are signed out.', { exact: true }).waitFor()
      await page.goto(`${stack.gateway_url}/inbox`)
      await page.getByLabel('Username').waitFor()

      await signInAs(page, stack.gateway_url, accounts.get('otto') as Account)
      await page.route('**/auth/logout', (route) => route.fulfill({ status: 429 }), once)
      // The login page's code is slow to come: what is still on the page reads on, and its renewals sign nobody in.
      await page.goto(`${stack.gateway_url}/operations`)
      await page.getByRole('heading', { level: 1, name: 'Operations' }).waitFor()
      await page.route('**/login-*.js', async (route) => {
        await page.waitForTimeout(3000)
        await route.continue()
      })
      await signOut()
      await page.getByText(/the server did not confirm it/).waitFor()
      await page.unroute('**/login-*.js')
      expect(await mark()).toMatch(/^[0-9a-f-]{36}$/)
      await page.goto(`${stack.gateway_url}/inbox`)
      await page.getByLabel('Username').waitFor()
      expect(await mark()).toBe(null)
      await page.goto(`${stack.gateway_url}/inbox`)
      await page.getByLabel('Username').waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'is one session in five tabs: one refresh serves all, and so do a new password and a sign-out',
    async () => {
      const account = { username: 'pia', password: 'vK8ty-nB3sd-wL6mc-xJ9rr', roles: ['viewer'] }
      await ensurePerson(stack.gateway_url, people.ada, account, 'netops')
      accounts.set('pia', account)
      const { context, page } = await sitDown('pia')
      const tabs = [page, ...(await Promise.all([1, 2, 3, 4].map(() => openTab(context))))]
      const fromMenu = async (tab: Page, item: string) => {
        await tab.getByRole('button', { name: /Signed in as pia/ }).click()
        await tab.getByRole('menuitem', { name: item }).click()
        await tab.getByRole('heading', { level: 1, name: item }).waitFor()
      }
      await Promise.all(tabs.map((tab) => tab.goto(`${stack.gateway_url}/settings/display`)))
      await Promise.all(tabs.map((tab) => tab.getByRole('heading', { level: 1, name: 'Display settings' }).waitFor()))

      // The first read of every tab is refused, all five at once.
      let refreshes = 0
      const refused: (() => Promise<void>)[] = []
      await context.route('**/v1/token?response_mode=cookie', (route) => {
        refreshes += 1
        return route.continue()
      })
      await context.route('**/api/v1/sessions', async (route) => {
        if (refused.length >= tabs.length) return route.continue()
        const headers = { ...route.request().headers(), authorization: 'Bearer stale' }
        refused.push(() => route.continue({ headers }))
        if (refused.length === tabs.length) await Promise.all(refused.map((send) => send()))
      })
      await Promise.all(tabs.map((tab) => fromMenu(tab, 'Active sessions')))
      await Promise.all(tabs.map((tab) => tab.getByText('This session').waitFor()))
      expect(refreshes).toBe(1)

      const elsewhere = await signIn(stack.gateway_url, account)
      await page.reload()
      await page.getByRole('button', { name: /^Sign out (node|Unknown)$/ }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await press(page, 'Sign out everywhere else')
      await page.getByText('Signed out everywhere else.').waitFor()
      await until(
        async () =>
          (await page.getByText('This session').count()) === 1 && (await page.locator('tbody tr').count()) === 1,
      )
      expect(elsewhere.username).toBe('pia')

      await fromMenu(page, 'Change password')
      const change = async (current: string, next: string) => {
        await page.getByLabel('Current password').fill(current)
        await page.getByLabel('New password').fill(next)
        await press(page, 'Change password')
      }
      await change('not-this-one-9-Q', 'gT4vz-pM2hc-bX8kw-dS5yy')
      await page.getByText('This is not your current password.').waitFor()
      await change(account.password, 'password')
      await page.locator('#new-password-error p').first().waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      const next = 'gT4vz-pM2hc-bX8kw-dS5yy'
      await change(account.password, next)
      await page.getByText('Password changed.').waitFor()
      await Promise.all(
        tabs.slice(1).map(async (tab) => {
          await tab.getByRole('link', { name: 'Resources' }).click()
          await tab.getByRole('heading', { level: 1, name: 'Resources' }).waitFor()
          expect(await dialogOf(tab).count()).toBe(0)
        }),
      )
      await page.reload()
      await page.getByRole('heading', { level: 1, name: 'Change password' }).waitFor()

      await page.getByRole('button', { name: /Signed in as pia/ }).click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      for (const tab of tabs) await tab.getByText(/^You are signed out/).waitFor()
      await signInAs(page, stack.gateway_url, { ...account, password: next })
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'has a provider identity linked and unlinked by its person, who signs in by either',
    async () => {
      const lena = { username: 'lena', password: 'nK3wd-vC8ty-hR5pb-zM6qq', roles: ['viewer'] }
      await ensurePerson(stack.gateway_url, people.ada, lena, 'netops')
      accounts.set('lena', lena)
      const { context, page } = await sitDown('lena')
      await page.goto(`${stack.gateway_url}/settings/password`)
      await press(page, 'Link Example Corp')
      // The provider's own page asks who signs in.
      await page.getByRole('link', { name: 'lena' }).click()
      await page.getByRole('button', { name: 'Unlink Example Corp' }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])

      const other = await browser.newContext({ reducedMotion: 'reduce' })
      const there = await openTab(other)
      await there.goto(`${stack.gateway_url}/login`)
      await there.getByRole('link', { name: /Example Corp/ }).click()
      await there.getByRole('link', { name: 'lena' }).click()
      await there.getByRole('button', { name: /Signed in as lena/ }).waitFor()
      // Only a browser with an open stream is told the reason; others just ask for a new sign-in.
      await there.getByText('Live', { exact: true }).waitFor()

      // The page and its fields stay while its person signs in elsewhere.
      await endSession(there)
      expect(await accessibilityOf(there)).toEqual([])
      const [tab] = await Promise.all([
        other.waitForEvent('page'),
        dialogOf(there).getByRole('link', { name: 'Continue with Example Corp' }).click(),
      ])
      await tab.getByRole('link', { name: 'lena' }).click()
      await dialogOf(there).waitFor({ state: 'detached' })
      await there.getByText('No resources yet.').or(there.getByRole('table')).first().waitFor()
      await tab.close()

      await press(page, 'Unlink Example Corp')
      await page.getByText('Example Corp unlinked. Your other sessions have ended.').waitFor()
      await page.getByRole('button', { name: 'Link Example Corp', exact: true }).waitFor()
      await there.getByText('Your session was ended elsewhere. Sign in again.').waitFor()
      await Promise.all([context.close(), other.close()])
    },
    PATIENCE_MS,
  )

  it(
    'that ends in another tab leaves no data on the page; the comment is restored after the same person signs in',
    async () => {
      const { gate } = await start('half said')
      const { context, page, open, signOut, enter } = await inTwoTabs('eva')
      const comment = async () => {
        await open(new URL(gate).pathname)
        await press(page, 'Reject')
        return dialogOf(page).getByLabel('Comment')
      }
      await (await comment()).fill('The canary is')
      await signOut()
      expect(await page.locator('body').textContent()).not.toContain('half said')

      await enter('otto')
      // Nor does the go-to field name what the person before has opened.
      await page.keyboard.press('Control+k')
      await page.getByRole('listbox').getByRole('option').first().waitFor()
      expect(await page.getByRole('option', { name: /opened before$/ }).allInnerTexts()).toEqual([])
      await page.keyboard.press('Escape')
      expect(await (await comment()).inputValue()).toBe('')
      await signOut()
      await enter('eva')
      expect(await (await comment()).inputValue()).toBe('The canary is')
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'that ends behind an open dialog asks for the password on top of it, and the field has the focus',
    async () => {
      const { gate } = await start('half decided')
      const { context, page } = await sitDown('eva')
      await page.goto(gate)
      await press(page, 'Reject')
      await dialogOf(page).getByLabel('Comment').fill('The canary is')
      for (const path of ['**/v1/token?response_mode=cookie', '**/gates/go/reject'])
        await page.route(path, (route) => route.fulfill({ status: 401 }))
      await confirm(page, 'Reject')
      await page.getByRole('heading', { name: 'Your session has ended' }).waitFor()
      const focused = () => page.evaluate('document.activeElement.id')
      await until(async () => (await focused()) === 'session-password', { what: 'the focus in the password field' })
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'that ends while gates are decided together restores their comment after the same person signs in',
    async () => {
      const titles = ['half first', 'half second']
      for (const title of titles) {
        // Earlier than the many gates of other cases, so on the first page of the inbox.
        const { operation_id } = await start(title, { deadline_s: 900 })
        await until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })
      }
      const { context, page, signOut, enter } = await inTwoTabs('eva')
      const comment = async () => {
        for (const title of titles)
          await page.getByRole('checkbox', { name: `Select Go on with ${title}?, ${title}` }).check()
        await press(page, 'Reject selected …')
        return dialogOf(page).getByLabel('Comment')
      }
      await (await comment()).fill('Both canaries are')
      await signOut()
      await enter('eva')
      expect(await (await comment()).inputValue()).toBe('Both canaries are')
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'that ends while a form is filled in restores its fields after the same person signs in',
    async () => {
      const { operation_id } = await start('half typed')
      await until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })
      const { context, page, open, signOut, enter } = await inTwoTabs('olga')
      const forms = [
        ['/admin/freezes', 'New freeze', 'Title: why changes must stop', 'Stock-taking'],
        [`/operations/${operation_id}/nodes/second`, 'Intervene', 'Ticket (optional)', 'OPS-9'],
        ['/resources?health=unhealthy', 'Save view', 'Name', 'Broken things'],
      ] as const
      for (const [path, button, label, text] of forms) {
        const field = async () => {
          await open(path)
          await press(page, button)
          return dialogOf(page).getByLabel(label)
        }
        await (await field()).fill(text)
        await signOut()
        await enter('olga')
        expect(await (await field()).inputValue()).toBe(text)
      }
      // Another choice changes the address of the form.
      await open('/new?kind=change&type=infra.generic')
      await page.getByLabel('Change, action or runbook').selectOption({ label: 'Rotate the certificate of a host' })
      await page.waitForURL(/procedure=fleet/)
      await page.getByLabel('Reason').fill('Half a reason')
      const { pathname, search } = new URL(page.url())
      await signOut()
      await enter('olga')
      await open(`${pathname}${search}`)
      await page.getByLabel('Reason').waitFor()
      expect(await page.getByLabel('Reason').inputValue()).toBe('Half a reason')
      await signOut()
      await enter('olga')
      const risk = page.getByLabel('From risk')
      await open('/settings/notifications')
      await risk.selectOption('high')
      await signOut()
      await enter('olga')
      await open('/settings/notifications')
      expect(await risk.inputValue()).toBe('high')
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'renews its token silently: before its end, and when a call is refused',
    async () => {
      const context = await browser.newContext()
      const page = await openTab(context)
      let refreshes = 0
      await page.route('**/v1/token?response_mode=cookie', async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        if (route.request().postData()?.includes('refresh_token')) refreshes += 1
        // The first token says that it ends in a minute: the page acts a minute before the end.
        await route.fulfill({ response: answer, json: refreshes === 0 ? { ...json, expires_in: 61 } : json })
      })
      await signInAs(page, stack.gateway_url, accounts.get('eva') as Account)
      await until(() => refreshes === 1, { what: 'a refresh before the end' })
      let calls = 0
      await page.route('**/api/v1/resources?**', async (route) => {
        calls += 1
        const headers = calls === 1 ? { ...route.request().headers(), authorization: 'Bearer stale' } : undefined
        await route.continue(headers ? { headers } : {})
      })
      await page.getByRole('link', { name: 'Resources' }).click()
      // Other cases of this platform may have created some already.
      await page.getByText('No resources yet.').or(page.getByRole('table')).first().waitFor()
      // At least twice: news from the stream may ask for the list once more.
      expect(calls).toBeGreaterThanOrEqual(2)
      expect(refreshes).toBe(2)
      expect(await page.getByText('session has ended').count()).toBe(0)
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'shows the login page with the reason when the session is revoked elsewhere',
    async () => {
      const { context, page } = await sitDown('eva')
      await page.getByText('Live', { exact: true }).waitFor()
      const elsewhere = await signIn(stack.gateway_url, accounts.get('eva') as Account)
      await elsewhere.post('/v1/sessions/revoke-others', {})
      await page.getByText('Your session was ended elsewhere. Sign in again.').waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'is live again as soon as a poll is answered, before the next attempt of the stream',
    async () => {
      const { context, page } = await sitDown('eva')
      await page.goto((await start('back soon')).url)
      await page.getByText('Live', { exact: true }).waitFor()
      await page.route('**/api/v1/**', (route) => route.abort())
      await page.evaluate("window.dispatchEvent(new Event('offline')); window.dispatchEvent(new Event('online'))")
      await page.getByText('Live updates are off; refreshing every 5 s.').waitFor({ timeout: 30_000 })
      await page.unrouteAll({ behavior: 'ignoreErrors' })
      await page.getByText('Live', { exact: true }).waitFor({ timeout: 30_000 })
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'shows Polling on a page whose topic does not fit into the stream, and Live when it does',
    async () => {
      const { context, page } = await sitDown('eva')
      await page.goto((await start('left out')).url)
      await page.getByText('Live', { exact: true }).waitFor()
      /** Another tab of this browser, with as many topics as a stream accepts; they come first alphabetically. */
      const others = (topics: string[]) =>
        page.evaluate(
          `new BroadcastChannel('signalbox-live').postMessage({ kind: 'topics', tab: 'other', topics: ${JSON.stringify(topics)} })`,
        )
      const uuid = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
      await others(Array.from({ length: 50 }, (_, n) => `operation:${uuid(n)}`))
      await page.getByText('Polling', { exact: true }).waitFor()
      await others([])
      await page.getByText('Live', { exact: true }).waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'is not called live while no token can be had for the stream; any tab may ask for another try',
    async () => {
      const { context, page } = await sitDown('eva')
      const other = await openTab(context)
      await other.goto(`${stack.gateway_url}/inbox`)
      for (const tab of [page, other]) await tab.getByText('Live', { exact: true }).waitFor()
      await context.route('**/v1/token?**', (route) => route.fulfill({ status: 599 }))
      await context.route('**/api/v1/events?**', (route) => route.fulfill({ status: 401 }))
      // Another topic, so another connection.
      await page.getByRole('link', { name: 'Operations' }).click()
      for (const tab of [page, other])
        await tab.getByText('Live updates are off; refreshing every 5 s.').waitFor({ timeout: 40_000 })
      await context.unroute('**/v1/token?**')
      await context.unroute('**/api/v1/events?**')
      // The first tab has the connection.
      await press(other, 'Retry now')
      for (const tab of [page, other]) await tab.getByText('Live', { exact: true }).waitFor({ timeout: 20_000 })
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'polls while the stream is blocked, says so, and is live again afterwards',
    async () => {
      const { context, page } = await sitDown('eva')
      await page.route('**/api/v1/events?**', (route) => route.abort())
      const { url, operation_id } = await start('polled')
      await page.goto(url)
      await page.getByText('Live updates are off; refreshing every 5 s.').waitFor({ timeout: 20_000 })
      expect(await accessibilityOf(page)).toEqual([])
      await people.olga.post(`/v1/operations/${operation_id}/cancel`, { mode: 'graceful', reason: 'seen by polling' })
      await page.getByText('“seen by polling”').waitFor({ timeout: 20_000 })
      await page.unroute('**/api/v1/events?**')
      // A successful poll may be faster than the press.
      const live = page.getByText('Live', { exact: true })
      await Promise.race([press(page, 'Retry now').catch(() => {}), live.waitFor()])
      await live.waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )
})
