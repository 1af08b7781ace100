import type { Page, Route } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { ensurePerson } from '../../../apps/platform/demo/accounts.ts'
import { startOperation } from '../../../apps/platform/demo/operations.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { accounts, PATIENCE_MS, people, press, sitDown, stack, start, takePictures } from '../desk.ts'

const FAULT = 'This part of the server has a fault.'
/** None of our servers uses it, so the last case of the desk can tell it from a fault of ours. */
const FAULT_STATUS = 599
const json = {
  ...{
    type: '/docs/errors/internal_error',
    title: 'Internal error',
    status: FAULT_STATUS,
    detail: FAULT,
    retryable: false,
  },
  ...{ category: 'internal_error', code: 'internal_error', request_id: 'a-request' },
}

const fault = (route: Route) =>
  route.fulfill({ status: FAULT_STATUS, contentType: 'application/problem+json', body: JSON.stringify(json) })

/** Every read of this path fails until the returned function is called. */
const breakReads = async (page: Page, path: string): Promise<() => Promise<void>> => {
  const broken = (url: URL) => url.pathname === `/api${path}`
  await page.route(broken, fault)
  return () => page.unroute(broken)
}

describe('a read that fails', () => {
  it(
    'or is not answered leaves the rest of the page usable; a refusal is reported in its place and claims no other fact',
    async () => {
      const { operation_id, url } = await start('faulty')
      const { context, page } = await sitDown('olga')
      /** With this read broken the page says so next to `beside`, and it is whole after a retry. */
      const survives = async (address: string, path: string, beside: string, absent?: string) => {
        const mend = await breakReads(page, path)
        await page.goto(address)
        const alert = page.getByRole('alert').filter({ hasText: FAULT }).first()
        await alert.waitFor()
        await page.getByText(beside).first().waitFor()
        if (absent) expect(await page.getByText(absent).count(), `${address}: ${absent}`).toBe(0)
        expect(await accessibilityOf(page)).toEqual([])
        await mend()
        // A read that a stream frame triggered may be faster than the press.
        const retry = alert.getByRole('button', { name: 'Retry' })
        await retry.click({ timeout: 5000 }).catch(() => {})
        await until(async () => (await page.getByRole('alert').filter({ hasText: FAULT }).count()) === 0, {
          what: `${address} after ${path}`,
        })
        // The same read without any answer.
        const held: Route[] = []
        let silent = true
        const same = (url: URL) => url.pathname === `/api${path}`
        await page.route(same, (route) => (silent ? void held.push(route) : route.continue()))
        await page.goto(address)
        await page.getByText(beside).first().waitFor()
        await until(() => held.length > 0, { what: `the read of ${path}` })
        expect(await page.getByText(FAULT).count()).toBe(0)
        silent = false
        // The page before may have asked, too, and is gone.
        for (const route of held) await route.continue().catch(() => {})
        await page.unroute(same)
      }
      const { gateway_url: at } = stack
      await survives(`${at}/inbox?for=all`, '/v1/waiting', 'Go on with faulty?')
      // Its views do their own reads.
      await survives(`${url}/nodes`, `/v1/operations/${operation_id}`, 'task second')
      await survives(
        `${at}/new?kind=change&type=infra.generic`,
        '/v1/resource-types/infra.generic',
        'Reason',
        'This has no values to set.',
      )
      await survives(
        `${at}/settings/passkeys`,
        '/v1/users/me/totp',
        'Authenticator app',
        'You have no authenticator app.',
      )
      await survives(`${at}/settings/notifications`, '/v1/notifications/push', 'Notifications')
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'again keeps what was read and typed before',
    async () => {
      const { operation_id, url } = await start('kept')
      const { context, page } = await sitDown('otto')
      const alert = page.getByRole('alert').filter({ hasText: FAULT })
      await page.goto(`${stack.gateway_url}/settings/notifications`)
      const box = page.getByLabel('A patch that waits')
      await box.uncheck()
      const mend = await breakReads(page, '/v1/notifications/rules')
      await page.getByLabel('Mail address or URL').fill('otto@example.org')
      await press(page, 'Add a destination')
      await alert.waitFor()
      expect(await box.count()).toBe(1)
      expect(await box.isChecked()).toBe(false)
      await takePictures(page, 'rules-unread')
      await mend()
      await press(page, 'Retry')
      await alert.waitFor({ state: 'detached' })
      const mendList = await breakReads(page, '/v1/notifications/destinations')
      await press(page, 'Remove otto@example.org')
      await alert.waitFor()
      expect(await box.isChecked()).toBe(false)
      await mendList()

      await page.route(`**/api/v1/operations/${operation_id}/nodes?**`, async (route) => {
        if (new URL(route.request().url()).searchParams.has('page_token')) return fault(route)
        const answer = await route.fetch()
        await route.fulfill({ response: answer, json: { ...(await answer.json()), next_page_token: 'more' } })
      })
      await page.goto(`${url}/nodes`)
      await alert.waitFor()
      expect(await page.getByRole('link', { name: 'task second' }).count()).toBe(1)
      // A file of the pages that were read would look complete.
      expect(await page.getByRole('button', { name: 'Export as CSV' }).count()).toBe(0)
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'is not repeated endlessly if a page reads a whole list',
    async () => {
      const { operation_id, url } = await start('torn')
      const { context, page } = await sitDown('olga')
      let asked = 0
      await page.route(`**/api/v1/operations/${operation_id}/timeline?**`, async (route) => {
        if (new URL(route.request().url()).searchParams.get('after_seq') !== '0') {
          asked += 1
          return fault(route)
        }
        const answer = await route.fetch()
        const { events, ...rest } = await answer.json()
        // Like a page of a long list: another one follows.
        const full = Array.from({ length: 1000 }, (_, at) => ({ ...events[0], seq: at + 1 }))
        await route.fulfill({ response: answer, json: { ...rest, events: full } })
      })
      await page.goto(`${url}/activity?who=all`)
      await page.getByRole('alert').filter({ hasText: FAULT }).waitFor()
      const before = asked
      await page.waitForTimeout(3000)
      expect(asked).toBeLessThanOrEqual(before + 1)
      await context.close()
    },
    PATIENCE_MS,
  )
})

describe('a command without an answer', () => {
  it(
    'is repeated from the form for new changes as it was sent, with the same key',
    async () => {
      const { context, page } = await sitDown('olga')
      await page.goto(`${stack.gateway_url}/new?kind=change&type=infra.generic`)
      await page.getByLabel('Change, action or runbook').selectOption({ label: 'Rotate the certificate of a host' })
      await page.getByRole('button', { name: 'On a condition' }).click()
      await page.getByLabel('Expression (CEL)').fill('target.observed_state.release != target.desired_state.release')
      await page.getByLabel('Title').fill('Rotate at night')
      await page.getByLabel('Reason').fill('They end soon')
      const sent: string[] = []
      await page.route('**/api/v1/schedules', async (route) => {
        if (route.request().method() !== 'POST') return route.continue()
        sent.push(`${route.request().headers()['idempotency-key']} ${route.request().postData()}`)
        if (sent.length > 1) return route.continue()
        // It takes effect, and its answer is lost.
        await route.fetch()
        await route.abort()
      })
      await press(page, 'Create schedule')
      await page.getByRole('alert').getByText('It is unknown whether this took effect.').waitFor()
      expect(await page.getByLabel('Reason').isDisabled()).toBe(true)
      expect(await accessibilityOf(page)).toEqual([])
      await press(page, 'Ask again')
      await page.getByRole('heading', { level: 1, name: 'Rotate at night' }).waitFor()
      expect(sent).toHaveLength(2)
      expect(sent[1]).toBe(sent[0])
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'whose token cannot be renewed now is reported in its dialog',
    async () => {
      const { gate } = await start('no token')
      const { context, page } = await sitDown('eva')
      await page.goto(gate)
      await press(page, 'Reject')
      await page.getByLabel('Comment').fill('not yet')
      await page.route('**/v1/token?**', (route) => route.fulfill({ status: 429, headers: { 'retry-after': '3' } }))
      await page.route('**/gates/*/reject', (route) =>
        route.continue({ headers: { ...route.request().headers(), authorization: 'Bearer stale' } }),
      )
      const dialog = page.getByRole('dialog')
      await dialog.getByRole('button', { name: 'Reject', exact: true }).click()
      await dialog.getByRole('alert').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await context.close()
    },
    PATIENCE_MS,
  )
})

describe('a dialog whose code a release has replaced', () => {
  it(
    'says so and leaves the page with what was typed',
    async () => {
      const { context, page } = await sitDown('olga')
      await page.route('**/key-list*', (route) => route.abort())
      await page.goto(`${stack.gateway_url}/new?kind=change&type=infra.generic`)
      await page.getByLabel('Reason').fill('half a reason')
      await page.getByRole('heading', { level: 1 }).click()
      await page.keyboard.press('?')
      const alert = page.getByRole('alert').filter({ hasText: 'a new version of the console may be available' })
      await alert.getByRole('button', { name: 'Reload' }).waitFor()
      expect(await page.getByLabel('Reason').inputValue()).toBe('half a reason')
      expect(await accessibilityOf(page)).toEqual([])
      await context.close()
    },
    PATIENCE_MS,
  )
})

describe('the failed read of rights and waiting items', () => {
  it(
    'is reported in words, with a button to read it again',
    async () => {
      const { context, page } = await sitDown('olga')
      const mend = await breakReads(page, '/v1/me')
      await page.goto(`${stack.gateway_url}/operations`)
      const banner = page.getByRole('status').filter({ hasText: 'Your permissions and counts could not be read.' })
      await banner.waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await mend()
      // A read that a stream frame triggered may be faster than the press.
      await banner
        .getByRole('button', { name: 'Retry now' })
        .click({ timeout: 5000 })
        .catch(() => {})
      await banner.waitFor({ state: 'detached' })
      await context.close()
    },
    PATIENCE_MS,
  )
})

describe('an object that does not exist', () => {
  it(
    'is reported as missing, whatever its id looks like, with the list of such objects as the next step',
    async () => {
      const { context, page } = await sitDown('ada')
      const nobody = '00000000-0000-7000-8000-000000000000'
      for (const [path, noun, list] of [
        ['/resources/%F0%9F%98%80', 'resource', 'See all resources'],
        [`/resources/${'x'.repeat(400)}`, 'resource', 'See all resources'],
        ['/operations/%F0%9F%98%80/graph', 'operation', 'See all operations'],
        ['/operations/nope', 'operation', 'See all operations'],
        [`/admin/users/${nobody}`, 'user', 'See all users'],
        [`/schedules/${nobody}`, 'schedule', 'See all schedules'],
      ] as const) {
        // Within the open console, because the edge itself refuses such a path.
        await page.evaluate(`history.pushState({}, '', '${path}'); dispatchEvent(new PopStateEvent('popstate'))`)
        await page.getByRole('alert').getByText(`No ${noun} with this id, or you may not see it.`).waitFor()
        // An address has no fields to correct.
        expect(await page.getByRole('alert').textContent()).not.toMatch(/violations|params/)
        if (noun === 'operation') await page.getByRole('heading', { level: 1, name: /^Operation / }).waitFor()
        await page.getByText('Live', { exact: true }).waitFor()
        expect(await accessibilityOf(page)).toEqual([])
        await page.getByRole('alert').getByRole('link', { name: list }).click()
        await page.getByRole('alert').waitFor({ state: 'detached' })
      }
      // A link that was mistyped elsewhere: the edge refuses the path and sends the console's page to a browser.
      for (const id of ['😀', '%F0%9F%98%80', 'two words', '%zz']) {
        const answer = await page.goto(`${stack.gateway_url}/resources/${id}`)
        expect([id, answer?.status()]).toEqual([id, 400])
        await page.getByRole('link', { name: /^(See all resources|Go to the inbox)$/ }).waitFor()
        await page.getByRole('navigation', { name: 'Main' }).waitFor()
      }
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'includes the form of a change, for people who may not start one',
    async () => {
      const vera = { username: 'vera', password: 'hT7wq-zN3pk-sB9vx-dL5ry', roles: ['viewer'] }
      await ensurePerson(stack.gateway_url, people.ada, vera, 'netops')
      accounts.set('vera', vera)
      const { context, page } = await sitDown('vera')
      await page.goto(`${stack.gateway_url}/new`)
      await page.getByText('Your roles start no changes.').waitFor()
      expect(await page.locator('main form').count()).toBe(0)
      expect(await accessibilityOf(page)).toEqual([])
      await page.getByRole('link', { name: 'See all intents' }).click()
      await page.getByRole('heading', { level: 1, name: 'Intents' }).waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )
})

/** An operation with so many gates that wait for eva. */
const manyGates = async (name: string, length: number) => {
  const gates = Array.from({ length }, (_, at) => `${name}-${at}`)
  const node = { kind: 'task', executor: 'noop', with: {}, idempotent: true, depends_on: [] }
  const policy = { approvals: { quorum: 1, groups: [{ group: 'netops', min: 1 }] }, deadline_s: 3600 }
  const before = await counted()
  await startOperation(people.olga, name, {
    ...{ kind: 'graph', title: `${name} inbox`, reason: 'a test', targets: [] },
    graph: {
      nodes: gates.map((node_id) => ({ ...node, node_id, name: node_id })),
      gates: gates.map((id) => ({ gate_id: id, question: `Go on with ${id}?`, guards: [id], policy })),
    },
  })
  await until(async () => (await counted()) >= before + length, { what: `${length} gates`, timeout_ms: 60_000 })
}
const counted = async () => (await people.eva.get<{ counts: { gates_mine: number } }>('/v1/me')).counts.gates_mine

describe('an inbox that is longer than a page', () => {
  it(
    'reaches every gate, and draws only the requested ones',
    async () => {
      await manyGates('long', 60)
      const { context, page } = await sitDown('eva')
      const cards = page.getByRole('article')
      await until(async () => (await cards.count()) === 50, { what: 'the first page' })
      // The page that one asked for is slow, and news comes meanwhile: it is neither given up nor forgotten.
      const nextPage = (url: URL) => url.pathname === '/api/v1/gates' && url.searchParams.has('page_token')
      const held: Route[] = []
      let slow = true
      await page.route(nextPage, (route) => (slow ? void held.push(route) : route.continue()))
      await press(page, 'Load more')
      await until(() => held.length > 0, { what: 'the press' })
      const before = await counted()
      await start('long news')
      await until(async () => (await counted()) > before, { what: 'the news' })
      await page
        .getByText(`${before + 1} gates`)
        .first()
        .waitFor()
      slow = false
      for (const route of held) await route.continue()
      await page.getByRole('link', { name: 'Go on with long-59?' }).waitFor()
      await page.getByRole('link', { name: 'Go on with long news?' }).waitFor()
      await until(async () => (await cards.count()) === (await counted()), { what: 'every gate' })
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'draws few of more than a hundred cards, and the next ones when scrolled to',
    async () => {
      // As many gates as before, once more: their operations are still open.
      await manyGates('longer', 60)
      const { context, page } = await sitDown('eva')
      const cards = page.getByRole('article')
      await until(async () => (await cards.count()) === 50, { what: 'the first page' })
      await press(page, 'Load more')
      await until(async () => (await cards.count()) === 100, { what: 'the second page' })
      await press(page, 'Load more')
      const drawn = async () => (await cards.count()) < 40
      await until(drawn, { what: 'few cards' })
      expect(await accessibilityOf(page)).toEqual([])
      const last = page.locator('[aria-posinset]').last()
      const all = await counted()
      await until(
        async () => {
          await page.keyboard.press('End')
          return Number(await last.getAttribute('aria-posinset')) >= all
        },
        { what: 'the last card' },
      )
      expect(await drawn()).toBe(true)
      await context.close()
    },
    PATIENCE_MS,
  )
})
