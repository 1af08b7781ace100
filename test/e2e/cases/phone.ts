import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { BrowserContext, Page, Worker } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Account } from '../../../apps/platform/demo/client.ts'
import { accessibilityOf, addAuthenticator, launchPhone, signInAs } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import {
  accounts,
  dialogOf,
  nodesOf,
  openTab,
  PATIENCE_MS,
  people,
  pushes,
  stack,
  start,
  takePictures,
} from '../desk.ts'

/**
 * A phone that installs the console, is notified and decides. No browser can reach its vendor's push service from here,
 * so ours replaces it: it takes what the platform sends, reads it as the browser would and hands it to the worker.
 */
const BROWSER = `{
  const made = {
    toJSON: () => (SUBSCRIPTION),
    unsubscribe: async () => { localStorage.removeItem('phone.subscribed'); return true },
  }
  PushManager.prototype.subscribe = async ({ userVisibleOnly, applicationServerKey }) => {
    if (!userVisibleOnly || applicationServerKey.length !== 87) throw new TypeError('no such options')
    localStorage.setItem('phone.subscribed', '1')
    return made
  }
  PushManager.prototype.getSubscription = async () => (localStorage.getItem('phone.subscribed') ? made : null)
}`
let folder: string
let phone: BrowserContext
let page: Page
let device: ReturnType<typeof pushes.browser>

const settings = async () => {
  await page.goto(`${stack.gateway_url}/settings/notifications`)
  await page.getByRole('heading', { name: 'This device' }).waitFor()
}
const worker = (): Promise<Worker> =>
  until(async () => phone.serviceWorkers().find((one) => one.url() === `${stack.gateway_url}/sw.js`), {
    what: 'the service worker',
    timeout_ms: 20_000,
  })

/** Hands pushes to the worker as the browser does, by the browser's own protocol. */
const deliverer = async () => {
  const cdp = await phone.newCDPSession(page)
  let registrationId = ''
  cdp.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
    registrationId = registrations.at(-1)?.registrationId ?? registrationId
  })
  await cdp.send('ServiceWorker.enable')
  await until(() => registrationId !== '', { what: 'the registration of the worker' })
  return (payload: object) =>
    cdp.send('ServiceWorker.deliverPushMessage', {
      origin: stack.gateway_url,
      registrationId,
      data: JSON.stringify(payload),
    })
}

type Shown = { tag: string; title: string; body: string; url: string }
const notifications = () =>
  page.evaluate<Shown[]>(`navigator.serviceWorker.ready.then((one) => one.getNotifications()).then((shown) =>
    shown.map(({ tag, title, body, data }) => ({ tag, title, body, url: data.url })))`)

/** A click as the browser makes it. Only a person's click may open a window, so the target address is kept instead. */
const clicked = async (tag: string): Promise<string> =>
  (await worker()).evaluate<string>(`registration.getNotifications({ tag: '${tag}' }).then(([notification]) =>
    new Promise((resolve) => {
      clients.openWindow = async (url) => resolve(url)
      dispatchEvent(new NotificationEvent('notificationclick', { notification }))
    }))`)

/** How far the page is wider than the screen, and the controls that are too small for a thumb. */
const clumsy = () =>
  page.evaluate<string[]>(`[
    ...(document.documentElement.scrollWidth > innerWidth ? ['too wide'] : []),
    ...[...document.querySelectorAll('main button, main a.button, [role=dialog] button')]
      .map((one) => [one.textContent, one.getBoundingClientRect()])
      .filter(([, { width, height }]) => width > 0 && (width < 24 || height < 24))
      .map(([text, { width, height }]) => text + ' ' + width + ' x ' + height),
  ]`)

