import type { Page, Route } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { type Account, signIn } from '../../../apps/platform/demo/client.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import {
  accounts,
  confirm,
  dialogOf,
  nodesOf,
  PATIENCE_MS,
  people,
  press,
  stack,
  start,
  tabOf,
  takePictures,
} from '../desk.ts'

/** Operations that wait at their gate. */
const waiting = async (...all: Parameters<typeof start>[]) => {
  const started = await Promise.all(all.map(([title, wanted]) => start(title, { deadline_s: 1800, ...wanted })))
  for (const { operation_id } of started)
    await until(async () => (await nodesOf(operation_id)).second === 'gated', {
      what: 'the gate to ask',
      timeout_ms: 60_000,
    })
  return started
}
const boxOf = (page: Page, title: string) =>
  page.getByRole('checkbox', { name: `Select Go on with ${title}?, ${title}` })
const rowOf = (page: Page, title: string) => dialogOf(page).getByRole('listitem').filter({ hasText: title }).first()
/** The batch named in a vote's evidence. */
const batchOf = async (operation_id: string) => {
  type Records = { records: { kind: string; subject: { batch?: { id: string; size: number } } }[] }
  const { records } = await people.olga.get<Records>(`/v1/operations/${operation_id}/evidence`)
  return records.find(({ kind }) => kind === 'vote')?.subject.batch
}
/** The votes that a page sends from now on. */
const votesOf = (page: Page) => {
  const sent: { key: string; path: string }[] = []
  page.on('request', (request) => {
    if (/\/(approve|reject)$/.test(request.url()))
      sent.push({ key: request.headers()['idempotency-key'] ?? '', path: new URL(request.url()).pathname })
  })
  return sent
}

