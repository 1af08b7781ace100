import type { JsonWebKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ensurePerson, readDemo } from '../../apps/platform/demo/accounts.ts'
import { type Account, type Person, signIn } from '../../apps/platform/demo/client.ts'
import { startOperation } from '../../apps/platform/demo/operations.ts'
import { verifyEvidence } from '../../apps/shared/evidence.ts'
import { accessibilityOf, complaintsOf, launchBrowser, signInAs } from '../support/browser.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { until } from '../support/until.ts'

/** A browser beside a whole platform on two cores takes its time; no test waits for time to pass. */
const PATIENCE_MS = 150_000

/** What people do at the console while an operation runs: steer it, decide its gates, keep their session. */
let stack: Stack
let browser: Browser
let people: Record<'ada' | 'olga' | 'eva', Person>
const accounts = new Map<string, Account>()
const complaints: string[] = []

/** Something outside that takes its time: every request is answered once the test says so. */
const target = {
  url: '',
  waiting: [] as ServerResponse[],
  server: createServer((_req, res) => void target.waiting.push(res)),
}
const letGo = () => {
  for (const answer of target.waiting.splice(0)) answer.end('{}')
}
const isHeld = () =>
  until(() => target.waiting.length > 0, { timeout_ms: 20_000, what: 'the first node at its target' })

beforeAll(async () => {
  await new Promise<void>((resolve) => target.server.listen(0, '127.0.0.1', resolve))
  target.url = `http://127.0.0.1:${(target.server.address() as AddressInfo).port}/work`
  stack = await startStack({ console: true, apps: APPS })
  people = await stack.people()
  for (const account of readDemo(stack.dir)?.users ?? []) accounts.set(account.username, account)
  // Somebody who may start operations and decide gates: what four eyes are about.
  const otto = { username: 'otto', password: 'rT5hw-xC7pP-kJ2pa-qR4zz', roles: ['operator', 'approver'] }
  await ensurePerson(stack.gateway_url, people.ada, otto, 'netops')
  accounts.set('otto', otto)
  browser = await launchBrowser()
}, 300_000)
afterAll(async () => {
  target.server.closeAllConnections()
  target.server.close()
  await browser?.close()
  await stack?.stop()
}, 60_000)

const APPS = ['token', 'credential', 'identity', 'session', 'catalog', 'operations', 'worker', 'relay', 'gateway']

const openTab = async (context: BrowserContext): Promise<Page> => {
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  const said = complaintsOf(page)
  page.on('close', () => complaints.push(...said))
  return page
}

/** A browser of its own with this person signed in, for tests that end or bend the session. */
const sitDown = async (username: string): Promise<{ context: BrowserContext; page: Page }> => {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, reducedMotion: 'reduce' })
  const page = await openTab(context)
  await signInAs(page, stack.gateway_url, accounts.get(username) as Account)
  return { context, page }
}

const desks = new Map<string, Promise<{ context: BrowserContext; page: Page }>>()
/** Another tab at this person's desk. */
const tabOf = async (username: string): Promise<Page> => {
  if (!desks.has(username)) desks.set(username, sitDown(username))
  const desk = desks.get(username) as ReturnType<typeof sitDown>
  return openTab((await desk).context)
}

type Wanted = { held?: boolean; deadline_s?: number; owner?: Person }
/** Two nodes, the second behind a gate; `held`: without a gate, and the first runs until `letGo`. */
const start = async (title: string, { held = false, deadline_s = 3600, owner }: Wanted = {}) => {
  const task = (node_id: string, depends_on: string[] = []) => ({
    node_id,
    name: `task ${node_id}`,
    kind: 'task',
    executor: 'noop',
    with: {},
    idempotent: true,
    depends_on,
  })
  const first = { ...task('first'), executor: 'http', with: { request: { method: 'GET', url: target.url } } }
  const policy = { approvals: { quorum: 1, groups: [{ group: 'netops', min: 1 }], four_eyes: true }, deadline_s }
  const { operation_id } = await startOperation(owner ?? people.olga, title, {
    kind: 'graph',
    title,
    reason: 'a test',
    targets: [],
    graph: {
      nodes: [held ? first : task('first'), task('second', ['first'])],
      gates: held ? [] : [{ gate_id: 'go', question: `Go on with ${title}?`, guards: ['second'], policy }],
    },
  })
  return {
    operation_id,
    url: `${stack.gateway_url}/operations/${operation_id}`,
    gate: `${stack.gateway_url}/operations/${operation_id}/gates/go`,
  }
}