describe('a phone', () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'signalbox-phone-'))
    phone = await launchPhone(folder)
    await phone.grantPermissions(['notifications'], { origin: stack.gateway_url })
    device = pushes.browser()
    await phone.addInitScript(BROWSER.replace('SUBSCRIPTION', JSON.stringify(device.body)))
    page = await openTab(phone)
    await signInAs(page, stack.gateway_url, accounts.get('eva') as Account)
  }, PATIENCE_MS)
  afterAll(async () => {
    await phone?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it(
    'installs the console, which prompts no one',
    async () => {
      await settings()
      const cdp = await phone.newCDPSession(page)
      expect((await cdp.send('Page.getInstallabilityErrors')).installabilityErrors).toEqual([])
      expect(await page.evaluate('navigator.serviceWorker.getRegistrations().then(({ length }) => length)')).toBe(0)
      const manifest = await (await fetch(`${stack.gateway_url}/manifest.webmanifest`)).json()
      expect(manifest).toMatchObject({ display: 'standalone', start_url: '/inbox?for=me' })
      const script = await fetch(`${stack.gateway_url}/sw.js`)
      expect(Object.fromEntries(script.headers)).toMatchObject({
        'content-type': 'text/javascript; charset=utf-8',
        'cache-control': 'no-cache',
        'content-security-policy': "default-src 'none'; connect-src 'self'",
      })
      const listened = [...(await script.text()).matchAll(/addEventListener\('(\w+)'/g)].map(([, name]) => name)
      expect(listened).toEqual(['push', 'notificationclick', 'pushsubscriptionchange'])
      // The policy of the page lets only our script register a worker.
      const bare = await phone.newPage() // Its complaint is the point, so it is not collected.
      await bare.goto(stack.gateway_url)
      const refused = await bare.evaluate(`navigator.serviceWorker.register('/sw.js').then(() => '', String)`)
      await bare.close()
      expect(refused).toContain('TrustedScriptURL')
      expect(await accessibilityOf(page)).toEqual([])
      expect(await clumsy()).toEqual([])
      await takePictures(page, 'device')
    },
    PATIENCE_MS,
  )

  it(
    'is notified of a gate and decides it with four taps',
    async () => {
      await addPasskey()
      await settings()
      await page.getByRole('button', { name: 'Notify me on this device' }).tap()
      await page.getByText('This device is notified while you are signed in.').waitFor()
      const deliver = await deliverer()
      const { operation_id } = await start('from a phone', { signature: 'required' })
      const pushed = await until(() => device.got.find(({ payload }) => payload.tag === `${operation_id}/go`), {
        what: 'a push',
        timeout_ms: 30_000,
      })
      await deliver(pushed.payload)
      await until(async () => (await notifications()).length === 1, { what: 'the notification' })
      expect(await notifications()).toEqual([
        {
          tag: `${operation_id}/go`,
          title: 'Go on with from a phone?',
          body: expect.stringContaining('from a phone · Risk: '),
          url: `/operations/${operation_id}/gates/go?round=1`,
        },
      ])

      // One: the notification. It only opens the page.
      const requests: string[] = []
      phone.on('request', (request) => void requests.push(`${request.method()} ${request.url()}`))
      await page.goto(await clicked(`${operation_id}/go`))
      const approve = page.getByRole('button', { name: 'Approve', exact: true })
      await approve.waitFor()
      expect(requests.filter((line) => line.startsWith('POST') && line.includes('/gates/'))).toEqual([])
      expect(await notifications()).toEqual([])
      expect(await clumsy()).toEqual([])
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'phone-gate')
      // Two, without a scroll to find it, and three; the passkey is the fourth.
      const box = await approve.boundingBox()
      expect(box && box.y >= 0 && box.y + box.height <= 844).toBe(true)
      await approve.tap()
      const confirm = dialogOf(page).getByRole('button', { name: 'Approve' })
      await confirm.waitFor()
      expect(await clumsy()).toEqual([])
      await takePictures(page, 'phone-dialog')
      await confirm.tap()
      await until(async () => (await nodesOf(operation_id)).second === 'succeeded', {
        timeout_ms: 30_000,
        what: 'the node behind the gate',
      })

      // What the passkey signed names what the page asked about.
      type Records = {
        records: { kind: string; subject: { signature?: { ballot: { id: string; digest: string } } } }[]
      }
      const { digest } = await people.eva.get<{ digest: string }>(`/v1/operations/${operation_id}/gates/go`)
      const { records } = await people.olga.get<Records>(`/v1/operations/${operation_id}/evidence`)
      const vote = records.find(({ kind }) => kind === 'vote')
      expect(vote?.subject.signature?.ballot).toMatchObject({ id: 'go', digest })

      const outcome = await until(() => device.got.find(({ payload }) => payload.title === 'Approved by eva.'), {
        what: 'the outcome',
        timeout_ms: 30_000,
      })
      expect(outcome.payload).toMatchObject({ tag: `${operation_id}/go`, silent: true })
      // The DevTools' message is lost if the worker is just being stopped.
      const again = async () => {
        await deliver(pushed.payload)
        await delay(2000)
        return (await notifications()).length === 1
      }
      await until(again, { what: 'the notification' })
      await deliver(outcome.payload)
      await until(async () => (await notifications())[0]?.title === 'Approved by eva.', { what: 'its outcome' })
      expect(await notifications()).toHaveLength(1)
      expect(await page.evaluate('caches.keys()')).toEqual([])
    },
    PATIENCE_MS,
  )

  it(
    'is not notified after a sign-out, on the device or at the server',
    async () => {
      const devices = async () => {
        const { items } = await people.eva.get<{ items: { kind: string }[] }>('/v1/notifications/destinations')
        return items.filter(({ kind }) => kind === 'push').length
      }
      expect(await devices()).toBe(1)
      await page.goto(`${stack.gateway_url}/inbox?for=me`)
      await page.getByRole('heading', { level: 1, name: /Inbox/ }).waitFor()
      expect(await clumsy()).toEqual([])
      await page.getByRole('button', { name: /Signed in as eva/ }).tap()
      await page.getByRole('menuitem', { name: 'Sign out' }).tap()
      await page.getByLabel('Username').waitFor()
      await until(() => page.evaluate<boolean>(`localStorage.getItem('phone.subscribed') === null`), {
        what: 'the browser to unsubscribe',
      })
      await until(async () => (await devices()) === 0, { what: 'the server to forget it' })
    },
    PATIENCE_MS,
  )
})

const addPasskey = async () => {
  await addAuthenticator(phone, page)
  await page.goto(`${stack.gateway_url}/settings/passkeys`)
  await page.getByLabel('Name of the new passkey').fill('phone')
  await page.getByRole('button', { name: 'Add a passkey' }).tap()
  await page.getByText('Passkey added.').waitFor()
}
