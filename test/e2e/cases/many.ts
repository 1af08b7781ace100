import type { Locator, Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import type { TimelineEvent } from '../../../apps/console/api/types.ts'
import { foldedByNode } from '../../../apps/console/history/words.ts'
import { approveGate, startOperation } from '../../../apps/platform/demo/operations.ts'
import type { Gate } from '../../../apps/shared/contracts/operations/gates.ts'
import { median } from '../../bench/lib/graph.ts'
import { accessibilityOf, overlapsOf } from '../../support/browser.ts'
import { cpuOf } from '../../support/interactions.ts'
import { MOST_HOSTS, startMany } from '../../support/many.ts'
import { sheetsOf } from '../../support/paper.ts'
import { until } from '../../support/until.ts'
import { PATIENCE_MS, people, press, sitDown, stack, start, tabOf, takePictures } from '../desk.ts'

const MOST_ELEMENTS = 1500

/** CPU that the page takes for each of these keys, in ms, at the median. */
const cpuOfKeys = async (page: Page, keys: string[]): Promise<number> => {
  const acts = keys.map((key) => () => page.keyboard.press(key))
  return median(await cpuOf(page, acts))
}

describe('an operation of 10,000 nodes', () => {
  let operation_id: string
  beforeAll(async () => {
    operation_id = await startMany(people, MOST_HOSTS)
  }, 600_000)
  const url = (path: string) => `${stack.gateway_url}/operations/${operation_id}/${path}`
  type Nodes = { nodes: { name: string; state: string }[] }

  it(
    'draws few elements of its matrix, wherever a key, a search, a filter or a link leads',
    async () => {
      const page = await tabOf('eva')
      const elements = () => page.locator('*').count()
      await page.goto(url('graph?view=matrix'))
      const grid = page.getByRole('grid', { name: 'Hosts by steps' })
      await grid.getByRole('gridcell', { name: 'drain many-0001, Succeeded' }).waitFor()
      expect(await grid.getAttribute('aria-rowcount')).toBe(String(MOST_HOSTS + 1))
      expect(await elements()).toBeLessThanOrEqual(MOST_ELEMENTS)
      expect(await accessibilityOf(page)).toEqual([])

      // Beyond the drawn rows, and back: the cell has the focus and is in view, and its row states its position.
      const placeOf = async (cell: Locator) => {
        const [own, box, head] = await Promise.all(
          [cell, page.locator('.matrix-box'), grid.locator('thead')].map((part) => part.boundingBox()),
        )
        const seen =
          own && box && head && own.y >= head.y + head.height - 1 && own.y + own.height <= box.y + box.height + 1
        return [await cell.getAttribute('aria-label'), await cell.locator('..').getAttribute('aria-rowindex'), seen]
      }
      const focused = () => placeOf(grid.locator('td:focus'))
      await grid.locator('[tabindex="0"]').focus()
      for (let i = 0; i < 12; i++) await page.keyboard.press('PageDown')
      expect(await focused()).toEqual(['drain many-0121, Succeeded', '122', true])
      for (const key of ['PageUp', 'ArrowUp', 'End']) await page.keyboard.press(key)
      expect(await focused()).toEqual(['undrain many-0110, Not started', '111', true])
      expect(await elements()).toBeLessThanOrEqual(MOST_ELEMENTS)
      await takePictures(page, 'matrix-many')

      const field = page.getByRole('searchbox', { name: 'Find a node' })
      await field.fill('move many-2487')
      await page.getByText('1 node', { exact: true }).waitFor()
      await field.press('Enter')
      const found = grid.locator('[aria-selected=true]')
      const inView = async () => /^move many-2487, .*,2488,true$/.test((await placeOf(found)).join())
      await until(inView, { what: 'the found cell in view' })
      expect(await elements()).toBeLessThanOrEqual(MOST_ELEMENTS)
      // A deep link: the same cell is in view in a page that has just been opened.
      await page.reload()
      await found.waitFor()
      await until(inView, { what: 'the linked cell in view' })

      await press(page, 'Waiting for a person (2,500)')
      const cells = grid.getByRole('gridcell')
      const bright = cells.and(page.locator(':not(.dim)'))
      await until(async () => (await bright.count()) === (await cells.count()) / 4, { what: 'the filter' })
      await press(page, 'List')
      await page.getByRole('link', { name: 'move many-0001' }).waitFor()
      const last = page.getByRole('link', { name: 'move many-2500' })
      const atEnd = async () => {
        await page.keyboard.press('Control+End')
        return last.isVisible()
      }
      await until(atEnd, { what: 'the last node' })
      expect(await elements()).toBeLessThanOrEqual(MOST_ELEMENTS)
      // Rows overlap until they have been measured.
      const accessible = async () => {
        expect(await accessibilityOf(page)).toEqual([])
        return true
      }
      await until(accessible, { what: 'an accessible list' })
      await takePictures(page, 'list-many')
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'is followed live without reading its graph at each change, and each press is answered at once',
    async () => {
      const { context, page } = await sitDown('eva')
      await page.goto(url('graph?view=matrix'))
      const grid = page.getByRole('grid', { name: 'Hosts by steps' })
      await grid.getByRole('gridcell', { name: 'drain many-0001, Succeeded' }).waitFor()
      // A gate before 2,500 nodes is a long read, which a busy machine refuses at first.
      const gate = await until(() => people.eva.get<Gate>(`/v1/operations/${operation_id}/gates/cutover`))
      await approveGate(people.eva, operation_id, gate, 'a test')
      const moved = grid.getByRole('gridcell', { name: 'move many-0001, Succeeded' })
      await moved.waitFor()
      // From here on, nodes change during every read of the graph.
      let [reads, streams] = [0, 0]
      page.on('request', (request) => {
        if (request.url().includes('/v1/events')) streams += 1
        const { pathname, searchParams } = new URL(request.url())
        // How far running nodes are is read every few seconds, however many change.
        if (/\/(graph|nodes)$/.test(pathname) && !searchParams.has('state')) reads += 1
      })
      await page.reload()
      await moved.waitFor()
      await grid.locator('[tabindex="0"]').focus()
      const moves = Array.from({ length: 20 }, (_, at) => (at % 4 === 3 ? 'PageDown' : 'ArrowDown'))
      expect(await cpuOfKeys(page, moves)).toBeLessThanOrEqual(100)
      await people.olga.post(`/v1/operations/${operation_id}/cancel`, { reason: 'a test' })
      await page.getByText('Canceled', { exact: true }).first().waitFor({ timeout: 60_000 })
      // A page reads it when it opens, once its stream has begun, and after a gap in the frames; not at every change.
      expect(reads).toBeLessThanOrEqual(2 * streams + 2)

      // The page has followed: its cells are as the API has them.
      const { nodes } = await people.eva.get<Nodes>(`/v1/operations/${operation_id}/graph`)
      const done = new Set(nodes.flatMap(({ name, state }) => (state === 'succeeded' ? [name] : [])))
      const wrong = async () =>
        (await grid.getByRole('gridcell').evaluateAll((cells) => cells.map((cell) => cell.ariaLabel ?? ''))).filter(
          (label) => label.endsWith(', Succeeded') !== done.has(label.split(',')[0] ?? ''),
        )
      await until(async () => (await wrong()).length === 0, { what: 'the newest states in all cells' })

      const field = page.getByRole('searchbox', { name: 'Find a node' })
      await field.focus()
      expect(await cpuOfKeys(page, [...'many-02'])).toBeLessThanOrEqual(100)
      await field.fill('')
      await page.getByRole('button', { name: /^Succeeded \(/ }).focus()
      expect(await cpuOfKeys(page, Array(6).fill('Enter'))).toBeLessThanOrEqual(100)
      await context.close()
    },
    PATIENCE_MS,
  )
})

describe('a drawing of 600 nodes without groups', () => {
  it(
    'draws the boxes in view alone, and few of them anew for a key',
    async () => {
      const steps = ['drain', 'move', 'verify', 'undrain']
      const nodes = Array.from({ length: 150 }, (_, host) =>
        steps.map((step, at) => ({
          ...{ node_id: `${step}-${host}`, executor: 'noop', with: {} },
          depends_on: at === 0 ? [] : [`${steps[at - 1]}-${host}`],
        })),
      ).flat()
      const policy = { approvals: { quorum: 1, groups: [{ group: 'netops', min: 1 }] }, deadline_s: 3600 }
      const gates = [{ gate_id: 'go', policy, guards: nodes.map(({ node_id }) => node_id) }]
      const { operation_id } = await startOperation(people.olga, 'large drawing', {
        ...{ kind: 'graph', title: 'large drawing', reason: 'a test', targets: [], graph: { nodes, gates } },
      })
      const { context, page } = await sitDown('eva')
      await page.goto(`${stack.gateway_url}/operations/${operation_id}/graph?view=drawing`)
      const boxes = page.locator('.react-flow__node')
      await boxes.first().waitFor({ timeout: 60_000 })
      const few = async () => (await boxes.count()) < 150
      await until(few, { what: 'boxes of the view alone' })
      expect(await page.locator('.graph-line').count()).toBeGreaterThan(0)
      await page.getByRole('application', { name: 'Graph of the operation' }).focus()
      await page.evaluate(`void (globalThis.drawn = 0, new MutationObserver((all) => {
        for (const { addedNodes } of all)
          for (const one of addedNodes) if (one.classList?.contains('react-flow__node')) drawn += 1
      }).observe(document.querySelector('.react-flow__nodes'), { childList: true }))`)
      const chosen = page.locator('.react-flow__node:has(.step.at)')
      const chosenId = () => chosen.evaluateAll((all) => all.map((one) => one.getAttribute('data-id')).join())
      // A busy machine draws late: the key has had its effect once another box is chosen and no more boxes come.
      const drawnBy = async (key: string) => {
        const [before, from] = [await page.evaluate<number>('drawn'), await chosenId()]
        let last = -1
        await page.keyboard.press(key)
        const isDone = async () => {
          const seen = last
          last = await page.evaluate<number>('drawn')
          return last === seen && (await chosenId()) !== from
        }
        await until(isDone, { what: `the effect of ${key}` })
        return last - before
      }
      for (const key of ['ArrowRight', ...Array(8).fill('ArrowDown'), 'ArrowRight', 'ArrowLeft']) {
        expect(await drawnBy(key), key).toBeLessThan(40)
        expect(await chosen.count()).toBe(1)
      }
      expect(await few()).toBe(true)
      expect(await cpuOfKeys(page, Array(8).fill('ArrowDown'))).toBeLessThanOrEqual(100)
      await page.getByRole('searchbox', { name: 'Find a node' }).focus()
      expect(await cpuOfKeys(page, [...'drain-1'])).toBeLessThanOrEqual(100)
      await takePictures(page, 'drawing-many')
      await context.close()
    },
    PATIENCE_MS,
  )
})

describe('a list of 150 operations', () => {
  it(
    'draws those near the view; each cell holds its text, on a desk and on a tablet',
    async () => {
      await start('one of many')
      const page = await tabOf('eva')
      await page.route('**/api/v1/operations?**', async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        const items = Array.from({ length: 150 }, (_, n) => ({
          ...{ ...json.items[0], operation_id: `${n}`, title: `one of many, ${n}`, started_at: '2026-11-11T11:11:11Z' },
          ...{ status: n % 2 ? 'blocked' : 'succeeded_with_exceptions', ended_at: '2026-11-12T22:22:22Z' },
        }))
        await route.fulfill({ response: answer, json: { ...json, items, next_page_token: null } })
      })
      await page.goto(`${stack.gateway_url}/operations?tab=all`)
      const table = page.getByRole('table')
      await until(async () => (await table.getAttribute('aria-rowcount')) === '151', { what: 'every operation' })
      const cells = table.locator('td, th')
      const cut = () =>
        cells.evaluateAll((all) =>
          all.flatMap((cell) => (cell.scrollWidth > cell.clientWidth + 1 ? [cell.textContent] : [])),
        )
      for (const width of [1360, 1100, 800]) {
        await page.setViewportSize({ width, height: 900 })
        expect(await cut(), `${width}`).toEqual([])
      }
      await page.setViewportSize({ width: 1360, height: 900 })
      expect(await table.locator('tbody tr').count()).toBeLessThan(100)
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'operations-many')
      const last = page.getByRole('link', { name: 'one of many, 149' })
      const atEnd = async () => {
        await page.keyboard.press('Control+End')
        return last.isVisible()
      }
      await until(atEnd, { what: 'the last operation' })
      await page.unrouteAll({ behavior: 'wait' })
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('an operation of 2,000 nodes', () => {
  let operation_id: string
  beforeAll(async () => {
    operation_id = await startMany(people, 500)
  }, 600_000)
  const url = (path: string) => `${stack.gateway_url}/operations/${operation_id}/${path}`

  it(
    'reaches every event of its timeline beyond the first 1,000, those of a node as one line',
    async () => {
      const path = `/v1/operations/${operation_id}/timeline?limit=1000`
      const all: TimelineEvent[] = []
      for (let after = 0, more = true; more; after = all.at(-1)?.seq ?? 0) {
        const { events } = await people.eva.get<{ events: TimelineEvent[] }>(`${path}&after_seq=${after}`)
        all.push(...events)
        more = events.length > 0
      }
      expect(all.length).toBeGreaterThan(1000)
      const lines = foldedByNode(all.toReversed())
      expect(lines.length).toBeLessThan(all.length)
      const page = await tabOf('eva')
      await page.goto(url('timeline'))
      const events = page.getByRole('table', { name: /^Events/ })
      const whole = async () => (await events.getAttribute('aria-rowcount')) === String(lines.length + 1)
      await until(whole, { what: 'every event in the table' })
      expect(await page.locator('*').count()).toBeLessThanOrEqual(MOST_ELEMENTS)
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'timeline-many')
      // The oldest is the last row, at the end of the page.
      const last = events.locator(`[aria-rowindex="${lines.length + 1}"]`)
      await until(
        async () => {
          await page.keyboard.press('Control+End')
          return last.isVisible()
        },
        { what: 'the oldest event' },
      )
      expect(await page.locator('*').count()).toBeLessThanOrEqual(MOST_ELEMENTS)
      await takePictures(page, 'timeline-many-end')
      await page.setViewportSize({ width: 390, height: 844 })
      await until(async () => (await overlapsOf(events.locator('tbody tr'))) === 0, { what: 'rows without overlap' })
      await takePictures(page, 'timeline-many-phone')
      await page.close()
    },
    PATIENCE_MS,
  )

  type Operation = { plan_hash: string; evidence_head: { hash: string } }
  type Evidence = { seq: string; subject_digest: string; hash: string }
  it(
    'is complete on paper: with records that are not read yet, and events that are not drawn yet',
    async () => {
      const page = await tabOf('eva')
      await page.addInitScript('window.print = () => { window.printed = (window.printed ?? 0) + 1 }')
      await page.goto(url('evidence'))
      const rows = page.getByRole('table').locator('tbody tr')
      await until(async () => (await rows.count()) === 200, { what: 'the first page' })
      await page.emulateMedia({ media: 'print' })
      const partly = page.getByText(/^Records 1 to 200 of [\d,]+\./)
      await partly.waitFor()
      const all = Number(/of ([\d,]+)/.exec((await partly.textContent()) ?? '')?.[1]?.replace(',', ''))
      await page.emulateMedia({ media: 'screen' })
      await page.getByRole('button', { name: 'Print', exact: true }).click()
      await until(async () => (await page.evaluate('window.printed')) === 1, { what: 'the print' })
      expect(await rows.count()).toBe(all)

      // The paper is read back: on each sheet the heads and a number, in all of them every digest, and none is cut off.
      const sheets = await sheetsOf(page)
      expect(sheets.length).toBeGreaterThan(5)
      expect(sheets.length).toBeLessThan(all / 10)
      for (const [at, { text, cut }] of sheets.entries()) {
        expect(cut).toEqual([])
        expect(text).toContain(`${at + 1}/${sheets.length}`)
        expect(text).toContain('No.TimeKindStatementWhoSubjectdigestHash')
      }
      const [first, paper] = [sheets[0]?.text ?? '', sheets.map(({ text }) => text).join('')]
      const { plan_hash, evidence_head } = await people.eva.get<Operation>(`/v1/operations/${operation_id}`)
      for (const fact of ['Movemany', operation_id, plan_hash, evidence_head.hash, 'Liveeva'])
        expect(first).toContain(fact)
      expect(first).toMatch(/\d+\w+\d{4},\d\d:\d\d:\d\dUTC/)
      expect(first).toContain(`All${all}recordsmatch`)
      // Each record with its day and zone.
      expect(paper.match(/\d{4},\d\d:\d\d:\d\dUTC/g)?.length).toBeGreaterThanOrEqual(all)
      const missing: string[] = []
      for (let after = 0; after < all; after += 200) {
        const path = `/v1/operations/${operation_id}/evidence?limit=200&after_seq=${after}`
        const { records } = await people.eva.get<{ records: Evidence[] }>(path)
        for (const { seq, subject_digest, hash } of records)
          if (!paper.includes(subject_digest) || !paper.includes(hash)) missing.push(seq)
      }
      expect(missing).toEqual([])

      await page.goto(url('activity?who=all'))
      const events = page.getByRole('table')
      await until(async () => Number(await events.getAttribute('aria-rowcount')) > 1000, { what: 'every event' })
      expect(await rows.count()).toBeLessThan(100)
      await page.emulateMedia({ media: 'print' })
      await until(async () => (await rows.count()) > 1000, { what: 'a row for each event' })
      await page.emulateMedia({ media: 'screen' })
      await until(async () => (await rows.count()) < 100, { what: 'the rows near the view' })
      await page.close()
    },
    PATIENCE_MS,
  )
})