const nodesOf = async (operation_id: string): Promise<Record<string, string>> => {
  const { items } = await people.eva.get<{ items: { node_id: string; state: string }[] }>(
    `/v1/operations/${operation_id}/nodes`,
  )
  return Object.fromEntries(items.map(({ node_id, state }) => [node_id, state]))
}

const dialogOf = (page: Page) => page.getByRole('dialog')
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const confirm = (page: Page, name: string) => dialogOf(page).getByRole('button', { name, exact: true }).click()

describe('steering a running operation', () => {
  it(
    'pauses as the dialog said, live in both tabs, and holds; the later of two resumes learns what is possible',
    async () => {
      const [page, other] = [await tabOf('olga'), await tabOf('olga')]
      const { operation_id, url } = await start('pause me', { held: true })
      await isHeld()
      await Promise.all([page.goto(url), other.goto(`${url}/nodes`)])
      await press(page, 'Pause')
      await dialogOf(page).getByText('One running node finishes; one does not start until it is resumed.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await confirm(page, 'Pause operation')
      await dialogOf(page).getByText('A reason is needed.').waitFor()
      await dialogOf(page).getByLabel('Reason').fill('lunch')
      await confirm(page, 'Pause operation')
      for (const tab of [page, other]) {
        await tab.getByText(/^Pausing by olga, .*: one node is finishing\.$/).waitFor()
        await tab.getByText('“lunch”').waitFor()
      }
      letGo()
      for (const tab of [page, other]) await tab.getByText(/^Paused by olga, .*Nothing new starts/).waitFor()
      expect(await nodesOf(operation_id)).toEqual({ first: 'succeeded', second: 'ready' })

      for (const tab of [page, other]) {
        await press(tab, 'Resume')
        await dialogOf(tab)
          .getByText(/^Next to start: .*second\.$/)
          .waitFor()
        await dialogOf(tab).getByLabel('Reason').fill('back again')
      }
      await confirm(page, 'Resume operation')
      await page.getByText(/^Succeeded in/).waitFor()
      await confirm(other, 'Resume operation')
      await dialogOf(other).getByText('Not possible now').waitFor()
      await dialogOf(other).getByText('Possible now: None.').waitFor()
      await Promise.all([page.close(), other.close()])
    },
    PATIENCE_MS,
  )

  it(
    'cancels gracefully: what runs finishes, the rest is cancelled, and the page says who and why',
    async () => {
      const page = await tabOf('olga')
      const { operation_id, url } = await start('cancel me', { held: true })
      await isHeld()
      await page.goto(url)
      await press(page, 'Cancel')
      await dialogOf(page).getByText('One running node finishes; one will not start.').waitFor()
      await dialogOf(page).getByLabel('Reason').fill('not today')
      await confirm(page, 'Cancel operation')
      await page.getByText(/^Cancelling by olga, .*: one node is finishing\.$/).waitFor()
      letGo()
      await page.getByText(/^Cancelled by olga, /).waitFor()
      await page.getByText('“not today”').waitFor()
      await page.getByText('2 of 2 ended').waitFor()
      expect(await nodesOf(operation_id)).toEqual({ first: 'succeeded', second: 'cancelled' })
      await page.getByRole('button', { name: 'Cancel', exact: true }).waitFor({ state: 'detached' })
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('changing a running graph', () => {
  type Proposed = { patch_id: string }
  const second = 'task second'
  let operation_id = ''
  let url = ''

  it(
    'checks a patch while it is put together, and names what is wrong at the change that is wrong',
    async () => {
      const page = await tabOf('olga')
      const started = await start('patched')
      operation_id = started.operation_id
      url = started.url
      await page.goto(`${url}/patches`)
      await page.getByText('Nobody has proposed to change this graph.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await page.getByRole('main').getByRole('link', { name: 'Propose a patch' }).last().click()
      await page.getByRole('heading', { level: 1, name: 'Propose a patch' }).waitFor()
      const submit = page.getByRole('button', { name: 'Propose patch' })
      expect(await submit.getAttribute('aria-disabled')).toBe('true')
      await page.getByLabel('Step', { exact: true }).selectOption(second)
      await press(page, 'Add to the patch')
      await page.getByText('The graph would be sound. Nothing has been sent yet.').waitFor()
      await page.getByText('Edit as JSON').nth(1).click()
      const json = page.getByLabel('Change 2 as JSON')
      const whole = await json.inputValue()
      const item = page.getByRole('listitem').filter({ has: json })
      await json.fill(whole.replace('before.second', 'nobody'))
      await item
        .getByText(/nobody/)
        .first()
        .waitFor()
      await page.getByText(/^This could not run, for/).waitFor()
      expect(await submit.getAttribute('aria-disabled')).toBe('true')
      await json.fill('{ "op": ')
      await item.getByText(/^This is not JSON:/).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await json.fill(whole)
      await page.getByText('The graph would be sound.').waitFor()

      // What was put together is not lost by a slip.
      await page.getByRole('link', { name: 'patched' }).click()
      await confirm(page, 'Stay')
      await submit.click()
      await dialogOf(page).getByText('One step does not start until it is decided.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await dialogOf(page).getByLabel('Reason').fill('look first')
      await confirm(page, 'Propose patch')
      await page.getByText('You proposed this patch; it needs someone else.').waitFor()
      expect(await page.getByRole('button', { name: 'Approve' }).getAttribute('aria-disabled')).toBe('true')
      await page.getByRole('button', { name: 'Take back' }).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'is approved by somebody else on the digest of what is shown; another patch is told that its base has moved',
    async () => {
      const [eva, olga] = await Promise.all([tabOf('eva'), tabOf('olga')])
      const { body: other } = await people.olga.post<Proposed>(`/v1/operations/${operation_id}/patches`, {
        base_revision: 1,
        changes: [{ op: 'set_limits', max_parallel: 1 }],
        reason: 'one by one',
      })
      const otherPage = `${url}/patches/${other.patch_id}`
      await Promise.all([eva.goto(`${url}/patches`), olga.goto(otherPage)])
      await eva.getByRole('link', { name: 'look first' }).click()
      await eva.getByText(/computed in this browser/).waitFor()
      await eva.getByText('before task second').first().waitFor()
      expect(await accessibilityOf(eva)).toEqual([])
      await press(eva, 'Approve')
      await dialogOf(eva).getByText('Yours is the last vote: the graph becomes revision 2 at once.').waitFor()
      await confirm(eva, 'Approve')
      await eva.getByText(/^Approved by eva, .*The graph is revision 2 since\.$/).waitFor()
      expect(await nodesOf(operation_id)).toHaveProperty(['before.second'])

      // Live, without a reload: why it cannot be applied, and the way on.
      await olga.getByText('It cannot be applied any more: another patch has changed the graph.').waitFor()
      expect(await accessibilityOf(olga)).toEqual([])
      await olga.getByRole('link', { name: 'Propose the same on the new graph' }).click()
      await olga.getByText('on revision 2 of its graph').waitFor()
      await olga.getByText('The graph would be sound.').waitFor()
      await press(olga, 'Propose patch')
      await dialogOf(olga).getByText('Nothing is held meanwhile.').waitFor()
      await dialogOf(olga).getByLabel('Reason').fill('one by one, again')
      await confirm(olga, 'Propose patch')
      await press(olga, 'Take back')
      await dialogOf(olga).getByLabel('Comment').fill('not needed')
      await confirm(olga, 'Take back')
      await olga.getByText(/^Taken back by olga, /).waitFor()
      await Promise.all([eva.close(), olga.close()])
    },
    PATIENCE_MS,
  )

  it(
    'lets a person state the end of a node, with ticket and reason, and the operation ends with exceptions',
    async () => {
      const page = await tabOf('olga')
      await page.goto(`${url}/nodes/second`)
      await press(page, 'Intervene')
      await dialogOf(page).getByText('Skip it: it is not done at all').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      // What does not apply now stays visible, with the reason.
      await dialogOf(page)
        .getByText(/mark_succeeded does not apply/)
        .waitFor()
      await dialogOf(page).getByLabel('Ticket (optional)').fill('OPS-7')
      await dialogOf(page).getByLabel('Reason').fill('done elsewhere')
      await confirm(page, 'Skip node')
      await page.getByText('Skipped', { exact: true }).first().waitFor()
      await page.goto(url)
      await page.getByText(/^Succeeded with exceptions in/).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'proves what happened: verified in the browser as by the signed file, and a changed record is named',
    async () => {
      const page = await tabOf('olga')
      await page.goto(`${url}/evidence`)
      await press(page, 'Verify in this browser')
      const said = page.getByText(/^All \d+ records match: from the plan to the head/)
      await said.waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      const [download] = await Promise.all([page.waitForEvent('download'), press(page, 'Download the signed file')])
      const keys = await people.eva.get<{ keys: JsonWebKey[] }>('/v1/evidence/keys')
      const verified = verifyEvidence(readFileSync(await download.path()), keys.keys)
      expect(verified).toMatchObject({ head: { operation_id } })

      await page.route(`**/api/v1/operations/${operation_id}/evidence?**`, async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        json.records[1].statement = 'olga did nothing'
        await route.fulfill({ response: answer, json })
      })
      await press(page, 'Verify in this browser')
      await page.getByText('Record 2 does not hold.').waitFor()
      await page.getByText('Its content does not have its hash: something in it was changed.').waitFor()
      await page.close()
      const eva = await tabOf('eva')
      await eva.goto(`${url}/evidence`)
      await press(eva, 'Download the signed file')
      await eva.getByText('Ask an auditor, or whoever asked for the operation.').waitFor()
      await eva.close()
    },
    PATIENCE_MS,
  )
})

describe('deciding a gate', () => {
  it(
    'refuses the requester with the reason beside the button',
    async () => {
      const page = await tabOf('otto')
      const owner = await signIn(stack.gateway_url, accounts.get('otto') as Account)
      await page.goto((await start('four eyes', { owner })).gate)
      await page.getByText('You started this operation; its gates need someone else.').waitFor()
      const approve = page.getByRole('button', { name: 'Approve' })
      expect(await approve.getAttribute('aria-disabled')).toBe('true')
      await approve.click({ force: true })
      expect(await dialogOf(page).count()).toBe(0)
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'rejects with a comment, and tells the one who was reading too who was first',
    async () => {
      const [eva, otto] = await Promise.all([tabOf('eva'), tabOf('otto')])
      const { operation_id, gate } = await start('race')
      await Promise.all([eva.goto(gate), otto.goto(gate)])
      await press(otto, 'Approve')
      await dialogOf(otto).getByLabel('Comment (optional)').fill('looks good')
      await press(eva, 'Reject')
      await confirm(eva, 'Reject')
      await dialogOf(eva).getByText('A comment is needed.').waitFor()
      await dialogOf(eva).getByLabel('Comment').fill('not on a Friday')
      await confirm(eva, 'Reject')
      for (const page of [eva, otto]) {
        await page
          .getByText(/^Rejected by eva, /)
          .first()
          .waitFor()
        await page.getByText('“not on a Friday”').waitFor()
        expect(await dialogOf(page).count()).toBe(0)
      }
      await otto.getByRole('alert').getByText('eva decided while you were reading').waitFor()
      expect(await eva.getByText('decided while you were reading').count()).toBe(0)
      expect(await nodesOf(operation_id)).toMatchObject({ second: 'failed' })
      await Promise.all([eva.close(), otto.close()])
    },
    PATIENCE_MS,
  )

  it(
    'is done by keyboard alone: from the sign-in over the inbox to a rejected gate and on to the inbox',
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
      await page.getByText(/computed in this browser/).waitFor()
      await tabTo(reject)
      await page.keyboard.press('Enter')
      await dialogOf(page).waitFor()
      // Escape closes and gives the focus back; the second time it is meant.
      await page.keyboard.press('Escape')
      await dialogOf(page).waitFor({ state: 'detached' })
      await until(() => focused(reject))
      await page.keyboard.press('Enter')
      await tabTo(dialogOf(page).getByLabel('Comment'))
      await page.keyboard.type('by keyboard')
      await tabTo(dialogOf(page).getByRole('button', { name: 'Reject' }))
      await page.keyboard.press('Enter')
      await page
        .getByText(/^Rejected by eva, /)
        .first()
        .waitFor()
      await tabTo(page.getByRole('link', { name: 'Next in inbox' }))
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'shows that nobody decided in time, without a reload',
    async () => {
      const page = await tabOf('eva')
      await page.goto((await start('late', { deadline_s: 4 })).gate)
      await page.getByText(/^If nobody decides by .*, it is rejected, and the nodes behind it fail\.$/).waitFor()
      await page
        .getByText(/^Nobody decided in time; it expired/)
        .first()
        .waitFor({ timeout: 20_000 })
      expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'lets nothing be decided when what is shown is not what the server asks about',
    async () => {
      const page = await tabOf('eva')
      const { operation_id, gate } = await start('tampered')
      await page.route(`**/api/v1/operations/${operation_id}/gates/go`, async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        json.subject.releases[0].inputs = { forged: true }
        await route.fulfill({ response: answer, json })
      })
      await page.goto(gate)
      await page.getByText(/does not have the digest that the server asks about/).waitFor()
      for (const name of ['Approve', 'Reject'])
        expect(await page.getByRole('button', { name }).getAttribute('aria-disabled')).toBe('true')
      expect(await accessibilityOf(page)).toEqual([])
      await page.unroute(`**/api/v1/operations/${operation_id}/gates/go`)
      await press(page, 'Reload')
      await page.getByText(/computed in this browser/).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'asks the password again where the server wants it, then sends the same decision',
    async () => {
      const page = await tabOf('eva')
      const { operation_id, gate } = await start('step up')
      let confirmed = false
      page.on('response', (answer) => {
        if (answer.url().endsWith('/v1/token/reauth') && answer.ok()) confirmed = true
      })
      // The server's own word, said early: by itself it would come after minutes.
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
      await dialogOf(page).getByText('Confirm that it is you').waitFor()
      await dialogOf(page).getByLabel('Password', { exact: true }).fill('wrong-password')
      await confirm(page, 'Confirm')
      await dialogOf(page).getByText('The password is not right.').waitFor()
      await dialogOf(page)
        .getByLabel('Password', { exact: true })
        .fill((accounts.get('eva') as Account).password)
      await confirm(page, 'Confirm')
      await dialogOf(page).getByText('Confirm that it is you').waitFor({ state: 'detached' })
      await confirm(page, 'Approve')
      await page
        .getByText(/^Approved by eva, /)
        .first()
        .waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('a session in the browser', () => {
  it(
    'begins with a link that works once: the rules as one types, the words of the server, then the first sign-in',
    async () => {
      type Made = { user: { id: string }; enrolment: { token: string; url: string } }
      const grants = [{ role: 'viewer', scope: {} }]
      const { body } = await people.ada.post<Made>('/v1/admin/users', { username: 'enno', grants })
      const link = `${stack.gateway_url}/enrol#${body.enrolment.token}`
      expect(new URL(body.enrolment.url).hash).toBe(`#${body.enrolment.token}`)
      const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, reducedMotion: 'reduce' })
      const page = await openTab(context)
      await page.goto(link)
      await page.getByRole('heading', { level: 1, name: 'Set your password' }).waitFor()
      // The token opens an account: the address bar forgets it.
      await page.waitForURL(`${stack.gateway_url}/enrol`)
      const field = page.getByLabel('New password')
      const missing = page.getByRole('listitem').filter({ hasText: 'missing' })
      const choose = async (password: string) => {
        await field.fill(password)
        await press(page, 'Set password')
      }
      await field.fill('enno')
      await missing.filter({ hasText: 'An uppercase letter' }).waitFor()
      expect(await missing.count()).toBe(4)
      await press(page, 'Set password')
      for (const words of ['needs at least 8 characters', 'needs an uppercase letter', 'needs a digit'])
        await page.getByRole('alert').getByText(words).waitFor()
      await choose('Qwertyuiop1!')
      expect(await missing.count()).toBe(0)
      await page.getByRole('alert').getByText('This is similar to a commonly used password').waitFor()
      expect(await accessibilityOf(page)).toEqual([])

      const account = { username: 'enno', password: 'zR6pd-uW2ns-kF9vb-qA3mm', roles: ['viewer'] }
      await choose(account.password)
      await page.getByText('Your password is set').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await signInAs(page, stack.gateway_url, account)
      await context.close()

      const again = await openTab(await browser.newContext({ reducedMotion: 'reduce' }))
      await again.goto(link)
      await again.getByLabel('New password').fill(`${account.password}-too`)
      await press(again, 'Set password')
      await again.getByText('This enrolment link is not valid, was used, or has ended.').waitFor()
      await again.getByLabel('Enrolment token').waitFor()
      expect(await accessibilityOf(again)).toEqual([])
      await again.context().close()
    },
    PATIENCE_MS,
  )

  it(
    'survives a reload, keeps its access token in memory only, and ends in every tab at once',
    async () => {
      const { context, page } = await sitDown('eva')
      const other = await openTab(context)
      await page.reload()
      await page.getByRole('heading', { level: 1, name: 'Inbox' }).waitFor()
      await other.goto(`${stack.gateway_url}/resources`)
      await other.getByRole('heading', { level: 1, name: 'Resources' }).waitFor()
      const kept = await page.evaluate<string>(
        'JSON.stringify([{ ...localStorage }, Object.keys(sessionStorage), document.cookie])',
      )
      expect(JSON.parse(kept).slice(1)).toEqual([['csrf_token'], ''])
      expect(kept).not.toContain('eyJ')
      const cookie = (await context.cookies()).find(({ name }) => name === 'refresh_token')
      expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', secure: true, path: '/v1/token' })

      await page.getByRole('button', { name: /Signed in as eva/ }).click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      for (const tab of [page, other]) await tab.getByText(/^You are signed out/).waitFor()
      await other.goto(`${stack.gateway_url}/inbox`)
      await other.getByLabel('Username').waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'is one session in five tabs: one refresh serves all, and so do a new password and a sign-out',
    async () => {
      const account = { username: 'pia', password: 'vK8ty-nB3sd-wL6mc-xJ9rr', roles: ['viewer'] }
      await ensurePerson(stack.gateway_url, people.ada, account, 'netops')
      accounts.set('pia', account)
      const { context, page } = await sitDown('pia')
      const tabs = [page, ...(await Promise.all([1, 2, 3, 4].map(() => openTab(context))))]
      const fromMenu = async (tab: Page, item: string) => {
        await tab.getByRole('button', { name: /Signed in as pia/ }).click()
        await tab.getByRole('menuitem', { name: item }).click()
        await tab.getByRole('heading', { level: 1, name: item }).waitFor()
      }
      await Promise.all(tabs.map((tab) => tab.goto(`${stack.gateway_url}/settings/display`)))
      await Promise.all(tabs.map((tab) => tab.getByRole('heading', { level: 1, name: 'Display settings' }).waitFor()))

      // The first read of every tab is refused, all five at once.
      let refreshes = 0
      const refused: (() => Promise<void>)[] = []
      await context.route('**/v1/token?response_mode=cookie', (route) => {
        refreshes += 1
        return route.continue()
      })
      await context.route('**/api/v1/sessions', async (route) => {
        if (refused.length >= tabs.length) return route.continue()
        const headers = { ...route.request().headers(), authorization: 'Bearer stale' }
        refused.push(() => route.continue({ headers }))
        if (refused.length === tabs.length) await Promise.all(refused.map((send) => send()))
      })
      await Promise.all(tabs.map((tab) => fromMenu(tab, 'Where you are signed in')))
      await Promise.all(tabs.map((tab) => tab.getByText('This one').waitFor()))
      expect(refreshes).toBe(1)

      const elsewhere = await signIn(stack.gateway_url, account)
      await page.reload()
      await page.getByRole('button', { name: /^Sign out (node|Unknown)$/ }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await press(page, 'Sign out everywhere else')
      await page.getByText('Signed out everywhere else.').waitFor()
      await until(
        async () => (await page.getByText('This one').count()) === 1 && (await page.locator('tbody tr').count()) === 1,
      )
      expect(elsewhere.username).toBe('pia')

      await fromMenu(page, 'Change password')
      const change = async (current: string, next: string) => {
        await page.getByLabel('Current password').fill(current)
        await page.getByLabel('New password').fill(next)
        await press(page, 'Change password')
      }
      await change('not-this-one-9-Q', 'gT4vz-pM2hc-bX8kw-dS5yy')
      await page.getByText('This is not your current password.').waitFor()
      await change(account.password, 'password')
      await page.locator('#new-password-error p').first().waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      const next = 'gT4vz-pM2hc-bX8kw-dS5yy'
      await change(account.password, next)
      await page.getByText('The password is changed.').waitFor()
      await Promise.all(
        tabs.slice(1).map(async (tab) => {
          await tab.getByRole('link', { name: 'Resources' }).click()
          await tab.getByRole('heading', { level: 1, name: 'Resources' }).waitFor()
          expect(await dialogOf(tab).count()).toBe(0)
        }),
      )
      await page.reload()
      await page.getByRole('heading', { level: 1, name: 'Change password' }).waitFor()

      await page.getByRole('button', { name: /Signed in as pia/ }).click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      for (const tab of tabs) await tab.getByText(/^You are signed out/).waitFor()
      await signInAs(page, stack.gateway_url, { ...account, password: next })
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'takes another token silently: before its end by itself, and when a call is refused',
    async () => {
      const context = await browser.newContext()
      const page = await openTab(context)
      let refreshes = 0
      await page.route('**/v1/token?response_mode=cookie', async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        if (route.request().postData()?.includes('refresh_token')) refreshes += 1
        // The first token tells that it ends in a minute: the page acts a minute before the end.
        await route.fulfill({ response: answer, json: refreshes === 0 ? { ...json, expires_in: 61 } : json })
      })
      await signInAs(page, stack.gateway_url, accounts.get('eva') as Account)
      await until(() => refreshes === 1, { what: 'a refresh before the end' })
      let calls = 0
      await page.route('**/api/v1/resources?**', async (route) => {
        calls += 1
        const headers = calls === 1 ? { ...route.request().headers(), authorization: 'Bearer stale' } : undefined
        await route.continue(headers ? { headers } : {})
      })
      await page.getByRole('link', { name: 'Resources' }).click()
      await page.getByText('No resources yet.').waitFor()
      // At least twice: news from the stream may ask for the list once more.
      expect(calls).toBeGreaterThanOrEqual(2)
      expect(refreshes).toBe(2)
      expect(await page.getByText('session has ended').count()).toBe(0)
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'shows the login page with the reason when the session is revoked elsewhere',
    async () => {
      const { context, page } = await sitDown('eva')
      await page.getByText('Live', { exact: true }).waitFor()
      await people.eva.post('/v1/sessions/revoke-others', {})
      await page.getByText('Your session was ended elsewhere. Sign in again.').waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )

  it(
    'polls while the stream is blocked, says so, and is live again afterwards',
    async () => {
      const { context, page } = await sitDown('eva')
      await page.route('**/api/v1/events?**', (route) => route.abort())
      const { url, operation_id } = await start('polled')
      await page.goto(url)
      await page.getByText('Live updates are off; refreshing every 5 s.').waitFor({ timeout: 20_000 })
      expect(await accessibilityOf(page)).toEqual([])
      await people.olga.post(`/v1/operations/${operation_id}/cancel`, { mode: 'graceful', reason: 'seen by polling' })
      await page.getByText('“seen by polling”').waitFor({ timeout: 20_000 })
      await page.unroute('**/api/v1/events?**')
      await press(page, 'Retry now')
      await page.getByText('Live', { exact: true }).waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )
})

it('broke no policy and threw no error on any of these pages', () => {
  // The test itself blocked the stream once.
  expect(complaints.filter((line) => !/ERR_FAILED/.test(line))).toEqual([])
})
