import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT } from '../../../apps/platform/base/paths.ts'
import { accessibilityOf, contrastOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { PATIENCE_MS, people, sitDown, stack, start, takePictures } from '../desk.ts'

const ROUTES = join(ROOT, 'apps/console/routes')
/** A route with options of its own, or a page that `pagesBelow` made: its parent or maker, and its path. */
const ROUTE = /(?:getParentRoute: \(\) => (\w+),\s+path: |= (\w+)\(\s*)'([/$][^']*)'/g
const BELOW: Record<string, string> = {
  ...{ admin: '/admin', section: '/admin' },
  ...{ operation: '/operations/$operation_id', tab: '/operations/$operation_id' },
}
/** They redirect at once, or match all other addresses. */
const REDIRECTS = new Set(['$', '/', '/admin/', '/operations/$operation_id/', '/admin', '/operations/$operation_id'])

/** The paths of all pages, as the router has them. */
const paths = (): string[] =>
  readdirSync(ROUTES)
    .flatMap((name) => [...readFileSync(join(ROUTES, name), 'utf8').matchAll(ROUTE)])
    .map(([, parent, maker = '', path]) => `${BELOW[parent ?? maker] ?? ''}${path}`)
    .filter((path) => !REDIRECTS.has(path))
    .sort()

/** An operation at its gate with a patch, and the other objects that the addresses name. */
const things = async (): Promise<Record<string, string>> => {
  // As long as a title may be, with no place to break it.
  const { operation_id } = await start('every-page'.repeat(20))
  const of = `/v1/operations/${operation_id}`
  const gate = async () => (await people.eva.get<{ status: string }>(`${of}/gates/go`)).status
  await until(async () => (await gate()) === 'waiting', { what: 'the gate' })
  const body = { base_revision: 1, changes: [{ op: 'set_limits', max_parallel: 2 }], reason: 'Slower, please' }
  const { patch_id } = (await people.olga.post<{ patch_id: string }>(`${of}/patches`, body)).body
  const { plan_id } = await people.eva.get<{ plan_id: string }>(of)
  const { id: user_id } = await people.ada.get<{ id: string }>('/v1/users/me')
  await people.ada.post('/v1/resources?mode=record_only', {
    ...{ resource_id: 'paged', type_key: 'infra.generic', name: 'paged' },
    desired_state: { provider: 'test', kind: 'thing' },
  })
  const intent = { kind: 'graph', title: 'paged', reason: 'a test', targets: [], graph: { nodes: [NODE] } }
  const when = { cron: '0 22 * * 1-5', timezone: 'Europe/Berlin' }
  const made = await people.olga.post<{ schedule_id: string }>('/v1/schedules', { when, intent, proceed: 'start' })
  return {
    ...{ operation_id, patch_id, plan_id, user_id, resource_id: 'paged', gate_id: 'go', node_id: 'first' },
    schedule_id: made.body.schedule_id,
  }
}
const NODE = { node_id: 'one', name: 'one', kind: 'task', executor: 'noop', with: {}, idempotent: true, depends_on: [] }

/** Views of a page that share its path. */
const VIEWS: Record<string, string[]> = {
  '/resources/$resource_id': ['relations', 'impact', 'capabilities', 'operations', 'versions'],
  '/plans/$plan_id': ['graph', 'gates', 'checks', 'rehearsal'],
  '/operations/$operation_id/nodes/$node_id': ['logs', 'io', 'artifacts'],
}

/**
 * Runs in the page, whose colors are the system's: controls and badges without any edge, and rows of choices whose
 * chosen one looks like its neighbors.
 */
const UNSEEN = `(() => {
  const shown = (selector, root = document) => [...root.querySelectorAll(selector)].filter((one) => one.checkVisibility())
  const nameOf = (one) => one.className + ' ' + (one.getAttribute('aria-label') ?? one.textContent).trim().slice(0, 30)
  const hasEdge = (one) => ['Top', 'Left', 'Bottom'].some((side) => {
    const style = getComputedStyle(one)
    return style['border' + side + 'Style'] !== 'none' && parseFloat(style['border' + side + 'Width']) > 0
  })
  const bare = shown('.badge, .button:not(.quiet, .icon), .input').filter((one) => !hasEdge(one)).map(nameOf)
  const same = shown('.tabs, .choices, nav.nav').flatMap((row) => {
    const [chosen] = shown('[aria-current], [aria-pressed=true]', row)
    const others = shown('a, button', row).filter((one) => one !== chosen)
    const ground = (one) => getComputedStyle(one).backgroundColor
    return chosen && others.some((one) => ground(one) === ground(chosen)) ? [nameOf(row)] : []
  })
  return [...bare, ...same]
})()`

