import { AxeBuilder } from '@axe-core/playwright'
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core'
import { createScreen } from '../../apps/platform/base/screen.ts'
import type { Account } from '../../apps/platform/demo/client.ts'
import { locateChromium } from './chromium.ts'

/** Chromium reaches for the network by itself; in tests it talks to this machine only. */
const ARGS = [
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  '--disable-quic',
  '--disable-gpu',
]

const optionsOf = async () => {
  const asRoot = process.getuid?.() === 0
  return {
    executablePath: await locateChromium(createScreen()),
    headless: true,
    args: asRoot ? ['--no-sandbox', ...ARGS] : ARGS,
  }
}

/** A real, headless browser: the system's, or the one that set-up installed. */
export const launchBrowser = async (): Promise<Browser> => chromium.launch(await optionsOf())

/** A phone with a profile of its own in this folder: apps are installed in no other. */
export const launchPhone = async (folder: string): Promise<BrowserContext> =>
  chromium.launchPersistentContext(folder, {
    ...(await optionsOf()),
    viewport: { width: 390, height: 844 },
    isMobile: true,
    hasTouch: true,
    deviceScaleFactor: 2,
    reducedMotion: 'reduce',
  })

/** Gives a page's browser an authenticator that answers at once, as one with a fingerprint does. */
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

/** How many words a part of a page shows; signs alone are none. */
export const wordsIn = async (part: Locator): Promise<number> =>
  // biome-ignore lint/performance/useDomNodeTextContent: what a fold hides is not shown
  (await part.innerText()).split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length

/** Signs this person in at the login page and waits for their inbox. */
export const signInAs = async (page: Page, gateway_url: string, { username, password }: Account): Promise<void> => {
  await page.goto(`${gateway_url}/login`)
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { level: 1, name: /Inbox|Eingang/ }).waitFor()
}

/** Everything a page complains about: errors of scripts, refused policies, failed loads of its own files. */
export const complaintsOf = (page: Page): string[] => {
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`))
  page.on('console', (message) => {
    // An expected refusal of the API is logged by the browser as a failed load; that is not the page's mistake.
    if (
      message.type() === 'error' &&
      !/Failed to load resource: the server responded with a status of 4/.test(message.text())
    )
      complaints.push(`console: ${message.text()}`)
  })
  return complaints
}

/** Violations of WCAG 2.2 A and AA on the page as it stands, one line each. */
export const accessibilityOf = async (page: Page): Promise<string[]> => {
  const { violations } = await new AxeBuilder({ page })
    // No page of ours holds a frame: one run in the page itself, without another tab that puts results together.
    .setLegacyMode()
    .options({ resultTypes: ['violations'] })
    .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'])
    .analyze()
  return violations.map(
    ({ id, nodes }) =>
      `${new URL(page.url()).pathname}: ${id}: ${nodes
        .map((node) => node.target.join(' '))
        .slice(0, 3)
        .join(', ')}`,
  )
}
