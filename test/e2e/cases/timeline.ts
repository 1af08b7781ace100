import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { startOperation } from '../../../apps/platform/demo/operations.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { isHeld, letGo, nodesOf, PATIENCE_MS, people, press, stack, tabOf, takePictures, target } from '../desk.ts'

/** A node that fails twice and is retried by a person, one next to it, one behind a gate, one behind that. */
const startUneven = async (): Promise<string> => {
  const task = (node_id: string, depends_on: string[] = []) => ({
    ...{ node_id, name: `task ${node_id}`, kind: 'task', executor: 'noop', with: {}, idempotent: true, depends_on },
  })
  const flaky = {
    ...task('flaky'),
    executor: 'http',
    with: { request: { method: 'GET', url: target.url } },
    retry: { max_attempts: 2, initial_s: 1, factor: 1, max_s: 1 },
  }
  const policy = { approvals: { quorum: 1, groups: [{ group: 'netops', min: 1 }], four_eyes: true }, deadline_s: 3600 }
  const { operation_id } = await startOperation(people.olga, 'An uneven day', {
    ...{ kind: 'graph', title: 'An uneven day', reason: 'a test', targets: [] },
    graph: {
      nodes: [flaky, task('aside'), task('guarded', ['flaky', 'aside']), task('last', ['guarded'])],
      gates: [{ gate_id: 'go', question: 'Go on now?', guards: ['guarded'], policy }],
    },
  })
  return operation_id
}

const refuse = () => {
  for (const answer of target.waiting.splice(0)) answer.writeHead(503).end('{}')
}

type Event = { type: string; at: string; node_id: string | null; data: { started_at?: string } }

/** Buttons, keys and the wheel change the visible range; the address keeps it. */
const zoom = async (page: Page) => {
  const chart = page.getByRole('region', { name: 'Attempts and waits' }).last()
  const bars = page.getByRole('img', { name: /^task / })
  const all = await bars.count()
  const address = () => new URL(page.url()).searchParams
  const span = () => Date.parse(address().get('to') ?? '') - Date.parse(address().get('from') ?? '')
  await press(page, 'Zoom in')
  await page.waitForURL(/from=/)
  const first = span()
  await chart.press('+')
  await until(() => span() < first * 0.6, { what: 'a shorter stretch' })
  const second = span()
  await chart.hover()
  await page.keyboard.down('Control')
  await page.mouse.wheel(0, -400)
  await page.keyboard.up('Control')
  await until(() => span() < second * 0.6, { what: 'a shorter stretch by the wheel' })
  const shown = await bars.count()
  expect(shown).toBeLessThan(all)
  expect(await accessibilityOf(page)).toEqual([])
  await takePictures(page, 'timeline-zoomed')
  await page.reload()
  await page.getByRole('button', { name: 'Zoom out' }).waitFor()
  await until(async () => (await bars.count()) === shown, { what: 'the same bars after a reload' })
  const from = address().get('from') ?? ''
  await chart.press('ArrowRight')
  await until(() => (address().get('from') ?? '') > from, { what: 'a later stretch' })
  // The handles of the strip above choose the same part.
  const handle = page.getByRole('slider', { name: 'End of the visible time' })
  const to = Date.parse(address().get('to') ?? '')
  await handle.press('PageDown')
  await until(() => Date.parse(address().get('to') ?? '') < to, { what: 'an earlier end' })
  expect(await handle.getAttribute('aria-valuetext')).toMatch(/\d\d:\d\d:\d\d/)
  await press(page, 'Show all')
  await until(() => !address().has('from'), { what: 'no stretch in the address' })
  await until(async () => (await bars.count()) === all, { what: 'all bars again' })
}

