import { AxeBuilder } from '@axe-core/playwright'
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core'
import { createScreen } from '../../apps/platform/base/screen.ts'
import type { Account } from '../../apps/platform/demo/client.ts'
import { locateChromium, locateShell } from './chromium.ts'

/** Chromium contacts the network by itself; in tests it talks only to this machine. */
const ARGS = [
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  '--disable-quic',
  '--disable-gpu',
]

const OPTIONS = { headless: true, args: process.getuid?.() === 0 ? ['--no-sandbox', ...ARGS] : ARGS }

/** A real, headless browser: the system's, or the one that the setup installed. */
export const launchBrowser = async (): Promise<Browser> =>
  chromium.launch({ ...OPTIONS, executablePath: await locateShell(createScreen()) })

/** A phone with its own profile in this folder: apps can be installed in no other kind. It shows notifications. */
export const launchPhone = async (folder: string): Promise<BrowserContext> =>
  chromium.launchPersistentContext(folder, {
    ...OPTIONS,
    executablePath: await locateChromium(createScreen()),
    viewport: { width: 390, height: 844 },
    isMobile: true,
    hasTouch: true,
    deviceScaleFactor: 2,
    reducedMotion: 'reduce',
  })

/** Gives a page's browser an authenticator that answers at once, like one with a fingerprint. */
export const addAuthenticator = async (context: BrowserContext, page: Page): Promise<void> => {
  const cdp = await context.newCDPSession(page)
  await cdp.send('WebAuthn.enable')
  await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
}

/** How many words a part of a page shows; symbols alone do not count. */
export const wordsIn = async (part: Locator): Promise<number> =>
  // biome-ignore lint/performance/useDomNodeTextContent: what a fold hides is not shown
  (await part.innerText()).split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length

/** How many of these rows begin above the end of the row before, by more than its edge. */
export const overlapsOf = async (rows: Locator): Promise<number> => {
  const spans = await rows.evaluateAll((all) =>
    all.map((one) => one.getBoundingClientRect()).map(({ top, bottom }) => [top, bottom] as const),
  )
  const sorted = spans.toSorted(([a], [b]) => a - b)
  return sorted.filter(([top], at) => top < (sorted[at - 1]?.[1] ?? top) - 2).length
}

/** Signs this person in at the login page and waits for their inbox. */
export const signInAs = async (page: Page, gateway_url: string, { username, password }: Account): Promise<void> => {
  await page.goto(`${gateway_url}/login`)
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { level: 1, name: /Inbox|Eingang/ }).waitFor()
}

/** Everything a page complains about: script errors, policy violations, failed loads of its own files. */
export const complaintsOf = (page: Page): string[] => {
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`))
  page.on('console', (message) => {
    // The browser logs an expected refusal of the API as a failed load; that is not the page's mistake.
    if (
      message.type() === 'error' &&
      !/Failed to load resource: the server responded with a status of 4/.test(message.text())
    )
      complaints.push(`console: ${message.text()} ${message.location().url}`)
  })
  return complaints
}

/** Violations of WCAG 2.2 A and AA on the current page, one line each. */
export const accessibilityOf = (page: Page): Promise<string[]> =>
  faultsBy(page, (axe) => axe.withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']))

/** Those that depend on colors: for a page that was checked in another scheme. */
export const contrastOf = (page: Page): Promise<string[]> =>
  faultsBy(page, (axe) => axe.withRules(['color-contrast', 'link-in-text-block']))

const faultsBy = async (page: Page, rules: (axe: AxeBuilder) => AxeBuilder): Promise<string[]> => {
  const axe = new AxeBuilder({ page })
    // Our pages have no frames: the check runs in the page itself, without another tab to combine results.
    .setLegacyMode()
    .options({ resultTypes: ['violations'] })
  const { violations } = await rules(axe).analyze()
  const faults: string[] = []
  for (const { id, nodes } of violations) {
    const targets = nodes.map((node) => node.target.join(' '))
    const left = id === 'target-size' ? await clearOfHeader(page, targets) : targets
    if (left.length > 0) faults.push(`${new URL(page.url()).pathname}: ${id}: ${left.slice(0, 3).join(', ')}`)
  }
  return faults
}

/** Targets without those scrolled below the header: there, the fields of the header seem to cut pieces from them. */
const clearOfHeader = async (page: Page, targets: string[]): Promise<string[]> => {
  const header = await page.locator('header').first().boundingBox()
  const edge = header ? header.y + header.height : 0
  const found = await Promise.all(
    targets.map(async (selector) => {
      const target = page.locator(selector).first()
      const own = await target.evaluate((element) => element.closest('header') !== null)
      return own || ((await target.boundingBox())?.y ?? edge) >= edge ? [selector] : []
    }),
  )
  return found.flat()
}
