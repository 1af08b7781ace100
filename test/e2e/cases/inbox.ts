import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Locator } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { type Account, signIn } from '../../../apps/platform/demo/client.ts'
import { approveGate, startOperation, waitForGate } from '../../../apps/platform/demo/operations.ts'
import type { Gate } from '../../../apps/shared/contracts/operations/gates.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { accounts, isHeld, nodesOf, PATIENCE_MS, people, sitDown, stack, start, takePictures, target } from '../desk.ts'

const gated = (operation_id: string) =>
  until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })

describe('a reason in the inbox', () => {
  it(
    'shows characters that would change the direction of its text',
    async () => {
      const { operation_id } = await start('turned around')
      await people.olga.post(`/v1/operations/${operation_id}/patches`, {
        ...{ base_revision: 1, changes: [{ op: 'set_limits', max_parallel: 1 }], reason: 'retry \u202eelbasrever' },
      })
      const { context, page } = await sitDown('eva')
      await page.goto(`${stack.gateway_url}/inbox`)
      await page.getByRole('link', { name: 'retry U+202Eelbasrever' }).waitFor()
      await page.keyboard.press('Control+k')
      await page.keyboard.type('elbasrever')
      await page.getByRole('option', { name: /^retry U\+202Eelbasrever/ }).waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )
})

describe('the open inbox', () => {
  it(
    'moves no row below the pointer: what is decided stays in its place, and news waits until it is asked for',
    async () => {
      // Due before the gates of other cases, so that they are at the top.
      const first = await start('still first', { deadline_s: 500 })
      const second = await start('still second', { deadline_s: 600 })
      for (const { operation_id } of [first, second]) await gated(operation_id)
      const otto = await signIn(stack.gateway_url, accounts.get('otto') as Account)
      const owner = otto
      const { context, page } = await sitDown('otto')
      const card = (title: string) => page.getByRole('article').filter({ hasText: title })
      const topOf = async (one: Locator) => (await one.boundingBox())?.y
      await card('still second').hover()
      // Once the briefs of the cards above are drawn.
      const before = await until(async () => {
        const top = await topOf(card('still second'))
        await delay(1000)
        return top === (await topOf(card('still second'))) ? top : undefined
      })

      // A gate that would be above it, a failure and a patch, which are above all gates.
      const third = await start('still third', { deadline_s: 300 })
      await gated(third.operation_id)
      const news = page.getByRole('button', { name: /^\d+ new$/ })
      await news.waitFor()
      const failing = await start('still failing', { held: true, owner })
      await isHeld()
      for (const answer of target.waiting.splice(0)) answer.writeHead(422).end('{}')
      const path = `/v1/operations/${second.operation_id}`
      const changes = [{ op: 'set_limits', max_parallel: 2 }]
      const patch = { base_revision: 1, changes, reason: 'Still slower' }
      const { patch_id } = (await people.olga.post<{ patch_id: string }>(`${path}/patches`, patch)).body
      await page.getByRole('button', { name: '3 new', exact: true }).waitFor()
      expect(await card('still third').count()).toBe(0)
      const gate = await people.eva.get<Gate>(`/v1/operations/${first.operation_id}/gates/go`)
      await approveGate(people.eva, first.operation_id, gate, 'a test')
      await card('still first').getByText('eva,').waitFor()
      expect(await topOf(card('still second'))).toBe(before)
      expect(await accessibilityOf(page)).toEqual([])

      // Each kind enters, in its order, and leaves by its rule.
      await news.click()
      await card('still third').waitFor()
      const lines = page.getByRole('list', { name: 'Failures, patches and deadlines' }).getByRole('listitem')
      await lines.filter({ hasText: 'still failing' }).waitFor()
      await lines.filter({ hasText: 'Still slower' }).getByText('one change').waitFor()
      expect(await topOf(card('still third'))).toBeLessThan((await topOf(card('still second'))) ?? 0)
      const { digest } = await people.eva.get<{ digest: string }>(`${path}/patches/${patch_id}`)
      await people.eva.post(`${path}/patches/${patch_id}/approve`, { reviewed_digest: digest })
      await lines.filter({ hasText: 'Still slower' }).getByText('eva,').waitFor()
      await otto.post(`/v1/operations/${failing.operation_id}/cancel`, { reason: 'a test' })
      await lines.filter({ hasText: 'still failing' }).getByText('Canceled').waitFor({ timeout: 30_000 })
      await takePictures(page, 'inbox-outcomes')
      // The next visit has no trace of them.
      await page.reload()
      await card('still second').waitFor()
      for (const title of ['still first', 'Still slower', 'still failing'])
        expect(await page.getByText(title).count(), title).toBe(0)
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'opens the brief of a gate in its card by Space, as the page of the gate shows it, and closes it again',
    async () => {
      const { operation_id } = await start('briefed', { deadline_s: 400 })
      await gated(operation_id)
      const { context, page } = await sitDown('eva')
      await page.goto(`${stack.gateway_url}/inbox?for=all`)
      const card = page.getByRole('article').filter({ hasText: 'briefed' })
      const link = card.getByRole('link').first()
      const brief = page.getByRole('region', { name: 'Decision brief' })
      // The keys load after the rows, together with the possible actions on views; until then Space scrolls the page.
      await page.getByRole('button', { name: 'Save view' }).waitFor()
      await page.setViewportSize({ width: 320, height: 640 })
      expect((await card.getByRole('heading').first().boundingBox())?.width).toBeGreaterThan(150)
      await page.setViewportSize({ width: 1360, height: 900 })
      await link.focus()
      await page.keyboard.press('Space')
      expect(await link.getAttribute('aria-expanded')).toBe('true')
      const inCard = card.locator(brief)
      await inCard.getByText('Risk').waitFor()
      await page.keyboard.press('Space')
      await inCard.waitFor({ state: 'detached' })
      const place = await page.evaluate('scrollY')
      await page.keyboard.press('Space')
      await inCard.getByText('Risk').waitFor()
      expect(await page.evaluate('scrollY')).toBe(place)
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'inbox-brief')
      const lines = (await inCard.locator('dt').allTextContents()).join()
      const plan = await inCard.getByRole('link').last().getAttribute('href')

      await page.keyboard.press('Space')
      await inCard.waitFor({ state: 'detached' })
      expect(await link.getAttribute('aria-expanded')).toBeNull()
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1 }).waitFor()
      await brief.getByText('Risk').waitFor()
      expect((await brief.locator('dt').allTextContents()).join()).toBe(lines)
      expect(await brief.getByRole('link').last().getAttribute('href')).toBe(plan)
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'opens what a patch changes and why a node failed by Space, each below its line',
    async () => {
      const { operation_id } = await start('peeked', { deadline_s: 400 })
      await gated(operation_id)
      const changes = [{ op: 'set_limits', max_parallel: 2 }]
      await people.olga.post(`/v1/operations/${operation_id}/patches`, { base_revision: 1, changes, reason: 'Peek me' })
      await start('peek failing', { held: true })
      await isHeld()
      for (const answer of target.waiting.splice(0)) answer.writeHead(422).end('{}')
      const { context, page } = await sitDown('olga')
      await page.goto(`${stack.gateway_url}/inbox?for=all`)
      await page.getByRole('button', { name: 'Save view' }).waitFor()
      const brief = page.getByRole('region', { name: 'Decision brief' })
      const lines = page.getByRole('list', { name: 'Failures, patches and deadlines' }).getByRole('listitem')
      for (const [title, says] of [
        ['Peek me', 'Asked by'],
        ['peek failing', 'Executor'],
      ] as const) {
        const line = lines.filter({ hasText: title }).first()
        await line.getByRole('link').first().focus()
        await page.keyboard.press('Space')
        await line.locator(brief).getByText(says).waitFor()
        expect(await brief.count()).toBe(1)
        expect(await accessibilityOf(page)).toEqual([])
        await takePictures(page, `inbox-brief-${says}`)
      }
      await page.keyboard.press('Space')
      await brief.waitFor({ state: 'detached' })
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'says how many patches and failures wait that the server does not list',
    async () => {
      const { operation_id } = await start('cut off', { deadline_s: 400 })
      await gated(operation_id)
      const changes = [{ op: 'set_limits', max_parallel: 2 }]
      await people.olga.post(`/v1/operations/${operation_id}/patches`, { base_revision: 1, changes, reason: 'Cut off' })
      const { context, page } = await sitDown('eva')
      // A frame of the stream would bring the true counts.
      await page.route('**/api/v1/events?**', (route) => route.abort())
      let listed = 99
      await page.route('**/api/v1/waiting?**', async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        const patch = json.patches.find(({ reason }: { reason: string }) => reason === 'Cut off')
        const patches = Array.from({ length: listed }, (_, n) => ({ ...patch, patch_id: `${patch.patch_id}-${n}` }))
        await route.fulfill({ response: answer, json: { ...json, patches } })
      })
      await page.route('**/api/v1/me', async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        await route.fulfill({ response: answer, json: { ...json, counts: { ...json.counts, patches_mine: 1240 } } })
      })
      await page.goto(`${stack.gateway_url}/inbox?for=me`)
      await page.getByRole('link', { name: 'Cut off' }).nth(98).waitFor()
      expect(await page.getByText('patches are shown.').count()).toBe(0)
      listed = 100
      await page.reload()
      await page.getByText('Only the oldest 100 of 1,240 patches are shown.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await page.goto(`${stack.gateway_url}/inbox?for=all`)
      await page.getByText('Only the oldest 100 patches are shown.').waitFor()
      await page.unrouteAll({ behavior: 'wait' })
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'lists what is about to expire: the nearest deadline above all, each with its effect and, later, its outcome',
    async () => {
      const node = (node_id: string) => ({ node_id, executor: 'noop', with: {}, idempotent: true })
      const intent = (title: string, gate_s: number, deadline_s?: number) => ({
        ...{ kind: 'graph', title, reason: 'a test', ...(deadline_s && { constraints: { deadline_s } }) },
        graph: {
          nodes: [node('only')],
          gates: [
            {
              ...{ gate_id: 'go', question: `Go on with ${title}?`, guards: ['only'] },
              policy: { approvals: { quorum: 1, groups: [{ group: 'netops', min: 1 }] }, deadline_s: gate_s },
            },
          ],
        },
      })
      const due = await startOperation(people.olga, 'near its end', intent('near its end', 86_400, 3000))
      const undecided = await startOperation(people.olga, 'left alone', intent('left alone', 7200))
      for (const { operation_id } of [due, undecided]) await waitForGate(people.eva, operation_id)
      const { body: stated } = await people.olga.post<{ intent_id: string }>('/v1/intents', intent('forgotten', 600))
      const path = `/v1/intents/${stated.intent_id}/plan-preview`
      const { plan_id } = (await people.olga.post<{ plan_id: string }>(path, {})).body
      const database = new pg.Client({ connectionString: stack.database_url })
      await database.connect()
      await database.query(`update operations.plans set expires_at = now() + interval '2 h' where plan_id = $1`, [
        plan_id,
      ])
      await database.end()

      const { context, page } = await sitDown('olga')
      await page.goto(`${stack.gateway_url}/inbox`)
      const lines = page.getByRole('list', { name: 'Failures, patches and deadlines' }).getByRole('listitem')
      const line = (text: string) => lines.filter({ hasText: text })
      await line('Deadline')
        .getByText(/near its end/)
        .waitFor()
      expect(await line('near its end').textContent()).toMatch(
        /^Deadlinenear its endin\s\d+\smin, then it is canceled$/,
      )
      await line('forgotten')
        .getByText(/, then it needs a new preview/)
        .waitFor()
      await line('Others decide')
        .filter({ hasText: 'left alone' })
        .getByText(/, then it is rejected/)
        .waitFor()
      const shown = await lines.allTextContents()
      const at = (title: string) => shown.findIndex((text) => text.includes(title))
      expect(at('near its end')).toBeLessThan(Math.min(at('forgotten'), at('left alone')))
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'inbox-expiring')

      const gate = await people.eva.get<Gate>(`/v1/operations/${undecided.operation_id}/gates/go`)
      await approveGate(people.eva, undecided.operation_id, gate, 'a test')
      await line('Go on with left alone?').getByText('eva,').waitFor()
      await people.olga.post(`/v1/operations/${due.operation_id}/cancel`, { reason: 'a test', mode: 'graceful' })
      await line('near its end').getByText('Canceled').waitFor({ timeout: 30_000 })
      await takePictures(page, 'inbox-expired')
      await line('forgotten').getByRole('link').first().click()
      await page.getByRole('heading', { level: 1, name: 'forgotten' }).waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )
})

describe('the inbox of an administrator', () => {
  it(
    'names the changes that wait for a second administrator, but not their own',
    async () => {
      const { context, page } = await sitDown('ada')
      const { id } = await people.ada.get<{ id: string }>('/v1/users/me')
      const asked: string[] = []
      let more: string | null = null
      await page.route('**/api/v1/admin/changes?*', async (route) => {
        asked.push(route.request().url())
        const json = await (await route.fetch()).json()
        const items = [{ requested_by: id }, { requested_by: 'someone' }, { requested_by: 'another' }]
        await route.fulfill({ json: { ...json, items, next_page_token: more } })
      })
      await page.goto(`${stack.gateway_url}/inbox`)
      const line = page.getByRole('link', { name: /^2 changes to accounts or rights wait for / })
      await line.waitFor()
      expect(asked.every((url) => url.includes('status=pending'))).toBe(true)
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'inbox-administrator')
      expect(await line.getAttribute('href')).toBe('/admin/changes')
      more = 'more'
      await page.reload()
      await page.getByText('At least 2 changes to accounts or rights wait for a second administrator').waitFor()
      await context.close()
      // Others do not even ask.
      const { context: other, page: hers } = await sitDown('eva')
      const sent: string[] = []
      hers.on('request', (request) => sent.push(new URL(request.url()).pathname))
      await hers.goto(`${stack.gateway_url}/inbox`)
      await until(() => sent.some((path) => path.endsWith('/v1/notifications/destinations')), {
        what: 'what comes later',
      })
      expect(sent.filter((path) => path.includes('/admin/'))).toEqual([])
      await other.close()
    },
    PATIENCE_MS,
  )
})