describe('the timeline of an uneven operation', () => {
  it(
    'shows every attempt and wait as bars, and how the time of the critical path was spent',
    async () => {
      const operation_id = await startUneven()
      const path = `/v1/operations/${operation_id}`
      const is = (node: string, state: string) =>
        until(async () => (await nodesOf(operation_id))[node] === state, {
          what: `${node} ${state}`,
          timeout_ms: 30_000,
        })
      for (const attempt of [1, 2]) {
        await isHeld()
        refuse()
        await is('flaky', attempt === 1 ? 'backoff' : 'failed')
      }
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/operations/${operation_id}/timeline`)
      const bar = (name: RegExp) => page.getByRole('img', { name })
      await bar(/^task flaky: failed, waiting for a person, /).waitFor()
      const sums = page.getByLabel('Time per cause')
      await sums.getByText('failed, waiting for a person').waitFor()

      await people.olga.post(`${path}/nodes/flaky/retry`, { reason: 'it answers again' })
      await isHeld()
      letGo()
      await is('guarded', 'gated')
      await bar(/^Gate: Go on now\?: waiting for a gate, /).waitFor()
      await people.olga.post(`${path}/pause`, { reason: 'lunch' })
      const { digest, round } = await people.eva.get<{ digest: string; round: number }>(`${path}/gates/go`)
      await people.eva.post(`${path}/gates/go/approve`, { reviewed_digest: digest, round })
      await is('guarded', 'ready')
      await bar(/^task guarded: queued, /).waitFor()
      await people.olga.post(`${path}/resume`, { reason: 'back again' })
      await is('last', 'succeeded')

      // The bars match the attempts in the history: three of them, and a backoff after the first.
      await bar(/^task last: attempt 1 Succeeded, /).waitFor()
      const { events } = await people.eva.get<{ events: Event[] }>(`${path}/timeline?limit=1000&node_id=flaky`)
      expect(events.filter(({ data }) => data.started_at !== undefined).map(({ type }) => type)).toEqual([
        ...['node.backoff', 'node.failed', 'node.succeeded'],
      ])
      const drawn = await bar(/^task flaky: attempt /).all()
      const labels = await Promise.all(drawn.map((one) => one.getAttribute('aria-label')))
      expect(labels.map((label) => label?.replace(/, [^,]*$/, ''))).toEqual([
        'task flaky: attempt 1 Failed (GET URL answered 503)'.replace('URL', target.url),
        'task flaky: attempt 2 Failed (GET URL answered 503)'.replace('URL', target.url),
        'task flaky: attempt 3 Succeeded',
      ])
      expect(await bar(/^task flaky: back-off, next attempt \d\d:\d\d:\d\d, /).count()).toBe(1)
      expect(await bar(/^Pauses: paused, /).count()).toBe(1)

      const chain = page.getByRole('region', { name: 'Critical path', exact: true }).getByRole('listitem')
      expect((await chain.getByRole('link').allInnerTexts()).join()).toBe('task flaky,task guarded,task last')
      expect(await chain.nth(1).textContent()).toMatch(/gate “Go on now\?”: .* operation paused: /)
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'timeline')

      // One line for all that the system has recorded of a node; a key shows its events. Acts of people keep their lines.
      const line = page.getByRole('row').filter({ hasText: /Node succeeded: 3 attempts, / })
      await line.getByRole('link', { name: 'task flaky' }).waitFor()
      const said = line.getByRole('listitem')
      expect(await said.count()).toBe(0)
      // Paper, which cannot be unfolded, has them at once.
      await page.emulateMedia({ media: 'print' })
      await said.first().waitFor()
      await page.emulateMedia({ media: 'screen' })
      await line.locator('summary').press('Enter')
      await said
        .filter({ hasText: /failed/i })
        .first()
        .waitFor()
      await page.getByRole('row').filter({ hasText: 'it answers again' }).first().waitFor()
      await page.getByRole('row').getByRole('link', { name: 'Go on now?' }).first().waitFor()
      expect(await accessibilityOf(page)).toEqual([])

      await zoom(page)
      await press(page, 'Critical path')
      await page.getByRole('button', { name: 'task aside' }).waitFor({ state: 'detached' })
      await press(page, 'All nodes')
      await press(page, 'task aside')
      await page.getByRole('heading', { name: 'Critical path of task aside' }).waitFor()
      await page.reload()
      await page.getByRole('heading', { name: 'Critical path of task aside' }).waitFor()
      expect(await chain.getByRole('link').allInnerTexts()).toEqual(['task aside'])
      expect(await accessibilityOf(page)).toEqual([])
      await page.setViewportSize({ width: 390, height: 844 })
      await takePictures(page, 'timeline-phone')
      // Back leads to the choice before.
      await page.goBack()
      await page.getByRole('heading', { name: 'Critical path of task aside' }).waitFor({ state: 'detached' })
      await page.close()
    },
    PATIENCE_MS,
  )
})
