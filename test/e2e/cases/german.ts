import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { intervene } from '../../../apps/console/words-de/operations/intervene.ts'
import { ROOT } from '../../../apps/platform/base/paths.ts'
import { ensurePerson } from '../../../apps/platform/demo/accounts.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { wordPairs } from '../../support/words.ts'
import { accounts, dialogOf, PATIENCE_MS, people, press, sitDown, stack, start, takePictures } from '../desk.ts'

/** Pages of every area, seen by an administrator. */
const PAGES = [
  ...['/inbox', '/overview', '/operations', '/intents', '/new', '/schedules', '/resources', '/topology'],
  ...['/capabilities', '/health', '/audit', '/admin/users', '/admin/groups', '/admin/grants', '/admin/changes'],
  ...[
    '/admin/service-accounts',
    '/admin/agents',
    '/admin/providers',
    '/settings/sessions',
    '/settings/passkeys',
    '/settings/notifications',
  ],
  ...['/settings/password', '/settings/display', '/device'],
]

/** Files of the English build that the German one does not share. */
const englishOnly = (): Set<string> => {
  const filesOf = (name: string): string[] =>
    Object.values(
      JSON.parse(readFileSync(join(ROOT, '.signalbox/test-console/.vite', name), 'utf8')) as { file: string }[],
    ).map(({ file }) => file)
  const german = new Set(filesOf('manifest.de.json'))
  return new Set(filesOf('manifest.json').filter((file) => !german.has(file)))
}

/** Runs in the page: the texts that it shows or speaks, each as one piece, except those marked as English. */
const TEXTS = `(() => {
  const texts = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode())
    if (!walker.currentNode.parentElement.closest('script, style, noscript, [lang=en]')) texts.push(walker.currentNode.data)
  for (const name of ['aria-label', 'title', 'placeholder'])
    for (const element of document.querySelectorAll('[' + name + ']')) texts.push(element.getAttribute(name))
  return texts.map((text) => text.trim())
})()`
const textsOf = (page: Page): Promise<string[]> => page.evaluate(TEXTS)

/** The texts, once half a second passes without a new one. */
const settledTexts = (page: Page): Promise<string[]> => {
  let before = ''
  return until(
    async () => {
      const texts = await textsOf(page)
      const now = texts.join()
      if (now === before) return texts
      before = now
      return undefined
    },
    { what: 'a page at rest', every_ms: 500 },
  )
}

