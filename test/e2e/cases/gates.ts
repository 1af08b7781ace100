import type { Locator } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { type Account, signIn } from '../../../apps/platform/demo/client.ts'
import { startOperation } from '../../../apps/platform/demo/operations.ts'
import { accessibilityOf, wordsIn } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import {
  accounts,
  browser,
  confirm,
  dialogOf,
  nodesOf,
  openTab,
  PATIENCE_MS,
  people,
  press,
  sitDown,
  stack,
  start,
  tabOf,
  takePictures,
} from '../desk.ts'

/** One answer of the stream: these frames, then its end. */
const streamOf = (frames: { event: string; data: object }[]) =>
  frames.map(({ event, data }) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join('')

describe('a live graph', () => {
  it(
    'ignores frames that the stream sends again, and applies those that follow',
    async () => {
      // The only tab of its browser: it has the stream.
      const { context, page } = await sitDown('eva')
      const { operation_id, url } = await start('replayed')
      await until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })
      const node = (node_id: string, state: string, change_seq: number) => ({
        ...{ event: 'node', data: { operation_id, node_id, state, attempt: 1, generation: 1, change_seq } },
      })
      await page.route('**/api/v1/events?**', async (route) => {
        // A read of the graph contains all of these changes but the last.
        const { change_seq: at } = await people.eva.get<{ change_seq: number }>(`/v1/operations/${operation_id}/graph`)
        const old = [node('first', 'running', at - 1), node('first', 'running', at)]
        const body = streamOf([...old, node('second', 'skipped', at + 1)])
        await route.fulfill({ status: 200, contentType: 'text/event-stream', body })
      })
      await page.goto(`${url}/graph`)
      await press(page, 'List')
      const row = (name: string) => page.getByRole('main').getByRole('listitem').filter({ hasText: name })
      await row('task second').getByText('Skipped').waitFor()
      await row('task first').getByText('Succeeded').waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )
})

describe('a gate in the graph', () => {
  it(
    'stands before the nodes that it guards, is reached by keys and listed in words, and shows the decision live',
    async () => {
      const page = await tabOf('eva')
      const { operation_id, url } = await start('drawn')
      await until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })
      await page.goto(`${url}/graph`)
      const drawing = page.getByRole('application', { name: 'Graph of the operation' })
      await drawing.getByText('Gate: undecided').waitFor()
      // Each of the two nested applications has a name of its own.
      await drawing.getByRole('application', { name: 'Drawing' }).waitFor()
      await drawing.focus()
      await page.keyboard.press('ArrowRight')
      await page.getByText('Gate, Go on with drawn?, Waiting for a person, guards 1 node').waitFor()
      await page.keyboard.press('Enter')
      const panel = page.getByRole('complementary', { name: 'Selected gate' })
      await panel.getByText('task second').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await page.reload()
      await panel.getByRole('link', { name: 'Open gate' }).waitFor()
      expect(await panel.getByRole('link', { name: 'Open gate' }).getAttribute('href')).toBe(
        `/operations/${operation_id}/gates/go`,
      )

      const { digest, round } = await people.eva.get<{ digest: string; round: number }>(
        `/v1/operations/${operation_id}/gates/go`,
      )
      await people.eva.post(`/v1/operations/${operation_id}/gates/go/approve`, { reviewed_digest: digest, round })
      await drawing.getByText('Gate: approved').waitFor()
      await panel.getByText('Approved').waitFor()
      await press(page, 'List')
      const row = page.getByRole('region', { name: 'Gates' }).getByRole('listitem')
      expect(await row.textContent()).toMatch(/Go on with drawn\?\s*Approved\s*Guards task second/)
      expect(await accessibilityOf(page)).toEqual([])
      await page.reload()
      await row.waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})

/** Two resources in turn: the first is the canary of the gate before the second. */
const startOnTwo = async (name: string) => {
  const names = [`${name}-1`, `${name}-2`]
  for (const resource_id of names) {
    const desired_state = { provider: 'test', kind: 'rack' }
    const body = { resource_id, type_key: 'infra.generic', name: resource_id, desired_state }
    await people.ada.post('/v1/resources?mode=record_only', body)
  }
  const nodes = names.map((target_id, at) => ({
    ...{ node_id: target_id, name: `move ${target_id}`, executor: 'noop', with: {}, idempotent: true, target_id },
    depends_on: names.slice(at - 1, at),
  }))
  const policy = { approvals: { quorum: 1, groups: [{ group: 'netops', min: 1 }] }, deadline_s: 3600 }
  const gates = [{ gate_id: 'go', question: 'Move the other?', guards: names.slice(1), policy }]
  const { operation_id } = await startOperation(people.olga, `Move ${name}`, {
    ...{ kind: 'graph', title: `Move ${name}`, reason: 'a test', graph: { nodes, gates } },
    targets: names.map((resource_id) => ({ resource_id })),
  })
  await until(async () => (await nodesOf(operation_id))[`${name}-2`] === 'gated', { what: 'the gate to ask' })
  return `${stack.gateway_url}/operations/${operation_id}/gates/go`
}

