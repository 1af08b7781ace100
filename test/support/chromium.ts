import { existsSync, readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { bin } from '../../apps/platform/base/paths.ts'
import type { Screen } from '../../apps/platform/base/screen.ts'
import { systemPackage } from '../../apps/platform/servers/packages.ts'
import { locate, run, type Source, which } from '../../apps/platform/servers/sources.ts'

const PROGRAMS = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']
const INSTALLED = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
]
const FETCH_MS = 240_000

/** Finds or installs a whole browser. */
export const locateChromium = (screen: Screen): Promise<string> =>
  locate(
    'chromium',
    [
      source('CHROMIUM_PATH', () => process.env.CHROMIUM_PATH),
      source(`${PROGRAMS.join(', ')} on PATH`, () => PROGRAMS.map(which).find(Boolean)),
      source('installed applications', () => INSTALLED.find((path) => existsSync(path))),
      source("playwright's browsers", playwrightBrowser),
      systemPackage({ apt: 'chromium' }, PROGRAMS),
      {
        what: 'playwright-core install chromium-headless-shell',
        run: async (say) => {
          say('downloading the headless browser of Playwright')
          await run(bin('playwright-core'), ['install', 'chromium-headless-shell'], { timeout_ms: FETCH_MS })
          const found = playwrightBrowser()
          if (!found) throw new Error('it brought no browser')
          return found
        },
      },
    ],
    'install Chromium or Chrome, or set CHROMIUM_PATH.',
    screen,
  )

const SHELL = 'chromium-headless-shell'

/**
 * A browser for tests that need no notification: a shell without a window takes half as much CPU as a whole browser
 * without one. Where there is no such package, the whole browser.
 */
export const locateShell = (screen: Screen): Promise<string> =>
  locate(
    SHELL,
    [
      source('CHROMIUM_SHELL_PATH', () => process.env.CHROMIUM_SHELL_PATH),
      source('CHROMIUM_PATH', () => process.env.CHROMIUM_PATH),
      source(`${SHELL} on PATH`, () => which(SHELL)),
      ...(process.getuid?.() === 0 ? [systemPackage({ apt: SHELL }, [SHELL])] : []),
      { what: 'chromium', run: () => locateChromium(screen) },
    ],
    'install Chromium or Chrome, or set CHROMIUM_PATH.',
    screen,
  )

const source = (what: string, find: () => string | undefined): Source => ({
  what,
  run: async () => {
    const path = find()
    if (!path || !existsSync(path)) throw new Error('not there')
    return path
  },
})

const playwrightBrowser = (): string | undefined => {
  const mac = process.platform === 'darwin'
  const root =
    process.env.PLAYWRIGHT_BROWSERS_PATH ??
    join(homedir(), mac ? 'Library/Caches/ms-playwright' : '.cache/ms-playwright')
  if (!existsSync(root)) return undefined
  for (const folder of readdirSync(root)
    .filter((name) => name.startsWith('chromium'))
    .sort()
    .reverse()) {
    const base = join(root, folder)
    const found = readdirSync(base, { recursive: true })
      .map((name) => join(base, String(name)))
      .find((path) => /\/(chrome|headless_shell|chrome-headless-shell|Chromium)$/.test(path))
    if (found) return found
  }
}