describe('every page', () => {
  it(
    'is accessible in light and dark, keeps its edges in forced colors, and needs no sideways scroll at 320 px',
    async () => {
      const known = await things()
      const { context, page } = await sitDown('ada')
      const addresses = paths()
        .filter((path) => !['/login', '/enrol', '/sign-out'].includes(path))
        .flatMap((path) => [path, ...(VIEWS[path] ?? []).map((tab) => `${path}?tab=${tab}`)])
        .concat('/no/such/page', '/operations/no-such-operation/graph', '/plans/no-such-plan', '/schedules/no-such-one')
        // A mistyped parameter does not break the page.
        .concat('/operations?tab=all&from=then&to=now', '/operations/$operation_id/graph?view=none')
      const faults: string[] = []
      for (const [index, path] of addresses.entries()) {
        const address = path.replaceAll(/\$(\w+)/g, (_, name: string) => known[name] ?? `no ${name}`)
        expect(address, path).not.toContain('no ')
        await page.emulateMedia({ colorScheme: index % 2 === 0 ? 'light' : 'dark', reducedMotion: 'reduce' })
        await page.goto(`${stack.gateway_url}${address}`)
        await page.getByRole('heading', { level: 1 }).first().waitFor()
        await until(async () => (await page.locator('.late').count()) === 0, { what: address })
        faults.push(...(await accessibilityOf(page)))
        await page.emulateMedia({ colorScheme: index % 2 === 0 ? 'dark' : 'light' })
        faults.push(...(await contrastOf(page)).map((fault) => `in the other scheme: ${fault}`))
        await page.emulateMedia({ forcedColors: 'active' })
        const unseen = await page.evaluate<string[]>(UNSEEN)
        faults.push(...unseen.map((fault) => `${address}: in forced colors: ${fault}`))
        await page.emulateMedia({ forcedColors: 'none' })
        for (const words of ['This page failed', 'This could not be loaded'])
          if (await page.getByText(words).count()) faults.push(`${address}: ${words}`)
        if (address.startsWith('/no/')) await page.getByRole('navigation', { name: 'Main' }).waitFor()
        await takePictures(page, `page-${String(index).padStart(2, '0')}`)
        await page.setViewportSize({ width: 320, height: 640 })
        const wide = await page.evaluate<number>('document.documentElement.scrollWidth')
        if (wide > 320) faults.push(`${address} is ${wide} px wide`)
        await page.setViewportSize({ width: 1360, height: 900 })
      }
      expect(addresses.length).toBeGreaterThan(50)
      expect(faults).toEqual([])
      await context.close()
    },
    PATIENCE_MS * 2,
  )

  it(
    'leads to every other on a phone held sideways, and leaves room to read at 400 %',
    async () => {
      const { context, page } = await sitDown('ada')
      await page.setViewportSize({ width: 844, height: 390 })
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Administration' }).click()
      await page.getByRole('heading', { level: 1, name: 'Users' }).waitFor()
      await page.setViewportSize({ width: 340, height: 225 })
      await page.getByRole('heading', { level: 1, name: 'Users' }).scrollIntoViewIfNeeded()
      await page.mouse.wheel(0, 400)
      await until(() => page.evaluate<boolean>("document.querySelector('header').getBoundingClientRect().bottom < 0"), {
        what: 'the page without its bars',
      })
      // A dialog scrolls as a whole: between fixed ends, only a line would be left to read.
      await page.getByRole('button', { name: 'New user' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.waitFor()
      expect(await page.evaluate("getComputedStyle(document.querySelector('[role=dialog], dialog')).overflowY")).toBe(
        'auto',
      )
      const inner = await dialog.evaluate((box) => [...box.children].map((e) => e.scrollHeight - e.clientHeight))
      expect(Math.max(...inner)).toBeLessThanOrEqual(1)
      // The open one of many tabs is in sight.
      await page.setViewportSize({ width: 390, height: 844 })
      await page.goto(`${stack.gateway_url}/admin/packs`)
      const tab = page.locator('.tabs [aria-current]')
      await tab.waitFor()
      const { x, width } = (await tab.boundingBox()) ?? { x: -1, width: 0 }
      expect([x > 0, x + width < 390]).toEqual([true, true])
      await context.close()
    },
    PATIENCE_MS,
  )
})