describe('deciding a gate', () => {
  it.each([
    ['silent', () => stack.pause('catalog'), () => stack.resume('catalog')],
    ['stopped', () => stack.kill('catalog'), () => stack.restart('catalog')],
  ] as const)(
    'works while the catalog is %s, which the brief reports in place of the metrics',
    async (name, away, back) => {
      const gate = await startOnTwo(name)
      const page = await tabOf('eva')
      await page.goto(gate)
      const brief = page.getByRole('region', { name: 'Decision brief' })
      await brief.getByText(new RegExp(`^${name}-1, .*this type declares no metrics$`)).waitFor()
      await away()
      try {
        await page.reload()
        await brief.getByText(/^unknown, the catalog did not answer · last known: /).waitFor()
        await page.getByText('Digest checked').waitFor()
        await press(page, 'Approve')
        await dialogOf(page).getByText('unknown, the catalog did not answer').waitFor()
        await confirm(page, 'Approve 1 step')
        await page
          .getByText(/^Approved by eva, /)
          .first()
          .waitFor()
      } finally {
        await back()
      }
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'is described briefly by one request: requester, reason, binding of the vote, and recent changes',
    async () => {
      const page = await tabOf('eva')
      const { operation_id, gate } = await start('brief', { reason: 'because\u202e of a bidi mark' })
      await until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })
      const asked: string[] = []
      page.on('request', (request) => {
        const { pathname } = new URL(request.url())
        if (pathname.startsWith('/api/v1/operations/')) asked.push(pathname.split('/').slice(5).join('/'))
      })
      await page.goto(gate)
      const brief = page.getByRole('region', { name: 'Decision brief' })
      await brief.getByText('olga: “becauseU+202E of a bidi mark”').waitFor()
      await brief.getByRole('heading', { name: 'Covered by your vote' }).waitFor()
      await brief.getByRole('heading', { name: /^Context as of \d\d:\d\d:\d\d$/ }).waitFor()
      await brief.getByText('no step changes a target').waitFor()
      await brief
        .getByText(/^0 of 1 from netops: .*eva.* · not olga \(requester\) · expires .*: rejected, its nodes fail$/)
        .waitFor()
      await page.getByText('Digest checked').waitFor()
      expect(new Set(asked)).toEqual(new Set(['gates/go']))
      expect(await wordsIn(page.getByRole('main'))).toBeLessThanOrEqual(140)
      expect(await page.getByRole('button', { name: 'Break glass' }).count()).toBe(0)
      await page.getByText('What can’t I do here?').click()
      await page
        .getByText('break glass: Breaking the glass needs both operation:control and gate:decide here.')
        .waitFor()
      await takePictures(page, 'gate-cannot')
      await page.getByText('What can’t I do here?').click()
      const size = page.viewportSize()
      for (const [width, height] of [
        [1440, 900],
        [1024, 768],
        [390, 844],
      ] as const) {
        await page.setViewportSize({ width, height })
        for (const name of ['Approve', 'Reject']) {
          const { y = -1, height: own = 0 } =
            (await page.getByRole('button', { name, exact: true }).boundingBox()) ?? {}
          expect([name, width, y >= 0 && y + own <= height]).toEqual([name, width, true])
        }
      }
      if (size) await page.setViewportSize(size)
      await press(page, 'Approve')
      await dialogOf(page).getByText('no step changes a target').waitFor()
      expect(await wordsIn(dialogOf(page))).toBeLessThanOrEqual(45)
      await dialogOf(page).getByRole('button', { name: 'Approve 1 step' }).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'shows reason and ticket as plain text, however hostile and long',
    async () => {
      const page = await tabOf('eva')
      const ticket = '[CHG-1](https://elsewhere.example/) javascript:alert(1) <a href=//x.example>\u202e'
      const reason = `<img src=x onerror=alert(1)> javascript:alert(2) ${'x'.repeat(1900)}`
      const { gate, operation_id } = await start('hostile', { reason, ticket })
      await until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })
      await page.goto(gate)
      const bound = page.locator('.brief-bound')
      await page.getByText('Digest checked').waitFor()
      // Three lines of it, until the rest is asked for.
      const before = (await bound.boundingBox())?.height ?? 0
      await bound.getByRole('button', { name: 'More' }).click()
      await until(async () => ((await bound.boundingBox())?.height ?? 0) > before + 100, { what: 'the whole reason' })
      expect(await bound.textContent()).toContain(`olga: “${reason}” · ${ticket.replace('\u202e', 'U+202E')} · plan `)
      // Only the plan is a link.
      const links = await bound
        .getByRole('link')
        .evaluateAll((all) => all.map((a) => (a as unknown as { href: string }).href))
      expect(links).toEqual([expect.stringContaining(`${stack.gateway_url}/plans/`)])
      expect(await bound.locator('img').count()).toBe(0)
      const width = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
      expect(width).toBeLessThanOrEqual(0)
      // One of the form of the ticket system leads there, whole or not at all.
      const known = await start('known ticket', { ticket: 'CHG-4711' })
      await until(async () => (await nodesOf(known.operation_id)).second === 'gated', { what: 'the gate to ask' })
      for (const at of [known.gate, known.url]) {
        await page.goto(at)
        const link = page.getByRole('link', { name: 'CHG-4711' })
        expect(await link.getAttribute('href')).toBe('https://tickets.example/browse/CHG-4711')
        expect(await accessibilityOf(page)).toEqual([])
      }
      await takePictures(page, 'ticket')
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'starts its dialog with what got worse since the page was opened, and gives it the focus',
    async () => {
      const page = await tabOf('eva')
      const { operation_id, gate } = await start('worse')
      await until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })
      let reads = 0
      // The targets of this gate come to harm between two reads of the page.
      await page.route(`**/api/v1/operations/${operation_id}/gates/go`, async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        const worst = [{ resource_id: 'eu1-web-07', name: 'eu1-web-07', health: 'unhealthy' }]
        if (reads++ > 0) json.brief.now = { count: 2, health: [{ status: 'unhealthy', count: 1 }], worst, hidden: 0 }
        await route.fulfill({ response: answer, json })
      })
      await page.clock.install()
      await page.goto(gate)
      await page.getByText('Digest checked').waitFor()
      await page.clock.fastForward(31_000)
      await page.getByText('1 of 2 unhealthy: eu1-web-07').waitFor()
      await press(page, 'Approve')
      const news = dialogOf(page).getByRole('alert')
      expect(await news.textContent()).toBe('Worse since you opened this pageNow: 1 of 2 unhealthy: eu1-web-07')
      await until(async () => (await news.and(page.locator(':focus')).count()) === 1, { what: 'the focus on the news' })
      expect(await accessibilityOf(page)).toEqual([])
      // It tells and does not block.
      expect(
        await dialogOf(page).getByRole('button', { name: 'Approve 1 step' }).getAttribute('aria-disabled'),
      ).not.toBe('true')
      await page.unrouteAll({ behavior: 'wait' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'can be bypassed with a reason by those who may, and another reader is told so',
    async () => {
      const { context, page } = await sitDown('otto')
      const { gate } = await start('emergency')
      const eva = await tabOf('eva')
      await Promise.all([page.goto(gate), eva.goto(gate)])
      await press(eva, 'Reject')
      await dialogOf(eva).getByLabel('Comment').fill('not on a Friday')
      await press(page, 'Break glass')
      await confirm(page, 'Break glass')
      await dialogOf(page).getByText('Enter a reason.').waitFor()
      await dialogOf(page).getByLabel('Reason').fill('the site is down')
      let sent = 0
      page.on('request', (request) => {
        if (request.url().endsWith('/approve')) sent += 1
      })
      // Three presses in one turn, before the dialog is redrawn.
      await dialogOf(page)
        .getByRole('button', { name: 'Break glass' })
        .evaluate((button) => [1, 2, 3].map(() => (button as unknown as { click: () => void }).click()))
      await page
        .getByText(/^Bypassed by otto, /)
        .first()
        .waitFor()
      expect(sent).toBe(1)
      await eva.getByRole('alert').getByText('otto bypassed it while this was open.').waitFor()
      await eva.close()
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'is not bypassed for what was not read, or does not match its digest',
    async () => {
      const { context, page } = await sitDown('otto')
      const { operation_id, gate } = await start('unread')
      let forging = false
      await page.route(`**/api/v1/operations/${operation_id}/gates/go`, async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        if (forging) json.digest = json.digest.replace(/.{4}$/, '0000')
        await route.fulfill({ response: answer, json })
      })
      await page.clock.install()
      await page.goto(gate)
      await page.getByText('Digest checked').waitFor()
      await press(page, 'Break glass')
      await dialogOf(page).getByLabel('Reason').fill('the site is down')
      forging = true
      await page.clock.fastForward(31_000)
      const button = dialogOf(page).getByRole('button', { name: 'Break glass' })
      await dialogOf(page).getByRole('alert').waitFor()
      expect(await button.getAttribute('aria-disabled')).toBe('true')
      // Even when it was read: the subject still has another digest.
      await dialogOf(page).getByRole('alert').getByRole('button').click()
      await dialogOf(page).getByRole('alert').waitFor({ state: 'detached' })
      expect(await button.getAttribute('aria-disabled')).toBe('true')
      await dialogOf(page).getByText('This page does not match what the server asks about. Reload.').waitFor()
      await page.keyboard.press('Escape')
      await dialogOf(page).waitFor({ state: 'detached' })
      const link = page.getByRole('button', { name: 'Break glass' })
      expect(await link.getAttribute('aria-disabled')).toBe('true')
      expect(await accessibilityOf(page)).toEqual([])
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'refuses the requester with the reason beside the button',
    async () => {
      const page = await tabOf('otto')
      const owner = await signIn(stack.gateway_url, accounts.get('otto') as Account)
      await page.goto((await start('four eyes', { owner })).gate)
      await page.getByText('You take part in this operation. Another person must decide its gates.').waitFor()
      const approve = page.getByRole('button', { name: 'Approve' })
      expect(await approve.getAttribute('aria-disabled')).toBe('true')
      await approve.click({ force: true })
      expect(await dialogOf(page).count()).toBe(0)
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'rejects with a comment, and tells another reader who rejected it',
    async () => {
      const [eva, otto] = await Promise.all([tabOf('eva'), tabOf('otto')])
      const { operation_id, gate } = await start('race')
      await Promise.all([eva.goto(gate), otto.goto(gate)])
      await press(otto, 'Approve')
      await dialogOf(otto).getByLabel('Comment (optional)').fill('looks good')
      await press(eva, 'Reject')
      await confirm(eva, 'Reject')
      await dialogOf(eva).getByText('Enter a comment.').waitFor()
      await dialogOf(eva).getByLabel('Comment').fill('not on a Friday')
      // Only the frame can put a decision on the screen: no read is answered before.
      await otto.route(`**/api/v1/operations/${operation_id}/gates/go`, () => undefined)
      await confirm(eva, 'Reject')
      await otto
        .getByText(/^Rejected by eva, /)
        .first()
        .waitFor()
      await otto.unrouteAll()
      for (const page of [eva, otto]) {
        await page
          .getByText(/^Rejected by eva, /)
          .first()
          .waitFor()
        await page.getByText('“not on a Friday”').waitFor()
        expect(await dialogOf(page).count()).toBe(0)
      }
      await otto.getByRole('alert').getByText('eva rejected it while this was open.').waitFor()
      expect(await eva.getByText('while this was open').count()).toBe(0)
      expect(await nodesOf(operation_id)).toMatchObject({ second: 'failed' })
      await Promise.all([eva.close(), otto.close()])
    },
    PATIENCE_MS,
  )

  it(
    'works by keyboard alone: from the sign-in over the inbox to a rejected gate and on to the inbox',
    async () => {
      const context = await browser.newContext({ reducedMotion: 'reduce' })
      const page = await openTab(context)
      const { operation_id } = await start('by keyboard')
      await until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })
      const { username, password } = accounts.get('eva') as Account
      const focused = async (wanted: Locator) => (await wanted.and(page.locator(':focus')).count()) === 1
      /** Presses Tab until this has the focus. */
      const tabTo = async (wanted: Locator) => {
        await wanted.waitFor()
        for (let presses = 0; !(await focused(wanted)); presses += 1) {
          expect(presses).toBeLessThan(120)
          await page.keyboard.press('Tab')
        }
      }
      const reject = page.getByRole('main').getByRole('button', { name: 'Reject' })
      await page.goto(`${stack.gateway_url}/login`)
      await tabTo(page.getByLabel('Username'))
      await page.keyboard.type(username)
      await tabTo(page.getByLabel('Password', { exact: true }))
      await page.keyboard.type(password)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor()
      await tabTo(page.getByRole('link', { name: /Go on with by keyboard/ }))
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: /Go on with by keyboard/ }).waitFor()
      await page.getByText('Digest checked').waitFor()
      await tabTo(reject)
      await page.keyboard.press('Enter')
      await until(async () => (await dialogOf(page).locator(':focus').count()) === 1, {
        what: 'the focus in the dialog',
      })
      // Escape closes the dialog and returns the focus; the second time the decision is confirmed.
      await page.keyboard.press('Escape')
      await dialogOf(page).waitFor({ state: 'detached' })
      await until(() => focused(reject))
      await page.keyboard.press('Enter')
      await until(async () => (await dialogOf(page).locator(':focus').count()) === 1, {
        what: 'the focus in the dialog',
      })
      await tabTo(dialogOf(page).getByLabel('Comment'))
      await page.keyboard.type('by keyboard')
      await tabTo(dialogOf(page).getByRole('button', { name: 'Reject' }))
      await page.keyboard.press('Enter')
      await page
        .getByText(/^Rejected by eva, /)
        .first()
        .waitFor()
      // The button that had the focus is gone: focus moves to the outcome, not to the start of the page.
      await until(() => focused(page.getByRole('region', { name: 'Your decision' })))
      await tabTo(page.getByRole('link', { name: 'Next in inbox' }))
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'shows an expiry without a decision, without a reload',
    async () => {
      const page = await tabOf('eva')
      await page.goto((await start('late', { deadline_s: 15 })).gate)
      await page.getByText(/: rejected, its nodes fail$/).waitFor()
      await page
        .getByText(/^Expired .* without a decision\./)
        .first()
        .waitFor({ timeout: 20_000 })
      expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    "is impossible if the shown subject differs from the server's",
    async () => {
      const page = await tabOf('eva')
      const { operation_id, gate } = await start('tampered')
      let forging = true
      await page.route(`**/api/v1/operations/${operation_id}/gates/go`, async (route) => {
        if (!forging) return route.continue()
        const answer = await route.fetch()
        const json = await answer.json()
        json.subject.asked.reason = 'a harmless one'
        await route.fulfill({ response: answer, json })
      })
      await page.goto(gate)
      await page.getByText(/does not match what the server asks about/).waitFor()
      for (const name of ['Approve', 'Reject'])
        expect(await page.getByRole('button', { name }).getAttribute('aria-disabled')).toBe('true')
      expect(await accessibilityOf(page)).toEqual([])
      // At once: the live page would soon read the gate again by itself.
      const reload = await page.getByRole('button', { name: 'Reload', exact: true }).elementHandle()
      forging = false
      await reload?.dispatchEvent('click')
      await page.getByText('Digest checked').waitFor()
      await page.unrouteAll({ behavior: 'wait' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'asks for the password again if the server requires it, then sends the same decision',
    async () => {
      const page = await tabOf('eva')
      const { operation_id, gate } = await start('step up')
      let confirmed = false
      page.on('response', (answer) => {
        if (answer.url().endsWith('/v1/token/reauth') && answer.ok()) confirmed = true
      })
      // The server's own error, sent early: otherwise it would come after minutes.
      await page.route(`**/api/v1/operations/${operation_id}/gates/go/approve`, async (route) => {
        if (confirmed) return route.continue()
        await route.fulfill({
          status: 403,
          contentType: 'application/problem+json',
          json: { status: 403, category: 'policy_denied', code: 'reauth_required', detail: 'Sign in again.' },
        })
      })
      await page.goto(gate)
      await press(page, 'Approve')
      await dialogOf(page).getByText('Confirm your identity').waitFor()
      await dialogOf(page).getByLabel('Password', { exact: true }).fill('wrong-password')
      await confirm(page, 'Confirm')
      await dialogOf(page).getByText('The password is wrong.').waitFor()
      await dialogOf(page)
        .getByLabel('Password', { exact: true })
        .fill((accounts.get('eva') as Account).password)
      await confirm(page, 'Confirm')
      await dialogOf(page).getByText('Confirm your identity').waitFor({ state: 'detached' })
      await confirm(page, 'Approve 1 step')
      await page
        .getByText(/^Approved by eva, /)
        .first()
        .waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})