describe('the console in German', () => {
  it(
    'is chosen in the display settings; no page shows an English text or fetches an English script',
    async () => {
      const { context, page } = await sitDown('ada')
      await page.goto(`${stack.gateway_url}/settings/display`)
      await page.getByRole('radio', { name: 'Deutsch' }).check()
      await page.locator('html[lang=de]').waitFor()
      const fetched = new Set<string>()
      page.on('request', (request) => fetched.add(new URL(request.url()).pathname.slice(1)))
      const pairs = await wordPairs()
      const both = new Set(pairs.map(({ german }) => german))
      // A single lowercase word may be a code or a name, which is shown as it was sent.
      const english = new Set(
        pairs.map((pair) => pair.english).filter((text) => !both.has(text) && !/^[a-z_]+$/.test(text)),
      )

      const { operation_id, gate } = await start('german')
      const of = (tab: string) => `/operations/${operation_id}${tab}`
      const paths = [...PAGES, ...['', '/graph', '/timeline', '/nodes', '/patches', '/evidence'].map(of)]
      const left: string[] = []
      for (const path of [...paths, gate.slice(stack.gateway_url.length)]) {
        await page.goto(`${stack.gateway_url}${path}`)
        await page.getByRole('heading', { level: 1 }).waitFor()
        const texts = await settledTexts(page)
        left.push(...texts.filter((text) => english.has(text)).map((text) => `${path}: ${text}`))
        // Its words are longer than the English ones, and fit a narrow page all the same.
        await page.setViewportSize({ width: 320, height: 640 })
        const wide = await page.evaluate<number>('document.documentElement.scrollWidth')
        if (wide > 320) left.push(`${path} is ${wide} px wide`)
        await page.setViewportSize({ width: 1360, height: 900 })
      }
      expect(left).toEqual([])
      await page.getByRole('button', { name: 'Freigeben' }).first().waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'german')
      await page.goto(`${stack.gateway_url}/resources?q=labels.tier%3D`)
      const refused = page.getByRole('alert')
      await refused.getByText('Der Filter ist nicht lesbar.').waitFor()
      await refused.locator('[lang=en]').first().waitFor()
      await takePictures(page, 'german-refusal')
      await page.route('**/api/v1/admin/changes?**', async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        await route.fulfill({ response: answer, json: { ...json, control: { ...json.control, notice: 'A notice.' } } })
      })
      await page.goto(`${stack.gateway_url}/admin/changes`)
      await page.locator('[lang=en]').filter({ hasText: 'A notice.' }).waitFor()
      const foreign = englishOnly()
      expect(foreign.size).toBeGreaterThan(10)
      expect([...fetched].filter((file) => foreign.has(file))).toEqual([])
      await context.close()
    },
    PATIENCE_MS * 2,
  )

  it(
    'says refusals in German, and marks every other text of the server as English',
    async () => {
      const gerda = { username: 'gerda', password: 'qP4mz-rT8vd-kW3xc-hN6ss', roles: ['operator'] }
      await ensurePerson(stack.gateway_url, people.ada, gerda, 'netops')
      accounts.set('gerda', gerda)
      const title = 'german refusals'
      // The next to end: the inbox shows first the gates with the nearest deadline, and others left many.
      const { operation_id, url } = await start(title, { deadline_s: 1800 })
      const path = `/v1/operations/${operation_id}`
      const blocked = async () => {
        const { blocked_on } = await people.olga.get<{ blocked_on: { kind: string; message: string }[] }>(path)
        return blocked_on.find(({ kind }) => kind === 'gate')?.message
      }
      const message = await until(blocked, { what: 'the gate to ask' })
      const freeze = { freeze_id: 'f-german', title: 'Inventur', applies: 'false', approvers: ['netops'] }
      await people.olga.post('/v1/freezes', { ...freeze, from: new Date().toISOString(), to: '2099-01-01T00:00:00Z' })
      const { context, page } = await sitDown('gerda')
      await page.goto(`${stack.gateway_url}/settings/display`)
      await page.getByRole('radio', { name: 'Deutsch' }).check()
      await page.locator('html[lang=de]').waitFor()

      await page.goto(`${stack.gateway_url}/inbox?for=all`)
      await page.getByRole('article').filter({ hasText: title }).getByText('Ihnen fehlt ein Recht.').waitFor()
      await page.goto(`${stack.gateway_url}/admin/freezes`)
      await page.getByRole('row').filter({ hasText: 'Inventur' }).getByText('Ihnen fehlt ein Recht.').waitFor()
      await page.goto(`${stack.gateway_url}/operations?tab=all`)
      const row = page.getByRole('row').filter({ hasText: title })
      await row.getByTitle(message).filter({ hasText: 'Freigabe go wartet auf eine Entscheidung.' }).waitFor()

      await page.route(`**/api${path}`, async (route) => {
        const answer = await route.fetch()
        const json = { ...(await answer.json()), open_gates: [], status: 'blocked' }
        json.blocked_on = [{ kind: 'engine', id: operation_id, message: 'The engine does not answer.' }]
        await route.fulfill({ response: answer, json })
      })
      await page.goto(url)
      await page.getByText('Blockiert:').locator('[lang=en]').getByText('The engine does not answer.').waitFor()
      await page.unrouteAll({ behavior: 'wait' })
      await page.goto(`${url}/nodes/second`)
      await press(page, intervene.open)
      await dialogOf(page).getByRole('radio').first().waitFor()
      const unmarked = dialogOf(page)
        .getByText(/does not apply/)
        .and(page.locator(':not([lang=en])'))
      expect(await unmarked.count()).toBe(0)
      await context.close()
    },
    PATIENCE_MS,
  )
})
