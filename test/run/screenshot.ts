import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { ROOT, signalboxDir } from '../../apps/platform/base/paths.ts'
import { readRun } from '../../apps/platform/base/record.ts'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { readDemo } from '../../apps/platform/demo/accounts.ts'
import type { Account } from '../../apps/platform/demo/client.ts'
import type { Run } from '../../apps/platform/run/supervisor.ts'
import { locateChromium } from '../support/chromium.ts'

/** `npm run screenshot`: the pictures of the README, taken from the running platform by a real browser. */
const FOLDER = join(ROOT, '.github/images')
const SIZE = { width: 1360, height: 900 }

const signIn = async (page: Page, gateway: string, { username, password }: Account) => {
  await page.goto(`${gateway}/login`)
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { level: 1, name: /Inbox/ }).waitFor()
}

const gateway = readRun<Run>(signalboxDir())?.gateway
const eva = readDemo(signalboxDir())?.users.find(({ username }) => username === 'eva')
if (!gateway || !eva) {
  console.error('The platform does not run with its demo: npm start')
  process.exit(1)
}
const executablePath = await locateChromium(createScreen())
const browser = await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })
try {
  mkdirSync(FOLDER, { recursive: true })
  const page = await browser.newPage({ viewport: SIZE, reducedMotion: 'reduce' })
  const take = async (name: string) => {
    await page.waitForTimeout(1000) // live pages are never idle; after this long everything is drawn
    await page.screenshot({ path: join(FOLDER, `${name}.png`) })
    console.log(join('.github/images', `${name}.png`))
  }
  await signIn(page, gateway, eva)
  await take('inbox')
  await page.locator('main a[href*="/gates/"]').first().click()
  await page.getByRole('region', { name: 'Decision brief' }).waitFor()
  await take('gate')
  await page.goto(`${gateway}${new URL(page.url()).pathname.replace(/\/gates\/.*/, '/graph')}`)
  await page.getByRole('grid').or(page.locator('.react-flow__node').first()).waitFor()
  await take('operation')
} finally {
  await browser.close()
}