describe('gates decided together', () => {
  it(
    'are those with the same change; others are separate or excluded with the reason',
    async () => {
      const [one, two, other] = await waiting(
        ['bulk one'],
        ['bulk two'],
        ['bulk other', { step: 'job' }],
        ['bulk signed', { signature: 'required' }],
      )
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/inbox?for=me`)
      await boxOf(page, 'bulk one').check()
      await boxOf(page, 'bulk other').check()
      await page.getByText('2 gates selected').waitFor()
      await page.getByRole('link', { name: 'Go on with bulk two?' }).press('x')
      await page.getByText('3 gates selected').waitFor()
      expect(await boxOf(page, 'bulk two').isChecked()).toBe(true)
      const signed = page.getByRole('article').filter({ hasText: 'bulk signed' })
      await signed.getByText('Needs your passkey. Open it.').waitFor()
      expect(await boxOf(page, 'bulk signed').count()).toBe(0)
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'bulk-inbox')

      await press(page, 'Approve selected …')
      await dialogOf(page).getByRole('heading', { name: '2 gates with the same change' }).waitFor()
      const apart = dialogOf(page).getByRole('region', { name: 'Other changes' })
      expect(await apart.getByRole('checkbox').isChecked()).toBe(false)
      await apart.getByText('bulk other', { exact: true }).waitFor()
      await apart.getByText('job second').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'bulk-dialog')
      const sent = votesOf(page)
      await dialogOf(page).getByLabel('Type 2 to confirm').fill('3')
      await confirm(page, 'Approve 2 gates')
      await dialogOf(page).getByText('Type 2.').waitFor()
      expect(sent).toEqual([])
      await dialogOf(page).getByLabel('Type 2 to confirm').fill('2')
      await confirm(page, 'Approve 2 gates')
      for (const title of ['bulk one', 'bulk two']) await rowOf(page, title).getByText('Approved').waitFor()
      await dialogOf(page).getByText('2 of 2 answered.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'bulk-done')
      expect(new Set(sent.map(({ key }) => key)).size).toBe(2)
      expect(sent.map(({ path }) => path).sort()).toEqual(
        [one, two].map((started) => `/api/v1/operations/${started?.operation_id}/gates/go/approve`).sort(),
      )
      const batches = await Promise.all([one, two].map((started) => batchOf(started?.operation_id ?? '')))
      expect(batches).toEqual([{ id: batches[0]?.id, size: 2 }, batches[0]])
      const left = await people.eva.get<{ status: string }>(`/v1/operations/${other?.operation_id}/gates/go`)
      expect(left.status).toBe('waiting')
      await dialogOf(page).locator('.button', { hasText: 'Close' }).click()
      await dialogOf(page).waitFor({ state: 'detached' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'show the answer of each: another person decided one meanwhile, and one without an answer is asked again',
    async () => {
      const [, taken, lost] = await waiting(['group first'], ['group taken'], ['group lost'])
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/inbox?for=me`)
      for (const title of ['group first', 'group taken', 'group lost']) await boxOf(page, title).check()
      await press(page, 'Approve selected …')
      await dialogOf(page).getByLabel('Type 3 to confirm').fill('3')
      const otto = await signIn(stack.gateway_url, accounts.get('otto') as Account)
      const path = `/v1/operations/${taken?.operation_id}/gates/go`
      const { digest, round } = await otto.get<{ digest: string; round: number }>(path)
      await otto.post(`${path}/approve`, { reviewed_digest: digest, round })
      // The server decides, but its answer never arrives.
      await page.route(`**/operations/${lost?.operation_id}/gates/go/approve`, async (route) => {
        await route.fetch()
        await route.abort()
      })
      const sent = votesOf(page)
      await confirm(page, 'Approve 3 gates')
      await rowOf(page, 'group first').getByText('Approved').waitFor()
      await rowOf(page, 'group taken').getByText('Not possible now').waitFor()
      await rowOf(page, 'group lost').getByText('It is unknown whether this took effect.').waitFor()
      await dialogOf(page).getByText('2 of 3 answered.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'bulk-partial')
      await page.unrouteAll()
      await confirm(page, 'Send the last one')
      await rowOf(page, 'group lost').getByText('Approved').waitFor()
      const keys = sent.flatMap(({ key, path }) => (path.includes(lost?.operation_id ?? '-') ? [key] : []))
      expect(keys.length).toBe(2)
      expect(new Set(keys).size).toBe(1)
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'leave out, by name, one that cannot be read',
    async () => {
      const [, , unread] = await waiting(['read one'], ['read two'], ['read none'])
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/inbox?for=me`)
      for (const title of ['read one', 'read two', 'read none']) await boxOf(page, title).check()
      await page.route(`**/api/v1/operations/${unread?.operation_id}/gates/go`, (route) =>
        route.fulfill({ status: 404, contentType: 'application/problem+json', json: { status: 404 } }),
      )
      await press(page, 'Approve selected …')
      const out = dialogOf(page).getByRole('region', { name: 'Left out' })
      await out.getByText('read none').waitFor()
      await out.getByText('This could not be loaded').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await dialogOf(page).getByLabel('Type 2 to confirm').fill('2')
      await confirm(page, 'Approve 2 gates')
      await dialogOf(page).getByText('2 of 2 answered.').waitFor()
      await page.unrouteAll({ behavior: 'wait' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'keep their dialog until every answer is shown',
    async () => {
      const [held] = await waiting(['held one'], ['held two'])
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/inbox?for=me`)
      for (const title of ['held one', 'held two']) await boxOf(page, title).check()
      await press(page, 'Approve selected …')
      await dialogOf(page).getByLabel('Type 2 to confirm').fill('2')
      const routes: Route[] = []
      await page.route(`**/operations/${held?.operation_id}/gates/go/approve`, (route) => void routes.push(route))
      await confirm(page, 'Approve 2 gates')
      await rowOf(page, 'held two').getByText('Approved').waitFor()
      await page.keyboard.press('Escape')
      await dialogOf(page).locator('.button', { hasText: 'Close' }).dispatchEvent('click')
      for (const route of routes) await route.continue()
      await dialogOf(page).getByText('2 of 2 answered.').waitFor()
      await page.keyboard.press('Escape')
      await dialogOf(page).waitFor({ state: 'detached' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'say why one is not decided yet if the server had no time for it, and send it again',
    async () => {
      const [busy] = await waiting(['busy one'], ['busy two'])
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/inbox?for=me`)
      for (const title of ['busy one', 'busy two']) await boxOf(page, title).check()
      await press(page, 'Approve selected …')
      await dialogOf(page).getByLabel('Type 2 to confirm').fill('2')
      const problem = { status: 429, category: 'rate_limited', code: 'rate_limited', detail: 'Too many votes at once.' }
      await page.route(`**/operations/${busy?.operation_id}/gates/go/approve`, (route) =>
        route.fulfill({
          ...{ status: 429, contentType: 'application/problem+json' },
          json: { ...problem, retry_after_ms: 1 },
        }),
      )
      await confirm(page, 'Approve 2 gates')
      await rowOf(page, 'busy one').getByText('Not decided yet').waitFor()
      await rowOf(page, 'busy one').getByText('Too many votes at once.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await page.unrouteAll({ behavior: 'wait' })
      await confirm(page, 'Send the last one')
      await rowOf(page, 'busy one').getByText('Approved').waitFor()
      await page.goto(`${stack.gateway_url}/operations/${busy?.operation_id}/evidence`)
      await page.getByText(/, one of 2 decided together/).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'report that one was recorded and refused later, until the person closes it',
    async () => {
      const [later] = await waiting(['later one'], ['later two'])
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/inbox?for=me`)
      for (const title of ['later one', 'later two']) await boxOf(page, title).check()
      const command_id = '0195f0c2-0000-7000-8000-0000000000ab'
      await page.route(`**/operations/${later?.operation_id}/gates/go/approve`, async (route) => {
        const response = await route.fetch()
        const { command, ...gate } = await response.json()
        await route.fulfill({ response, status: 202, json: { ...gate, command: { ...command, command_id } } })
      })
      const command = { command_id, kind: 'gate_decided', status: 'refused', code: null, seq: 9, not_after: null }
      const outcome = { category: 'gate_not_waiting', code: 'expired', detail: 'Its time was over.' }
      await page.route(`**/commands/${command_id}`, (route) =>
        route.fulfill({ json: { command: { ...command, accepted_at: new Date().toISOString() }, outcome } }),
      )
      await press(page, 'Approve selected …')
      await dialogOf(page).getByLabel('Type 2 to confirm').fill('2')
      await confirm(page, 'Approve 2 gates')
      await dialogOf(page).getByText('2 of 2 answered.').waitFor()
      await page.keyboard.press('Escape')
      await dialogOf(page).waitFor({ state: 'detached' })
      const refusal = page.getByText('Recorded, then refused: gate decided.')
      await refusal.waitFor()
      await page.getByText('Its time was over.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await press(page, 'Close')
      await refusal.waitFor({ state: 'detached' })
      await page.unrouteAll({ behavior: 'wait' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'are rejected with one comment',
    async () => {
      await waiting(['stop one'], ['stop two'])
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/inbox?for=me`)
      for (const title of ['stop one', 'stop two']) await boxOf(page, title).check()
      await press(page, 'Reject selected …')
      await dialogOf(page).getByLabel('Type 2 to confirm').fill('2')
      await confirm(page, 'Reject 2 gates')
      await dialogOf(page)
        .getByLabel('Comment')
        .and(page.locator('[aria-invalid=true]'))
        .fill('The canary loses connections')
      await confirm(page, 'Reject 2 gates')
      for (const title of ['stop one', 'stop two']) await rowOf(page, title).getByText('Rejected').waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})

/** An operation with a patch that olga proposed; it changes only `max_parallel`. */
const patched = async (title: string, max_parallel: number) => {
  const [started] = await waiting([title])
  const path = `/v1/operations/${started?.operation_id}`
  const body = { base_revision: 1, changes: [{ op: 'set_limits', max_parallel }], reason: `Slow down ${title}` }
  const { patch_id } = await people.olga.post<{ patch_id: string }>(`${path}/patches`, body).then(({ body }) => body)
  const read = async () => people.olga.get<{ status: string }>(`${path}/patches/${patch_id}`)
  return { operation_id: started?.operation_id ?? '', patch_id, status: async () => (await read()).status }
}

describe('patches decided together', () => {
  it(
    'are those with the same changes; each gets its own command, and its evidence names the batch',
    async () => {
      const all = [await patched('slow one', 2), await patched('slow two', 2), await patched('slow three', 3)]
      const [one, two, three] = all
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/inbox?for=me`)
      for (const title of ['slow one', 'slow two'])
        await page.getByRole('checkbox', { name: `Select Slow down ${title}, ${title}` }).check()
      await page.getByText('2 patches selected').waitFor()
      await page.getByRole('link', { name: 'Slow down slow three' }).press('x')
      await page.getByText('3 patches selected').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'bulk-patches')
      await press(page, 'Approve selected …')
      await dialogOf(page).getByRole('heading', { name: '2 patches with the same change' }).waitFor()
      await dialogOf(page)
        .getByRole('region', { name: 'Other changes' })
        .getByText('slow three', { exact: true })
        .waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'bulk-patches-dialog')
      const sent = votesOf(page)
      await dialogOf(page).getByLabel('Type 2 to confirm').fill('2')
      await confirm(page, 'Approve 2 patches')
      await dialogOf(page).getByText('2 of 2 answered.').waitFor()
      expect(new Set(sent.map(({ key }) => key)).size).toBe(2)
      for (const patch of [one, two])
        await until(async () => ['approved', 'applied'].includes((await patch?.status()) ?? ''), {
          what: 'the patch to be approved',
        })
      expect(await three?.status()).toBe('awaiting_approval')
      const batches = await Promise.all([one, two].map((patch) => batchOf(patch?.operation_id ?? '')))
      expect(batches).toEqual([{ id: batches[0]?.id, size: 2 }, batches[0]])
      await page.close()
    },
    PATIENCE_MS,
  )
})
