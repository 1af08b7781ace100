import type { JsonWebKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { startOperation } from '../../../apps/platform/demo/operations.ts'
import { verifyEvidence } from '../../../apps/shared/evidence/verify.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { confirm, dialogOf, jobs, nodesOf, PATIENCE_MS, people, press, stack, start, tabOf } from '../desk.ts'

describe('changing a running graph', () => {
  type Proposed = { patch_id: string }
  const second = 'task second'
  let operation_id = ''
  let url = ''

  it(
    'checks a patch during editing, and names each fault at its change',
    async () => {
      const page = await tabOf('olga')
      const started = await start('patched')
      operation_id = started.operation_id
      url = started.url
      await page.goto(`${url}/patches`)
      await page.getByText('No patches have been proposed.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await page.getByRole('main').getByRole('link', { name: 'Propose a patch' }).last().click()
      await page.getByRole('heading', { level: 1, name: 'Propose a patch' }).waitFor()
      const submit = page.getByRole('button', { name: 'Propose patch' })
      expect(await submit.getAttribute('aria-disabled')).toBe('true')
      await page.getByLabel('Step', { exact: true }).selectOption(second)
      await press(page, 'Add to the patch')
      await page.getByText('The graph would be sound. The patch has not been proposed yet.').waitFor()
      // Drawn before it is proposed, as others will see it.
      const drawing = page.getByRole('application')
      await drawing.getByText('Added').waitFor()
      await drawing.getByText('before task second').waitFor()
      expect(await drawing.getByText('Changed').count()).toBe(1)
      await page.getByLabel('Change', { exact: true }).selectOption('Add a gate before')
      await press(page, 'Add to the patch')
      await drawing.getByText('Continue with task second?').waitFor()
      expect(await drawing.getByText('Added').count()).toBe(2)
      expect(await accessibilityOf(page)).toEqual([])
      await press(page, 'Remove change 3')
      await drawing.getByText('Continue with task second?').waitFor({ state: 'detached' })
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
      await item.getByText(/^This is not valid JSON:/).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await json.fill(whole)
      await page.getByText('The graph would be sound.').waitFor()

      // A slip does not lose the draft.
      await page.getByRole('link', { name: 'patched' }).click()
      await confirm(page, 'Stay')
      await submit.click()
      await dialogOf(page).getByText('One step does not start until it is decided.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await dialogOf(page).getByLabel('Reason').fill('look first')
      await confirm(page, 'Propose patch')
      await page.getByText('You proposed this patch. Another person must approve it.').waitFor()
      expect(await page.getByRole('button', { name: 'Approve' }).getAttribute('aria-disabled')).toBe('true')
      await page.getByRole('button', { name: 'Withdraw' }).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'is approved by someone else on the digest of the shown changes; another patch reports that its base has changed',
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
      await eva.getByText('Digest checked').waitFor()
      // Before and after in one drawing: additions and differences are labeled in words.
      const drawing = eva.getByRole('application')
      await drawing.getByText('Added').waitFor()
      await drawing.getByText('Changed').waitFor()
      expect(await drawing.getByText('before task second').count()).toBe(1)
      expect(await accessibilityOf(eva)).toEqual([])
      await press(eva, 'Approve')
      await dialogOf(eva).getByText('Yours is the last vote: the graph becomes revision 2 immediately.').waitFor()
      await confirm(eva, 'Approve 2 changes')
      await eva.getByText(/^Approved by eva, .*The graph became revision 2\.$/).waitFor()
      expect(await nodesOf(operation_id)).toHaveProperty(['before.second'])

      // Live, without a reload: why it cannot be applied, and what to do next.
      await olga.getByText('It can no longer be applied: another patch has changed the graph.').waitFor()
      expect(await accessibilityOf(olga)).toEqual([])
      await olga.getByRole('link', { name: 'Propose the same changes on the new graph' }).click()
      await olga.getByText('on revision 2 of its graph').waitFor()
      await olga.getByText('The graph would be sound.').waitFor()
      await press(olga, 'Propose patch')
      await dialogOf(olga).getByText('No steps are held.').waitFor()
      await dialogOf(olga).getByLabel('Reason').fill('one by one, again')
      await confirm(olga, 'Propose patch')
      await press(olga, 'Withdraw')
      await dialogOf(olga).getByLabel('Comment').fill('not needed')
      await confirm(olga, 'Withdraw')
      await olga.getByText(/^Withdrawn by olga, /).waitFor()
      await Promise.all([eva.close(), olga.close()])
    },
    PATIENCE_MS,
  )

  it(
    'shows beside it the log lines around the first error of the node that it repairs',
    async () => {
      jobs.mount = async (_work, { log }) => {
        for (let n = 1; n <= 9; n++)
          log(n === 5 ? '\u001b[31mno \u202edisk\u001b[0m' : `mount step ${n}`, n === 5 ? 'error' : 'info')
        throw new Error('not mounted')
      }
      const node = { node_id: 'mount', executor: 'external', pool: 'lab', with: { job: 'mount', inputs: {} } }
      const { operation_id } = await startOperation(people.olga, 'mounted', {
        ...{ kind: 'graph', title: 'mounted', reason: 'a test', targets: [], graph: { nodes: [node] } },
      })
      await until(async () => (await nodesOf(operation_id)).mount === 'failed', { what: 'the node to fail' })
      const added = {
        node_id: 'disk',
        kind: 'task',
        executor: 'noop',
        with: {},
        idempotent: true,
        depends_on: ['mount'],
      }
      const { body } = await people.olga.post<Proposed>(`/v1/operations/${operation_id}/patches`, {
        base_revision: 1,
        changes: [{ op: 'add_node', node: added }],
        reason: 'bring a disk',
      })
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/operations/${operation_id}/patches/${body.patch_id}`)
      const lines = page.getByRole('region', { name: 'Decision brief' }).locator('dd code.code')
      await lines.waitFor()
      expect((await lines.textContent())?.trim().split('\n')).toEqual([
        ...['mount step 3', 'mount step 4', 'no disk', 'mount step 6', 'mount step 7'],
      ])
      expect(await accessibilityOf(page)).toEqual([])
      await page.getByRole('link', { name: 'Line 5', exact: true }).click()
      await page.waitForURL(/nodes\/mount\?.*attempt=1.*#L5$/)
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'drafts no change of inputs that it could not read',
    async () => {
      const page = await tabOf('olga')
      const { url } = await start('unread inputs')
      await page.goto(`${url}/patches/new`)
      await page.getByLabel('Change', { exact: true }).selectOption('Change the inputs of')
      await page.getByLabel('Step', { exact: true }).selectOption(second)
      await page.route('**/nodes/second', (route) => route.fulfill({ status: 599 }))
      await press(page, 'Add to the patch')
      await page.getByRole('alert').waitFor()
      expect(await page.getByText('Edit as JSON').count()).toBe(0)
      expect(await accessibilityOf(page)).toEqual([])
      await page.unroute('**/nodes/second')
      await press(page, 'Add to the patch')
      await page.getByText('Edit as JSON').waitFor()
      expect(await page.getByRole('alert').count()).toBe(0)
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'tells a person whose dialog was open that someone else decided first',
    async () => {
      const { operation_id, url } = await start('patched twice')
      const { body: proposed } = await people.olga.post<Proposed>(`/v1/operations/${operation_id}/patches`, {
        ...{ base_revision: 1, changes: [{ op: 'set_limits', max_parallel: 1 }], reason: 'too late' },
      })
      const [eva, olga] = await Promise.all([tabOf('eva'), tabOf('olga')])
      await Promise.all([eva, olga].map((page) => page.goto(`${url}/patches/${proposed.patch_id}`)))
      await press(eva, 'Reject')
      await dialogOf(eva).getByLabel('Comment').fill('not now')
      await press(olga, 'Withdraw')
      await dialogOf(olga).getByLabel('Comment').fill('not needed')
      await confirm(olga, 'Withdraw')
      await eva.getByRole('alert').getByText('olga withdrew it while this was open.').waitFor()
      expect(await accessibilityOf(eva)).toEqual([])
      await Promise.all([eva.close(), olga.close()])
    },
    PATIENCE_MS,
  )

  it(
    'is not approved for what was not read, or does not match its digest',
    async () => {
      const { operation_id, url } = await start('patched unread')
      const { body: proposed } = await people.olga.post<Proposed>(`/v1/operations/${operation_id}/patches`, {
        ...{ base_revision: 1, changes: [{ op: 'set_limits', max_parallel: 1 }], reason: 'as it was read' },
      })
      const page = await tabOf('eva')
      let forging: object = {}
      let sent = ''
      await page.route(`**/api/v1/operations/${operation_id}/patches/${proposed.patch_id}`, async (route) => {
        const answer = await route.fetch()
        await route.fulfill({ response: answer, json: { ...(await answer.json()), ...forging } })
      })
      page.on('request', (request) => {
        const body = request.url().endsWith('/approve') ? request.postDataJSON() : { dry_run: true }
        if (body.dry_run !== true) sent = body.reviewed_digest
      })
      await page.clock.install()
      await page.goto(`${url}/patches/${proposed.patch_id}`)
      await page.getByText('Digest checked').waitFor()
      await press(page, 'Approve')
      const button = dialogOf(page).getByRole('button', { name: 'Approve 1 change' })
      await button.waitFor()
      await dialogOf(page).getByText('Yours is the last vote').waitFor()
      const digest = `sha256:${'0'.repeat(64)}`
      forging = { digest, reason: 'as it was forged' }
      await page.clock.fastForward(31_000)
      await page.locator('h1', { hasText: 'as it was forged' }).waitFor()
      await until(async () => (await button.getAttribute('aria-disabled')) === 'true', { what: 'the blocked button' })
      await dialogOf(page).getByRole('heading', { name: 'as it was read' }).waitFor()
      await dialogOf(page).getByText('This page does not match what the server asks about. Reload.').waitFor()
      forging = {}
      await page.clock.fastForward(31_000)
      await until(async () => (await button.getAttribute('aria-disabled')) !== 'true', { what: 'the button' })
      await button.click()
      await page.getByText(/^Approved by eva, /).waitFor()
      expect(sent).toMatch(/^sha256:/)
      expect(sent).not.toBe(digest)
      await page.unrouteAll({ behavior: 'wait' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'lets a person set the end of a node, with ticket and reason, and the operation ends with exceptions',
    async () => {
      const page = await tabOf('olga')
      await page.goto(`${url}/nodes/second`)
      await press(page, 'Intervene')
      await dialogOf(page).getByText('Skip: do not run it').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      // An action that does not apply now stays visible, with the reason.
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
    'verifies the record in the browser as in the signed file, and names a changed and a missing record',
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

      const reads = `**/api/v1/operations/${operation_id}/evidence?**`
      await page.route(reads, async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        json.records[1].statement = 'olga did nothing'
        await route.fulfill({ response: answer, json })
      })
      await press(page, 'Verify in this browser')
      await page.getByText('Record 2 fails verification.').waitFor()
      await page.getByText('Its content does not match its hash: it was changed.').waitFor()
      type Records = { seq: number }[]
      for (const [left, fault] of [
        [(all: Records) => all.filter(({ seq }) => seq !== 2), 'Record 2 fails verification.'],
        [(all: Records) => all.slice(0, -1), 'The chain does not end at its head.'],
      ] as const) {
        await page.unroute(reads)
        await page.route(reads, async (route) => {
          const answer = await route.fetch()
          const json = await answer.json()
          await route.fulfill({ response: answer, json: { ...json, records: left(json.records) } })
        })
        await press(page, 'Verify in this browser')
        await page.getByText(fault).waitFor()
      }
      await page.close()
      const eva = await tabOf('eva')
      await eva.goto(`${url}/evidence`)
      await press(eva, 'Download the signed file')
      await eva.getByText('Ask an auditor, or the person who requested the operation.').waitFor()
      await eva.close()
    },
    PATIENCE_MS,
  )
})
