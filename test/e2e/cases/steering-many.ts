import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { confirm, dialogOf, nodesOf, PATIENCE_MS, people, press, stack, start, tabOf, takePictures } from '../desk.ts'

/** Operations that wait at their gate. */
const waiting = async (...titles: string[]) => {
  const started = await Promise.all(titles.map((title) => start(title, { deadline_s: 1800 })))
  for (const { operation_id } of started)
    await until(async () => (await nodesOf(operation_id)).second === 'gated', {
      what: 'the gate to ask',
      timeout_ms: 60_000,
    })
  return started.map(({ operation_id }) => operation_id)
}
type Read = { control: string; cancel_mode: string | null; steering: { kind: string; reason: string | null } | null }
const read = (operation_id = '') => people.olga.get<Read>(`/v1/operations/${operation_id}`)
const listFor = async (username: string, q: string) => {
  const page = await tabOf(username)
  await page.goto(`${stack.gateway_url}/operations?tab=running&q=${q}`)
  return page
}
const select = (page: Page, title: string) =>
  page.getByRole('checkbox', { name: `Select ${title}`, exact: true }).check()
const rowOf = (page: Page, title: string) => dialogOf(page).getByRole('listitem').filter({ hasText: title }).first()
/** The commands that a page sends from now on; its dry runs are over. */
const commandsOf = (page: Page) => {
  const sent: { key: string; path: string }[] = []
  page.on('request', (request) => {
    if (/\/(pause|resume|cancel)$/.test(request.url()))
      sent.push({ key: request.headers()['idempotency-key'] ?? '', path: new URL(request.url()).pathname })
  })
  return sent
}
const close = async (page: Page) => {
  await dialogOf(page).locator('.button', { hasText: 'Close' }).click()
  await dialogOf(page).waitFor({ state: 'detached' })
}

describe('operations steered together', () => {
  it(
    'are paused after the effect on each is shown; one that is refused is left out with its reason; then resumed',
    async () => {
      const [one, two, paused] = await waiting('flock one', 'flock two', 'flock paused')
      await people.olga.post(`/v1/operations/${paused}/pause`, { reason: 'a test' })
      const page = await listFor('olga', 'flock')
      await select(page, 'flock one')
      await page.getByRole('link', { name: 'flock two' }).press('x')
      await page.getByText('2 operations selected').waitFor()
      await select(page, 'flock paused')
      await page.getByText('3 operations selected').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'steer-list')

      await press(page, 'Pause selected …')
      const able = dialogOf(page).getByRole('region', { name: '2 operations' })
      for (const title of ['flock one', 'flock two'])
        await able
          .getByRole('listitem')
          .filter({ hasText: title })
          .getByText('No node is running; one will not start until it is resumed.')
          .waitFor()
      const out = dialogOf(page).getByRole('region', { name: 'Left out' })
      await out.getByText('flock paused').waitFor()
      await out.getByText(/The operation is already paus(ed|ing)\./).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'steer-dialog')

      const sent = commandsOf(page)
      await confirm(page, 'Pause 2 operations')
      await dialogOf(page).getByText('Enter a reason.').waitFor()
      await dialogOf(page).getByLabel('Reason').fill('the load is high')
      await dialogOf(page).getByLabel('Type 2 to confirm').fill('3')
      await confirm(page, 'Pause 2 operations')
      await dialogOf(page).getByText('Type 2.').waitFor()
      expect(sent).toEqual([])
      await dialogOf(page).getByLabel('Type 2 to confirm').fill('2')
      await confirm(page, 'Pause 2 operations')
      await dialogOf(page).getByText('2 of 2 answered.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'steer-done')
      expect(new Set(sent.map(({ key }) => key)).size).toBe(2)
      expect(sent.map(({ path }) => path).sort()).toEqual(
        [one, two].map((id) => `/api/v1/operations/${id}/pause`).sort(),
      )
      for (const id of [one, two])
        expect(await read(id)).toMatchObject({
          control: 'pause',
          steering: { kind: 'pause', reason: 'the load is high' },
        })
      await close(page)

      await press(page, 'Select all')
      await page.getByText('3 operations selected').waitFor()
      await press(page, 'Resume selected …')
      await dialogOf(page).getByRole('region', { name: '3 operations' }).waitFor()
      await dialogOf(page).getByLabel('Reason').fill('the load is low')
      await dialogOf(page).getByLabel('Type 3 to confirm').fill('3')
      await confirm(page, 'Resume 3 operations')
      await dialogOf(page).getByText('3 of 3 answered.').waitFor()
      for (const id of [one, two, paused]) expect((await read(id)).control).toBe('run')
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'are canceled in the mode that the person chose; one without an answer is asked again with its key',
    async () => {
      const [first, lost] = await waiting('herd first', 'herd lost')
      const page = await listFor('olga', 'herd')
      for (const title of ['herd first', 'herd lost']) await select(page, title)
      await press(page, 'Cancel selected …')
      await rowOf(page, 'herd first').getByText('No node is running; one will not start.').waitFor()
      await dialogOf(page)
        .getByLabel(/^Stop and undo/)
        .check()
      await rowOf(page, 'herd lost')
        .getByText(/undone\.$/)
        .waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await dialogOf(page).getByLabel('Reason').fill('not today')
      await dialogOf(page).getByLabel('Type 2 to confirm').fill('2')
      // The server carries it out, but its answer never arrives.
      await page.route(`**/operations/${lost}/cancel`, async (route) => {
        await route.fetch()
        await route.abort()
      })
      const sent = commandsOf(page)
      await confirm(page, 'Cancel 2 operations')
      await rowOf(page, 'herd lost').getByText('It is unknown whether this took effect.').waitFor()
      await dialogOf(page).getByText('1 of 2 answered.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await page.unrouteAll()
      await confirm(page, 'Send the last one')
      await dialogOf(page).getByText('2 of 2 answered.').waitFor()
      const keys = sent.flatMap(({ key, path }) => (path.includes(lost ?? '-') ? [key] : []))
      expect(keys.length).toBe(2)
      expect(new Set(keys).size).toBe(1)
      for (const id of [first, lost])
        expect(await read(id)).toMatchObject({ control: 'cancel', cancel_mode: 'compensate' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'cannot be selected by people who may control none',
    async () => {
      await start('seen only')
      const page = await listFor('eva', 'seen')
      await page.getByRole('link', { name: 'seen only' }).press('x')
      expect(await page.getByRole('checkbox').count()).toBe(0)
      expect(await page.getByRole('region', { name: 'Selected operations' }).count()).toBe(0)
      await page.close()
    },
    PATIENCE_MS,
  )
})
